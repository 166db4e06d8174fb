"""What z knows, over seeds: of the task, which it should, and of the behaviour policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ertrl.envs import group_title
from ertrl.reporting.measure.comparison import Column, Row, anchor_row, row_of
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


@dataclass(frozen=True)
class Regression:
    columns: list[Column]
    rows: list[Row]
    targets: list[str]
    settings: dict[str, Any]
    beside_paper: bool


def regression(family: FamilyResults, probed: Sequence[Probed]) -> Regression:
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
    settings = probed[0].seeds[0]["settings"]
    return Regression(columns, rows + constants, regressed, settings, beside_paper)


def _printed(family: str, method: str, target: str) -> list[Estimate | None]:
    """The paper's errors; it regressed raw parameters only."""
    tables = paper_results()["rmse"]
    found = [tables[model][family].get(method) for model in MODELS]
    return [Estimate(f[0], 0) if f and target == "parameters" else None for f in found]


@dataclass(frozen=True)
class Leak:
    """How often the behaviour policy's checkpoint is told from z, in percent."""

    rows: list[Row]
    """Accuracy per group, then shares of variance; below them the raw context and chance."""
    checkpoints: int = 0
    context_size: int = 0
    missing: tuple[str, ...] = ()
    """Why it was not measured; then there is nothing else."""


def leak(family: FamilyResults, probed: Sequence[Probed]) -> Leak:
    """Accuracy of telling the checkpoint from z, and shares of z's variance."""
    every = [probes["leak"] for one in probed for probes in one.seeds]
    reasons = sorted({found["missing"] for found in every if "missing" in found})
    if reasons:
        return Leak([], missing=tuple(reasons))
    rows = []
    for one in probed:
        found = [one.leaks(group) for group in family.groups]
        found += [[p["leak"]["variance"][kind] for p in one.seeds] for kind in SHARES]
        cells = [estimate_of([100 * x for x in values]) for values in found]
        rows.append(one.row(cells))
    # The same contexts for all methods: any of them knows what the raw ones tell.
    raw = [float(np.mean(probed[0].leaks(group, "raw_accuracy"))) for group in family.groups]
    for label, values in (("raw context", raw), ("chance", [every[0]["chance"]] * len(raw))):
        rows.append(anchor_row(label, label, [Estimate(100 * x, 0) for x in values]))
    return Leak(rows, every[0]["checkpoints"], every[0]["context_size"])


@dataclass(frozen=True)
class Swap:
    """Whom z follows where an agent acts as in another task, in percent."""

    columns: list[Column]
    rows: list[Row]
    """Per group: how often it is nearer to the task, the same for episodes in which nothing
    disagrees, and how far it goes towards the task, median."""
    missing: tuple[str, ...] = ()
    """Why some were not measured."""


def swap(family: FamilyResults, probed: Sequence[Probed]) -> Swap | None:
    """Of the variants that were asked; None: nobody was."""
    every = [p["swap"] for one in probed for p in one.seeds if "swap" in p]
    reasons = tuple(sorted({found["missing"] for found in every if "missing" in found}))
    kinds = {"followed_task": "follows the task", "control": "control", "way": "way to the task"}
    asked = [(kind, group) for kind in kinds for group in family.groups]
    rows = []
    for one in probed:
        found = [one.swaps(*question) for question in asked]
        if any(found):
            row = one.row([estimate_of([100 * x for x in values]) for values in found])
            rows.append(row._replace(seeds=str(max(map(len, found)))))
    columns = [Column(kinds[kind], group_title(group)) for kind, group in asked]
    return Swap(columns, rows, reasons) if every else None
