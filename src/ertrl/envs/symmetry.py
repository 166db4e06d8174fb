"""What a robot's symmetries say: many tasks are one task, seen from elsewhere.

Physics does not care where an ant stands, which way north is, or which of its four equal legs is
called the first. A policy that is told its task can therefore be shown each state in the task's own
frame, and what it learns for one direction it knows for all. (MuJoCo's friction is a pyramid, so
turns other than by quarters are not quite exact.) Only behaviour policies use this; an agent is
never told the task.

Functions here work on NumPy and on JAX arrays.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from jaxtyping import Float, Int

Array = Any
QUARTER = np.pi / 2


class Symmetry(ABC):
    """How a policy that knows the task is shown state and task."""

    size: int
    """How many numbers it is shown."""
    turns: Float[np.ndarray, "K A A"]
    """Signed permutations of actions: which joint is the first depends on the view."""

    @abstractmethod
    def view(
        self, observation: Float[Array, "*b O"], parameters: Float[Array, "*b P"]
    ) -> tuple[Float[Array, "*b F"], Int[Array, "*b"]]:
        """What is shown, and which of `turns` turns actions into that view."""


def turn_vector(vector: Array, angle: Array) -> Array:
    """[..., 2] turned to the left by so many radians."""
    xp = vector.__array_namespace__()
    cos, sin, x, y = xp.cos(angle), xp.sin(angle), vector[..., 0], vector[..., 1]
    return xp.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)


def turn_world(quaternion: Array, angle: Array) -> Array:
    """The orientation [..., (w, x, y, z)] of a body in a world turned about the vertical."""
    xp = quaternion.__array_namespace__()
    cos, sin = xp.cos(angle / 2), xp.sin(angle / 2)
    w, x, y, z = (quaternion[..., i] for i in range(4))
    return xp.stack(
        [cos * w - sin * z, cos * x - sin * y, cos * y + sin * x, cos * z + sin * w], axis=-1
    )


def turn_body(quaternion: Array, angle: Array) -> Array:
    """The orientation of a body whose own axes were turned about its vertical."""
    xp = quaternion.__array_namespace__()
    cos, sin = xp.cos(angle / 2), xp.sin(angle / 2)
    w, x, y, z = (quaternion[..., i] for i in range(4))
    return xp.stack(
        [cos * w - sin * z, cos * x + sin * y, cos * y - sin * x, cos * z + sin * w], axis=-1
    )


def heading(quaternion: Array) -> Array:
    """Which way a body's own x axis points, in radians to the left of the world's."""
    xp = quaternion.__array_namespace__()
    w, x, y, z = (quaternion[..., i] for i in range(4))
    return xp.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def upper_half(quaternion: Array) -> Array:
    """Of q and -q, which are the same orientation, the one whose first number is not negative."""
    xp = quaternion.__array_namespace__()
    return xp.where(quaternion[..., :1] < 0, -quaternion, quaternion)
