"""What the behaviour policies have seen so far."""

import numpy as np

from ertrl import rng
from ertrl.envs.family import Family, Step
from ertrl.types import Transitions


class Replay:
    """All transitions of the collection by task, with outcomes in place of rewards.

    Keeping what happened instead of what it was worth lets a transition teach every task whose
    reward differs but whose physics is the same.
    """

    def __init__(self, family: Family, capacity_per_task: int):
        """Preallocate; the capacity is known beforehand."""
        self._family = family
        self._count = np.zeros(family.n_tasks, int)
        shape = (family.n_tasks, capacity_per_task)
        self._observation = np.empty((*shape, family.observation_dim), np.float32)
        self._next_observation = np.empty_like(self._observation)
        self._action = np.empty((*shape, family.action_dim), np.float32)
        self._terminated = np.empty(shape, np.float32)
        self._outcome = np.empty((*shape, 0))

    def add(
        self, task: np.ndarray, observation: np.ndarray, action: np.ndarray, step: Step
    ) -> None:
        """Append one control step of simulations in task order; diverged rows are left out."""
        good = ~step.diverged
        task = task[good]
        if not self._count.any():
            shape = (*self._terminated.shape, step.outcome.shape[1])
            self._outcome = np.empty(shape, step.outcome.dtype)
        rank = np.arange(len(task)) - np.searchsorted(task, task)
        place = task, self._count[task] + rank
        self._observation[place] = observation[good]
        self._action[place] = action[good]
        self._outcome[place] = step.outcome[good]
        self._next_observation[place] = step.observation[good]
        self._terminated[place] = step.terminated[good]
        np.add.at(self._count, task, 1)

    def own(self, seed: int, block: int, shape: tuple[int, int]) -> tuple[Transitions, np.ndarray]:
        """[updates, tasks, batch] transitions, each task's own, and their tasks."""
        task = np.arange(self._family.n_tasks)[None, :, None]
        task = np.broadcast_to(task, (shape[0], self._family.n_tasks, shape[1]))
        return self._look_up(rng.generator(seed, "replay", block), task, task), task

    def relabelled(
        self, seed: int, block: int, shape: tuple[int, int], fraction: float
    ) -> tuple[Transitions, np.ndarray]:
        """[updates, batch] transitions of all tasks, and the tasks that reward them.

        A fraction is rewarded by another task than the one that collected it, where tasks
        differ in nothing but reward.
        """
        draw = rng.generator(seed, "replay", block)
        collected_by = draw.integers(self._family.n_tasks, size=shape)
        rewarded_by = collected_by.copy()
        if self._family.varies == "reward":
            some = int(shape[1] * fraction)
            rewarded_by[:, :some] = draw.integers(self._family.n_tasks, size=(shape[0], some))
        return self._look_up(draw, collected_by, rewarded_by), rewarded_by

    def _look_up(
        self, draw: np.random.Generator, collected_by: np.ndarray, rewarded_by: np.ndarray
    ) -> Transitions:
        place = collected_by, draw.integers(self._count[collected_by])
        action = self._action[place]
        reward = self._family.reward(
            self._outcome[place], action, self._family.parameters[rewarded_by]
        )
        return Transitions(
            observation=self._observation[place],
            action=action,
            reward=reward.astype(np.float32),
            next_observation=self._next_observation[place],
            terminated=self._terminated[place],
        )
