"""An unfinished collection on disk, so that a killed one goes on where it was.

    data/.point-robot.collecting/
      collection.json        what is being collected, sealed
      00000120.part0 ...     SAC after 120 blocks, in portions, safetensors
      00000120.loop          simulations and counters at that moment, safetensors
      00000120.json          description with the checksums of all of it, sealed; written last
      replay/*.npy           append-only
    data/.point-robot.partial/   the episodes recorded so far, append-only

Rows that were written after the newest description are written again, with the same numbers.
"""

import hashlib
import shutil
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from ertrl import store
from ertrl.data.same_family import (
    FamilyRecord,
    code_changes,
    family_changes,
    family_code,
    family_record,
)
from ertrl.envs import Family
from ertrl.errors import CorruptFileError, DataError
from ertrl.provenance import threads, versions
from ertrl.shape import Digest, Name, Real, Shape, Size, Text, Whole

KIND = "ertrl-savepoint"
FORMAT = 3
Counts = list[Annotated[int, Meta(ge=0, le=2**40)]]


class CollectionShape(Shape):
    """collection.json: what is being collected. Savepoints of another format are refused later."""

    kind: Literal["ertrl-collection"]
    format: Whole
    family: Name
    family_options: dict[str, bool | int | float | str]
    config: dict[str, Any]
    references: Text | None
    versions: dict[str, str]
    threads: Whole
    record: FamilyRecord | UnsetType = UNSET
    """What the family was; earlier versions did not say."""
    code: dict[Name, Digest] | UnsetType = UNSET


class SealedRows(Shape):
    """How many rows of each task there are, and their checksum."""

    count: Counts
    sha256: Digest


class SavepointShape(Shape):
    """NNNNNNNN.json: a savepoint."""

    kind: Literal["ertrl-savepoint"]
    files: dict[Annotated[str, Meta(pattern=r"^\.(part\d{1,6}|loop)$")], Digest]
    seconds: Real
    curve: list[dict[str, Real]]
    outcome_dim: Size
    transitions: SealedRows
    episodes: SealedRows


PORTION_BYTES = 2**27
"""Written and read at once, unless a single array is larger; memory holds about three copies."""


class RowSeal:
    """A running SHA-256 over rows that are only appended, kept for several tasks.

    Rows are hashed once, when they are saved, and once more when they are read again.
    """

    def __init__(self, rows: Callable[[int], Sequence[np.ndarray]], n_tasks: int):
        """`rows(task)` gives the arrays of a task."""
        self._rows = rows
        self._hashes = defaultdict(hashlib.sha256)
        self.count = [0] * n_tasks

    def extend(self, count: Sequence[int]) -> dict[str, Any]:
        """Seal the rows up to `count` per task; returns what `verify` needs."""
        for task, (first, last) in enumerate(zip(self.count, count, strict=True)):
            for i, array in enumerate(self._rows(task)):
                self._hashes[task, i].update(array[first:last].tobytes())
        self.count = list(count)
        digests = b"".join(self._hashes[key].digest() for key in sorted(self._hashes))
        return {"count": self.count, "sha256": store.sha256(digests)}

    def verify(self, sealed: dict[str, Any], what: Path) -> None:
        """Raise unless the rows are those that were sealed."""
        fits = len(sealed["count"]) == len(self.count) and all(
            count <= len(array)
            for task, count in enumerate(sealed["count"])
            for array in self._rows(task)
        )
        if not fits or self.extend(sealed["count"]) != sealed:
            raise CorruptFileError(
                f"{what} is damaged: its rows are not those that were saved. To start anew, "
                f"remove {what}."
            )


class Savepoint(NamedTuple):
    """A moment between two blocks."""

    block: int
    loop: dict[str, np.ndarray]
    facts: dict[str, Any]
    """Curve, seconds, episodes per task, seals: whatever is JSON."""


def unfinished_folder(path: Path) -> Path:
    """Where the collection of the dataset `path` keeps its state."""
    return path.with_name(f".{path.name}.collecting")


def sweep(path: Path) -> None:
    """Remove what a process that was killed right after completing the dataset left behind."""
    shutil.rmtree(unfinished_folder(path), ignore_errors=True)
    shutil.rmtree(path.with_name(f".{path.name}.lock"), ignore_errors=True)


