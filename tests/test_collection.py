"""Behaviour data: SAC learns, data goes from poor to expert, nothing broken gets in."""

import dataclasses
import os
import shutil
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conftest import TINY_COLLECT
from ertrl import api, store
from ertrl.collection import sac
from ertrl.collection.buffer import Replay
from ertrl.collection.collect import collect
from ertrl.collection.config import CollectConfig
from ertrl.collection.trainer import PolicyTrainer
from ertrl.config import to_json
from ertrl.data import Dataset, DatasetWriter, Description
from ertrl.envs import Step, families, make_family
from ertrl.envs.families.point_robot import PointRobot
from ertrl.errors import ConfigError, DataError, RunError, SimulationError
from ertrl.profiles import collect_config


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


@pytest.mark.parametrize(
    ("family", "policy"),
    [
        ("point-robot", "conditioned"),
        ("point-robot-wind", "conditioned"),
        ("point-robot", "independent"),
    ],
)
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
        tasks_at_once=40,
    )
    trainer = PolicyTrainer(make_family(family), config)
    for _ in trainer.train():
        pass
    reward = trainer.episodes(1, "check", 0, stochastic=False).reward.sum(axis=1)
    assert reward.mean() > -9, "random is about -20, the optimum about -4.5"
    assert reward.min() > -16


@pytest.mark.parametrize(
    ("change", "shares"),
    [
        ({"warmup": 1.0}, [0, 1 / 4, 1 / 2, 3 / 4]),
        ({"decay": 1.0}, [1, 3 / 4, 1 / 2, 1 / 4]),
        ({"decay": 0.5}, [1, 1, 1, 1 / 2]),
        ({"warmup": 0.5, "decay": 0.5}, [0, 1 / 2, 1, 1 / 2]),
    ],
)
def test_the_step_size_rises_from_zero_or_falls_to_it(change, shares):
    config = dataclasses.replace(
        TINY_COLLECT, steps=4, steps_per_block=1, updates_per_step=1, checkpoints=1, **change
    )
    rates = [sac.learning_rate(config, jnp.asarray(update)) for update in range(len(shares))]
    np.testing.assert_allclose(np.array(rates) / config.learning_rate, shares, rtol=1e-4, atol=1e-6)


def test_the_paper_records_every_50000_steps_from_100000_to_950000():
    config = collect_config("paper", "cheetah-vel")
    config.validate()
    steps = [config.random_steps + b * config.steps_per_block for b in config.recorded_blocks()]
    assert steps == list(range(100_000, 950_001, 50_000))
    assert config.random_steps + config.steps == 1_000_000


def test_without_a_range_checkpoints_go_from_the_first_block_to_the_last():
    config = dataclasses.replace(TINY_COLLECT, checkpoints=3)
    assert config.recorded_blocks() == [1, 4, 8]
    assert dataclasses.replace(config, checkpoints=1).recorded_blocks() == [1]


def test_checkpoints_can_lie_denser_early():
    config = CollectConfig(steps=20_000, checkpoints=18, spacing=3.0)
    blocks = np.array(config.recorded_blocks())
    assert blocks[0] == 1
    assert blocks[-1] == 1000
    assert (np.diff(blocks) >= 1).all(), "two checkpoints never fall together"
    later = np.arange(6, 18)
    np.testing.assert_allclose(blocks[later], 1 + 999 * (later / 17) ** 3, atol=0.5)
    crowded = dataclasses.replace(config, checkpoints=1000)
    assert crowded.recorded_blocks() == list(range(1, 1001))


def test_policies_train_the_same_one_after_the_other_and_side_by_side():
    """Up to the order of sums."""
    states = []
    for size in (1, 4):
        config = dataclasses.replace(
            TINY_COLLECT,
            policy="independent",
            batch_size=16,
            steps=20,
            steps_per_block=2,
            checkpoints=1,
            tasks_at_once=size,
            standardise=True,
            side_by_side=True,
        )
        trainer = PolicyTrainer(make_family("point-robot"), config)
        for _, _ in zip(range(2), trainer.train(), strict=False):
            pass
        states.append(trainer.state)
    fresh = PolicyTrainer(make_family("point-robot"), config).state.actor.net.net.weights[0]
    one, other = (jax.tree.leaves(state) for state in states)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    moved = np.abs(states[0].actor.net.net.weights[0] - fresh).max(axis=(1, 2))
    assert (moved > 1e-3).all(), "every task's network has learned"


