"""Strict configuration: frozen dataclasses that round-trip through JSON.

An unknown key, a value of the wrong type or beyond its limits is an error that names the setting
and the nearest valid key; nothing is ignored. Every field has a docstring, which is also its text
in `--help`, and its limits beside it: `rounds: Annotated[int, Ge(1)]`, or `rounds: Count`.
"""

import dataclasses
import functools
import hashlib
import json
import math
import operator
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Interval, Le, Lt, Predicate

from ertrl.errors import ConfigError, unknown

C = TypeVar("C")

Count = Annotated[int, Interval(ge=1, le=99_999_999)]
CountOrZero = Annotated[int, Interval(ge=0, le=99_999_999)]
"""A count that may be 0."""
Size = Annotated[int, Interval(ge=1, le=65_536)]
"""Of a layer or a vector: a wider one would have to be a mistake."""
Widths = tuple[Size, ...]
Amount = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Share = Annotated[float, Interval(ge=0, le=1)]
Seed = Annotated[int, Interval(ge=0, lt=2**32)]
"""JAX would take two that differ by a multiple of 2^32 for the same."""

LIMITS = {
    Ge: ("at least", operator.ge),
    Gt: ("above", operator.gt),
    Le: ("at most", operator.le),
    Lt: ("below", operator.lt),
}


def rising(pair: tuple[float, float]) -> bool:
    """Lower and upper end of a range, in this order."""
    return pair[0] < pair[1]


UNSAID = {"unsaid": True}
"""Metadata of a field that is written down only where it is not its default: runs are named after
their configuration, and so keep their names when such a field is added."""


def to_json(config: Any, *, in_full: bool = False) -> Any:
    """Turn a tree of dataclasses into plain JSON values; `in_full` with what goes unsaid."""
    if is_dataclass(config):
        values = [(f, getattr(config, f.name)) for f in fields(config)]
        said = [(f, v) for f, v in values if in_full or f.metadata != UNSAID or v != f.default]
        return {f.name: to_json(value, in_full=in_full) for f, value in said}
    return list(config) if isinstance(config, tuple) else config


def check(config: Any) -> None:
    """Hold every value to its type and its limits, all the way down."""
    replace_from_json(config, to_json(config))


def replace_from_json(config: C, values: Any, where: str = "") -> C:
    """Overwrite some fields, deeply, with strict keys, types and limits."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where or 'configuration'} must be an object, got {values!r}")
    known = {f.name: f for f in fields(config)}  # ty: ignore[invalid-argument-type]
    annotations = typing.get_type_hints(type(config), include_extras=True)
    changes = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else name
        if name not in known:
            kind = f"setting of {where}" if where else "setting"
            raise ConfigError(unknown(kind, name, known, _nested(config, name)))
        current = getattr(config, name)
        if is_dataclass(current):
            changes[name] = replace_from_json(current, value, path)
        else:
            changes[name] = _checked(value, annotations[name], path)
    return dataclasses.replace(config, **changes)  # ty: ignore[invalid-argument-type]


def _nested(config: Any, name: str) -> str:
    """How a setting further in, which was named without its place or with dots, is given."""
    paths = [path for path, _ in flat(to_json(config, in_full=True)) if "." in path]
    found = [path.split(".") for path in paths if f".{path}".endswith(f".{name}")]
    return " or ".join(
        functools.reduce(lambda inner, part: f"{{'{part}': {inner}}}", reversed(parts), "...")
        for parts in found
    )


def _checked(value: Any, annotation: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        value = _checked(value, arguments[0], path)
        for limit in arguments[1:]:
            _check_limit(value, limit, path)
        return value
    if origin is Literal:
        if not any(value == one and type(value) is type(one) for one in arguments):
            known = ", ".join(map(str, arguments))
            raise ConfigError(f"{path} must be one of {known}; got {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{path} must be a list, got {value!r}")
        if arguments[-1] is not ... and len(value) != len(arguments):
            raise ConfigError(f"{path} must be a list of {len(arguments)}, got {value!r}")
        return tuple(_checked(v, arguments[0], f"{path}[{i}]") for i, v in enumerate(value))
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _checked(value, next(a for a in arguments if a is not type(None)), path)
    if annotation is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ConfigError(f"{path} must be a finite number, got {value!r}")
        return float(value)
    if not isinstance(value, annotation) or (isinstance(value, bool) and annotation is not bool):
        raise ConfigError(f"{path} must be of type {annotation.__name__}, got {value!r}")
    return value


def _check_limit(value: Any, limit: Any, path: str) -> None:
    """What else an annotation says, for example to `--help`, is no limit."""
    if isinstance(limit, Interval):
        for end in limit:
            _check_limit(value, end, path)
    elif isinstance(limit, Predicate):
        if not limit.func(value):
            raise ConfigError(f"{path} must be {limit.func.__name__}, got {value!r}")
    elif type(limit) in LIMITS:
        words, holds = LIMITS[type(limit)]
        (bound,) = dataclasses.astuple(limit)
        if not holds(value, bound):
            raise ConfigError(f"{path} must be {words} {bound}, got {value!r}")


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and values of nested settings."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def fingerprint(content: Any) -> str:
    """Ten hex digits that name this content."""
    canonical = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]
