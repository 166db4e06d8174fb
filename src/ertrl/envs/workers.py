"""Environments in rows: in this process, or spread over processes of their own.

Workers are fresh Python processes that never import JAX; they are not forked, so no thread's lock
is copied, and a user's script need not guard its main part.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any

import cloudpickle
import numpy as np

from ertrl.errors import SimulationError
from ertrl.plugins import FILE_PREFIX

Moved = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Observations, rewards, terminated, truncated and success (NaN: not told) of the rows stepped."""
SUCCESS = ("success", "is_success")
"""What an environment's `info` may call it."""


class LocalRows:
    """Environments of this process, one after the other."""

    def __init__(self, make: Callable[[Any], Any], tasks: Sequence[Any]):
        self._envs = [make(task) for task in tasks]

    def __len__(self) -> int:
        return len(self._envs)

    def reset(self, rows: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
        pairs = zip(rows, seeds, strict=True)
        return np.stack([_flat(self._envs[row].reset(seed=int(seed))[0]) for row, seed in pairs])

    def step(self, rows: np.ndarray, actions: np.ndarray) -> Moved:
        moved = []
        for row, action in zip(rows, actions, strict=True):
            space = self._envs[row].action_space
            own = np.asarray(action, space.dtype).reshape(space.shape)
            observation, reward, terminated, truncated, info = self._envs[row].step(own)
            success = next((float(info[name]) for name in SUCCESS if name in info), np.nan)
            flags = bool(terminated), bool(truncated)
            moved.append((_flat(observation), float(reward), *flags, success))
        seen, *others = zip(*moved, strict=True)
        return np.stack(seen), *(np.array(values) for values in others)  # ty: ignore


def _flat(observation: Any) -> np.ndarray:
    return np.asarray(observation, np.float32).ravel()


class SpreadRows:
    """Equal shares of the rows in several processes."""

    def __init__(self, make: Callable[[Any], Any], tasks: Sequence[Any], processes: int):
        self._size = len(tasks)
        self._shares = np.array_split(np.arange(len(tasks)), processes)
        self._workers = [_Worker(make, [tasks[i] for i in share]) for share in self._shares]
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

    def __init__(self, make: Callable[[Any], Any], tasks: Sequence[Any]):
        self._connection, theirs = Pipe()
        environment = {**os.environ, "NPROC": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        program = f"from ertrl.envs.workers import serve; serve({theirs.fileno()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        if make.__module__.startswith(FILE_PREFIX):  # no other process could import that
            cloudpickle.register_pickle_by_value(sys.modules[make.__module__])
        self._connection.send_bytes(cloudpickle.dumps((make, list(tasks))))

    def send(self, order: Any) -> None:
        self._connection.send(order)

    def receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except EOFError:
            raise SimulationError(
                "a process with environments has died; its error stands above"
            ) from None
        if isinstance(answer, str):
            raise SimulationError(f"an environment failed: {answer}")
        return answer

    def __del__(self) -> None:
        """Closing the pipe ends the process; nobody may be left to wait for it otherwise."""
        self._connection.close()
        self._process.wait()


def serve(descriptor: int) -> None:
    """What a worker does: reset and step until nobody is there any more."""
    connection = Connection(descriptor)
    try:
        make, tasks = cloudpickle.loads(connection.recv_bytes())  # from our own parent
        rows, answer = LocalRows(make, tasks), len(tasks)
        while True:
            connection.send(answer)
            what, *arguments = connection.recv()
            answer = getattr(rows, what)(*arguments)
    except EOFError:
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


Rows = LocalRows | SpreadRows
"""Environments by their row."""


def spread(make: Callable[[Any], Any], tasks: Sequence[Any], processes: int) -> Rows:
    """The environments of these tasks, in so many processes of their own; none: in this one."""
    count = min(processes, len(tasks))
    return SpreadRows(make, tasks, count) if count > 1 else LocalRows(make, tasks)
