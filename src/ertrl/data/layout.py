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

from typing import NamedTuple

import numpy as np

FORMAT = 1
KIND = "ertrl-dataset"
MANIFEST = "manifest.json"


class FieldSpec(NamedTuple):
    """One array of a task."""

    dtype: str
    axes: tuple[str, ...]


FIELDS = {
    "observations": FieldSpec("float32", ("episodes", "steps+1", "observation")),
    "actions": FieldSpec("float32", ("episodes", "steps", "action")),
    "rewards": FieldSpec("float32", ("episodes", "steps")),
    "lengths": FieldSpec("int32", ("episodes",)),
    "terminated": FieldSpec("bool", ("episodes",)),
    "truncated": FieldSpec("bool", ("episodes",)),
    "checkpoints": FieldSpec("int32", ("episodes",)),
}


def shape_of(field: str, episodes: int, horizon: int, observation: int, action: int) -> tuple:
    """The shape a field must have."""
    sizes = {
        "episodes": episodes,
        "steps": horizon,
        "steps+1": horizon + 1,
        "observation": observation,
        "action": action,
    }
    return tuple(sizes[axis] for axis in FIELDS[field].axes)


def file_of(task: int, field: str) -> str:
    """Where a field of a task lives, relative to the dataset folder."""
    return f"tasks/{task:03d}/{field}.npy"


def dtype_of(field: str) -> np.dtype:
    """The dtype a field must have."""
    return np.dtype(FIELDS[field].dtype)
