"""Declared shapes of files: what a field may hold, checked before anything else looks at it.

A checksum says that a file is as somebody wrote it, not that it makes sense. Each kind of file is a
`Shape` beside the code that writes it: fields, types and limits, strictly. docs/data-format.md
names the same fields, and a test compares the two.
"""

import re
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ertrl.errors import CorruptFileError, DataError

MOST_DIGITS = 10**15
"""Returns, parameters and seconds beyond this are no measurements and overflow in figures."""
DEEPEST = 32
"""Levels of nesting in a file of ours."""

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=100_000)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Size = Annotated[int, Meta(ge=1, le=65_536)]
"""Numbers side by side: of an observation, an action, an outcome."""
Steps = Annotated[int, Meta(ge=0, le=99_999_999)]
"""Updates or blocks; files are named by eight digits."""
Whole = Annotated[int, Meta(ge=0, le=2**53)]
Real = Annotated[float, Meta(ge=-MOST_DIGITS, le=MOST_DIGITS)]
Measured = Real | None
"""Null where a simulation diverged."""


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a file. A field without a default must be there; another one is an error."""


class Open(msgspec.Struct):
    """A part to which further fields may be added; what it names has its type."""


class Machine(Open):
    """Where something was made."""

    cpu: Text
    cores: int | None
    system: Text


class Provenance(Open):
    """What made a file."""

    command: Text
    commit: Text
    versions: dict[str, str]
    machine: Machine
    threads: int = 1


def fit(content: Any, shape: type[Any], origin: Path | str) -> None:
    """Raise unless `content` has this shape, and say where it does not."""
    kinds, known = (
        typing.get_args(typing.get_type_hints(shape).get(x)) for x in ("kind", "format")
    )
    told = content if isinstance(content, dict) else {}
    version = told.get("format", 1)
    ours = told.get("kind") in kinds  # that of a file of another kind says nothing
    if ours and known and type(version) is int and version not in known:
        raise DataError(
            f"{origin} has format version {version}; this version of ertrl reads version "
            f"{' and '.join(map(str, known))}. Install the version of ertrl that wrote it."
        )
    try:
        if _depth(content) > DEEPEST:
            raise msgspec.ValidationError(f"Expected at most {DEEPEST} levels of nesting")
        msgspec.convert(content, shape, strict=True)
    except msgspec.ValidationError as error:
        allowed, _, where = str(error).partition(" - at `$")
        field = where.strip("`").lstrip(".")
        raise CorruptFileError(
            f"{origin} is whole, but says what cannot be: {field or 'its content'}"
            f"{_found(content, field)}. {allowed}. Restore it from a copy or make it again."
        ) from None


def _found(content: Any, field: str) -> str:
    """What stands there, where the place is known exactly."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", field):
        try:
            content = content[int(index)] if index else content[name]
        except (KeyError, IndexError, TypeError):
            return ""
    shown = repr(content)
    return f" is {shown if len(shown) < 80 else shown[:77] + '...'}"


def _depth(content: Any) -> int:
    """Levels of nesting, counted without recursion."""
    depth, level = 0, [content]
    while level and depth <= DEEPEST:
        depth += 1
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level = inner
    return depth


def rectangle(name: str, values: Any, *sizes: int | None) -> None:
    """Raise unless nested lists make an array with axes of these sizes; None: any, all the same."""
    level = [values]
    for axis, size in enumerate(sizes):
        lengths = {len(part) for part in level}
        if len(lengths) > 1 or (size is not None and lengths != {size}):
            found = ", ".join(map(str, sorted(lengths)))
            wanted = "equally many" if size is None else size
            raise ValueError(f"Expected {wanted} entries on axis {axis} of {name}, got {found}")
        level = [inner for part in level for inner in part]


def distinct(name: str, values: Iterable[Any]) -> None:
    values = list(values)
    if len(set(values)) < len(values):
        raise ValueError(f"Expected {name} to differ, got {values}")
