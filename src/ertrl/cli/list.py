"""`ertrl list`."""

from typing import Any

from ertrl.cli.common import output
from ertrl.cli.options import Json, command


@command("list")
def run(json: Json = False) -> None:
    """Show families, methods, learners, protocols and profiles; as JSON with all details."""
    from ertrl.catalogue import catalogue

    parts, lines = catalogue(), []
    for kind, entries in parts.items():
        lines.append(f"{kind}:")
        lines += [f"  {name:18} {e['summary']}{_choices(e)}" for name, e in entries.items()]
    output(parts, None if json else "\n".join(lines))


def _choices(entry: dict[str, Any]) -> str:
    """The options of a family, as `--option` takes them."""
    options = [f"{k}={'|'.join(map(str, v))}" for k, v in entry.get("choices", {}).items()]
    return f" [{', '.join(options)}]" if options else ""
