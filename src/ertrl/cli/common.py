"""What the commands share: parsing, threads, output."""

import json
import os
from collections.abc import Sequence
from typing import Any


def parse(command: Any, name: str, argv: Sequence[str], **options: Any) -> Any:
    """Parse the words after the command; prints help or an explanation and exits if need be."""
    import tyro

    return tyro.cli(command, prog=f"ertrl {name}", args=argv, **options)


def peek(argv: Sequence[str], option: str, default: str) -> str:
    """Value of an option that decides what the other options are."""
    for i, word in enumerate(argv):
        if word == option and i + 1 < len(argv):
            return argv[i + 1]
        if word.startswith(f"{option}="):
            return word.split("=", 1)[1]
    return default


def first_word(argv: Sequence[str]) -> str | None:
    """The name that comes before all options, if there is one."""
    return argv[0] if argv and not argv[0].startswith("-") else None


def output(value: dict[str, Any], as_json: bool, text: str) -> None:
    """Print a result for a person or for a program."""
    print(json.dumps(value) if as_json else text)


def use_threads(threads: int) -> None:
    """Must run before JAX is imported: XLA reads NPROC once."""
    if threads > 0:
        os.environ.setdefault("NPROC", str(threads))
