"""Behaviour data: SAC learns, data goes from poor to expert, nothing broken gets in."""

import dataclasses

import numpy as np
import pytest

from conftest import TINY_COLLECT
from ertrl.collection import Collector, collect
from ertrl.collection.replay import Replay
from ertrl.config import CollectConfig
from ertrl.data import Dataset
from ertrl.envs import Step, make_family
from ertrl.errors import ConfigError, DataError


def test_data_goes_from_poor_to_expert(tiny_dataset):
    for task in tiny_dataset.tasks.values():
        assert set(task.checkpoints) == {0, 1}
    returns = [
        np.mean([t.returns[t.checkpoints == c].mean() for t in tiny_dataset.tasks.values()])
        for c in (0, 1)
    ]
    assert returns[1] > returns[0] + 3
    reference = [t.reference for t in tiny_dataset.tasks.values()]
    assert np.mean([r["expert"] for r in reference]) > np.mean([r["random"] for r in reference]) + 5
    assert np.allclose([r["zero"] for r in reference], -20), "idle at distance 1 for 20 steps"


def test_collection_is_deterministic(tiny_dataset, tmp_path):
    again = collect(make_family("point-robot"), TINY_COLLECT, tmp_path / "again", "none")
    assert again.fingerprint == tiny_dataset.fingerprint


@pytest.mark.parametrize("policy", ["conditioned", "independent"])
@pytest.mark.parametrize("family", ["point-robot", "point-robot-wind"])
def test_sac_learns_every_task(family, policy):
    config = CollectConfig(
        policy=policy,
        hidden=(32, 32),
        learning_rate=3e-3,
        batch_size=256 if policy == "conditioned" else 32,
        discount=0.9,
        tau=0.02,
        steps=320,
        checkpoints=1,
    )
    collector = Collector(make_family(family), config)
    for _ in collector.train():
        pass
    reward = collector.episodes(1, "check", 0, stochastic=False).reward.sum(axis=1)
    assert reward.mean() > -9, "random is about -20, the optimum about -4.5"
    assert reward.min() > -16


def test_warmup_raises_the_step_size_from_zero():
    config = dataclasses.replace(TINY_COLLECT, steps_per_block=1, updates_per_step=1, warmup=1.0)
    collector = Collector(make_family("point-robot"), config)
    moved, last = [], np.asarray(collector.state.actor.net.weights[-1])
    for _, _ in zip(range(2), collector.train(), strict=False):
        now = np.asarray(collector.state.actor.net.weights[-1])
        moved.append(np.abs(now - last).max())
        last = now
    # Adam's first steps are as long as the step size.
    second = config.learning_rate / config.steps
    np.testing.assert_allclose(moved, [0, second], rtol=0.05, atol=1e-9)


class TwoTasks:
    """Just enough of a family for a replay: reward = outcome x parameter."""

    n_tasks, observation_dim, action_dim, varies = 2, 1, 1, "reward"
    parameters = np.array([[1.0], [10.0]])

    def reward(self, outcome, action, parameters):
        return (outcome * parameters)[..., 0]


def test_replay_relabels_rewards_and_leaves_diverged_rows_out():
    replay = Replay(TwoTasks(), capacity_per_task=4)
    task = np.array([0, 0, 1, 1])
    outcome = np.array([[1.0], [2.0], [3.0], [99.0]])
    diverged = np.array([False, False, False, True])
    step = Step(outcome.astype(np.float32), outcome, np.zeros(4, bool), diverged)
    replay.add(task, outcome, np.zeros((4, 1)), step)
    own, _ = replay.own(seed=0, block=0, shape=(50, 8))
    assert set(own.reward[:, 0].ravel()) == {1.0, 2.0}
    assert set(own.reward[:, 1].ravel()) == {30.0}, "the diverged row is gone"
    batch, rewarded_by = replay.relabelled(seed=0, block=0, shape=(200, 8), fraction=0.5)
    assert set(batch.reward[:, :4].ravel()) == {1.0, 2.0, 3.0, 10.0, 20.0, 30.0}
    assert set(batch.reward[:, 4:].ravel()) == {1.0, 2.0, 30.0}, "the other half keeps its task"
    expected = batch.observation[..., 0] * TwoTasks.parameters[rewarded_by, 0]
    np.testing.assert_allclose(batch.reward, expected)


def test_dynamics_are_never_relabelled():
    family = TwoTasks()
    family.varies = "dynamics"
    replay = Replay(family, capacity_per_task=1)
    outcome = np.array([[1.0], [3.0]])
    step = Step(outcome, outcome, np.zeros(2, bool), np.zeros(2, bool))
    replay.add(np.array([0, 1]), outcome, np.zeros((2, 1)), step)
    batch, _ = replay.relabelled(seed=0, block=0, shape=(100, 8), fraction=1.0)
    assert set(batch.reward.ravel()) == {1.0, 30.0}


def test_an_existing_dataset_is_not_overwritten(tiny_dataset):
    before = tiny_dataset.fingerprint
    with pytest.raises(DataError, match="already exists"):
        collect(make_family("point-robot"), TINY_COLLECT, tiny_dataset.path, "none")
    assert Dataset(tiny_dataset.path).fingerprint == before


def test_a_killed_collection_leaves_no_dataset(tmp_path, monkeypatch):
    from ertrl.data import DatasetWriter

    def die(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(DatasetWriter, "seal", die)
    path = tmp_path / "d"
    with pytest.raises(KeyboardInterrupt):
        collect(make_family("point-robot"), TINY_COLLECT, path, "none")
    assert not path.exists()
    monkeypatch.undo()
    collect(make_family("point-robot"), TINY_COLLECT, path, "none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 30}, "multiples of steps_per_block"),
        ({"checkpoints": 99}, "number of blocks"),
        ({"warmup": 1.5}, "share of training"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(TINY_COLLECT, **change).validate()


def test_a_full_disk_is_an_error_before_anything_is_simulated(tmp_path, monkeypatch):
    import os

    def full(descriptor, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        collect(make_family("point-robot"), TINY_COLLECT, tmp_path / "d", "none")
    assert not (tmp_path / "d").exists()


def test_two_collectors_of_one_place_are_refused(tmp_path):
    from ertrl.data import DatasetWriter
    from ertrl.errors import RunError

    family = make_family("point-robot")
    first = DatasetWriter(tmp_path / "d", family, 1)
    with pytest.raises(RunError, match="in use by process"):
        DatasetWriter(tmp_path / "d", family, 1)
    first.abandon()
    assert list(tmp_path.iterdir()) == []
    DatasetWriter(tmp_path / "d", family, 1).abandon()
