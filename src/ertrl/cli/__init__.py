"""The command line: parse, call, print. Everything else lives behind the functions it calls."""

import sys
import warnings
from collections.abc import Callable, Sequence

from ertrl import __version__
from ertrl.cli import look, make, run
from ertrl.cli.common import use_huge_pages
from ertrl.cli.data import data
from ertrl.errors import ConfigError, ErtrlError, Interrupted, unknown

USAGE = """\
usage: ertrl COMMAND [options]

Offline meta-reinforcement learning: from logged data of many tasks to an agent that adapts.

  demo      the whole way on Point-Robot in a few minutes, with a report at the end
  list      families, methods, learners, protocols and profiles
  collect   make behaviour data of a task family
  data      look at datasets and move them: info, card, export, import, push, pull
  train     meta-train a method on a dataset, or resume a run
  watch     follow running training
  evaluate  adapt a trained agent to all tasks under the context protocols
  report    tables, figures and one self-contained page from runs
  render    film an agent before and after adaptation
  verify    check every file of a dataset or run against its checksum
  bench     measure speed: bench train, bench env

`ertrl COMMAND --help` explains every option of a command. `ertrl --version` prints the version.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the exit code, 0 only on success."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if argv else 2
    if argv[0] == "--version":
        print(__version__)
        return 0
    if arguments is None:
        warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"  # ty: ignore
        if argv[0] in ("train", "bench"):
            use_huge_pages()
    try:
        if argv[0] not in COMMANDS:
            raise ConfigError(unknown("command", argv[0], COMMANDS))
        COMMANDS[argv[0]](argv[1:])
        return 0
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return stop.exit_code
    except ErtrlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except MemoryError as error:
        print(f"error: not enough memory ({error}); choose smaller sizes", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 141
    except OSError as error:
        print(f"error: {error}. Nothing that was complete before is lost.", file=sys.stderr)
        return 1


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "demo": run.demo,
    "list": look.list_parts,
    "collect": make.collect,
    "data": data,
    "train": make.train,
    "watch": run.watch,
    "evaluate": look.evaluate,
    "report": look.report,
    "render": look.render,
    "verify": look.verify,
    "bench": run.bench,
}
