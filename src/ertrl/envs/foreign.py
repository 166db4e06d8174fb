"""Environments of others: checked when they are made, and blamed by task, file and line.

What fails is a PluginError, so a collection keeps what it has and goes on after a repair.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.errors import ConfigError, ErtrlError, PluginError
from ertrl.plugins import raised_at, written_at

Make = Callable[[dict[str, float]], gymnasium.Env]
PROMISES = {
    "reset": "in Gymnasium, reset(seed=..., options=...) gives (observation, info)",
    "step": "in Gymnasium, step() gives (observation, reward, terminated, truncated, info)",
}
"""What is asked for, told where a call fails outside of the environment's own code."""


class Wanted(NamedTuple):
    """Environments to be made, one per row, and the spaces that all of them must have."""

    make: Make
    tasks: list[dict[str, float]]
    names: list[str]
    """What messages call the rows."""
    width: int
    """Numbers of an observation."""
    actions: Box

    def only(self, rows: np.ndarray) -> "Wanted":
        tasks, names = ([column[i] for i in rows] for column in (self.tasks, self.names))
        return self._replace(tasks=tasks, names=names)

    def made(self) -> list[gymnasium.Env]:
        """All of them."""
        pairs = zip(self.names, self.tasks, strict=True)
        return [self._checked(name, make_env(name, self.make, task)) for name, task in pairs]

    def _checked(self, name: str, env: gymnasium.Env) -> gymnasium.Env:
        seen, done = check_spaces(name, env)
        if (width := int(np.prod(seen.shape))) != self.width:
            raise ConfigError(
                f"{name}: observations have {width} numbers, those of the family {self.width}; "
                "all tasks need the same, so fill the shorter ones up with zeros"
            )
        mine, ours = (np.stack([box.low.ravel(), box.high.ravel()]) for box in (done, self.actions))
        if mine.shape != ours.shape or not np.allclose(mine, ours):
            raise ConfigError(
                f"{name}: actions are {done}, those of the family {self.actions}; all tasks need "
                "the same, so wrap it in gymnasium.wrappers.RescaleAction"
            )
        return env


def make_env(name: str, make: Make, task: dict[str, float]) -> gymnasium.Env:
    """The environment of one task."""
    try:
        env = make(task)
    except Exception as error:
        blame(name, "make", make, error)
    if not isinstance(env, gymnasium.Env):
        raise ConfigError(
            f"{name}: make(task) must return a gymnasium.Env, got {env!r}"
            + ("; is `return env` missing?" if env is None else "")
        )
    return env


def check_spaces(name: str, env: gymnasium.Env) -> tuple[Box, Box]:
    """Spaces of observations and actions, if ertrl can learn with them."""
    found = []
    for kind in ("observation", "action"):
        space = getattr(env, f"{kind}_space", None)
        if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
            raise ConfigError(
                f"{name}: {kind}s are {space}, but ertrl needs a Box of real numbers. Gymnasium's "
                "wrappers can make one: FlattenObservation, TransformAction, TransformObservation."
            )
        found.append(space)
    seen, done = found
    if not (np.isfinite(done.low).all() and np.isfinite(done.high).all()):
        raise ConfigError(
            f"{name}: actions have no bounds ({done}), so they cannot be scaled to [-1, 1]; wrap "
            "the environment in gymnasium.wrappers.ClipAction with a bounded space"
        )
    return seen, done


def blame(name: str, what: str, called: Any, error: Exception) -> NoReturn:
    """Say where a function of others failed; an error that is ours already says enough."""
    if isinstance(error, ErtrlError):
        raise error
    at = raised_at(error, called)
    hint = "" if at else PROMISES.get(what, "")
    if what == "reward":  # most often, it was written for one row
        hint = "it gets arrays of many rows"
    at = at or written_at(called)
    told = f"{what}() failed{f' in {at}' if at else ''}: {type(error).__name__}: {error}"
    raise PluginError(f"{name}: {told}{f'; {hint}' if hint else ''}") from error
