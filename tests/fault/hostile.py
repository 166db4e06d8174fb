"""Files that are whole and sealed, but say what cannot be: no command may break on them."""

import copy
import io
import json
import shutil
import sys
import traceback
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ertrl import store
from ertrl.cli import main
from ertrl.reporting import compose
from ertrl.reporting.read import dataset as report_dataset
from ertrl.reporting.read.runs import read_runs
from fault.progress import shown
from fault.small import TRAIN_WORDS, small_world

NASTY = [
    None, True, 0, -1, 2, 10**9, 10**20, -(10**20), 0.5, -0.0, 1e308, -1e308, 1e-308,
    "", "x", "../../../etc/passwd", "/etc/passwd", "\x00", "$\\frac$", "<script>", "[red]", "[/]",
    "é" * 300, "nan", "10", [], [[]], [None], [1, "x"], {}, {"": 0}, {"self": 1}, {"name": "x"},
]  # fmt: skip
"""What stands where something else was expected."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def places(content: Any, path: tuple = ()) -> list[tuple]:
    """Every node of a tree."""
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    found = [path] if path else []
    for key, value in inner:
        found.append((*path, key))
        if isinstance(value, (dict, list)) and value:
            found += places(value, (*path, key))
    return found


def spoil(content: dict[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """Change one place of a tree: remove it, replace it, double it or take another's value."""
    content = copy.deepcopy(content)
    every = places(content)
    # Few of the places are not numbers in long lists; they are the ones that matter.
    short = [p for p in every if sum(isinstance(k, int) for k in p) <= 1] or every
    pick = short if draw.random() < 0.8 else every
    path = pick[draw.integers(len(pick))]
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    key, kind = path[-1], draw.integers(6)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        other: Any = content
        for step in every[draw.integers(len(every))]:
            other = other[step]
        parent[key] = copy.deepcopy(other)
    elif kind == 2 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif kind == 2:
        parent[str(key) + "2"] = parent[key]
    elif kind == 3 and draw.random() < 0.2:
        parent[key] = deep(int(draw.choice([30, 100, 400])))
    else:
        parent[key] = NASTY[draw.integers(len(NASTY))]
    return content


def called(words: list[str]) -> tuple[int, str]:
    """Run a command in this process; returns its exit code, and its traceback if it has one."""
    said, code = io.StringIO(), 1
    try:
        with redirect_stdout(said), redirect_stderr(said):
            code = main(words)
    except SystemExit:
        pass
    except Exception:
        return code, traceback.format_exc()
    return code, said.getvalue() if "Traceback" in said.getvalue() else ""


def spoilt_array(path: Path, draw: np.random.Generator) -> str:
    """Another valid array in a file's place; returns its checksum."""
    array = np.load(path)
    kind = draw.integers(7)
    if kind == 0:
        array = array[:, :-1] if array.ndim > 1 else array[:-1]
    elif kind == 1:
        array = array.astype(draw.choice(["float64", "int8", "complex64", "U3"]))
    elif kind == 2 and array.dtype.kind == "f":
        array = array.copy()
        array.flat[draw.integers(array.size)] = draw.choice([np.nan, np.inf, -np.inf, 3e38])
    elif kind == 3 and array.dtype.kind == "i":
        array = array.copy()
        array.flat[draw.integers(array.size)] = draw.choice([-1, 0, 2**31 - 1, -(2**31)])
    elif kind == 4:
        array = np.asfortranarray(array)
    elif kind == 5:
        array = array[:0]
    if kind == 6:
        header = draw.choice(["(10**9, 10**9)", "((" * 40, "(-1,)", "'x'", "(1.5,)"])
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {header}, }}".ljust(118) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    else:
        np.save(path, array, allow_pickle=False)
    return store.sha256_file(path)


def spoilt_weights(path: Path, draw: np.random.Generator) -> None:
    """Other arrays in a checkpoint's place, with the right checksum in its description."""
    arrays = store.arrays_from_bytes(path.read_bytes(), path)
    names = sorted(arrays)
    name, kind = names[draw.integers(len(names))], draw.integers(5)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name + "x"] = arrays[name]
    elif kind == 2:
        arrays[name] = np.zeros((*arrays[name].shape, 2), arrays[name].dtype)
    elif kind == 3:
        arrays[name] = arrays[name].astype(np.float64)
    elif arrays[name].dtype.kind == "f":
        arrays[name] = np.full_like(arrays[name], draw.choice([np.nan, np.inf, 3e38]))
    path.write_bytes(store.arrays_to_bytes(arrays))
    about = store.read_json(path.with_suffix(".json"))
    store.write_json(
        path.with_suffix(".json"), {**about, "weights_sha256": store.sha256_file(path)}
    )


