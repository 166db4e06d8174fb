"""Contexts and the z of them: of many agents side by side as they grow, and of logged data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np

from ertrl import rng
from ertrl.data import Dataset
from ertrl.types import Context, Dims, Episodes

if TYPE_CHECKING:
    from ertrl.evaluation.agent import Agent

EVALUATION_SEED = 20_250
"""Evaluation draws do not depend on the run's seed: every run faces the same contexts."""
ENCODED_AT_ONCE = 64_000
"""Transitions per call of the encoder, for the sake of memory."""


class ContextBuffer:
    """Padded arrays with a mask, so that a compiled encoder sees few shapes."""

    def __init__(self, rows: int, capacity: int, dims: Dims):
        """Empty contexts; the capacity doubles when it is exceeded."""
        self.count = np.zeros(rows, int)
        shapes = [(rows, capacity, *width) for width in dims.widths[:4]]
        self._arrays = [np.zeros(shape, np.float32) for shape in shapes]

    def add(self, row: int, transitions: Sequence[np.ndarray]) -> None:
        """Append transitions [H, ...] to one row's context."""
        first = self.count[row]
        last = first + len(transitions[0])
        while last > self._arrays[0].shape[1]:
            self._arrays = [np.concatenate([a, np.zeros_like(a)], axis=1) for a in self._arrays]
        for array, new in zip(self._arrays, transitions[:4], strict=True):
            array[row, first:last] = new
        self.count[row] = last

    def clear(self, rows: np.ndarray) -> None:
        """Forget these rows' contexts."""
        self.count[rows] = 0

    def add_episodes(self, episodes: Episodes, rows: np.ndarray) -> None:
        """Append row i's episode to row i's context, for the given rows."""
        for row in rows:
            n = episodes.length[row]
            s, a, r = (x[row] for x in (episodes.observation, episodes.action, episodes.reward))
            self.add(row, (s[:n], a[:n], r[:n], s[1 : n + 1]))

    def context(self) -> Context:
        """What is known so far, as the encoder takes it."""
        slots = np.arange(self._arrays[0].shape[1])
        return Context.of(self._arrays, (slots < self.count[:, None]).astype(np.float32))


class Running:
    """z after every transition, from sums: what came before is not looked at again."""

    def __init__(self, agent: "Agent", rows: int):
        self._agent, self.z = agent, np.tile(agent.z0, (rows, 1))
        inference = agent.config.method.inference(agent.states[0])
        shapes = jax.eval_shape(inference.evidence, agent.nothing(rows))
        self._sums = jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), shapes)

    def add(self, transition: Sequence[np.ndarray], alive: np.ndarray) -> None:
        """Take in one transition (s, a, r, s') of each row that is alive."""
        context = Context.of([x[:, None] for x in transition], alive[:, None].astype(np.float32))
        self._sums, z = self._agent.add(self._sums, context)
        self.z = np.where(alive[:, None], z, self.z)


class Buffered:
    """The same for a method whose z is no function of sums: all transitions, encoded anew."""

    def __init__(self, agent: "Agent", rows: int):
        self._agent, self.z = agent, np.tile(agent.z0, (rows, 1))
        self._buffer = ContextBuffer(rows, 16, agent.dims)

    def add(self, transition: Sequence[np.ndarray], alive: np.ndarray) -> None:
        """Take in one transition (s, a, r, s') of each row that is alive."""
        for row in np.flatnonzero(alive):
            self._buffer.add(row, [x[row : row + 1] for x in transition])
        z = self._agent.encode(self._buffer.context())
        self.z = np.where(alive[:, None], z, self.z)


def codes_of(agent: "Agent", dataset: Dataset, task: int, which: np.ndarray) -> np.ndarray:
    """Codes [contexts, Z] of contexts that consist of these transitions [contexts, size]."""
    parts = np.array_split(which, -(-which.size // ENCODED_AT_ONCE))
    codes = [agent.encode(Context.of(dataset.task(task).transitions(part))) for part in parts]
    return np.concatenate(codes).astype(np.float64)


def held_back(episode: np.ndarray) -> np.ndarray:
    """Which transitions test what the others teach, given the episode of each: every other episode.

    Neighbours in time resemble each other, so one episode must not do both. Where there is only
    one, its end tests what its beginning teaches.
    """
    _, place = np.unique(episode, return_inverse=True)
    odd = place % 2 == 1
    return odd if odd.any() else np.arange(len(odd)) >= (len(odd) + 1) // 2


def random_codes(
    agent: "Agent",
    dataset: Dataset,
    tasks: Sequence[int],
    shape: tuple[int, int],
    stream: str,
    *,
    all_episodes: bool = True,
) -> np.ndarray:
    """Codes [tasks, contexts, Z] of contexts drawn i.i.d.; `shape` is how many, and their size.

    They are drawn from all episodes of a task, or from those that are not `held_back`.
    """
    codes = []
    for task in tasks:
        draw, steps = rng.generator(EVALUATION_SEED, stream, task), dataset.task(task).steps
        known = np.arange(len(steps))
        if not all_episodes:
            known = known[~held_back(steps // dataset.horizon)]
        codes.append(codes_of(agent, dataset, task, draw.choice(known, shape)))
    return np.stack(codes)
