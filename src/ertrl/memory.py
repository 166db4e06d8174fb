"""How much memory there is, and refusing what does not fit before it is asked for."""

import os
import resource
import sys

from ertrl.errors import ConfigError
from ertrl.text import readable_bytes


def memory_of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_memory() -> int:
    """The most bytes that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Raise if so many bytes cannot be had here."""
    if needed > memory_of_machine():
        raise ConfigError(
            f"{what} would take about {readable_bytes(needed)} of memory, and the limit is what "
            f"this machine has, {readable_bytes(memory_of_machine())}; choose smaller {remedy}"
        )
