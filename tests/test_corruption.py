"""Flip, cut, delete or swap any file of a dataset or run: it is noticed, always.

Except for a dataset's card, which is made from the rest and may be edited.
"""

import shutil

import numpy as np
import pytest

from ertrl import api
from ertrl.data import Dataset
from ertrl.data.card import CARD, PICTURE
from ertrl.errors import ErtrlError
from ertrl.training import Run
from toys import write_dataset

MUTATIONS = 100
UNCHECKED = {".lock", CARD, PICTURE}


def mutate(files, draw) -> str:
    """Damage one file in place and say how."""
    path = files[draw.integers(len(files))]
    data = bytearray(path.read_bytes())
    kind = ("flip", "cut", "delete", "append", "swap")[draw.integers(5)]
    if kind == "flip":
        place = draw.integers(len(data))
        data[place] ^= 1 << draw.integers(8)
    elif kind == "cut":
        data = data[: draw.integers(len(data))]
    elif kind == "append":
        data += bytes([draw.integers(256)])
    elif kind == "delete":
        path.unlink()
        return f"deleted {path.name}"
    else:
        other = files[draw.integers(len(files))]
        if other.read_bytes() == bytes(data):
            data[0] ^= 1
        else:
            data = bytearray(other.read_bytes())
    path.write_bytes(bytes(data))
    return f"{kind} {path.name}"


def detected(original, check, pattern, tmp_path, seed) -> None:
    """Every one of the mutations raises an error that names a file."""
    copy = tmp_path / original.name
    shutil.copytree(original, copy)
    files = sorted(p for p in copy.rglob(pattern) if p.is_file() and p.name not in UNCHECKED)
    draw = np.random.default_rng(seed)
    for _ in range(MUTATIONS):
        before = {p: p.read_bytes() for p in files}
        what = mutate(files, draw)
        with pytest.raises(ErtrlError) as caught:
            check(copy)
        assert str(copy) in str(caught.value), what
        for path, data in before.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
    check(copy)


def test_damage_to_a_dataset_is_noticed(tmp_path):
    dataset = write_dataset(tmp_path / "toy", tasks=3)
    detected(dataset.path, Dataset, "*", tmp_path / "copies", seed=1)


def test_damage_to_a_run_is_noticed(tiny_run, tmp_path):
    files = {p.suffix for p in tiny_run.path.rglob("*") if p.is_file()}
    assert {".json", ".safetensors"} <= files

    def check(path):
        # A vanished description hides its checkpoint; what must not vanish is the newest.
        run = Run(path)
        assert api.verify(path)["files"] >= 1
        run.load(tiny_run.config.updates)
        run.evaluations.read(tiny_run.config.updates)

    detected(tiny_run.path, check, "*0040*", tmp_path, seed=2)
    detected(tiny_run.path, check, "config.json", tmp_path / "config", seed=3)
