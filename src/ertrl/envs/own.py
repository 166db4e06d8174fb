"""Environments of one's own as a family: anything that Gymnasium knows, with Box spaces.

    family = ertrl.register_family("my-pendulum", make=my_env, tasks=[{"mass": 0.5}, {"mass": 1}])

An environment's inner state cannot be looked into, so a simulation is saved as the seeds and
actions of its running episodes and restored by repeating them: Gymnasium promises that an episode
is a function of these.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.envs.families import own_family
from ertrl.envs.family import Family, Simulation, Step
from ertrl.envs.gym import register_env
from ertrl.envs.tasks import split_tasks
from ertrl.envs.workers import Rows, spread
from ertrl.errors import ConfigError, SimulationError

Make = Callable[[dict[str, float]], gymnasium.Env]
Reward = Callable[[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]], np.ndarray]
Tasks = Sequence[Mapping[str, float]] | Mapping[str, Sequence[Mapping[str, float]]]


def register_family(
    name: str,
    *,
    make: Make,
    tasks: Tasks,
    horizon: int | None = None,
    reward: Reward | None = None,
    varies: Literal["reward", "dynamics"] | None = None,
    like: str = "",
    summary: str = "",
    processes: int = 0,
) -> Family:
    """Make a family of Gymnasium environments known by a name, in this process.

    `make(task)` makes the environment of a task, which is a dictionary of its numbers. `tasks` is a
    list of such dictionaries, a fifth of which is held out, or {"train": [...], "test-id": [...],
    "test-ood": [...]}. Episodes last `horizon` steps, or as long as the environment's time limit.

    Tasks are taken to differ in anything, unless `reward(observation, action, next_observation,
    task)` says what a step is worth in any task: then they differ in nothing else (or say
    `varies="dynamics"`), and behaviour policies learn from each other's transitions. It gets arrays
    with the same leading axes, and must work on all of them at once. `like` names a family whose
    settings suit this one. An environment that takes over a millisecond per step is faster in
    `processes` of its own, as many as there are cores.
    """
    family = GymFamily(
        name, make, tasks, horizon, reward, varies, like, summary or f"{name}, tasks of one's own"
    )
    family.processes = processes
    own_family(family)
    register_env(family)
    return family


class GymFamily(Family):
    """Tasks whose simulations are Gymnasium environments, one per row."""

    def __init__(
        self,
        name: str,
        make: Make,
        tasks: Tasks,
        horizon: int | None,
        reward: Reward | None,
        varies: Literal["reward", "dynamics"] | None,
        like: str,
        summary: str,
    ):
        """Look at the first task's environment, and refuse what cannot be a family."""
        self.name, self.summary, self.like = name, summary, like
        groups, table = _split(name, tasks)
        self.split = dict(groups)
        self.parameter_names = tuple(table[0])
        for row, task in enumerate(table):
            if tuple(task) != self.parameter_names:
                raise ConfigError(
                    f"{name}: all tasks have the same numbers in the same order; task 0 has "
                    f"{list(table[0])}, task {row} has {list(task)}"
                )
        self.parameters = np.array([list(task.values()) for task in table], np.float64)
        self._make, self._reward = make, reward
        self.varies = varies or ("reward" if reward else "dynamics")
        self.processes = 0
        env = make(self.named(self.parameters[0]))
        seen, done = check_spaces(name, env)
        self.layout = (("observation", int(np.prod(seen.shape))),)
        self.action_dim = int(np.prod(done.shape))
        self.action_low = done.low.ravel().astype(float).tolist()
        self.action_high = done.high.ravel().astype(float).tolist()
        limit = horizon or (env.spec.max_episode_steps if env.spec else None)
        if not limit:
            raise ConfigError(f"{name}: the environment has no time limit; give horizon=STEPS")
        self.horizon = int(limit)
        env.close()
        super().__init__()

    def named(self, parameters: np.ndarray) -> dict[str, Any]:
        """Parameters [..., P] by their names."""
        columns = np.moveaxis(np.asarray(parameters), -1, 0)
        values = [c.item() if np.ndim(c) == 0 else c for c in columns]
        return dict(zip(self.parameter_names, values, strict=True))

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> "GymSimulation":
        """One environment per row; in processes, if the family was registered with some."""
        tasks = [self.named(row) for row in np.asarray(parameters)]
        return GymSimulation(self, spread(self._make, tasks, self.processes))

    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """The environment's own, or what the given function says of observations and action."""
        if self._reward is None:
            return outcome[..., 0]
        before, after = np.split(outcome, 2, axis=-1)
        return self._reward(before, self.own_units(action), after, self.named(parameters))

    def own_units(self, action: np.ndarray) -> np.ndarray:
        """[-1, 1] as the environment's actions."""
        low, high = np.asarray(self.action_low), np.asarray(self.action_high)
        return low + (np.asarray(action, np.float64) + 1) / 2 * (high - low)

    @property
    def keeps_states(self) -> bool:
        """Whether outcomes are states before and after, which the reward is computed from."""
        return self._reward is not None


