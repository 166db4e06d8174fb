"""Files are whole or not there, and damage is noticed."""

import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from ertrl import store
from ertrl.errors import CorruptFileError, RunError


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
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
    assert (tmp_path / ".lock").read_text() == "", "a process that goes on no longer holds it"
