"""How many of its own transitions does an agent need, if it infers its task after every step?

    .venv/bin/python benchmarks/continual.py                 # or: make results-continual
    .venv/bin/python benchmarks/continual.py cheetah-vel     # another family

Bayes-linear, ER-TRL and FOCAL, three seeds, under the protocols online (z is inferred between
episodes) and continual (after every step, from the first one on). Collected and trained in
build/grid if they are missing; ten minutes on Point-Robot. Keeps returns of both, the return with
the z of so many own transitions (curves.json, steps.png) and their table (summary.md) in
results/continual/FAMILY.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ertrl import api, store
from ertrl.envs import GROUPS, group_title
from ertrl.launch.plan import Contender, Data
from ertrl.provenance import provenance
from ertrl.reporting.draw.look import house_style, to_bytes
from ertrl.reporting.draw.returns import step_curves
from ertrl.reporting.measure.statistics import mean_estimate
from ertrl.reporting.read.results import FamilyResults
from ertrl.reporting.read.runs import read_runs
from ertrl.text import markdown_table
from shared import KEEP, PAIR, done, grid_of

PROTOCOLS = ("online", "continual")
METHODS = (Contender("bayes-linear"), *PAIR)


def measure(family: FamilyResults) -> dict[str, Any]:
    """Method -> returns by protocol and group, and curves by group; a number per seed."""
    found = {}
    for variant in family.variants:
        curves = [c for r in variant.runs if (c := family.step_curve(r, variant.step))]
        found[variant.label] = {
            "returns": {
                f"{protocol}/{group}": [*family.scores(variant, protocol, group).values()]
                for protocol in PROTOCOLS
                for group in GROUPS
            },
            "transitions": curves[0][0].astype(int).tolist(),
            "curves": {
                group: [returns[family.rows[group]].mean(axis=0).tolist() for _, returns in curves]
                for group in GROUPS
            },
        }
    return found


def table(found: dict[str, Any]) -> str:
    """Both protocols side by side, then the curve on held-out tasks."""
    columns = [f"{p}/{g}" for g in GROUPS for p in PROTOCOLS]
    head = ["", *(f"{group_title(g)}: {p}" for g in GROUPS for p in PROTOCOLS)]
    rows = [[name, *(_cell(x["returns"][key]) for key in columns)] for name, x in found.items()]
    texts = [markdown_table(head, rows, "l" + "r" * len(columns))]
    counts = next(iter(found.values()))["transitions"]
    for group in ("test-id", "test-ood"):
        head = [f"{group_title(group)}, transitions", *map(str, counts)]
        rows = [
            [name, *(f"{mean:.0f}" for mean in np.mean(x["curves"][group], axis=0))]
            for name, x in found.items()
        ]
        texts.append(markdown_table(head, rows, "l" + "r" * len(counts)))
    return "\n\n".join(texts) + "\n"


def _cell(seeds: list[float]) -> str:
    estimate = mean_estimate(seeds)
    return f"{estimate.value:.1f} ± {estimate.half_width or 0:.1f}"


def main(name: str) -> None:
    outcome = done(grid_of([Data(name)], METHODS))
    runs = [Path(run) for run in outcome.runs.values()]
    for run in runs:
        api.evaluate(run, PROTOCOLS)
    (family,) = read_runs(runs).families
    found, place = measure(family), KEEP / "continual" / name
    facts = {"kind": "ertrl-continual", "family": name, "methods": found}
    store.write_json(place / "curves.json", {**facts, "provenance": provenance()})
    store.write_bytes(place / "summary.md", table(found).encode())
    with house_style():
        figure = step_curves(family)
        assert figure is not None, "all were measured under continual"
        store.write_bytes(place / "steps.png", to_bytes(figure, "png"))
    print(table(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=["point-robot"])
    for asked in parser.parse_args().families:
        main(asked)
