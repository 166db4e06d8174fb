"""A humanoid that must walk in a hidden direction."""

from typing import Any

import numpy as np

from ertrl.envs import symmetry
from ertrl.envs.families.ant import DirectionFamily
from ertrl.envs.physics import MujocoSimulation, join


class HumanoidSimulation(MujocoSimulation):
    """Stock Humanoid, seen as gym's version 2 saw it."""

    asset = "humanoid.xml"
    frame_skip = 5
    control_limit = 0.4
    noise = 0.01
    velocity_noise = "uniform"
    action_dim = 17
    layout = (
        ("qpos[2:]", 22),
        ("qvel", 23),
        ("cinert", 140),
        ("cvel", 84),
        ("qfrc_actuator", 23),
        ("contact forces (zero)", 84),
    )

    def __init__(self, size: int, threads: int | None = None):
        super().__init__(size, threads)
        self._observed = [self.bind(field) for field in ("cinert", "cvel", "qfrc_actuator")]
        self._centre = self.bind("subtree_com")[:, self.model.body("torso").id, :2]
        # The released code never computed contact forces, so these entries were always zero.
        self._no_contact_forces = np.zeros((size, 6 * self.model.nbody))

    def observe(self) -> np.ndarray:
        return join(self.qpos[:, 2:], self.qvel, *self._observed, self._no_contact_forces)

    def position(self) -> np.ndarray:
        """Horizontal position of the centre of mass."""
        return self._centre.copy()

    def terminated(self) -> np.ndarray:
        height = self.qpos[:, 2]
        return (height < 1.0) | (height > 2.0)


class HumanoidSymmetry(symmetry.Symmetry):
    """The world is turned so that the way to go is ahead.

    Positions and velocities say all there is to say: inertias and forces follow from them.
    """

    turns = np.eye(HumanoidSimulation.action_dim, dtype=np.float32)[None]
    size = 45

    def view(self, observation: Any, parameters: Any) -> tuple[Any, Any]:
        """Height, orientation, joints, velocities; all but two of them as they are."""
        xp, direction = observation.__array_namespace__(), parameters[..., 0]
        orientation = symmetry.turn_world(observation[..., 1:5], -direction)
        parts = [
            observation[..., :1],
            symmetry.upper_half(orientation),
            observation[..., 5:22],
            symmetry.turn_vector(observation[..., 22:24], -direction),
            observation[..., 24 : self.size],
        ]
        return xp.concat(parts, axis=-1), xp.zeros(direction.shape, dtype=xp.int32)


class HumanoidDir(DirectionFamily):
    name = "humanoid-dir"
    summary = "a humanoid that must walk in a hidden direction"
    symmetry = HumanoidSymmetry()
    simulation = HumanoidSimulation

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """1.25 per m/s in the wanted direction and 5 for being alive, minus a price on effort.

        1.25 is 0.25 times 5: the released code divides a displacement over five physics steps by
        the length of one.
        """
        effort = np.square(HumanoidSimulation.control_limit * action).sum(axis=-1)
        return 1.25 * self.speed_along(outcome, parameters) + 5 - 0.1 * effort


FAMILIES = (HumanoidDir,)
