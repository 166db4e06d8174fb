"""Write a dataset. It appears under its name only when it is complete."""

import os
import shutil
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
from ertrl.envs.family import Family
from ertrl.errors import DataError
from ertrl.provenance import provenance
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
        )


class DatasetWriter:
    """Preallocates memory-mapped files, takes episodes in blocks, then seals them."""

    def __init__(
        self,
        path: Path,
        family: Family | Description,
        episodes_per_task: int | Mapping[int, int],
        filled: Sequence[int] | None = None,
    ):
        """Work in a hidden folder beside the final one.

        A number of episodes is for each task of the family; a mapping names tasks and numbers. With
        `filled`, go on with the folder of an earlier writer that was stopped, behind that many
        episodes of each task.
        """
        if path.exists():
            raise DataError(
                f"{path} already exists. Choose another place, or remove it to collect again."
            )
        if isinstance(family, Family):
            if isinstance(episodes_per_task, int):
                episodes_per_task = dict.fromkeys(range(family.n_tasks), episodes_per_task)
            family = Description.of(family)
        assert isinstance(episodes_per_task, Mapping)
        self._path, self._description = path, family
        self._sizes = (family.horizon, family.observation_dim, family.action_dim)
        self._work = path.with_name(f".{path.name}.partial")
        self._lock = ExitStack()
        self._lock.enter_context(store.exclusive(path.with_name(f".{path.name}.lock")))
        if filled is None:
            shutil.rmtree(self._work, ignore_errors=True)
        for stale in self._work.rglob("*.tmp"):
            stale.unlink()
        already = filled or [0] * len(episodes_per_task)
        self._filled = dict(zip(episodes_per_task, already, strict=True))
        open_map = store.map_array if filled is None else store.map_again
        self._arrays = {
            task: {
                field: open_map(
                    self._work / layout.file_of(task, field),
                    layout.dtype_of(field),
                    layout.shape_of(field, episodes, *self._sizes),
                )
                for field in layout.FIELDS
            }
            for task, episodes in episodes_per_task.items()
        }

    @property
    def filled(self) -> list[int]:
        """Episodes of each task so far."""
        return list(self._filled.values())

    def rows(self, task: int) -> list[np.ndarray]:
        """The arrays of one task, empty rows at their end."""
        return list(self._arrays[task].values())

    def flush(self) -> None:
        """Bring everything to the disk."""
        for arrays in self._arrays.values():
            for array in arrays.values():
                array.flush()

    def draw_states(self, task: int, draw: np.random.Generator, size: int) -> np.ndarray:
        """Observations [size, O] of one task that actions were taken in, with replacement."""
        arrays = self._arrays[task]
        lengths = np.asarray(arrays["lengths"][: self._filled[task]])
        which = draw.integers(lengths.sum(), size=size)
        episode = np.searchsorted(np.cumsum(lengths), which, side="right")
        step = which - (np.cumsum(lengths) - lengths)[episode]
        return np.asarray(arrays["observations"][episode, step])

    def pause(self) -> None:
        """Leave what is incomplete for a later writer."""
        self._arrays.clear()
        self._release()

    def abandon(self) -> None:
        """Remove what is incomplete."""
        self._arrays.clear()
        shutil.rmtree(self._work, ignore_errors=True)
        self._release()

    def _release(self) -> None:
        self._lock.close()
        shutil.rmtree(self._path.with_name(f".{self._path.name}.lock"), ignore_errors=True)

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
        for field, array in self._arrays[task].items():
            array[first : first + count] = block[field][good]
        self._filled[task] = first + count

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
        for task, arrays in self._arrays.items():
            if not self._filled[task]:
                raise DataError(f"no episode of task {task} is usable; nothing was written")
            files = {}
            for field in list(arrays):
                array = arrays.pop(field)
                relative = layout.file_of(task, field)
                files[field] = {
                    "path": relative,
                    "sha256": self._finish(array, self._work / relative, self._filled[task]),
                }
            tasks.append(
                {
                    "task": task,
                    "group": records[task].group,
                    "parameters": [float(p) for p in records[task].parameters],
                    "reference": {k: float(v) for k, v in records[task].reference.items()},
                    "episodes": self._filled[task],
                    "files": files,
                }
            )
            store.sync_directory((self._work / layout.file_of(task, "rewards")).parent)
        store.sync_directory(self._work / "tasks")
        manifest = {
            "kind": layout.KIND,
            "format": layout.FORMAT,
            **asdict(self._description),
            "parameter_names": list(self._description.parameter_names),
            "tasks": tasks,
            "collector": collector,
            **({"imported": imported} if imported else {}),
            "provenance": provenance(),
        }
        store.write_json(self._work / layout.MANIFEST, manifest)
        os.rename(self._work, self._path)
        store.sync_directory(self._path.parent)
        self._release()
        # Last, because the data counts: it is safe already should drawing the card fail.
        write_card(Dataset(self._path, verify=False))

    @staticmethod
    def _finish(array: np.memmap, file: Path, episodes: int) -> str:
        array.flush()
        if episodes < len(array):
            shorter = file.with_name(f".{file.name}.tmp")
            with open(shorter, "wb") as handle:
                np.save(handle, np.asarray(array[:episodes]), allow_pickle=False)
            os.replace(shorter, file)
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())
        return store.sha256_file(file)
