"""Environments in rows: in this process, or spread over processes of their own.

Workers are fresh Python processes that never import JAX; they are not forked, so no thread's lock
is copied, and a user's script need not guard its main part.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn

import cloudpickle
import numpy as np

from ertrl.envs.foreign import Wanted, blame
from ertrl.errors import ErtrlError, PluginError, SimulationError
from ertrl.plugins import FILE_PREFIX

Moved = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Observations, rewards, terminated, truncated and success (NaN: not told) of the rows stepped."""
SUCCESS = ("success", "is_success")
"""What an environment's `info` may call it."""


class LocalRows:
    """Environments of this process, one after the other."""

    def __init__(self, wanted: Wanted):
        self._wanted, self._envs = wanted, wanted.made()

    def __len__(self) -> int:
        return len(self._envs)

    def reset(self, rows: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
        seen = []
        for row, seed in zip(rows, seeds, strict=True):
            try:
                given = self._envs[row].reset(seed=int(seed))
                if not isinstance(given, tuple):  # an array of two could be taken for a pair
                    raise TypeError(f"it gives {given!r}")
                seen.append(_flat(given[0]))
            except Exception as error:
                self._blame(row, "reset", error)
        return self._stacked(rows, "reset", seen)

    def step(self, rows: np.ndarray, actions: np.ndarray) -> Moved:
        moved = []
        for row, action in zip(rows, actions, strict=True):
            space = self._envs[row].action_space
            own = np.asarray(action, space.dtype).reshape(space.shape)
            try:
                observation, reward, terminated, truncated, info = self._envs[row].step(own)
                success = next((float(info[name]) for name in SUCCESS if name in info), np.nan)
                flags = bool(terminated), bool(truncated)
                moved.append((_flat(observation), float(reward), *flags, success))
            except Exception as error:
                self._blame(row, "step", error)
        seen, *others = zip(*moved, strict=True)
        return self._stacked(rows, "step", seen), *(np.array(v) for v in others)  # ty: ignore

    def _stacked(self, rows: np.ndarray, what: str, seen: Sequence[np.ndarray]) -> np.ndarray:
        """Observations [N, O]; a narrow one would be spread over the whole width in silence."""
        if {self._wanted.width} != set(map(len, seen)):
            row, size = next(
                (row, len(one))
                for row, one in zip(rows, seen, strict=True)
                if len(one) != self._wanted.width
            )
            raise PluginError(
                f"{self._wanted.names[row]}: the observation of {what}() has {size} numbers, its "
                f"observation_space {self._wanted.width}"
            )
        return np.stack(seen)

    def _blame(self, row: int, what: str, error: Exception) -> NoReturn:
        blame(self._wanted.names[row], what, getattr(self._envs[row].unwrapped, what), error)


def _flat(observation: Any) -> np.ndarray:
    return np.asarray(observation, np.float32).ravel()


class SpreadRows:
    """Equal shares of the rows in several processes."""

    def __init__(self, wanted: Wanted, processes: int):
        self._size = len(wanted.tasks)
        self._shares = np.array_split(np.arange(self._size), processes)
        self._workers = [_Worker(wanted.only(share)) for share in self._shares]
        for worker in self._workers:
            worker.receive()

    def __len__(self) -> int:
        return self._size

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


class _Worker:
    """A process with some environments."""

    def __init__(self, wanted: Wanted):
        self._connection, theirs = Pipe()
        environment = {**os.environ, "NPROC": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        program = f"from ertrl.envs.workers import serve; serve({theirs.fileno()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        home = wanted.make.__module__
        if home.startswith(FILE_PREFIX):  # no other process could import that
            cloudpickle.register_pickle_by_value(sys.modules[home])
        self._connection.send_bytes(cloudpickle.dumps(wanted))

    def send(self, order: Any) -> None:
        self._connection.send(order)

    def receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except EOFError:
            raise SimulationError(
                "a process with environments has died; its error stands above"
            ) from None
        if isinstance(answer, ErtrlError):
            raise answer
        return answer

    def __del__(self) -> None:
        """Closing the pipe ends the process; nobody may be left to wait for it otherwise."""
        self._connection.close()
        self._process.wait()


def serve(descriptor: int) -> None:
    """What a worker does: reset and step until nobody is there any more."""
    connection = Connection(descriptor)
    try:
        rows = LocalRows(cloudpickle.loads(connection.recv_bytes()))  # from our own parent
        answer: Any = len(rows)
        while True:
            connection.send(answer)
            what, *arguments = connection.recv()
            answer = getattr(rows, what)(*arguments)
    except EOFError:
        return
    except ErtrlError as error:
        connection.send(error)
    except Exception as error:
        connection.send(PluginError(f"an environment failed: {type(error).__name__}: {error}"))


Rows = LocalRows | SpreadRows
"""Environments by their row."""


def spread(wanted: Wanted, processes: int) -> Rows:
    """Environments in so many processes of their own; none: in this one."""
    count = min(processes, len(wanted.tasks))
    return SpreadRows(wanted, count) if count > 1 else LocalRows(wanted)
