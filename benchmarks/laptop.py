"""The paper's grid with the laptop profile as it is: results/laptop, family by family.

    .venv/bin/python benchmarks/laptop.py cheetah-vel     # or: make results-laptop ARGS=cheetah-vel
    .venv/bin/python benchmarks/laptop.py walker-mass --methods focal er-trl --seeds 0 1 2
    .venv/bin/python benchmarks/laptop.py cheetah-vel:split=released
    .venv/bin/python benchmarks/laptop.py point-robot --methods focal+brac er-trl+brac

Works in build/grid with `ertrl reproduce` (killed, it goes on where it was); asked for more methods
or seeds, it runs what is new: runs whose numbers are in results/ are not made again, though their
data is, if anything is missing. Keeps a small file per run, all numbers (results.json), the table
(summary.md) and returns by kind of context (contexts.png) in results/laptop/FAMILY, those of
another learner than the profile's in a folder of its name there. An hour or two per family on two
cores.
"""

import json
import sys
from collections.abc import Collection
from dataclasses import replace
from itertools import product
from pathlib import Path

from ertrl import store
from ertrl.envs import group_title
from ertrl.evaluation import PAPER_PROTOCOLS
from ertrl.launch.plan import parse_contender, parse_data
from ertrl.launch.reproduce import paper_grid, reproduce
from ertrl.methods import methods
from ertrl.reporting import report
from ertrl.reporting.draw.look import colour_of, house_style, marker_of, new_figure, to_bytes
from ertrl.reporting.draw.panels import legend_above
from ertrl.reporting.measure.statistics import mean_estimate
from ertrl.reporting.read.runs import read_runs
from shared import KEEP, METHODS, WORK, asked_for, keep, known_runs

MOST_SEEDS = 10
ORDER = ("bayes-linear", *(one.method for one in METHODS), "dora", "spc", "gentle")


def main(word: str, learner: str | None, contenders: list[str], seeds: list[int]) -> None:
    data = parse_data(word)
    grid = paper_grid([word], contenders, seeds, probe_transitions=0)
    place = KEEP / "laptop" / data.folder
    # Learners have a table each: it is methods that a table compares.
    page, table = WORK / "results" / data.folder / (learner or ""), place / (learner or "")
    # What was kept stays in the table, asked for or not, as long as its profile has not changed.
    all_methods = [f"{m}+{learner}" for m in sorted(methods())] if learner else ["all"]
    every = paper_grid([word], all_methods, range(MOST_SEEDS), probe_transitions=0)
    file = table / "results.json"
    there = names_in(file)
    known = {label: name for label, name in known_runs(every, place).items() if name in there}
    lacking = [cell for cell in grid.cells if cell.label not in known]
    beside = [results_of(known.values(), file)] if known else []
    if lacking:
        missing = replace(grid, cells=tuple(lacking))
        outcome = reproduce(missing, WORK / "grid", keep=KEEP / "laptop", reporting=False)
        if outcome.failures:
            sys.exit("\n".join(outcome.failures))
        data_here = [WORK / "grid" / grid.collection(data).makes]
        report(list(outcome.runs.values()), page, data_here, beside=beside)
        keep(page, table, {"results.json": "results.json"})
        beside = [results_of(names_in(file), file)]
    report([], page, beside=beside)
    keep(page, table, {"results.json": "results.json", "summary.md": "tables/summary.md"})
    store.write_bytes(table / "contexts.png", contexts(file))


def names_in(file: Path) -> set[str]:
    """Runs whose numbers a results.json has."""
    families = store.read_json(file)["families"].values() if file.exists() else ()
    return {r["run"] for family in families for v in family["variants"] for r in v["runs"]}


def results_of(known: Collection[str], kept: Path) -> Path:
    """The results.json that was kept, with these runs only, ours first and then the paper's."""
    content = store.read_json(kept)
    for family in content["families"].values():
        for variant in family["variants"]:
            old = [run["run"] for run in variant["runs"] if run["run"] not in known]
            variant["runs"] = [run for run in variant["runs"] if run["run"] in known]
            if old:
                print(f"left out, made with another profile: {', '.join(old)}", flush=True)
        left = [variant for variant in family["variants"] if variant["runs"]]
        family["variants"] = sorted(left, key=lambda variant: ORDER.index(variant["method"]))
    file = WORK / "known" / kept.relative_to(KEEP)
    store.write_json(file, content)
    return file


def contexts(results: Path) -> bytes:
    """Returns of all methods with each kind of context, with intervals, on tasks they never saw."""
    (facts,) = json.loads(results.read_text())["families"].values()
    (family,) = read_runs([], beside=[results]).families
    places = {variant.method: variant.place for variant in family.variants}
    with house_style():
        figure, (panels,) = new_figure(3.6, 1, 2)
        for panel, group in zip(panels, ("test-id", "test-ood"), strict=True):
            for i, variant in enumerate(facts["variants"]):
                place = places[variant["method"]]
                found = [
                    mean_estimate(
                        [r["protocols"][p]["normalised"]["mean"][group] for r in variant["runs"]]
                    )
                    for p in PAPER_PROTOCOLS
                ]
                aside = (i - (len(facts["variants"]) - 1) / 2) * 0.06
                panel.errorbar(
                    [x + aside for x in range(len(found))],
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
    by_learner: dict[str | None, list[str]] = {}
    for method in given.methods:
        by_learner.setdefault(parse_contender(method).learner, []).append(method)
    for name, (learner, asked) in product(given.families, by_learner.items()):
        main(name, learner, asked, given.seeds)
