"""Files of arrays as memory, of which only the latest used stay open.

A map holds a file descriptor as long as it lives, and a process may have about a thousand of them:
fewer than a dataset of some hundred tasks has arrays.
"""

import resource
from collections import OrderedDict
from pathlib import Path
from typing import Literal

import numpy as np

from ertrl import store
from ertrl.data.layout import ArraySpec

ENOUGH = 4096
"""More than these are not kept open even where a process may: the system limits maps, too."""


class Maps:
    """Maps of some files by path; a file that has been closed is opened again when it is used."""

    def __init__(self, mode: Literal["r", "r+"]):
        """What is written to a map ("r+") is in the file when that is closed."""
        self._mode: Literal["r", "r+"] = mode
        self._open: OrderedDict[Path, np.memmap] = OrderedDict()
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        share = allowed // 4 if allowed > 0 else ENOUGH  # below zero: as many as one likes
        self._most = min(max(share, 1), ENOUGH)

    def get(self, path: Path, spec: ArraySpec) -> np.memmap:
        """The array of this file, which has to fit. Whoever keeps it keeps the file open."""
        array = self._open.pop(path, None)
        if array is None:
            while len(self._open) >= self._most:
                self._open.popitem(last=False)
            array = store.map_again(path, *spec, mode=self._mode)
        self._open[path] = array
        return array

    def close(self, path: Path | None = None) -> None:
        """Close this file, or all."""
        if path is None:
            self._open.clear()
        else:
            self._open.pop(path, None)
