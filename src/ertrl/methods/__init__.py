"""How z is learned. A file of this folder with a `METHOD` adds one."""

from functools import cache

import ertrl.methods
from ertrl.errors import ConfigError, unknown
from ertrl.methods.base import Method
from ertrl.plugins import by_name, discover

__all__ = ["Method", "get_method", "methods"]


@cache
def methods() -> dict[str, Method]:
    """All methods by name."""
    return by_name(discover(ertrl.methods, "METHOD"))


def get_method(name: str) -> Method:
    """Find the method of that name."""
    if name not in methods():
        raise ConfigError(unknown("method", name, methods()))
    return methods()[name]
