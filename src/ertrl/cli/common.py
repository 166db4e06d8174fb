"""What the commands share besides their options: words before parsing, threads, output."""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ertrl.errors import ConfigError
from ertrl.plugins import gave_nothing, names_file, use
from ertrl.provenance import available_cores

OWN_PARTS = (
    "Any command takes --plugin FILE.py or FILE.py:NAME, with methods, learners or families of "
    "your own."
)


def peek(argv: Sequence[str], option: str, default: str) -> str:
    """Value of an option that decides what the other options are."""
    found = default
    for i, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == option:  # the parser takes both spellings, and the last one
            found = value if equals else argv[i + 1] if i + 1 < len(argv) else default
    return found


def first_word(argv: Sequence[str]) -> str | None:
    """The name that comes before all options, if there is one."""
    return argv[0] if argv and not argv[0].startswith("-") else None


def use_plugins(words: Sequence[str]) -> list[str]:
    """Load the files that `--plugin` names; returns the other words."""
    left, rest = [], list(words)
    while rest:
        name, equals, value = (word := rest.pop(0)).partition("=")
        if name != "--plugin":
            left.append(word)
            continue
        if not equals and not rest:
            raise ConfigError("--plugin takes FILE.py or FILE.py:NAME")
        use(value if equals else rest.pop(0))
    return left


def own_part(word: str) -> str:
    """The name of a part; FILE.py:NAME is loaded first."""
    if not names_file(word):
        return word
    found = use(word)
    if found in ([], [None]):  # it may have registered one, but which?
        raise ConfigError(gave_nothing(word))
    if len(found) != 1:
        raise ConfigError(f"{word} gives {len(found)} parts; name one, as FILE.py:NAME")
    if not hasattr(found[0], "name"):
        if isinstance(found[0], type):
            raise ConfigError(f"{word} gives {found[0].__name__}, which has no name")
        raise ConfigError(f"{word} gives {found[0]!r}, which is no method, learner or family")
    return found[0].name


def require_runs(runs: Sequence[Any], command: str) -> None:
    if not runs:
        raise ConfigError(
            f"say which runs: `ertrl {command} runs` takes all that are in the folder runs, "
            f"`ertrl {command} runs/NAME` one of them"
        )


def command_list(summaries: Mapping[str, str]) -> str:
    width = max(map(len, summaries))
    return "\n".join(f"  {name:{width}}  {summary}" for name, summary in summaries.items())


printed: list[Any] = []
"""What this command has printed as JSON: a program that reads it expects one value."""


def output(value: Any, text: str | None = None) -> None:
    """Print a result as text for a person or, where there is none, as JSON for a program."""
    if text is None:
        printed.append(value)
    print(json.dumps(value) if text is None else text)


def output_problem(problem: str, words: Sequence[str]) -> None:
    """Tell a program, too, that a command with these words failed."""
    if "--json" in words and not printed:
        with suppress(BrokenPipeError):
            output({"error": problem})
            sys.stdout.flush()


def output_dataset(dataset: Any, as_json: bool) -> None:
    """What a command says of a dataset that it made."""
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
    output(value, None if as_json else text)


ESTIMATED = (
    "no simulator: estimated from logs (discounted value of the adapted policy, of the same "
    "without a context, and of who logged the data; share of reward and next state that a model "
    "cannot explain)"
)


def score_lines(*seeds: Mapping[str, float]) -> list[str]:
    """A line per score; of several seeds, their mean, minimum and maximum."""
    names = dict.fromkeys(name for scores in seeds for name in scores)
    width, lines = max([22, *map(len, names)]), []
    for name in names:
        found = [scores[name] for scores in seeds if name in scores]
        told = [sum(found) / len(found), min(found), max(found)] if len(seeds) > 1 else found
        digits = 3 if "unexplained" in name else 1  # a share of variance
        lines.append(" ".join([f"{name:{width}}", *(f"{x:6.{digits}f}" for x in told)]))
    return lines


def use_threads(argv: Sequence[str], default: int) -> None:
    """Must run before JAX is imported: XLA reads NPROC once."""
    threads, given = peek(argv, "--threads", str(default)), os.environ.get("NPROC", "")
    if not threads.isdecimal():
        raise ConfigError(f"--threads takes a whole number of at least 0, got '{threads}'")
    if given and not given.isdecimal():
        raise ConfigError(f"the environment variable NPROC must be a number, got '{given}'")
    if int(threads) > 4096:
        raise ConfigError(f"--threads takes at most 4096, got {threads}")
    if int(threads) or not int(given or 0):
        os.environ["NPROC"] = str(int(threads) or available_cores())


def use_huge_pages() -> None:
    """Start this process anew with large memory pages, if it has not been already.

    An update at the paper's sizes needs hundreds of megabytes for a moment. In pages of 4 KiB the
    system spends a tenth of the time handing them out; glibc takes larger ones only if it is told
    so before the process starts. Process number, arguments and environment stay the same.
    """
    if sys.platform == "linux" and "GLIBC_TUNABLES" not in os.environ:
        environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
        # Control-C waits until the new process can answer it, in `main`.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.execve(sys.executable, sys.orig_argv, environment)
