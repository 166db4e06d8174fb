"""From runs on disk to a folder with everything one wants to show: read, measure, draw, write."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ertrl import store
from ertrl.errors import ConfigError
from ertrl.progress import say
from ertrl.provenance import device_text
from ertrl.reporting.draw import draw_family, draw_gains
from ertrl.reporting.draw.look import to_bytes
from ertrl.reporting.measure.comparison import returns_table
from ertrl.reporting.measure.gain import gains
from ertrl.reporting.read.dataset import read_material
from ertrl.reporting.read.runs import Beside, read_runs
from ertrl.reporting.write import tables
from ertrl.reporting.write.numbers import raw_numbers
from ertrl.reporting.write.page import render
from ertrl.reporting.write.sections import FamilyReport, Report
from ertrl.training import Runs


def report(
    runs: Runs,
    out: str | Path = "report",
    data: str | Path | Sequence[str | Path] | None = None,
    *,
    beside: Beside = (),
    notes: Sequence[str] = (),
) -> Path:
    """Write report.html, figures, tables and results.json into the folder `out`.

    `runs` are run folders, or folders of runs. `data` names the dataset folders, where they are
    no longer at the place the runs were trained from. `beside` are results.json files of other
    reports: their numbers stand in the same tables. `notes` say what a reader must know besides.
    Of an earlier report in `out` nothing stays, of other files there everything.
    Returns the path of report.html.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():  # drawing takes a while
        raise ConfigError(f"a report is a folder, and {out} is a file; give another one with --out")
    stale = _written_before(out / "report.html")
    made = compose(runs, data, beside, notes)
    say(f"report: writing {out}")
    for place in (out, out / "figures", out / "tables"):
        store.sweep(place)
    for pictures in (*(family.pictures for family in made.families), made.pictures):
        for picture in pictures.values():
            for kind in ("png", "pdf"):
                name = f"figures/{picture.name}.{kind}"
                store.write_bytes(out / name, to_bytes(picture.figure, kind))
                stale.discard(name)
    measured = [family for family in made.families if not family.results.from_logs]
    every = [table for f in measured for table in (f.table, f.unnormalised)]
    written = [*map(tables.markdown, every)]
    written += [tables.success_markdown(family.results) for family in measured]
    texts = {
        "tables/summary.md": "\n".join(filter(None, written)),
        "tables/summary.tex": "\n".join(tables.latex(table) for table in every),
        "tables/summary.csv": tables.csv_table(made.results),
        "report.html": render(made),
    }
    if made.gains is not None:
        texts["tables/benefit.md"] = tables.gains_markdown(made.gains)
    materials = [family.material for family in made.families]
    store.write_json(out / "results.json", raw_numbers(made.results, materials, made.gains))
    for name, content in texts.items():
        store.write_bytes(out / name, content.encode())
    for name in stale - texts.keys():
        (out / name).unlink(missing_ok=True)
    return out / "report.html"


def _written_before(page: Path) -> set[str]:
    """Files that an earlier report here has and another may not have, as its page tells.

    Nothing else is taken for a report's: a reader may keep pictures beside them.
    """
    html = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    benefit = ["tables/benefit.md"] if '<section id="benefit">' in html else []
    return {*re.findall(r'href="(figures/[a-z0-9-]+\.(?:png|pdf))"', html), *benefit}


def compose(
    runs: Runs,
    data: str | Path | Sequence[str | Path] | None = None,
    beside: Beside = (),
    notes: Sequence[str] = (),
) -> Report:
    """Everything of a report but its files."""
    folders = [data] if isinstance(data, (str, Path)) else list(data or [])
    results = read_runs(runs, folders, beside)
    results = replace(results, notes=(*notes, *results.notes))
    materials = read_material(results, folders)
    say(f"report: statistics and figures, on {device_text()}")
    families = [
        FamilyReport(
            results=family,
            material=material,
            table=returns_table(family),
            unnormalised=returns_table(replace(family, normalised=False)),
            pictures=draw_family(family, material),
        )
        for family, material in zip(results.families, materials, strict=True)
    ]
    found = gains(results, materials)
    return Report(results, families, found, draw_gains(found))


def print_summary(
    runs: Runs,
    data: Sequence[str | Path] = (),
    beside: Beside = (),
    *,
    console: Console | None = None,
) -> None:
    """Print the table of each family on the terminal; `data` and `beside` as in `report`."""
    console = console or Console(markup=False)  # names of runs may hold anything
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a run is left out")  # a note below the tables says so
        results = read_runs(runs, data, beside)
    tables.print_results(results, console)
