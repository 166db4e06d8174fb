"""metrics.jsonl of a run: a line per chunk of updates and per evaluation."""

import json
import math
import os
from pathlib import Path
from typing import Any

from ertrl import store
from ertrl.errors import CorruptFileError
from ertrl.shape import fit
from ertrl.training.shapes import MetricsLine


class MetricsLog:
    """The file while its run trains, cut back on resume to what the checkpoint knows."""

    def __init__(self, path: Path, keep_bytes: int):
        self._file = open(path, "ab")  # noqa: SIM115
        self._file.truncate(keep_bytes)

    def write(self, line: dict[str, Any]) -> None:
        """Append one line, for others to see at once; it is safe on the disk after `flush`."""
        self._file.write((json.dumps(line, allow_nan=False) + "\n").encode())
        self._file.flush()

    def flush(self) -> int:
        """Bring all lines to the disk; returns the file's length."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self.flush()
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All complete lines."""
    if not path.exists():
        return []
    try:
        lines = store.read_bytes(path).decode().split("\n")[:-1]
        found = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        raise CorruptFileError(f"{path} holds a line that is not JSON") from None
    for line in found:
        fit(line, MetricsLine, path)
        for name, value in line.items():
            if name != "kind" and (type(value) not in (int, float) or not math.isfinite(value)):
                raise CorruptFileError(f"{path}: {name} is {value!r}; expected a finite number")
    return found


def check_metrics(path: Path, checkpoint: dict[str, Any], *, at_end: bool) -> None:
    """Raise unless the file begins with what was logged up to this checkpoint.

    Lines may follow it, unless the run is `at_end`; where nobody trains it, the next start cuts
    them off.
    """
    length, logged = checkpoint["metrics_bytes"], store.read_bytes(path)
    if store.sha256(logged[:length]) != checkpoint["metrics_sha256"]:
        raise CorruptFileError(
            f"{path} is damaged: its first {length} bytes are not those that were logged up to "
            "this checkpoint"
        )
    tail = logged[length:].decode(errors="replace").splitlines() if at_end else []
    if tail:
        # A killed process may have logged the last evaluation and not vouched for it yet.
        awaited = {f'"kind": "evaluation", "step": {checkpoint["step"]},' in x for x in tail}
        if b'"kind": "evaluation"' in logged[:length].splitlines()[-1] or awaited != {True}:
            raise CorruptFileError(f"{path} goes on after the end of the run: {tail[0][:80]!r}")
