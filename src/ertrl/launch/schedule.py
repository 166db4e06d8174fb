"""Run a graph of jobs: what is ready starts, what crashed is tried again, the rest goes on."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import Progress

from ertrl.errors import ErtrlError, Interrupted
from ertrl.launch.jobs import Job, JobFailed, LocalExecutor
from ertrl.launch.ray import RayExecutor
from ertrl.progress import SECONDS_BETWEEN_LINES, ProgressStyle, rich_bars, show_line
from ertrl.signals import stop_signals
from ertrl.text import readable_duration

WAITING = "waiting"
MOST_BARS = 12
"""As many as fit on a screen."""
ATTEMPTS = 3
SECONDS_BEFORE_ANOTHER = 3.0
"""Another attempt waits so long for a process that has just lost its parent to let go."""


@dataclass
class Work:
    """A job and how far it is."""

    job: Job
    done: int = 0
    total: int = 1
    note: str = WAITING
    before: float | None = None
    """Share that was done when the process started: earlier ones did that."""
    attempts: int = 0
    not_before: float = 0.0
    """Time of another attempt."""
    error: str = ""
    """Why it failed for good, or cannot start at all."""
    finished: bool = False

    @property
    def share(self) -> float:
        return self.done / self.total

    def hear(self, done: int, total: int, note: str) -> None:
        self.done, self.total, self.note = done, total, note
        self.before = self.share if self.before is None else self.before

    def finish(self) -> None:
        self.done, self.finished = self.total, True
        self.before = 1.0 if self.before is None else self.before


def run_graph(
    jobs: Sequence[Job],
    executor: LocalExecutor | RayExecutor,
    progress: ProgressStyle = "auto",
    *,
    done: Callable[[Job], None] = lambda job: None,
    attempts: int = ATTEMPTS,
) -> list[str]:
    """Run all jobs in their order, each after those it needs; returns what failed, with reasons.

    A job that needs a failed one is not run; all others are. `done` is told of each that ended
    well. Jobs named in `after` that are not among these count as done. Lines are for a person: with
    any style but "auto" there are none.
    """
    works = [Work(job) for job in jobs]
    by_name = {work.job.name: work for work in works}
    under_way: dict[Future[dict[str, Any]], Work] = {}
    console = Console(stderr=True)
    bars = rich_bars(console) if console.is_terminal and progress == "auto" else None
    begun, said = time.monotonic(), ""
    last_line = begun
    with stop_signals() as received, bars or nullcontext():
        try:
            while under_way or (not received and _startable(works, by_name)):
                if received:
                    executor.stop()
                while not received and len(under_way) < executor.slots:
                    now = time.monotonic()
                    ready = [w for w in _startable(works, by_name) if w.not_before <= now]
                    if not ready:
                        break
                    work = ready[0]
                    work.attempts += 1
                    work.note = "starting"
                    under_way[executor.submit(work.job, work.hear)] = work
                ended, _ = wait(under_way, timeout=0.2, return_when="FIRST_COMPLETED")
                if not under_way:
                    time.sleep(0.2)  # all that is left waits for another attempt
                for future in ended:
                    _take(under_way.pop(future), future, done, attempts)
                executor.poll()
                if bars:
                    _move(bars, works)
                elif progress == "auto" and time.monotonic() - last_line > SECONDS_BETWEEN_LINES:
                    last_line = time.monotonic()
                    if (line := _line(works, last_line - begun)) != said:
                        show_line(said := line)
        except KeyboardInterrupt:  # the second one: nothing is waited for
            executor.kill()
            raise
    if received:
        raise Interrupted(
            "stopped; every run has saved its state. Start again to go on.", received[0]
        )
    return [work.error for work in works if work.error]


def run_jobs(jobs: Sequence[Job], progress: ProgressStyle = "auto") -> None:
    """Run all jobs side by side; those that fail are named at the end, and the others are done."""
    failures = run_graph(jobs, LocalExecutor(), progress, attempts=1)
    if failures:
        raise JobFailed("\n".join(failures))


def _startable(works: Sequence[Work], by_name: dict[str, Work]) -> list[Work]:
    """Jobs that wait for nothing but their turn; those that wait in vain are marked."""
    found = []
    for work in works:
        if work.finished or work.error or work.note != WAITING:
            continue
        needed = [by_name[name] for name in work.job.after if name in by_name]
        lost = next((other for other in needed if other.error), None)
        if lost is not None:
            work.error = f"{work.job.label} was not run: it needs {lost.job.label}"
        elif all(other.finished for other in needed):
            found.append(work)
    return found


def _take(
    work: Work,
    future: Future[dict[str, Any]],
    done: Callable[[Job], None],
    attempts: int,
) -> None:
    """A job has ended: well, to be tried again, or for good."""
    try:
        future.result()
        done(work.job)
    except Exception as failure:  # a full disk or a cloud's error stops only what met it
        known = isinstance(failure, (ErtrlError, OSError))
        permanent = not known or (isinstance(failure, JobFailed) and failure.permanent)
        if permanent or work.attempts >= attempts:
            times = f" ({work.attempts} attempts)" if work.attempts > 1 else ""
            kind = "" if known else f"{type(failure).__name__}: "
            who = "" if isinstance(failure, JobFailed) else f"{work.job.label}: {kind}"
            work.error, work.note = f"{who}{failure}{times}", "failed"
        else:
            work.note = WAITING
            work.not_before = time.monotonic() + SECONDS_BEFORE_ANOTHER * work.attempts
        return
    work.finish()


def _move(bars: Progress, works: Sequence[Work]) -> None:
    """Every job has a bar; where they are too many for a screen, only while it runs."""
    crowded = len(works) > MOST_BARS
    if not bars.tasks:
        for work in works:
            bars.add_task(work.job.label, note="")
        bars.add_task("all jobs", total=len(works), note="", visible=crowded)
    *own, every = bars.tasks
    for bar, work in zip(own, works, strict=True):
        visible = not crowded or (work.share < 1 and work.note != WAITING)
        bars.update(bar.id, completed=work.done, total=work.total, note=work.note, visible=visible)
    failed = sum(bool(work.error) for work in works)
    note = f"{failed} failed" if failed else ""
    bars.update(every.id, completed=sum(work.share == 1 for work in works), note=note)


def _line(works: Sequence[Work], elapsed: float) -> str:
    """How far all of it is, and how long the rest takes at the speed of what was done now."""
    alive = [work for work in works if not work.error]
    did = sum(w.job.seconds * (w.share - (w.before or 0.0)) for w in alive)
    to_do = sum(w.job.seconds * (1 - w.share) for w in alive)
    parts = [f"{sum(work.share == 1 for work in works)} of {len(works)} done"]
    parts += [f"{work.job.label} {work.share:.0%}" for work in works if 0 < work.share < 1]
    if did > 0.02 * (did + to_do):
        parts.append(f"about {readable_duration(elapsed * to_do / did)} left")
    if failed := sum(bool(work.error) for work in works):
        parts.append(f"{failed} failed")
    return ", ".join(parts)
