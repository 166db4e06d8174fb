"""MuJoCo, many simulations at once, on `mujoco.batch.Batch`.

A robot is a subclass of `MujocoSimulation`: which model, how long a control step is, what is seen,
what happened, when an episode ends. All of that is arrays over rows; there is no Python loop over
simulations in a step. A trajectory depends on its seed, task and actions, not on the number of
threads or on the other rows.

MuJoCo resets a simulation whose numbers explode, silently and to a perfectly healthy state. It
does count a warning, and that is how a row is found to have `diverged`; it stays so until reset.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Literal

import numpy as np

from ertrl import rng
from ertrl.envs.family import Family, Option, Simulation, Step
from ertrl.envs.tasks import PAPER_SPLIT, RELEASED_SPLIT
from ertrl.errors import ConfigError
from ertrl.provenance import simulation_threads

Model = Any
"""A `mujoco.MjModel`. MuJoCo's compiled classes are opaque to type checkers."""
Data = Any
"""A `mujoco.MjData`."""


@cache
def mujoco_module() -> Any:
    """MuJoCo itself, imported at first use: listing families or training needs none of it."""
    import mujoco
    import mujoco.batch

    return mujoco


@cache
def load_model(asset: str) -> Model:
    """Compile one of our XML files. Shared: do not write to it."""
    xml = resources.files("ertrl.envs").joinpath("assets", asset).read_text()
    return mujoco_module().MjModel.from_xml_string(xml)


