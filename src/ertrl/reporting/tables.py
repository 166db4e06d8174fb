"""The summary table as Markdown, LaTeX and CSV, and on the terminal."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ertrl.reporting.gather import gather
from ertrl.reporting.results import Results
from ertrl.reporting.summary import Cell, Row, Summary, group_title, summarise_family
from ertrl.training import Runs

MISSING = "—"
SHORT_TITLES = {"train": "training", "test-id": "held-out", "test-ood": "OOD"}
CAPTION = {
    True: "Normalised return (random 0, expert 100), mean ± half width of the 95% confidence "
    "interval over seeds (Student's t). Bold: highest mean. Underlined: better than every other "
    "method (Welch's t-test, Holm's correction over the whole table, p < 0.05).",
    False: "Return, mean ± half width of the 95% confidence interval over seeds (Student's t). "
    "Bold: highest mean. Underlined: better than every other method (Welch's t-test, Holm's "
    "correction over the whole table, p < 0.05).",
}


def number(value: float) -> str:
    """One decimal, and no negative zero."""
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def uncertainty(cell: Cell, sign: str = " ± ") -> str:
    """What follows the mean: half width, and n where it is not the row's."""
    if cell.estimate is None:
        return ""
    half = cell.estimate.half_width
    text = "" if half is None else f"{sign}{number(half)}"
    return text + (f" (n={cell.estimate.n})" if cell.estimate.n < cell.expected else "")


def seeds(row: Row) -> str:
    """How many seeds stand behind a row; anchors have none."""
    return "" if row.anchor else str(row.seeds)


# --- Markdown ---


def markdown(summary: Summary) -> str:
    """The table for a README."""
    heads = [f"{group_title(c.group)}, {c.protocol}" for c in summary.columns]
    lines = [
        markdown_line(["Method", "n", *heads]),
        markdown_line(["---", "--:", *["--:"] * len(heads)]),
    ]
    for row in summary.rows:
        label = f"*{plain(row.label)}*" if row.anchor else plain(row.label)
        lines.append(markdown_line([label, seeds(row), *map(_markdown_cell, row.cells)]))
    return "\n".join([*lines, "", f"{summary.family}. {CAPTION[summary.normalised]}", ""])


def plain(text: str) -> str:
    """Text that stays text in a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def markdown_line(cells: Sequence[str]) -> str:
    """A row."""
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    if cell.estimate is None:
        return MISSING
    text = number(cell.estimate.value)
    text = f"<u>{text}</u>" if cell.significant else text
    return (f"**{text}**" if cell.best else text) + uncertainty(cell)


# --- LaTeX ---

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_"},
}


def latex(summary: Summary) -> str:
    """The table for a paper; needs the booktabs package."""
    groups = list(dict.fromkeys(c.group for c in summary.columns))
    width = len(summary.columns) // len(groups)
    heads, rules = [], []
    for i, group in enumerate(groups):
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_escape(group_title(group))}}}")
        rules.append(rf"\cmidrule(lr){{{3 + i * width}-{2 + (i + 1) * width}}}")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{lr{'c' * len(summary.columns)}}}",
        r"\toprule",
        " & ".join(["", "", *heads]) + r" \\",
        " ".join(rules),
        " & ".join(["Method", "$n$", *(latex_escape(c.protocol) for c in summary.columns)])
        + r" \\",
        r"\midrule",
    ]
    for i, row in enumerate(summary.rows):
        if row.anchor and i and not summary.rows[i - 1].anchor:
            lines.append(r"\midrule")
        cells = [latex_escape(row.label), seeds(row), *map(_latex_cell, row.cells)]
        lines.append(" & ".join(cells) + r" \\")
    caption = f"{summary.family}. {CAPTION[summary.normalised]}"
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{latex_escape(caption)}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def latex_escape(text: str) -> str:
    """Plain text as LaTeX prints it."""
    return "".join(_LATEX.get(c, c) for c in text).replace("±", r"$\pm$").replace("\n", " ")


def _latex_cell(cell: Cell) -> str:
    if cell.estimate is None:
        return "--"
    text = number(cell.estimate.value)
    text = rf"\mathbf{{{text}}}" if cell.best else text
    text = rf"\underline{{{text}}}" if cell.significant else text
    return f"${text}$" + latex_escape(uncertainty(cell))


# --- CSV ---

CSV_COLUMNS = (
    *("family", "variant", "method", "learner", "seed", "step", "group", "protocol"),
    *("normalised_return", "return"),
)


def csv_table(results: Results) -> str:
    """Every number of every seed, one line each: the input of any other analysis."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for family in results.families:
        for variant in family.variants:
            for run in variant.runs:
                for group in family.groups:
                    for protocol in family.protocols:
                        pair = (
                            family.score(run, protocol, group, variant.step, normalised=n)
                            for n in (True, False)
                        )
                        lines.writerow(
                            [
                                family.family,
                                variant.label,
                                variant.method,
                                variant.learner,
                                run.seed,
                                variant.step,
                                group,
                                protocol,
                                *("" if x is None else f"{x:.6f}" for x in pair),
                            ]
                        )
    return out.getvalue()


# --- terminal ---


def rich_table(summary: Summary) -> Table:
    """The table for a terminal: a line per group and protocol, so that it fits 80 columns."""
    unit = "normalised return, random 0, expert 100" if summary.normalised else "return"
    table = Table(
        title=Text.assemble((summary.family, "bold"), f"  {unit}"),
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("tasks", no_wrap=True)
    table.add_column("context", no_wrap=True)
    for row in summary.rows:
        head = row.label.replace(" ", "\n") if row.anchor else f"{row.label}\nn={row.seeds}"
        style = "dim" if row.anchor else None
        table.add_column(Text(head), justify="right", style=style, no_wrap=True)
    before = None
    for i, column in enumerate(summary.columns):
        if before not in (None, column.group):
            table.add_section()
        title = Text(SHORT_TITLES.get(column.group, column.group) if before != column.group else "")
        cells = [_rich_cell(row.cells[i]) for row in summary.rows]
        table.add_row(title, Text(column.protocol), *cells)
        before = column.group
    return table


def _rich_cell(cell: Cell) -> Text:
    if cell.estimate is None:
        return Text(MISSING, style="dim")
    style = ("bold " if cell.best else "") + ("underline" if cell.significant else "")
    return Text.assemble((number(cell.estimate.value), style.strip()), (uncertainty(cell), "dim"))


def print_summary(
    runs: Runs,
    data: Sequence[str | Path] = (),
    *,
    console: Console | None = None,
) -> None:
    """Print the table of each family on the terminal; `data` as in `gather`."""
    results = gather(runs, data)
    console = console or Console()
    for family in results.families:
        console.print(rich_table(summarise_family(family)))
    console.print(
        "± is half the 95% confidence interval over seeds; bold is the highest mean.", style="dim"
    )
    for note in results.notes:
        console.print(Text(f"Note: {note}", style="yellow"))
