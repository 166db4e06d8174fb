"""Runs as processes of their own, as many at once as there are cores.

One XLA thread per process: small networks gain nothing from a second one, results do not depend on
how many cores a machine has, and a crash stays in its process.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from ertrl.errors import Interrupted, RunError
from ertrl.progress import SECONDS_BETWEEN_LINES, ProgressStyle, rich_bars
from ertrl.provenance import available_cores
from ertrl.signals import stop_signals
from ertrl.text import readable_duration

THREADS_PER_PROCESS = 1
POOLS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Every library that would take all cores in each process has to be told."""
WAITING = "waiting"
MOST_BARS = 12
"""As many as fit on a screen."""


class Job(NamedTuple):
    """One call of the command line."""

    label: str
    arguments: tuple[str, ...]
    """After `ertrl`; the command must take `--progress json`."""
    log: Path
    """Where its error output goes."""


@dataclass
class _Work:
    """A job, how far it is, and the process that does it."""

    job: Job
    done: int = 0
    total: int = 1
    note: str = WAITING
    before: float | None = None
    """Share that was done when the process started: earlier ones did that."""
    process: subprocess.Popen | None = None

    @property
    def share(self) -> float:
        return self.done / self.total

    def run(self, stop: threading.Event) -> None:
        if stop.is_set():
            return
        try:
            self._run()
        except (OSError, RunError) as error:
            stop.set()
            raise RunError(f"{self.job.label} failed; {error}") from None

    def _run(self) -> None:
        log = self.job.log
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ertrl", *self.job.arguments, "--progress", "json"]
        environment = {**os.environ, **dict.fromkeys(POOLS, str(THREADS_PER_PROCESS))}
        self.note = "starting"
        with (
            open(log, "w") as errors,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True
            ) as self.process,
        ):
            for line in self.process.stdout or ():
                self._hear(line)
        if self.process.returncode:
            tail = "\n".join(log.read_text().strip().splitlines()[-5:])
            raise RunError(f"the end of {log} says:\n{tail}")
        self.done = self.total
        self.before = 1.0 if self.before is None else self.before

    def _hear(self, line: str) -> None:
        try:
            said = json.loads(line)
            self.done, self.total, self.note = said["done"], said["total"], said["note"]
        except (ValueError, KeyError, TypeError):
            return  # anything else that the command prints is its result
        self.before = self.share if self.before is None else self.before


def run_jobs(jobs: Sequence[Job], progress: ProgressStyle = "auto") -> None:
    """Run all jobs, with a progress bar each; after a failure no further one is started.

    Lines are for a person: with any style but "auto" there are none.
    """
    works, stop = [_Work(job) for job in jobs], threading.Event()
    console = Console(stderr=True)
    bars = rich_bars(console) if console.is_terminal and progress == "auto" else None
    begun = last_line = time.monotonic()
    with (
        stop_signals() as received,
        bars or nullcontext(),
        ThreadPoolExecutor(available_cores()) as pool,
    ):
        futures = [pool.submit(work.run, stop) for work in works]
        waiting = set(futures)
        while waiting:
            _, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
            if received and not stop.is_set():
                stop.set()
                for work in works:
                    if work.process:
                        work.process.terminate()
            if bars:
                _move(bars, works)
            elif progress == "auto" and time.monotonic() - last_line > SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                console.print(_line(works, last_line - begun), soft_wrap=True, highlight=False)
    if received:
        raise Interrupted(
            "stopped; every run has saved its state. Start again to go on.", received[0]
        )
    for future in futures:
        future.result()


def _move(bars: Progress, works: Sequence[_Work]) -> None:
    """Every job has a bar; where they are too many for a screen, only while it runs."""
    crowded = len(works) > MOST_BARS
    if not bars.tasks:
        for work in works:
            bars.add_task(work.job.label, note="")
        bars.add_task("all runs", total=len(works), note="", visible=crowded)
    *own, every = bars.tasks
    for bar, work in zip(own, works, strict=True):
        visible = not crowded or (work.share < 1 and work.note != WAITING)
        bars.update(bar.id, completed=work.done, total=work.total, note=work.note, visible=visible)
    bars.update(every.id, completed=sum(work.share == 1 for work in works))


def _line(works: Sequence[_Work], elapsed: float) -> str:
    """How far all of it is, and how long the rest takes at the speed of what was done now."""
    did = sum(work.share - (work.before or 0.0) for work in works)
    to_do = sum(1 - work.share for work in works)
    parts = [f"{sum(work.share == 1 for work in works)} of {len(works)} done"]
    parts += [f"{work.job.label} {work.share:.0%}" for work in works if 0 < work.share < 1]
    if did > 0.02 * (did + to_do):
        parts.append(f"about {readable_duration(elapsed * to_do / did)} left")
    return ", ".join(parts)
