"""The table of docs/methods.md: what each method does, what an update costs, where it is best.

    .venv/bin/python benchmarks/overview.py    # or: make results-overview

Costs are those of results/bench/train-laptop.json, in updates of FOCAL; each was measured in turns
with a matrix product, and the product's time cancels neighbours on the machine. Where a method is
best is read from results/laptop/FAMILY/results.json or, where there is none, from
results/FAMILY/results.json. Takes seconds and rewrites the table in its page.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ertrl.methods import methods
from ertrl.reporting.read.identity import method_title
from ertrl.text import markdown_table
from shared import KEEP, ROOT

PAGE = ROOT / "docs" / "methods.md"
HEAD = ("method", "mechanism", "cost per update", "highest mean here")
GROUPS = {"test-id": "held-out", "test-ood": "out of distribution"}
PROTOCOLS = ("offline", "online", "non-prior")


def costs(bench: Path = KEEP / "bench" / "train-laptop.json") -> dict[str, float]:
    """Time of an update over that of FOCAL's, both in units of the machine's peak."""
    found = json.loads(bench.read_text())["methods"]
    times = {name: m["gflop_per_update"] / m["fraction_of_peak"] for name, m in found.items()}
    return {name: time / times["focal"] for name, time in times.items()}


def best(family: dict[str, Any]) -> dict[str, list[str]]:
    """Method -> cells in which its mean over seeds is the highest; of all that were measured."""
    plain = [v for v in family["variants"] if v["label"] == method_title(v["method"])]
    found: dict[str, list[str]] = {variant["method"]: [] for variant in plain}
    for group, words in GROUPS.items():
        for protocol in PROTOCOLS:
            means = {
                variant["method"]: np.mean(
                    [r["protocols"][protocol]["normalised"]["mean"][group] for r in variant["runs"]]
                )
                for variant in plain
            }
            found[max(means, key=means.__getitem__)].append(f"{words} {protocol}")
    return found


def table() -> str:
    """As the page has it."""
    wins: dict[str, list[str]] = {}
    files = (*KEEP.glob("*/results.json"), *KEEP.glob("laptop/*/results.json"))
    newest = {path.parent.name: path for path in files}
    for family, path in sorted(newest.items()):
        families = json.loads(path.read_text()).get("families", {})
        if family not in families:
            continue  # another question than which method is best
        for name, cells in best(families[family]).items():
            told = [f"{family.title()}: {', '.join(cells)}"] if cells else []
            wins[name] = [*wins.get(name, []), *told]
    cost = costs()
    rows = [
        (
            f"[`{name}`]({kind.paper})",
            kind.summary,
            f"{cost[name]:.1f}" if name in cost else "not measured",
            "; ".join(wins[name]) or "nowhere" if name in wins else "not measured",
        )
        for name, kind in sorted(methods().items())
    ]
    return markdown_table(HEAD, rows, "llrl")


def main() -> None:
    lines, made = PAGE.read_text().splitlines(), table().splitlines()
    first = lines.index(made[0])
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    PAGE.write_text("\n".join([*lines[:first], *made, *lines[last:], ""]))


if __name__ == "__main__":
    main()
