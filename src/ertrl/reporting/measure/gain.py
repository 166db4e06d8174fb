"""When does hiding the behaviour policy from z help? The paper's question, over families."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ertrl.reporting.measure import statistics
from ertrl.reporting.read.dataset import Material
from ertrl.reporting.read.identity import method_title
from ertrl.reporting.read.results import FamilyResults, Results, Variant

WITH, WITHOUT = "er-trl", "focal"
"""The two methods that differ in the objective alone."""
FEWEST = 3
"""Families that a correlation needs at the least."""


class Point(NamedTuple):
    """The gain on one family, group and protocol."""

    family: str
    base: str
    """The family's name without the strength of its style."""
    group: str
    protocol: str
    distance: float | None
    """Mean Wasserstein-2 distance between behaviour policies, per action dimension."""
    style: float | None
    gain: float
    low: float | None
    high: float | None


class Trend(NamedTuple):
    """How the gain goes with the distance between behaviour policies, over families."""

    group: str
    protocol: str
    r: float
    """Pearson's."""
    p: float
    p_holm: float
    """Corrected for all groups and protocols."""
    families: int


class Gains(NamedTuple):
    """All gains, and why some are missing."""

    points: list[Point]
    missing: list[str]

    @property
    def with_distance(self) -> list[Point]:
        """For the correlation: one point per family, the least styled one."""
        known = [p for p in self.points if p.distance is not None]
        least = {p.base: min(q.style or 0.0 for q in known if q.base == p.base) for p in known}
        return [p for p in known if (p.style or 0.0) == least[p.base]]

    @property
    def trends(self) -> list[Trend]:
        """One per group and protocol that has enough families."""
        found = []
        for group, protocol in dict.fromkeys((p.group, p.protocol) for p in self.with_distance):
            here = [p for p in self.with_distance if (p.group, p.protocol) == (group, protocol)]
            one = statistics.pearson([p.distance or 0.0 for p in here], [p.gain for p in here])
            if one is not None:
                found.append(Trend(group, protocol, *one, one[1], len(here)))
        corrected = statistics.holm([trend.p for trend in found])
        return [t._replace(p_holm=p) for t, p in zip(found, corrected, strict=True)]

    @property
    def doses(self) -> list[Point]:
        """Of families that were collected at several strengths of style."""
        styles: dict[str, set[float]] = {}
        for p in self.points:
            if p.style is not None:
                styles.setdefault(p.base, set()).add(p.style)
        return [p for p in self.points if len(styles.get(p.base, ())) > 1 and p.style is not None]


def gains(results: Results, materials: Sequence[Material]) -> Gains | None:
    """None where no family has both methods: then nobody asked."""
    points: list[Point] = []
    missing: list[str] = []
    asked = False
    for family, material in zip(results.families, materials, strict=True):
        pair = [_plain_variant(family, method) for method in (WITH, WITHOUT)]
        one, other = pair
        if one is None or other is None:
            absent = [
                method_title(m) for m, v in zip((WITH, WITHOUT), pair, strict=True) if v is None
            ]
            missing.append(
                f"{family.label}: no run of {' or '.join(absent)} to compare, or several and none "
                "as its profile has it"
            )
            continue
        asked = True
        if material.policy_distance is None:
            why = (
                "its dataset was not found; name it with --data"
                if material.dataset is None
                else "its dataset does not say how far policies lie apart"
            )
            missing.append(f"{family.label}: {why}")
        points += _points(family, one, other, material)
    return Gains(points, missing) if asked else None


def _plain_variant(family: FamilyResults, method: str) -> Variant | None:
    """The variant as its profile has it, or the only one; None where that is not clear."""
    own = [v for v in family.variants if v.method == method]
    plain = [v for v in own if v.identity.plain]
    chosen = plain if len(plain) == 1 else own
    return chosen[0] if len(chosen) == 1 else None


def _points(
    family: FamilyResults, one: Variant, other: Variant, material: Material
) -> Iterator[Point]:
    for group in family.groups:
        for protocol in family.protocols:
            a, b = (list(family.scores(v, protocol, group).values()) for v in (one, other))
            if not a or not b:
                continue
            test = statistics.welch(a, b)
            yield Point(
                family=family.label,
                base=family.family,
                group=group,
                protocol=protocol,
                distance=material.policy_distance,
                style=material.style,
                gain=sum(a) / len(a) - sum(b) / len(b),
                low=None if test is None else test.low,
                high=None if test is None else test.high,
            )
