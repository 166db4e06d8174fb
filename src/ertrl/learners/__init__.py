"""Offline actor-critics. A file of this folder with a `LEARNER` adds one."""

from ertrl.learners.base import Learner, LearnerStep
from ertrl.plugins import choose, parts

__all__ = ["Learner", "LearnerStep", "get_learner", "learners"]


def learners() -> dict[str, type[Learner]]:
    """All learners by name."""
    return parts(__name__, "LEARNER", ("name", "summary", "paper"))


def get_learner(name: str) -> type[Learner]:
    """Find the learner of that name; calling it gives its default settings."""
    return choose("learner", name, learners(), __name__, "LEARNER")
