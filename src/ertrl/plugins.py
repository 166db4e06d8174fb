"""Find the parts of the program, and the packages that only some of its commands need."""

import importlib
import pkgutil
from collections.abc import Iterable
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from ertrl.errors import MissingExtra, PluginError


def discover(package: ModuleType, attribute: str) -> list[Any]:
    """Collect `attribute` from every module of the package that has it, in order of file name.

    Modules of other installed distributions follow that name the package as an entry point's group.
    """
    own = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in own]
    for entry in sorted(entry_points(group=package.__name__)):
        try:
            modules.append(entry.load())
        except Exception as error:
            raise PluginError(
                f"the installed plug-in {entry.name} ({entry.value}, group {entry.group}) cannot "
                f"be loaded: {type(error).__name__}: {error}. Repair or uninstall it."
            ) from error
        if not hasattr(modules[-1], attribute):
            raise PluginError(
                f"the installed plug-in {entry.name} ({entry.value}) has no {attribute}, which "
                f"the group {entry.group} is for"
            )
    return [getattr(module, attribute) for module in modules if hasattr(module, attribute)]


def by_name(parts: Iterable[Any]) -> dict[str, Any]:
    """Parts by their names, each of which may be there once."""
    named: dict[str, Any] = {}
    for part in parts:
        if part.name in named:
            raise PluginError(
                f"two things are named '{part.name}'; an installed plug-in must choose another "
                "name, or be uninstalled"
            )
        named[part.name] = part
    return named


def require(package: str, extra: str) -> ModuleType:
    """Import a package that comes with an extra of ertrl, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the package {package} ({error}). Install it: pip install 'ertrl[{extra}]'"
        ) from None
