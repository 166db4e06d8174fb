"""A collection that is killed goes on, and ends with the very bytes of one that was not."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from conftest import TINY_COLLECT, options_of
from ertrl import api, store
from ertrl.cli import main
from ertrl.collection import collect, sac
from ertrl.collection.savepoints import RowSeal, Savepoint, Savepoints, unfinished_folder
from ertrl.data import Dataset, DatasetWriter, Description, TaskRecord
from ertrl.envs.families.point_robot import PointRobot
from ertrl.errors import CorruptFileError, DataError, Interrupted, RunError
from ertrl.types import Dims, Episodes
from toys import ToyFamily

PROGRAM = """
import sys
from ertrl.collection import collect
collect.SECONDS_BETWEEN_SAVES = collect.SECONDS_BEFORE_A_RECORDING_IS_SAVED = 0.0
collect.SHARE_OF_TIME_FOR_SAVING = 1e9
from ertrl.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The command line, but saving after every block."""

SMALL = {
    "point-robot": dataclasses.replace(
        TINY_COLLECT, steps=60, steps_per_block=5, random_steps=20, checkpoints=3
    ),
    # Falls, so that simulations restart at different times.
    "hopper-mass": dataclasses.replace(
        TINY_COLLECT,
        n_step=3,
        standardise=True,
        side_by_side=True,
        decay=0.5,
        hidden=(16, 16),
        batch_size=32,
        steps=30,
        steps_per_block=5,
        random_steps=20,
        simulations_per_task=1,
        checkpoints=1,
        episodes_per_checkpoint=1,
        reference_episodes=1,
    ),
}


def start(family: str, out: Path, **changes) -> subprocess.Popen:
    config = dataclasses.replace(SMALL[family], **changes)
    words = options_of(config)
    command = [sys.executable, "-c", PROGRAM, "collect", family, "--out", str(out)]
    return subprocess.Popen(
        [*command, "--threads", "1", "--progress", "json", *words],
        env={**os.environ, "NPROC": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_block(process: subprocess.Popen, block: int) -> int:
    """Read progress until the block is done; returns where the process started from."""
    assert process.stdout is not None
    first = None
    for line in process.stdout:
        done = json.loads(line).get("done", -1)
        first = done if first is None else first
        if done >= block:
            return first
    raise AssertionError(process.stderr.read() if process.stderr else "")


def content(path: Path) -> dict:
    """Bytes of every file; of the manifest all but clock and provenance."""
    files = {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*.npy")}
    manifest = store.read_json(path / "manifest.json")
    manifest.pop("provenance")
    manifest["collector"].pop("seconds")
    for point in manifest["collector"]["curve"]:
        point.pop("seconds")
    return {**files, "manifest": manifest}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Content of datasets that were collected in one go."""
    done = {}

    def collected(family: str) -> dict:
        if family not in done:
            out = tmp_path_factory.mktemp("whole") / family
            api.collect(family, out, config=SMALL[family], progress="none")
            done[family] = content(out)
        return done[family]

    return collected


KILLS = {
    "point-robot": ((1, signal.SIGKILL), (6, signal.SIGTERM)),
    "hopper-mass": ((3, signal.SIGKILL),),
}


