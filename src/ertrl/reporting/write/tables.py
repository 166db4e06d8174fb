"""The tables as Markdown, LaTeX and CSV, and on the terminal."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ertrl.envs import group_title
from ertrl.reporting.measure.comparison import Cell, Column, Grid, ReturnsTable, Row, returns_table
from ertrl.reporting.measure.gain import Gains
from ertrl.reporting.measure.scores import VALUES, log_rows, success_rows
from ertrl.reporting.measure.statistics import Estimate
from ertrl.reporting.read.results import FamilyResults, Results
from ertrl.reporting.write import sentences, words
from ertrl.reporting.write.words import BELOW_ZERO, MISSING, caption, chance, interval, number
from ertrl.text import markdown_table

GAINS = (
    "Gain of ER-TRL over FOCAL in points of normalised return, with Welch's 95% interval over "
    "seeds. Distance: Wasserstein-2 between the behaviour policies of training tasks, mean over "
    "pairs and states, per action dimension."
)
TRENDS = "Gain against distance over families; p (Holm): corrected for all rows of the table."
CSV_COLUMNS = (
    *("family", "variant", "method", "learner", "seed", "step", "group", "protocol"),
    *("normalised_return", "return"),
)
SUCCESS = "Percentage of fulfilled tasks, mean ± half width of the 95% confidence interval."


def markdown(table: ReturnsTable) -> str:
    """The table for a README."""
    text = _markdown(table.columns, table.rows, _markdown_cell)
    return f"{text}\n\n{table.family}. {caption(table)}\n"


def success_markdown(family: FamilyResults) -> str:
    """How often tasks were fulfilled; nothing where they cannot be."""
    found = success_rows(family)
    return f"{_markdown(*found, _percent)}\n\n{family.label}. {SUCCESS}\n" if found else ""


def _markdown(columns: Sequence[Column], rows: Sequence[Row], show: Callable[[Any], str]) -> str:
    """Rows of methods and anchors; anchors in italics."""
    head = ["Method", "n", *(f"{group_title(c.group)}, {c.protocol}" for c in columns)]
    names = [f"*{_plain(row.label)}*" if row.anchor else _plain(row.label) for row in rows]
    body = [[n, r.seeds, *map(show, r.cells)] for n, r in zip(names, rows, strict=True)]
    return markdown_table(head, body, "lr" + "r" * len(columns))


def _percent(estimate: Estimate | None) -> str:
    if estimate is None:
        return MISSING
    half = "" if estimate.half_width is None else f" ± {estimate.half_width:.0f}"
    return f"{estimate.value:.0f}{half}"


def _plain(text: str) -> str:
    """Text that stays text in Markdown."""
    return text.replace("\\", "\\\\").replace("<", "&lt;")


def _markdown_cell(cell: Cell) -> str:
    if cell.estimate is None:
        return MISSING
    text = number(cell.estimate.value)
    text = f"<u>{text}</u>" if cell.significant else text
    text = f"**{text}**" if cell.best else text
    return text + words.uncertainty(cell) + (f" {BELOW_ZERO}" if cell.below_zero else "")


def gains_markdown(found: Gains) -> str:
    """Gains of every family, and how they go with the distance between behaviour policies."""
    protocols = list(dict.fromkeys(p.protocol for p in found.points))
    rows = []
    for family, group in dict.fromkeys((p.family, p.group) for p in found.points):
        own = {p.protocol: p for p in found.points if (p.family, p.group) == (family, group)}
        distance = next(iter(own.values())).distance
        gains = [
            f"{number(p.gain)} {interval(p.low, p.high)}".strip() if p else MISSING
            for p in map(own.get, protocols)
        ]
        far = MISSING if distance is None else f"{distance:.3f}"
        rows.append([_plain(family), far, group_title(group), *gains])
    head = ["Family", "distance", "Tasks", *(f"{p} context" for p in protocols)]
    text = f"{markdown_table(head, rows, 'lrl' + 'r' * len(protocols))}\n\n{GAINS}\n"
    if found.trends:
        rows = [
            [
                *(group_title(t.group), t.protocol, f"{t.r:.2f}"),
                *(chance(t.p), chance(t.p_holm), str(t.families)),
            ]
            for t in found.trends
        ]
        head = ["Tasks", "Context", "Pearson's r", "p", "p (Holm)", "families"]
        text += f"\n{markdown_table(head, rows, 'llrrrr')}\n\n{TRENDS}\n"
    return text


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    BELOW_ZERO: r"$\downarrow$",
    "\n": " ",
    **{c: f"\\{c}" for c in "&%$#_"},
}


def latex(table: ReturnsTable) -> str:
    """The table for a paper; needs the booktabs package."""
    groups = list(dict.fromkeys(c.group for c in table.columns))
    width = len(table.columns) // len(groups)
    heads, rules = [], []
    for i, group in enumerate(groups):
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_escape(group_title(group))}}}")
        rules.append(rf"\cmidrule(lr){{{3 + i * width}-{2 + (i + 1) * width}}}")
    protocols = [latex_escape(c.protocol) for c in table.columns]
    body = []
    for i, row in enumerate(table.rows):
        if row.anchor and i and not table.rows[i - 1].anchor:
            body.append(r"\midrule")
        cells = [latex_escape(row.label), row.seeds, *map(_latex_cell, row.cells)]
        body.append(" & ".join(cells) + r" \\")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{lr{'c' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["", "", *heads]) + r" \\",
        " ".join(rules),
        " & ".join(["Method", "$n$", *protocols]) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{latex_escape(f'{table.family}. {caption(table)}')}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def latex_escape(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)


def _latex_cell(cell: Cell) -> str:
    if cell.estimate is None:
        return "--"
    text = number(cell.estimate.value)
    text = rf"\mathbf{{{text}}}" if cell.best else text
    text = rf"\underline{{{text}}}" if cell.significant else text
    return f"${text}$" + latex_escape(words.uncertainty(cell) + BELOW_ZERO * cell.below_zero)


def csv_table(results: Results) -> str:
    """Every number of every seed, one line each: the input of any other analysis."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    fulfilled = any(run.success(v.step) for v, run in results.members)
    lines.writerow([*CSV_COLUMNS, *(["success_percent"] if fulfilled else [])])
    for family in results.families:
        scales = family, replace(family, normalised=False)
        runs = [(v, run) for v in family.variants for run in v.runs]
        for (v, run), group, protocol in product(runs, family.groups, family.protocols):
            scores = [scaled.score(run, protocol, group, v.step) for scaled in scales]
            if fulfilled:
                scores.append(run.success(v.step).get(f"{protocol}/{group}"))
            who = [family.label, v.label, v.method, v.learner, run.seed, v.step, group, protocol]
            lines.writerow([*who, *("" if x is None else f"{x:.6f}" for x in scores)])
    return out.getvalue()