class MujocoSimulation(Simulation):
    """N copies of one robot, each with model fields of its own where the task says so."""

    asset: ClassVar[str]
    frame_skip: ClassVar[int]
    """Physics steps per control step."""
    control_limit: ClassVar[float] = 1.0
    """Action 1 is this control."""
    noise: ClassVar[float]
    """Size of the random displacement at the start, in position and velocity."""
    velocity_noise: ClassVar[Literal["normal", "uniform"]]
    axes: ClassVar[int] = 2
    """How many of x and y it moves along."""
    action_dim: ClassVar[int]
    layout: ClassVar[tuple[tuple[str, int], ...]]
    """The parts of what `observe` returns: (name, how many numbers)."""

    def __init__(
        self,
        size: int,
        threads: int | None = None,
        scale: Mapping[str, np.ndarray] | None = None,
        refresh_constants: bool = True,
    ):
        """`scale` multiplies model fields: name -> one factor per row.

        `refresh_constants` recomputes what MuJoCo derives from such fields, as it would had the
        model been built that way.
        """
        self.model = load_model(self.asset)
        self.size = size
        # Persistent data cost memory per row and save a tenth of the time.
        self._batch = mujoco_module().batch.Batch(
            self.model, size, min(threads or simulation_threads(), size), persistent=True
        )
        for field, factor in (scale or {}).items():
            values = self._batch.expand(field)
            values *= np.reshape(factor, (size,) + (1,) * (values.ndim - 1))
        if scale and refresh_constants:
            self._batch.set_const()
        self.dt = self.frame_skip * self.model.opt.timestep
        self.qpos = self._batch.bind("qpos")
        self.qvel = self._batch.bind("qvel")
        self._ctrl = self._batch.bind("ctrl")
        self._failed = np.zeros(size, bool)
        self._resting = np.zeros(size, bool)
        self._derived: dict[str, np.ndarray] = {}

    def bind(self, field: str) -> np.ndarray:
        """A live, read-only view of a derived MuJoCo quantity, rows first.

        As after `mj_step`, it belongs to the state one physics step before `qpos` and `qvel`.
        """
        self._derived[field] = self._batch.bind(field)
        return self._derived[field]

    def reset(self, seeds: Sequence[int], rows: np.ndarray | None = None) -> np.ndarray:
        """The model's rest pose plus noise from the row's seed."""
        rows = np.arange(self.size) if rows is None else rows
        self._batch.reset(rows, stage=mujoco_module().mjtStage.mjSTAGE_NONE.value)
        for row, seed in zip(rows, seeds, strict=True):
            random = rng.generator(seed, "reset")
            self.qpos[row] += self.noise * random.uniform(-1, 1, self.model.nq)
            if self.velocity_noise == "normal":
                self.qvel[row] += self.noise * random.standard_normal(self.model.nv)
            else:
                self.qvel[row] += self.noise * random.uniform(-1, 1, self.model.nv)
        self._batch.forward(rows)
        self._failed[rows] = self._resting[rows] = False
        return self.observe()

    def rest(self, rows: np.ndarray) -> None:
        """These stay where they are until they are reset."""
        self._resting[rows] = True

    def step(self, action: np.ndarray) -> Step:
        """Hold the action for `frame_skip` physics steps."""
        if np.shape(action) != self._ctrl.shape:
            raise ConfigError(f"expected actions {self._ctrl.shape}, got {np.shape(action)}")
        before = self.position()
        self._ctrl[:] = np.clip(action, -1, 1)
        self._ctrl *= self.control_limit
        moving = np.flatnonzero(~self._resting) if self._resting.any() else None
        try:
            self._batch.step(moving, nstep=self.frame_skip)
        except mujoco_module().batch.SimulationError as error:
            self._failed[error.ids] = True  # these rows did not move; the others are fine
        diverged = self._failed | self._batch.warning.any(axis=(1, 2))
        outcome = self.outcome(before).astype(np.float32)
        return Step(self.observe(), outcome, self.terminated() & ~diverged, diverged)

    def state(self) -> dict[str, np.ndarray]:
        """MuJoCo's integration state (warm start and time among it) and what is derived from it."""
        own = {"rows": self._batch.state, "warning": self._batch.warning, "failed": self._failed}
        return {name: array.copy() for name, array in (own | self._derived).items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Derived quantities lag a physics step behind, so they are put back, not recomputed."""
        self._batch.state[:] = state["rows"]
        self._batch.warning[:] = state["warning"]
        self._failed[:] = state["failed"]
        for field, array in self._derived.items():
            array.flags.writeable = True
            array[:] = state[field]
            array.flags.writeable = False

    def position(self) -> np.ndarray:
        """Where the robot is, as a copy."""
        return self.qpos[:, : self.axes].copy()

    @abstractmethod
    def observe(self) -> np.ndarray:
        """Observations [N, O] of the current state, in an array of their own."""

    def outcome(self, before: np.ndarray) -> np.ndarray:
        """Task-independent facts [N, F] for the reward; `before` is the position before the step.

        By default the mean velocity over the step.
        """
        return (self.position() - before) / self.dt

    def terminated(self) -> np.ndarray:
        """Which rows are in a terminal state; by default none ever is."""
        return np.zeros(self.size, bool)

    def snapshot(self, row: int) -> tuple[Model, Data]:
        """Model and state of one row, for drawing it or to look at with MuJoCo's own tools."""
        model, data = self._batch.get_model(row), self._batch.get_data(row)
        mujoco_module().mj_forward(model, data)
        return model, data


def join(*parts: np.ndarray) -> np.ndarray:
    """Put arrays [N, ...] next to each other as float32 [N, O]."""
    rows = len(parts[0])
    flat = [part.reshape(rows, -1) for part in parts]
    return np.concatenate(flat, axis=1, dtype=np.float32, casting="same_kind")


class MujocoFamily(Family):
    """What the eight families share: 200 steps, and the choice of a split."""

    horizon = 200
    choices: ClassVar[dict[str, tuple[Option, ...]]] = {"split": ("paper", "released")}
    simulation: type[MujocoSimulation]
    paper_tasks: np.ndarray
    released_tasks: np.ndarray

    def __init__(self, **options: Any):
        super().__init__(**options)
        released = self.options["split"] == "released"
        self.split = RELEASED_SPLIT if released else PAPER_SPLIT
        self.parameters = self.released_tasks if released else self.paper_tasks
        self.layout, self.action_dim = self.simulation.layout, self.simulation.action_dim

    def simulate(self, parameters: np.ndarray, threads: int | None = None) -> MujocoSimulation:
        """The same robot for every task: tasks differ in reward, unless overridden."""
        return self.simulation(len(parameters), threads)
