"""JSON that knows its own checksum. Needs nothing but Python: agents without JAX read it, too."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ertrl.errors import CorruptFileError


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _canonical(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def sealed(content: dict[str, Any]) -> bytes:
    """JSON whose last entry is the checksum of the others."""
    return _canonical({**content, "sha256": sha256(_canonical(content))})


def read_sealed(path: Path, limit: int) -> dict[str, Any]:
    """What was sealed. Any byte that `sealed` did not write is an error."""
    data = read_bytes(path, limit)
    try:
        content = json.loads(data)
        del content["sha256"]
        intact = data == sealed(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        intact = False
    if not intact:
        raise CorruptFileError(
            f"{path} is damaged or was edited by hand: its content does not match its checksum. "
            "Restore it from a copy or make it again."
        )
    return content


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Read a whole file, or say clearly that it is missing."""
    try:
        if limit is not None and path.stat().st_size > limit:
            raise CorruptFileError(f"{path} is larger than {limit} bytes: not a file of ours")
        return path.read_bytes()
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing") from None
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read: {error.strerror}") from None
