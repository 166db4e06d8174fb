"""`ertrl data`: look at a dataset, take it elsewhere, bring one in."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional

from ertrl.cli.common import OWN_PARTS, command_list, first_word, output, output_dataset
from ertrl.cli.options import DatasetFolder, Json, Progress, command, unset
from ertrl.errors import ConfigError, unknown

MOST_ROWS = 8
"""Of a table, or of a group in it."""


def run(words: Sequence[str]) -> None:
    word = first_word(words)
    if word is None:
        if {"-h", "--help"} & set(words):
            print(USAGE, end="")
            return
        raise ConfigError(f"say what to do with data: {', '.join(COMMANDS)}; see ertrl data --help")
    if word not in COMMANDS:
        raise ConfigError(unknown("data command", word, COMMANDS))
    COMMANDS[word][0](words[1:])


@command("data info")
def info(dataset: DatasetFolder, json: Json = False) -> None:
    """Show what is in a dataset: tasks, returns per group and checkpoint, where it comes from."""
    from ertrl.data import Dataset, describe

    opened = Dataset(dataset)
    summary = {"dataset": str(opened.path), **describe(opened)}
    if json:
        output(summary)
    else:
        _print(summary)


def _print(summary: dict[str, Any]) -> None:
    """Colours and borders on a terminal, plain columns elsewhere."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ertrl.data.info import facts, tables

    on_terminal = sys.stdout.isatty()
    room = None if on_terminal else 160
    console = Console(width=room, highlight=False, soft_wrap=True, markup=False)
    console.print(Text(summary["dataset"], style="bold"))
    words = facts(summary)
    width = max(map(len, words)) + 2
    for name, value in words.items():
        console.print(Text.assemble("  ", (name.ljust(width), "dim"), value))
    for table in tables(summary):
        shown = Table(box=box.SIMPLE_HEAD if on_terminal else None)
        for i, name in enumerate(table.head):
            is_word = i == 0 or name in ("name", "group")
            shown.add_column(name, justify="left" if is_word else "right", no_wrap=True)
        for row in (rows := _some(table)):
            shown.add_row(*row)
        left_out = " --json has all rows." if ["..."] in rows else ""
        console.print(Text.assemble("\n", (table.title, "bold"), f" {table.note}{left_out}"))
        console.print(shown)


def _some(table: Any) -> list[Sequence[str]]:
    """The rows that a screen has room for: the first and last few, of each group if there are."""
    at = table.head.index("group") if "group" in table.head else None
    groups: dict[str, list[Sequence[str]]] = {}
    for row in table.rows:
        groups.setdefault("" if at is None else row[at], []).append(row)
    few = (r if len(r) <= MOST_ROWS else [*r[:3], ["..."], *r[-2:]] for r in groups.values())
    return [row for rows in few for row in rows]


@command("data card")
def card(dataset: DatasetFolder, json: Json = False) -> None:
    """Write the dataset's card again: README.md and learning-curve.png in its folder."""
    from ertrl.data import Dataset, write_card

    files = [str(path) for path in write_card(Dataset(dataset))]
    output({"card": files}, None if json else f"wrote {' and '.join(files)}")


@command("data export")
def export(
    dataset: DatasetFolder, minari: str, progress: Progress = "auto", json: Json = False
) -> None:
    """Write the tasks of a dataset as Minari datasets NAME/task-00-v0, NAME/task-01-v0, ...

    Args:
        minari: NAME: the Minari namespace that the tasks go to.
    """
    from ertrl.data import Dataset, export_minari

    ids = export_minari(Dataset(dataset), minari, progress)
    text = f"wrote {len(ids)} Minari datasets, {ids[0]} to {ids[-1]}"
    output({"minari": ids}, None if json else text)


