"""What a family of related tasks is.

A family describes tasks that share observations and actions and differ in a few numbers, the task
parameters: a goal, a velocity, a mass. Physics is batched from the start: a `Simulation` steps N
(task, episode) pairs at once, each with parameters and randomness of its own, so a trajectory does
not depend on what else is in the batch.

What happened in a step (the outcome) is kept apart from what it is worth (the reward):

    simulation.step(action) -> Step(observation, outcome, terminated, diverged)
    family.reward(outcome, action, parameters) -> reward

so that families whose tasks differ only in reward can have their transitions relabelled exactly.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ertrl.envs.symmetry import Symmetry
from ertrl.envs.tasks import GROUP_TITLES, PAPER_SPLIT, Split
from ertrl.errors import ConfigError, PluginError, unknown
from ertrl.runtime import ActionRange
from ertrl.text import Described, readable_groups
from ertrl.types import Dims

Option = bool | int | float | str
Varies = Literal["reward", "dynamics"]
Task = int | Sequence[float] | np.ndarray
"""Number of a task in the family's table, or the parameters of one's own."""


class Step(NamedTuple):
    """What N simulations did in one control step."""

    observation: Float[np.ndarray, "N O"]
    outcome: Float[np.ndarray, "N F"]
    """Task-independent facts that the reward is computed from."""
    terminated: Bool[np.ndarray, "N"]
    diverged: Bool[np.ndarray, "N"]
    success: Float[np.ndarray, "N"] | None = None
    """1 where the task is fulfilled, NaN where nobody says; for tasks that can be."""


class Simulation(ABC):
    """N simulations side by side. Rows never influence each other."""

    size: int
    fault: str = ""
    """Why a row diverged, of the last one that did, where that is known."""

    @abstractmethod
    def reset(self, seeds: Sequence[int], rows: np.ndarray | None = None) -> np.ndarray:
        """Start the given rows anew (all by default), each from its own seed.

        Returns the observations [N, O] of all rows.
        """

    @abstractmethod
    def step(self, action: Float[np.ndarray, "N A"]) -> Step:
        """Advance every row by one control step. Actions are in [-1, 1]."""

    def rest(self, rows: np.ndarray) -> None:  # noqa: B027 - may be left as it is
        """Nobody looks at these rows until they are reset: they need not move.

        A simulation that spares their steps is faster; by default they go on.
        """

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Everything that the next steps depend on, as copies."""

    @abstractmethod
    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on, bit for bit, from where a simulation of the same tasks was at `state()`."""


class Family(Described, ABC):
    """A family of related tasks. Instances are cheap; physics starts with `simulate`.

    `choices` names what can be chosen about a family: option -> allowed values, the default first.
    `options` says what was chosen, in full and ready for JSON; `make_family(family.name,
    **family.options)` makes the same family again, so this is what a dataset has to record.
    """

    name: str
    """As on the command line: 'point-robot'."""
    summary: str
    layout: tuple[tuple[str, int], ...]
    """The parts of an observation in order: (name, how many numbers)."""
    action_dim: int
    horizon: int
    parameter_names: tuple[str, ...]
    parameters: Float[np.ndarray, "tasks P"]
    """The task table: row i holds the parameters of task i."""
    split: Split = PAPER_SPLIT
    like: str = ""
    """A family whose settings apply where a profile has none for this one."""
    varies: Varies
    """What differs between tasks. Where it is the dynamics, a context must show next states."""
    symmetry: Symmetry | None = None
    """How behaviour policies, which know their task, are shown it so that tasks look alike."""
    action_low: list[float] | None = None
    """Which action of one's own -1 stands for, where that is not -1."""
    action_high: list[float] | None = None
    choices: ClassVar[dict[str, tuple[Option, ...]]] = {}
    options: dict[str, Option]

    def __init__(self, **options: Option):
        """Unknown options and values are errors."""
        if not {"train"} <= self.split.keys() <= GROUP_TITLES.keys():
            raise ConfigError(
                f"{self.name}: a split has the group train and may have "
                f"{', '.join(list(GROUP_TITLES)[1:])}, got {list(self.split)}"
            )
        for option, value in options.items():
            if option not in self.choices:
                if not self.choices:
                    raise ConfigError(f"{self.name} has no options, got '{option}'")
                raise ConfigError(unknown(f"option of {self.name}", option, self.choices))
            # `1 in (True, False)` holds, but 1 would not be the same in JSON.
            if not any(value == c and type(value) is type(c) for c in self.choices[option]):
                allowed = ", ".join(map(repr, self.choices[option]))
                raise ConfigError(f"{self.name}: {option} is one of {allowed}, got {value!r}")
        self.options = {name: options.get(name, c[0]) for name, c in self.choices.items()}

    @abstractmethod
    def simulate(
        self, parameters: Float[np.ndarray, "N P"], threads: int | None = None
    ) -> Simulation:
        """N simulations, row i with task parameters i, on so many threads.

        The default is what the process may use: NPROC if it is set, else all cores. The number of
        threads changes the time it takes and nothing else.
        """

    @abstractmethod
    def reward(self, outcome: np.ndarray, action: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Reward of an outcome under a task, one number for each place of the leading axes.

        All arguments share these axes, and there may be any number of them.
        """

    @property
    def relabels(self) -> bool:
        """Whether `reward` tells of any outcome what it is worth in another task."""
        return self.varies == "reward"

    @property
    def scripted(self) -> bool:
        """Whether there is a scripted `expert`, which is recorded instead of training SAC."""
        return False

    def expert(self, observation: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """What a scripted expert does in these rows, which it knows the tasks of, in [-1, 1]."""
        raise ConfigError(f"{self.name} has no scripted expert")

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tasks": readable_groups(self.split),
            "parameters": ", ".join(self.parameter_names),
            "observation": self.observation_dim,
            "action": self.action_dim,
            "horizon": self.horizon,
            "varies": self.varies,
            **self.options,
        }

    @property
    def observation_dim(self) -> int:
        return sum(size for _, size in self.layout)

    @property
    def dims(self) -> Dims:
        """The sizes that networks need."""
        return Dims(self.observation_dim, self.action_dim, len(self.split["train"]))

    @property
    def written(self) -> tuple[Any, ...]:
        """Classes and functions that say what it does: data remembers the files they stand in."""
        return type(self).__mro__

    @property
    def actions(self) -> ActionRange:
        """Actions in the units of whoever acts."""
        if self.action_low is None or self.action_high is None:
            return ActionRange.of_json({}, self.action_dim)
        return ActionRange(np.array(self.action_low), np.array(self.action_high))

    @property
    def n_tasks(self) -> int:
        return len(self.parameters)

    def describe(self) -> dict[str, Any]:
        """Everything about the family that is not physics, ready for JSON."""
        return {
            "name": self.name,
            "summary": self.summary,
            "observation_dim": self.observation_dim,
            "layout": [list(part) for part in self.layout],
            "action_dim": self.action_dim,
            "horizon": self.horizon,
            "varies": self.varies,
            "options": self.options,
            "choices": {option: list(values) for option, values in self.choices.items()},
            "parameter_names": list(self.parameter_names),
            "parameters": self.parameters.tolist(),
            "split": {group: list(tasks) for group, tasks in self.split.items()},
        }

    def check_observations(self, seen: np.ndarray, rows: int, source: str) -> np.ndarray:
        """What a simulation of so many rows gave, if it has the declared size.

        A copy: a simulation may write what it sees next into the same array.
        """
        if np.shape(seen) != (rows, self.observation_dim):
            raise PluginError(
                f"{self.name}: {source}() gave observations of shape {np.shape(seen)}, expected "
                f"{(rows, self.observation_dim)}: those of all rows, with as many numbers as "
                "`layout` has"
            )
        return np.array(seen, np.float32)

    def task_parameters(self, task: Task) -> np.ndarray:
        """Parameters of a task of the table, or one's own, checked."""
        if isinstance(task, (int, np.integer)):
            if not 0 <= task < self.n_tasks:
                raise ConfigError(
                    f"{self.name} has tasks 0 to {self.n_tasks - 1}, got task {int(task)}"
                )
            return self.parameters[task]
        try:
            own = np.asarray(task, np.float64)
        except (TypeError, ValueError):
            own = np.array(np.nan)
        if own.shape != (len(self.parameter_names),) or not np.isfinite(own).all():
            raise ConfigError(
                f"a task of {self.name} is {len(self.parameter_names)} finite numbers "
                f"({', '.join(self.parameter_names)}), got {task!r}"
            )
        return own


def parse_options(words: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """NAME=VALUE as values of the type that the family's option has."""
    chosen = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"an option of a family is NAME=VALUE, got '{word}'")
        wanted = type(defaults.get(name, ""))
        try:
            truth = {"true": True, "false": False}
            chosen[name] = truth[value.lower()] if wanted is bool else wanted(value)
        except (ValueError, KeyError):
            kind = "true or false" if wanted is bool else f"of type {wanted.__name__}"
            raise ConfigError(f"option {name} must be {kind}, got '{value}'") from None
    return chosen
