"""Offline actor-critics. A file of this folder with a `LEARNER` adds one."""

from functools import cache

import ertrl.learners
from ertrl.errors import ConfigError, unknown
from ertrl.learners.base import Learner, LearnerStep, Metrics
from ertrl.plugins import by_name, discover

__all__ = ["Learner", "LearnerStep", "Metrics", "get_learner", "learners"]


@cache
def learners() -> dict[str, Learner]:
    """All learners by name."""
    return by_name(discover(ertrl.learners, "LEARNER"))


def get_learner(name: str) -> Learner:
    """Find the learner of that name."""
    if name not in learners():
        raise ConfigError(unknown("learner", name, learners()))
    return learners()[name]
