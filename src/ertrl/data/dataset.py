"""Read a dataset: verified on opening, memory-mapped, never copied whole."""

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ertrl import store
from ertrl.config import fingerprint
from ertrl.data import layout
from ertrl.data.maps import Maps
from ertrl.data.numbers import check_numbers
from ertrl.data.same_family import code_changes, family_changes
from ertrl.envs import Family, family_names, make_family
from ertrl.errors import CorruptFileError, DataError, unknown
from ertrl.text import Described, readable_groups
from ertrl.types import Context, Dims, Transitions


class TaskData(Described):
    """The logged episodes of one task."""

    def __init__(
        self,
        folder: Path,
        entry: dict[str, Any],
        horizon: int,
        dims: Dims,
        name: str = "",
        maps: Maps | None = None,
    ):
        """Check that the arrays are what the manifest says; the large ones stay in their files.

        Tasks of one dataset share its `maps`, which limit how many files are open.
        """
        self.task: int = entry["task"]
        self.name = name
        """What the logs call it; empty for tasks that have only numbers."""
        self.group: str = entry["group"]
        self.parameters = np.asarray(entry["parameters"])
        self.reference: dict[str, float] = entry["reference"]
        self.episodes: int = entry["episodes"]
        self._horizon = horizon
        self._maps = Maps("r") if maps is None else maps
        expected = layout.task_arrays(self.episodes, horizon, dims.observation, dims.action)
        self._places = {
            name: (folder / entry["files"][name]["path"], spec) for name, spec in expected.items()
        }
        for name in ("observations", "actions", "rewards"):
            self._map(name)
        self.lengths, self.terminated, self.truncated, self.checkpoints = (
            self._read(name) for name in ("lengths", "terminated", "truncated", "checkpoints")
        )
        if self.lengths.min() < 1 or self.lengths.max() > horizon:
            raise DataError(f"{folder}: task {self.task} has an episode of impossible length")

    def _map(self, name: str) -> np.ndarray:
        return self._maps.get(*self._places[name])

    def _read(self, name: str) -> np.ndarray:
        """A copy in memory, which leaves no file open."""
        path, spec = self._places[name]
        return np.array(store.map_again(path, *spec, mode="r"))

    @property
    def observations(self) -> np.ndarray:
        """[E, L + 1, O], memory-mapped, as are the next two."""
        return self._map("observations")

    @property
    def actions(self) -> np.ndarray:
        """[E, L, A]."""
        return self._map("actions")

    @property
    def rewards(self) -> np.ndarray:
        """[E, L]."""
        return self._map("rewards")

    def _facts(self) -> dict[str, Any]:
        return {
            "task": self.task,
            **({"name": self.name} if self.name else {}),
            "group": self.group,
            "parameters": self.parameters.round(4).tolist(),
            "episodes": self.episodes,
            "transitions": len(self.steps),
            **{f"{kind}_return": round(mean, 2) for kind, mean in self.reference.items()},
        }

    @cached_property
    def steps(self) -> np.ndarray:
        """Row numbers (episode x L + step) of all real transitions."""
        return np.flatnonzero(np.arange(self._horizon) < self.lengths[:, None])

    @cached_property
    def returns(self) -> np.ndarray:
        """Undiscounted return of each episode."""
        real = np.arange(self._horizon) < self.lengths[:, None]
        return np.where(real, self.rewards, 0).sum(axis=1, dtype=np.float64)

    def transitions(self, which: np.ndarray, *, timeouts_terminate: bool = False) -> Transitions:
        """Transitions by their number (0 <= which < len(steps)); any shape."""
        try:
            rows = self.steps[which]
        except IndexError:
            raise DataError(
                f"this task has {len(self.steps):,} transitions, numbered from 0; asked for "
                f"{np.min(which)} to {np.max(which)}"
            ) from None
        return self._rows(rows, timeouts_terminate)

    def windows(self, which: np.ndarray, length: int) -> Context:
        """Transitions by their number and those that followed; masked behind an episode's end."""
        first = self.steps[which][..., None]
        episode, step = np.divmod(first, self._horizon)
        left = self.lengths[episode] - step
        ahead = np.arange(length)
        mask = (ahead < left).astype(np.float32)
        return Context.of(self._rows(first + np.minimum(ahead, left - 1), False), mask)

    def _rows(self, row: np.ndarray, timeouts_terminate: bool) -> Transitions:
        episode, step = np.divmod(row, self._horizon)
        flat = self.observations.reshape(-1, self.observations.shape[-1])
        here = row + episode  # L+1 observations per episode against L rows
        last = step + 1 == self.lengths[episode]
        over = self.terminated | self.truncated if timeouts_terminate else self.terminated
        return Transitions(
            observation=flat[here],
            action=self.actions.reshape(-1, self.actions.shape[-1])[row],
            reward=self.rewards.reshape(-1)[row],
            next_observation=flat[here + 1],
            terminated=(last & over[episode]).astype(np.float32),
        )


