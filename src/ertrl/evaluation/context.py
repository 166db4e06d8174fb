"""Contexts: drawn from logged data, or growing row by row."""

import numpy as np

from ertrl.types import Context, Dims, Episodes, Transitions


class ContextBuffer:
    """Padded arrays with a mask, so that a compiled encoder sees few shapes."""

    def __init__(self, rows: int, capacity: int, dims: Dims):
        """Empty contexts; the capacity doubles when it is exceeded."""
        self.count = np.zeros(rows, int)
        self._arrays = [
            np.zeros((rows, capacity, dims.observation), np.float32),
            np.zeros((rows, capacity, dims.action), np.float32),
            np.zeros((rows, capacity), np.float32),
            np.zeros((rows, capacity, dims.observation), np.float32),
        ]

    def add(self, row: int, transitions: Transitions) -> None:
        """Append transitions [H, ...] to one row's context."""
        first = self.count[row]
        last = first + len(transitions.reward)
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
            observations = episodes.observation[row]
            self.add(
                row,
                Transitions(
                    observations[:n],
                    episodes.action[row, :n],
                    episodes.reward[row, :n],
                    observations[1 : n + 1],
                    np.zeros(n, np.float32),
                ),
            )

    def context(self) -> Context:
        """What is known so far, as the encoder takes it."""
        slots = np.arange(self._arrays[0].shape[1])
        return Context.of(self._arrays, (slots < self.count[:, None]).astype(np.float32))
