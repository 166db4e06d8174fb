"""The command line: parse, call, print. Everything else lives behind the functions it calls.

A command is the file of its name, with a function `run`; it is imported when it is asked for.
"""

import io
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from ertrl import __version__
from ertrl.cli import common
from ertrl.cli.common import command_list
from ertrl.errors import ConfigError, ErtrlError, Interrupted, unknown
from ertrl.plugins import only_runtime
from ertrl.signals import answer_control_c, follow_parent


class Command(NamedTuple):
    """What is known of a command before its file is imported."""

    summary: str
    threads: int = 0
    """CPU threads where --threads does not say; 0 takes all, 1 makes results repeat bit for bit."""


COMMANDS = {
    "demo": Command("the whole way on Point-Robot in a few minutes, with a report at the end"),
    "list": Command("families, methods, learners, protocols and profiles"),
    "collect": Command("make behaviour data of a task family"),
    "data": Command("look at datasets and move them: info, card, export, import, push, pull"),
    "train": Command("meta-train a method on a dataset, or resume a run", threads=1),
    "watch": Command("follow running training"),
    "evaluate": Command(
        "adapt a trained agent to all tasks under the context protocols", threads=1
    ),
    "report": Command("tables, figures and one self-contained page from runs", threads=1),
    "reproduce": Command(
        "the paper's whole grid, here or on a Ray cluster; goes on where it was", threads=1
    ),
    "render": Command("film an agent before and after adaptation"),
    "export": Command("write an agent for machines without JAX: NumPy alone, or ONNX", threads=1),
    "verify": Command("check every file of a dataset, run or agent against its checksum"),
    "check-plugin": Command("check a method, learner or family of your own", threads=1),
    "replay": Command("repeat the update at which a run diverged", threads=1),
    "bench": Command("measure the speed of training and of collection on this machine"),
}

USAGE = f"""\
usage: ertrl COMMAND [options]

Offline meta-reinforcement learning: from logged data of many tasks to an agent that adapts.

{command_list({name: command.summary for name, command in COMMANDS.items()})}

`ertrl COMMAND --help` explains every option of a command. `ertrl --version` prints the version.
{common.OWN_PARTS}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the exit code, 0 only on success."""
    name, *words = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name in ("", "-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if name else 2
    if name == "--version":
        print(__version__)
        return 0
    if arguments is None:
        if isinstance(sys.stdout, io.TextIOWrapper):  # a name may be no text in this encoding
            sys.stdout.reconfigure(errors="backslashreplace")
        warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"  # ty: ignore
        if name in ("train", "bench"):
            common.use_huge_pages()
        follow_parent()
    common.printed.clear()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        _run(name, words, answering=arguments is None)
        return 0
    except Interrupted as stop:
        told, code = str(stop), stop.exit_code
    except ErtrlError as error:
        told, code = f"error: {error}", error.exit_code
    except KeyboardInterrupt:
        told, code = "stopped", 130
    except MemoryError as error:
        told, code = f"error: not enough memory ({error}); choose smaller sizes", 1
    except BrokenPipeError:
        return 141
    except SystemExit as stop:  # of the parser, which has explained it
        if stop.code:
            common.output_problem("these words cannot be read; standard error says why", words)
        raise
    except OSError as error:
        told, code = f"error: {error}. Nothing that was complete before is lost.", 1
    print(told, file=sys.stderr)
    common.output_problem(told.removeprefix("error: "), words)
    return code


def _run(name: str, words: Sequence[str], *, answering: bool) -> None:
    """Run a command; `answering` says whether Control-C is this program's own affair."""
    if name not in COMMANDS:
        raise ConfigError(unknown("command", name, COMMANDS))
    common.use_threads(words, COMMANDS[name].threads)
    words = common.use_plugins(words)
    try:
        command = import_module(f"ertrl.cli.{name.replace('-', '_')}")
        if answering:  # from here on there may be something to leave in order
            answer_control_c()
        command.run(words)
    except ModuleNotFoundError as missing:
        raise only_runtime(f"`ertrl {name}`", missing) from None
