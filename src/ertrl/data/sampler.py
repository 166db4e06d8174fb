"""Draw meta-training batches. Batch number u depends on (seed, u) and on nothing else."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Interval

from ertrl import rng
from ertrl.config import UNSAID, Amount, Count
from ertrl.data.dataset import Dataset
from ertrl.envs.tasks import FEWEST
from ertrl.errors import ConfigError
from ertrl.types import Context, TaskBatch, Transitions


@dataclass(frozen=True)
class SamplingConfig:
    """What one meta-training step sees."""

    meta_batch: Annotated[int, Interval(ge=2, le=99_999_999)] = 16
    """Training tasks per step, drawn without replacement; of one, nothing could be told apart."""
    batch_size: Annotated[int, Interval(ge=2, le=99_999_999)] = 256
    """Transitions per task for actor, critic and GAN; one has no covariance."""
    context_size: Count = 256
    """Transitions per context, drawn i.i.d. with replacement."""
    contexts_per_task: Count = 2
    """Independent contexts per task; two give DML real positive pairs (the released code has 1)."""
    prefer_good: Amount = field(default=0.0, metadata=UNSAID)
    """How strongly actor and critic, and whatever else a method learns from their batch, prefer
    episodes of high return. A step of a task's best episode is drawn exp(prefer_good) times as
    often as one of its worst; 0 draws all alike. Contexts do not prefer."""
    timeouts_terminate: bool = False
    """Treat the time limit as a terminal state, as the released code does; wrong, but published."""

    def windows(self, length: int) -> int:
        """How many windows of that length hold as many transitions per task as the RL batch."""
        return max(self.batch_size // length, 1)


def cumulative_preference(returns: np.ndarray, lengths: np.ndarray, strength: float) -> np.ndarray:
    """Cumulative probability of a task's transitions, if episodes are drawn by their return."""
    spread = np.ptp(returns)
    relative = (returns - returns.min()) / spread if spread else np.zeros(len(returns))
    share = np.cumsum(np.repeat(np.exp(strength * (relative - 1)), lengths))
    return share / share[-1]


class Sampler:
    """Gathers whole chunks of batches from the memory-mapped arrays of the training tasks."""

    def __init__(
        self,
        dataset: Dataset,
        config: SamplingConfig,
        extra_batches: int,
        seed: int,
        window: int = 0,
    ):
        """`extra_batches` further RL batches per step for the learner.

        With a `window`, the first transitions of the RL batch come with those that followed, too.
        """
        self._tasks = dataset.group("train")
        if len(self._tasks) < FEWEST:
            raise ConfigError(
                f"{dataset.path} has {len(self._tasks)} training task{'s' * (not self._tasks)}, "
                f"but an agent learns from how tasks differ, at least {FEWEST}. Collect or import "
                "data of more tasks, or hold out fewer of them"
            )
        if config.meta_batch > len(self._tasks):
            raise ConfigError(
                f"sampling.meta_batch is {config.meta_batch}, but {dataset.path} has only "
                f"{len(self._tasks)} training tasks to draw from without replacement; give "
                f"--sampling.meta-batch {len(self._tasks)}"
            )
        self._dataset, self._config, self._seed = dataset, config, seed
        self._rl_batches, self._window = 1 + extra_batches, window

    def batches(self, first: int, count: int) -> TaskBatch:
        """Batches first, ..., first + count - 1, stacked along a new leading axis."""
        c = self._config
        width = self._rl_batches * c.batch_size + c.contexts_per_task * c.context_size
        task = np.empty((count, c.meta_batch), np.int32)
        place = np.empty((count, c.meta_batch, width))
        for i in range(count):
            draw = rng.generator(self._seed, "batch", first + i)
            task[i] = draw.choice(len(self._tasks), c.meta_batch, replace=False)
            place[i] = draw.random((c.meta_batch, width))
        batch = self._arrange(task, self._gather(task, place))
        if not self._window:
            return batch
        windows = self._gather(task, place[:, :, : c.windows(self._window)], self._window)
        return batch._replace(windows=Context(*windows))

    def _gather(self, task: np.ndarray, place: np.ndarray, window: int = 0) -> Transitions:
        """Look up relative places in [0, 1) in each task's data, one task at a time.

        Of windows, what comes last is their mask.
        """
        shape = (*place.shape, window) if window else place.shape
        widths = self._dataset.dims.widths
        out = Transitions(*(np.empty((*shape, *width), np.float32) for width in widths))
        rl_rows = self._rl_batches * self._config.batch_size
        for position, number in enumerate(self._tasks):
            rows = np.nonzero(task == position)
            data = self._dataset.task(number)
            which = (place[rows] * len(data.steps)).astype(np.int64)
            if self._config.prefer_good:
                rl = place[rows][:, :rl_rows]
                which[:, :rl_rows] = np.searchsorted(self._share[position], rl, side="right")
            if window:
                found = data.windows(which, window)
            else:
                ends = self._config.timeouts_terminate
                found = data.transitions(which, timeouts_terminate=ends)
            for target, source in zip(out, found, strict=True):
                target[rows] = source
        return out

    @cached_property
    def _share(self) -> list[np.ndarray]:
        """Per training task: which share of the policy's draws falls on transitions up to each."""
        return [
            cumulative_preference(data.returns, data.lengths, self._config.prefer_good)
            for data in map(self._dataset.task, self._tasks)
        ]

    def _arrange(self, task: np.ndarray, drawn: Transitions) -> TaskBatch:
        """Cut the drawn rows [K, T, width] into RL batches and contexts."""
        c = self._config
        rl_rows = self._rl_batches * c.batch_size

        def cut(x: np.ndarray, *sizes: int) -> np.ndarray:
            return x.reshape(*task.shape, *sizes, *x.shape[3:])

        rl = [cut(x[:, :, :rl_rows], self._rl_batches, c.batch_size) for x in drawn]
        contexts = [cut(x[:, :, rl_rows:], c.contexts_per_task, c.context_size) for x in drawn]
        return TaskBatch(
            task=task,
            context=Context.of(contexts),
            rl=Transitions(*(x[:, :, 0] for x in rl)),
            more_rl=Transitions(*(x[:, :, 1:].swapaxes(1, 2) for x in rl)),
        )