def spoil_one(world: Path, kind: str, draw: np.random.Generator) -> list[list[str]]:
    """Make one hostile file in a world; returns the commands to try on it."""
    (run,) = (world / "runs").iterdir()
    data = world / "data"
    on_data = [["verify", str(data)], ["data", "info", str(data)], ["data", "card", str(data)]]
    train = ["train", "focal", "--data", str(data), "--out", str(world / "new"), *TRAIN_WORDS]
    on_run = [["verify", str(run)], ["watch", str(run), "--json"]]
    resume = ["train", str(run), "--progress", "none"]
    evaluate = ["evaluate", str(run), "--protocol", "idaq"]
    report = ["report", str(run), "--out", str(world / "report")]
    if kind == "manifest":
        file = data / "manifest.json"
        store.write_json(file, spoil(store.read_json(file), draw))
        return [*on_data, train]
    if kind == "array":
        files = sorted(data.rglob("*.npy"))
        path = files[draw.integers(len(files))]
        digest, manifest = spoilt_array(path, draw), store.read_json(data / "manifest.json")
        for entry in manifest["tasks"]:
            for about in entry["files"].values():
                if data / about["path"] == path:
                    about["sha256"] = digest
        store.write_json(data / "manifest.json", manifest)
        return [*on_data, train]
    if kind == "agent":
        file = world / "agent" / "agent.json"
        store.write_json(file, spoil(store.read_json(file), draw))
        return [["verify", str(file.parent)]]
    if kind == "weights":
        files = sorted((run / "checkpoints").glob("*.safetensors"))
        spoilt_weights(files[-1], draw)
        return [*on_run, resume, evaluate]
    if kind == "metrics":
        path = run / "metrics.jsonl"
        lines = path.read_text().splitlines()
        where = draw.integers(len(lines))
        lines[where] = json.dumps(spoil(json.loads(lines[where]), draw))
        path.write_text("\n".join(lines) + "\n")
        data_bytes = path.read_bytes()
        seals = {"metrics_bytes": len(data_bytes), "metrics_sha256": store.sha256(data_bytes)}
        file = sorted((run / "checkpoints").glob("*.json"))[-1]
        store.write_json(file, store.read_json(file) | seals)
        return [*on_run, resume]
    files = {
        "config": [run / "config.json"],
        "contents": [run / "contents.json"],
        "checkpoint": sorted((run / "checkpoints").glob("*.json")),
        "evaluation": sorted((run / "evaluations").glob("*.json")),
        "probes": sorted((run / "probes").glob("*.json")),
    }[kind]
    file = files[draw.integers(len(files))]
    store.write_json(file, spoil(store.read_json(file), draw))
    more = {"config": [resume, evaluate, report], "evaluation": [report], "probes": [report]}
    return [*on_run, *more.get(kind, [resume, evaluate])]


KINDS = {
    "manifest": 0.2, "array": 0.1, "config": 0.2, "contents": 0.05, "checkpoint": 0.05,
    "weights": 0.05, "metrics": 0.05, "evaluation": 0.15, "probes": 0.1, "agent": 0.05,
}  # fmt: skip
"""Shares of the hostile files."""


def attack(
    world: Path, folder: Path, count: int, seed: int = 0, reports: int = 0
) -> dict[str, Any]:
    """Try commands on hostile files; every one ends with a message or a result.

    Of the files that pass for good, so many are made a whole report of; the others are read for it.
    """
    draw, calls, refused, found = np.random.default_rng(seed), 0, 0, []
    kinds: Counter[str] = Counter()
    place = folder / "hostile"
    with small_world(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "read_material", no_material)
        for number in shown("hostile files", range(count)):
            kind = str(draw.choice(list(KINDS), p=list(KINDS.values())))
            kinds[kind] += 1
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(world, place)
            for words in spoil_one(place, kind, draw):
                if words[0] == "report" and _reads(words[1]):
                    if not reports:
                        continue
                    reports -= 1
                calls += 1
                code, trouble = called(words)
                refused += words[0] == "verify" and code == 1
                if trouble:
                    said = " ".join(words[:2])
                    found.append(f"{kind} {number}: ertrl {said}\n{trouble}")
                    print(found[-1], file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    return {
        "files": count,
        "kinds": dict(sorted(kinds.items())),
        "calls": calls,
        "refused_by_verify": refused,
        "tracebacks": len(found),
    }


def _reads(run: str) -> bool:
    """Whether a report would take this run."""
    try:
        read_runs(run)
    except Exception:
        return False
    return True


def no_material(results: Any, folders: Any) -> list[Any]:
    """As if the datasets had moved."""
    found = []
    for family in results.families:
        axis = report_dataset.TaskAxis("task", np.asarray(family.tasks, np.float64))
        found.append(report_dataset.Material(axis))
    return found
