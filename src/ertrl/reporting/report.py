"""From runs on disk to a folder with everything one wants to show of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ertrl import store
from ertrl.evaluation import missing_repeats
from ertrl.provenance import provenance
from ertrl.reporting import page, style, tables
from ertrl.reporting.benefit import Benefit, benefit
from ertrl.reporting.benefit import markdown as benefit_markdown
from ertrl.reporting.gather import gather
from ertrl.reporting.material import prepare
from ertrl.reporting.pictures import Picture, draw, draw_shared
from ertrl.reporting.results import FamilyResults, Results, SeedRun, Variant
from ertrl.reporting.summary import summarise_family
from ertrl.training import Runs


def report(
    runs: Runs,
    out: str | Path = "report",
    data: str | Path | Sequence[str | Path] | None = None,
) -> Path:
    """Write report.html, figures, tables and results.json into the folder `out`.

    `runs` are run folders, or folders of runs. `data` names the dataset folders, where they are
    no longer at the place the runs were trained from. Returns the path of report.html.
    """
    out, made = Path(out), compose(runs, data)
    for picture in (p for family in made.pictures for p in family.values()):
        for kind in ("png", "pdf"):
            target = out / "figures" / f"{picture.name}.{kind}"
            store.write_bytes(target, style.to_bytes(picture.figure, kind))
    every = [summary for pair in made.summaries for summary in pair]
    texts = {
        "tables/summary.md": "\n".join(tables.markdown(summary) for summary in every),
        "tables/summary.tex": "\n".join(tables.latex(summary) for summary in every),
        "tables/summary.csv": tables.csv_table(made.results),
        "report.html": made.html,
    }
    if made.benefit is not None:
        texts["tables/benefit.md"] = benefit_markdown(made.benefit)
    store.write_json(out / "results.json", raw_numbers(made.results, made.benefit))
    for name, content in texts.items():
        store.write_bytes(out / name, content.encode())
    return out / "report.html"


class Composition(NamedTuple):
    """A report before it is written."""

    results: Results
    pictures: list[dict[str, Picture]]
    """One dictionary per family, and one of all families together."""
    summaries: list[page.Tables]
    benefit: Benefit | None
    html: str


def compose(runs: Runs, data: str | Path | Sequence[str | Path] | None = None) -> Composition:
    """Read, replay, draw and typeset."""
    folders = [data] if isinstance(data, (str, Path)) else list(data or [])
    results = gather(runs, folders)
    materials = prepare(results, data)
    drawn = [
        draw(family, material, results.labels)
        for family, material in zip(results.families, materials, strict=True)
    ]
    summaries = [
        (summarise_family(family), summarise_family(family, normalised=False))
        for family in results.families
    ]
    found = benefit(results, materials)
    shared = draw_shared(found)
    html = page.render(results, materials, drawn, summaries, found, shared)
    return Composition(results, [*drawn, shared], summaries, found, html)


def raw_numbers(results: Results, found: Benefit | None = None) -> dict[str, Any]:
    """Every number behind the page, per seed and per task, and where this file comes from."""
    return {
        "kind": "ertrl-results",
        "format": 1,
        "families": {family.family: _family(family) for family in results.families},
        "benefit": found
        and {
            "points": [point._asdict() for point in found.points],
            "trends": [trend._asdict() for trend in found.trends],
            "missing": found.missing,
        },
        "notes": list(results.notes),
        "provenance": provenance(),
    }


def _family(family: FamilyResults) -> dict[str, Any]:
    return {
        "dataset": family.dataset,
        "evaluation": family.settings,
        "tasks": family.tasks,
        "groups": family.groups,
        "references": family.references,
        "variants": [
            {
                "label": variant.label,
                "method": variant.method,
                "learner": variant.learner,
                "updates": variant.updates,
                "step": variant.step,
                "runs": [_run(family, variant, run) for run in variant.runs],
            }
            for variant in family.variants
        ],
    }


def _nulls(values: np.ndarray) -> list[float | None]:
    """NaN, where all repeats of a task diverged, as JSON has it."""
    return [None if np.isnan(v) else float(v) for v in values]


def _run(family: FamilyResults, variant: Variant, run: SeedRun) -> dict[str, Any]:
    measured = {}
    for protocol in family.protocols:
        scales = {}
        for name, normalised in (("normalised", True), ("returns", False)):
            per_task = family.task_returns(run, protocol, variant.step, normalised=normalised)
            scales[name] = {
                "per_task": None if per_task is None else _nulls(per_task),
                "mean": {
                    group: family.score(run, protocol, group, variant.step, normalised=normalised)
                    for group in family.groups
                },
            }
        measured[protocol] = scales
    oracle = family.task_returns(run, "oracle", variant.step)
    probes = run.probes.get(variant.step)
    return {
        "run": run.run.name,
        "seed": run.seed,
        "protocols": measured,
        "oracle_normalised_per_task": None if oracle is None else _nulls(oracle),
        "missing_repeats": missing_repeats(run.evaluations.get(variant.step, {})),
        "probes": probes and {k: probes[k] for k in ("settings", "regression", "leak")},
        "provenance": run.run.spec["provenance"],
    }
