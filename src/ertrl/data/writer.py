"""Write a dataset. It appears under its name only when it is complete."""

import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ertrl import store
from ertrl.data import layout
from ertrl.data.card import write_card
from ertrl.data.dataset import Dataset
from ertrl.data.maps import Maps
from ertrl.data.same_family import family_code
from ertrl.envs.family import Family
from ertrl.errors import ConfigError, DataError
from ertrl.provenance import provenance
from ertrl.runtime import ActionRange
from ertrl.types import Episodes


class TaskRecord(NamedTuple):
    """What the manifest says of a task, next to its files."""

    group: str
    parameters: tuple[float, ...]
    reference: dict[str, float]
    """Mean returns of 'expert', 'random' and 'zero' (action), as far as they are known."""


@dataclass(frozen=True)
class Description:
    """What all tasks of a dataset have in common, in the manifest's words."""

    family: str
    """Name of the family, or of the logs if there is no simulator."""
    family_options: dict[str, Any]
    parameter_names: tuple[str, ...]
    horizon: int
    observation_dim: int
    action_dim: int
    simulator: bool = True
    """Whether `make_family` can make the family again."""
    action_low: list[float] | None = None
    """What stored actions of -1 stand for; not in the manifest where that is -1."""
    action_high: list[float] | None = None
    family_code: dict[str, str] | None = None
    """Checksums of the files of one's own that the family is made of; None: it has none."""

    @classmethod
    def of(cls, family: Family) -> "Description":
        """What a family says of itself."""
        return cls(
            family=family.name,
            family_options=family.options,
            parameter_names=tuple(family.parameter_names),
            horizon=family.horizon,
            observation_dim=family.observation_dim,
            action_dim=family.action_dim,
            action_low=family.action_low,
            action_high=family.action_high,
            family_code=family_code(family) or None,
        )

    @classmethod
    def of_logs(
        cls,
        name: str,
        parameter_names: Sequence[str],
        horizon: int,
        sizes: tuple[int, int],
        actions: ActionRange,
    ) -> "Description":
        """Of data without a simulator; `sizes` are those of observations and actions."""
        names, ends = tuple(parameter_names), (actions.low.tolist(), actions.high.tolist())
        return cls(name, {}, names, horizon, *sizes, False, *ends)


class Episode(NamedTuple):
    """One episode as it is stored, of n steps."""

    observations: np.ndarray
    """[n + 1, O]."""
    actions: np.ndarray
    """[n, A], in [-1, 1]."""
    rewards: np.ndarray
    terminated: bool
    truncated: bool
    checkpoint: int


