"""Tables that gather all results, in docs/methods.md, docs/results.md and docs/findings.md.

    .venv/bin/python benchmarks/overview.py    # or: make results-overview

Costs are those of results/bench/train-laptop.json, in updates of FOCAL; each was measured in turns
with a matrix product, and the product's time cancels neighbours on the machine. Where a method is
best is read from results/laptop/FAMILY/results.json or, where there is none, from
results/FAMILY/results.json. Families come from beside_paper.py and results/laptop, whom z
follows from results/swap. Takes seconds and rewrites the tables in their pages.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import beside_paper
import swap
from ertrl.methods import methods
from ertrl.reporting.read.identity import method_title
from ertrl.text import markdown_table
from shared import KEEP, ROOT

METHODS, RESULTS, FINDINGS = (ROOT / "docs" / f"{n}.md" for n in ("methods", "results", "findings"))
HEAD = ("method", "mechanism", "cost per update", "highest mean here, cells per family")
GROUPS = {"test-id": "held-out", "test-ood": "out of distribution"}
PROTOCOLS = ("offline", "online", "non-prior")
META_WORLD = ("metaworld-push", "metaworld-reach")
CONTENDERS = ("bayes-linear", "er-trl", "focal")


def costs(bench: Path = KEEP / "bench" / "train-laptop.json") -> dict[str, float]:
    """Time of an update over that of FOCAL's, both in units of the machine's peak."""
    found = json.loads(bench.read_text())["methods"]
    times = {name: m["gflop_per_update"] / m["fraction_of_peak"] for name, m in found.items()}
    return {name: time / times["focal"] for name, time in times.items()}


def best(family: dict[str, Any]) -> dict[str, int]:
    """Method -> number of cells in which its mean over seeds is the highest of all measured."""
    plain = [v for v in family["variants"] if v["label"] == method_title(v["method"])]
    found = {variant["method"]: 0 for variant in plain}
    for group, protocol in product(GROUPS, PROTOCOLS):
        means = {
            variant["method"]: np.mean(
                [r["protocols"][protocol]["normalised"]["mean"][group] for r in variant["runs"]]
            )
            for variant in plain
        }
        found[max(means, key=means.__getitem__)] += 1
    return found


def table() -> str:
    """As the page has it."""
    found: dict[str, dict[str, int]] = {name: {} for name in sorted(methods())}
    files = (*KEEP.glob("*/results.json"), *KEEP.glob("laptop/*/results.json"))
    newest = {path.parent.name: path for path in files}
    for family, path in sorted(newest.items()):
        families = json.loads(path.read_text()).get("families", {})
        if family not in families and path.parts[-3] != "laptop":
            continue  # another question than which method is best
        facts = families.get(family) or next(iter(families.values()))  # one, with other tasks
        for name, cells in best(facts).items():
            found[name][family] = cells
    cost = costs()
    rows = [
        (
            f"[`{name}`]({methods()[name].paper})",
            methods()[name].summary,
            f"{cost[name]:.1f}" if name in cost else "not measured",
            _told(cells),
        )
        for name, cells in found.items()
    ]
    return markdown_table(HEAD, rows, "llrl")


def _told(cells: dict[str, int]) -> str:
    """Family -> cells, as a sum and one by one."""
    if not cells:
        return "not measured"
    all_of_them = len(GROUPS) * len(PROTOCOLS) * len(cells)
    parts = ", ".join(f"{family.title()} {count}" for family, count in cells.items() if count)
    return f"{sum(cells.values())} of {all_of_them}" + (f": {parts}" if parts else "")


def own_context_table() -> str:
    """Bayes-linear beside the paper's method and its baseline, with logged and with own context."""
    shown = [
        *product(("test-id",), ("offline", "online")),
        *product(("test-ood",), ("offline", "online")),
    ]
    rows = []
    for path in sorted((KEEP / "laptop").glob("*/results.json")):
        (facts,) = json.loads(path.read_text())["families"].values()
        runs = {v["method"]: v["runs"] for v in facts["variants"]}
        if not runs.keys() >= set(CONTENDERS):
            continue
        cells = []
        for group, protocol in shown:
            means = [
                np.mean([r["protocols"][protocol]["normalised"]["mean"][group] for r in runs[name]])
                for name in CONTENDERS
            ]
            cells.append(
                " / ".join(f"**{m:.0f}**" if m == max(means) else f"{m:.0f}" for m in means)
            )
        rows.append([path.parent.name, *cells])
    titles = [f"{GROUPS[group]}: {protocol}" for group, protocol in shown]
    return markdown_table(["family", *titles], rows, "lrrrr")


def success_table(folder: str) -> str:
    """All methods on a family whose tasks can be fulfilled: normalised return, rate of success."""
    (facts,) = json.loads((KEEP / "laptop" / folder / "results.json").read_text())[
        "families"
    ].values()
    cells = list(product(GROUPS, PROTOCOLS))
    rows = []
    for variant in facts["variants"]:
        told = []
        for group, protocol in cells:
            runs = variant["runs"]
            score = np.mean([r["protocols"][protocol]["normalised"]["mean"][group] for r in runs])
            rate = np.mean([r["success_percent"][f"{protocol}/{group}"] for r in runs])
            told.append(f"{score:.0f} ({rate:.0f}%)")
        rows.append([variant["label"], *told])
    titles = [f"{GROUPS[group]}: {protocol}" for group, protocol in cells]
    return markdown_table([folder, *titles], rows, "l" + "r" * len(titles))


def rewrite(page: Path, made: str) -> None:
    """Put a table where one with the same head stands."""
    lines, new = page.read_text().splitlines(), made.splitlines()
    first = lines.index(new[0])
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    page.write_text("\n".join([*lines[:first], *new, *lines[last:], ""]))


def main() -> None:
    rewrite(METHODS, table())
    rewrite(RESULTS, beside_paper.by_family(beside_paper.main(beside_paper.FILES)))
    rewrite(RESULTS, own_context_table())
    for folder in META_WORLD:
        rewrite(RESULTS, success_table(folder))
    for made in swap.summary().split("\n\n"):
        rewrite(FINDINGS, made)


if __name__ == "__main__":
    main()
