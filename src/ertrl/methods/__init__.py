"""How z is learned. A file of this folder with a `METHOD` adds one."""

from ertrl.methods.base import Method
from ertrl.plugins import choose, parts

__all__ = ["Method", "get_method", "methods"]


def methods() -> dict[str, type[Method]]:
    """All methods by name."""
    return parts(__name__, "METHOD", ("name", "summary", "paper"))


def get_method(name: str) -> type[Method]:
    """Find the method of that name; calling it gives its default settings."""
    return choose("method", name, methods(), __name__, "METHOD")
