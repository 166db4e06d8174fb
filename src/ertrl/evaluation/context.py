"""What agents know of their tasks, many side by side, as it grows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np

from ertrl.types import Context, Dims, Episodes

if TYPE_CHECKING:
    from ertrl.evaluation.agent import Agent


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
        shapes = jax.eval_shape(agent.evidence, agent.nothing(rows))
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
