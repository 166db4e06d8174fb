"""Find the parts of the program, and the packages that only some of its commands need."""

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

from ertrl.errors import ConfigError, MissingExtra, PluginError, unknown

P = TypeVar("P")


@cache
def parts(package: str, attribute: str, needed: tuple[str, ...]) -> dict[str, Any]:
    """What the modules of a package hold under this attribute (one class or several), by name.

    In order of file name. Modules of other installed distributions follow that name the package as
    an entry point's group. Each class has the attributes that are `needed`.
    """
    named: dict[str, Any] = {}
    homes: dict[str, str] = {}
    for home, module in _modules(package, attribute):
        held = getattr(module, attribute)
        for part in held if isinstance(held, (list, tuple)) else (held,):
            missing = [name for name in needed if not hasattr(part, name)]
            missing += sorted(getattr(part, "__abstractmethods__", ()))
            if missing:
                name = getattr(part, "__name__", part)
                raise PluginError(f"{home}: the class {name} has no {', '.join(missing)}")
            if part.name in named:
                raise PluginError(
                    f"two things are named '{part.name}', in {homes[part.name]} and in {home}; "
                    "give one of them another name, or remove it"
                )
            named[part.name], homes[part.name] = part, home
    return named


def _modules(package: str, attribute: str) -> Iterator[tuple[str, ModuleType]]:
    """Where a module comes from, in words, and the module."""
    folder = importlib.import_module(package).__path__
    for name in sorted(m.name for m in pkgutil.iter_modules(folder)):
        home = f"{folder[0]}/{name}.py"
        module = _load(home, partial(importlib.import_module, f"{package}.{name}"))
        if hasattr(module, attribute):  # others help
            yield home, module
    for entry in sorted(entry_points(group=package)):
        home = f"the installed plug-in {entry.name} ({entry.value}, group {entry.group})"
        module = _load(home, entry.load)
        if not hasattr(module, attribute):
            raise PluginError(f"{home} has no {attribute}, which the group is for")
        yield home, module


def _load(home: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except Exception as error:
        # A syntax error says its line itself.
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == home]
        where = f"{home}, line {lines[-1]}," if lines else home
        raise PluginError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}. Repair or remove it."
        ) from error


def choose(kind: str, name: str, known: Mapping[str, P], package: str, attribute: str) -> P:
    """The part of that name; a wrong name is told the nearest right one."""
    if name in known:
        return known[name]
    message = unknown(kind, name, known)
    file = sys.modules.get(f"{package}.{name.replace('-', '_')}")
    if file and not hasattr(file, attribute):
        message += f" {file.__file__} is not among them because it has no {attribute} = ..."
    raise ConfigError(message)


def require(package: str, extra: str) -> ModuleType:
    """Import a package that comes with an extra of ertrl, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the package {package} ({error}). Install it: pip install 'ertrl[{extra}]'"
        ) from None
