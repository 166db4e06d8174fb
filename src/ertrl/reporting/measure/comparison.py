"""Methods against each other: means over seeds, tests of every pair, ablations, the paper's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from ertrl.reporting.measure import statistics
from ertrl.reporting.measure.statistics import Difference, Estimate
from ertrl.reporting.read.identity import Identity
from ertrl.reporting.read.paper import published
from ertrl.reporting.read.results import ANCHORS, FamilyResults, Variant

SIGNIFICANT = 0.05


class Column(NamedTuple):
    group: str
    protocol: str


class Row(NamedTuple):
    """Numbers of one variant, or of an anchor: something to hold against all of them."""

    key: Identity | str
    label: str
    place: int | None
    """Of the variant, for its colour; None for an anchor."""
    seeds: str
    """How many, or from how many to how many; nothing for an anchor."""
    cells: tuple[Any, ...]
    """Estimates or cells; None where something was not measured."""

    @property
    def anchor(self) -> bool:
        """Whether it needs no learning."""
        return self.place is None


def row_of(variant: Variant, cells: Sequence[Any]) -> Row:
    return Row(variant.identity, variant.label, variant.place, str(len(variant.runs)), tuple(cells))


def anchor_row(key: str, label: str, cells: Sequence[Any]) -> Row:
    """A row that no method made."""
    return Row(key, label, None, "", tuple(cells))


class Grid(NamedTuple):
    """A table of estimates."""

    columns: list[Column]
    rows: list[Row]


class Cell(NamedTuple):
    """A number of the table, or the lack of it."""

    estimate: Estimate | None
    """None: not measured."""
    expected: int
    """Seeds the variant has."""
    best: bool = False
    """The highest mean of its column among methods; one method, or one seed, has won nothing."""
    significant: bool = False
    """Better than every other method of its column, by Welch's test with Holm's correction."""
    below_zero: bool = False
    """A method's mean below what doing nothing earns."""


class Comparison(NamedTuple):
    column: Column
    one: Identity
    other: Identity
    difference: Difference
    p_holm: float
    """Corrected for all comparisons of the family's table."""

    @property
    def significant(self) -> bool:
        return self.p_holm < SIGNIFICANT


@dataclass(frozen=True)
class ReturnsTable:
    """One family's table: rows are variants and anchors, columns are groups and protocols."""

    family: str
    normalised: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def methods(self) -> list[Row]:
        return [row for row in self.rows if not row.anchor]

    def cell(self, key: Identity | str, column: Column) -> Cell:
        row = next(row for row in self.rows if row.key == key)
        return row.cells[self.columns.index(column)]


def returns_table(family: FamilyResults) -> ReturnsTable:
    """Average over seeds, compare, and put the anchors underneath."""
    columns = tuple(Column(g, p) for g in family.groups for p in family.protocols)
    scores = {
        column: {
            v.identity: list(family.scores(v, column.protocol, column.group).values())
            for v in family.variants
        }
        for column in columns
    }
    comparisons = tuple(_compare(scores))
    means = {c: {v: statistics.estimate_of(x) for v, x in of.items()} for c, of in scores.items()}
    rows = []
    for variant in family.variants:
        cells = []
        for column, of_variants in means.items():
            mean = of_variants[variant.identity]
            known = [m.value for m in of_variants.values() if m]
            best = mean is not None and mean.value >= max(known) and mean.n > 1 and len(known) > 1
            won = [
                variant.identity in (c.one, c.other)
                for c in comparisons
                if c.column == column and c.significant
            ]
            clear = best and sum(won) == len(known) - 1
            zero = family.anchor("zero", column.group)
            idle = mean is not None and zero is not None and mean.value < zero
            cells.append(Cell(mean, len(variant.runs), best, clear, idle))
        rows.append(row_of(variant, cells))
    for name, label in () if family.from_logs else ANCHORS.items():
        values = [family.anchor(name, column.group) for column in columns]
        cells = [Cell(None if x is None else Estimate(x, 0), 0) for x in values]
        rows.append(anchor_row(name, label, cells))
    return ReturnsTable(family.label, family.normalised, columns, tuple(rows), comparisons)


