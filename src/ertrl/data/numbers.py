"""What a sealed file may hold though no simulation measured it: numbers that the format forbids."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ertrl.data.layout import file_of
from ertrl.errors import CorruptFileError

if TYPE_CHECKING:
    from ertrl.data.dataset import TaskData

BLOCK = 2**22
"""Numbers that are looked at together."""
SLACK = 2e-5
"""How far beyond 1 an action may lie: the rounding that importers allow, too."""
REMEDY = "Restore the dataset from a copy, or collect or import it again."


def check_numbers(folder: Path, data: "TaskData") -> None:
    """Raise unless all numbers of a task are finite, actions in [-1, 1], and ends of one kind."""
    for name in ("observations", "actions", "rewards"):
        file = folder / file_of(data.task, name)
        for first, block in _blocks(getattr(data, name)):
            if not np.isfinite(block).all():
                episode = first + int(np.argwhere(~np.isfinite(block))[0][0])
                raise CorruptFileError(
                    f"{file} holds NaN or infinite numbers, first in episode {episode} of task "
                    f"{data.task}; what cannot be learned from must not be in a dataset. {REMEDY}"
                )
            if name == "actions" and max(block.max(), -block.min()) > 1 + SLACK:
                _check_actions(file, data, first, block)
    both = np.flatnonzero(data.terminated & data.truncated)
    if both.size:
        raise CorruptFileError(
            f"{folder / file_of(data.task, 'truncated')}: episode {both[0]} of task {data.task} "
            f"ended in a terminal state and was cut by the time limit; it is one of both. {REMEDY}"
        )


def _check_actions(file: Path, data: "TaskData", first: int, block: np.ndarray) -> None:
    """What lies behind the end of an episode is never read."""
    lengths = data.lengths[first : first + len(block), None]
    real = np.arange(block.shape[1]) < lengths
    beyond = np.argwhere((np.abs(block) > 1 + SLACK).any(axis=-1) & real)
    if beyond.size:
        row, step = beyond[0].tolist()
        worst = float(block[row, step][np.abs(block[row, step]).argmax()])
        raise CorruptFileError(
            f"{file}: step {step} of episode {first + row} of task {data.task} has an action of "
            f"{worst:.6g}, outside of [-1, 1]. Scale actions before they are written. {REMEDY}"
        )


def _blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Some episodes at a time, and the number of the first."""
    rows = max(1, BLOCK // max(1, int(np.prod(array.shape[1:]))))
    for first in range(0, len(array), rows):
        yield first, np.asarray(array[first : first + rows])
