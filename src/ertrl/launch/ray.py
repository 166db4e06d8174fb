"""Jobs as tasks of a Ray cluster: the same processes, on whichever machine has room.

A task that loses its machine is started again by Ray on another one, and its process goes on from
the checkpoint that it finds. Ray's dashboard shows every job under its name.
"""

import importlib
import os
import socket
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from ertrl.errors import ConfigError
from ertrl.launch.jobs import Hear, Job, JobFailed, Perform
from ertrl.plugins import OWN, require
from ertrl.progress import show_line
from ertrl.text import readable_bytes

MACHINES_LOST = 5
"""How often a job may lose its machine."""
SECONDS_TO_ANSWER = 5.0
SECONDS_TO_SAVE = 60.0
"""A cluster that is stopped waits so long for its jobs."""
AT_ONCE = 10_000
"""More jobs than any cluster runs: Ray queues them until there is room."""


def load_ray() -> Any:
    """The package, or an error that says how to install it."""
    # Without this, tasks that ask for no GPU would hide all of them; Ray says so on every start.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return require("ray", "ray")


class Board:
    """Where tasks write how far they are."""

    def __init__(self) -> None:
        self._news: dict[str, tuple[int, int, str]] = {}
        self._at_work: set[str] = set()

    def begin(self, name: str) -> None:
        self._at_work.add(name)

    def end(self, name: str) -> None:
        self._at_work.discard(name)

    def at_work(self) -> int:
        """Tasks that have begun and not ended; of a machine that was lost, nobody says so."""
        return len(self._at_work)

    def tell(self, name: str, done: int, total: int, note: str) -> None:
        self._news[name] = (done, total, note)

    def read(self) -> dict[str, tuple[int, int, str]]:
        """What is new since the last time."""
        news, self._news = self._news, {}
        return news


class RayExecutor:
    """An existing cluster, or one that is started here for as long as it is needed."""

    slots = AT_ONCE

    def __init__(self, perform: Perform, address: str | None = None):
        self._ray = load_ray()
        self._own = not self._ray.is_initialized()
        if self._own:
            _check_that_somebody_answers(address)
            try:
                self._ray.init(address=address, log_to_driver=False, logging_level="warning")
            except (ConnectionError, ValueError) as problem:
                raise ConfigError(
                    f"there is no Ray cluster at '{address}' ({problem}); start one with "
                    "`ray start --head`, or leave --address out"
                ) from None
        here = self._ray.get_runtime_context().get_node_id()
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        stay = strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        board = self._ray.remote(num_cpus=0)(Board)
        self._board = board.options(scheduling_strategy=stay).remote()
        self._task, self._perform = self._ray.remote(max_retries=MACHINES_LOST)(_task), perform
        self._hears: dict[str, Hear] = {}
        self._tasks: list[Any] = []
        self._asked_for: set[tuple[float, ...]] = set()
        self._stopping = False

    def submit(self, job: Job, hear: Hear) -> "Future[dict[str, Any]]":
        self._hears[job.name] = hear
        self._warn_of_waiting(job)
        task = self._task.options(
            name=job.label,
            num_cpus=job.threads,
            num_gpus=job.gpus,
            memory=job.memory,
            runtime_env={"env_vars": {OWN: os.environ.get(OWN, "")}},
        ).remote(self._perform, job, self._board)
        self._tasks.append(task)
        outcome: Future[dict[str, Any]] = Future()
        task.future().add_done_callback(partial(self._pass_on, job, outcome))
        return outcome

    def _pass_on(self, job: Job, outcome: "Future[dict[str, Any]]", task: "Future[Any]") -> None:
        """Ray wraps what a task raises; and a job that lost too many machines has failed."""
        try:
            outcome.set_result(task.result())
        except JobFailed as failure:
            cause = getattr(failure, "cause", failure)
            outcome.set_exception(JobFailed(str(cause), cause.permanent))
        except Exception as problem:
            lines = str(problem).strip().splitlines() or [type(problem).__name__]
            outcome.set_exception(JobFailed(f"{job.label} failed in Ray; {lines[-1]}"))

    def width(self, threads: int) -> int:
        """How many jobs of so many threads the cluster runs at once, as it is now."""
        return max(int(self._ray.cluster_resources().get("CPU", 0)) // threads, 1)

    def poll(self) -> None:
        for name, news in self._ray.get(self._board.read.remote()).items():
            self._hears[name](*news)

    def _warn_of_waiting(self, job: Job) -> None:
        """A job that no machine is large enough for waits for one that joins the cluster."""
        wanted = {"CPU": job.threads, "GPU": job.gpus, "memory": job.memory}
        if tuple(wanted.values()) in self._asked_for:
            return
        self._asked_for.add(tuple(wanted.values()))
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(all(m.get(k, 0) >= v for k, v in wanted.items()) for m in machines):
            has = {k: max((m.get(k, 0) for m in machines), default=0) for k in wanted}
            show_line(
                f"{job.label} waits: it asks for {_words_of(wanted)}, and the largest machine of "
                f"the cluster has {_words_of(has)}"
            )

    def stop(self) -> None:
        """Tasks that have begun get Python's KeyboardInterrupt, and their processes SIGTERM."""
        if not self._stopping:
            self._stopping = True
            for task in self._tasks:
                self._ray.cancel(task, force=False)

    def kill(self) -> None:
        self._stopping = False  # nothing is waited for any more
        for task in self._tasks:
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        """What was stopped saves first: Ray calls a task cancelled before it has ended."""
        end = time.monotonic() + (SECONDS_TO_SAVE if self._stopping else 0)
        while time.monotonic() < end and self._ray.get(self._board.at_work.remote()):
            time.sleep(0.2)
        if self._stopping and (left := self._ray.get(self._board.at_work.remote())):
            show_line(f"{left} jobs had not ended; they go on from their last checkpoint")
        if self._own:
            self._ray.shutdown()


def _check_that_somebody_answers(address: str | None) -> None:
    """Ray itself would ask for many minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as problem:
        raise ConfigError(
            f"nobody answers at '{address}' ({problem}); start a cluster with "
            "`ray start --head`, or leave --address out"
        ) from None


def _words_of(resources: Mapping[str, float]) -> str:
    memory = readable_bytes(int(resources["memory"]))
    return f"{resources['CPU']:g} CPUs, {resources['GPU']:g} GPUs and {memory} of memory"


def _task(perform: Perform, job: Job, board: Any) -> dict[str, Any]:
    """In a worker process of the cluster; a task that is cancelled lets its process save."""
    board.begin.remote(job.name)
    try:
        return perform(job, partial(board.tell.remote, job.name), lambda process: None)
    finally:
        board.end.remote(job.name)
