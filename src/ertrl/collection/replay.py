"""What the behaviour policies have seen so far."""

import numpy as np

from ertrl import rng
from ertrl.envs.family import Family
from ertrl.types import Transitions


class Replay:
    """All transitions of the collection, with outcomes in place of rewards.

    Keeping what happened instead of what it was worth lets a transition teach every task whose
    reward differs but whose physics is the same.
    """

    def __init__(self, family: Family, capacity: int):
        """Preallocate; `capacity` is known beforehand."""
        self._family = family
        self._size = 0
        self._observation = np.empty((capacity, family.observation_dim), np.float32)
        self._action = np.empty((capacity, family.action_dim), np.float32)
        self._next_observation = np.empty_like(self._observation)
        self._terminated = np.empty(capacity, np.float32)
        self._task = np.empty(capacity, np.int32)
        self._outcome: np.ndarray | None = None

    def add(self, task, observation, action, outcome, next_observation, terminated) -> None:
        """Append the rows of one control step."""
        if self._outcome is None:
            self._outcome = np.empty((len(self._task), outcome.shape[1]), np.float64)
        rows = slice(self._size, self._size + len(task))
        self._task[rows], self._observation[rows], self._action[rows] = task, observation, action
        self._outcome[rows], self._next_observation[rows] = outcome, next_observation
        self._terminated[rows] = terminated
        self._size = rows.stop

    def batches(
        self, seed: int, block: int, shape: tuple[int, int], relabel_fraction: float
    ) -> tuple[Transitions, np.ndarray]:
        """[updates, batch] transitions and the task parameters that reward them."""
        assert self._outcome is not None, "sampling from an empty replay"
        draw = rng.generator(seed, "replay", block)
        row = draw.integers(self._size, size=shape)
        task = self._task[row]
        if self._family.varies == "reward":
            relabelled = int(shape[1] * relabel_fraction)
            task[:, :relabelled] = draw.integers(
                self._family.n_tasks, size=(shape[0], relabelled)
            )
        parameters = self._family.parameters[task]
        reward = self._family.reward(self._outcome[row], self._action[row], parameters)
        batch = Transitions(
            observation=self._observation[row],
            action=self._action[row],
            reward=reward.astype(np.float32),
            next_observation=self._next_observation[row],
            terminated=self._terminated[row],
        )
        return batch, parameters
