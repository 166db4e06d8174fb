"""Jobs as tasks of a Ray cluster: the same processes, on whichever machine has room.

A task that loses its machine is started again by Ray on another one, and its process goes on from
the checkpoint that it finds. Ray's dashboard shows every job under its name.
"""

import importlib
import os
from concurrent.futures import Future
from functools import partial
from typing import Any

from ertrl.errors import ConfigError
from ertrl.launch.jobs import Hear, Job, JobFailed, Perform
from ertrl.plugins import OWN, require

MACHINES_LOST = 5
"""How often a job may lose its machine."""
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

    def submit(self, job: Job, hear: Hear) -> "Future[dict[str, Any]]":
        self._hears[job.name] = hear
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
            outcome.set_exception(JobFailed(str(cause), cause.hopeless))
        except Exception as problem:
            lines = str(problem).strip().splitlines() or [type(problem).__name__]
            outcome.set_exception(JobFailed(f"{job.label} failed in Ray; {lines[-1]}"))

    def width(self, threads: int) -> int:
        """How many jobs of so many threads the cluster runs at once, as it is now."""
        return max(int(self._ray.cluster_resources().get("CPU", 0)) // threads, 1)

    def poll(self) -> None:
        for name, news in self._ray.get(self._board.read.remote()).items():
            self._hears[name](*news)

    def stop(self) -> None:
        """Tasks that have begun get Python's KeyboardInterrupt, and their processes SIGTERM."""
        for task in self._tasks:
            self._ray.cancel(task, force=False)
        self._tasks = []

    def kill(self) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        if self._own:
            self._ray.shutdown()


def _task(perform: Perform, job: Job, board: Any) -> dict[str, Any]:
    """In a worker process of the cluster."""
    processes = []
    try:
        return perform(job, partial(board.tell.remote, job.name), processes.append)
    finally:
        for process in processes:
            if process.poll() is None:  # the task was cancelled: let it save
                process.terminate()
                process.wait()
