"""The families. A file of this folder with a tuple `FAMILIES` of classes adds families.

Importing them is cheap: MuJoCo loads when the first simulation starts.
"""

from typing import Any, get_args

import numpy as np

from ertrl.envs.family import Family, Option, Varies
from ertrl.errors import ConfigError, ErtrlError, PluginError
from ertrl.plugins import choose, installed, parts, raised_at, register

NEEDED = ("name", "summary")
DECLARED = (
    *("name", "summary", "layout", "action_dim", "horizon"),
    *("parameter_names", "parameters", "varies"),
)
"""What every family says."""


def _families() -> dict[str, type[Family] | Family]:
    return parts(__name__, "FAMILIES", NEEDED, Family)


def installed_families() -> list[type[Family]]:
    """Those that are there without any script."""
    return list(installed(__name__, "FAMILIES", NEEDED).values())


def family_names() -> list[str]:
    return sorted(_families())


def make_family(name: str, **options: Option) -> Family:
    """Make the family of that name; `options` change what the family allows to change."""
    found = choose("family", name, _families(), __name__, "FAMILIES")
    if not isinstance(found, Family):
        return made_of(found, **options)
    if options not in ({}, found.options):
        raise ConfigError(f"{name} is there with the options {found.options}, got {options}")
    return _checked(found)


def made_of(kind: type[Family], **options: Option) -> Family:
    """An object of that class, which may be somebody's own."""
    try:
        return _checked(kind(**options))
    except ErtrlError:  # it says what to do
        raise
    except Exception as error:
        told, at = f"{type(error).__name__}: {error}", raised_at(error)
        name = getattr(kind, "name", kind.__name__)
        raise PluginError(f"{name} cannot be made: {f'{at}: ' if at else ''}{told}") from error


def own_family(family: Family | type[Family]) -> Family:
    """Make a family of one's own known by its name, for this process."""
    if isinstance(family, type) and issubclass(family, Family):
        made = made_of(family)
    elif isinstance(family, Family):
        made = _checked(family)
    else:
        raise ConfigError(f"a family is an object of ertrl.envs.Family, got {family!r}")
    if _families().get(made.name) is not type(made):
        register(__name__, made, _families())
    return made


def _checked(family: Family) -> Family:
    """The family, or an error that names what it declares wrongly, before anything is simulated."""
    kind = type(family).__name__
    if missing := [name for name in DECLARED if not hasattr(family, name)]:
        title = getattr(family, "name", kind)
        raise ConfigError(f"{title}: the class {kind} has no {', '.join(missing)}; set it there")
    if problem := _wrong_sizes(family) or _wrong_table(family) or _wrong_values(family):
        raise ConfigError(f"{family.name}: {problem}")
    return family


def _wrong_sizes(family: Family) -> str:
    for name in ("action_dim", "horizon"):
        if not _is_count(size := getattr(family, name)):
            return f"{name} is a whole number of at least 1, got {size!r}"
    layout = family.layout if isinstance(family.layout, (tuple, list)) else ()
    pairs = [isinstance(p, (tuple, list)) and len(p) == 2 and _is_count(p[1]) for p in layout]
    if not pairs or not all(pairs):
        form = "pairs of a name and a size, such as (('position', 2),)"
        return f"layout is {form}, got {family.layout!r}"
    return ""


def _wrong_table(family: Family) -> str:
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


def _wrong_values(family: Family) -> str:
    allowed = get_args(Varies)
    if family.varies not in allowed:
        return f"varies is {' or '.join(map(repr, allowed))}, got {family.varies!r}"
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