SIDE_BY_SIDE = dataclasses.replace(TINY_COLLECT, side_by_side=True)


@pytest.mark.parametrize("slow", ["simulate", "update"])
def test_whether_simulation_or_learning_is_faster_does_not_matter(slow):
    """What one of them takes longer for, the other must not see."""
    states = []
    for delay in (0.0, 0.05):
        trainer = PolicyTrainer(make_family("point-robot"), SIDE_BY_SIDE)
        plain = getattr(trainer, slow)

        def slowly(*args, plain=plain, delay=delay):
            time.sleep(delay)
            plain(*args)

        setattr(trainer, slow, slowly)
        for _, _ in zip(range(3), trainer.train(), strict=False):
            pass
        states.append(jax.tree.leaves(trainer.state) + list(trainer.progress().values()))
    for a, b in zip(*states, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("broken", ["simulate", "update"])
def test_what_goes_wrong_beside_the_other_is_told(broken, monkeypatch):
    trainer = PolicyTrainer(make_family("point-robot"), SIDE_BY_SIDE)
    blocks = trainer.train()
    next(blocks)

    def fails(*args):
        raise SimulationError("it broke")

    monkeypatch.setattr(trainer, broken, fails)
    with pytest.raises(SimulationError, match="it broke"):
        next(blocks)


@pytest.mark.parametrize("ahead", [0, 1])
def test_side_by_side_simulation_is_one_block_ahead(ahead):
    config = dataclasses.replace(TINY_COLLECT, side_by_side=bool(ahead))
    trainer = PolicyTrainer(make_family("point-robot"), config)
    rows = config.simulations_per_task * config.steps_per_block
    simulated = [trainer.replay.count[0] // rows for _ in trainer.train()]
    random_blocks = config.random_steps // config.steps_per_block
    wanted = random_blocks + ahead + np.arange(1, trainer.blocks + 1)
    assert simulated == np.minimum(wanted, random_blocks + trainer.blocks).tolist()


def test_standardised_observations_are_at_a_scale_of_one():
    config = dataclasses.replace(TINY_COLLECT, standardise=True)
    family = make_family("point-robot")
    trainer = PolicyTrainer(family, config)
    rows = np.random.default_rng(0).normal((3.0, -2.0), (0.5, 4.0), (500, 2)).astype(np.float32)
    assert (sac.standardised(trainer.state.seen, rows) == rows).all(), "nothing was seen yet"
    for _ in trainer.train():
        pass
    seen = trainer.state.seen
    updates = config.steps * config.updates_per_step
    assert seen.count == updates * config.batch_size
    inside = np.concatenate(
        [trainer.replay.rows(task)[0][: trainer.replay.count[task]] for task in range(40)]
    )
    scaled = np.asarray(sac.standardised(seen, inside))
    assert np.abs(scaled.mean(axis=0)).max() < 0.3
    assert np.abs(scaled.std(axis=0) - 1).max() < 0.5
    far = np.asarray(sac.standardised(seen, np.full((1, 2), 1e6, np.float32)))
    assert (far == sac.FAR_OUT).all()


def test_tasks_at_once_must_divide_the_tasks():
    config = dataclasses.replace(TINY_COLLECT, policy="independent", tasks_at_once=7)
    with pytest.raises(ConfigError, match="divide the 40 tasks"):
        PolicyTrainer(make_family("point-robot"), config)


def test_the_curve_says_what_it_took(tiny_dataset):
    curve = tiny_dataset.manifest["collector"]["curve"]
    assert [p["updates"] for p in curve] == [40, 320]
    # 40 tasks x 2 simulations, 20 random steps first.
    assert [p["env_steps"] for p in curve] == [80 * (20 + 20), 80 * (20 + 160)]
    assert 0 < curve[0]["seconds"] <= curve[1]["seconds"]
    for checkpoint, point in enumerate(curve):
        for group, tasks in tiny_dataset.groups.items():
            found = [
                t.returns[t.checkpoints == checkpoint].mean() for t in map(tiny_dataset.task, tasks)
            ]
            assert point[group] == pytest.approx(np.mean(found), rel=1e-6)


class TwoTasks:
    """Just enough of a family for a replay: reward = outcome x parameter."""

    n_tasks, observation_dim, action_dim, varies = 2, 1, 1, "reward"
    parameters = np.array([[1.0], [10.0]])

    @property
    def relabels(self):
        return self.varies == "reward"

    def reward(self, outcome, action, parameters):
        return (outcome * parameters)[..., 0]


def replay_of(family, rows, updates, **settings):
    """A replay with room for so many rows that gives batches of 8."""
    shape = {"steps_per_block": updates, "updates_per_step": 1, "batch_size": 8, "random_steps": 0}
    one = {"simulations_per_task": 1, "steps": rows}
    return Replay(family, CollectConfig(**(shape | one | settings)))


def test_replay_relabels_rewards_and_leaves_diverged_rows_out():
    replay = replay_of(TwoTasks(), rows=4, updates=200)
    task = np.array([0, 0, 1, 1])
    outcome = np.array([[1.0], [2.0], [3.0], [99.0]])
    diverged = np.array([False, False, False, True])
    step = Step(outcome.astype(np.float32), outcome, np.zeros(4, bool), diverged)
    replay.add(task, outcome, np.zeros((4, 1)), step)
    replay.show()
    own = replay.own(block=0, tasks=[0, 1])
    alone = replay.own(block=0, tasks=[1])
    np.testing.assert_array_equal(alone.observation[:, 0], own.observation[:, 1])
    assert set(own.reward[:, 0].ravel()) == {1.0, 2.0}
    assert set(own.reward[:, 1].ravel()) == {30.0}, "the diverged row is gone"
    replay.add(
        np.array([0]), np.full((1, 1), 7.0), np.zeros((1, 1)), Step(*(x[:1] for x in step[:4]))
    )
    assert set(replay.own(block=0, tasks=[0]).observation.ravel()) == {1.0, 2.0}, "7 is not shown"
    batch, rewarded_by = replay.relabelled(block=0)
    assert set(batch.reward[:, :4].ravel()) == {1.0, 2.0, 3.0, 10.0, 20.0, 30.0}
    assert set(batch.reward[:, 4:].ravel()) == {1.0, 2.0, 30.0}, "the other half keeps its task"
    expected = batch.observation[..., 0] * TwoTasks.parameters[rewarded_by, 0]
    np.testing.assert_allclose(batch.reward, expected)


def test_a_reward_of_the_wrong_shape_is_explained():
    family = TwoTasks()
    family.name = "two-tasks"
    family.reward = lambda outcome, action, parameters: outcome * parameters
    replay = replay_of(family, rows=1, updates=3)
    ones, no = np.ones((2, 1)), np.zeros(2, bool)
    replay.add(np.array([0, 1]), ones, ones, Step(ones, ones, no, no))
    replay.show()
    message = r"two-tasks: .*must have the shape \(3, 8\), got \(3, 8, 1\); is a \[..., 0\] missing"
    with pytest.raises(ConfigError, match=message):
        replay.own(block=0, tasks=[0])


def test_dynamics_are_never_relabelled():
    family = TwoTasks()
    family.varies = "dynamics"
    replay = replay_of(family, rows=1, updates=100, relabel_fraction=1.0)
    outcome = np.array([[1.0], [3.0]])
    step = Step(outcome, outcome, np.zeros(2, bool), np.zeros(2, bool))
    replay.add(np.array([0, 1]), outcome, np.zeros((2, 1)), step)
    replay.show()
    batch, _ = replay.relabelled(block=0)
    assert set(batch.reward.ravel()) == {1.0, 30.0}


def test_n_step_returns_end_where_the_simulation_does():
    """Two simulations of each task; one is restarted after two steps, one terminates after two."""
    family = TwoTasks()
    replay = replay_of(family, 4, updates=200, n_step=3, simulations_per_task=2, discount=0.5)
    task, state = np.array([0, 0, 1, 1]), np.array([10.0, 20.0, 30.0, 40.0])
    for t in range(4):
        after = state + 1
        ends = np.array([False, False, False, t == 1])
        step = Step(after[:, None], np.full((4, 1), 1.0 + t), ends, np.zeros(4, bool))
        replay.add(task, state[:, None], np.zeros((4, 1)), step)
        state = np.where([False, t == 1, False, t == 1], [0, 50, 0, 60], after)
    replay.show()
    batch = replay.own(block=0, tasks=[0, 1])
    rows = zip(*(x[..., 0] if x.ndim > 3 else x for x in batch), strict=True)
    found = {
        (float(s), float(r), float(s2), float(end))
        for b in rows
        for s, _, r, s2, end in zip(*(x.ravel() for x in b), strict=True)
    }
    assert found == {
        # Undisturbed: rewards 1 to 4, three of them at a time while there are three.
        (10, 1 + 2 / 2 + 3 / 4, 13, 0.75),
        (11, 2 + 3 / 2 + 4 / 4, 14, 0.75),
        (12, 3 + 4 / 2, 14, 0.5),
        (13, 4, 14, 0),
        # Restarted after the second step without having ended: the critic takes over there.
        (20, 1 + 2 / 2, 22, 0.5),
        (21, 2, 22, 0),
        (50, 3 + 4 / 2, 52, 0.5),
        (51, 4, 52, 0),
        # The other task's rewards are ten times as large.
        (30, 17.5 + 10, 33, 0.75),
        (31, 45, 34, 0.75),
        (32, 50, 34, 0.5),
        (33, 40, 34, 0),
        # Terminated: nothing comes after.
        (40, 20, 42, 1),
        (41, 20, 42, 1),
        (60, 50, 62, 0.5),
        (61, 40, 62, 0),
    }


def test_n_step_returns_do_not_follow_another_tasks_policy_or_a_gap():
    family = TwoTasks()
    replay = replay_of(family, 3, updates=100, n_step=2, discount=0.5)
    task, state = np.array([0, 1]), np.array([10.0, 20.0])
    for t in range(3):
        diverged = np.array([False, t == 1])
        step = Step((state + 1)[:, None], np.ones((2, 1)), np.zeros(2, bool), diverged)
        replay.add(task, state[:, None], np.zeros((2, 1)), step)
        state = state + 1
    replay.show()
    batch, by = replay.relabelled(block=0)
    found = set(zip(batch.observation.ravel(), by.ravel(), batch.reward.ravel(), strict=True))
    assert found == {
        *((10, 0, 1.5), (11, 0, 1.5), (12, 0, 1)),
        *((10, 1, 10), (11, 1, 10), (12, 1, 10)),
        # The row between these two diverged and is not there.
        *((20, 1, 10), (22, 1, 10), (20, 0, 1), (22, 0, 1)),
    }


def test_an_existing_dataset_is_not_overwritten(tiny_dataset):
    before = tiny_dataset.fingerprint
    with pytest.raises(DataError, match="already exists"):
        collect(make_family("point-robot"), TINY_COLLECT, tiny_dataset.path, "none")
    assert Dataset(tiny_dataset.path).fingerprint == before


def test_a_killed_collection_leaves_no_dataset(tmp_path, monkeypatch):
    def die(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(DatasetWriter, "seal", die)
    path, short = tmp_path / "d", dataclasses.replace(TINY_COLLECT, steps=20, checkpoints=1)
    with pytest.raises(KeyboardInterrupt):
        collect(make_family("point-robot"), short, path, "none")
    assert not path.exists()
    monkeypatch.undo()
    collect(make_family("point-robot"), short, path, "none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 30}, "multiples of steps_per_block"),
        ({"checkpoints": 99}, "number of blocks"),
        ({"warmup": 1.5}, "warmup must be at most 1"),
        ({"style": -1.0}, "style must be at least 0"),
        ({"first_checkpoint": 20}, "first_checkpoint"),
        ({"last_checkpoint": 999}, "last_checkpoint"),
        ({"first_checkpoint": 160, "last_checkpoint": 40}, "in this order"),
        ({"first_checkpoint": 180}, "spread over"),
        ({"spacing": 0.5}, "spacing must be at least 1"),
        ({"style": 1.0, "symmetry": True}, "style and symmetry do not fit together"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(TINY_COLLECT, **change).validate()


def test_a_full_disk_is_an_error_before_anything_is_simulated(tmp_path, monkeypatch):
    def full(descriptor, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        collect(make_family("point-robot"), TINY_COLLECT, tmp_path / "d", "none")
    assert not (tmp_path / "d").exists()


def test_two_collectors_of_one_place_are_refused(tmp_path):
    about = Description.of(make_family("point-robot"))
    first = DatasetWriter(tmp_path / "d", about, {0: 1})
    with pytest.raises(RunError, match="in use by process"):
        DatasetWriter(tmp_path / "d", about, {0: 1})
    first.abandon()
    assert list(tmp_path.iterdir()) == []
    DatasetWriter(tmp_path / "d", about, {0: 1}).abandon()


def test_a_task_outside_of_the_split_is_noticed_before_anything_is_simulated(tmp_path):
    family = make_family("point-robot")
    family.split = {"train": range(20), "test-id": range(19, 40), "test-ood": ()}
    with pytest.raises(ConfigError, match="every task must stand in exactly one group"):
        collect(family, TINY_COLLECT, tmp_path / "d", "none")
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_is_known_again_when_collection_has_gained_a_setting(tiny_dataset, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(tiny_dataset.path, old)
    manifest = store.read_json(old / "manifest.json")
    assert manifest["collector"]["config"].pop("style") == TINY_COLLECT.style
    store.write_json(old / "manifest.json", manifest)
    again = api.collect("point-robot", old, config=TINY_COLLECT, progress="none")
    assert sorted(again.tasks) == sorted(tiny_dataset.tasks)


def test_settings_override_the_profile(tiny_dataset):
    path, settings = tiny_dataset.path, to_json(TINY_COLLECT)
    again = api.collect("point-robot", path, settings=settings, progress="none")
    assert again.fingerprint == tiny_dataset.fingerprint
    with pytest.raises(DataError, match="collected with other settings"):
        api.collect("point-robot", path, settings={**settings, "steps": 7}, progress="none")
    with pytest.raises(ConfigError, match="Did you mean 'steps'"):
        api.collect("point-robot", path, settings={"stepz": 7}, progress="none")


def changed(tiny_dataset, **attributes):
    """Collect where a dataset is, with a family that has changed since."""
    made = type("PointRobot", (PointRobot,), attributes)()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "_families", lambda: {"point-robot": made})
        with pytest.raises(DataError) as opened:
            tiny_dataset.make_family()
        with pytest.raises(DataError) as collected:
            api.collect("point-robot", tiny_dataset.path, config=TINY_COLLECT, progress="none")
    assert str(opened.value) == str(collected.value)
    assert "Use the family as it was, or collect its data anew" in str(opened.value)
    return str(opened.value)


def test_a_family_that_has_changed_since_is_refused(tiny_dataset):
    known = PointRobot()
    told = changed(tiny_dataset, parameters=2 * known.parameters)
    name, value = known.parameter_names[0], known.parameters[0, 0]
    assert f"{name} of task 0 was {value:.6g} and is {2 * value:.6g} (" in told
    assert f"of {known.n_tasks} tasks have changed" in told
    split = {"train": range(19), "test-id": range(19, 30), "test-ood": range(30, 40)}
    told = changed(tiny_dataset, split=split)
    assert "task 19 was of the group train and is of test-id." in told
    split = {"train": range(20), "test-id": range(20, 30)}
    told = changed(tiny_dataset, split=split, parameters=known.parameters[:30])
    assert "there was a task 30, and the tasks are 0 to 29 (10 of 40 tasks" in told
    assert "horizon was 20 and is 21" in changed(tiny_dataset, horizon=21)
    ends = {"action_low": [-2.0, -1.0], "action_high": [1.0, 1.0]}
    assert "action_low was [-1.0, -1.0] and is [-2.0, -1.0]" in changed(tiny_dataset, **ends)


def test_the_last_digits_of_a_table_may_differ_between_machines(tiny_dataset, monkeypatch):
    near = {"parameters": PointRobot().parameters * (1 + 1e-12)}
    made = type("PointRobot", (PointRobot,), near)()
    monkeypatch.setattr(families, "_families", lambda: {"point-robot": made})
    assert tiny_dataset.make_family() is made


def test_tasks_that_a_family_gained_are_not_taken_for_collected(tiny_dataset, monkeypatch):
    known = PointRobot()
    more = np.concatenate([known.parameters, 3 * known.parameters[:1]])
    split = {**known.split, "test-ood": range(30, 41)}
    made = type("PointRobot", (PointRobot,), {"parameters": more, "split": split})()
    monkeypatch.setattr(families, "_families", lambda: {"point-robot": made})
    with pytest.raises(DataError, match="holds 40 tasks of point-robot, which now has 41"):
        api.collect("point-robot", tiny_dataset.path, config=TINY_COLLECT, progress="none")


def test_finished_data_is_said_to_be_opened_only(tiny_dataset, capsys):
    api.collect("point-robot", tiny_dataset.path, config=TINY_COLLECT)
    told = capsys.readouterr()
    assert told.err == f"{tiny_dataset.path} was finished before; it is only opened\n"
    assert told.out == ""
