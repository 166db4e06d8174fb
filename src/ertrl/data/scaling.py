"""What observations and rewards are scaled by before a network sees them.

A `Scaling` brings them to a size of about 1, with statistics of the training tasks; the setting
`standardise` of a run turns it on. A run records it, so its agent carries it, and whoever uses it
sees own units only.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ertrl.data.dataset import Dataset
from ertrl.types import Array, Context, TaskBatch, Transitions

SMALLEST = 1e-6
"""A deviation below this is no deviation: such a number is only shifted."""


class Scaling(NamedTuple):
    """Mean and standard deviation over the training tasks, each task counting the same."""

    observation_mean: Float[Array, "O"]
    observation_deviation: Float[Array, "O"]
    reward_mean: Float[Array, ""]
    reward_deviation: Float[Array, ""]

    @classmethod
    def of(cls, dataset: Dataset) -> "Scaling":
        """Measure the logged transitions of the training tasks."""
        moments = [_moments(dataset, task) for task in dataset.group("train")]
        mean, square = (np.mean(x, axis=0) for x in zip(*moments, strict=True))
        deviation = np.sqrt(np.maximum(square - np.square(mean), 0.0))
        deviation = np.where(deviation > SMALLEST * np.maximum(np.abs(mean), 1.0), deviation, 1.0)
        mean, deviation = mean.astype(np.float32), deviation.astype(np.float32)
        return cls(mean[:-1], deviation[:-1], mean[-1], deviation[-1])

    @classmethod
    def of_json(cls, stored: dict[str, Any]) -> "Scaling":
        """As a run records it."""
        return cls(**{name: np.asarray(value, np.float32) for name, value in stored.items()})

    def to_json(self) -> dict[str, Any]:
        return {
            name: np.asarray(value, np.float64).tolist() for name, value in self._asdict().items()
        }

    def observations(self, observation: Float[Array, "*b O"]) -> Float[Array, "*b O"]:
        return (observation - self.observation_mean) / self.observation_deviation

    def context(self, context: Context) -> Context:
        """What an encoder sees."""
        return context._replace(
            observation=self.observations(context.observation),
            reward=(context.reward - self.reward_mean) / self.reward_deviation,
            next_observation=self.observations(context.next_observation),
        )

    def transitions(self, transitions: Transitions) -> Transitions:
        """What a learner sees: to shift rewards, too, would change what an early end is worth."""
        return transitions._replace(
            observation=self.observations(transitions.observation),
            reward=transitions.reward / self.reward_deviation,
            next_observation=self.observations(transitions.next_observation),
        )

    def batch(self, batch: TaskBatch) -> TaskBatch:
        """What one update sees."""
        return batch._replace(
            context=self.context(batch.context),
            rl=self.transitions(batch.rl),
            more_rl=self.transitions(batch.more_rl),
            windows=batch.windows and self.context(batch.windows),
        )


def _moments(dataset: Dataset, task: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of observation and reward and of their squares, over one task's transitions."""
    data = dataset.task(task)
    sums = np.zeros((2, dataset.dims.observation + 1))
    for part in np.array_split(np.arange(len(data.steps)), -(-len(data.steps) // 100_000)):
        rows = data.transitions(part)
        columns = np.column_stack([rows.observation, rows.reward]).astype(np.float64)
        sums += columns.sum(axis=0), np.square(columns).sum(axis=0)
    return tuple(sums / len(data.steps))
