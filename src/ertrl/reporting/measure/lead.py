"""Who is ahead, cell by cell: what a headline may say, corrected for no more than it asks."""

from collections.abc import Sequence
from typing import NamedTuple

from ertrl.reporting.measure.comparison import SIGNIFICANT, Column, ReturnsTable
from ertrl.reporting.measure.statistics import holm
from ertrl.reporting.read.identity import Identity


class Lead(NamedTuple):
    """The method with the highest mean of a column, among the others."""

    label: str
    means: tuple[float, ...]
    """Of all methods that were measured, the highest first."""
    compared: tuple[float, ...]
    """Of those with at least two seeds, which can be compared, the highest first."""
    seeds: tuple[int, int]
    """The fewest and the most that one of these has."""
    clear: bool
    """Whether it is better than every other, by Welch's test with Holm's correction."""


class Leads(NamedTuple):
    of: dict[Column, Lead]
    tests: int
    """Comparisons that they are corrected for: best against each other, in all these columns."""


def leads(table: ReturnsTable, columns: Sequence[Column]) -> Leads:
    """Who is ahead in each of these columns, where anything was measured.

    A table's correction is for every pair in every column. A sentence that asks who is best in two
    of them need not pay for three hundred.
    """
    ranked = {column: found for column in columns if (found := _ranked(table, column))}
    p_values: dict[tuple[Column, Identity], float] = {}
    for column, ((best, _), *_) in ranked.items():
        for c in table.comparisons:
            if c.column == column and best.key in (c.one, c.other):
                p_values[column, c.other if c.one == best.key else c.one] = c.difference.p
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    told = {}
    for column, found in ranked.items():
        beaten = [p < SIGNIFICANT for (where, _), p in corrected.items() if where == column]
        compared = [mean for _, mean in found if mean.n > 1]
        counts = [mean.n for mean in compared or (found[0][1],)]
        told[column] = Lead(
            label=found[0][0].label,
            means=tuple(mean.value for _, mean in found),
            compared=tuple(mean.value for mean in compared),
            seeds=(min(counts), max(counts)),
            clear=0 < len(found) - 1 == sum(beaten),
        )
    return Leads(told, len(corrected))


def _ranked(table: ReturnsTable, column: Column) -> list:
    """Methods and their means, the highest first."""
    if column not in table.columns:
        return []
    cells = [(row, table.cell(row.key, column).estimate) for row in table.methods]
    return sorted(
        ((row, x) for row, x in cells if x is not None), key=lambda found: -found[1].value
    )
