"""Jobs as processes on this machine, as many at once as there are cores.

One XLA thread per process: small networks gain nothing from a second one (benchmarks/processes.py
measures it), results do not depend on how many cores a machine has, and a crash stays in its
process.
"""

import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ertrl.launch.jobs import Hear, Job, JobFailed, Started, call
from ertrl.launch.schedule import run_graph
from ertrl.memory import memory_of_machine
from ertrl.progress import ProgressStyle
from ertrl.provenance import available_cores

Perform = Callable[[Job, Hear, Started], dict[str, Any]]
"""Does a job and tells of its process."""


class _Child:
    """A job's process, and whether it has done anything yet."""

    def __init__(self, hear: Hear):
        self.process: subprocess.Popen | None = None
        self._hear, self._first, self._worked = hear, None, False

    def hear(self, done: int, total: int, note: str) -> None:
        self._first = done if self._first is None else self._first
        self._worked = done > self._first
        self._hear(done, total, note)

    def stop(self) -> None:
        """Let it save what it has done; a process that only starts or compiles has done nothing."""
        if self.process:
            self.process.terminate() if self._worked else self.process.kill()

    def kill(self) -> None:
        if self.process:
            self.process.kill()


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

    def submit(self, job: Job, hear: Hear) -> "Future[dict[str, Any]]":
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
            child.kill()

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


def run_jobs(jobs: Sequence[Job], progress: ProgressStyle = "auto") -> None:
    """Run all jobs side by side; those that fail are named at the end, and the others are done."""
    failures = run_graph(jobs, LocalExecutor(), progress, attempts=1)
    if failures:
        raise JobFailed("\n".join(failures))
