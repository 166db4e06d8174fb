"""Find the parts of the program, and the packages that only some of its commands need."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from ertrl.errors import MissingExtra


def discover(package: ModuleType, attribute: str) -> list[Any]:
    """Collect `attribute` from every module of the package that has it, in order of file name."""
    found = []
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        loaded = importlib.import_module(f"{package.__name__}.{module}")
        if hasattr(loaded, attribute):
            found.append(getattr(loaded, attribute))
    return found


def require(package: str, extra: str) -> ModuleType:
    """Import a package that comes with an extra of ertrl, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the package {package} ({error}). Install it: pip install 'ertrl[{extra}]'"
        ) from None
