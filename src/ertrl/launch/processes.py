"""Runs as processes of their own, as many at once as there are cores.

One XLA thread per process: small networks gain nothing from a second one, results do not depend on
how many cores a machine has, and a crash stays in its process.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress, TaskID

from ertrl.errors import Interrupted, RunError
from ertrl.progress import SECONDS_BETWEEN_LINES, ProgressStyle, rich_bars
from ertrl.provenance import available_cores

WAITING, ALL = "waiting", "all runs"
MOST_BARS = 12


class Job(NamedTuple):
    """One call of the command line."""

    label: str
    arguments: tuple[str, ...]
    """After `ertrl`; the command must take `--progress json`."""
    log: Path
    """Where its error output goes."""


class _Worker(threading.Thread):
    """Runs jobs from a shared list, one after the other."""

    def __init__(self, waiting: list[Job], state: "_State"):
        super().__init__(daemon=True)
        self._waiting, self._state = waiting, state

    def run(self) -> None:
        while not self._state.failed:
            try:
                job = self._waiting.pop(0)
            except IndexError:
                return
            try:
                self._state.run(job)
            except OSError as error:
                self._state.failed.append((job, str(error)))


class _State:
    def __init__(self, jobs: Sequence[Job]):
        self.progress = {job.label: (0, 1, WAITING) for job in jobs}
        self.before: dict[str, float] = {}
        """Share of a job that was done when it started: earlier processes did that."""
        self.failed: list[tuple[Job, str]] = []
        self.running: list[subprocess.Popen] = []

    def run(self, job: Job) -> None:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "NPROC": "1"}
        command = [sys.executable, "-m", "ertrl", *job.arguments, "--progress", "json"]
        self.progress[job.label] = (0, 1, "starting")
        with open(job.log, "w") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
            )
            self.running.append(process)
            assert process.stdout is not None
            for line in process.stdout:
                try:
                    report = json.loads(line)
                    done, total = report["done"], report["total"]
                    self.progress[job.label] = (done, total, report["note"])
                    self.before.setdefault(job.label, done / total)
                except (ValueError, KeyError, TypeError):
                    continue  # anything else that the command prints is its result
            if process.wait() != 0:
                tail = job.log.read_text().strip().splitlines()[-5:]
                self.failed.append((job, f"the end of {job.log} says:\n" + "\n".join(tail)))
            else:
                _, total, note = self.progress[job.label]
                self.progress[job.label] = (total, total, note)
                self.before.setdefault(job.label, 1.0)
            self.running.remove(process)

    def stop(self) -> None:
        running = list(self.running)
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def run_jobs(
    jobs: Sequence[Job], workers: int | None = None, progress: ProgressStyle = "auto"
) -> None:
    """Run all jobs, with a progress bar each; after a failure no further one is started.

    Lines are for a person: with any style but "auto" there are none.
    """
    jobs = _named_apart(jobs)
    state = _State(jobs)
    workers = workers or available_cores()
    threads = [_Worker(waiting, state) for waiting in [list(jobs)] for _ in range(workers)]
    console = Console(stderr=True)
    bars = rich_bars(console) if console.is_terminal and progress == "auto" else None
    ids = {job.label: bars.add_task(job.label, total=None, note="") for job in jobs} if bars else {}
    if bars:
        ids[ALL] = bars.add_task(ALL, total=len(jobs), note="", visible=len(jobs) > MOST_BARS)
    begun = last_line = time.monotonic()
    with bars or nullcontext(), _stoppable():
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.2)
                if bars:
                    _move(bars, ids, state)
                elif progress == "auto" and time.monotonic() - last_line > SECONDS_BETWEEN_LINES:
                    last_line = time.monotonic()
                    _print_line(state, console, last_line - begun)
        except BaseException:
            state.failed.extend((job, "stopped") for job in jobs)
            state.stop()
            raise
    if state.failed:
        job, reason = state.failed[0]
        raise RunError(f"{job.label} failed; {reason}")


def _move(bars: Progress, ids: Mapping[str, TaskID], state: _State) -> None:
    """Every job has a bar; where they are too many for a screen, only while it runs."""
    crowded = len(state.progress) > MOST_BARS
    for label, (done, total, note) in state.progress.items():
        visible = not crowded or (done < total and note != WAITING)
        bars.update(ids[label], completed=done, total=total, note=note, visible=visible)
    finished = sum(done == total for done, total, _ in state.progress.values())
    bars.update(ids[ALL], completed=finished)


def _named_apart(jobs: Sequence[Job]) -> list[Job]:
    """A number behind labels that occur more than once: progress is kept by label."""
    seen: Counter[str] = Counter()
    apart = []
    for job in jobs:
        seen[job.label] += 1
        number = seen[job.label]
        apart.append(job if number == 1 else job._replace(label=f"{job.label} ({number})"))
    return apart


def _print_line(state: _State, console: Console, elapsed: float) -> None:
    shares = {label: done / total for label, (done, total, _) in state.progress.items()}
    did = sum(share - state.before.get(label, 0.0) for label, share in shares.items())
    to_do = len(shares) - sum(shares.values())
    left = f", about {elapsed * to_do / did:.0f} s left" if did > 0.02 * (did + to_do) else ""
    done = sum(share == 1 for share in shares.values())
    under_way = [f"{label} {share:.0%}" for label, share in shares.items() if 0 < share < 1]
    parts = ", ".join([f"{done} of {len(shares)} done", *under_way])
    console.print(f"{parts}{left}", soft_wrap=True, highlight=False)


@contextmanager
def _stoppable() -> Generator[None]:
    """Turn SIGTERM into an exception, so that the jobs are stopped too and save their state."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number, frame):
        raise Interrupted("stopped; every run has saved its state. Start again to go on.", number)

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
