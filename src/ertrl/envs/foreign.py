"""Environments of others in rows: in this process, or spread over processes of their own.

They are checked when they are made, and what fails is blamed by task, file and line, as a
PluginError, so a collection keeps what it has and goes on after a repair.

Workers are fresh Python processes that never import JAX; they are not forked, so no thread's lock
is copied, and a user's script need not guard its main part.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from typing import Any, NamedTuple, NoReturn

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.errors import ConfigError, ErtrlError, PluginError
from ertrl.plugins import FILE_PREFIX, raised_at, written_at

Make = Callable[[dict[str, float]], gymnasium.Env]
PROMISES = {
    "reset": "in Gymnasium, reset(seed=..., options=...) gives (observation, info)",
    "step": "in Gymnasium, step() gives (observation, reward, terminated, truncated, info)",
}
"""What is asked for, told where a call fails outside of the environment's own code."""
Moved = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Observations, rewards, terminated, truncated and success (NaN: not told) of the rows stepped."""
SUCCESS = ("success", "is_success")
"""What an environment's `info` may call it."""
WORKER = """\
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: None)
from ertrl.envs.foreign import serve
serve({descriptor})
"""
"""A worker. Control-C and a cluster's SIGTERM reach it, too, but its parent needs it to save: it
heeds neither, from before anything slow is imported, and ends with its pipe. Programs that an
environment starts would inherit an ignored SIGTERM, and could not be ended by it any more."""
SECONDS_TO_END = 5.0
"""An environment may hang, and then its worker is killed."""


class Wanted(NamedTuple):
    """Environments to be made, one per row, and the spaces that all of them must have."""

    make: Make
    tasks: list[dict[str, float]]
    names: list[str]
    """What messages call the rows."""
    width: int
    """Numbers of an observation."""
    actions: Box

    def only(self, rows: np.ndarray) -> "Wanted":
        tasks, names = ([column[i] for i in rows] for column in (self.tasks, self.names))
        return self._replace(tasks=tasks, names=names)

    def made(self) -> list[gymnasium.Env]:
        """All of them."""
        return [self._made(*row) for row in zip(self.names, self.tasks, strict=True)]

    def _made(self, name: str, task: dict[str, float]) -> gymnasium.Env:
        env, seen, done = make_env(name, self.make, task)
        if (width := int(np.prod(seen.shape))) != self.width:
            raise ConfigError(
                f"{name}: observations have {width} numbers, those of the family {self.width}; "
                "all tasks need the same, so fill the shorter ones up with zeros"
            )
        mine, ours = (np.stack([box.low.ravel(), box.high.ravel()]) for box in (done, self.actions))
        if mine.shape != ours.shape or not np.allclose(mine, ours):
            raise ConfigError(
                f"{name}: actions are {done}, those of the family {self.actions}; all tasks need "
                "the same, so wrap it in gymnasium.wrappers.RescaleAction"
            )
        return env


def make_env(name: str, make: Make, task: dict[str, float]) -> tuple[gymnasium.Env, Box, Box]:
    """The environment of one task and its spaces, if ertrl can learn with them."""
    try:
        env = make(task)
    except Exception as error:
        blame(name, "make", make, error)
    if not isinstance(env, gymnasium.Env):
        raise ConfigError(
            f"{name}: make(task) must return a gymnasium.Env, got {env!r}"
            + ("; is `return env` missing?" if env is None else "")
        )
    found = []
    for kind in ("observation", "action"):
        space = getattr(env, f"{kind}_space", None)
        if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
            raise ConfigError(
                f"{name}: {kind}s are {space}, but ertrl needs a Box of real numbers. Gymnasium's "
                "wrappers can make one: FlattenObservation, TransformAction, TransformObservation."
            )
        found.append(space)
    seen, done = found
    if not (np.isfinite(done.low).all() and np.isfinite(done.high).all()):
        raise ConfigError(
            f"{name}: actions have no bounds ({done}), so they cannot be scaled to [-1, 1]; wrap "
            "the environment in gymnasium.wrappers.ClipAction with a bounded space"
        )
    return env, seen, done


def blame(name: str, what: str, called: Any, error: Exception) -> NoReturn:
    """Say where a function of others failed; an error that is ours already says enough."""
    if isinstance(error, ErtrlError):
        raise error
    at = raised_at(error, called)
    hint = "" if at else PROMISES.get(what, "")
    if what == "reward":  # most often, it was written for one row
        hint = "it gets arrays of many rows"
    at = at or written_at(called)
    told = f"{what}() failed{f' in {at}' if at else ''}: {type(error).__name__}: {error}"
    raise PluginError(f"{name}: {told}{f'; {hint}' if hint else ''}") from error