def _compare(scores: Mapping[Column, Mapping[Identity, list[float]]]) -> Iterator[Comparison]:
    """Every pair of variants in every column, where both have seeds enough to be compared."""
    found = []
    for column, of_variants in scores.items():
        for one, other in combinations(of_variants, 2):
            difference = statistics.welch(of_variants[one], of_variants[other])
            if difference is not None:
                found.append(Comparison(column, one, other, difference, difference.p))
    adjusted = statistics.holm([comparison.difference.p for comparison in found])
    for comparison, p_holm in zip(found, adjusted, strict=True):
        yield comparison._replace(p_holm=p_holm)


def improvements(family: FamilyResults, table: ReturnsTable) -> list[Estimate | None]:
    """For every comparison, the probability that its one beats its other on a task.

    Not part of the table, because only one place shows it; None where no task was measured by all.
    """
    returns = {
        (column, v.identity): family.seeds_by_tasks(v, column.protocol, column.group)
        for column in table.columns
        for v in family.variants
    }
    pairs = [(returns[c.column, c.one], returns[c.column, c.other]) for c in table.comparisons]
    return [statistics.improvement_estimate(x, y) if x.size else None for x, y in pairs]


def ablations(family: FamilyResults, table: ReturnsTable) -> dict[Identity, list[Row]]:
    """What variants of a method gain over the one that is as its profile has it.

    One entry for each method that has several variants.
    """
    found = {}
    for method in dict.fromkeys(v.method for v in family.variants):
        own = [v for v in family.variants if v.method == method]
        # Without a plain variant, the first of those that are closest to it.
        base = min(own, key=lambda v: (not v.identity.plain, len(v.identity.settings))).identity
        rows = [
            row_of(v, [_change(table, column, v.identity, base) for column in table.columns])
            for v in own
            if v.identity != base
        ]
        if rows:
            found[base] = rows
    return found


def _change(table: ReturnsTable, column: Column, one: Identity, base: Identity) -> Cell | None:
    """The difference of means, with an interval where it could be tested."""
    for c in table.comparisons:
        if c.column == column and {c.one, c.other} == {one, base}:
            sign = 1 if c.one == one else -1
            low, high = sorted((sign * c.difference.low, sign * c.difference.high))
            change = Estimate(sign * c.difference.value, 0, low, high)
            return Cell(change, 0, significant=c.significant)
    ours, theirs = (table.cell(key, column).estimate for key in (one, base))
    return Cell(Estimate(ours.value - theirs.value, 0), 0) if ours and theirs else None


def interquartile_means(families: Sequence[FamilyResults]) -> Grid:
    """Over all seeds and tasks, of the variants that all families have.

    A mean over fewer families would be one over easier or harder tasks.
    """
    columns = [
        Column(g, p)
        for g in families[0].groups
        for p in families[0].protocols
        if all(g in f.groups and p in f.protocols for f in families)
    ]
    rows = []
    for identity in dict.fromkeys(v.identity for f in families for v in f.variants):
        members = [(f, v) for f in families for v in f.variants if v.identity == identity]
        if len(members) < len(families):
            continue
        cells: list[Estimate | None] = []
        for column in columns:
            strata = [f.seeds_by_tasks(v, column.protocol, column.group) for f, v in members]
            whole = all(s.size for s in strata)
            cells.append(statistics.iqm_estimate(strata) if whole else None)
        counts = sorted({len(v.runs) for _, v in members})
        seeds = "\N{EN DASH}".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
        rows.append(row_of(members[0][1], cells)._replace(seeds=seeds))
    return Grid(columns, rows)


class BesidePaper(NamedTuple):
    label: str
    column: Column
    ours: Cell
    theirs: list[float]
    """Mean and standard deviation."""
    difference: float | None


def beside_paper(family: FamilyResults, table: ReturnsTable) -> list[BesidePaper]:
    """Where the paper has the method, the group and the protocol."""
    found = []
    for variant in family.variants:
        for column in table.columns:
            theirs = published(family.family, variant.method, *column)
            if theirs is not None:
                ours = table.cell(variant.identity, column)._replace(best=False, significant=False)
                gap = ours.estimate.value - theirs[0] if ours.estimate else None
                found.append(BesidePaper(variant.label, column, ours, theirs, gap))
    return found
