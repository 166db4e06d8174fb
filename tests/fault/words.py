"""Command lines that nobody would type: each ends with a message or a result, none with a trace."""

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import options_of
from ertrl import api
from ertrl.cli import COMMANDS
from ertrl.cli.data import COMMANDS as DATA_COMMANDS
from ertrl.errors import ErtrlError
from fault.hostile import called
from fault.progress import shown
from fault.small import COLLECT, TRAIN_WORDS, SmallRobot, small_world

VALUES = [
    "", "0", "1", "-1", "2", "1.5", "99999999999999999999", "-99999999999999999999", "1e308", "nan",
    "inf", "1_0", "٣", "x", "True", "None", "[]", "../..", "/", "/dev/null", "\\frac", "$x$",
    "[red]", "[/]", "é", "a" * 5000, "--", "-", "=", "0-99999999999", "0,0", "1-", "null", "{}",
    "%s", "\n",
]  # fmt: skip
OPTIONS = [
    "--json", "--help", "--data", "--out", "--profile", "--variant", "--seed", "--seeds",
    "--updates",
    "--threads", "--progress", "--step", "--task", "--protocol", "--probes", "--probe-transitions",
    "--every", "--once", "--sink", "--use-learner", "--seeds-in", "--family", "--method",
    "--seconds", "--hub", "--minari", "--groups", "--name", "--action-limit", "--option", "--style",
    "--sampling.batch-size", "--sampling.meta-batch", "--learner.hidden", "--method.encoder.hidden",
    "--method.encoder.latent-dim", "--evaluation.repeats", "--evaluation.episodes", "--hidden",
    "--updates-per-call", "--steps", "--checkpoints", "--simulations-per-task", "--batch-size",
    "--references", "--dry-run", "--private", "--revision", "--learning-rate", "--nonsense",
]  # fmt: skip


def bases(world: Path) -> list[list[str]]:
    """Sensible command lines to spoil."""
    (run,) = map(str, (world / "runs").iterdir())
    data, new = str(world / "data"), str(world / "new")
    bare = [[name] for name in COMMANDS if name not in ("demo", "bench")]
    whole = [
        ["collect", SmallRobot.name, "--out", new, *options_of(COLLECT)],
        ["train", "focal", "--data", data, "--out", new, *TRAIN_WORDS],
        ["train", run],
        ["watch", run, "--json"],
        ["evaluate", run, "--protocol", "offline"],
        ["verify", run, data],
        ["replay", run],
        ["report", run, "--out", new],
        ["render", run, "--out", f"{new}.mp4"],
        ["data", "info", data],
        ["data", "card", data],
    ]
    return [*bare, *(["data", name] for name in DATA_COMMANDS), *4 * whole]


def spoilt(words: list[str], draw: np.random.Generator) -> list[str]:
    """Change, add, remove, repeat or swap some of the words."""
    words = list(words)
    for _ in range(int(draw.integers(1, 4))):
        where = int(draw.integers(1, len(words) + 1))
        value = VALUES[draw.integers(len(VALUES))]
        option = OPTIONS[draw.integers(len(OPTIONS))]
        kind = draw.integers(6)
        if kind == 0:
            words[where:where] = [option, value]
        elif kind == 1:
            words.insert(where, f"{option}={value}")
        elif kind == 2 and where < len(words):
            words[where] = value
        elif kind == 3 and where < len(words):
            del words[where]
        elif kind == 4 and where < len(words):
            words.insert(where, words[where])
        else:
            words.insert(where, value if draw.random() < 0.5 else option)
    return words


class Reached(ErtrlError):
    """The words are good: the work itself is not for here."""


def attack(world: Path, folder: Path, count: int, seed: int = 0) -> dict[str, Any]:
    draw, found, names = np.random.default_rng(seed), [], Counter()
    place = shutil.copytree(world, folder / "words")

    def reached(*_, **__):
        names["reached the work"] += 1
        raise Reached("reached")

    with small_world(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name in ("train_run", "evaluate_agent", "collect_dataset", "estimate"):
            patch.setattr(api, name, reached)
        for target in (
            "ertrl.launch.train_seeds",
            "ertrl.launch.reproduce.with_costs",
            "ertrl.reporting.report",
            "ertrl.evaluation.probes.probe_agent",
            "ertrl.training.replay.replay",
        ):
            patch.setattr(target, reached)
        known = bases(place)
        for number in shown("words", range(count)):
            words = spoilt(known[draw.integers(len(known))], draw)
            _, trouble = called(words)
            if trouble:
                found.append(f"{number}: {words}\n{trouble}")
                print(found[-1], file=sys.stderr)
    shutil.rmtree(place)
    return {
        "lines": count,
        "reached_the_work": names["reached the work"],
        "tracebacks": len(found),
    }
