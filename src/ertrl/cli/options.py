"""Options that several commands have, and how a function becomes a command."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional, arg

from ertrl.progress import ProgressStyle


def unset(metavar: str, text: str | None = None) -> Any:
    """How to show an option whose text says what holds where it is not given."""
    return arg(metavar=metavar, help=text, help_behavior_hint="")


Runs = Annotated[
    Positional[tuple[Path, ...]], arg(help="Folders of runs, or folders that hold runs.")
]
DatasetFolder = Annotated[Positional[Path], arg(help="Dataset folder.")]
MovedData = Annotated[Path | None, unset("DIR", "Dataset folder, if it has moved since training.")]
Step = Annotated[
    int | None,
    unset("N", "Which checkpoint, by its number of updates; the newest if not given."),
]
Profile = Annotated[str, arg(help="Where the defaults below come from: laptop or paper.")]
Variant = Annotated[
    str, arg(help="The paper's text, or what the released code does where that differs: released.")
]
Progress = Annotated[ProgressStyle, arg(help="Bars or lines (auto), JSON lines, or none.")]
Json = Annotated[bool, arg(help="Print the result as JSON.")]


def parse(command: Any, name: str, words: Sequence[str], **options: Any) -> Any:
    """Parse the words after the command; prints help or an explanation and exits if need be."""
    return tyro.cli(command, prog=f"ertrl {name}", args=words, **options)


def command(name: str) -> Callable[[Callable[..., None]], Callable[[Sequence[str]], None]]:
    """Turn a function into a command: its arguments are the options, its docstring the help."""
    return lambda function: lambda words: parse(function, name, words)
