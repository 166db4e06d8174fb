"""Dose and response: what methods lose as the collectors differ more and more.

    .venv/bin/python benchmarks/style.py                  # or: make results-style; both families
    .venv/bin/python benchmarks/style.py point-robot      # about 15 minutes on two cores
    .venv/bin/python benchmarks/style.py cheetah-vel      # about two hours

Collects data at several strengths of --style, normalised with the experts of strength 0, trains
ER-TRL, FOCAL and Bayes-linear with three seeds on each and reports. Works in build/grid (killed, it
goes on where it was) and keeps the small files in results/style/FAMILY: all numbers, the gain of
ER-TRL over FOCAL (benefit.md, dose.png), and what own context costs each method (gap.md, gap.png).
"""

import json
import sys
from typing import Any

import numpy as np

from ertrl import store
from ertrl.envs import group_title
from ertrl.launch.plan import Contender, Data
from ertrl.reporting import report
from ertrl.reporting.draw.look import colour_of, house_style, marker_of, new_figure, to_bytes
from ertrl.reporting.draw.panels import legend_above
from ertrl.reporting.measure.statistics import Estimate, mean_estimate
from ertrl.text import markdown_table
from shared import COMPARISON, KEEP, PAIR, WORK, done, grid_of, keep

STRENGTHS = {"point-robot": (0.25, 0.5, 1.0), "cheetah-vel": (0.5, 1.0)}
GROUPS = ("test-id", "test-ood")
Gaps = dict[tuple[str, str], dict[float, Estimate]]
"""(Method, group) -> strength -> points lost from logged to own context."""


def main(family: str) -> None:
    plain = Data(family)
    styled = [
        Data(family, settings={"style": strength}, references=plain)
        for strength in STRENGTHS[family]
    ]
    runs = done(grid_of([plain, *styled], (*PAIR, Contender("bayes-linear")))).runs
    work, place = WORK / "style" / family, KEEP / "style" / family
    report(list(runs.values()), work)
    keep(work, place, COMPARISON | {"dose.png": "figures/benefit-dose.png"})
    found = gaps(json.loads((work / "results.json").read_text()))
    store.write_bytes(place / "gap.md", table(found).encode())
    store.write_bytes(place / "gap.png", draw(found))


def gaps(results: dict[str, Any]) -> Gaps:
    found: Gaps = {}
    for facts in results["families"].values():
        for variant in facts["variants"]:
            for group in GROUPS:
                offline, online = (
                    [r["protocols"][p]["normalised"]["mean"][group] for r in variant["runs"]]
                    for p in ("offline", "online")
                )
                lost = mean_estimate(list(np.subtract(offline, online)))
                found.setdefault((variant["label"], group), {})[facts["style"]] = lost
    return found


def table(found: Gaps) -> str:
    """A row per method and group, a column per strength."""
    strengths = sorted({strength for row in found.values() for strength in row})
    rows = [
        [
            label,
            group_title(group),
            *(f"{e.value:.1f} ± {e.half_width or 0:.1f}" for e in row.values()),
        ]
        for (label, group), row in found.items()
    ]
    head = ["", "tasks", *(f"style {strength:g}" for strength in strengths)]
    return markdown_table(head, rows, "ll" + "r" * len(strengths)) + (
        "\n\nPoints of normalised return lost from offline to online context, mean over seeds ± "
        "half width of the 95% interval.\n"
    )


def draw(found: Gaps) -> bytes:
    with house_style():
        figure, (panels,) = new_figure(3.2, 1, len(GROUPS))
        for panel, group in zip(panels, GROUPS, strict=True):
            own = {label: row for (label, where), row in found.items() if where == group}
            for place, (label, row) in enumerate(own.items()):
                panel.errorbar(
                    list(row),
                    [lost.value for lost in row.values()],
                    [lost.half_width or 0 for lost in row.values()],
                    color=colour_of(place),
                    marker=marker_of(place),
                    label=label,
                    linewidth=1,
                    capsize=2,
                )
            panel.axhline(0, linewidth=0.8, linestyle=":")
            panel.set_title(group_title(group))
            panel.set_xlabel("strength of style")
        panels[0].set_ylabel("points lost with own context")
        legend_above(figure, panels[0].get_legend_handles_labels()[0])
        return to_bytes(figure, "png")


if __name__ == "__main__":
    for name in sys.argv[1:] or STRENGTHS:
        main(name)
