"""What a collection takes is said beforehand, and what does not fit is refused."""

import dataclasses
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import TINY_COLLECT
from ertrl import api
from ertrl.cli import main
from ertrl.collection import cost
from ertrl.collection.buffer import Replay
from ertrl.collection.collect import collect
from ertrl.collection.cost import describe_estimate, describe_needs, estimate, needs
from ertrl.collection.savepoints import Savepoints
from ertrl.envs import make_family
from ertrl.errors import DataError
from ertrl.profiles import collect_config
from ertrl.text import readable_bytes


def test_disk_needs_are_what_files_take(tiny_dataset, tmp_path, monkeypatch):
    wanted = needs(make_family("point-robot"), TINY_COLLECT)["disk"]
    header = 128
    files = list(tiny_dataset.path.rglob("*.npy"))
    assert wanted["dataset"] == sum(p.stat().st_size - header for p in files)
    taken = {}

    def remember(savepoints):
        sizes = {p: p.stat().st_size for p in savepoints.folder.rglob("*") if p.is_file()}
        taken["replay"] = sum(v for p, v in sizes.items() if p.suffix == ".npy")
        taken["weights"] = sum(v for p, v in sizes.items() if p.suffix.startswith(".part"))

    real = Savepoints.save

    def save(savepoints, *arguments):
        real(savepoints, *arguments)
        remember(savepoints)

    monkeypatch.setattr(Savepoints, "save", save)
    api.collect("point-robot", tmp_path / "d", config=TINY_COLLECT, progress="none")
    assert taken["replay"] == pytest.approx(wanted["replay (while collecting)"], rel=0.15)
    # Old and new side by side while saving, and the headers of small arrays.
    assert taken["weights"] * 2 == pytest.approx(wanted["savepoints (while collecting)"], rel=0.15)


def test_a_reward_of_ones_own_keeps_two_observations_more(tmp_path):
    family = make_family("pendulum-physics")
    family._reward = lambda before, action, after, task: after[..., 0]
    simulation = family.simulate(family.parameters[:1])
    replay, action = Replay(family, TINY_COLLECT, tmp_path), np.zeros((1, 1))
    replay.add(np.zeros(1, int), simulation.reset([0]), action, simulation.step(action))
    header = 128
    taken = sum(p.stat().st_size - header for p in tmp_path.iterdir())
    assert needs(family, TINY_COLLECT)["disk"]["replay (while collecting)"] == taken


def test_too_small_a_disk_is_refused_before_anything_is_simulated(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=10**7))
    with pytest.raises(DataError, match=r"not enough room.*only 10 MB of disk are free"):
        api.collect("point-robot", tmp_path / "d", config=TINY_COLLECT, progress="none")
    assert not (tmp_path / "d").exists()


def test_needs_are_printed_before_a_collection_starts(tmp_path, capsys):
    config = dataclasses.replace(TINY_COLLECT, steps=20, checkpoints=1)
    collect(make_family("point-robot"), config, tmp_path / "d")
    lines = capsys.readouterr().err.splitlines()
    assert describe_needs(needs(make_family("point-robot"), config)) in lines[0]
    assert lines[0].endswith(". `ertrl collect --dry-run` tells how long it takes")
    assert "return train -" in lines[-1]
    assert "test-ood -" in lines[-1]


def test_the_papers_collections_are_known_to_be_large():
    humanoid = needs(make_family("humanoid-dir"), collect_config("paper", "humanoid-dir"))
    assert readable_bytes(humanoid["disk"]["dataset"]) == "11.4 GB"
    assert humanoid["disk"]["replay (while collecting)"] > 100e9
    assert sum(humanoid["memory"].values()) < 8 * 2**30


def test_a_dry_run_measures_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--hidden", "16", "--batch-size", "16", "--dry-run", "--json"]
    assert main(["collect", "point-robot", *words]) == 0
    value = json.loads(capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []
    assert value["seconds"] == pytest.approx(sum(value["seconds_by_part"].values()))
    assert all(seconds > 0 for seconds in value["seconds_by_part"].values())
    assert value["fits"] == {"memory": True, "disk": True}


def test_a_dry_run_measures_blocks_of_any_length(tmp_path):
    config = dataclasses.replace(
        TINY_COLLECT,
        policy="independent",
        steps=300,
        random_steps=0,
        steps_per_block=150,
        hidden=(8,),
        batch_size=8,
    )
    value = estimate(make_family("point-robot"), config, tmp_path, seconds=0.05)
    assert value["seconds_by_part"]["update"] > 0
    assert "ms per update of a policy" in describe_estimate(value)


def test_side_by_side_the_shorter_part_is_free(monkeypatch):
    parts = {"compile": 1.0, "simulate": 20.0, "update": 30.0, "record": 4.0}
    config = dataclasses.replace(TINY_COLLECT, side_by_side=True)
    for cores, seconds in ((1, 55), (2, 35)):
        monkeypatch.setattr(cost, "available_cores", lambda cores=cores: cores)
        monkeypatch.setattr(cost, "threads", lambda: 1)
        assert cost.wall_clock(parts, config) == seconds
        assert cost.wall_clock(parts, TINY_COLLECT) == 55


def test_twice_the_steps_take_twice_the_time(monkeypatch):
    """The arithmetic, with measurements replaced by fixed times."""
    monkeypatch.setattr(cost, "_time", lambda call, seconds: (0.0, 0.5))
    monkeypatch.setattr(cost, "recording_seconds", lambda trainer, per_task: 3.0)
    parts = [
        api.estimate_collection(
            "point-robot", config=dataclasses.replace(TINY_COLLECT, steps=steps)
        )["seconds_by_part"]
        for steps in (160, 320)
    ]
    # 0.5 s per control step (20 of them random) and per block of 20 of them.
    assert [p["simulate"] for p in parts] == [90.0, 170.0]
    assert [p["update"] for p in parts] == [4.0, 8.0]
    assert [p["record"] for p in parts] == [6.0, 6.0]


def test_the_beginning_of_an_episode_is_counted_once(monkeypatch):
    """Of 200 steps; environments like Meta-World's take longer for a reset than for ten steps."""
    now = [0.0]

    class Slow:
        family = SimpleNamespace(horizon=200)

        def episodes(self, per_task, *_, **__):
            now[0] += per_task * (5 + 0.1 * self.family.horizon)

    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    assert cost.recording_seconds(Slow(), 3) == pytest.approx(3 * (5 + 0.1 * 200))
