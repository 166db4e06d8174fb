"""The summary table as data: rows are variants and anchors, columns are groups and protocols."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from ertrl.envs import GROUP_TITLES
from ertrl.reporting import stats
from ertrl.reporting.results import ANCHORS, FamilyResults
from ertrl.reporting.stats import Difference, Estimate

SIGNIFICANT = 0.05


def group_title(group: str) -> str:
    """What a reader calls the group."""
    return GROUP_TITLES.get(group, group)


class Column(NamedTuple):
    """What a column measures."""

    group: str
    protocol: str


class Cell(NamedTuple):
    """A number of the table, or the lack of it."""

    estimate: Estimate | None
    """None: not measured."""
    expected: int
    """Seeds the variant has."""
    best: bool = False
    """The highest mean of its column among methods."""
    significant: bool = False
    """Better than every other method of its column, by Welch's test with Holm's correction."""


class Row(NamedTuple):
    """A variant or an anchor."""

    label: str
    cells: tuple[Cell, ...]
    anchor: bool
    seeds: int


class Comparison(NamedTuple):
    """Two variants in one column."""

    column: Column
    one: str
    other: str
    difference: Difference
    p_holm: float
    """Corrected for all comparisons of the family's table."""
    improvement: Estimate
    """Probability that `one` beats `other` on a task."""


@dataclass(frozen=True)
class Summary:
    """One family's table."""

    family: str
    normalised: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def methods(self) -> list[Row]:
        """Rows that learned something."""
        return [row for row in self.rows if not row.anchor]

    def cell(self, label: str, group: str, protocol: str) -> Cell:
        """Look a cell up by name."""
        row = next(row for row in self.rows if row.label == label)
        return row.cells[self.columns.index(Column(group, protocol))]


def summarise_family(family: FamilyResults, *, normalised: bool = True) -> Summary:
    """Average over seeds, compare, and put the anchors underneath."""
    columns = tuple(Column(g, p) for g in family.groups for p in family.protocols)
    comparisons = tuple(compare(family, columns, normalised=normalised))
    raw = {
        v.label: [_estimate(family, v, column, normalised=normalised) for column in columns]
        for v in family.variants
    }
    rows = []
    for variant in family.variants:
        cells = []
        for i, column in enumerate(columns):
            estimate = raw[variant.label][i]
            others = [c[i] for label, c in raw.items() if label != variant.label]
            best = estimate is not None and all(
                o is None or estimate.value >= o.value for o in others
            )
            cells.append(
                Cell(
                    estimate,
                    len(variant.runs),
                    best,
                    best and _beats_all(variant.label, column, comparisons, len(others)),
                )
            )
        rows.append(Row(variant.label, tuple(cells), False, len(variant.runs)))
    for name, label in ANCHORS.items():
        values = [family.anchor(name, column.group, normalised=normalised) for column in columns]
        rows.append(Row(label, tuple(Cell(Estimate(v, 0), 0) for v in values), True, 0))
    return Summary(family.family, normalised, columns, tuple(rows), comparisons)


def _estimate(family: FamilyResults, variant, column: Column, *, normalised: bool):
    scores = family.scores(variant, column.protocol, column.group, normalised=normalised)
    return stats.mean_estimate(list(scores.values())) if scores else None


def compare(
    family: FamilyResults, columns: tuple[Column, ...], *, normalised: bool = True
) -> Iterator[Comparison]:
    """Every pair of variants in every column, where both have seeds enough to be compared."""
    found = []
    for column in columns:
        for one, other in combinations(family.variants, 2):
            a, b = (
                list(
                    family.scores(v, column.protocol, column.group, normalised=normalised).values()
                )
                for v in (one, other)
            )
            difference = stats.welch(a, b)
            if difference is not None:
                found.append((column, one, other, difference))
    adjusted = stats.holm([difference.p for *_, difference in found])
    for (column, one, other, difference), p_holm in zip(found, adjusted, strict=True):
        x, y = (family.seeds_by_tasks(v, column.protocol, column.group) for v in (one, other))
        improvement = stats.improvement_estimate(x, y)
        yield Comparison(column, one.label, other.label, difference, p_holm, improvement)


def _beats_all(
    label: str, column: Column, comparisons: tuple[Comparison, ...], n_others: int
) -> bool:
    won = [
        c
        for c in comparisons
        if c.column == column and label in (c.one, c.other) and c.p_holm < SIGNIFICANT
    ]
    return n_others > 0 and len(won) == n_others
