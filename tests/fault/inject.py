"""Interfere with file operations: do something before a chosen one, or refuse some.

Python reports every operation on files before it happens (audit events); flushing to the disk is
reported here.
"""

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}


class Injector:
    """What happens at the operations below a folder."""

    def __init__(self):
        self.at: Callable[[int, str], None] | None = None
        self.root, self.count = "", 0
        self._fsync = os.fsync
        sys.addaudithook(self._hear)
        os.fsync = self._synced

    def _hear(self, event: str, arguments: tuple) -> None:
        if self.at is None:
            return
        if event == "open":
            path, _, flags = arguments
            if not flags & WRITING:
                return
        elif event in CHANGES:
            path = arguments[0]
        else:
            return
        inside = isinstance(path, (str, bytes, Path)) and os.fsdecode(path).startswith(self.root)
        if inside or (event in ("os.remove", "os.rmdir") and arguments[1] >= 0):
            self._happens(event)

    def _synced(self, descriptor: int) -> None:
        if self.at is not None:
            self._happens("fsync")
        self._fsync(descriptor)

    def _happens(self, event: str) -> None:
        at = self.at
        self.at = None  # what the action itself does is not counted
        self.count += 1
        try:
            at(self.count, event)
        finally:
            self.at = at

    @contextlib.contextmanager
    def doing(self, root: Path, action: Callable[[int, str], None]):
        self.root, self.count, self.at = str(root), 0, action
        try:
            yield self
        finally:
            self.at = None


INJECTOR: Injector | None = None


def injecting(root: Path, action: Callable[[int, str], None]):
    """Within, `action(number, kind)` comes before every operation below `root`."""
    global INJECTOR
    INJECTOR = INJECTOR or Injector()
    return INJECTOR.doing(root, action)


def count_operations(work: Callable[[], object], root: Path) -> int:
    with injecting(root, lambda number, kind: None) as injector:
        work()
    return injector.count


def once_at(number: int, do: Callable[[], object]) -> Callable[[int, str], None]:
    """Before this operation, do that."""

    def action(count: int, kind: str) -> None:
        if count == number:
            do()

    return action


def kill_at(number: int) -> Callable[[int, str], None]:
    """SIGKILL, for a process of its own."""
    return once_at(number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def refuse_from(number: int, code: int = errno.ENOSPC) -> Callable[[int, str], None]:
    """A full disk (or a read-only one): files can be removed, but not made."""

    def action(count: int, kind: str) -> None:
        if count >= number and kind in ("open", "os.mkdir", "fsync"):
            raise OSError(code, os.strerror(code))

    return action
