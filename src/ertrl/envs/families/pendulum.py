"""Gymnasium's Pendulum with other physics: a family through the door that is open to everyone."""

import gymnasium

from ertrl.envs.gym_family import GymFamily
from ertrl.envs.tasks import box_of_tasks

TASKS = box_of_tasks(low=(0.6, 0.7), high=(1.2, 1.1), margin=0.4)
TORQUE = 2.0


def _make(task: dict[str, float]) -> gymnasium.Env:
    env = gymnasium.make("Pendulum-v1")
    for name, value in zip("ml", task.values(), strict=True):
        setattr(env.unwrapped, name, value)
    return env


class PendulumPhysics(GymFamily):
    """Swing a rod up and hold it there; how heavy and how long it is must be inferred."""

    name = "pendulum-physics"
    summary = "swing up a rod of unknown mass and length (Gymnasium's Pendulum)"
    layout = (("cos_angle", 1), ("sin_angle", 1), ("speed", 1))
    action_dim = 1
    action_low = [-TORQUE]  # noqa: RUF012 (as Family declares it)
    action_high = [TORQUE]  # noqa: RUF012
    horizon = 200
    varies = "dynamics"

    def __init__(self):
        super().__init__(_make, [{"mass": mass, "length": length} for mass, length in TASKS])


FAMILIES = (PendulumPhysics,)
