"""What all importers share: episodes of somebody's logs become a dataset, task by task."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ertrl.data.dataset import Dataset
from ertrl.data.writer import DatasetWriter, Description, Episode, TaskRecord
from ertrl.errors import ConfigError
from ertrl.progress import Meter, ProgressStyle

Limit = float | Sequence[float] | None
"""Lowest or highest action, one number or one per dimension; None: not given."""


class ImportedTask(NamedTuple):
    """A task before it is written."""

    label: str
    record: TaskRecord
    count: int
    """Of its episodes."""
    episodes: Iterable[Episode]
    """Read when it is their turn."""


def write_imported(
    out: Path,
    about: Description,
    tasks: Mapping[int, ImportedTask],
    collector: str | dict[str, Any],
    imported: dict[str, Any],
    progress: ProgressStyle,
) -> Dataset:
    """Write all tasks; should one of them fail, nothing is there."""
    if isinstance(collector, str):
        collector = {"name": collector, "config": {}, "curve": []}
    writer = DatasetWriter(out, about, {number: task.count for number, task in tasks.items()})
    try:
        with Meter(f"import {about.family}", len(tasks), style=progress) as meter:
            for done, (number, task) in enumerate(tasks.items(), start=1):
                for episode in task.episodes:
                    writer.append(number, episode)
                meter.update(done, task.label)
        writer.seal({n: task.record for n, task in tasks.items()}, collector, imported)
    except BaseException:
        writer.abandon()
        raise
    return Dataset(out, verify=False)


def limit_of_actions(given: float | Sequence[float], size: int) -> np.ndarray:
    """A limit that was given, for each number of an action."""
    if np.size(given) not in (1, size):
        raise ConfigError(f"{np.size(given)} action limits for {size} numbers of an action")
    return np.broadcast_to(np.asarray(given, np.float64), (size,))


def names_of(given: str | Sequence[str]) -> list[str]:
    """One name, or several."""
    return [given] if isinstance(given, str) else list(given)
