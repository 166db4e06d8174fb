"""Data that others released, in their layouts, as a dataset without a simulator.

    unicorn   TASKS/seed_1_goal_2.62/{obs,actions,rewards,next_obs,terminals}.npy
    spc       TASKS/goal_idx0/dataset.pth, a tensor [rows, s a r s' terminal]

Tasks are read one after the other, so memory has to hold one of them. Nothing is unpickled.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from pickletools import genops  # names the words of a pickle, and runs none of them
from statistics import mode
from typing import Any, NamedTuple

import numpy as np

from ertrl.data.dataset import Dataset
from ertrl.data.imports.common import ImportedTask, Limit, range_of_actions, write_imported
from ertrl.data.writer import Description, Episode, TaskRecord
from ertrl.envs.tasks import split_tasks
from ertrl.errors import ConfigError, DataError
from ertrl.progress import ProgressStyle
from ertrl.runtime import ActionRange

LINKED_ROWS = 2000
"""Rows of a tensor that show where a state ends: its s' is the next row's s."""


class Rows(NamedTuple):
    """One task's transitions, in the order they were made."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminated: np.ndarray


class ReleasedTask(NamedTuple):
    name: str
    parameters: tuple[float, ...]
    folder: Path


class Layout(NamedTuple):
    """How a release names its tasks, and what is in the folder of one."""

    folder: str
    """Of a task: its number, and its goal where the name says it."""
    file: str
    """One that such a folder has."""
    read: Callable[[Path], Rows]


def find_release(folder: Path) -> tuple[str, list[ReleasedTask]] | None:
    """The layout that a folder (or `data` in it) has, and its tasks by number; None: no release."""
    for place in (folder, folder / "data"):
        for name, layout in LAYOUTS.items():
            found = []
            for inner in place.iterdir() if place.is_dir() else ():
                words = re.fullmatch(layout.folder, inner.name)
                if words and (inner / layout.file).is_file():
                    try:
                        goal = tuple(float(word) for word in words["goal"].split("_") if word)
                    except ValueError:
                        raise DataError(f"{inner}: the goal in its name is no number") from None
                    found.append(ReleasedTask(words["number"], goal, inner))
            if found:
                return name, sorted(found, key=lambda task: int(task.name))
    return None


def import_release(
    layout: str,
    tasks: Sequence[ReleasedTask],
    out: Path,
    *,
    held_out: float | Sequence[str] | None,
    ood: Sequence[str],
    bounds: tuple[Limit, Limit],
    longest: int,
    name: str,
    progress: ProgressStyle,
) -> Dataset:
    """Make a dataset of them; what the arguments mean, `import_logs` says."""
    read, folder, names = LAYOUTS[layout].read, tasks[0].folder.parent, [t.name for t in tasks]
    if longest < 1:
        raise ConfigError(f"pieces of episodes have at least one step, got longest={longest}")
    if len(set(names)) < len(names):
        raise DataError(f"{folder}: several folders are task {mode(names)}")
    groups = split_tasks(names, held_out, ood)
    if len({len(task.parameters) for task in tasks}) > 1:
        raise DataError(f"{folder}: goals in the names of folders differ in size")
    sizes, pieces, lows, highs, timed = set(), [], [], [], []
    for task in tasks:  # a first look, so that files get their size
        rows = read(task.folder)
        sizes.add((rows.observation.shape[1], rows.action.shape[1]))
        cut, limit = _pieces(rows, task.folder, longest)
        pieces.append(cut)
        timed.append(limit)
        lows.append(rows.action.min(axis=0))
        highs.append(rows.action.max(axis=0))
        if len(sizes) > 1:
            raise DataError(f"{task.folder}: states or actions differ in size from other tasks'")
    span = _range(bounds, np.min(lows, axis=0), np.max(highs, axis=0))
    goal = [f"goal_{i}" for i in range(len(tasks[0].parameters))]
    horizon = max(last - first for found in pieces for first, last in found)
    about = Description.of_logs(name or out.name, goal, horizon, sizes.pop(), span)
    notes = ["episodes end where a next state is not the state of the row behind it"]
    if any(timed):
        notes.append(f"{sum(timed)} tasks end all episodes after as many steps: a time limit")
    found = {}
    for i, task in enumerate(tasks):
        record = TaskRecord(groups[task.name], task.parameters, {})
        episodes = _episodes(read, task.folder, pieces[i], span, timed[i])
        found[i] = ImportedTask(task.folder.name, record, len(pieces[i]), episodes)
    imported = {
        "format": layout,
        "datasets": [folder.name],
        "tasks": names,
        "notes": notes,
    }
    return write_imported(out, about, found, layout, imported, progress)


def _pieces(rows: Rows, where: Path, longest: int) -> tuple[list[tuple[int, int]], bool]:
    """Episodes in pieces of at most so many steps; whether their ends are the clock's.

    Of a piece, its first row and the row behind its last.
    """
    linked = (rows.next_observation[:-1] == rows.observation[1:]).all(axis=1)
    if not linked.any():
        raise DataError(
            f"{where}: no row begins where the one before it ended. Rows have to be in the order "
            "they were made"
        )
    ends = 1 + np.flatnonzero(np.r_[~linked | rows.terminated[:-1], True])
    same = len(ends) > 1 and len(set(np.diff(ends, prepend=0))) == 1
    pieces = [
        (begin, min(begin + longest, last))
        for first, last in pairwise([0, *ends.tolist()])
        for begin in range(first, last, longest)
    ]
    return pieces, same and bool(rows.terminated[ends - 1].all())


