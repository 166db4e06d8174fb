"""The dataset format: one folder per family, a sealed manifest, memory-mapped arrays.

    data/point-robot/
      manifest.json                 family, tasks, references, collector, SHA-256 of each file
      tasks/000/observations.npy    float32 [E, L+1, O]   every observation once
                actions.npy         float32 [E, L, A]     in [-1, 1]
                rewards.npy         float32 [E, L]
                lengths.npy         int32   [E]           steps before the episode ended
                terminated.npy      bool    [E]           it ended in a terminal state
                truncated.npy       bool    [E]           it was cut by the time limit
                checkpoints.npy     int32   [E]           which behaviour policy collected it

Rows beyond an episode's length are zero and never read. docs/data-format.md says more.
"""

import math
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from ertrl.plugins import LONGEST_NAME
from ertrl.shape import Digest, Name, Open, Provenance, Real, Shape, Size, Text, distinct

FORMAT = 1
KIND = "ertrl-dataset"
MANIFEST = "manifest.json"
GROUPS = Literal["train", "test-id", "test-ood", "test-extreme"]
TaskNumber = Annotated[int, Meta(ge=0, le=99_999)]
Option = Annotated[str, Meta(pattern="^(?!self$|name$)[a-z][a-z0-9_]{0,63}$")]
FamilyName = Annotated[
    str, Meta(pattern=rf"^(?!\.\.?\Z)[^/\\\x00-\x1f\x7f-\x9f]{{1,{LONGEST_NAME}}}\Z")
]
"""It becomes part of the names of folders."""
SCALE = ("expert", "random", "zero")
"""References that a dataset with a simulator has for each task."""


class ArraySpec(NamedTuple):
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Its size on disk, but for the header."""
        return self.dtype.itemsize * math.prod(self.shape)


def task_arrays(
    episodes: int, horizon: int, observation_dim: int, action_dim: int
) -> dict[str, ArraySpec]:
    real, whole, flag = (np.dtype(kind) for kind in ("float32", "int32", "bool"))
    return {
        "observations": ArraySpec(real, (episodes, horizon + 1, observation_dim)),
        "actions": ArraySpec(real, (episodes, horizon, action_dim)),
        "rewards": ArraySpec(real, (episodes, horizon)),
        "lengths": ArraySpec(whole, (episodes,)),
        "terminated": ArraySpec(flag, (episodes,)),
        "truncated": ArraySpec(flag, (episodes,)),
        "checkpoints": ArraySpec(whole, (episodes,)),
    }


def file_of(task: int, array: str) -> str:
    """Where an array of a task lives, relative to the dataset folder."""
    return f"tasks/{task:03d}/{array}.npy"


# --- the manifest ---


class File(Shape):
    """A file of a task."""

    path: Text
    sha256: Digest


class Files(Shape):
    """The arrays of a task."""

    observations: File
    actions: File
    rewards: File
    lengths: File
    terminated: File
    truncated: File
    checkpoints: File


class Reference(Shape):
    """Mean returns of policies in a task, as far as they are known."""

    expert: Real | UnsetType = UNSET
    random: Real | UnsetType = UNSET
    zero: Real | UnsetType = UNSET
    collector: Real | UnsetType = UNSET
    success: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    """Share of the expert's episodes that fulfil the task, where tasks can be fulfilled."""


class Task(Shape):
    """A task of a dataset."""

    task: TaskNumber
    group: GROUPS
    parameters: list[Real]
    reference: Reference
    episodes: Annotated[int, Meta(ge=1, le=10_000_000)]


class StoredTask(Task):
    """A task with its files, which have one place each."""

    files: Files

    def __post_init__(self):
        for name in Files.__struct_fields__:
            found, place = getattr(self.files, name).path, file_of(self.task, name)
            if found != place:
                raise ValueError(f"Expected the path {place}, got {found[:200]!r}")


class CollectorConfig(Open):
    """Settings of the collector; `ertrl collect` checks the others when it sees them again."""

    style: Real = 0.0


class PolicyDistance(Open):
    """How far behaviour policies lie apart."""

    mean: Real


class Collector(Open):
    """Who collected the data, and how."""

    name: Text = "unknown"
    config: CollectorConfig | UnsetType = UNSET
    curve: list[dict[str, Real]] | UnsetType = UNSET
    policy_distance: PolicyDistance | None = None
    references: Text | None = None


def check_range(low: list[float] | UnsetType, high: list[float] | UnsetType, size: int) -> None:
    """Raise unless both ends of actions are there, or none."""
    if low is UNSET and high is UNSET:
        return
    ends = low or [], high or []
    if {len(end) for end in ends} != {size} or not all(a < b for a, b in zip(*ends, strict=True)):
        raise ValueError(f"Expected {size} numbers in action_low, and larger ones in action_high")


class Imported(Shape):
    """Where data comes from that was not collected here."""

    format: Name
    datasets: list[Text]
    tasks: list[Text] | UnsetType = UNSET
    notes: list[Text] | UnsetType = UNSET
    action_low: list[Real] | UnsetType = UNSET
    action_high: list[Real] | UnsetType = UNSET
    provenance: Provenance | UnsetType = UNSET


class Shared(Shape, kw_only=True):
    """What all tasks have in common."""

    family: FamilyName
    family_options: dict[Option, bool | int | float | str]
    parameter_names: list[Name]
    horizon: Annotated[int, Meta(ge=1, le=1_000_000)]
    simulator: bool
    collector: Collector
    provenance: Provenance
    family_code: dict[Name, Digest] | UnsetType = UNSET
    action_low: list[Real] | UnsetType = UNSET
    action_high: list[Real] | UnsetType = UNSET


class Manifest(Shared, kw_only=True):
    """manifest.json of a dataset."""

    kind: Literal["ertrl-dataset"]
    format: Literal[1]
    observation_dim: Size
    action_dim: Size
    tasks: Annotated[list[StoredTask], Meta(min_length=1, max_length=100_000)]
    imported: Imported | UnsetType = UNSET

    def __post_init__(self):
        check_range(self.action_low, self.action_high, self.action_dim)
        distinct("numbers of tasks", (entry.task for entry in self.tasks))
        distinct("parameter_names", self.parameter_names)
        for entry in self.tasks:
            if len(entry.parameters) != len(self.parameter_names):
                raise ValueError(
                    f"Expected {len(self.parameter_names)} parameters of task {entry.task}, as "
                    f"many as parameter_names, got {len(entry.parameters)}"
                )
            missing = [k for k in SCALE if getattr(entry.reference, k) is UNSET]
            if self.simulator and missing:
                raise ValueError(
                    f"Expected task {entry.task}, which has a simulator, to have the references "
                    f"{', '.join(SCALE)}, got none for {', '.join(missing)}"
                )