class Savepoints:
    """The folder of one unfinished collection."""

    def __init__(self, folder: Path, identity: dict[str, Any], family: Family):
        """Sweep the folder; refuse one that collects something else."""
        self.folder = folder
        identity = {"format": FORMAT, **identity}
        saved = {f"{block:08d}" for block in self._blocks()}
        for file in self.folder.iterdir():
            undescribed = file.stem.isdecimal() and file.stem not in saved
            if undescribed or file.suffix == ".tmp":
                file.unlink()
        about = self.folder / "collection.json"
        if self.empty:
            for stale in self.folder.iterdir():
                if stale.name != ".lock":
                    shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
            here = {"record": family_record(family), "versions": versions(), "threads": threads()}
            begun = {"kind": "ertrl-collection", **identity, **here, "code": family_code(family)}
            store.write_json(about, begun)
            return
        there = store.read_json(about, CollectionShape)
        changes = family_changes(there["record"], family) if "record" in there else []
        difference = _difference({k: there.get(k) for k in identity}, identity)
        if changes and not difference:
            raise DataError(
                f"{self.folder} holds an unfinished collection of another {family.name} than this "
                f"one: {'; '.join(changes)}. Use the family as it was, choose another place with "
                "--out, or remove that folder to start anew."
            )
        if difference:
            raise DataError(
                f"{self.folder} holds an unfinished collection with other settings: {difference}. "
                "Go on with those settings, choose another place with --out, or remove that folder "
                "to start anew."
            )
        if changes := code_changes(there.get("code", {}), family):
            warnings.warn(
                f"{self.folder} holds a collection that was begun with other code of {family.name}:"
                f" {changes}. It goes on; if rewards or physics are others, remove that folder to "
                "start anew",
                stacklevel=2,
            )
        for name, now in (("versions", versions()), ("threads", threads())):
            if there[name] != now:
                warnings.warn(
                    f"this collection was begun with other {name} "
                    f"({_difference({name: there[name]}, {name: now})}); it goes on, but not bit "
                    "for bit",
                    stacklevel=2,
                )

    def _blocks(self) -> list[int]:
        return sorted(int(p.stem) for p in self.folder.glob("*.json") if p.stem.isdecimal())

    @property
    def empty(self) -> bool:
        return not self._blocks()

    def load(self) -> Savepoint | None:
        """The newest savepoint, checked; None if there is none yet."""
        if self.empty:
            return None
        block = self._blocks()[-1]
        stem = self.folder / f"{block:08d}"
        facts = store.read_json(stem.with_suffix(".json"), SavepointShape)
        for suffix, expected in facts.pop("files").items():
            store.check_file(stem.with_suffix(suffix), expected)
        loop = stem.with_suffix(".loop")
        return Savepoint(block, store.arrays_from_bytes(store.read_bytes(loop), loop), facts)

    def check_loop(self, point: Savepoint, expected: dict[str, np.ndarray]) -> None:
        """Raise unless the loop's arrays are of the kind that this collection has."""
        found, wanted = (
            {name: (array.shape, array.dtype) for name, array in arrays.items()}
            for arrays in (point.loop, expected)
        )
        if found != wanted:
            raise CorruptFileError(
                f"{self.folder / f'{point.block:08d}.loop'} does not fit this collection: "
                f"{_difference(found, wanted)}. To start anew, remove {self.folder}."
            )

    def load_state(self, block: int, state: Any) -> Any:
        """Fill SAC's state, portion by portion, in place of the arrays of `state`.

        These are gone then: all of it twice may not fit into memory.
        """
        arrays, structure = jax.tree.flatten(state)
        for name, positions in _portions(arrays):
            file = self.folder / f"{block:08d}{name}"
            like = [arrays[i] for i in positions]
            filled = store.tree_from_bytes(store.read_bytes(file), like, file)
            for i, array in zip(positions, filled, strict=True):
                arrays[i].delete()
                # A copy, because memory that is read from a file must not be donated.
                arrays[i] = jnp.copy(array)
        return jax.tree.unflatten(structure, arrays)

    def save(self, point: Savepoint, state: Any) -> None:
        """Write it, then drop the older one. It counts from its description on."""
        stem = self.folder / f"{point.block:08d}"
        arrays = jax.tree.leaves(state)
        parts = (
            (name, store.tree_to_bytes([arrays[i] for i in positions]))
            for name, positions in _portions(arrays)
        )
        files = {}
        for suffix, blob in chain(parts, [(".loop", store.arrays_to_bytes(point.loop))]):
            store.write_bytes(stem.with_suffix(suffix), blob)
            files[suffix] = store.sha256(blob)
        description = {"kind": KIND, "files": files, **point.facts}
        store.write_json(stem.with_suffix(".json"), description)
        for old in self._blocks()[:-1]:
            for suffix in (".json", *files):
                (self.folder / f"{old:08d}{suffix}").unlink(missing_ok=True)


def _portions(arrays: Sequence[Any]) -> Iterator[tuple[str, list[int]]]:
    """Positions of arrays that go into one file, and its suffix."""
    portions, size = [[]], 0
    for i, array in enumerate(arrays):
        if portions[-1] and size + array.nbytes > PORTION_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(i)
        size += array.nbytes
    return ((f".part{k}", positions) for k, positions in enumerate(portions))


def _difference(there: Any, here: Any, name: str = "") -> str:
    """Names what differs, deepest names first: 'steps is 600 there and 700 here'."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = sorted(there.keys() | here.keys())
        return "; ".join(filter(None, (_difference(there.get(k), here.get(k), k) for k in keys)))
    return "" if there == here else f"{name} is {there!r} there and {here!r} here"
