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
from typing import NamedTuple

import numpy as np

FORMAT = 1
KIND = "ertrl-dataset"
MANIFEST = "manifest.json"


class ArraySpec(NamedTuple):
    """One array of a task."""

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
