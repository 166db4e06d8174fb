"""Tasks of Meta-World's ML1 whose goal is hidden: reach, push and pick-place.

Meta-World is an extra. Its scripted experts, which see the goal, are what data is recorded from.
"""

import warnings
from functools import cache, partial
from importlib.metadata import version
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.envs.gym_family import GymFamily
from ertrl.envs.physics import mujoco_module
from ertrl.envs.tasks import box_of_tasks
from ertrl.errors import ConfigError, MissingExtra
from ertrl.plugins import require

KNOWN = ("3.0.", "3.1.")
"""Versions of Meta-World that the repair below is for."""
FRAME, OBJECTS = 11, 7
"""Hand, gripper and one object; Meta-World has room for another object, which is always empty."""
OBJECT_LOW, OBJECT_HIGH = (-0.1, 0.6, 0.02), (0.1, 0.64, 0.02)
"""Where the object starts: the part of ML1's box that no goal is too close to."""
CLOSEST = 0.15
"""Between that and a goal, on the table; Meta-World asks for it."""
WELD = [0.0] * 6 + [-1.0, 0.0, 0.0, 0.0, 5.0]
"""How Meta-World ties the hand to where an action moves it; MuJoCo has more numbers there now."""


@cache
def _environment(name: str) -> type[Any]:
    """Meta-World's environment, repaired for this MuJoCo, with one model for all of a process.

    Of its model, these tasks change only where the goal is drawn.
    """
    original = _part("metaworld.envs", f"Sawyer{name}EnvV3")

    class Environment(original):
        def _initialize_simulation(self) -> tuple[Any, Any]:
            if name not in _models:
                _models[name] = super()._initialize_simulation()[0]
            return _models[name], mujoco_module().MjData(_models[name])

        def reset_mocap_welds(self) -> None:
            welds = self.model.eq_type == mujoco_module().mjtEq.mjEQ_WELD
            self.model.eq_data[welds] = 0
            self.model.eq_data[welds, : len(WELD)] = WELD

        def touching_object(self, object_geom_id: int) -> bool:
            """What Meta-World says, without its loops over contacts: a quarter of a step's time."""
            pairs, address = self.data.contact.geom, self.data.contact.efc_address
            of_object = (pairs == object_geom_id).any(axis=1)

            def presses(pad: str) -> bool:
                touching = of_object & (pairs == self.data.geom(pad).id).any(axis=1)
                return sum(self.data.efc_force[address[touching]]) > 0

            return presses("leftpad_geom") and presses("rightpad_geom")

    return Environment


_models: dict[str, Any] = {}


def _part(module: str, name: str) -> Any:
    """Something of Meta-World, if it is a version that we know."""
    found = getattr(require(module, "metaworld"), name, None)
    if found is None or not version("metaworld").startswith(KNOWN):
        raise MissingExtra(
            f"Meta-World {version('metaworld')} is installed; its repair for MuJoCo 4 is written "
            "for 3.0 and 3.1. Install one of them: pip install 'metaworld>=3,<3.2'"
        )
    return found


class HiddenGoal(gymnasium.Env):
    """One goal of an ML1 task. Where the object starts is drawn at each reset."""

    observation_space = Box(-np.inf, np.inf, (2 * FRAME,), np.float32)
    action_space = Box(-1.0, 1.0, (4,), np.float32)

    def __init__(self, name: str, task: dict[str, float]):
        self._env = _environment(name)()
        self._env._freeze_rand_vec = self._env._set_task_called = True
        self._goal = _goal(task)
        away = self._goal[:2] - np.clip(self._goal[:2], OBJECT_LOW[:2], OBJECT_HIGH[:2])
        if np.linalg.norm(away) < CLOSEST:  # Meta-World would wait for another one, for ever
            raise ConfigError(
                f"a goal lies at least {CLOSEST} m from where the object may start, x "
                f"{OBJECT_LOW[0]} to {OBJECT_HIGH[0]}, y {OBJECT_LOW[1]} to {OBJECT_HIGH[1]}; got "
                f"{self._goal[:2].tolist()}"
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        start = self.np_random.uniform(OBJECT_LOW, OBJECT_HIGH)
        self._env._last_rand_vec = np.concatenate([start, self._goal])
        return _seen(self._env.reset()[0]), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, _, truncated, info = self._env.step(action)
        return _seen(observation), float(reward), False, truncated, {"success": info["success"]}


def _goal(task: dict[str, float]) -> np.ndarray:
    """Three numbers; where a task has two, Meta-World puts the third on the table."""
    return np.array([*task.values(), 0.0])[:3]


def _seen(observation: np.ndarray) -> np.ndarray:
    """The newest frame and the one before, without the places that are always empty."""
    frames = observation[: 2 * (FRAME + OBJECTS)].reshape(2, -1)
    return frames[:, :FRAME].ravel()


class MetaWorld(GymFamily):
    """A goal that is hidden from the observation, in the box that ML1 draws goals from.

    Training and held-out goals lie in its inner part, goals out of distribution on its surface.
    """

    task: ClassVar[str]
    """In the names of Meta-World's classes."""
    goal_low: ClassVar[tuple[float, ...]]
    goal_high: ClassVar[tuple[float, ...]]
    layout = (("hand", 3), ("gripper", 1), ("object", 3), ("turn", 4), ("frame_before", FRAME))
    action_dim = 4
    action_low = [-1.0] * 4
    action_high = [1.0] * 4
    horizon = 200
    varies = "reward"

    def __init__(self):
        low, high = np.array(self.goal_low), np.array(self.goal_high)
        shrink = (high - low) / 8
        goals = box_of_tasks(low + shrink, high - shrink, margin=1 / 3)
        tasks = [dict(zip(("goal_x", "goal_y", "goal_z"), goal, strict=False)) for goal in goals]
        super().__init__(partial(HiddenGoal, self.task), tasks, expert=self._act)

    def _act(self, observation: np.ndarray, task: dict[str, float]) -> np.ndarray:
        """Meta-World's scripted policy, which is shown the goal."""
        frames = np.zeros((2, FRAME + OBJECTS))
        frames[:, :FRAME] = observation.reshape(2, FRAME)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "constants may be too high": it clips
            return _policy(self.task).get_action(np.concatenate([frames.ravel(), _goal(task)]))


@cache
def _policy(name: str) -> Any:
    return _part("metaworld.policies", f"Sawyer{name}V3Policy")()


class MetaWorldReach(MetaWorld):
    name = "metaworld-reach"
    summary = "a robot arm that must find a hidden point in space (Meta-World)"
    task = "Reach"
    goal_low, goal_high = (-0.1, 0.8, 0.05), (0.1, 0.9, 0.3)


class MetaWorldPush(MetaWorld):
    name = "metaworld-push"
    summary = "a robot arm that must push a puck to a hidden place (Meta-World)"
    task = "Push"
    goal_low, goal_high = (-0.1, 0.8), (0.1, 0.9)


class MetaWorldPickPlace(MetaWorld):
    name = "metaworld-pick-place"
    summary = "a robot arm that must carry a puck to a hidden place (Meta-World)"
    task = "PickPlace"
    goal_low, goal_high = (-0.1, 0.8, 0.05), (0.1, 0.9, 0.3)


FAMILIES = (MetaWorldReach, MetaWorldPush, MetaWorldPickPlace)
