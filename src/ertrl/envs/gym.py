"""Every task as a Gymnasium environment: one, or many side by side.

Importing this module (or `ertrl.envs`) registers the ids, as Gymnasium 1.x expects; it has no
plug-in entry points. `gymnasium.make("ertrl.envs:ertrl/PointRobot-v0", task=3)` imports and makes
in one go. `task` is an index of the family's table or the parameters of a task of one's own.
Further keywords are options of the family, as in `make_family`.

A simulation that diverged cannot go on: its episode is truncated with `info["diverged"]` true and
a warning, and its last transition is not to be learned from.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ertrl.envs.families import installed_families, made_of, make_family
from ertrl.envs.family import Family, Option, Task
from ertrl.envs.physics import MujocoSimulation
from ertrl.errors import ConfigError, ErtrlError

OBSERVATION_LIMIT = 1e10
"""MuJoCo declares a simulation diverged beyond this; no valid observation exceeds it."""


def env_id(family: str) -> str:
    """'cheetah-vel' -> 'ertrl/CheetahVel-v0'."""
    return f"ertrl/{''.join(word.capitalize() for word in family.split('-'))}-v0"


def _spaces(family: Family) -> tuple[Box, Box]:
    limit, actions = OBSERVATION_LIMIT, family.actions
    return (
        Box(-limit, limit, (family.observation_dim,), np.float32),
        Box(actions.low.astype(np.float32), actions.high.astype(np.float32)),
    )


def _made(family: str | Family, options: dict[str, Option]) -> Family:
    if isinstance(family, str):
        return make_family(family, **options)
    if options:
        raise ConfigError(f"options {sorted(options)} are for a family given by name")
    return family


def _warn_of_divergence(family: Family, rows: str = "") -> None:
    gymnasium.logger.warn(f"{family.name}: the simulation diverged{rows}; drop that episode")


class FamilyEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One task of a family. `gymnasium.make` adds the family's time limit."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": ["rgb_array"],
        "render_fps": 20,
    }

    def __init__(
        self,
        family: str | Family,
        task: Task = 0,
        render_mode: str | None = None,
        **options: Option,
    ):
        """`task` is an index of the table or parameters of one's own.

        The render mode "rgb_array" is for MuJoCo families and needs EGL or OSMesa.
        """
        self.family = _made(family, options)
        self.parameters = self.family.task_parameters(task)
        self.observation_space, self.action_space = _spaces(self.family)
        self.render_mode = render_mode
        self._simulation = self.family.simulate(self.parameters[None], threads=1)
        self._painter = None
        if isinstance(self._simulation, MujocoSimulation):
            self.metadata = {**self.metadata, "render_fps": round(1 / self._simulation.dt)}
        else:
            self.metadata = {"render_modes": []}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode; Gymnasium's generator draws the seed of the simulation."""
        super().reset(seed=seed)
        observation = self._simulation.reset([int(self.np_random.integers(2**31))])[0]
        return observation.copy(), {"parameters": self.parameters.copy()}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        action = self.family.actions.cut(action)[None]
        step = self._simulation.step(action)
        reward = self.family.reward(step.outcome, action, self.parameters[None])[0]
        diverged = bool(step.diverged[0])
        if diverged:
            _warn_of_divergence(self.family)
        info = {"parameters": self.parameters.copy(), "outcome": step.outcome[0]}
        info["diverged"] = diverged
        if step.success is not None and not np.isnan(step.success[0]):
            info["success"] = float(step.success[0])
        seen = step.observation[0].copy()  # the simulation may write the next one over it
        return seen, float(reward), bool(step.terminated[0]), diverged, info

    def render(self) -> np.ndarray:
        """A picture [height, width, 3] of the current state."""
        from ertrl.envs.render import Painter, drawable  # graphics load only where asked for

        model, data = drawable(self.family, self._simulation).snapshot(0)
        if self._painter is None:
            self._painter = Painter(model)
        names = self.family.parameter_names
        return self._painter.draw(data, dict(zip(names, self.parameters.tolist(), strict=True)))

    def close(self) -> None:
        if self._painter is not None:
            self._painter.close()
            self._painter = None


class FamilyVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many (task, episode) pairs on one simulation, row by row what `SyncVectorEnv` would give.

    Rows restart in the step after their episode ended (autoreset mode NEXT_STEP).
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        family: str | Family,
        num_envs: int | None = None,
        task: Task = 0,
        tasks: Sequence[Task] | None = None,
        max_episode_steps: int | None = None,
        **options: Option,
    ):
        """All rows get `task`, or row i gets `tasks[i]`."""
        self.family = _made(family, options)
        if tasks is None:
            tasks = [task] * (1 if num_envs is None else num_envs)
        elif num_envs not in (None, len(tasks)):
            raise ConfigError(
                f"{len(tasks)} tasks for num_envs={num_envs}: give one task per row, or `task=` "
                "for the same one everywhere"
            )
        self.parameters = np.stack([self.family.task_parameters(task) for task in tasks])
        self.num_envs = len(tasks)
        self.single_observation_space, self.single_action_space = _spaces(self.family)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        limit = self.family.horizon if max_episode_steps is None else max_episode_steps
        self._limit = math.inf if limit == -1 else limit  # -1 is Gymnasium's word for no limit
        self._simulation = self.family.simulate(self.parameters)
        self._random = [seeding.np_random()[0] for _ in tasks]
        self._elapsed = np.zeros(self.num_envs, int)
        self._ended = np.zeros(self.num_envs, bool)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all rows: row i from seed + i, or from seed[i]."""
        if isinstance(seed, (int, np.integer)):
            seed = [int(seed) + row for row in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else seed
        if len(seeds) != self.num_envs:
            raise ConfigError(f"{len(seeds)} seeds for {self.num_envs} rows")
        for row, row_seed in enumerate(seeds):
            if row_seed is not None:
                self._random[row] = seeding.np_random(row_seed)[0]
        self._elapsed[:] = 0
        self._ended[:] = False
        observation = self._restart(np.arange(self.num_envs))
        return observation, self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One control step in every row, except that rows whose episode ended start anew."""
        restarted = self._ended
        going = ~restarted
        actions = self.family.actions.cut(actions)
        step = self._simulation.step(actions)
        reward = self.family.reward(step.outcome, actions, self.parameters)
        observation = step.observation.copy()
        if restarted.any():
            observation = self._restart(np.flatnonzero(restarted))
        self._elapsed = np.where(restarted, 0, self._elapsed + 1)
        terminated = step.terminated & going
        diverged = step.diverged & going
        truncated = diverged | (self._elapsed >= self._limit)
        self._ended = terminated | truncated
        if diverged.any():
            _warn_of_divergence(self.family, f" in rows {np.flatnonzero(diverged).tolist()}")
        outcome = np.where(going[:, None], step.outcome, 0)
        info = self._info() | {"outcome": outcome, "_outcome": going}
        info |= {"diverged": diverged, "_diverged": going.copy()}
        if step.success is not None:
            known = going & ~np.isnan(step.success)
            info |= {"success": np.where(known, step.success, 0.0), "_success": known}
        return observation, np.where(going, reward, 0.0), terminated, truncated, info

    def _restart(self, rows: np.ndarray) -> np.ndarray:
        """Observations of all rows after the given ones restarted."""
        seeds = [int(self._random[row].integers(2**31)) for row in rows]
        return self._simulation.reset(seeds, rows).copy()

    def _info(self) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, bool)
        return {"parameters": self.parameters.copy(), "_parameters": everywhere}


def register_env(family: Family) -> None:
    """Let `gymnasium.make` know the tasks of a family."""
    gymnasium.registry.pop(env_id(family.name), None)  # a script that runs again, in a notebook
    gymnasium.register(
        env_id(family.name),
        entry_point="ertrl.envs.gym:FamilyEnv",
        vector_entry_point="ertrl.envs.gym:FamilyVectorEnv",
        max_episode_steps=family.horizon,
        kwargs={"family": family.name},
    )


def _register_installed() -> Iterator[ErtrlError]:
    """Let Gymnasium know all families that work; gives what is wrong with the others."""
    try:
        for kind in installed_families():
            try:
                register_env(made_of(kind))
            except ErtrlError as problem:
                yield problem
    except ErtrlError as problem:
        yield problem


for _problem in _register_installed():
    # Seen with `python -W default`: `import ertrl.envs` and commands that need no family go on, and
    # whoever asks for one is told as an error.
    warnings.warn(f"some environments are missing in Gymnasium: {_problem}", ImportWarning, 2)
