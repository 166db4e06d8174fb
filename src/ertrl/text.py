"""Numbers and tables as a person reads them."""

from collections.abc import Iterable, Sequence


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
    lines = [head, rules, *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """What would end a cell stays inside it."""
    return text.replace("|", "\\|").replace("\n", " ")
