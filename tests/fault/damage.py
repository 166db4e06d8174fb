"""Flip, cut, delete, swap, append or duplicate any file: `verify`, or the next start, names one."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ertrl import api
from ertrl.data.card import CARD, PICTURE
from ertrl.errors import ErtrlError
from fault.inject import count_operations, injecting, once_at
from fault.progress import shown
from fault.small import do_collect, small_world

UNCHECKED = {".lock", CARD, PICTURE}
KINDS = ("flip", "cut", "delete", "swap", "append", "duplicate")


def files_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in UNCHECKED)


def beside(path: Path) -> Path:
    """A place of the same kind that is free: the next number, of files or of folders."""
    digits = path.stem if path.stem.isdecimal() else path.parent.name
    if not digits.isdecimal():
        return path
    number = f"{int(digits) + 1000:0{len(digits)}d}"
    if path.stem.isdecimal():
        return path.with_name(number + path.suffix)
    return path.parent.with_name(number) / path.name


def mutate(files: list[Path], kind: str, draw: np.random.Generator) -> Path:
    """Damage one file and say which."""
    path = files[draw.integers(len(files))]
    data = bytearray(path.read_bytes())
    if kind == "flip":
        data[draw.integers(len(data))] ^= 1 << draw.integers(8)
    elif kind == "cut":
        data = data[: draw.integers(len(data))]
    elif kind == "append":
        data += path.read_bytes() if draw.random() < 0.5 else bytes([draw.integers(256)])
    elif kind == "delete":
        path.unlink()
        return path
    elif kind == "duplicate" and beside(path) != path:
        beside(path).parent.mkdir(exist_ok=True)
        shutil.copy(path, beside(path))
        return path
    else:
        other = files[draw.integers(len(files))].read_bytes()
        data = bytearray(other) if other != bytes(data) else data + data
    path.write_bytes(bytes(data))
    return path


def attack(folder: Path, work: Path, count: int, seed: int = 0) -> dict[str, int]:
    """Mutations of a dataset or run, by kind; all of them are named."""
    draw, named = np.random.default_rng(seed), Counter()
    for number in shown(f"damage to {folder.name}", range(count)):
        copy = work / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        kind = KINDS[number % len(KINDS)]
        path = mutate(files_of(copy), kind, draw)
        told = _error_of(lambda copy=copy: api.verify(copy))
        assert str(copy) in told, f"{kind} of {path} is not named: {told or 'no error'}"
        named[kind] += 1
    return dict(sorted(named.items()))


def attack_savepoint(work: Path, count: int, seed: int = 0) -> dict[str, Any]:
    """Mutations of a collection that was killed: it goes on to the same data, or names a file."""
    draw, named, harmless = np.random.default_rng(seed), 0, 0
    with small_world():
        whole = work / "whole"
        whole.mkdir(parents=True)
        most = count_operations(lambda: do_collect(whole), whole)
        expected = _arrays(whole)
        stopped, again = work / "stopped", work / "again"
        again.mkdir()
        kill = once_at(most * 3 // 4, lambda: shutil.copytree(again, stopped))
        with injecting(again, kill):
            do_collect(again)
        saved = [p for p in files_of(stopped) if p.suffix in (".json", ".loop", ".part0")]
        assert saved
        for _ in shown("damage to a collection", range(count)):
            copy = work / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(stopped, copy)
            files = [copy / p.relative_to(stopped) for p in saved]
            mutate(files, ("flip", "cut", "append", "swap")[draw.integers(4)], draw)
            told = _error_of(lambda copy=copy: do_collect(copy))
            assert str(copy) in told if told else _arrays(copy) == expected, told
            named += bool(told)
            harmless += not told
    return {"mutations": count, "named": named, "same_data": harmless}


def _error_of(work: Callable[[], object]) -> str:
    """What a user is told; nothing if all is well."""
    try:
        work()
    except ErtrlError as error:
        return str(error)
    return ""


def _arrays(folder: Path) -> dict[Path, bytes]:
    return {p.relative_to(folder): p.read_bytes() for p in folder.glob("data/**/*.npy")}
