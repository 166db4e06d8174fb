"""What z knows, over seeds: of the task, which it should, and of the behaviour policy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ertrl.envs import group_title
from ertrl.reporting.measure.comparison import Column, Grid, Row, anchor_row, row_of
from ertrl.reporting.measure.statistics import Estimate, estimate_of
from ertrl.reporting.read.paper import in_paper, paper_results
from ertrl.reporting.read.results import FamilyResults, Variant

Probes = dict[str, Any]
"""A file that `ertrl evaluate --probes` wrote."""

MODELS = {"linear": "linear", "svr": "SVR"}
CONTEXTS = {"transition": "one transition", "context": "whole context"}
SHARES = ("task", "checkpoint", "context")
"""Where the variance of z comes from."""


class Probed(NamedTuple):
    """A variant and the probes of its seeds at the step that tables show."""

    variant: Variant
    seeds: list[Probes]

    def errors(self, target: str, context: str, model: str) -> list[float]:
        return [
            entry["test_rmse"]
            for probes in self.seeds
            for entry in probes["regression"]
            if (entry["target"], entry["context"], entry["model"]) == (target, context, model)
        ]

    def leaks(self, group: str, kind: str = "accuracy") -> list[float]:
        """The accuracy of each seed, of z or of the raw context."""
        found = [probes["leak"] for probes in self.seeds]
        return [leak[kind][group] for leak in found if kind in leak and group in leak[kind]]

    def swaps(self, kind: str, group: str) -> list[float]:
        """'followed_task', 'control' or 'way' of each seed that was asked."""
        found = [probes.get("swap", {}).get(kind, {}) for probes in self.seeds]
        return [values[group] for values in found if group in values]

    def row(self, cells: Sequence[Estimate | None]) -> Row:
        """A row of this variant; not every seed may have been probed."""
        return row_of(self.variant, cells)._replace(seeds=str(len(self.seeds)))


def probes_of(family: FamilyResults) -> list[Probed]:
    """The variants of which any seed was probed."""
    found = [
        Probed(v, [r.probes[v.step] for r in v.runs if v.step in r.probes]) for v in family.variants
    ]
    return [probed for probed in found if probed.seeds]


def not_probed(family: FamilyResults) -> list[tuple[Variant, int]]:
    return [(v, r.seed) for v in family.variants for r in v.runs if v.step not in r.probes]


def targets(probed: Sequence[Probed]) -> list[str]:
    """What was regressed: the parameters, and the angle where they are one."""
    entries = [e for one in probed for probes in one.seeds for e in probes["regression"]]
    return list(dict.fromkeys(entry["target"] for entry in entries))


def not_measured(probed: Sequence[Probed], kind: str) -> list[str]:
    """Why there is no 'leak' or 'swap' of some."""
    found = [probes.get(kind, {}) for one in probed for probes in one.seeds]
    return sorted({one["missing"] for one in found if "missing" in one})


def regression(family: FamilyResults, probed: Sequence[Probed]) -> Grid:
    """Every model on every kind of context, the constant prediction below, the paper's beside."""
    beside_paper = in_paper(family.family) and not family.style
    ways = [(context, model) for context in CONTEXTS for model in MODELS]
    columns = [Column(CONTEXTS[context], MODELS[model]) for context, model in ways]
    columns += [Column("paper", name) for name in MODELS.values()] if beside_paper else []
    regressed = targets(probed)
    rows, constants = [], []
    for target in regressed:
        suffix = f", {target}" if len(regressed) > 1 else ""
        for one in probed:
            cells = [estimate_of(one.errors(target, *way)) for way in ways]
            if beside_paper:
                cells += _printed(family.family, one.variant.method, target)
            rows.append(one.row(cells)._replace(label=one.variant.label + suffix))
        # The same data for all: any variant's probes hold the constant's error.
        some = Probed(probed[0].variant, probed[0].seeds[:1])
        cells = [estimate_of(some.errors(target, context, "constant")) for context, _ in ways]
        constants.append(anchor_row("constant", f"constant{suffix}", cells))
    return Grid(columns, rows + constants)


def _printed(family: str, method: str, target: str) -> list[Estimate | None]:
    """The paper's errors; it regressed raw parameters only."""
    tables = paper_results()["rmse"]
    found = [tables[model][family].get(method) for model in MODELS]
    return [Estimate(f[0], 0) if f and target == "parameters" else None for f in found]


def leak(family: FamilyResults, probed: Sequence[Probed]) -> list[Row]:
    """How often the behaviour policy's checkpoint is told from z, in percent; all were measured.

    Accuracy per group, then shares of variance; below them the raw context and chance.
    """
    rows = []
    for one in probed:
        found = [one.leaks(group) for group in family.groups]
        found += [[p["leak"]["variance"][kind] for p in one.seeds] for kind in SHARES]
        rows.append(one.row([_percent(values) for values in found]))
    # The same contexts for all methods: any of them knows what the raw ones tell.
    first = probed[0]
    raw = [float(np.mean(first.leaks(group, "raw_accuracy"))) for group in family.groups]
    chance = [first.seeds[0]["leak"]["chance"]] * len(raw)
    for label, values in (("raw context", raw), ("chance", chance)):
        rows.append(anchor_row(label, label, [Estimate(100 * x, 0) for x in values]))
    return rows


def swap(family: FamilyResults, probed: Sequence[Probed]) -> Grid | None:
    """Whom z follows where an agent acts as in another task, in percent; None: nobody was asked.

    Per group: how often it is nearer to the task, the same for episodes in which nothing
    disagrees, and how far it goes towards the task, median.
    """
    if not any("swap" in probes for one in probed for probes in one.seeds):
        return None
    kinds = {"followed_task": "follows the task", "control": "control", "way": "way to the task"}
    asked = [(kind, group) for kind in kinds for group in family.groups]
    rows = []
    for one in probed:
        found = [one.swaps(*question) for question in asked]
        if any(found):
            row = one.row([_percent(values) for values in found])
            rows.append(row._replace(seeds=str(max(map(len, found)))))
    return Grid([Column(kinds[kind], group_title(group)) for kind, group in asked], rows)


def _percent(shares: Sequence[float]) -> Estimate | None:
    return estimate_of([100 * share for share in shares])
