"""Options that several commands have, and how a function becomes a command."""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

from ertrl.cli.common import OWN_PARTS
from ertrl.errors import ConfigError
from ertrl.progress import ProgressStyle


def unset(metavar: str, text: str | None = None) -> Any:
    """How to show an option whose text says what holds where it is not given."""
    return arg(metavar=metavar, help=text, help_behavior_hint="")


T = TypeVar("T", bound=Callable[..., Any])
ONE_WORD = (int, float, str, Path)
"""Types whose values are one word each."""
REPEATED = "option"
"""The one option of several words that is given once for each."""
Runs = Annotated[
    Positional[tuple[Path, ...]],
    unset("[RUN ...]", "Folders of runs, or folders that hold runs."),
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


def plainly(takes: T) -> T:
    """Show the options of a function or dataclass as a person reads them.

    Of one that is nothing by default no default is shown: its text says what holds then. A switch
    that is off has no second name, and None is no word to give.
    """
    bare, hints = get_type_hints(takes), inspect.get_annotations(takes)
    for name, option in inspect.signature(takes).parameters.items():
        default = option.default
        if name not in hints or not (default is False or default in (None, "", ())):
            continue
        kinds = [kind for kind in get_args(bare[name]) if default is None and kind in ONE_WORD]
        said = arg(help_behavior_hint="", constructor=kinds[0] if kinds else None)
        shown = Annotated[hints[name], said]  # ty: ignore[invalid-type-form]
        takes.__annotations__[name] = FlagCreatePairsOff[shown] if default is False else shown
    return takes


def parse(command: Any, name: str, words: Sequence[str], **options: Any) -> Any:
    """Parse the words after the command; prints help or an explanation and exits if need be."""
    _refuse_repeated_lists(command, words, options.get("default"))
    try:
        return tyro.cli(command, prog=f"ertrl {name}", args=words, **options)
    except SystemExit as stop:
        if not stop.code:  # after help
            print(OWN_PARTS)
        raise


def _refuse_repeated_lists(command: Any, words: Sequence[str], default: Any) -> None:
    """The parser would keep the last list in silence: a task would not be held out, for one."""
    given = [word.partition("=")[0] for word in takewhile(lambda word: word != "--", words)]
    # It takes both spellings.
    counts = Counter(name[2:].replace("_", "-") for name in given if name.startswith("--"))
    repeated = [name for name, count in counts.items() if count > 1]
    lists = _lists(command, default) - {REPEATED} if repeated else set()
    for name in repeated:
        if name.rpartition(".")[2].replace("-", "_") in lists:
            raise ConfigError(
                f"--{name} is given {counts[name]} times, and only the last would count: give all "
                f"values after one --{name}"
            )


def _lists(command: Any, default: Any) -> set[str]:
    """Options that take several words, and settings that do, wherever they stand in `default`."""
    hints = get_type_hints(get_origin(command) or command)
    inner = [getattr(default, name) for name in hints if is_dataclass(getattr(default, name, None))]
    found = {n for n, kind in hints.items() if tuple in map(get_origin, (kind, *get_args(kind)))}
    return found.union(*(_lists(type(part), part) for part in inner))


def command(name: str) -> Callable[[Callable[..., None]], Callable[[Sequence[str]], None]]:
    """Turn a function into a command: its arguments are the options, its docstring the help."""
    return lambda function: partial(parse, plainly(function), name)
