"""In how many cells are our returns at least the paper's ER-TRL's?

    .venv/bin/python benchmarks/beside_paper.py [results.json ...] [--json]

A cell is a family, a group of tasks (training or out of distribution) and a kind of context. Ours
is the better of ER-TRL and FOCAL, unnormalised, mean over seeds; a second count has Bayes-linear,
where it was run, as a third. Reads results.json files of reports, by default those of
results/laptop; a family of a later file replaces that of an earlier one, so Cheetah-Vel is that of
the released tasks.
Takes seconds and writes nothing.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ertrl import store
from ertrl.reporting.read.paper import paper_results
from ertrl.text import markdown_table
from shared import KEEP

FILES = sorted((KEEP / "laptop").glob("*/results.json"))
PAIR = ("er-trl", "focal")
OWN = "bayes-linear"
PROTOCOLS = ("offline", "online", "non-prior")
PLAIN_TASKS = ("train", "test-id")
"""Groups in which nothing may be worse than standing still."""


def cells_of(
    family: str, facts: dict[str, Any], methods: tuple[str, ...] = PAIR
) -> list[dict[str, Any]]:
    """Our best and the paper's return for every group and protocol."""
    paper = paper_results()
    ours = [variant for variant in facts["variants"] if variant["method"] in methods]
    found = []
    for (group, title), protocol in product(paper["groups"].items(), PROTOCOLS):
        published = paper["unnormalised"][title][protocol][family]["er-trl"][0]
        means = {v["label"]: mean_return(v, protocol, group) for v in ours}
        best = max(means, key=means.__getitem__)
        found.append(
            {
                "family": family,
                "group": group,
                "protocol": protocol,
                "method": best,
                "return": means[best],
                "paper": published,
                "met": means[best] >= published,
            }
        )
    return found


def mean_return(variant: dict[str, Any], protocol: str, group: str) -> float:
    """Mean over seeds."""
    runs = (run["protocols"][protocol]["returns"]["mean"][group] for run in variant["runs"])
    return float(np.mean(list(runs)))


def worse_than_nothing(family: str, facts: dict[str, Any]) -> list[str]:
    """Cells of plain tasks in which a method earns less than the zero action."""
    zero = np.array(facts["references"]["zero"])
    idle = {group: zero[facts["groups"][group]].mean() for group in PLAIN_TASKS}
    return [
        f"{family} {variant['label']} {group} {protocol}"
        for variant, group, protocol in product(facts["variants"], PLAIN_TASKS, PROTOCOLS)
        if mean_return(variant, protocol, group) < idle[group]
    ]


def oracle(facts: dict[str, Any]) -> dict[str, float]:
    """Normalised return on training tasks with the context of the best logged policy."""
    rows = facts["groups"]["train"]
    return {
        variant["label"]: float(
            np.mean(
                [np.mean(np.array(r["oracle_normalised_per_task"])[rows]) for r in variant["runs"]]
            )
        )
        for variant in facts["variants"]
    }


def expert(facts: dict[str, Any]) -> float:
    """Return of the final behaviour policies on training tasks."""
    return float(np.array(facts["references"]["expert"])[facts["groups"]["train"]].mean())


def main(files: list[Path]) -> dict[str, Any]:
    families: dict[str, Any] = {}
    for file in files:
        families |= store.read_json(file)["families"]
    published = paper_results()["unnormalised"]["ID"]["offline"]
    families = {name: facts for name, facts in families.items() if name in published}
    cells = [cell for item in families.items() for cell in cells_of(*item)]
    with_own = [cell for item in families.items() for cell in cells_of(*item, (*PAIR, OWN))]
    return {
        "cells": len(cells),
        "met": sum(cell["met"] for cell in cells),
        "met_with_bayes_linear": sum(cell["met"] for cell in with_own),
        "missed": [cell for cell in cells if not cell["met"]],
        "worse_than_nothing": [
            cell for item in families.items() for cell in worse_than_nothing(*item)
        ],
        "oracle_on_training_tasks": {name: oracle(facts) for name, facts in families.items()},
        "expert": {name: expert(facts) for name, facts in families.items()},
        "table": cells,
    }


def by_family(found: dict[str, Any]) -> str:
    """A row per family: ours and, in parentheses, the paper's; bold where ours is not below."""
    columns = [*product(("train", "test-ood"), PROTOCOLS)]
    cells = {(c["family"], c["group"], c["protocol"]): c for c in found["table"]}
    rows = []
    for family, expert in found["expert"].items():
        told = [family, f"{expert:.0f}"]
        for column in columns:
            cell = cells[family, *column]
            ours = f"{cell['return']:.0f}"
            told.append(f"{f'**{ours}**' if cell['met'] else ours} ({cell['paper']:.0f})")
        rows.append(told)
    titles = {"train": "training tasks: ", "test-ood": "out of distribution: "}
    head = [titles[group] * (protocol == "offline") + protocol for group, protocol in columns]
    return markdown_table(["family", "expert", *head], rows, "lrrrrrrr")


def describe(found: dict[str, Any]) -> str:
    told = [
        f"{found['met']} of {found['cells']} cells reach the paper's ER-TRL, with Bayes-linear as "
        f"a third {found['met_with_bayes_linear']}."
    ]
    if found["worse_than_nothing"]:
        told.append(f"Worse than the zero action: {', '.join(found['worse_than_nothing'])}.")
    return "\n".join([by_family(found), "", *told])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result = main(given.files)
    print(json.dumps(result) if given.json else describe(result))
