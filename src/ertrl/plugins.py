"""Find the parts of the program, and the packages that only some of its commands need."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

from ertrl.errors import ConfigError, MissingExtra, PluginError, unknown

P = TypeVar("P")


@cache
def parts(package: str, attribute: str) -> dict[str, Any]:
    """What the modules of a package hold under this attribute (one or several), by name.

    In order of file name. Modules of other installed distributions follow that name the package as
    an entry point's group.
    """
    named: dict[str, Any] = {}
    for module in _modules(package, attribute):
        held = getattr(module, attribute)
        for part in held if isinstance(held, (list, tuple)) else (held,):
            if part.name in named:
                raise PluginError(
                    f"two things are named '{part.name}'; an installed plug-in must choose another "
                    "name, or be uninstalled"
                )
            named[part.name] = part
    return named


def _modules(package: str, attribute: str) -> Iterator[ModuleType]:
    own = sorted(m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__))
    for name in own:
        module = importlib.import_module(f"{package}.{name}")
        if hasattr(module, attribute):
            yield module
    for entry in sorted(entry_points(group=package)):
        try:
            module = entry.load()
        except Exception as error:
            raise PluginError(
                f"the installed plug-in {entry.name} ({entry.value}, group {entry.group}) cannot "
                f"be loaded: {type(error).__name__}: {error}. Repair or uninstall it."
            ) from error
        if not hasattr(module, attribute):
            raise PluginError(
                f"the installed plug-in {entry.name} ({entry.value}) has no {attribute}, which "
                f"the group {entry.group} is for"
            )
        yield module


def choose(kind: str, name: str, known: Mapping[str, P]) -> P:
    """The part of that name; a wrong name is told the nearest right one."""
    if name not in known:
        raise ConfigError(unknown(kind, name, known))
    return known[name]


def require(package: str, extra: str) -> ModuleType:
    """Import a package that comes with an extra of ertrl, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the package {package} ({error}). Install it: pip install 'ertrl[{extra}]'"
        ) from None
