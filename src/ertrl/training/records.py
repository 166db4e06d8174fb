"""The files of a run that are numbered by updates, and the list that says which there must be.

`contents.json` lists them, so that one that was removed, renamed or put there is noticed. It is
written before a change (which files may now come or go) and after it. What a killed process was
changing counts if its description is there, and is swept by the next start if not.
"""

import contextlib
import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ertrl import store
from ertrl.errors import CorruptFileError, RunError
from ertrl.training.shapes import RECORDS, Contents

if TYPE_CHECKING:
    from ertrl.training.run import Run

CONTENTS = "contents.json"
FORMAT = 2
"""Of a run: the first that has a list of its contents."""


def new_contents(run: str) -> dict[str, Any]:
    return {"kind": "ertrl-contents", "format": 1, "run": run, **{name: [] for name in RECORDS}}


def read_contents(run: "Run") -> dict[str, Any]:
    path = run.path / CONTENTS
    content = store.read_json(path, Contents)
    if content["run"] != run.spec["name"]:
        raise CorruptFileError(f"{path} belongs to {content['run']}, not to {run.spec['name']}")
    return content


def is_listed(run: "Run") -> bool:
    """Whether the run has a list of its contents."""
    return run.spec.get("format", 1) >= FORMAT


class Records:
    """Sealed files of a run in one folder, one per number of updates."""

    suffixes = (".json",)

    def __init__(self, run: "Run", folder: str, what: str, remedy: str):
        """`what` they are, and how one gets the first of them."""
        self._run, self._name, self._what, self._remedy = run, folder, what, remedy
        self.folder = run.path / folder

    def _there(self) -> list[int]:
        """Numbers for which there is a description; whatever else lies there is not ours."""
        files = self.folder.glob("*.json")
        return sorted(int(p.stem) for p in files if re.fullmatch(r"\d{8}", p.stem))

    def steps(self) -> list[int]:
        """Numbers of updates, in order, that must be there."""
        if not is_listed(self._run):
            return self._there()
        contents = read_contents(self._run)
        loose = set(contents.get("changing", {}).get(self._name, ()))
        listed = set(contents[self._name]) - loose
        return sorted(listed | (loose & set(self._there())))

    def __contains__(self, step: int) -> bool:
        """Whether the files of that step are there, as they must be."""
        return step in self.steps() and self.path(step).exists()

    def newest(self) -> int:
        if not (steps := self.steps()):
            raise RunError(f"{self._run.path} has no {self._what} yet; {self._remedy}")
        return steps[-1]

    def chosen(self, step: int | None) -> int:
        """That step or, if none is named, the newest."""
        return self.newest() if step is None else step

    def path(self, step: int) -> Path:
        """Where the file after so many updates lives."""
        return self.folder / f"{step:08d}.json"

    def read(self, step: int | None = None) -> dict[str, Any]:
        """A file, by default the newest: this run's at this step, not one put in its place."""
        path = self.path(self.chosen(step))
        content = store.read_json(path, RECORDS[self._name])
        found = content["run"], content["step"]
        expected = self._run.spec["name"], int(path.stem)
        if found != expected:
            raise CorruptFileError(f"{path} belongs to (run, step) {found}, not to {expected}")
        return content

    @contextlib.contextmanager
    def changing(self, step: int, drop: Sequence[int] = ()) -> Generator[None]:
        """Write the files of a step inside this; the others are removed afterwards."""
        with store.exclusive(self._run.path / "evaluations", wait=True):
            listed = is_listed(self._run)
            if listed:
                before = settled(self._run)
                self._write({**before, "changing": {self._name: sorted({step, *drop})}})
            yield
            for old in drop:
                # The description first: what is left behind by a kill does not count.
                for file in sorted(self.folder.glob(f"{old:08d}.*")):
                    file.unlink(missing_ok=True)
            if listed:
                self._write({**before, self._name: sorted({*before[self._name], step} - {*drop})})

    def _check_there(self, step: int) -> None:
        for suffix in self.suffixes:
            if not (file := self.path(step).with_suffix(suffix)).exists():
                raise CorruptFileError(
                    f"{file} is missing, but {CONTENTS} lists it. Restore it from a copy, or make "
                    "it again."
                )

    def _write(self, contents: dict[str, Any]) -> None:
        store.write_json(self._run.path / CONTENTS, contents)

    def check_each(self, check: Callable[[int], Any]) -> int:
        """Check what there is of each step; of a run that is training, some may go meanwhile."""
        count = 0
        for step in self.steps():
            try:
                check(step)
                count += 1
            except (CorruptFileError, RunError):
                if step in self.steps():
                    raise
        return count

    def check_folder(self) -> None:
        """Raise if a file is missing, or if there is one that the run does not know."""
        self.check_each(self._check_there)
        if not is_listed(self._run) or not self.folder.exists():
            return
        files = [file for file in self.folder.iterdir() if file.name[0] != "."]
        contents = read_contents(self._run)  # later: what has come in between is listed
        loose = contents.get("changing", {}).get(self._name, ())
        known = {f"{step:08d}" for step in (*contents[self._name], *loose)}
        for file in files:
            if file.stem not in known and file.exists():
                raise CorruptFileError(
                    f"{file} is no part of the run: {CONTENTS} does not list it. Was it copied "
                    "or renamed? Remove it, or give it its name back."
                )


class ArrayRecords(Records):
    """Records with a safetensors file beside each description, which knows its checksum."""

    suffixes = (".json", ".safetensors")

    def __init__(self, run: "Run", folder: str, what: str, remedy: str, seal: str):
        """`seal` is the field of the checksum."""
        super().__init__(run, folder, what, remedy)
        self._seal = seal

    def write(
        self, step: int, arrays: Any, facts: dict[str, Any], drop: Sequence[int] = ()
    ) -> None:
        """Write a tree of arrays, then its description, from which on it counts."""
        blob, path = store.tree_to_bytes(arrays), self.path(step)
        who = {"kind": f"ertrl-{self._what}", "step": step, "run": self._run.spec["name"]}
        with self.changing(step, drop):
            store.write_bytes(path.with_suffix(".safetensors"), blob)
            store.write_json(path, {**who, self._seal: store.sha256(blob), **facts})

    def read_arrays(self, step: int) -> tuple[dict[str, Any], bytes, Path]:
        """A description, the bytes of its arrays, and where these are."""
        description, file = self.read(step), self.path(step).with_suffix(".safetensors")
        blob = store.read_bytes(file)
        if store.sha256(blob) != description[self._seal]:
            raise CorruptFileError(f"{file} is damaged: its SHA-256 differs from the recorded one")
        return description, blob, file


def settled(run: "Run") -> dict[str, Any]:
    """The list without what a killed process was changing, which is swept or counts from now on."""
    contents = read_contents(run)
    for name, steps in contents.pop("changing", {}).items():
        for step in steps:
            files = sorted((run.path / name).glob(f"{step:08d}.*"))
            there = any(file.suffix == ".json" for file in files)
            for file in files if not there else ():
                file.unlink(missing_ok=True)
            known = set(contents[name])
            contents[name] = sorted(known | {step} if there else known - {step})
    return contents


def settle(run: "Run") -> None:
    """At a start: sweep what killed processes left in the folders of a run."""
    for folder in (run.path, *(run.path / name for name in RECORDS)):
        store.sweep(folder)
    if is_listed(run) and read_contents(run).get("changing"):
        with store.exclusive(run.path / "evaluations", wait=True):
            store.write_json(run.path / CONTENTS, settled(run))
