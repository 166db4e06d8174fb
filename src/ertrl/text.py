"""Numbers, tables and objects as a person reads them."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


class Described:
    """Says what it is: a line of text, and a small table in notebooks."""

    def _facts(self) -> Mapping[str, Any]:
        """Name -> value of what a person wants to know of it first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
            f'<td style="text-align: left">{escape(str(value))}</td></tr>'
            for name, value in self._facts().items()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


def readable_groups(groups: Mapping[str, Sequence[Any]]) -> str:
    """'40 (20 train, 10 test-id, 10 test-ood)'."""
    parts = [f"{len(tasks)} {name}" for name, tasks in groups.items()]
    return f"{sum(map(len, groups.values()))} ({', '.join(parts)})"


def readable_bytes(size: float) -> str:
    """'512 bytes', '20.4 MB', '1.25 GB'."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def readable_duration(seconds: float) -> str:
    """'20 s', '3 min', '2.5 h', '2.5 days'."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.1f} days"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """A table in Markdown; `align` has an 'l' or an 'r' for each column."""
    rules = [{"l": "---", "r": "--:"}[side] for side in align]
    # What would end a cell stays inside it.
    body = [[text.replace("|", "\\|").replace("\n", " ") for text in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rules, *body))
