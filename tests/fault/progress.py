"""How far an attack is, for who waits for `make fault`."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
SECONDS = 15


def shown(name: str, items: Sequence[Item]) -> Iterator[Item]:
    """The items; every few seconds a line says how many are done."""
    told = time.monotonic()
    for done, item in enumerate(items):
        if "SHOW_PROGRESS" in os.environ and time.monotonic() - told > SECONDS:
            told = time.monotonic()
            print(f"{name}: {done} of {len(items)}", file=sys.stderr, flush=True)
        yield item
