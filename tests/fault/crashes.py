"""A crash at every file operation of collect -> train -> evaluate -> report, then once more."""

import contextlib
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from ertrl import store
from ertrl.reporting import compose
from fault.inject import Crash, count_operations, crash_at, injecting, kill_at
from fault.small import STAGES, small_world

FLEETING = ("README.md", "learning-curve.png")
"""The card of a dataset tells seconds."""


def content(folder: Path) -> dict[str, object]:
    """Every file below a folder, hidden ones as well, without clocks and without locks."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name == ".lock":
            continue
        name = str(path.relative_to(folder))
        if path.name in FLEETING:
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


def crash_everywhere(
    folder: Path, choose: Callable[[int], Iterable[int]] = lambda total: range(1, total + 1)
) -> dict[str, dict[str, int]]:
    """Per stage, how many operations there are and at how many of them it was killed."""
    work, figures = folder / "work", {}
    work.mkdir(parents=True)
    with small_world(), drawn_once():
        for name, stage in STAGES.items():
            saved = shutil.copytree(work, folder / f"before-{name}")
            total = count_operations(lambda stage=stage: stage(work), work)
            whole = content(work)
            shutil.copytree(work, folder / f"after-{name}")
            gc.freeze()  # what has been imported need not be searched after every crash
            litter, killed = 0, 0
            for number in choose(total):
                restore(saved, work)
                with pytest.raises(Crash), injecting(work, crash_at(number)):
                    stage(work)
                litter += any(p.suffix == ".tmp" for p in work.rglob(".*"))
                stage(work)
                found = content(work)
                assert found.keys() == whole.keys(), (name, number, found.keys() ^ whole.keys())
                for file, expected in whole.items():
                    assert found[file] == expected, (name, number, file)
                killed += 1
            figures[name] = {"operations": total, "killed": killed, "left_temporary": litter}
            restore(folder / f"after-{name}", work)
    return figures


def kill_for_real(folder: Path, kills: Mapping[str, Iterable[int]]) -> int:
    """SIGKILL processes at these operations, after `crash_everywhere` filled the folder."""
    count = 0
    for name, numbers in kills.items():
        whole = content(folder / f"after-{name}")
        for number in numbers:
            restore(folder / f"before-{name}", folder / "work")
            assert _process(folder / "work", name, number) == -9, (name, number)
            assert _process(folder / "work", name, 0) == 0, (name, number)
            assert content(folder / "work") == whole, (name, number)
            count += 1
    return count


def _process(work: Path, stage: str, number: int) -> int:
    command = [sys.executable, "-m", "fault.crashes", str(work), stage, str(number)]
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    place, chosen, where = Path(sys.argv[1]), STAGES[sys.argv[2]], int(sys.argv[3])
    with small_world(), injecting(place, kill_at(where)):
        chosen(place)
