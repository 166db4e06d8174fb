"""Find the parts of the program: every file of a folder that defines the asked-for name."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any


def discover(package: ModuleType, attribute: str) -> list[Any]:
    """Collect `attribute` from every module of the package that has it, in order of file name."""
    found = []
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        loaded = importlib.import_module(f"{package.__name__}.{module}")
        if hasattr(loaded, attribute):
            found.append(getattr(loaded, attribute))
    return found
