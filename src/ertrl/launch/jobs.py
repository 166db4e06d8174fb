"""A job is one call of the command line, in a process of its own; here, as many as there are cores.

One process per job keeps a crash where it happens, and gives every job the threads it was planned
with: XLA reads their number once, when it starts. Local processes and Ray tasks make the same call.
One thread each: small networks gain nothing from a second one (benchmarks/processes.py measures
it), and results do not depend on how many cores a machine has.
"""

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ertrl.errors import ConfigError, RunError, TrainingDiverged
from ertrl.memory import memory_of_machine
from ertrl.provenance import available_cores
from ertrl.signals import FOLLOW

Hear = Callable[[int, int, str], None]
"""Is told how much is done, of how much, and a note."""
Started = Callable[[subprocess.Popen], None]
"""Is told of the process."""

THREADS_PER_PROCESS = 1
POOLS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Every library that would take all cores in each process has to be told."""
RUN = "RUN"
PERMANENT = (ConfigError.exit_code, TrainingDiverged.exit_code)
"""Exit codes of calls that would fail in the same way again."""


@dataclass(frozen=True)
class Job:
    """One call of the command line, and what it takes."""

    label: str
    arguments: tuple[str, ...]
    """After `ertrl`; the command must take `--progress json`, unless it is `silent`."""
    log: Path
    """Where its error output goes."""
    name: str = ""
    """What it is made from; others name it in `after`."""
    after: tuple[str, ...] = ()
    """Jobs whose results it needs. `RUN` in its words is the run that the first of them made."""
    needs: tuple[str, ...] = ()
    """Folders that must be there."""
    makes: str = ""
    """The folder that it makes; a run gets its name from the data, so it is not known before."""
    seconds: float = 1.0
    """Estimated; only proportions matter to progress."""
    memory: int = 0
    """Bytes, estimated."""
    disk: int = 0
    gpus: float = 0.0
    threads: int = THREADS_PER_PROCESS
    silent: bool = False
    """Whether the command says nothing of its progress."""

    @property
    def command(self) -> str:
        """As a person would type it."""
        return shlex.join(["ertrl", *self.arguments])

    def in_the_light_of(self, record: Callable[[str], dict[str, Any] | None]) -> "Job":
        """The job as it can be run now that those before it are done."""
        if RUN not in self.needs:
            return self
        before = record(self.after[0])
        if before is None:
            raise RunError(f"the record of {self.after[0]} is gone; start again to make it anew")
        run = before["made"]
        words = tuple(run if word == RUN else word for word in self.arguments)
        needs = tuple(run if word == RUN else word for word in self.needs)
        return replace(self, arguments=words, needs=needs, makes=run)


class JobFailed(RunError):
    """The process of a job ended with an error."""

    def __init__(self, message: str, permanent: bool = False):
        super().__init__(message)
        self.permanent = permanent
        """Whether another attempt would fail in the same way."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.permanent)


def call(job: Job, hear: Hear, started: Started, folder: Path | None = None) -> dict[str, Any]:
    """Run the job's process in `folder` to its end; returns the JSON object that it printed last.

    Should the parent die, the child follows: its standard input ends.
    """
    log = job.log if folder is None else folder / job.log
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ertrl", *job.arguments]
        command += [] if job.silent else ["--progress", "json"]
        # Several jobs may share an accelerator: each takes only the memory that it needs.
        shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        environment = {**shared, **os.environ, **dict.fromkeys(POOLS, str(job.threads))}
        environment[FOLLOW] = "1"
        result: dict[str, Any] = {}
        with (
            open(log, "w") as errors,
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=folder,
                text=True,
            ) as process,
        ):
            started(process)
            try:
                for line in process.stdout or ():
                    said = _parsed(line)
                    if said.keys() == {"done", "total", "note"}:
                        hear(said["done"], said["total"], said["note"])
                    else:
                        result = said or result
            except BaseException:  # Ray cancelled it: let it save, and listen until it has
                process.terminate()
                for _ in process.stdout or ():
                    pass
                raise
    except OSError as error:
        raise JobFailed(f"{job.label} failed; {error}") from None
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        how = f"signal {-process.returncode}" if process.returncode < 0 else "an error"
        message = f"{job.label} failed with {how}; the end of {log} says:\n{tail}"
        raise JobFailed(message, permanent=process.returncode in PERMANENT)
    return result


def _parsed(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


Perform = Callable[[Job, Hear, Started], dict[str, Any]]
"""Does a job and tells of its process, as `call` does."""


class _Child:
    """A job's process, and whether it has done anything yet."""

    process: subprocess.Popen
    """Known from when it has started; before, nobody knows of the child."""

    def __init__(self, hear: Hear):
        self._hear, self._first, self._worked = hear, None, False

    def hear(self, done: int, total: int, note: str) -> None:
        self._first = done if self._first is None else self._first
        self._worked = done > self._first
        self._hear(done, total, note)

    def stop(self) -> None:
        """Let it save what it has done; a process that only starts or compiles has done nothing."""
        self.process.terminate() if self._worked else self.process.kill()


class LocalExecutor:
    """Processes side by side, within the memory of the machine."""

    def __init__(self, perform: Perform = call, slots: int = 0):
        self.slots = slots or available_cores()
        self._perform = perform
        self._pool = ThreadPoolExecutor(self.slots)
        self._children: set[_Child] = set()
        self._memory = memory_of_machine()
        self._taken, self._freed = 0, threading.Condition()
        self._stopping = False

    def width(self, threads: int) -> int:
        """Jobs of so many threads that run at once, for an estimate."""
        return self.slots

    def submit(self, job: Job, hear: Hear) -> Future[dict[str, Any]]:
        """Start the job, as soon as there is room for it."""
        return self._pool.submit(self._run, job, hear)

    def poll(self) -> None:
        """Tell what was heard of jobs elsewhere; here everything is heard at once."""

    def stop(self) -> None:
        """Ask all jobs that are under way to save and end."""
        if not self._stopping:
            self._stopping = True
            for child in list(self._children):
                child.stop()

    def kill(self) -> None:
        self._stopping = True
        for child in list(self._children):
            child.process.kill()

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    def _run(self, job: Job, hear: Hear) -> dict[str, Any]:
        with self._freed:
            # One that is larger than the machine runs alone: it may be smaller than it seems.
            self._freed.wait_for(
                lambda: self._taken + job.memory <= self._memory or not self._taken
            )
            self._taken += job.memory
        child = _Child(hear)

        def started(process: subprocess.Popen) -> None:
            child.process = process
            self._children.add(child)
            if self._stopping:
                child.stop()

        try:
            return self._perform(job, child.hear, started)
        finally:
            self._children.discard(child)
            with self._freed:
                self._taken -= job.memory
                self._freed.notify_all()
