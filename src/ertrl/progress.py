"""Progress for people on a terminal, plain lines elsewhere, JSON lines for parent processes."""

import json
import sys
import time
from typing import Literal, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ertrl.text import readable_duration

ProgressStyle = Literal["auto", "json", "none"]
SECONDS_BETWEEN_LINES = 5.0


def rich_bars(console: Console) -> Progress:
    """The look of every bar of this program."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
        console=console,
    )


def in_notebook() -> bool:
    """Whether output goes below a cell, where a line can be written over but no bar be drawn."""
    return "ipykernel" in sys.modules and not sys.stderr.isatty()


def show_line(text: str) -> None:
    """How far it is; in a notebook each such line takes the place of the one before."""
    if in_notebook():
        print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def say(text: str, style: ProgressStyle = "auto") -> None:
    """A line for a person; nothing where progress is for a program or switched off."""
    if style == "auto":
        print(text, file=sys.stderr, flush=True)


class Meter:
    """One bar, from start to total, with a short note beside it."""

    def __init__(self, label: str, total: int, start: int = 0, style: ProgressStyle = "auto"):
        """`start` > 0 where work was resumed."""
        self._label, self._total, self._start = label, total, start
        self._first: tuple[int, float] | None = None
        """What the first portion did, and when it ended: it compiles, so its pace says nothing."""
        self._last_line = -SECONDS_BETWEEN_LINES
        self._style = style
        self._bars: Progress | None = None
        console = Console(stderr=True)
        if style == "auto" and console.is_terminal:
            self._bars = rich_bars(console)
            self._bar = self._bars.add_task(label, total=total, completed=start, note="")

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars:
            self._bars.stop()
        elif self._style == "auto" and in_notebook():
            print(file=sys.stderr)

    def update(self, done: int, note: str = "") -> None:
        if self._bars:
            self._bars.update(self._bar, completed=done, note=note)
        elif self._style == "json":
            print(json.dumps({"done": done, "total": self._total, "note": note}), flush=True)
        elif self._style == "auto":
            now = time.monotonic()
            if self._first is None and done > self._start:
                self._first = done, now
            if done < self._total and now - self._last_line < SECONDS_BETWEEN_LINES:
                return
            self._last_line = now
            parts = [f"{self._label}: {done}/{self._total}"]
            known, since = self._first or (done, now)
            rate = (done - known) / max(now - since, 1e-9)
            if rate > 0:
                parts.append(f"{readable_duration((self._total - done) / rate)} left")
            show_line(", ".join([*parts, note] if note else parts))
