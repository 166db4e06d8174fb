"""SIGKILL at every file operation of collect -> train -> evaluate -> report, then once more.

What SIGKILL leaves is what is on the disk at that moment, so a copy of the folder before each
operation of one run stands for the kill there; some processes are killed for real as well, and have
to leave the same files as the copy.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ertrl import store
from ertrl.reporting import compose
from fault.inject import count_operations, injecting, kill_at
from fault.progress import shown
from fault.small import STAGES, small_world

FLEETING = ("README.md", "learning-curve.png")
"""The card of a dataset tells seconds."""


def content(folder: Path) -> dict[str, object]:
    """Everything below a folder, hidden files as well, without clocks and without locks."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.name == ".lock":
            continue
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name in FLEETING:
            found[name] = None
        elif path.name in ("manifest.json", "config.json"):
            known = store.read_json(path)
            known.pop("provenance")
            collector = known.get("collector", {})
            collector.pop("seconds", None)
            for point in collector.get("curve", []):
                point.pop("seconds", None)
            found[name] = known
        else:
            found[name] = path.read_bytes()
    return found


@contextlib.contextmanager
def drawn_once():
    """A report's content does not change here, so it is composed once; writing it counts."""
    made: dict[object, object] = {}

    def once(function: Callable) -> Callable:
        def call(*arguments):
            key = function, *(id(a) if not isinstance(a, (str, Path)) else a for a in arguments)
            if key not in made:
                made[key] = function(*arguments), arguments
            return made[key][0]

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("compose", "to_bytes", "render"):
            patch.setattr(compose, name, once(getattr(compose, name)))
        yield


def restore(saved: Path, work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(saved, work)


def run_through(folder: Path) -> dict[str, int]:
    """Do all stages in `work`, keeping what was there before and after each; counts operations."""
    work, totals = folder / "work", {}
    work.mkdir(parents=True)
    for name, stage in STAGES.items():
        shutil.copytree(work, folder / f"before-{name}")
        totals[name] = count_operations(lambda stage=stage: stage(work), work)
        shutil.copytree(work, folder / f"after-{name}")
    return totals


def photograph(folder: Path, name: str, numbers: Iterable[int]) -> Path:
    """Do a stage once more, and copy the folder before these operations."""
    album, chosen = folder / "album", set(numbers)

    def copy(number: int, kind: str) -> None:
        if number in chosen:
            shutil.copytree(folder / "work", album / str(number))

    restore(folder / f"before-{name}", folder / "work")
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.MonkeyPatch.context() as patch, injecting(folder / "work", copy):
        patch.setattr(os, "getpid", lambda: gone.pid)  # who asks finds that it is dead
        STAGES[name](folder / "work")
    return album


def goes_on(folder: Path, name: str, whole: dict[str, object], number: int) -> None:
    """What was killed comes out as if it had not been."""
    STAGES[name](folder / "work")
    found = content(folder / "work")
    assert found.keys() == whole.keys(), (name, number, found.keys() ^ whole.keys())
    for file, expected in whole.items():
        assert found[file] == expected, (name, number, file)


def kill_everywhere(
    folder: Path,
    choose: Callable[[int], Iterable[int]] = lambda total: range(1, total + 1),
    for_real: int = 0,
) -> dict[str, dict[str, int]]:
    """Per stage, how many operations there are and at how many of them it was killed.

    At every `for_real`-th of them also a process of its own; reports, which are slow to draw, less.
    """
    figures = {}
    with small_world(), drawn_once():
        for name, total in run_through(folder).items():
            whole, litter, real = content(folder / f"after-{name}"), 0, 0
            chosen, every = list(choose(total)), for_real * (5 if name == "report" else 1)
            album = photograph(folder, name, chosen)
            for number in shown(f"kill {name}", chosen):
                restore(album / str(number), folder / "work")
                litter += any(p.suffix == ".tmp" for p in folder.glob("work/**/.*"))
                goes_on(folder, name, whole, number)
                if every and number % every == every // 2:
                    restore(folder / f"before-{name}", folder / "work")
                    _kill(folder / "work", name, number)
                    left, expected = _names(folder / "work"), _names(album / str(number))
                    assert left == expected, (name, number, left ^ expected)
                    goes_on(folder, name, whole, number)
                    real += 1
            shutil.rmtree(album)
            figures[name] = {
                "operations": total,
                "killed": len(chosen),
                "with_temporary_files": litter,
                "processes": real,
            }
    return figures


def _names(folder: Path) -> set[str]:
    return {re.sub(r"\.[^.]+\.tmp$", ".tmp", name) for name in content(folder)}


def _kill(work: Path, stage: str, number: int) -> None:
    """SIGKILL a process that does this stage before this operation."""
    command = [sys.executable, "-W", "ignore", "-m", "fault.crashes"]
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, str(work), stage, str(number)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, (stage, number, done.stderr)


if __name__ == "__main__":
    place, chosen, where = Path(sys.argv[1]), STAGES[sys.argv[2]], int(sys.argv[3])
    with small_world(), injecting(place, kill_at(where)):
        chosen(place)