class LocalRows:
    """Environments of this process, one after the other."""

    def __init__(self, wanted: Wanted):
        self._wanted, self._envs = wanted, wanted.made()

    def reset(self, rows: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
        seen = []
        for row, seed in zip(rows, seeds, strict=True):
            try:
                given = self._envs[row].reset(seed=int(seed))
                if not isinstance(given, tuple):  # an array of two could be taken for a pair
                    raise TypeError(f"it gives {given!r}")
                seen.append(self._flat(row, "reset", given[0]))
            except Exception as error:
                self._blame(row, "reset", error)
        return np.stack(seen)

    def step(self, rows: np.ndarray, actions: np.ndarray) -> Moved:
        moved = []
        for row, action in zip(rows, actions, strict=True):
            space = self._envs[row].action_space
            own = np.asarray(action, space.dtype).reshape(space.shape)
            try:
                observation, reward, terminated, truncated, info = self._envs[row].step(own)
                success = next((float(info[name]) for name in SUCCESS if name in info), np.nan)
                seen = self._flat(row, "step", observation)
                moved.append((seen, float(reward), bool(terminated), bool(truncated), success))
            except Exception as error:
                self._blame(row, "step", error)
        return tuple(np.array(column) for column in zip(*moved, strict=True))  # ty: ignore

    def _flat(self, row: int, what: str, observation: Any) -> np.ndarray:
        """An observation [O]; a narrow one would be spread over the whole width in silence."""
        flat = np.asarray(observation, np.float32).ravel()
        if len(flat) != self._wanted.width:
            raise PluginError(
                f"{self._wanted.names[row]}: the observation of {what}() has {len(flat)} numbers, "
                f"its observation_space {self._wanted.width}"
            )
        return flat

    def _blame(self, row: int, what: str, error: Exception) -> NoReturn:
        blame(self._wanted.names[row], what, getattr(self._envs[row].unwrapped, what), error)


class SpreadRows:
    """Equal shares of the rows in several processes."""

    def __init__(self, wanted: Wanted, processes: int):
        self._shares = np.array_split(np.arange(len(wanted.tasks)), processes)
        self._workers = [_Worker(wanted.only(share)) for share in self._shares]
        for worker in self._workers:
            worker.receive()

    def reset(self, rows: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
        return np.concatenate(self._ask("reset", rows, np.asarray(seeds)))

    def step(self, rows: np.ndarray, actions: np.ndarray) -> Moved:
        parts = zip(*self._ask("step", rows, actions), strict=True)
        return tuple(np.concatenate(part) for part in parts)  # ty: ignore

    def _ask(self, what: str, rows: np.ndarray, values: np.ndarray) -> list[Any]:
        """Rows come in ascending order, so answers of the workers in turn are in order, too."""
        asked = []
        for share, worker in zip(self._shares, self._workers, strict=True):
            mine = np.isin(rows, share)
            if mine.any():
                worker.send((what, rows[mine] - share[0], values[mine]))
                asked.append(worker)
        return [worker.receive() for worker in asked]


@contextmanager
def _worker_lives() -> Generator[None]:
    """No simulation diverged where a process was killed: what was saved of a collection stays."""
    try:
        yield
    except (EOFError, OSError):
        raise PluginError(
            "a process with environments has died: it was killed (for want of memory?), or failed "
            "with an error that stands above. Give the same command again to go on"
        ) from None


class _Worker:
    """A process with some environments."""

    def __init__(self, wanted: Wanted):
        self._connection, theirs = Pipe()
        environment = {**os.environ, "NPROC": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        program = WORKER.format(descriptor=theirs.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        home = wanted.make.__module__
        if home.startswith(FILE_PREFIX):  # no other process could import that
            cloudpickle.register_pickle_by_value(sys.modules[home])
        parcel = cloudpickle.dumps(wanted)
        with _worker_lives():
            self._connection.send_bytes(parcel)

    def send(self, order: Any) -> None:
        with _worker_lives():
            self._connection.send(order)

    def receive(self) -> Any:
        with _worker_lives():
            answer = self._connection.recv()
        if isinstance(answer, ErtrlError):
            raise answer
        return answer

    def __del__(self) -> None:
        """Closing the pipe ends the process; nobody may be left to wait for it otherwise."""
        self._connection.close()
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve(descriptor: int) -> None:
    """What a worker does: reset and step until there is an error, or nobody any more."""
    connection = Connection(descriptor)
    try:
        parcel = connection.recv_bytes()  # from our own parent
        answer = rows = _answer(lambda: LocalRows(cloudpickle.loads(parcel)))
        connection.send(answer if isinstance(answer, ErtrlError) else "made")
        while not isinstance(answer, ErtrlError):
            what, *arguments = connection.recv()
            answer = _answer(getattr(rows, what), *arguments)
            connection.send(answer)
    except (EOFError, OSError):
        return


def _answer(act: Callable[..., Any], *arguments: Any) -> Any:
    """What it gives, or the error that it ends with."""
    try:
        return act(*arguments)
    except ErtrlError as error:
        return error
    except Exception as error:
        return PluginError(f"an environment failed: {type(error).__name__}: {error}")


Rows = LocalRows | SpreadRows
"""Environments by their row."""


def spread(wanted: Wanted, processes: int) -> Rows:
    """Environments in so many processes of their own; none: in this one."""
    count = min(processes, len(wanted.tasks))
    return SpreadRows(wanted, count) if count > 1 else LocalRows(wanted)