class DatasetWriter:
    """Preallocates memory-mapped files, takes episodes in blocks, then seals them."""

    def __init__(
        self,
        path: Path,
        about: Description,
        episodes: Mapping[int, int],
        filled: Sequence[int] | None = None,
    ):
        """Work in a hidden folder beside the final one, with room for so many episodes per task.

        With `filled`, go on with the folder of an earlier writer that was stopped, behind that many
        episodes of each task.
        """
        if filled is not None and len(filled) != len(episodes):
            raise DataError(
                f"{path}: its savepoint tells of {len(filled)} tasks, this collection has "
                f"{len(episodes)}. To start anew, remove .{path.name}.collecting beside it."
            )
        self._path, self._about = place_of(path), about
        self._work = path.with_name(f".{path.name}.partial")
        self._place = ExitStack()
        self._place.enter_context(store.claim(path))
        self._filled = dict(zip(episodes, filled or [0] * len(episodes), strict=True))
        sizes = about.horizon, about.observation_dim, about.action_dim
        self._specs = {t: layout.task_arrays(count, *sizes) for t, count in episodes.items()}
        self._maps = Maps("r+")
        try:
            self._open(new=filled is None)
        except BaseException:
            self.abandon() if filled is None else self.pause()
            raise

    def _open(self, *, new: bool) -> None:
        """Make all files, or look whether they fit."""
        if new:
            shutil.rmtree(self._work, ignore_errors=True)
        for stale in self._work.rglob("*.tmp"):
            stale.unlink()
        for task, specs in self._specs.items():
            for name, spec in specs.items():
                if new:
                    store.map_array(self._work / layout.file_of(task, name), *spec)
                else:
                    self._map(task, name)

    def _map(self, task: int, name: str) -> np.memmap:
        return self._maps.get(self._work / layout.file_of(task, name), self._specs[task][name])

    @property
    def filled(self) -> list[int]:
        return list(self._filled.values())

    def rows(self, task: int) -> list[np.ndarray]:
        """The arrays of one task, empty rows at their end."""
        return list(self._arrays(task).values())

    def _arrays(self, task: int) -> dict[str, np.memmap]:
        return {name: self._map(task, name) for name in self._specs[task]}

    def flush(self) -> None:
        """Bring all to the disk: of a file that was closed meanwhile, what the system still holds.

        That is what flushing a new map of it does.
        """
        for task in self._specs:
            for array in self._arrays(task).values():
                array.flush()

    def draw_states(self, task: int, draw: np.random.Generator, size: int) -> np.ndarray:
        """Observations [size, O] of one task that actions were taken in, with replacement."""
        arrays = self._arrays(task)
        lengths = np.asarray(arrays["lengths"][: self._filled[task]])
        which = draw.integers(lengths.sum(), size=size)
        episode = np.searchsorted(np.cumsum(lengths), which, side="right")
        step = which - (np.cumsum(lengths) - lengths)[episode]
        return np.asarray(arrays["observations"][episode, step])

    def pause(self) -> None:
        """Leave what is incomplete for a later writer."""
        self._maps.close()
        self._place.close()

    def abandon(self) -> None:
        """Remove what is incomplete."""
        self._maps.close()
        shutil.rmtree(self._work, ignore_errors=True)
        self._place.close()

    def add(self, task: int, episodes: Episodes, checkpoint: int) -> None:
        """Append episodes of one task; diverged ones are left out."""
        good = ~episodes.diverged
        first, count = self._filled[task], int(good.sum())
        block = {
            "observations": episodes.observation,
            "actions": episodes.action,
            "rewards": episodes.reward,
            "lengths": episodes.length,
            "terminated": episodes.terminated,
            "truncated": episodes.truncated,
            "checkpoints": np.full(len(good), checkpoint),
        }
        for field, array in self._arrays(task).items():
            array[first : first + count] = block[field][good]
        self._filled[task] = first + count

    def append(self, task: int, episode: Episode) -> None:
        """Append one episode; what lies behind its end stays zero.

        An end that comes with the time limit, as Gymnasium may tell it, is an end.
        """
        arrays, row, n = self._arrays(task), self._filled[task], len(episode.rewards)
        arrays["observations"][row, : n + 1] = episode.observations
        arrays["actions"][row, :n] = episode.actions
        arrays["rewards"][row, :n] = episode.rewards
        arrays["lengths"][row] = n
        arrays["terminated"][row] = episode.terminated
        arrays["truncated"][row] = episode.truncated and not episode.terminated
        arrays["checkpoints"][row] = episode.checkpoint
        self._filled[task] += 1

    def seal(
        self,
        records: dict[int, TaskRecord],
        collector: dict[str, Any],
        imported: dict[str, Any] | None = None,
    ) -> None:
        """Flush, hash, write the manifest, move the folder into place and add its card.

        `imported` says where data that was not collected here comes from.
        """
        tasks = []
        for task, specs in self._specs.items():
            if not self._filled[task]:
                raise DataError(f"no episode of task {task} is usable; nothing was written")
            files = {}
            for name in specs:
                path = layout.file_of(task, name)
                digest = _finish(self._map(task, name), self._work / path, self._filled[task])
                self._maps.close(self._work / path)
                files[name] = {"path": path, "sha256": digest}
            record = records[task]
            tasks.append(
                {
                    "task": task,
                    "group": record.group,
                    "parameters": [float(p) for p in record.parameters],
                    "reference": {k: float(v) for k, v in record.reference.items()},
                    "episodes": self._filled[task],
                    "files": files,
                }
            )
            store.sync_directory((self._work / layout.file_of(task, "rewards")).parent)
        store.sync_directory(self._work / "tasks")
        manifest = {
            "kind": layout.KIND,
            "format": layout.FORMAT,
            **{k: v for k, v in asdict(self._about).items() if v is not None},
            "tasks": tasks,
            "collector": collector,
            **({"imported": imported} if imported else {}),
            "provenance": provenance(),
        }
        store.write_json(self._work / layout.MANIFEST, manifest)
        self._add_card()
        os.rename(self._work, self._path)
        store.sync_directory(self._path.parent)
        self._place.close()

    def _add_card(self) -> None:
        """The dataset appears with its card, or without if it cannot be drawn: the data counts."""
        made = Dataset(self._work, verify=False)
        try:
            write_card(made)
        except Exception as error:
            warnings.warn(
                f"the card of {self._path} could not be written ({error}); the data is whole. "
                f"`ertrl data card {self._path}` tries again",
                stacklevel=2,
            )


def place_of(out: str | Path) -> Path:
    """Where a dataset is to be: a folder with a name, beside which it is prepared."""
    path = Path(out)
    if path.name in ("", ".."):
        raise ConfigError(
            f"'{path}' cannot become a dataset: name a folder of its own, for example data/NAME"
        )
    return path


def _finish(array: np.memmap, file: Path, episodes: int) -> str:
    """Cut what stayed empty and bring the file to the disk; returns its checksum."""
    array.flush()
    if episodes < len(array):
        shorter = file.with_name(f".{file.name}.tmp")
        with open(shorter, "wb") as handle:
            np.save(handle, np.asarray(array[:episodes]), allow_pickle=False)
        os.replace(shorter, file)
    with open(file, "rb") as handle:
        os.fsync(handle.fileno())
    return store.sha256_file(file)
