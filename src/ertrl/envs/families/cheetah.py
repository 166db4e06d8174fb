"""A planar cheetah that must run at a hidden velocity."""

import numpy as np

from ertrl.envs.physics import MujocoFamily, MujocoSimulation, join
from ertrl.envs.tasks import paper_line, released_line


class CheetahSimulation(MujocoSimulation):
    """Stock HalfCheetah."""

    asset = "half_cheetah.xml"
    frame_skip = 5
    noise = 0.1
    velocity_noise = "normal"
    axes = 1
    action_dim = 6
    layout = (("qpos[1:]", 8), ("qvel", 9), ("torso position", 3))

    def __init__(self, size: int, threads: int | None = None):
        super().__init__(size, threads)
        self._torso = self.bind("xpos")[:, self.model.body("torso").id]

    def observe(self) -> np.ndarray:
        """Joint positions without x, joint velocities, torso position (a physics step old)."""
        return join(self.qpos[:, 1:], self.qvel, self._torso)


class CheetahVel(MujocoFamily):
    """Run at a given velocity. It is not observed: it must be inferred from rewards.

    Paper: 1 to 2 m/s, out of distribution 0.5 to 2.5. Released: 0.1 to 4.0.
    """

    name = "cheetah-vel"
    summary = "a planar cheetah that must run at a hidden velocity"
    parameter_names = ("velocity",)
    paper_tasks = paper_line(1.0, 2.0, margin=0.5)
    released_tasks = released_line(0.1, 0.1)
    varies = "reward"
    simulation = CheetahSimulation

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        return -np.abs(outcome - parameters)[..., 0] - 0.05 * np.square(action).sum(axis=-1)


FAMILIES = (CheetahVel,)
