"""A point in the plane: the smallest family of each kind, for tests, demos and debugging."""

from collections.abc import Sequence

import numpy as np

from ertrl.envs.family import Family, Simulation, Step
from ertrl.envs.tasks import paper_line

STEP_SIZE = 0.1
ANGLES = paper_line(0, np.pi, margin=np.pi / 4)


def _winds() -> np.ndarray:
    """Winds that fill the square of half width 0.05; out of distribution: a ring at 0.065."""
    golden = 1.32471795724474602596  # the plastic number: its powers fill the square evenly
    inside = (0.5 + np.arange(1, 31)[:, None] * [1 / golden, 1 / golden**2]) % 1
    inside = 0.05 * (2 * inside - 1)
    held_out = np.arange(30) % 3 == 2
    angles = 2 * np.pi * (np.arange(10) + 0.5) / 10
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    ring = 0.065 * ring / np.abs(ring).max(axis=1, keepdims=True)
    return np.concatenate([inside[~held_out], inside[held_out], ring])


class PointSimulation(Simulation):
    """Positions that move by 0.1 x action + drift. They start at the origin, without noise."""

    def __init__(self, drift: np.ndarray):
        self.size = len(drift)
        self._drift = drift
        self._position = np.zeros((self.size, 2))

    def reset(self, seeds: Sequence[int], rows: np.ndarray | None = None) -> np.ndarray:
        """Back to the origin; there is nothing random about it."""
        self._position[slice(None) if rows is None else rows] = 0.0
        return self._position.astype(np.float32)

    def step(self, action: np.ndarray) -> Step:
        """The outcome of a step is where it led."""
        self._position = self._position + STEP_SIZE * np.clip(action, -1, 1) + self._drift
        never = np.zeros(self.size, bool)
        observation = self._position.astype(np.float32)
        return Step(observation, observation, never, ~np.isfinite(self._position).all(axis=1))

    def state(self) -> dict[str, np.ndarray]:
        return {"position": self._position.copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._position = state["position"].copy()


class PointRobot(Family):
    """Reach a goal on the unit half circle. The goal is not observed: it must be inferred."""

    name = "point-robot"
    summary = "a point that must find its hidden goal on a half circle"
    layout = (("position", 2),)
    action_dim = 2
    horizon = 20
    parameter_names = ("goal_x", "goal_y")
    varies = "reward"

    # 20 goals on the arc, 10 midway between two of them, 5 beyond each end of the arc.
    parameters = np.concatenate([np.cos(ANGLES), np.sin(ANGLES)], axis=1)

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> Simulation:
        return PointSimulation(np.zeros((len(parameters), 2)))

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        return -np.linalg.norm(outcome - parameters, axis=-1)


class PointRobotWind(PointRobot):
    """Reach the same goal (1, 0) in every task, against a wind that differs from task to task."""

    name = "point-robot-wind"
    summary = "a point that must reach one goal against an unknown wind"
    parameter_names = ("drift_x", "drift_y")
    parameters = _winds()
    goal = np.array([1.0, 0.0])
    varies = "dynamics"

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> Simulation:
        return PointSimulation(np.asarray(parameters, np.float64))

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        return -np.linalg.norm(outcome - self.goal, axis=-1)


FAMILIES = (PointRobot, PointRobotWind)
