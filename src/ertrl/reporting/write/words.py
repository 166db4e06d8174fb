"""Numbers and sentences, as page and tables show them: they say what the numbers say, no more."""

from collections.abc import Sequence

from ertrl.reporting.measure.comparison import Cell, Column, ReturnsTable

MISSING = "—"
BELOW_ZERO = "▼"
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


def uncertainty(cell: Cell) -> str:
    """What follows the mean: half width, and n where it is not the row's."""
    if cell.estimate is None:
        return ""
    half = cell.estimate.half_width
    text = "" if half is None else f" ± {number(half)}"
    return text + (f" (n={cell.estimate.n})" if cell.estimate.n < cell.expected else "")


def caption(table: ReturnsTable) -> str:
    return (
        f"{_SCALES[table.normalised]}, mean ± half width of the 95% confidence interval over seeds "
        "(Student's t). Bold: highest mean. Underlined: better than every other method (Welch's "
        f"t-test, Holm's correction over the whole table, p < 0.05). {BELOW_ZERO}: below zero "
        "action, an agent that does nothing."
    )


def headline(table: ReturnsTable) -> str:
    """The result in one sentence, on new tasks, with a given context and with one's own.

    A method is named best only where that could be told from chance.
    """
    groups = [column.group for column in table.columns]
    if not groups:
        return f"{table.family}: no simulator, so all numbers are estimates from logs"
    group = "test-id" if "test-id" in groups else groups[0]
    told: dict[str, list[str]] = {}
    for protocol, manner in (
        ("offline", "with logged data as context"),
        ("online", "when the agent gathers its own"),
    ):
        found = _finding(table, Column(group, protocol))
        if found is not None:
            told.setdefault(found[0], []).append(f"{manner} ({found[1]})")
    where = f"{short_title(group)} {table.family} tasks"
    if not told:
        return f"No method has been measured on {where} yet"
    clauses = [f"{finding} {' and '.join(manners)}" for finding, manners in told.items()]
    return f"On {where}: {'; '.join(clauses)}"


def _finding(table: ReturnsTable, column: Column) -> tuple[str, str] | None:
    """What a column says of the methods, and the means behind it."""
    if column not in table.columns:
        return None
    cells = [(row.label, table.cell(row.key, column)) for row in table.methods]
    means = {label: cell.estimate.value for label, cell in cells if cell.estimate is not None}
    if not means:
        return None
    ends = " to ".join(dict.fromkeys(minus(number(f(means.values()))) for f in (min, max)))
    if len(means) == 1:
        return f"{next(iter(means))} reaches", ends
    winners = [label for label, cell in cells if cell.significant]
    if winners:
        return f"{winners[0]} is best", minus(number(means[winners[0]]))
    tested = [c for c in table.comparisons if c.column == column]
    differ = sum(c.significant for c in tested)
    if not tested:
        return "differences between methods cannot be tested yet", ends
    if not differ:
        return "no detectable difference between methods", ends
    return f"no single best method, though {differ} of {len(tested)} pairs differ,", ends


def doing_nothing(tables: Sequence[ReturnsTable]) -> str:
    """Every cell in which an agent that does nothing earns more; nothing where there is none."""
    found: dict[str, list[str]] = {}
    for table in tables:
        for row in table.methods:
            for column, cell in zip(table.columns, row.cells, strict=True):
                if cell.below_zero:
                    place = f"{short_title(column.group)} {column.protocol}"
                    where = f"{table.family} {place}" if len(tables) > 1 else place
                    found.setdefault(row.label, []).append(where)
    if not found:
        return ""
    cells = sum(len(table.methods) * len(table.columns) for table in tables)
    count = sum(map(len, found.values()))
    told = "; ".join(f"{label}: {', '.join(places)}" for label, places in found.items())
    return f"Worse than doing nothing ({BELOW_ZERO}) in {count} of {cells} cells ({told})."


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
