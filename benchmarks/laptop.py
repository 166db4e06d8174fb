"""The paper's grid with the laptop profile as it is: results/laptop, family by family.

    .venv/bin/python benchmarks/laptop.py cheetah-vel     # or: make results-laptop ARGS=cheetah-vel
    .venv/bin/python benchmarks/laptop.py walker-mass --methods focal er-trl --seeds 0 1 2
    .venv/bin/python benchmarks/laptop.py cheetah-vel:split=released

Works in build/grid with `ertrl reproduce` (killed, it goes on where it was); asked for more methods
or seeds, it runs what is new: runs whose numbers are in results/ are not made again, though their
data is, if anything is missing. Keeps a small file per run, all numbers (results.json), the table
(summary.md) and returns by kind of context (contexts.png) in results/laptop/FAMILY. An hour or two
per family on two cores.
"""

import json
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from ertrl import store
from ertrl.envs import group_title
from ertrl.evaluation import PAPER_PROTOCOLS
from ertrl.launch.plan import parse_data
from ertrl.launch.reproduce import paper_grid, reproduce
from ertrl.reporting import report
from ertrl.reporting.draw.look import colour_of, house_style, marker_of, new_figure, to_bytes
from ertrl.reporting.draw.panels import legend_above
from ertrl.reporting.measure.statistics import mean_estimate
from shared import KEEP, WORK, asked_for, keep, known_runs

MOST_SEEDS = 10


def main(word: str, contenders: list[str], seeds: list[int]) -> None:
    data = parse_data(word)
    grid = paper_grid([word], contenders, seeds, probe_transitions=0)
    page, place = WORK / "results" / data.folder, KEEP / "laptop" / data.folder
    # What was kept stays in the table, asked for or not, as long as its profile has not changed.
    every = paper_grid([word], ["all"], range(MOST_SEEDS), probe_transitions=0)
    there = names_in(place / "results.json")
    known = {label: name for label, name in known_runs(every, place).items() if name in there}
    lacking = [cell for cell in grid.cells if cell.label not in known]
    runs, data_here = [], []
    if lacking:
        missing = replace(grid, cells=tuple(lacking))
        outcome = reproduce(missing, WORK / "grid", keep=KEEP / "laptop", reporting=False)
        if outcome.failures:
            sys.exit("\n".join(outcome.failures))
        runs = list(outcome.runs.values())
        data_here = [WORK / "grid" / grid.collection(data).makes]
    beside = [results_of(set(known.values()), place)] if known else []
    report(runs, page, data_here, beside=beside)
    keep(page, place, {"results.json": "results.json", "summary.md": "tables/summary.md"})
    store.write_bytes(place / "contexts.png", contexts(place))


def names_in(file: Path) -> set[str]:
    """Runs whose numbers a results.json has."""
    families = store.read_json(file)["families"].values() if file.exists() else ()
    return {r["run"] for family in families for v in family["variants"] for r in v["runs"]}


def results_of(known: Collection[str], place: Path) -> Path:
    """The results.json that was kept, with these runs only."""
    content = store.read_json(place / "results.json")
    for family in content["families"].values():
        for variant in family["variants"]:
            old = [run["run"] for run in variant["runs"] if run["run"] not in known]
            variant["runs"] = [run for run in variant["runs"] if run["run"] in known]
            if old:
                print(f"left out, made with another profile: {', '.join(old)}", flush=True)
        family["variants"] = [variant for variant in family["variants"] if variant["runs"]]
    file = WORK / "known" / place.name / "results.json"
    store.write_json(file, content)
    return file


def contexts(folder: Path) -> bytes:
    """Returns of all methods with each kind of context, with intervals, on tasks they never saw."""
    (facts,) = json.loads((folder / "results.json").read_text())["families"].values()
    with house_style():
        figure, (panels,) = new_figure(3.6, 1, 2)
        for panel, group in zip(panels, ("test-id", "test-ood"), strict=True):
            for place, variant in enumerate(facts["variants"]):
                found = [
                    mean_estimate(
                        [r["protocols"][p]["normalised"]["mean"][group] for r in variant["runs"]]
                    )
                    for p in PAPER_PROTOCOLS
                ]
                aside = (place - (len(facts["variants"]) - 1) / 2) * 0.06
                panel.errorbar(
                    [i + aside for i in range(len(found))],
                    [e.value for e in found],
                    [e.half_width or 0 for e in found],
                    color=colour_of(place),
                    marker=marker_of(place),
                    label=variant["label"],
                    linewidth=1,
                    capsize=2,
                )
            panel.axhline(100, linewidth=0.8, linestyle=":")
            panel.set_xticks(range(len(found)), PAPER_PROTOCOLS)
            panel.set_title(group_title(group))
        panels[0].set_ylabel("normalised return")
        legend_above(figure, panels[0].get_legend_handles_labels()[0])
        return to_bytes(figure, "png")


if __name__ == "__main__":
    given = asked_for(__doc__)
    for name in given.families:
        main(name, given.methods, given.seeds)
