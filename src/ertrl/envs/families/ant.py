"""A four-legged ant that must go to a hidden place, or in a hidden direction."""

from typing import Any

import numpy as np

from ertrl.envs import symmetry
from ertrl.envs.physics import MujocoFamily, MujocoSimulation, join
from ertrl.envs.tasks import paper_line, released_line


class AntSimulation(MujocoSimulation):
    """Stock Ant."""

    asset = "ant.xml"
    frame_skip = 5
    noise = 0.1
    velocity_noise = "normal"
    action_dim = 8
    layout = (("qpos", 15), ("qvel", 14))

    def observe(self) -> np.ndarray:
        return join(self.qpos, self.qvel)


class AntGoalSimulation(AntSimulation):
    """The outcome of a step is where the torso is then."""

    def outcome(self, before: np.ndarray) -> np.ndarray:
        return self.position()


class AntDirSimulation(AntSimulation):
    """Falling or flying ends the episode."""

    def terminated(self) -> np.ndarray:
        height = self.qpos[:, 2]
        return (height < 0.2) | (height > 1.0)


class UnplacedAntDirSimulation(AntDirSimulation):
    """An ant that does not see where it is, as in the released code."""

    layout = (("qpos[2:]", 13), ("qvel", 14))

    def observe(self) -> np.ndarray:
        return join(self.qpos[:, 2:], self.qvel)


ANKLES_BEND = np.array([1, 1, 1, -1, 1, -1, 1, 1], np.float32)
"""Hip and ankle of the four legs, counter-clockwise from the front left: the sign that makes all
ankles bend the same way."""


def _turned_actions() -> np.ndarray:
    """Actions as leg after leg, the first leg being each of the four in turn."""
    legs_first = np.roll(np.eye(8, dtype=np.float32), -2, axis=0)  # motors begin at the fourth leg
    legs_first *= ANKLES_BEND[:, None]
    return np.stack([np.roll(legs_first, -2 * first, axis=0) for first in range(4)])


class AntSymmetry(symmetry.Symmetry):
    """The world is turned so that the way to go is ahead, then the leg at the front left is first.

    A turn by a quarter makes every leg the next one, so the ant always faces where it has to go,
    by 45 degrees at most.
    """

    turns = _turned_actions()
    size = 27

    def view(self, observation: Any, parameters: Any) -> tuple[Any, Any]:
        """Height, orientation, joints, velocities; nothing says where it is or which way north."""
        return self.seen_towards(parameters[..., 0], observation)

    def seen_towards(self, direction: Any, observation: Any, *more: Any) -> tuple[Any, Any]:
        """The state (of which x and y do not matter) when `direction` is ahead, and more."""
        xp = observation.__array_namespace__()
        body = observation[..., -27:]
        height, orientation, joints, velocity, spin, joint_velocities = (
            body[..., begin:end]
            for begin, end in ((0, 1), (1, 5), (5, 13), (13, 16), (16, 19), (19, 27))
        )
        orientation = symmetry.turn_world(orientation, -direction)
        first = xp.round(-symmetry.heading(orientation) / symmetry.QUARTER)
        angle = first * symmetry.QUARTER
        orientation = symmetry.upper_half(symmetry.turn_body(orientation, angle))
        first = xp.astype(first, xp.int32) % 4
        legs = (xp.arange(8) + 2 * first[..., None]) % 8
        parts = [
            height,
            orientation,
            xp.take_along_axis(joints * ANKLES_BEND, legs, axis=-1),
            symmetry.turn_vector(velocity[..., :2], -direction),
            velocity[..., 2:],
            symmetry.turn_vector(spin[..., :2], -angle),  # about the body's own axes
            spin[..., 2:],
            xp.take_along_axis(joint_velocities * ANKLES_BEND, legs, axis=-1),
        ]
        return xp.concat([*parts, *more], axis=-1), first


class AntGoalSymmetry(AntSymmetry):
    """The goal is seen from the ant, in the quarter that lies ahead.

    Distances are measured along the axes, so only turns by quarters leave rewards as they are.
    """

    size = 29

    def view(self, observation: Any, parameters: Any) -> tuple[Any, Any]:
        """The goal's place as seen from the ant comes last."""
        xp = observation.__array_namespace__()
        way = parameters - observation[..., :2]
        quarters = xp.round(xp.atan2(way[..., 1], way[..., 0]) / symmetry.QUARTER)
        direction = quarters * symmetry.QUARTER
        return self.seen_towards(direction, observation, symmetry.turn_vector(way, -direction))


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
    symmetry = AntGoalSymmetry()
    simulation = AntGoalSimulation

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
    name = "ant-dir"
    summary = "a four-legged ant that must run in a hidden direction"
    choices = DirectionFamily.choices | {"observation_dim": (29, 27)}
    symmetry = AntSymmetry()

    def __init__(self, **options: Any):
        """Observe 29 numbers as the paper says, or 27 (no x and y) as the released code does."""
        unplaced = options.get("observation_dim") == 27
        self.simulation = UnplacedAntDirSimulation if unplaced else AntDirSimulation
        super().__init__(**options)

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        return self.speed_along(outcome, parameters) + 1 - 0.5 * np.square(action).sum(axis=-1)


FAMILIES = (AntGoal, AntDir)