@pytest.mark.filterwarnings("ignore:.*is not above random actions")  # so short a training
@pytest.mark.parametrize("family", KILLS)
def test_killed_and_resumed_is_byte_identical(family, tmp_path, uninterrupted):
    out = tmp_path / "d"
    started_from = []
    for block, kind in KILLS[family]:
        with start(family, out) as process:
            started_from.append(wait_for_block(process, block))
            process.send_signal(kind)
            _, errors = process.communicate()
        assert not out.exists()
        assert unfinished_folder(out).exists()
        if kind == signal.SIGTERM:
            assert process.returncode == 143
            assert "the state is saved" in errors
            assert "Go on with the same command" in errors
            assert "Traceback" not in errors
    with start(family, out) as process:
        started_from.append(wait_for_block(process, SMALL[family].steps // 5))
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    for block, start_block in zip((0, *dict(KILLS[family])), started_from, strict=True):
        assert start_block >= block, "nothing that was saved is done again"
    assert content(out) == uninterrupted(family)
    assert [p.name for p in tmp_path.iterdir()] == ["d"], "everything temporary is swept"


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    """A folder with a collection that was stopped after a few blocks, with savepoints."""
    folder = tmp_path_factory.mktemp("stopped")
    real = collect.Meter.update

    def update(meter, done, note=""):
        real(meter, done, note)
        if done == 5:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "SECONDS_BETWEEN_SAVES", 0.0)
        patch.setattr(collect, "SHARE_OF_TIME_FOR_SAVING", 1e9)
        patch.setattr(collect.Meter, "update", update)
        with pytest.raises(KeyboardInterrupt):
            again(folder / "d")
    return folder


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """The dataset's place in a copy of that folder."""
    shutil.copytree(stopped_once, tmp_path / "copy")
    return tmp_path / "copy" / "d"


def again(out: Path, **changes):
    config = dataclasses.replace(SMALL["point-robot"], **changes)
    return api.collect("point-robot", out, config=config, progress="none")


def test_a_stop_in_the_last_part_stops_the_caller_and_the_dataset_is_complete(
    tmp_path, uninterrupted, monkeypatch
):
    whole, real = uninterrupted("point-robot"), collect._Collection.finish

    def finish(collection, references):
        signal.raise_signal(signal.SIGTERM)
        real(collection, references)

    monkeypatch.setattr(collect._Collection, "finish", finish)
    with pytest.raises(Interrupted, match="d is complete") as stopped:
        again(tmp_path / "d")
    assert stopped.value.exit_code == 143
    assert content(tmp_path / "d") == whole
    assert [p.name for p in tmp_path.iterdir()] == ["d"], "everything temporary is swept"


def test_other_settings_are_refused_and_lose_nothing(stopped, uninterrupted):
    with pytest.raises(DataError, match=r"steps is 60 there and 80 here.*remove that folder"):
        again(stopped, steps=80)
    with pytest.MonkeyPatch.context() as newer:
        newer.setattr("ertrl.collection.savepoints.FORMAT", 4)
        with pytest.raises(DataError, match="format is 3 there and 4 here"):
            again(stopped)
    with pytest.raises(DataError, match="family is 'point-robot' there"):
        api.collect("point-robot-wind", stopped, config=SMALL["point-robot"], progress="none")
    again(stopped)
    assert content(stopped) == uninterrupted("point-robot")


def test_a_family_that_has_changed_since_is_refused(stopped, uninterrupted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PointRobot, "parameters", 2 * PointRobot.parameters)
        with pytest.raises(
            DataError, match=r"goal_x of task 0 was 1 and is 2 .*Use the family as it was"
        ):
            again(stopped)
    file = unfinished_folder(stopped) / "collection.json"
    earlier = store.read_json(file)
    del earlier["record"]
    store.write_json(file, earlier)
    again(stopped)  # begun by a version that did not record it
    assert content(stopped) == uninterrupted("point-robot")


def test_what_is_unfinished_is_said_to_be(stopped, capsys):
    words = [["train", "focal", "--data", str(stopped)]]
    for asked in (*words, ["verify", str(stopped)], ["data", "info", f"{stopped}/"]):
        assert main(asked) == 1
        told = f"{stopped} is not there yet: its collection is unfinished"
        assert told in (error := capsys.readouterr().err)
        assert "Give the same `ertrl collect` again" in error


def test_a_folder_in_the_datasets_place_costs_nothing(stopped, uninterrupted):
    stopped.mkdir()
    (stopped / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="exists and holds no dataset"):
        again(stopped)
    (stopped / "notes.txt").unlink()
    again(stopped)  # an empty folder is as good as none
    assert content(stopped) == uninterrupted("point-robot")


def test_other_threads_are_warned_of(stopped, monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    with pytest.warns(UserWarning, match="threads is 1 there and 2 here"):
        again(stopped)


def test_stale_temporary_files_are_swept(stopped, uninterrupted):
    folder = unfinished_folder(stopped)
    (folder / ".00000005.part0.123.tmp").write_bytes(b"half")
    (stopped.with_name(".d.partial") / ".manifest.json.123.tmp").write_bytes(b"half")
    again(stopped)
    assert content(stopped) == uninterrupted("point-robot")
    assert not list(stopped.rglob("*.tmp"))
    # Killed between completing the dataset and sweeping: the next call sweeps.
    folder.mkdir()
    stopped.with_name(".d.lock").mkdir()
    again(stopped)
    assert [p.name for p in stopped.parent.iterdir()] == ["d"]


@pytest.mark.parametrize(
    "victim",
    [
        ".d.collecting/00000005.part0",
        ".d.collecting/00000005.loop",
        ".d.collecting/00000005.json",
        ".d.collecting/collection.json",
        ".d.collecting/replay/action.npy",
        ".d.partial/tasks/003/rewards.npy",
    ],
)
def test_damage_is_noticed(stopped, victim):
    file = stopped.parent / victim
    data = bytearray(file.read_bytes())
    place = 140 if file.suffix == ".npy" else len(data) // 2
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptFileError):
        again(stopped)


def test_a_folder_in_use_is_refused(stopped):
    with (
        store.exclusive(unfinished_folder(stopped)),
        pytest.raises(RunError, match="in use by process"),
    ):
        again(stopped)


def test_killed_before_the_first_savepoint_starts_anew(tmp_path, uninterrupted):
    folder = unfinished_folder(tmp_path / "d")
    (folder / "replay").mkdir(parents=True)
    (folder / "replay" / "action.npy").write_bytes(b"half a header")
    (folder / "00000005.part0").write_bytes(b"no description, so it does not count")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(tmp_path / "d")
    assert content(tmp_path / "d") == uninterrupted("point-robot")


def test_killed_while_sealing_goes_on(tmp_path, monkeypatch):
    """Files that lost their empty rows already are sealed again, to the same content."""
    family = ToyFamily([4, 4], 4)
    episode = Episodes(
        np.ones((1, 5, 3), np.float32),
        np.ones((1, 4, 2), np.float32),
        np.ones((1, 4), np.float32),
        np.array([4], np.int32),
        *(np.array([flag]) for flag in (False, True, False)),
    )
    reference = {"expert": 1.0, "random": 0.0, "zero": 0.0}
    records = {task: TaskRecord("train", (4.0,), reference) for task in range(2)}

    def filled_writer(path):
        writer = DatasetWriter(path, Description.of(family), {0: 3, 1: 3})
        for task in range(2):
            writer.add(task, episode, 0)
        return writer

    filled_writer(tmp_path / "whole").seal(records, {})
    writer = filled_writer(tmp_path / "d")
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            writer.seal(records, {})
    writer.pause()
    about = Description.of(family)
    DatasetWriter(tmp_path / "d", about, {0: 3, 1: 3}, filled=[1, 1]).seal(records, {})
    assert Dataset(tmp_path / "d").fingerprint == Dataset(tmp_path / "whole").fingerprint


def test_row_seal_notices_a_changed_row(tmp_path):
    rows = np.arange(24.0).reshape(2, 4, 3)
    seal = RowSeal(lambda task: [rows[task]], 2)
    seal.extend([1, 2])
    sealed = seal.extend([3, 2])
    RowSeal(lambda task: [rows[task]], 2).verify(sealed, tmp_path)
    rows[0, 3] += 1  # behind the end: not sealed
    RowSeal(lambda task: [rows[task]], 2).verify(sealed, tmp_path)
    rows[1, 1, 2] += 1
    with pytest.raises(CorruptFileError, match="start anew"):
        RowSeal(lambda task: [rows[task]], 2).verify(sealed, tmp_path)


def test_a_large_state_is_saved_in_portions(tmp_path, monkeypatch):
    config = SMALL["point-robot"]
    states = [sac.init(config, Dims(2, 2), 2, jax.random.key(seed)) for seed in (0, 1)]
    monkeypatch.setattr("ertrl.collection.savepoints.PORTION_BYTES", 3000)
    savepoints = Savepoints(tmp_path, {"family": "point-robot"}, PointRobot())
    savepoints.save(Savepoint(7, {"block": np.array(7)}, {}), states[0])
    read = savepoints.load_state(7, states[1])
    assert len(sorted(tmp_path.glob("00000007.part*"))) > 3
    assert eqx.tree_equal(read, states[0])
    assert all(x.is_deleted() for x in jax.tree.leaves(states[1])), "never all of it twice"
