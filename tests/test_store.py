"""Files are whole or not there, and damage is noticed."""

import fcntl
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from ertrl import store
from ertrl.errors import CorruptFileError, DataError, RunError


def test_sealed_json_round_trip_keeps_order(tmp_path):
    content = {"b": [1, 2.5, None], "a": {"x": "ä", "w": True}}
    store.write_json(tmp_path / "f.json", content)
    read = store.read_json(tmp_path / "f.json")
    assert read == content
    assert list(read) == ["b", "a"]


def test_every_changed_byte_of_sealed_json_is_noticed(tmp_path):
    path = tmp_path / "f.json"
    store.write_json(path, {"a": 1, "list": [1, 2], "text": "hello"})
    whole = path.read_bytes()
    for i in range(len(whole)):
        for flip in (1, 32, 128):
            path.write_bytes(whole[:i] + bytes([whole[i] ^ flip]) + whole[i + 1 :])
            with pytest.raises(CorruptFileError, match=r"f\.json"):
                store.read_json(path)
    for damaged in (whole[:-1], whole + b" ", b"", b"{}", b"[]", b"null"):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError):
            store.read_json(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(CorruptFileError, match=r"nothing\.json is missing"):
        store.read_json(tmp_path / "nothing.json")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "f"
    store.write_bytes(path, b"old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        store.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path], "the temporary file is gone"


def test_trees_round_trip_and_refuse_other_shapes(tmp_path):
    tree = {"w": jnp.arange(6.0).reshape(2, 3), "n": (jnp.int32(3),), "name": "static"}
    blob = store.tree_to_bytes(tree)
    back = store.tree_from_bytes(blob, tree, tmp_path)
    assert back["name"] == "static"
    assert np.array_equal(back["w"], tree["w"])
    assert back["n"][0].dtype == jnp.int32
    with pytest.raises(RunError, match=r"shape \(2, 3\)"):
        store.tree_from_bytes(blob, {**tree, "w": jnp.zeros((3, 2))}, tmp_path)
    with pytest.raises(RunError, match="arrays differ"):
        store.tree_from_bytes(blob, {"w": tree["w"]}, tmp_path)
    with pytest.raises(CorruptFileError, match="not a safetensors file"):
        store.tree_from_bytes(b"garbage", tree, tmp_path)


def test_a_directory_in_use_is_refused_and_freed_by_death(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from ertrl import store\n"
        "with store.exclusive(Path(sys.argv[1])):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with (
        pytest.raises(RunError, match=f"in use by process {holder.pid}"),
        store.exclusive(tmp_path),
    ):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with store.exclusive(tmp_path):
        assert (tmp_path / ".lock").read_text().split()[0] == str(os.getpid())
    assert (tmp_path / ".lock").read_text() == "", "a process that goes on no longer holds it"


def test_a_number_that_another_process_got_holds_nothing(tmp_path):
    lock = tmp_path / ".lock"
    with store.exclusive(tmp_path):
        assert store.in_use(tmp_path)
        written = lock.read_text()
    assert not store.in_use(tmp_path)
    process, began, host = written.split()
    assert (process, host) == (str(os.getpid()), store.HOST)
    lock.write_text(f"{process} {began} {host}")
    assert store.in_use(tmp_path)
    for stale in (
        f"{process} {int(began) - 1} {host}",
        f"99999999 {began} {host}",
        "99999999",
        "x",
    ):
        lock.write_text(stale)
        assert not store.in_use(tmp_path), stale


def test_of_another_host_the_lock_itself_says_who_holds_it(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_text("123 456 elsewhere")
    assert not store.in_use(tmp_path), "it was killed"
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert store.in_use(tmp_path)
        with (
            pytest.raises(RunError, match=r"in use by process 123 on elsewhere\. Wait"),
            store.exclusive(tmp_path),
        ):
            pass


def test_a_place_that_was_taken_just_before_the_lock_is_refused(tmp_path, monkeypatch):
    exclusive = store.exclusive

    def late(lock):
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "manifest.json").touch()
        return exclusive(lock)

    monkeypatch.setattr(store, "exclusive", late)
    with pytest.raises(DataError, match="data already exists"), store.claim(tmp_path / "data"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["data"], "the lock is gone"


def test_a_lock_that_its_holder_removes_just_then_is_not_held_by_two(tmp_path, monkeypatch):
    """Who waits at a file that is gone would hold nothing, beside the next one who comes."""
    lock, flock = tmp_path / ".lock", fcntl.flock
    lock.touch()

    def late(file, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        lock.unlink()  # opened before, locked after
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with store.exclusive(tmp_path), pytest.raises(RunError, match="in use by process"):
        store.exclusive(tmp_path).__enter__()