@command("data import")
def import_(
    source: Annotated[Positional[tuple[str, ...]], unset("SOURCE ...")],
    /,
    *,
    out: Path,
    columns: tuple[str, ...] = (),
    parameters: tuple[str, ...] = (),
    held_out: tuple[str, ...] = (),
    held_out_share: float | None = None,
    ood: tuple[str, ...] = (),
    action_low: tuple[float, ...] = (),
    action_high: tuple[float, ...] = (),
    longest: int = 1000,
    name: str = "",
    progress: Progress = "auto",
    json: Json = False,
) -> None:
    """Make a dataset of your own logs: a row is one step of one task. No simulator is needed.

    Args:
        source: A .csv, .parquet or .npz file, a folder with one such file per task, the folder of
            UNICORN's or SPC's released data, or minari:ID (several may be given; a namespace stands
            for all in it), where each ID is a task.
        out: Dataset folder to make.
        columns: What your columns are called, as ROLE=NAME or ROLE=NAME,NAME,...; roles are task,
            episode, step, observation, action, reward, next_observation, terminated, truncated,
            policy. A vector may be columns NAME_0, NAME_1, ...
        parameters: Columns with known numbers of a task, for probes and figures.
        held_out: Names of tasks that the agent does not train on.
        held_out_share: Or their share; 0.2 if nothing is said.
        ood: Names of tasks out of distribution.
        action_low: Lowest action, one number or one per dimension; the data's if not given.
        action_high: Highest action.
        longest: Longer episodes are cut into pieces of so many steps.
        name: What to call the tasks together; the folder's name if not given.
    """
    from ertrl.data import import_logs

    if held_out and held_out_share is not None:
        raise ConfigError("give --held-out or --held-out-share, not both")
    dataset = import_logs(
        source[0] if len(source) == 1 else source,
        out,
        columns=_column_names(columns),
        parameters=parameters,
        held_out=held_out or held_out_share,
        ood=ood,
        action_low=action_low or None,
        action_high=action_high or None,
        longest=longest,
        name=name,
        progress=progress,
    )
    output_dataset(dataset, json)
    if not json:
        groups = ", ".join(f"{len(tasks)} {name}" for name, tasks in dataset.groups.items())
        if dataset.groups.keys() == {"train"}:
            groups += "; none is held out (--held-out NAME), so nothing will tell of a new task"
        for note in (f"tasks: {groups}", *dataset.manifest["imported"].get("notes", ())):
            print(f"  {note}")


def _column_names(words: Sequence[str]) -> dict[str, Any]:
    """ROLE=NAME or ROLE=NAME,NAME as what `import_logs` takes."""
    named = {}
    for word in words:
        role, equals, names = word.partition("=")
        if not equals or not names:
            raise ConfigError(f"--columns takes ROLE=NAME, for example reward=r; got '{word}'")
        named[role] = names.split(",") if "," in names else names
    return named


@command("data push")
def push(dataset: DatasetFolder, hub: str, private: bool = False, json: Json = False) -> None:
    """Upload a dataset to the Hugging Face Hub, as the login of `hf auth login`.

    Args:
        hub: Repository, USER/NAME; made if it is not there.
        private: Make a new repository private.
    """
    from ertrl.data import Dataset
    from ertrl.data import push as push_dataset

    # Pushing verifies, so opening need not.
    url = push_dataset(Dataset(dataset, verify=False), hub, private=private)
    output({"hub": hub, "commit": url}, None if json else f"uploaded: {url}")


@command("data pull")
def pull(hub: str, out: Path, revision: str | None = None, json: Json = False) -> None:
    """Download a dataset from the Hugging Face Hub and check every file.

    Args:
        hub: Repository, USER/NAME.
        out: Dataset folder to make.
        revision: Branch, tag or commit; the newest if not given.
    """
    from ertrl.data import pull as pull_dataset

    output_dataset(pull_dataset(hub, out, revision=revision), json)


COMMANDS = {
    "info": (info, "tasks, returns, references, versions and checksums of a dataset"),
    "card": (card, "write its README.md and learning-curve.png again"),
    "export": (export, "write its tasks as Minari datasets"),
    "import": (import_, "make a dataset of your own logs: CSV, Parquet, NPZ, Minari"),
    "push": (push, "upload it to the Hugging Face Hub"),
    "pull": (pull, "download one from the Hugging Face Hub and check it"),
}

USAGE = f"""\
usage: ertrl data COMMAND [options]

Look at datasets and move them. Every command has --json and a complete --help.

{command_list({name: summary for name, (_, summary) in COMMANDS.items()})}

{OWN_PARTS}
"""