def print_results(results: Results, console: Console) -> None:
    """The table of each family; without a simulator, estimated values of its policies."""
    for family in results.families:
        if family.from_logs:
            told = f"{family.label}: no simulator, discounted values estimated from logs"
            console.print(told, style="bold")
            _print_lines(console, "", log_rows(family, VALUES), lambda x: f"{x.value:.1f}")
            console.print(f"  {sentences.help_told(family)}")
    tables = [returns_table(family) for family in results.families if not family.from_logs]
    for table in tables:
        console.print(_rich_table(table))
    for family in results.families:
        if found := success_rows(family):
            _print_lines(console, f"success % of {family.label}, ", found, _percent)
    if tables:
        console.print(_marks(console), style="dim")
    if idle := sentences.doing_nothing(tables):
        console.print(Text(idle, style="yellow"))
    for note in results.notes:
        console.print(Text(f"Note: {note}", style="yellow"))


def _marks(console: Console) -> str:
    """What signs mean. Piped text has neither bold nor lines under it."""
    told = "± is half the 95% confidence interval over seeds"
    if console.color_system is None:
        return f"{told}."
    return f"{told}; bold is the highest mean, underlined one that is clearly so."


def _print_lines(console: Console, what: str, grid: Grid, show: Callable[[Estimate], str]) -> None:
    """A line per method and group with what was measured under each protocol."""
    for row in grid.rows:
        for group in dict.fromkeys(column.group for column in grid.columns):
            pairs = zip(grid.columns, row.cells, strict=True)
            told = [f"{c.protocol} {show(x)}" for c, x in pairs if c.group == group and x]
            where = f"{row.label}, {group_title(group).lower()}"
            if told:
                console.print(f"  {what}{where}: {', '.join(told)}")


def _rich_table(returns: ReturnsTable) -> Table:
    """A line per group and method, so that any number of methods fits 80 columns."""
    table = Table(
        title=Text.assemble((returns.family, "bold"), "  normalised return, random 0, expert 100"),
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("tasks", no_wrap=True)
    table.add_column("method")
    for name in ("n", *dict.fromkeys(column.protocol for column in returns.columns)):
        table.add_column(name, justify="right", no_wrap=True)
    for group in dict.fromkeys(column.group for column in returns.columns):
        for i, row in enumerate(returns.rows):
            own = [x for x, c in zip(row.cells, returns.columns, strict=True) if c.group == group]
            title = Text("" if i else words.short_title(group))
            cells = title, Text(row.label), row.seeds, *map(_rich_cell, own)
            table.add_row(*cells, style="dim" if row.anchor else None)
        table.add_section()
    return table


def _rich_cell(cell: Cell) -> Text:
    if cell.estimate is None:
        return Text(MISSING, style="dim")
    style = ("bold " if cell.best else "") + ("underline" if cell.significant else "")
    mark = (f" {BELOW_ZERO}", "yellow") if cell.below_zero else ""
    value = (number(cell.estimate.value), style.strip())
    return Text.assemble(value, (words.uncertainty(cell), "dim"), mark)
