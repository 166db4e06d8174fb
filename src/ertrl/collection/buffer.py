"""What the behaviour policies have seen so far."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ertrl import rng, store
from ertrl.collection.config import CollectConfig
from ertrl.envs.family import Family, Step
from ertrl.errors import ConfigError
from ertrl.types import Transitions

Place = tuple[np.ndarray, np.ndarray]
"""Tasks and rows."""


def style_directions(family: Family, config: CollectConfig) -> np.ndarray:
    """Unit vectors [tasks, A], each addressed by seed and task."""
    drawn = [
        rng.generator(config.seed, "style", task).standard_normal(family.action_dim)
        for task in range(family.n_tasks)
    ]
    return np.stack([u / np.linalg.norm(u) for u in drawn])


def style_bonus(family: Family, config: CollectConfig) -> np.ndarray | None:
    """What an action is worth on top of the reward, as weights [tasks, A]; None without style.

    A dial for how much behaviour differs between tasks beyond what the tasks demand: each task has
    a random direction u in action space and earns K (u . a) / sqrt(A) per step. The latter stays
    within about 0.8 of zero whatever the size A of actions, so K is in units of reward per step.
    """
    if not config.style:
        return None
    scale = config.style / np.sqrt(family.action_dim)
    return (scale * style_directions(family, config)).astype(np.float32)


class Replay:
    """All transitions of the collection by task, with outcomes in place of rewards.

    Keeping what happened instead of what it was worth lets a transition teach every task whose
    reward differs but whose physics is the same. Rows are only ever appended: with a folder, they
    live in memory-mapped files, and going on after a crash needs nothing but their number.
    """

    def __init__(self, family: Family, config: CollectConfig, folder: Path | None = None):
        self._family, self._config, self._folder = family, config, folder
        self._bonus = style_bonus(family, config)
        self._count, self._shown = np.zeros((2, family.n_tasks), int)
        self._capacity = config.simulations_per_task * (config.random_steps + config.steps)
        self._batches = (config.steps_per_block * config.updates_per_step, config.batch_size)
        self._arrays: dict[str, np.ndarray] = {}

    def _open(self, outcome_dim: int, *, again: bool = False) -> None:
        """Make room for all rows, or open the files of an earlier process again."""
        observation = (self._family.observation_dim,)
        sizes = {
            "observation": observation,
            "next_observation": observation,
            "action": (self._family.action_dim,),
            "terminated": (),
            "outcome": (outcome_dim,),
        }
        real, open_map = np.dtype(np.float32), store.map_again if again else store.map_array
        for name, size in sizes.items():
            shape = (self._family.n_tasks, self._capacity, *size)
            if self._folder is None:
                self._arrays[name] = np.empty(shape, real)
            else:
                self._arrays[name] = open_map(self._folder / f"{name}.npy", real, shape)

    def resume(self, count: list[int], outcome_dim: int) -> None:
        self._open(outcome_dim, again=True)
        self._count = np.array(count)

    @property
    def outcome_dim(self) -> int:
        """How many numbers an outcome has, which only a simulation knows."""
        return self._arrays["outcome"].shape[-1]

    @property
    def count(self) -> list[int]:
        return self._count.tolist()

    def rows(self, task: int) -> list[np.ndarray]:
        """The arrays of one task, empty rows at their end."""
        return [array[task] for array in self._arrays.values()]

    def flush(self) -> None:
        for array in self._arrays.values():
            if isinstance(array, np.memmap):
                array.flush()

    def add(
        self, task: np.ndarray, observation: np.ndarray, action: np.ndarray, step: Step
    ) -> None:
        """Append one control step of simulations in task order; diverged rows are left out."""
        if not self._arrays:
            self._open(step.outcome.shape[1])
        good = ~step.diverged
        task = task[good]
        rank = np.arange(len(task)) - np.searchsorted(task, task)
        place = task, self._count[task] + rank
        self._arrays["observation"][place] = observation[good]
        self._arrays["action"][place] = action[good]
        self._arrays["outcome"][place] = step.outcome[good]
        self._arrays["next_observation"][place] = step.observation[good]
        self._arrays["terminated"][place] = step.terminated[good]
        np.add.at(self._count, task, 1)

    def show(self) -> None:
        """Draw from what is there now until the next call; what is added later waits for it."""
        self._shown = self._count.copy()

    def own(self, block: int, tasks: Sequence[int]) -> Transitions:
        """[updates, tasks, batch] transitions for a block of updates, each task's own.

        What a task draws does not depend on the others that are drawn with it. Of returns that
        look ahead, `reward` is the sum, `next_observation` where they end, and `terminated` counts
        the steps in between as if they made an end more probable.
        """
        everywhere = {task: np.full(self._batches, task) for task in tasks}
        drawn = [self._look_up(self._draw(block, t), x, x) for t, x in everywhere.items()]
        return Transitions(*(np.stack(parts, axis=1) for parts in zip(*drawn, strict=True)))

    def relabelled(self, block: int) -> tuple[Transitions, np.ndarray]:
        """[updates, batch] transitions of all tasks, and the tasks that reward them.

        A fraction is rewarded by another task than the one that collected it, where tasks
        differ in nothing but reward; returns of these do not look ahead.
        """
        draw = self._draw(block)
        updates, size = self._batches
        collected_by = draw.integers(self._family.n_tasks, size=(updates, size))
        rewarded_by = collected_by.copy()
        if self._family.relabels:
            some = int(size * self._config.relabel_fraction)
            rewarded_by[:, :some] = draw.integers(self._family.n_tasks, size=(updates, some))
        return self._look_up(draw, collected_by, rewarded_by), rewarded_by

    def _draw(self, *index: int) -> np.random.Generator:
        return rng.generator(self._config.seed, "replay", *index)

    def _look_up(
        self, draw: np.random.Generator, collected_by: np.ndarray, rewarded_by: np.ndarray
    ) -> Transitions:
        first = last = collected_by, draw.integers(self._shown[collected_by])
        reward, weight = self._reward(first, rewarded_by), np.ones(collected_by.shape)
        for _ in range(self._config.n_step - 1):
            after, goes_on = self._after(last)
            # What another task's policy does next is no estimate of this one's return.
            goes_on &= rewarded_by == collected_by
            weight = np.where(goes_on, self._config.discount * weight, weight)
            reward = reward + np.where(goes_on, weight * self._reward(after, rewarded_by), 0.0)
            last = collected_by, np.where(goes_on, after[1], last[1])
        # The critic's share has weight discount x (1 - terminated), and discount^m after m steps.
        terminated = 1 - weight * (1 - self._arrays["terminated"][last])
        return Transitions(
            observation=self._arrays["observation"][first],
            action=self._arrays["action"][first],
            reward=reward.astype(np.float32),
            next_observation=self._arrays["next_observation"][last],
            terminated=terminated.astype(np.float32),
        )

    def _reward(self, place: Place, rewarded_by: np.ndarray) -> np.ndarray:
        action, outcome = self._arrays["action"][place], self._arrays["outcome"][place]
        reward = self._family.reward(outcome, action, self._family.parameters[rewarded_by])
        if reward.shape != action.shape[:-1]:
            raise ConfigError(
                f"{self._family.name}: for actions {action.shape}, reward() must have the shape "
                f"{action.shape[:-1]}, got {reward.shape}; is a [..., 0] missing?"
            )
        if self._bonus is not None:
            reward = reward + (self._bonus[rewarded_by] * action).sum(axis=-1)
        return reward

    def _after(self, place: Place) -> tuple[Place, np.ndarray]:
        """The next rows of the same simulations, and whether they continue these.

        Whatever interrupts a simulation, a restart or a row that was left out, shows in states.
        """
        task, row = place
        later = row + self._config.simulations_per_task
        exists = later < self._shown[task]
        after = task, np.where(exists, later, row)
        same = self._arrays["next_observation"][place] == self._arrays["observation"][after]
        return after, exists & same.all(axis=-1) & (self._arrays["terminated"][place] == 0)
