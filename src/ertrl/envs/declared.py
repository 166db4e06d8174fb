"""What a family declares, checked where it is made: before anything is simulated or written."""

from typing import Any, get_args

import numpy as np

from ertrl.envs.family import Family, Varies
from ertrl.errors import ConfigError

DECLARED = (
    *("name", "summary", "layout", "action_dim", "horizon"),
    *("parameter_names", "parameters", "varies"),
)


def check_declared(family: Family) -> Family:
    """The family, or an error that names what is missing or cannot be."""
    kind = type(family).__name__
    if missing := [name for name in DECLARED if not hasattr(family, name)]:
        title = getattr(family, "name", kind)
        raise ConfigError(f"{title}: the class {kind} has no {', '.join(missing)}; set it there")
    for check in (_check_sizes, _check_table, _check_words, _check_ends):
        if problem := check(family):
            raise ConfigError(f"{family.name}: {problem}")
    return family


def _check_sizes(family: Family) -> str:
    for name in ("action_dim", "horizon"):
        if not _is_count(size := getattr(family, name)):
            return f"{name} is a whole number of at least 1, got {size!r}"
    layout, form = family.layout, "pairs of a name and a size, such as (('position', 2),)"
    if not isinstance(layout, (tuple, list)) or not layout:
        return f"layout is {form}, got {layout!r}"
    for part in layout:
        if not (isinstance(part, (tuple, list)) and len(part) == 2 and _is_count(part[1])):
            return f"layout is {form}, got {layout!r}"
    return ""


def _check_table(family: Family) -> str:
    table, names = family.parameters, family.parameter_names
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        return f"parameter_names is a tuple of words, such as ('mass',), got {names!r}"
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiu":
        return f"parameters is a NumPy array of numbers, got {type(table).__name__} {table!r:.60}"
    if table.ndim != 2:
        hint = "; parameters[:, None] has one number per task" if table.ndim == 1 else ""
        return (
            f"parameters is a table [tasks, P], a row per task, got the shape {table.shape}{hint}"
        )
    if table.shape[1] != len(names):
        return f"parameters has {table.shape[1]} columns, and parameter_names names {list(names)}"
    if len(set(names)) < len(names):
        return f"two parameter_names are the same: {list(names)}"
    if not np.isfinite(table).all():
        row = int(np.isfinite(table).all(axis=1).argmin())
        return f"parameters of task {row} are not finite: {table[row].tolist()}"
    return ""


def _check_words(family: Family) -> str:
    allowed = get_args(Varies)
    if family.varies not in allowed:
        return f"varies is {' or '.join(map(repr, allowed))}, got {family.varies!r}"
    return ""


def _check_ends(family: Family) -> str:
    low, high = family.action_low, family.action_high
    if low is None and high is None:
        return ""
    shapes = {() if end is None else np.shape(end) for end in (low, high)}
    if shapes != {(family.action_dim,)} or not (np.asarray(low) < np.asarray(high)).all():
        return (
            f"action_low and action_high have {family.action_dim} numbers each, the high ones "
            f"above the low ones, got {low!r} and {high!r}"
        )
    return ""


def _is_count(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1
