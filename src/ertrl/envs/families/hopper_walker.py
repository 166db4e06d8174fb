"""One or two legs that must run as fast as they can with an unknown mass or friction."""

from typing import ClassVar

import numpy as np

from ertrl.envs.physics import MujocoFamily, MujocoSimulation, join
from ertrl.envs.tasks import paper_line, released_line
from ertrl.errors import ConfigError


class RunnerSimulation(MujocoSimulation):
    noise = 0.005
    velocity_noise = "uniform"
    axes = 1

    def observe(self) -> np.ndarray:
        return join(self.qpos[:, 1:], np.clip(self.qvel, -10, 10))


class HopperSimulation(RunnerSimulation):
    """Stock Hopper."""

    asset = "hopper.xml"
    frame_skip = 4
    action_dim = 3
    layout = (("qpos[1:]", 5), ("clipped qvel", 6))

    def terminated(self) -> np.ndarray:
        moving = np.concatenate([self.qpos[:, 2:], self.qvel], axis=1)
        wild = (np.abs(moving) >= 100).any(axis=1)
        return wild | (self.qpos[:, 1] <= 0.7) | (np.abs(self.qpos[:, 2]) >= 0.2)


class WalkerSimulation(RunnerSimulation):
    """Walker2d with five physics steps per control step (Gymnasium's has four)."""

    asset = "walker2d.xml"
    frame_skip = 5
    action_dim = 6
    layout = (("qpos[1:]", 8), ("clipped qvel", 9))

    def terminated(self) -> np.ndarray:
        height, angle = self.qpos[:, 1], self.qpos[:, 2]
        return (height <= 0.8) | (height >= 2.0) | (np.abs(angle) >= 1.0)


class ScaledFamily(MujocoFamily):
    """Tasks whose physics is the stock model's times a factor.

    Paper: 1.5^-1 to 1.5^1, out of distribution 1.5^+-1.5. Released: 1.5^-2 to 1.5^2.
    """

    paper_tasks = 1.5 ** paper_line(-1, 1, margin=0.5)
    released_tasks = 1.5 ** released_line(-2, 4 / 39)
    varies = "dynamics"
    scaled: ClassVar[tuple[str, ...]]
    """MuJoCo model fields that the factor multiplies."""

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> MujocoSimulation:
        factor = np.asarray(parameters, np.float64)[:, 0]
        if not (factor > 0).all():
            name = self.parameter_names[0]
            raise ConfigError(f"{self.name}: {name} must be positive, got {factor.min():g}")
        refresh = bool(self.options.get("refresh_constants", False))
        return self.simulation(len(factor), threads, dict.fromkeys(self.scaled, factor), refresh)

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        return outcome[..., 0] + 1 - 1e-3 * np.square(action).sum(axis=-1)


class MassFamily(ScaledFamily):
    """Every body's mass and inertia is scaled.

    `refresh_constants=False` is what the released code does: what MuJoCo derives from masses, such
    as how stiff contacts are, stays that of the stock model.
    """

    parameter_names = ("mass_factor",)
    scaled = ("body_mass", "body_inertia")
    choices = MujocoFamily.choices | {"refresh_constants": (True, False)}


class FrictionFamily(ScaledFamily):
    """Sliding, spinning and rolling friction of every geom is scaled, floor included.

    MuJoCo takes the larger friction of the two geoms in contact, so that every contact scales.
    """

    parameter_names = ("friction_factor",)
    scaled = ("geom_friction",)


class HopperMass(MassFamily):
    name = "hopper-mass"
    summary = "a one-legged hopper of unknown mass"
    simulation = HopperSimulation


class HopperFriction(FrictionFamily):
    name = "hopper-friction"
    summary = "a one-legged hopper on ground of unknown friction"
    simulation = HopperSimulation


class WalkerMass(MassFamily):
    name = "walker-mass"
    summary = "a two-legged walker of unknown mass"
    simulation = WalkerSimulation


class WalkerFriction(FrictionFamily):
    name = "walker-friction"
    summary = "a two-legged walker on ground of unknown friction"
    simulation = WalkerSimulation


FAMILIES = (HopperFriction, HopperMass, WalkerFriction, WalkerMass)
