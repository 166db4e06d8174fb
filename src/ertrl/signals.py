"""SIGINT and SIGTERM as a polite request: finish what is under way, save, then stop."""

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager


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
