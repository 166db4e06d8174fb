"""The shapes that travel through the program.

Axis letters, used in every annotation:
    T tasks of a meta-batch    C contexts per task    H transitions of a context
    B transitions of an RL batch    N simulations side by side    L steps of an episode
    O observation    A action    Z task representation    P task parameters
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

Array = Any
"""NumPy on the host, JAX on the device. (Importing JAX for annotations takes half a second.)"""


Metrics = dict[str, Float[Array, ""]]
"""What one update measured, by name."""


class Dims(NamedTuple):
    """Sizes that a family fixes and networks need."""

    observation: int
    action: int
    training_tasks: int = 0
    """How many tasks a method can be asked to tell apart; 0 where nobody asks."""

    @property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """Last axes of (s, a, r, s') and of what stands beside them, a flag per row."""
        return (self.observation,), (self.action,), (), (self.observation,), ()


class Transitions(NamedTuple):
    """(s, a, r, s') and whether s' is terminal. A time-out is not: it bootstraps."""

    observation: Float[Array, "*b O"]
    action: Float[Array, "*b A"]
    reward: Float[Array, "*b"]
    next_observation: Float[Array, "*b O"]
    terminated: Float[Array, "*b"]


class Context(NamedTuple):
    """What is known of a task: an unordered set of transitions; mask 0 marks an empty slot."""

    observation: Float[Array, "*b H O"]
    action: Float[Array, "*b H A"]
    reward: Float[Array, "*b H"]
    next_observation: Float[Array, "*b H O"]
    mask: Float[Array, "*b H"]

    @classmethod
    def of(cls, transitions: Iterable[Array], mask: Array | None = None) -> "Context":
        """From (s, a, r, s', ...); without a mask, every row counts."""
        observation, action, reward, next_observation, *_ = transitions
        mask = np.ones(reward.shape, reward.dtype) if mask is None else mask
        return cls(observation, action, reward, next_observation, mask)

    def first(self) -> "Context":
        """The first context of each task: [T, C, H] -> [T, H]."""
        return Context(*(x[:, 0] for x in self))


class TaskBatch(NamedTuple):
    """One meta-training step's data."""

    task: Int[Array, "T"]
    """Positions among the training tasks."""
    context: Context
    """Independent draws, axes [T, C, H]: pairs of the same task are the positives of DML."""
    rl: Transitions
    """Axes [T, B]."""
    more_rl: Transitions
    """Further independent RL batches, axes [R, T, B], for learners that take inner steps."""
    windows: Context | None = None
    """For methods that ask: rl's first transitions and the W - 1 that followed each, axes
    [T, B / W, W]; mask 0 is behind an episode's end."""


class Episodes(NamedTuple):
    """Whole episodes side by side, observations stored once."""

    observation: Float[np.ndarray, "N L1 O"]
    action: Float[np.ndarray, "N L A"]
    reward: Float[np.ndarray, "N L"]
    length: Int[np.ndarray, "N"]
    terminated: Bool[np.ndarray, "N"]
    """The episode ended in a terminal state after `length` steps."""
    truncated: Bool[np.ndarray, "N"]
    """The episode was cut by the time limit."""
    diverged: Bool[np.ndarray, "N"]
    """The simulation blew up: nothing of this episode is to be used."""
    success: Float[np.ndarray, "N"] | None = None
    """1 if the task was fulfilled at any step, NaN where that is not known."""

    @property
    def returns(self) -> Float[np.ndarray, "N"]:
        """Undiscounted."""
        return self.reward.sum(axis=1, dtype=np.float64)
