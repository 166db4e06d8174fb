"""Numbers and small words, as page, tables and sentences show them."""

from ertrl.envs import group_title
from ertrl.reporting.measure.comparison import Cell, ReturnsTable

MISSING = "—"
BELOW_ZERO = "▼"
SHARE = ".3f"
"""How shares of variance are printed, here as by `ertrl evaluate`."""
_SCALES = {True: "Normalised return (random 0, expert 100)", False: "Return"}


def number(value: float, form: str = ".1f") -> str:
    """One decimal by default, and no negative zero."""
    text = format(value, form)
    return text[1:] if text[0] == "-" and not text.strip("-0.%") else text


def interval(low: float | None, high: float | None, form: str = ".1f") -> str:
    """Both ends in brackets, where there are any."""
    return "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]"


def plural(count: int | str, noun: str) -> str:
    """The noun, as many as there are."""
    return noun if str(count) == "1" else f"{noun}s"


def tasks_of(count: int, group: str) -> str:
    """A number of tasks and what they are: '1 held-out task', '10 out of distribution'."""
    title = group_title(group).lower()
    return f"{count} {title.removesuffix('s') if count == 1 else title}"


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
