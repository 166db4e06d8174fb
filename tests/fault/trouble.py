"""Disks, folders, neighbours and numbers that misbehave."""

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

from ertrl import api, store
from ertrl.cli import main
from ertrl.errors import ErtrlError, TrainingDiverged
from ertrl.learners.td3bc import Td3bc
from ertrl.training import Run, loop
from fault.crashes import content, drawn_once, goes_on, restore, run_through
from fault.inject import injecting, once_at, refuse_from
from fault.progress import shown
from fault.small import STAGES, run_of, small_world, train_config


def refuse(folder: Path, every: int) -> dict[str, int]:
    """A full disk, a read-only one and a removed folder, at chosen operations of all stages.

    After a full or read-only disk the same is done again, and comes out the same.
    """
    work, counts = folder / "work", {"full_disk": 0, "read_only": 0, "removed_folder": 0}
    codes = {"full_disk": errno.ENOSPC, "read_only": errno.EROFS}
    with small_world(), drawn_once():
        for name, total in run_through(folder).items():
            whole = content(folder / f"after-{name}")
            cases = [("full_disk", number) for number in range(1, total + 1, every)]
            for kind in ("read_only", "removed_folder"):
                cases += [(kind, number) for number in range(2, total + 1, 5 * every)]
            for kind, number in shown(f"disks {name}", cases):
                restore(folder / f"before-{name}", work)
                if kind == "removed_folder":
                    trouble = once_at(number, lambda: shutil.rmtree(work, ignore_errors=True))
                else:
                    trouble = refuse_from(number, codes[kind])
                with injecting(work, trouble):
                    _fails_clearly(STAGES[name], work)
                if kind != "removed_folder":
                    goes_on(folder, name, whole, number)
                counts[kind] += 1
    return counts


def _fails_clearly(stage: Callable[[Path], None], work: Path) -> None:
    """What the command line shows without a traceback, or nothing at all."""
    with contextlib.suppress(ErtrlError, OSError):
        stage(work)


def two_processes(world: Path, folder: Path) -> dict[str, int]:
    """Two trainings of one run: one is told. Three evaluations: all are kept."""
    place = shutil.copytree(world, folder / "two")
    shutil.rmtree(place / "runs")
    train = "import sys; from fault.small import *\nwith small_world(): do_train(Path(sys.argv[1]))"
    first = _start(train, place)
    while not any(map(store.in_use, place.glob("runs/*"))):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)  # until the second has been told
    second = _start(train, place)
    told = second.communicate()[1]
    assert f"is in use by process {first.pid}" in told, told
    first.send_signal(signal.SIGCONT)
    assert first.wait() == 0, first.communicate()
    checkpoints = [run_of(folder).checkpoints.read() for folder in (place, world)]
    assert checkpoints[0] == checkpoints[1]
    one = (
        "import sys; from fault.small import *\n"
        "with small_world(): api.evaluate(run_of(Path(sys.argv[1])), [sys.argv[2]])"
    )
    many = [_start(one, place, name) for name in ("idaq", "offline", "online")]
    assert [process.communicate()[1] and 0 for process in many if process.wait()] == []
    run = run_of(place)
    with small_world():
        assert "idaq" in run.evaluations.read()["protocols"]
        api.verify(run.path)
    return {"trainings_told": 1, "evaluations_at_once": len(many)}


def _start(code: str, *arguments: object) -> subprocess.Popen:
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def diverge(world: Path, folder: Path) -> dict[str, Any]:
    """A logarithm of a negative number at update 7: it is kept, repeated and named."""
    place = shutil.copytree(world, folder / "diverging")
    learn = Td3bc.update

    def poisoned(learner, state, *arguments):
        step = learn(learner, state, *arguments)
        wrong = jnp.log(jnp.where(state.updates == 6, -1.0, 1.0))
        return step._replace(metrics={**step.metrics, "critic_loss": wrong})

    with small_world(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Td3bc, "update", poisoned)
        patch.setattr(loop, "make_chunk", loop.make_chunk.__wrapped__)
        dataset = api.Dataset(place / "data")
        config = train_config()
        run = Run.create(place / "diverged", dataset, config)
        with pytest.raises(TrainingDiverged, match=r"critic_loss became nan at update 7.*replay"):
            loop.train_run(run, dataset, "none")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert main(["replay", str(run.path), "--json"]) == 0
        found = json.loads(said.getvalue())
        api.verify(run.path)
    assert (found["step"], found["again"]) == (7, {"critic_loss": "nan"})
    assert found["operation"]["message"].startswith("log of"), found
    return {"step": found["step"], "operation": found["operation"]["message"]}


def memory_over(world: Path, folder: Path, updates: int, at: Iterable[float]) -> dict[str, Any]:
    """Resident memory in megabytes at shares of a long run, in a process of its own."""
    place = shutil.copytree(world, folder / "long")
    code = (
        "import sys, dataclasses, json; from fault.small import *\n"
        "from ertrl.training import loop\n"
        "from ertrl.data import Dataset\n"
        "updates, seen = int(sys.argv[2]), []\n"
        "marks = [float(x) * updates for x in sys.argv[3:]]\n"
        "def resident():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(l.split()[1]) for l in lines if l.startswith('VmRSS')) / 1024\n"
        "advance = loop._Trainee.advance\n"
        "def watched(self, *a, **k):\n"
        "    advance(self, *a, **k)\n"
        "    while marks and self.step >= marks[0]: seen.append(resident()); marks.pop(0)\n"
        "loop._Trainee.advance = watched\n"
        "place = Path(sys.argv[1])\n"
        "with small_world():\n"
        "    config = dataclasses.replace(train_config(), updates=updates, updates_per_call=20,\n"
        "        evaluate_every=updates // 4, checkpoint_every=updates // 20)\n"
        "    api.start(config, Dataset(place / 'data'), out=place / 'long', progress='none')\n"
        "print(json.dumps(seen))\n"
    )
    process = _start(code, place, updates, *at)
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    seen = [round(value, 1) for value in json.loads(said.splitlines()[-1])]
    return {"updates": updates, "megabytes": seen, "growth": round(seen[-1] - seen[0], 1)}
