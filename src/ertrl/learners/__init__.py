"""Offline actor-critics. A file of this folder with a `LEARNER` adds one."""

from ertrl.errors import ConfigError
from ertrl.learners.base import Learner, LearnerStep
from ertrl.plugins import choose, parts, register

__all__ = ["Learner", "LearnerStep", "get_learner", "learners", "own_learner"]


def learners() -> dict[str, type[Learner]]:
    """All learners by name."""
    return parts(__name__, "LEARNER", ("name", "summary", "paper"), Learner)


def get_learner(name: str) -> type[Learner]:
    """Find the learner of that name; calling it gives its default settings."""
    return choose("learner", name, learners(), __name__, "LEARNER")


def own_learner(part: Learner | type[Learner]) -> type[Learner]:
    """Make a learner of one's own known by its name, for this process."""
    kind = part if isinstance(part, type) else type(part)
    if not issubclass(kind, Learner):
        raise ConfigError(f"a learner is a subclass of ertrl.learners.Learner, got {part!r}")
    register(__name__, kind, learners())
    return kind
