"""A family whose simulations are Gymnasium environments with Box spaces.

An environment's inner state cannot be looked into, so a simulation is saved as the seeds and
actions of its running episodes and restored by repeating them: Gymnasium promises that an episode
is a function of these.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.envs.family import Family, Option, Simulation, Step
from ertrl.envs.foreign import Make, Rows, Wanted, blame, make_env, spread
from ertrl.errors import ConfigError, PluginError, SimulationError

Reward = Callable[[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]], np.ndarray]
Expert = Callable[[np.ndarray, dict[str, float]], Any]


class GymFamily(Family):
    """Tasks whose simulations are Gymnasium environments, one per row."""

    processes = 0
    """So many of its own step the environments; none: this one does."""
    _layers: tuple[type, ...] = ()
    """Classes of the first task's environment and of what is wrapped around it."""

    def __init__(
        self,
        make: Make,
        tasks: Sequence[Mapping[str, float]],
        *,
        horizon: int | None = None,
        reward: Reward | None = None,
        expert: Expert | None = None,
        **options: Option,
    ):
        """Look at the first task's environment, unless the class says what it looks like."""
        self.parameter_names = tuple(tasks[0])
        self.parameters = np.array([self._numbers(row, task) for row, task in enumerate(tasks)])
        self._make, self._reward, self._expert = make, reward, expert
        if not hasattr(self, "layout"):
            self._look(horizon)
        super().__init__(**options)

    def _numbers(self, row: int, task: Mapping[str, float]) -> list[float]:
        """Of one task, checked."""
        if tuple(task) != self.parameter_names:
            raise ConfigError(
                f"{self.name}: all tasks have the same numbers in the same order; task 0 has "
                f"{list(self.parameter_names)}, task {row} has {list(task)}"
            )
        for name, value in task.items():
            if not _is_number(value):
                vector = np.iterable(value) and not isinstance(value, (str, bytes))
                hint = f"; a vector is several numbers: {name}_x, {name}_y" if vector else ""
                raise ConfigError(
                    f"{self.name}: task {row} has {name}={value!r}, but a task consists of finite "
                    f"numbers{hint}"
                )
        return [float(value) for value in task.values()]

    def _titles(self, parameters: np.ndarray) -> list[str]:
        """What messages call these tasks; one that is not in the table has no number."""
        same = (parameters[:, None] == self.parameters).all(axis=-1)
        known = zip(parameters, same.any(axis=1), same.argmax(axis=1), strict=True)
        return [
            f"{self.name}, task {f'{number} ' if is_known else ''}{self.named(task)}"
            for task, is_known, number in known
        ]

    def _look(self, horizon: int | None) -> None:
        """Sizes, ends of actions and time limit, as the first task's environment has them."""
        (title,), task = self._titles(self.parameters[:1]), self.named(self.parameters[0])
        env, seen, done = make_env(title, self._make, task)
        self.layout = (("observation", int(np.prod(seen.shape))),)
        self.action_dim = int(np.prod(done.shape))
        self.action_low = done.low.ravel().astype(float).tolist()
        self.action_high = done.high.ravel().astype(float).tolist()
        limit = horizon or (env.spec.max_episode_steps if env.spec else None)
        if not limit and env.has_wrapper_attr("_max_episode_steps"):  # of gymnasium's TimeLimit
            limit = env.get_wrapper_attr("_max_episode_steps")
        if not limit:
            raise ConfigError(f"{self.name}: the environment has no time limit; give horizon=STEPS")
        self.horizon = int(limit)
        env.close()
        while isinstance(env, gymnasium.Wrapper):
            self._layers += (type(env),)
            env = env.env
        self._layers += type(env).__mro__

    @property
    def written(self) -> tuple[Any, ...]:
        return *super().written, self._make, self._reward, self._expert, *self._layers

    def named(self, parameters: np.ndarray) -> dict[str, Any]:
        """Parameters [..., P] by their names."""
        columns = np.moveaxis(np.asarray(parameters), -1, 0)
        values = [c.item() if np.ndim(c) == 0 else c for c in columns]
        return dict(zip(self.parameter_names, values, strict=True))

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> "GymSimulation":
        """One environment per row; in processes, if the family was registered with some."""
        parameters, actions = np.asarray(parameters), self.actions
        box = Box(actions.low.astype(np.float32), actions.high.astype(np.float32))
        tasks, titles = [self.named(row) for row in parameters], self._titles(parameters)
        wanted = Wanted(self._make, tasks, titles, self.observation_dim, box)
        return GymSimulation(self, spread(wanted, self.processes), titles)

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """The environment's own, or what the given function says of observations and action."""
        if self._reward is None:
            return outcome[..., 0]
        before, after = np.split(outcome, 2, axis=-1)
        action, task = self.actions.outward(action), self.named(parameters)
        try:
            reward = np.asarray(self._reward(before, action, after, task))
        except Exception as error:
            blame(self.name, "reward", self._reward, error)
        if reward.shape != outcome.shape[:-1]:
            raise PluginError(
                f"{self.name}: for actions of shape {action.shape}, reward() must give the shape "
                f"{outcome.shape[:-1]}, got {reward.shape}; it works on all rows at once"
            )
        return reward

    @property
    def reward_is_given(self) -> bool:
        """Whether outcomes are states before and after, which the reward is computed from."""
        return self._reward is not None

    @property
    def relabels(self) -> bool:
        return self.reward_is_given and self.varies == "reward"

    @property
    def scripted(self) -> bool:
        return self._expert is not None

    def expert(self, observation: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Asked row by row, in the environment's units."""
        if self._expert is None:
            return super().expert(observation, parameters)
        own = []
        for seen, task in zip(observation, parameters, strict=True):
            try:
                given = self._expert(seen, self.named(task))
                action = np.ravel(given)
            except Exception as error:
                blame(self._titles(task[None])[0], "expert", self._expert, error)
            real = action.dtype.kind in "fiu"
            if action.shape != (self.action_dim,) or not real or not np.isfinite(action).all():
                raise SimulationError(
                    f"{self.name}: expert(observation, task) must give {self.action_dim} finite "
                    f"numbers, got {given!r}"
                )
            own.append(action)
        return self.actions.cut(np.stack(own))


class GymSimulation(Simulation):
    """Environments side by side. A row whose episode is over rests until it is reset."""

    def __init__(self, family: GymFamily, rows: Rows, titles: Sequence[str]):
        self._family, self._rows, self._titles = family, rows, titles
        self.size = n = len(titles)
        self._observation = np.zeros((n, family.observation_dim), np.float32)
        self._seeds, self._age = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._over = np.ones(n, bool)
        self._actions = np.zeros((n, family.horizon, family.action_dim), np.float32)

    def reset(self, seeds: Sequence[int], rows: np.ndarray | None = None) -> np.ndarray:
        """Gymnasium's reset with this seed."""
        rows = np.arange(self.size) if rows is None else np.asarray(rows)
        self._observation[rows] = seen = self._rows.reset(rows, seeds)
        finite = np.isfinite(seen).all(axis=1)
        if not finite.all():
            wrong = int(finite.argmin())
            raise PluginError(
                f"{self._titles[rows[wrong]]}: the observation of reset(seed={seeds[wrong]}) is "
                f"not finite: {seen[wrong].tolist()}"
            )
        self._seeds[rows], self._age[rows], self._over[rows] = seeds, 0, False
        return self._observation.copy()

    def step(self, action: np.ndarray) -> Step:
        """Advance the rows whose episode goes on."""
        action = np.clip(np.asarray(action, np.float32), -1, 1)
        rows = np.flatnonzero(~self._over)
        before, earned = self._observation.copy(), np.zeros(self.size)
        terminated, truncated = np.zeros((2, self.size), bool)
        success = np.full(self.size, np.nan, np.float32)
        if rows.size:
            own = self._family.actions.outward(action[rows])
            moved = self._rows.step(rows, own)
            self._observation[rows], earned[rows], terminated[rows], truncated[rows] = moved[:4]
            success[rows] = moved[4]
        kept = rows[self._age[rows] < self._family.horizon]
        self._actions[kept, self._age[kept]] = action[kept]
        self._age[rows] += 1
        early = truncated & ~terminated & (self._age < self._family.horizon)
        if early.any():
            raise SimulationError(
                f"{self._family.name}: an environment cut its episode after "
                f"{self._age[early][0]} steps, before the family's {self._family.horizon}. Give "
                "horizon=STEPS as long as the shortest time limit; an end that the task itself has "
                "is terminated, not truncated"
            )
        diverged = ~(np.isfinite(self._observation).all(axis=1) & np.isfinite(earned))
        if diverged.any():
            row = int(diverged.argmax())
            found = {"reward": earned[row], "observation": self._observation[row]}
            what = "reward" if np.isfinite(found["observation"]).all() else "observation"
            step = self._age[row]
            self.fault = f"{self._titles[row]}: the {what} of step {step} is {found[what]}"
        # Such a row rests where it was: nobody acts on what is no number.
        self._observation[diverged], earned[diverged] = before[diverged], 0
        self._over |= terminated | truncated | diverged
        outcome = earned[:, None].astype(np.float32)
        if self._family.reward_is_given:
            outcome = np.concatenate([before, self._observation], axis=1)
        over = terminated & ~diverged
        return Step(self._observation.copy(), outcome, over, diverged, success)

    def rest(self, rows: np.ndarray) -> None:
        self._over[rows] = True

    def state(self) -> dict[str, np.ndarray]:
        """Seeds and actions of the running episodes; rows behind an episode's age do not count."""
        kept = {"seeds": self._seeds, "age": self._age, "actions": self._actions}
        return {name: array.copy() for name, array in kept.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Repeat the episodes up to where they were."""
        self.reset(state["seeds"].tolist())
        for t in range(int(state["age"].max(initial=0))):
            self._over |= state["age"] <= t
            self.step(state["actions"][:, t])
        self._over = np.zeros(self.size, bool)


def _is_number(value: Any) -> bool:
    try:
        return np.ndim(value) == 0 and math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False
