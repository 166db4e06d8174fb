"""Does z help where there is no simulator? What logs tell of it, in one verdict per variant."""

from typing import NamedTuple

import numpy as np

from ertrl.reporting.measure.scores import ERRORS, VALUES, log_rows
from ertrl.reporting.measure.statistics import Estimate, mean_estimate
from ertrl.reporting.read.results import FamilyResults, Variant

TARGETS = {"reward": ("reward", "reward, no z"), "next state": ("next state", "next state, no z")}
"""What a model predicts: its columns with and without z, as ERRORS has them."""
ENOUGH = 0.01
"""The share of variance that z has to explain: less is the noise of a small model."""


class Pair(NamedTuple):
    """Of one measure: with z, and without it."""

    with_z: float
    without: float


class Help(NamedTuple):
    """Of one variant, on one group."""

    label: str
    group: str
    value: Pair | None
    """Of the adapted policy and of the same one without a context. None: logs do not tell."""
    more_value: bool
    """Whether that is more with z: for every seed, and by a 95% interval over tasks."""
    unexplained: dict[str, Pair]
    """The shares of variance that are left, of reward and next state; less is better."""

    @property
    def verdicts(self) -> list[bool]:
        """Whether z helps, by each kind of measure that there is."""
        found = [self.more_value] if self.value else []
        if self.unexplained:
            # Tasks may differ in one of both only.
            found.append(any(x.without - x.with_z > ENOUGH for x in self.unexplained.values()))
        return found


def help_of_z(family: FamilyResults) -> list[Help]:
    """On held-out tasks, or else on the first group there is."""
    group = "test-id" if "test-id" in family.groups else next(iter(family.groups))
    values, errors = (log_rows(family, names) for names in (VALUES, ERRORS))
    found = []
    for variant, by_value, by_error in zip(family.variants, values.rows, errors.rows, strict=True):
        grids = (values, by_value), (errors, by_error)
        cells = {
            column.protocol: cell
            for grid, row in grids
            for column, cell in zip(grid.columns, row.cells, strict=True)
            if column.group == group
        }
        unexplained = {
            target: pair for target, names in TARGETS.items() if (pair := _pair(cells, *names))
        }
        value = _pair(cells, "adapted", "no context")
        more = value is not None and _more_value(family, variant, group)
        found.append(Help(by_value.label, group, value, more, unexplained))
    return found


def _pair(cells: dict[str, Estimate | None], with_z: str, without: str) -> Pair | None:
    one, other = cells[with_z], cells[without]
    return Pair(one.value, other.value) if one and other else None


def _more_value(family: FamilyResults, variant: Variant, group: str) -> bool:
    """Each task is its own control."""
    told = [e["logs"]["value"] for run in variant.runs if (e := run.evaluations.get(variant.step))]
    rows = family.rows[group]
    lists = [[seed[name] for seed in told] for name in ("policy", "blind")]
    policy, blind = (np.array(x, np.float64)[:, rows] for x in lists)  # None becomes NaN
    differences = policy - blind
    measured = ~np.isnan(differences).all(axis=0)
    if not measured.any():
        return False
    differences = differences[:, measured]
    low = mean_estimate(np.nanmean(differences, axis=0)).low
    every_seed = all(np.nanmean(seed) > 0 for seed in differences if not np.isnan(seed).all())
    return every_seed and low is not None and low > 0
