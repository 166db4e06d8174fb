"""Strict configuration: frozen dataclasses that round-trip through JSON.

An unknown key, a missing file or a value of the wrong type is an error that names the nearest valid
key; nothing is ignored. Every field has a docstring, which is also its text in `--help`.
"""

import dataclasses
import hashlib
import json
import math
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar

from ertrl.errors import ConfigError, unknown

C = TypeVar("C")


MAY_BE_ZERO = {
    "seed",
    "prior_episodes",
    "random_steps",
    "warm_start",
    "first_checkpoint",
    "last_checkpoint",
}

AT_MOST_ONE = {"discount", "tau", "warmup", "decay", "relabel_fraction"}


def check_numbers(config: Any, where: str = "") -> None:
    """Sizes and counts are at least 1, rates and weights at least 0, all the way down."""
    for f in fields(config):
        value, path = getattr(config, f.name), f"{where}{f.name}"
        least = 0 if f.name in MAY_BE_ZERO or isinstance(value, float) else 1
        if is_dataclass(value):
            check_numbers(value, f"{path}.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{path} must be a finite number, got {value}")
        elif f.name == "seed" and not 0 <= value < 2**63:
            raise ConfigError(f"{path} must lie between 0 and 2^63 - 1, got {value}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and value < least:
            raise ConfigError(f"{path} must be at least {least}, got {value}")
        elif f.name in AT_MOST_ONE and value > 1:
            raise ConfigError(f"{path} must be at most 1, got {value}")
        elif f.name.endswith("_range") and value[0] >= value[1]:
            raise ConfigError(f"{path} must rise, got {list(value)}")
        elif isinstance(value, tuple) and any(isinstance(v, int) and v < 1 for v in value):
            raise ConfigError(f"{path} must hold numbers of at least 1, got {list(value)}")


# --- JSON ---


def to_json(config: Any) -> Any:
    """Turn a tree of dataclasses into plain JSON values."""
    if is_dataclass(config):
        return {f.name: to_json(getattr(config, f.name)) for f in fields(config)}
    return list(config) if isinstance(config, tuple) else config


def replace_from_json(config: C, values: Any, where: str = "") -> C:
    """Overwrite some fields, deeply, with strict keys and types."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where or 'configuration'} must be an object, got {values!r}")
    known = {f.name: f for f in fields(config)}  # ty: ignore[invalid-argument-type]
    changes = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else name
        if name not in known:
            raise ConfigError(unknown(f"setting '{where}.'" if where else "setting", name, known))
        current = getattr(config, name)
        if is_dataclass(current):
            changes[name] = replace_from_json(current, value, path)
        else:
            annotation = typing.get_type_hints(type(config))[name]
            changes[name] = _checked(value, annotation, path)
    return dataclasses.replace(config, **changes)  # ty: ignore[invalid-argument-type]


def _checked(value: Any, annotation: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        if value not in arguments:
            raise ConfigError(f"{path} must be one of {', '.join(arguments)}; got {value!r}")
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


def fingerprint(content: Any) -> str:
    """Ten hex digits that name this content."""
    canonical = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]
