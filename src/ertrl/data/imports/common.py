"""What all importers share: episodes of somebody's logs become a dataset, task by task."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ertrl.data import layout
from ertrl.data.dataset import Dataset
from ertrl.data.writer import DatasetWriter, Description, Episode, TaskRecord
from ertrl.errors import ConfigError
from ertrl.plugins import LONGEST_NAME
from ertrl.progress import Meter, ProgressStyle
from ertrl.runtime import ActionRange
from ertrl.shape import Name

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


def check_names(family: str, parameters: Sequence[str]) -> None:
    """Refuse names that no folder or no manifest can have, before any data is read."""
    if not _fits(family, layout.FamilyName) or len(os.fsencode(family)) > LONGEST_NAME:
        raise ConfigError(
            f"{family!r} cannot be the name of data: runs will be folders of that name, so it has "
            f"at most {LONGEST_NAME} bytes, no / or \\ and no control characters, and is "
            "not . or ..; give another one with --name"
        )
    if len(set(parameters)) < len(parameters) or not _fits(list(parameters), list[Name]):
        raise ConfigError(
            "--parameters takes different names of 1 to 200 characters, got "
            f"{', '.join(map(repr, parameters))}"
        )


def _fits(value: Any, shape: Any) -> bool:
    """Whether a manifest may hold it."""
    try:
        msgspec.convert(value, shape, strict=True)
    except msgspec.ValidationError:
        return False
    return True


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


def range_of_actions(given: tuple[Limit, Limit], otherwise: Iterable[np.ndarray]) -> ActionRange:
    """Lowest and highest action, as far as they are given."""
    ends = []
    for own, other in zip(given, otherwise, strict=True):
        size = len(other)
        if own is not None and np.size(own) not in (1, size):
            raise ConfigError(f"{np.size(own)} action limits for {size} numbers of an action")
        end = np.asarray(other if own is None else own, np.float64)
        ends.append(np.broadcast_to(end, (size,)))
    return ActionRange(*ends)


def outside(actions: np.ndarray, span: ActionRange) -> np.ndarray:
    """Which of the actions [n, A] lie outside, but for the rounding of whoever recorded them."""
    slack = 1e-5 * (span.high - span.low)
    beyond = (actions < span.low - slack) | (actions > span.high + slack)
    return np.any(beyond, axis=-1)


def unusable(values: np.ndarray) -> np.ndarray:
    """Which numbers are NaN, infinite or beyond 32 bits."""
    with np.errstate(over="ignore", invalid="ignore"):
        return ~np.isfinite(values.astype(np.float32, copy=False))
