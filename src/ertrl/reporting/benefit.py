"""When does hiding the behaviour policy from z help? The paper's question, over families."""

from collections.abc import Sequence
from typing import NamedTuple

from ertrl.reporting import stats
from ertrl.reporting.gather import style_of
from ertrl.reporting.html_tables import minus, plain_table
from ertrl.reporting.markup import Content, tag
from ertrl.reporting.material import Material
from ertrl.reporting.results import FamilyResults, Results, Variant
from ertrl.reporting.summary import group_title
from ertrl.reporting.tables import MISSING, markdown_line, number, plain

WITH, WITHOUT = "er-trl", "focal"
"""The two methods that differ in the objective alone."""
FEWEST = 3
"""Families that a correlation needs at the least."""
GAINS = (
    "Gain of ER-TRL over FOCAL in points of normalised return, with Welch's 95% interval over "
    "seeds. Distance: Wasserstein-2 between the behaviour policies of training tasks, mean over "
    "pairs and states, per action dimension."
)
TRENDS = "Gain against distance over families; p (Holm): corrected for all rows of the table."


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


class Benefit(NamedTuple):
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
            one = stats.pearson([p.distance or 0.0 for p in here], [p.gain for p in here])
            if one is not None:
                found.append((group, protocol, one))
        corrected = stats.holm([one.p for *_, one in found])
        return [
            Trend(group, protocol, one.r, one.p, p_holm, one.n)
            for (group, protocol, one), p_holm in zip(found, corrected, strict=True)
        ]

    @property
    def doses(self) -> list[Point]:
        """Of families that were collected at several strengths of style."""
        styles: dict[str, set[float]] = {}
        for p in self.points:
            if p.style is not None:
                styles.setdefault(p.base, set()).add(p.style)
        return [p for p in self.points if len(styles.get(p.base, ())) > 1 and p.style is not None]


def benefit(results: Results, materials: Sequence[Material]) -> Benefit | None:
    """None where no family has both methods: then nobody asked."""
    points: list[Point] = []
    missing: list[str] = []
    asked = False
    for family, material in zip(results.families, materials, strict=True):
        pair = [_plain_variant(family, method) for method in (WITH, WITHOUT)]
        if any(v is None for v in pair):
            absent = [m.upper() for m, v in zip((WITH, WITHOUT), pair, strict=True) if v is None]
            missing.append(
                f"{family.family}: no run of {' or '.join(absent)} to compare, or several and none "
                "as its profile has it"
            )
            continue
        asked = True
        distance = style = None
        if material.dataset is None:
            missing.append(f"{family.family}: its dataset was not found; name it with --data")
        else:
            style = style_of(material.dataset)
            stored = material.dataset.manifest["collector"].get("policy_distance")
            distance = None if stored is None else float(stored["mean"])
            if distance is None:
                missing.append(
                    f"{family.family}: its dataset does not say how far its behaviour policies lie "
                    "apart; collect it again with this version"
                )
        points += _points(family, pair, distance, style)
    return Benefit(points, missing) if asked else None


def _plain_variant(family: FamilyResults, method: str) -> Variant | None:
    """The variant as its profile has it, or the only one; None where that is not clear."""
    own = [v for v in family.variants if v.method == method]
    plain = [v for v in own if "(" not in v.label and " + " not in v.label]
    chosen = plain if len(plain) == 1 else own
    return chosen[0] if len(chosen) == 1 else None


def _points(
    family: FamilyResults,
    pair: Sequence[Variant | None],
    distance: float | None,
    style: float | None,
) -> list[Point]:
    found = []
    for group in family.groups:
        for protocol in family.protocols:
            a, b = (
                list(family.scores(v, protocol, group).values()) if v is not None else []
                for v in pair
            )
            if not a or not b:
                continue
            gain = sum(a) / len(a) - sum(b) / len(b)
            test = stats.welch(a, b)
            low, high = (None, None) if test is None else (test.low, test.high)
            base = family.family.split(" (style=")[0]
            found.append(
                Point(family.family, base, group, protocol, distance, style, gain, low, high)
            )
    return found


def content(found: Benefit, correlation: Content, dose: Content) -> list[Content]:
    """The section: what was asked, figures where there are data, and what is missing."""
    parts: list[Content] = [
        tag(
            "p",
            f"{WITH.upper()} keeps the behaviour policy out of z, {WITHOUT.upper()} does not. The "
            "paper's guess: that helps where the behaviour policies of different tasks differ "
            "much. Gain is the difference of mean normalised returns; whiskers are Welch's 95% "
            "intervals over seeds, and may be longer than a panel.",
        )
    ]
    families = {p.family for p in found.with_distance}
    missing = list(found.missing)
    if correlation is not None:
        parts += [tag("h3", "Over families"), correlation]
    if len(families) < FEWEST:
        missing.append(
            f"a correlation needs at least {FEWEST} families with a known distance between their "
            f"behaviour policies; here there are {len(families)}"
        )
    else:
        parts.append(_trends(found))
    if dose is not None:
        parts += [tag("h3", "Dose and response"), dose]
    else:
        missing.append(
            "a dose-response curve needs one family collected at several strengths (ertrl collect "
            "FAMILY --style K), and both methods trained on each"
        )
    parts += [tag("h3", "Missing"), tag("ul", [tag("li", m) for m in missing], class_="fine")]
    return parts if missing else parts[:-2]


def _trends(found: Benefit) -> Content:
    rows = [
        [
            *(group_title(t.group), t.protocol, minus(f"{t.r:.2f}")),
            *(chance(t.p), chance(t.p_holm), t.families),
        ]
        for t in found.trends
    ]
    heads = ["tasks", "context", "Pearson's r", "p", "p (Holm)", "families"]
    return plain_table(heads, rows, left=2)


def chance(p: float) -> str:
    """A p-value as text; no probability is zero."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def markdown(found: Benefit) -> str:
    """Gains of every family, and how they go with the distance between behaviour policies."""
    protocols = list(dict.fromkeys(p.protocol for p in found.points))
    lines = [
        ["Family", "distance", "Tasks", *(f"{p} context" for p in protocols)],
        ["---", "--:", "---", *["--:"] * len(protocols)],
    ]
    for family, group in dict.fromkeys((p.family, p.group) for p in found.points):
        own = {p.protocol: p for p in found.points if (p.family, p.group) == (family, group)}
        distance = next(iter(own.values())).distance
        far = MISSING if distance is None else f"{distance:.3f}"
        gains = [_gain(own[p]) if p in own else MISSING for p in protocols]
        lines.append([plain(family), far, group_title(group), *gains])
    parts = [*map(markdown_line, lines), "", GAINS, ""]
    if found.trends:
        lines = [["Tasks", "Context", "Pearson's r", "p", "p (Holm)", "families"]]
        lines.append(["---", "---", *["--:"] * 4])
        for trend in found.trends:
            numbers = [f"{trend.r:.2f}", chance(trend.p), chance(trend.p_holm), str(trend.families)]
            lines.append([group_title(trend.group), trend.protocol, *numbers])
        parts += [*map(markdown_line, lines), "", TRENDS, ""]
    return "\n".join(parts)


def _gain(point: Point) -> str:
    if point.low is None or point.high is None:
        return number(point.gain)
    return f"{number(point.gain)} [{number(point.low)}, {number(point.high)}]"
