"""The z of many contexts of logged transitions."""

from collections.abc import Sequence

import numpy as np

from ertrl import rng
from ertrl.data import Dataset
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.evaluate import EVALUATION_SEED
from ertrl.types import Context

ENCODED_AT_ONCE = 64_000
"""Transitions per call of the encoder, for the sake of memory."""


def codes_of(agent: Agent, dataset: Dataset, task: int, which: np.ndarray) -> np.ndarray:
    """Codes [contexts, Z] of contexts that consist of these transitions [contexts, size]."""
    found = []
    for part in np.array_split(which, -(-which.size // ENCODED_AT_ONCE)):
        found.append(agent.encode(Context.of(dataset.task(task).transitions(part))))
    return np.concatenate(found).astype(np.float64)


def random_codes(
    agent: Agent, dataset: Dataset, tasks: Sequence[int], shape: tuple[int, int], stream: str
) -> np.ndarray:
    """Codes [tasks, contexts, Z] of contexts drawn i.i.d.; `shape` is how many, and their size."""
    codes = []
    for task in tasks:
        draw = rng.generator(EVALUATION_SEED, stream, task)
        which = draw.integers(len(dataset.task(task).steps), size=shape)
        codes.append(codes_of(agent, dataset, task, which))
    return np.stack(codes)