def _range(given: tuple[Limit, Limit], low: np.ndarray, high: np.ndarray) -> ActionRange:
    """As given; else [-1, 1], which all releases so far use, or the data's where it is wider."""
    usual = [np.where(np.abs(seen) <= 1, end, seen) for seen, end in ((low, -1.0), (high, 1.0))]
    span = range_of_actions(given, usual)
    if not (span.low < span.high).all():
        raise DataError(
            f"actions have no range: from {span.low.tolist()} to {span.high.tolist()}; give "
            "--action-low and --action-high"
        )
    if (low < span.low - 1e-5).any() or (high > span.high + 1e-5).any():
        raise DataError(
            f"actions reach from {low.tolist()} to {high.tolist()}, outside of "
            f"{span.low.tolist()} to {span.high.tolist()}; give --action-low and --action-high"
        )
    return span


def _episodes(
    read: Callable[[Path], Rows],
    folder: Path,
    pieces: list[tuple[int, int]],
    span: ActionRange,
    timed: bool,
) -> Iterator[Episode]:
    rows = read(folder)
    for first, last in pieces:
        over = bool(rows.terminated[last - 1]) and not timed
        yield Episode(
            observations=np.vstack([rows.observation[first:last], rows.next_observation[last - 1]]),
            actions=span.cut(rows.action[first:last]),
            rewards=rows.reward[first:last],
            terminated=over,
            truncated=not over,
            checkpoint=0,
        )


# --- the layouts ---


def _read_arrays(folder: Path) -> Rows:
    """UNICORN: [rows, numbers], or [steps, episodes, numbers]."""
    found = []
    for name in ("obs", "actions", "rewards", "next_obs", "terminals"):
        file = folder / f"{name}.npy"
        try:
            values = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{file} cannot be read: {error}") from None
        if values.dtype.kind not in "biuf" or values.ndim not in (2, 3):
            raise DataError(f"{file} holds {values.dtype} {values.shape}; expected rows of numbers")
        values = values if values.ndim == 2 else values.swapaxes(0, 1)
        found.append(np.asarray(values.reshape(-1, values.shape[-1]), np.float32))
    observation, action, reward, after, over = found
    return _checked(Rows(observation, action, reward[:, 0], after, over[:, 0] > 0.5), folder)


def _read_tensor(folder: Path) -> Rows:
    """SPC: one row of a tensor is s, a, r, s' and whether that is terminal."""
    table = _tensor(folder / "dataset.pth")
    width, some = table.shape[1], table[:LINKED_ROWS]
    fitting = [
        size
        for size in range(1, (width - 3) // 2 + 1)
        if (some[:-1, width - 1 - size : -1] == some[1:, :size]).all(axis=1).mean() > 0.5
    ]
    if len(fitting) != 1:
        raise DataError(
            f"{folder}: rows have {width} numbers, but it is not plain which are the state: the "
            "s' of a row should be the s of the next one"
        )
    o = fitting[0]
    parts = table[:, :o], table[:, o : -o - 2], table[:, -o - 2], table[:, -o - 1 : -1]
    return _checked(Rows(*parts, terminated=table[:, -1] > 0.5), folder)


def _tensor(file: Path) -> np.ndarray:
    """The one float32 tensor of a file that torch.save wrote: its numbers lie there as they are."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [
                next(entry for entry in archive.infolist() if entry.filename.endswith(end))
                for end in ("/data.pkl", "/data/0")
            ]
            for entry in entries:  # one is as large in memory as in the file, or it is not torch's
                if entry.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"{entry.filename} is compressed")
            words, content = map(archive.read, entries)
            said = [(code.name, value) for code, value, _ in genops(words)]
    except Exception as error:  # a file may hold anything, and fail in as many ways
        raise DataError(f"{file} is not a tensor that torch.save wrote: {error}") from None
    stored, *rest = [i for i, (code, _) in enumerate(said) if code == "BINPERSID"] or [0, 0]
    kinds = [value for code, value in said[:stored] if code == "GLOBAL"]
    # Behind the storage stand its offset, the shape and the strides.
    whole: list[Any] = [value for code, value in said[stored:] if code.startswith("BININT")]
    offset, count, width, *strides = [*whole, 0, 0, 0][:5]
    plain = not rest and "torch FloatStorage" in kinds and (offset, strides) == (0, [width, 1])
    if not plain or min(count, width) < 1 or len(content) < 4 * count * width:
        raise DataError(f"{file}: expected one float32 tensor [rows, numbers], found {kinds}")
    # A part of a larger buffer is saved with all of it.
    return np.frombuffer(content, "<f4", count * width).reshape(count, width)


def _checked(rows: Rows, where: Path) -> Rows:
    """Equally many of everything, at least two, all of them finite."""
    counts = {name: len(values) for name, values in rows._asdict().items()}
    if len(set(counts.values())) > 1 or len(rows.reward) < 2:
        raise DataError(f"{where}: expected equally many rows of all, at least two; got {counts}")
    for name, values in rows._asdict().items():
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise DataError(f"{where}: {name} is NaN, infinite or beyond 32 bits in row {row + 1}")
    if rows.observation.shape != rows.next_observation.shape:
        raise DataError(
            f"{where}: states have {rows.observation.shape[1]} numbers, next states "
            f"{rows.next_observation.shape[1]}"
        )
    return rows


LAYOUTS = {
    "unicorn": Layout(r"seed_(?P<number>\d+)_goal_(?P<goal>[-+.\de_]+)", "obs.npy", _read_arrays),
    "spc": Layout(r"goal_idx(?P<number>\d+)(?P<goal>)", "dataset.pth", _read_tensor),
}
