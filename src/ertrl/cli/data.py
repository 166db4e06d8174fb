"""Commands of `ertrl data`: look at a dataset, take it elsewhere, bring one in."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ertrl.cli.common import first_word, output, parse
from ertrl.errors import ConfigError, unknown

USAGE = """\
usage: ertrl data COMMAND [options]

Look at datasets and move them. Every command has --json and a complete --help.

  info    tasks, returns, references, versions and checksums of a dataset
  card    write its README.md and learning-curve.png again
  export  write its tasks as Minari datasets
  import  make a dataset of Minari datasets, one per task
  push    upload it to the Hugging Face Hub
  pull    download one from the Hugging Face Hub and check it
"""


def data(argv: Sequence[str]) -> None:
    """`ertrl data`."""
    word = first_word(argv)
    if word is None:
        if {"-h", "--help"} & set(argv):
            print(USAGE, end="")
            return
        raise ConfigError(f"say what to do with data: {', '.join(COMMANDS)}; see ertrl data --help")
    if word not in COMMANDS:
        raise ConfigError(unknown("data command", word, COMMANDS))
    COMMANDS[word](argv[1:])


def _positional() -> tuple[Any, ...]:
    import tyro

    return (tyro.conf.PositionalRequiredArgs,)


@dataclass
class InfoCommand:
    """Show what is in a dataset: tasks, returns per group and checkpoint, where it comes from."""

    dataset: Path
    """Dataset folder."""
    json: bool = False
    """Print everything as JSON."""


def info(argv: Sequence[str]) -> None:
    """`ertrl data info`."""
    command = parse(InfoCommand, "data info", argv, config=_positional())
    from ertrl.data import Dataset, describe

    dataset = Dataset(command.dataset)
    summary = {"dataset": str(dataset.path), **describe(dataset)}
    if command.json:
        output(summary, True, "")
    else:
        _print(summary)


def _print(summary: dict[str, Any]) -> None:
    """Colours and borders on a terminal, plain columns elsewhere."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ertrl.data.card import (
        GROUP_HEAD,
        checkpoint_head,
        checkpoint_rows,
        group_rows,
        task_head,
        task_rows,
    )
    from ertrl.data.summary import facts

    on_terminal = sys.stdout.isatty()
    console = Console(width=None if on_terminal else 160, highlight=False, soft_wrap=True)

    def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(box=box.SIMPLE_HEAD if on_terminal else None, title=None)
        for i, name in enumerate(head):
            words = i == 0 or name == "group"
            table.add_column(name, justify="left" if words else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        console.print(f"\n[bold]{title}[/bold]")
        console.print(table)

    console.print(f"[bold]{escape(summary['dataset'])}[/bold]")
    shown = facts(summary)
    width = max(map(len, shown)) + 2
    for name, value in shown.items():
        console.print(f"  [dim]{escape(name.ljust(width))}[/dim]{escape(value)}")
    show("Mean return of an episode", GROUP_HEAD, group_rows(summary))
    show(
        "By checkpoint: mean over tasks (lowest to highest task)",
        checkpoint_head(summary),
        checkpoint_rows(summary),
    )
    show("Tasks", task_head(summary), task_rows(summary))


@dataclass
class CardCommand:
    """Write the dataset's card again: README.md and learning-curve.png in its folder."""

    dataset: Path
    """Dataset folder."""
    json: bool = False
    """Print where the card is as JSON."""


def card(argv: Sequence[str]) -> None:
    """`ertrl data card`."""
    command = parse(CardCommand, "data card", argv, config=_positional())
    from ertrl.data import Dataset, write_card

    files = [str(path) for path in write_card(Dataset(command.dataset))]
    output({"card": files}, command.json, f"wrote {' and '.join(files)}")


def export(argv: Sequence[str]) -> None:
    """`ertrl data export`."""
    import tyro

    from ertrl.progress import ProgressStyle

    @dataclass
    class ExportCommand:
        """Write the tasks of a dataset as Minari datasets NAME/task-00-v0, NAME/task-01-v0, ..."""

        dataset: tyro.conf.Positional[Path]
        """Dataset folder."""
        minari: str
        """NAME: the Minari namespace that the tasks go to."""
        progress: ProgressStyle = "auto"
        """Bars or lines (auto), JSON lines, or none."""
        json: bool = False
        """Print the ids as JSON."""

    command = parse(ExportCommand, "data export", argv)
    from ertrl.data import Dataset, export_minari

    ids = export_minari(Dataset(command.dataset), command.minari, command.progress)
    text = f"wrote {len(ids)} Minari datasets, {ids[0]} to {ids[-1]}"
    output({"minari": ids}, command.json, text)


def import_(argv: Sequence[str]) -> None:
    """`ertrl data import`."""
    from ertrl.progress import ProgressStyle

    @dataclass
    class ImportCommand:
        """Make one dataset of several Minari datasets, each of them a task."""

        minari: tuple[str, ...]
        """Ids of Minari datasets on this machine; a namespace stands for all datasets in it."""
        out: Path
        """Dataset folder to make."""
        groups: tuple[str, ...] = ()
        """One group per dataset (train, test-id, test-ood) or one for all; train if not given."""
        name: str = ""
        """What to call a family that ertrl did not make; the folder's name if not given."""
        action_limit: float | None = None
        """Largest action, where the action space has no bounds."""
        progress: ProgressStyle = "auto"
        """Bars or lines (auto), JSON lines, or none."""
        json: bool = False
        """Print the result as JSON."""

    command = parse(ImportCommand, "data import", argv)
    from ertrl.data import import_minari

    dataset = import_minari(
        command.minari,
        command.out,
        groups=command.groups,
        label=command.name,
        action_limit=command.action_limit,
        progress=command.progress,
    )
    _made(dataset, command.json)


def _made(dataset: Any, as_json: bool) -> None:
    value = {
        "dataset": str(dataset.path),
        "family": dataset.family,
        "simulator": dataset.has_simulator,
        "fingerprint": dataset.fingerprint,
        "tasks": len(dataset.tasks),
        "transitions": sum(len(task.steps) for task in dataset.tasks.values()),
    }
    kind = dataset.family if dataset.has_simulator else f"{dataset.family} (no simulator)"
    text = f"{value['dataset']}: {kind}, {value['tasks']} tasks, {value['transitions']} transitions"
    output(value, as_json, text)


def push(argv: Sequence[str]) -> None:
    """`ertrl data push`."""
    import tyro

    @dataclass
    class PushCommand:
        """Upload a dataset to the Hugging Face Hub, as the login of `hf auth login`."""

        dataset: tyro.conf.Positional[Path]
        """Dataset folder."""
        hub: str
        """Repository, USER/NAME; made if it is not there."""
        private: bool = False
        """Make a new repository private."""
        json: bool = False
        """Print where it is as JSON."""

    command = parse(PushCommand, "data push", argv)
    from ertrl.data import Dataset
    from ertrl.data import push as push_dataset

    # Pushing verifies, so opening need not.
    dataset = Dataset(command.dataset, verify=False)
    url = push_dataset(dataset, command.hub, private=command.private)
    output({"hub": command.hub, "commit": url}, command.json, f"uploaded: {url}")


@dataclass
class PullCommand:
    """Download a dataset from the Hugging Face Hub and check every file."""

    hub: str
    """Repository, USER/NAME."""
    out: Path
    """Dataset folder to make."""
    revision: str | None = None
    """Branch, tag or commit; the newest if not given."""
    json: bool = False
    """Print the result as JSON."""


def pull(argv: Sequence[str]) -> None:
    """`ertrl data pull`."""
    command = parse(PullCommand, "data pull", argv)
    from ertrl.data import pull as pull_dataset

    _made(pull_dataset(command.hub, command.out, revision=command.revision), command.json)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "info": info,
    "card": card,
    "export": export,
    "import": import_,
    "push": push,
    "pull": pull,
}
