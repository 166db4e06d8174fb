"""When does hiding the behaviour policy from z help? The paper's question, over families."""

from collections.abc import Sequence
from typing import NamedTuple

from ertrl.reporting import stats
from ertrl.reporting.gather import FamilyResults, Results, Variant, style_of
from ertrl.reporting.html_tables import minus, plain_table
from ertrl.reporting.markup import Content, tag
from ertrl.reporting.material import Material
from ertrl.reporting.summary import group_title

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
            missing.append(f"{family.family}: no run of {' or '.join(absent)} to compare")
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
            "intervals over seeds.",
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
        parts.append(_correlations(found.with_distance))
    if dose is not None:
        parts += [tag("h3", "Dose and response"), dose]
    else:
        missing.append(
            "a dose-response curve needs one family collected at several strengths (ertrl collect "
            "FAMILY --style K), and both methods trained on each"
        )
    parts += [tag("h3", "Missing"), tag("ul", [tag("li", m) for m in missing], class_="fine")]
    return parts if missing else parts[:-2]


def _correlations(points: Sequence[Point]) -> Content:
    rows = []
    for group, protocol in dict.fromkeys((p.group, p.protocol) for p in points):
        chosen = [p for p in points if (p.group, p.protocol) == (group, protocol)]
        found = stats.pearson([p.distance or 0.0 for p in chosen], [p.gain for p in chosen])
        if found is not None:
            shown = [minus(f"{found.r:.2f}"), f"{found.p:.3f}", found.n]
            rows.append([group_title(group), protocol, *shown])
    return plain_table(["tasks", "context", "Pearson's r", "p", "families"], rows, left=2)
