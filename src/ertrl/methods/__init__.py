"""How z is learned. A file of this folder with a `METHOD` adds one."""

from ertrl.errors import ConfigError
from ertrl.methods.base import Method
from ertrl.plugins import choose, parts, register

__all__ = ["Method", "get_method", "methods", "own_method"]


def methods() -> dict[str, type[Method]]:
    """All methods by name."""
    return parts(__name__, "METHOD", ("name", "summary", "paper"), Method)


def get_method(name: str) -> type[Method]:
    """Find the method of that name; calling it gives its default settings."""
    return choose("method", name, methods(), __name__, "METHOD")


def own_method(part: Method | type[Method]) -> type[Method]:
    """Make a method of one's own known by its name, for this process."""
    kind = part if isinstance(part, type) else type(part)
    if not issubclass(kind, Method):
        raise ConfigError(f"a method is a subclass of ertrl.methods.Method, got {part!r}")
    register(__name__, kind, methods())
    return kind
