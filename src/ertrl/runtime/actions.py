"""Actions in the units of whoever acts, and in [-1, 1] as data and networks hold them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ertrl.errors import DataError

BEYOND = 0.1
"""How far outside of the range, in widths of it, actions of new logs may lie."""


@dataclass(frozen=True, eq=False)
class ActionRange:
    """Lowest and highest action [A] of one's own: what -1 and 1 stand for."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_json(cls, stored: Mapping[str, Any], action_dim: int) -> "ActionRange":
        """As a file records it; where it says nothing, [-1, 1]."""
        ends = {"action_low": -1.0, "action_high": 1.0}
        low, high = (np.broadcast_to(stored.get(k, v), (action_dim,)) for k, v in ends.items())
        return cls(low.astype(np.float64), high.astype(np.float64))

    @cached_property
    def middle(self) -> np.ndarray:
        return (self.low + self.high) / 2

    @cached_property
    def half(self) -> np.ndarray:
        """Half of its width."""
        return (self.high - self.low) / 2

    @cached_property
    def _same(self) -> bool:
        """Whether one's own units are [-1, 1]: then actions stay what they are, bit for bit."""
        return bool((self.low == -1).all() and (self.high == 1).all())

    def inward(self, action: np.ndarray) -> np.ndarray:
        """Own units to [-1, 1]."""
        return np.asarray(action) if self._same else (action - self.middle) / self.half

    def cut(self, action: np.ndarray) -> np.ndarray:
        """`inward`; what lies outside of the range becomes its end."""
        return np.clip(self.inward(action), -1, 1)

    def outward(self, action: np.ndarray) -> np.ndarray:
        """[-1, 1] to own units."""
        return np.asarray(action) if self._same else self.middle + self.half * action

    def checked(self, action: np.ndarray) -> np.ndarray:
        """`inward`, in 32 bits; actions that are clearly in other units are refused."""
        inward = self.inward(action).astype(np.float32, copy=False)
        if np.abs(inward).max(initial=0.0) > 1 + 2 * BEYOND:
            axes = tuple(range(np.ndim(action) - 1))
            raise DataError(
                f"actions reach from {np.min(action, axis=axes).tolist()} to "
                f"{np.max(action, axis=axes).tolist()}, but this agent knows actions from "
                f"{self.low.tolist()} to {self.high.tolist()}: are they in other units?"
            )
        return inward
