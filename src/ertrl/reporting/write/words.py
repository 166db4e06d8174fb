"""Numbers and sentences, as page and tables show them: they say what the numbers say, no more."""

from ertrl.reporting.measure.comparison import Cell, Column, ReturnsTable
from ertrl.reporting.measure.statistics import Estimate

MISSING = "—"
_SCALES = {True: "Normalised return (random 0, expert 100)", False: "Return"}


def number(value: float, form: str = ".1f") -> str:
    """One decimal by default, and no negative zero."""
    text = format(value, form)
    return text[1:] if text[0] == "-" and not text.strip("-0.%") else text


def interval(low: float | None, high: float | None, form: str = ".1f") -> str:
    """Both ends in brackets, where there are any."""
    return "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]"


def short_title(group: str) -> str:
    """What a reader calls a group where room is scarce."""
    return {"train": "training", "test-id": "held-out", "test-ood": "OOD"}.get(group, group)


def minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def chance(p: float) -> str:
    """A p-value; no probability is zero."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def uncertainty(cell: Cell, sign: str = " ± ") -> str:
    """What follows the mean: half width, and n where it is not the row's."""
    if cell.estimate is None:
        return ""
    half = cell.estimate.half_width
    text = "" if half is None else f"{sign}{number(half)}"
    return text + (f" (n={cell.estimate.n})" if cell.estimate.n < cell.expected else "")


def caption(table: ReturnsTable) -> str:
    return (
        f"{_SCALES[table.normalised]}, mean ± half width of the 95% confidence interval over seeds "
        "(Student's t). Bold: highest mean. Underlined: better than every other method (Welch's "
        "t-test, Holm's correction over the whole table, p < 0.05)."
    )


def headline(table: ReturnsTable) -> str:
    """The result in one sentence: the best mean with a given context and with one's own."""
    groups = [column.group for column in table.columns]
    if not groups:
        return f"{table.family}: no simulator, so all numbers are estimates from logs"
    group = "test-id" if "test-id" in groups else groups[0]
    where = short_title(group)
    clauses = []
    for protocol, manner in (
        ("offline", "with logged data as context"),
        ("online", "when the agent gathers its own"),
    ):
        best = _best(table, Column(group, protocol))
        if best is not None:
            clauses.append(f"{minus(number(best[1].value))} {manner} ({best[0]})")
    if not clauses:
        return f"{table.family}: no method has been measured on {where} tasks yet"
    return f"The best mean on {where} {table.family} tasks is {' and '.join(clauses)}"


def _best(table: ReturnsTable, column: Column) -> tuple[str, Estimate] | None:
    if column not in table.columns:
        return None
    cells = [(row.label, table.cell(row.key, column).estimate) for row in table.methods]
    known = [(label, estimate) for label, estimate in cells if estimate is not None]
    return max(known, key=lambda pair: pair[1].value, default=None)


def verdict(table: ReturnsTable) -> str:
    if not table.columns:
        return "They say how methods do on what was logged, not what would happen outside of it."
    if len(table.methods) < 2:
        return "There is one method, so there is nothing to compare."
    count = len(table.comparisons)
    if not count:
        return "With fewer than two seeds per method, differences between methods cannot be tested."
    clear = [c for c in table.comparisons if c.significant]
    tests = f"Welch's t-test, Holm's correction over {count} comparisons"
    if not clear:
        return f"No difference between methods is significant at 5% ({tests})."
    winners = [c.one if c.difference.value > 0 else c.other for c in clear]
    wins = {one.label: winners.count(one) for one in winners}
    told = "; ".join(f"{label} better in {n}" for label, n in wins.items())
    return f"Significant at 5%: {len(clear)} of {count} comparisons ({told}; {tests})."
