"""A four-legged ant that must go to a hidden place, or in a hidden direction."""

from typing import Any

import numpy as np

from ertrl.envs.physics import MujocoFamily, MujocoSimulation, join
from ertrl.envs.tasks import paper_line, released_line


class AntSimulation(MujocoSimulation):
    """Stock Ant; the outcome of a step is where the torso is then."""

    asset = "ant.xml"
    frame_skip = 5
    noise = 0.1
    velocity_noise = "normal"
    action_dim = 8
    layout = (("qpos", 15), ("qvel", 14))

    def observe(self) -> np.ndarray:
        return join(self.qpos, self.qvel)

    def outcome(self, before: np.ndarray) -> np.ndarray:
        """Horizontal position of the torso."""
        return self.qpos[:, :2].copy()


class AntDirSimulation(AntSimulation):
    """The outcome of a step is how fast the torso moved; falling or flying ends the episode."""

    def outcome(self, before: np.ndarray) -> np.ndarray:
        """Mean velocity in x and y over the step."""
        return (self.qpos[:, :2] - before) / self.dt

    def terminated(self) -> np.ndarray:
        height = self.qpos[:, 2]
        return (height < 0.2) | (height > 1.0)


class UnplacedAntDirSimulation(AntDirSimulation):
    """An ant that does not see where it is, as in the released code."""

    layout = (("qpos[2:]", 13), ("qvel", 14))

    def observe(self) -> np.ndarray:
        return join(self.qpos[:, 2:], self.qvel)


def _goals(*arcs: tuple[float, np.ndarray]) -> np.ndarray:
    """Places at (radius, angles)."""
    return np.concatenate([r * np.stack([np.cos(a), np.sin(a)], axis=1) for r, a in arcs])


FRONT = np.radians(np.linspace(-90, 90, 10))
BETWEEN = (FRONT[0:-1:2] + FRONT[1::2]) / 2
PAPER_ARCS = ((0.8, FRONT), (1.2, FRONT), (0.8, BETWEEN), (1.2, BETWEEN), (1.6, FRONT))
REAR = np.radians(np.linspace(90, 270, 12)[1:-1])


class AntGoal(MujocoFamily):
    """Go to a goal. It is not observed: it must be inferred from rewards.

    Goals lie on half circles in front: radii 0.8 and 1.2; out of distribution 1.6. The released
    code has the same ones. Its extreme goals are behind the ant, at radius 1.6; ten of them fill
    the half circle here (there, a forgotten argument bunched them up).
    """

    name = "ant-goal"
    summary = "a four-legged ant that must find its hidden goal around it"
    parameter_names = ("goal_x", "goal_y")
    paper_tasks = _goals(*PAPER_ARCS)
    released_tasks = _goals(*PAPER_ARCS, (1.6, REAR))
    varies = "reward"
    simulation = AntSimulation

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        distance = np.abs(outcome - parameters).sum(axis=-1)
        return -distance - 0.1 * np.square(action).sum(axis=-1)


class DirectionFamily(MujocoFamily):
    """Go in a direction. It is not observed: it must be inferred from rewards.

    Paper: within 90 degrees of straight ahead, out of distribution within 135. Released: multiples
    of 9 degrees with the training tasks from 90 to 261, that is to the rear.
    """

    parameter_names = ("direction",)
    paper_tasks = np.radians(paper_line(-90, 90, margin=45))
    released_tasks = np.radians(released_line(0, 9))
    varies = "reward"

    @staticmethod
    def speed_along(velocity: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Component of velocity [..., 2] in direction [..., 1]."""
        angle = direction[..., 0]
        return velocity[..., 0] * np.cos(angle) + velocity[..., 1] * np.sin(angle)


class AntDir(DirectionFamily):
    """Run in a direction."""

    name = "ant-dir"
    summary = "a four-legged ant that must run in a hidden direction"
    choices = DirectionFamily.choices | {"observation_dim": (29, 27)}

    def __init__(self, **options: Any):
        """Observe 29 numbers as the paper says, or 27 (no x and y) as the released code does."""
        unplaced = options.get("observation_dim") == 27
        self.simulation = UnplacedAntDirSimulation if unplaced else AntDirSimulation
        super().__init__(**options)

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        return self.speed_along(outcome, parameters) + 1 - 0.5 * np.square(action).sum(axis=-1)


FAMILIES = (AntGoal, AntDir)
