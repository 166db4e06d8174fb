"""Tables of the page."""

from collections.abc import Sequence
from typing import NamedTuple

from ertrl.reporting.markup import Content, Markup, tag, text
from ertrl.reporting.paper import published
from ertrl.reporting.results import FamilyResults, Results
from ertrl.reporting.stats import Estimate, iqm_estimate
from ertrl.reporting.style import PALETTE
from ertrl.reporting.summary import SIGNIFICANT, Cell, Column, Summary, group_title
from ertrl.reporting.tables import MISSING, number, seeds, uncertainty


def minus(shown: str) -> str:
    """A hyphen before a number as a minus sign."""
    return shown.replace("-", "\N{MINUS SIGN}")


def dot(label: str, labels: Sequence[str]) -> Markup:
    """The variant's colour."""
    place = list(labels).index(label) % len(PALETTE)
    return tag("span", class_="dot", style=f"--colour: var(--c{place})")


def scrolling(table: Markup) -> Markup:
    """A table that may be wider than a phone."""
    return tag("div", table, class_="scroll")


def plain_table(
    head: Sequence[Content], rows: Sequence[Sequence[Content]], left: int = 1
) -> Markup:
    """A table of strings; the first `left` columns are words, the others numbers."""

    def line(kind: str, cells: Sequence[Content]) -> Markup:
        words = [tag(kind, c, class_="left" if i < left else None) for i, c in enumerate(cells)]
        return tag("tr", words)

    body = [line("td", row) for row in rows]
    return scrolling(tag("table", tag("thead", line("th", head)), tag("tbody", body)))


class Line(NamedTuple):
    """A row of a grid."""

    label: Content
    seeds: str
    cells: Sequence[Content]
    anchor: bool = False


def grid(columns: Sequence[Column], lines: Sequence[Line]) -> Markup:
    """Rows against groups and protocols, with a head of two lines."""
    groups = list(dict.fromkeys(c.group for c in columns))
    width = len(columns) // len(groups)

    def edge(i: int) -> str | None:
        return "edge" if i % width == 0 else None

    top = [tag("th", "", colspan=2)]
    top += [tag("th", group_title(g), colspan=width, class_="edge") for g in groups]
    second = [tag("th", "method"), tag("th", "seeds")]
    second += [tag("th", c.protocol, class_=edge(i)) for i, c in enumerate(columns)]
    body, after_methods = [], False
    for line in lines:
        kind = None
        if line.anchor:
            kind, after_methods = "anchor" if after_methods else "anchor first", True
        cells = [tag("td", cell, class_=edge(i)) for i, cell in enumerate(line.cells)]
        body.append(tag("tr", tag("td", line.label), tag("td", line.seeds), cells, class_=kind))
    head = tag("thead", tag("tr", top), tag("tr", second))
    return scrolling(tag("table", head, tag("tbody", body), class_="grid"))


def summary_table(summary: Summary, labels: Sequence[str]) -> Markup:
    """Methods and anchors against groups and protocols."""
    lines = [
        Line(
            row.label if row.anchor else [dot(row.label, labels), row.label],
            seeds(row),
            [summary_cell(cell) for cell in row.cells],
            row.anchor,
        )
        for row in summary.rows
    ]
    return grid(summary.columns, lines)


def summary_cell(cell: Cell) -> Markup:
    """Mean and uncertainty."""
    if cell.estimate is None:
        return tag("small", MISSING, title="not measured")
    value: Content = minus(number(cell.estimate.value))
    value = tag("u", value) if cell.significant else value
    value = tag("strong", value) if cell.best else value
    spread = uncertainty(cell, "\N{PLUS-MINUS SIGN} ").strip()
    return text([value, tag("small", spread) if spread else None])


def probability(estimate: Estimate) -> str:
    """A probability with its interval in brackets, where it has one."""
    shown = f"{estimate.value:.2f}"
    if estimate.low is not None and estimate.high is not None:
        shown += f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return shown


def comparison_table(summary: Summary) -> Markup:
    """Pairs of methods, column by column."""
    head = [
        *("tasks", "context", "methods", "difference", "95% interval", "p", "p (Holm)"),
        "P(first is better)",
    ]
    rows = []
    for c in summary.comparisons:
        d = c.difference
        corrected: Content = f"{c.p_holm:.3f}"
        if c.p_holm < SIGNIFICANT:
            corrected = tag("strong", corrected)
        rows.append(
            [
                group_title(c.column.group),
                c.column.protocol,
                f"{c.one} \N{EN DASH} {c.other}",
                minus(f"{d.value:+.1f}"),
                minus(f"[{d.low:.1f}, {d.high:.1f}]"),
                f"{d.p:.3f}",
                corrected,
                probability(c.improvement),
            ]
        )
    return plain_table(head, rows, left=3)


def iqm_table(family: FamilyResults, columns: Sequence[Column], labels: Sequence[str]) -> Markup:
    """Interquartile mean over seeds and tasks."""
    lines = []
    for variant in family.variants:
        cells: list[Content] = []
        for column in columns:
            scores = family.seeds_by_tasks(variant, column.protocol, column.group)
            cells.append(_iqm_cell(iqm_estimate([scores])) if len(scores) else MISSING)
        label = [dot(variant.label, labels), variant.label]
        lines.append(Line(label, str(len(variant.runs)), cells))
    return grid(columns, lines)


def overview_table(results: Results) -> Markup:
    """Interquartile mean over all families; a variant that lacks one is missing, not averaged."""
    columns = [
        Column(g, p)
        for g in results.families[0].groups
        for p in results.families[0].protocols
        if all(g in f.groups and p in f.protocols for f in results.families)
    ]
    lines = []
    for label in results.labels:
        members = [(f, v) for f in results.families for v in f.variants if v.label == label]
        cells: list[Content] = []
        for column in columns:
            strata = [f.seeds_by_tasks(v, column.protocol, column.group) for f, v in members]
            whole = len(strata) == len(results.families) and all(len(s) for s in strata)
            cells.append(_iqm_cell(iqm_estimate(strata)) if whole else MISSING)
        counts = sorted({len(v.runs) for _, v in members})
        shown = "\N{EN DASH}".join(str(c) for c in dict.fromkeys([counts[0], counts[-1]]))
        lines.append(Line([dot(label, results.labels), label], shown, cells))
    return grid(columns, lines) if columns else Markup("")


def _iqm_cell(estimate: Estimate) -> Content:
    value = minus(number(estimate.value))
    if estimate.low is None or estimate.high is None:
        return value
    return [value, tag("small", minus(f"[{estimate.low:.1f}, {estimate.high:.1f}]"))]


def paper_table(family: FamilyResults, summary: Summary) -> Markup:
    """Ours beside the paper's, where the paper has the method, the group and the protocol."""
    rows = []
    for variant in family.variants:
        for group in family.groups:
            for protocol in family.protocols:
                theirs = published(family.family, variant.method, group, protocol)
                ours = summary.cell(variant.label, group, protocol)
                if theirs is None:
                    continue
                value = ours.estimate.value if ours.estimate else None
                rows.append(
                    [
                        variant.label,
                        group_title(group),
                        protocol,
                        summary_cell(ours._replace(best=False, significant=False)),
                        minus(f"{theirs.mean:.1f} \N{PLUS-MINUS SIGN} {theirs.std:.1f}"),
                        MISSING if value is None else minus(f"{value - theirs.mean:+.1f}"),
                    ]
                )
    head = [
        "method",
        "tasks",
        "context",
        "ours (95% CI)",
        "paper (std)",
        "difference",
    ]
    return plain_table(head, rows, left=3)
