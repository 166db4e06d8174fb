"""SIGINT and SIGTERM as a polite request: finish what is under way, save, then stop."""

import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

FOLLOW = "ERTRL_FOLLOWS_PARENT"
"""Environment variable of a process that is to end when its standard input does."""
SECONDS_TO_SAVE = 15.0
"""Shorter than a grid that is started again waits for it."""


def follow_parent() -> None:
    """Where a parent asked for it, end once it is gone: whoever goes on needs the locks."""
    if os.environ.pop(FOLLOW, None):
        threading.Thread(target=_end_with_input, daemon=True).start()


def _end_with_input() -> None:
    while os.read(0, 1):  # not through Python's buffer: its lock would trouble the shutdown
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SECONDS_TO_SAVE)
    os.kill(os.getpid(), signal.SIGKILL)  # an evaluation does not stop: it is done anew


def answer_control_c() -> None:
    """Let Control-C end this process in order, also where a KeyboardInterrupt would not."""
    for number in (signal.SIGINT, signal.SIGALRM):
        signal.signal(number, _interrupt)
    sys.unraisablehook = _interrupt_again


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            # Compiled modules crash when an exception comes while they load.
            os.write(2, b"stopped\n")
            os._exit(128 + signal.SIGINT)
        frame = frame.f_back
    raise KeyboardInterrupt


def _interrupt_again(ignored: "sys.UnraisableHookArgs") -> None:
    """A callback of the garbage collector ignores exceptions, so this one comes again."""
    if ignored.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(ignored)


@contextmanager
def stop_signals() -> Generator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying from them; a second one kills as usual."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def note(number, frame):
        received.append(number)
        print("stopping after this call; once more stops at once", file=sys.stderr)
        signal.signal(number, previous[number])

    previous = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
