"""A four-legged ant that must go to a hidden place, or in a hidden direction."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ertrl.envs.family import Option
from ertrl.envs.grids import paper_line, released_line
from ertrl.envs.physics import MujocoFamily, MujocoSimulation, join


class AntSimulation(MujocoSimulation):
    """Stock Ant; the outcome of a step is where the torso is then."""

    asset = "ant.xml"
    frame_skip = 5
    noise = 0.1
    velocity_noise = "normal"

    def observe(self) -> np.ndarray:
        """Positions and velocities, all of them."""
        return join(self.qpos, self.qvel)

    def outcome(self, before: np.ndarray) -> np.ndarray:
        """Horizontal position of the torso."""
        return self.qpos[:, :2].copy()


class AntDirSimulation(AntSimulation):
    """The outcome of a step is how fast the torso moved; falling or flying ends the episode."""

    def __init__(self, size: int, threads: int | None = None, with_position: bool = True):
        """`with_position` puts x and y into the observation."""
        super().__init__(size, threads)
        self._first = 0 if with_position else 2

    def observe(self) -> np.ndarray:
        """Positions, with or without x and y, and velocities."""
        return join(self.qpos[:, self._first :], self.qvel)

    def outcome(self, before: np.ndarray) -> np.ndarray:
        """Mean velocity in x and y over the step."""
        return (self.qpos[:, :2] - before) / self.dt

    def terminated(self) -> np.ndarray:
        """The torso must stay between 0.2 and 1 m high."""
        height = self.qpos[:, 2]
        return (height < 0.2) | (height > 1.0)


class AntGoal(MujocoFamily):
    """Go to a goal. It is not observed: it must be inferred from rewards."""

    name = "ant-goal"
    summary = "a four-legged ant that must find its hidden goal around it"
    observation_dim = 29
    action_dim = 8
    parameter_names = ("goal_x", "goal_y")
    varies = "reward"
    simulation = AntSimulation
    layout = (("qpos", 15), ("qvel", 14))

    @cached_property
    def parameters(self) -> np.ndarray:
        """Goals on half circles in front: radii 0.8 and 1.2; out of distribution 1.6.

        The released code has the same ones. Its extreme goals are behind the ant, at radius 1.6;
        ten of them fill the half circle here (there, a forgotten argument bunched them up).
        """
        half_circle = np.radians(np.linspace(-90, 90, 10))
        between = (half_circle[0:-1:2] + half_circle[1::2]) / 2
        groups = [(0.8, half_circle), (1.2, half_circle), (0.8, between), (1.2, between)]
        groups.append((1.6, half_circle))
        if self.options["split"] == "released":
            groups.append((1.6, np.radians(np.linspace(90, 270, 12)[1:-1])))
        return np.concatenate([r * np.stack([np.cos(a), np.sin(a)], axis=1) for r, a in groups])

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Minus the distance to the goal along the axes, minus a price on effort."""
        distance = np.abs(outcome - parameters).sum(axis=-1)
        return -distance - 0.1 * np.square(action).sum(axis=-1)


class AntDir(MujocoFamily):
    """Run in a direction. It is not observed: it must be inferred from rewards."""

    name = "ant-dir"
    summary = "a four-legged ant that must run in a hidden direction"
    action_dim = 8
    parameter_names = ("direction",)
    varies = "reward"
    choices: ClassVar[Mapping[str, tuple[Option, ...]]] = {
        **MujocoFamily.choices,
        "observation_dim": (29, 27),
    }

    def __init__(self, **options: Any):
        """Observe 29 numbers as the paper says, or 27 (no x and y) as the released code does."""
        super().__init__(**options)
        self.observation_dim = int(self.options["observation_dim"])
        position = ("qpos", 15) if self.observation_dim == 29 else ("qpos[2:]", 13)
        self.layout = (position, ("qvel", 14))

    @cached_property
    def parameters(self) -> np.ndarray:
        """Angles in radians, see `directions`."""
        return directions(str(self.options["split"]))

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> AntDirSimulation:
        """All tasks move alike."""
        return AntDirSimulation(len(parameters), threads, self.observation_dim == 29)

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Velocity in the wanted direction and 1 for being alive, minus a price on effort."""
        return speed_along(outcome, parameters) + 1 - 0.5 * np.square(action).sum(axis=-1)


def directions(split: str) -> np.ndarray:
    """Paper: within 90 degrees of straight ahead, out of distribution within 135.

    Released: multiples of 9 degrees with the training tasks from 90 to 261, that is to the rear.
    """
    if split == "paper":
        return np.radians(paper_line(-90, 90, margin=45))[:, None]
    return np.radians(released_line(0, 9))[:, None]


def speed_along(velocity: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Component of velocity [..., 2] in direction [..., 1]."""
    angle = direction[..., 0]
    return velocity[..., 0] * np.cos(angle) + velocity[..., 1] * np.sin(angle)


FAMILIES = (AntGoal, AntDir)
