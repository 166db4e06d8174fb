"""Follow training from outside: reads what runs write, touches nothing."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ertrl import store
from ertrl.text import readable_duration
from ertrl.training import Run, Runs, open_runs

DIGITS = len("-0123456789")
"""The end of a run's name that tells configurations apart; shown only where it has to."""
GROUP = "test-id"
"""Returns are shown on these tasks: held out, and of the same distribution."""


@dataclass(frozen=True)
class Snapshot:
    """How far a run is."""

    run: str
    status: Literal["running", "stopped", "finished"]
    step: int
    updates: int
    seconds_left: float | None
    """None where its speed is unknown or it is not running."""
    scores: dict[str, float]
    """'protocol/group' -> normalised return, of the newest evaluation."""


def look(run: Run) -> Snapshot:
    """What a run's files say now; damaged ones are refused, as everywhere."""
    run.check_seals()
    lines = run.metrics()
    step, updates = max((line["step"] for line in lines), default=0), run.config.updates
    evaluations = [line for line in lines if line["kind"] == "evaluation"]
    scores = {k: v for k, v in evaluations[-1].items() if "/" in k} if evaluations else {}
    complete = step >= updates and scores and evaluations[-1]["step"] == step
    if store.in_use(run.path) and not complete:
        speed = _speed(run, step)
        left = (updates - step) / speed if speed else None
        return Snapshot(run.name, "running", step, updates, left, scores)
    status = "finished" if step >= updates else "stopped"
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


def table(snapshots: Sequence[Snapshot]) -> Table:
    protocols = list(
        dict.fromkeys(k.split("/")[0] for s in snapshots for k in s.scores if k.endswith(GROUP))
    )
    caption = f"normalised return on {GROUP} tasks, newest evaluation"
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    drawn.add_column("run", overflow="fold")
    drawn.add_column("", no_wrap=True)
    for head in ("done", "left", *protocols):
        drawn.add_column(head, justify="right", no_wrap=True)
    short = [s.run[:-DIGITS] for s in snapshots]
    styles = {"running": "green", "finished": "dim", "stopped": "yellow"}
    for s in snapshots:
        scores = [s.scores.get(f"{p}/{GROUP}") for p in protocols]
        drawn.add_row(
            Text(s.run if short.count(s.run[:-DIGITS]) > 1 else s.run[:-DIGITS]),
            Text(s.status, style=styles[s.status]),
            f"{100 * s.step // s.updates}%",
            "" if s.seconds_left is None else readable_duration(s.seconds_left),
            *("" if score is None else f"{score:.1f}" for score in scores),
        )
    return drawn


def watch(runs: Runs, *, once: bool = False, every: float = 2.0) -> list[Snapshot]:
    """Show runs until none of them is running any more, or `once`; returns the last look.

    Control-C ends the watching and not the runs. Folders are read anew each time, so runs that
    start later appear; runs that have finished are not read again.
    """
    known: dict[Path, Snapshot] = {}

    def look_again() -> list[Snapshot]:
        present = open_runs(runs)
        for run in present:
            if run.path not in known or known[run.path].status != "finished":
                known[run.path] = look(run)
        return [known[run.path] for run in present]

    seen = look_again()
    with Live(table(seen), auto_refresh=False) as live, suppress(KeyboardInterrupt):
        while not once and any(s.status == "running" for s in seen):
            time.sleep(every)
            seen = look_again()
            live.update(table(seen), refresh=True)
    return seen
