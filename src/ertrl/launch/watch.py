"""Follow training from outside: reads what runs write, touches nothing."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ertrl import store
from ertrl.errors import ErtrlError
from ertrl.evaluation import PROTOCOLS
from ertrl.text import readable_duration
from ertrl.training import Run, Runs, each_run

DIGITS = len("-0123456789")
"""The end of a run's name that tells configurations apart; shown only where it has to."""
GROUP = "test-id"
"""Returns are shown on these tasks: held out, and of the same distribution."""


@dataclass(frozen=True)
class Snapshot:
    """How far a run is."""

    run: str
    status: Literal["running", "stopped", "finished", "unreadable"]
    step: int
    updates: int
    seconds_left: float | None
    """None where its speed is unknown or it is not running."""
    scores: dict[str, float]
    """'protocol/group' -> normalised return, of the newest evaluation."""
    problem: str = ""
    """Why nothing is known of it."""


def look(run: Run) -> Snapshot:
    """What a run's files say now; damaged ones are refused, as everywhere."""
    run.check_seals()
    lines = run.metrics()
    step, updates = max((line["step"] for line in lines), default=0), run.config.updates
    evaluations = [line for line in lines if line["kind"] == "evaluation"]
    scores = {k: v for k, v in evaluations[-1].items() if "/" in k} if evaluations else {}
    complete = bool(evaluations) and evaluations[-1]["step"] == step >= updates
    if store.in_use(run.path) and not complete:
        speed = _speed(run, step)
        left = (updates - step) / speed if speed else None
        return Snapshot(run.name, "running", step, updates, left, scores)
    status = "finished" if complete else "stopped"
    return Snapshot(run.name, status, step, updates, None, scores)


def _speed(run: Run, step: int) -> float | None:
    """Updates per second since the older of the two checkpoints that are kept."""
    try:
        first = run.checkpoints.steps()[0]
        since = (run.path / "checkpoints" / f"{first:08d}.json").stat().st_mtime
        elapsed = run.metrics_path.stat().st_mtime - since
    except (IndexError, FileNotFoundError):
        return None
    return (step - first) / elapsed if step > first and elapsed > 0 else None


def look_at(runs: Runs, known: Mapping[Path, Snapshot] | None = None) -> dict[Path, Snapshot]:
    """What is to be seen of all these runs by folder; `known` has those that need no other look.

    One that cannot be read, for example because its method is in a file that nobody named, does not
    hide the others. If there is no other, it is an error.
    """
    seen: dict[Path, Snapshot] = {}
    problems: list[Exception] = []
    for given, _ in each_run(runs):
        path = (given.path if isinstance(given, Run) else given).resolve()
        if path in seen:
            continue
        if known and path in known:
            seen[path] = known[path]
            continue
        try:
            seen[path] = look(Run.of(given))
        except (ErtrlError, OSError) as problem:
            problems.append(problem)
            seen[path] = Snapshot(path.name, "unreadable", 0, 0, None, {}, str(problem))
    if problems and len(problems) == len(seen):
        raise problems[0]
    return seen


def table(snapshots: Sequence[Snapshot]) -> Table:
    """A row per run; narrow enough that names, which one copies, stay whole in 80 columns."""
    scores = [name.split("/") for s in snapshots for name in s.scores]
    protocols = list(dict.fromkeys(p for p, group in scores if p in PROTOCOLS and group == GROUP))
    notes = [f"normalised return on {GROUP} tasks, newest evaluation"] if protocols else []
    if any(name not in PROTOCOLS for name, _ in scores):
        notes.append("no simulator: `ertrl evaluate` shows what logs tell")
    timed = ["left"] if any(s.seconds_left is not None for s in snapshots) else []
    drawn = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        caption="\n".join(notes) or None,
        caption_justify="left",
    )
    drawn.add_column("run", overflow="fold")
    drawn.add_column("", no_wrap=True)
    for head in ("done", *timed, *protocols):
        drawn.add_column(head.replace("-", "-\n"), justify="right", no_wrap=True)
    short = [s.run[:-DIGITS] for s in snapshots]
    styles = {"running": "green", "finished": "dim", "stopped": "yellow", "unreadable": "red"}
    for s in snapshots:
        left = "" if s.seconds_left is None else readable_duration(s.seconds_left)
        found = [s.scores.get(f"{name}/{GROUP}") for name in protocols]
        drawn.add_row(
            Text(s.run if s.problem or short.count(s.run[:-DIGITS]) > 1 else s.run[:-DIGITS]),
            Text(s.status, style=styles[s.status]),
            "" if s.problem else f"{100 * s.step // s.updates}%",
            *(left for _ in timed),
            *("" if score is None else f"{score:.1f}" for score in found),
        )
    return drawn


def watch(runs: Runs, *, once: bool = False, every: float = 2.0) -> list[Snapshot]:
    """Show runs until none of them is running any more, or `once`; returns the last look.

    Control-C ends the watching and not the runs. Folders are read anew each time, so runs that
    start later appear; runs that have finished are not read again.
    """
    seen = look_at(runs)
    with Live(_shown(seen), auto_refresh=False) as live, suppress(KeyboardInterrupt):
        while not once and any(s.status == "running" for s in seen.values()):
            time.sleep(every)
            seen = look_at(runs, {at: s for at, s in seen.items() if s.status == "finished"})
            live.update(_shown(seen), refresh=True)
    return list(seen.values())


def _shown(seen: Mapping[Path, Snapshot]) -> Group:
    """The table, and below it what is wrong with those of which nothing is known."""
    snapshots = list(seen.values())
    return Group(table(snapshots), *(Text(s.problem) for s in snapshots if s.problem))