class GymSimulation(Simulation):
    """Environments side by side. A row whose episode is over rests until it is reset."""

    def __init__(self, family: GymFamily, rows: Rows):
        self._family, self._rows = family, rows
        self.size = n = len(rows)
        self._observation = np.zeros((n, family.observation_dim), np.float32)
        self._seeds, self._age = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._over = np.ones(n, bool)
        self._actions = np.zeros((n, family.horizon, family.action_dim), np.float32)

    def reset(self, seeds: Sequence[int], rows: np.ndarray | None = None) -> np.ndarray:
        """Gymnasium's reset with this seed."""
        rows = np.arange(self.size) if rows is None else np.asarray(rows)
        self._observation[rows] = self._rows.reset(rows, seeds)
        self._seeds[rows], self._age[rows], self._over[rows] = seeds, 0, False
        return self._observation.copy()

    def step(self, action: np.ndarray) -> Step:
        """Advance the rows whose episode goes on."""
        action = np.clip(np.asarray(action, np.float32), -1, 1)
        rows = np.flatnonzero(~self._over)
        before, earned = self._observation.copy(), np.zeros(self.size)
        terminated, truncated = np.zeros((2, self.size), bool)
        if rows.size:
            own = self._family.own_units(action[rows])
            seen, earned[rows], terminated[rows], truncated[rows] = self._rows.step(rows, own)
            self._observation[rows] = seen
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
        self._over |= terminated | truncated
        diverged = ~(np.isfinite(self._observation).all(axis=1) & np.isfinite(earned))
        outcome = earned[:, None].astype(np.float32)
        if self._family.keeps_states:
            outcome = np.concatenate([before, self._observation], axis=1)
        return Step(self._observation.copy(), outcome, terminated & ~diverged, diverged)

    def state(self) -> dict[str, np.ndarray]:
        """Seeds and actions of the running episodes; rows behind an episode's age do not count."""
        return {
            "seeds": self._seeds.copy(),
            "age": self._age.copy(),
            "actions": self._actions.copy(),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Repeat the episodes up to where they were."""
        self.reset(state["seeds"].tolist())
        for t in range(int(state["age"].max(initial=0))):
            self._over |= state["age"] <= t
            self.step(state["actions"][:, t])
        self._over = np.zeros(self.size, bool)


def check_spaces(name: str, env: gymnasium.Env) -> tuple[Box, Box]:
    """Spaces of observations and actions, if ertrl can learn with them."""
    found = []
    for kind, space in (("observations", env.observation_space), ("actions", env.action_space)):
        if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
            raise ConfigError(
                f"{name}: {kind} are {space}, but ertrl needs a Box of real numbers. Gymnasium's "
                "wrappers can make one: FlattenObservation, TransformAction, TransformObservation."
            )
        found.append(space)
    seen, done = found
    if not (np.isfinite(done.low).all() and np.isfinite(done.high).all()):
        raise ConfigError(
            f"{name}: actions have no bounds ({done}), so they cannot be scaled to [-1, 1]; wrap "
            "the environment in gymnasium.wrappers.ClipAction with a bounded space"
        )
    return seen, done


def _split(name: str, tasks: Tasks) -> tuple[dict[str, list[int]], list[Mapping[str, float]]]:
    """Groups as numbers of rows, and the rows."""
    if isinstance(tasks, Mapping):
        table = [task for members in tasks.values() for task in members]
        numbers = iter(range(len(table)))
        split = {group: [next(numbers) for _ in members] for group, members in tasks.items()}
    else:
        table = list(tasks)
        groups = split_tasks([str(i) for i in range(len(table))])
        split = {g: [int(i) for i, of in groups.items() if of == g] for g in groups.values()}
    if len(table) < 2 or not all(isinstance(task, Mapping) and task for task in table):
        raise ConfigError(
            f"{name}: tasks is a list of at least two dictionaries of numbers, such as "
            "[{'mass': 0.5}, {'mass': 1.0}], or such lists by group"
        )
    return {g: t for g, t in split.items() if t}, table