class Dataset(Described):
    """Logged data of a whole family of tasks."""

    def __init__(self, path: str | Path, *, verify: bool = True):
        """Open the folder. `verify` reads every file once and compares its SHA-256."""
        self.path = Path(path)
        if not (self.path / layout.MANIFEST).exists():
            raise DataError(
                unfinished(self.path)
                or f"{self.path} is not a dataset: it has no {layout.MANIFEST}. "
                "Make one with `ertrl collect FAMILY`, or of your logs with `ertrl data import`."
            )
        self.manifest = store.read_json(self.path / layout.MANIFEST, layout.Manifest)
        self.family: str = self.manifest["family"]
        self.family_options: dict[str, Any] = self.manifest["family_options"]
        self.has_simulator: bool = self.manifest["simulator"]
        self.horizon: int = self.manifest["horizon"]
        self.dims = Dims(
            self.manifest["observation_dim"],
            self.manifest["action_dim"],
            sum(entry["group"] == "train" for entry in self.manifest["tasks"]),
        )
        if verify:
            self._check_files()
        names, maps = self._task_names(), Maps("r")
        self.tasks = {
            entry["task"]: TaskData(self.path, entry, self.horizon, self.dims, name, maps)
            for entry, name in zip(self.manifest["tasks"], names, strict=True)
        }
        if verify:
            self._check_numbers()

    def _facts(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "family": self.family,
            "tasks": readable_groups(self.groups),
            "observation": self.dims.observation,
            "action": self.dims.action,
            "horizon": self.horizon,
            "transitions": f"{sum(int(task.lengths.sum()) for task in self.tasks.values()):,}",
            "simulator": self.has_simulator,
        }

    def _task_names(self) -> list[str]:
        """What logs call their tasks, in the manifest's order; each Minari dataset is a task."""
        imported, count = self.manifest.get("imported", {}), len(self.manifest["tasks"])
        names = imported.get("tasks", [])
        if imported.get("format") == "minari" and not self.has_simulator:
            names = imported["datasets"]
        return names if len(names) == count else [""] * count

    @classmethod
    def of(cls, data: "str | Path | Dataset") -> "Dataset":
        """The dataset itself, or the one in this folder, verified."""
        return data if isinstance(data, Dataset) else cls(data)

    @property
    def files(self) -> dict[str, str]:
        """Where its arrays are, relative to the folder, and their SHA-256."""
        entries = self.manifest["tasks"]
        return {f["path"]: f["sha256"] for entry in entries for f in entry["files"].values()}

    def verify(self) -> int:
        """Check every file and every number; returns how many files were checked."""
        count = self._check_files()
        self._check_numbers()
        return count

    def _check_files(self) -> int:
        """Compare every file with its checksum; none may be missing, and none too many."""
        listed = {self.path / name: digest for name, digest in self.files.items()}
        for path, digest in listed.items():
            store.check_file(path, digest)
        for path in (self.path / "tasks").rglob("*"):
            if path.is_file() and path not in listed and path.name[0] != ".":
                raise CorruptFileError(
                    f"{path} is no part of the dataset: the manifest has no such file"
                )
        return len(listed) + 1

    def _check_numbers(self) -> None:
        """A sealed file may still hold what no simulation measured."""
        for data in self.tasks.values():
            check_numbers(self.path, data)

    def make_family(self) -> Family:
        if not self.has_simulator:
            raise DataError(
                f"{self.path} has no simulator: its transitions were imported from logs. Agents "
                "train on it and adapt to logged contexts; how good they are is estimated from "
                "logs alone (`ertrl evaluate`), and there is nothing to film or to try."
            )
        if self.family not in family_names():
            raise DataError(
                f"{self.path} holds {self.family}, a family that this process does not know. "
                "Register it first, or name its file, or what makes it there: --plugin FILE.py or "
                "FILE.py:NAME"
            )
        family = make_family(self.family, **self.family_options)
        self.check_family(family)
        return family

    def check_family(self, family: Family) -> None:
        """Refuse a family that is not what it was when this was collected, as far as is known."""
        if changes := family_changes(self.manifest, family):
            raise DataError(
                f"{self.path} was collected with another {self.family} than this one: "
                f"{'; '.join(changes)}. Use the family as it was, or collect its data anew, into "
                "another place (--out)."
            )
        if changes := code_changes(self.manifest.get("family_code", {}), family):
            warnings.warn(
                f"{self.path} was collected with other code of {self.family} than there is now: "
                f"{changes}. If rewards or physics are others, its numbers and those of now cannot "
                "be compared: use the code as it was, or collect the data anew, into another place "
                "(--out).",
                stacklevel=2,
            )

    def task(self, task: int | str) -> TaskData:
        """By number, or by the name that logs gave it."""
        if isinstance(task, str):
            named = {data.name: data for data in self.tasks.values() if data.name}
            if task in named:
                return named[task]
            told = unknown("task", task, named)
            if not named:
                told = f"its tasks have no names, only the numbers {sorted(self.tasks)}"
            raise DataError(f"{self.path}: {told}")
        if task not in self.tasks:
            raise DataError(f"{self.path} has no task {task}; it has {sorted(self.tasks)}")
        return self.tasks[task]

    def group(self, name: str) -> list[int]:
        """The tasks of a group ('train', 'test-id', 'test-ood')."""
        return [t for t, data in self.tasks.items() if data.group == name]

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Group name -> tasks, in the order of the manifest."""
        names = dict.fromkeys(data.group for data in self.tasks.values())
        return {name: self.group(name) for name in names}

    @cached_property
    def fingerprint(self) -> str:
        """Names the content: equal data, equal fingerprint, wherever and whenever collected."""
        names = ("family", "family_options", "tasks", "action_low", "action_high")
        return fingerprint({name: self.manifest[name] for name in names if name in self.manifest})


def unfinished(path: Path) -> str:
    """What to do about a dataset that was begun and is not there yet; '' if none was begun."""
    for kind in ("collecting", "partial"):
        if (work := path.parent / f".{path.name}.{kind}").exists():
            return (
                f"{path} is not there yet: its collection is unfinished ({work}). Give the same "
                "`ertrl collect` again, or the same `ertrl data import`."
            )
    return ""
