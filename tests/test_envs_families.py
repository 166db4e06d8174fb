"""What holds for every family, whatever it simulates."""

from importlib.util import find_spec

import numpy as np
import pytest

from ertrl.contracts.of_families import FAMILY_CHECKS, plan, run, some_tasks
from ertrl.envs import GROUPS, family_names, make_family, rollout
from ertrl.envs.families import hopper_walker
from ertrl.envs.families.point_robot import PointRobot
from ertrl.errors import ConfigError
from ertrl.launch.reproduce import paper_families

# One of Meta-World's stands for all: it takes a second to load.
FAMILIES = {
    name: make_family(name)
    for name in family_names()
    if not name.startswith("metaworld") or (name == "metaworld-reach" and find_spec("metaworld"))
}


def parametrise(families: dict):
    return pytest.mark.parametrize("family", families.values(), ids=families.keys())


every_family = parametrise(FAMILIES)
# What happened in one task cannot tell what would have happened under other dynamics.
every_family_of_rewards = parametrise(
    {name: family for name, family in FAMILIES.items() if family.relabels}
)


@pytest.mark.parametrize("check", FAMILY_CHECKS, ids=lambda check: check.__name__)
@every_family
def test_promises_of_a_family_are_kept(family, check):
    check(family)


@every_family
def test_rows_restart_without_disturbing_the_others(family):
    rows = [0, 1, 2]
    observations, *_ = run(family, rows)
    simulation = family.simulate(family.parameters[rows], 2)
    simulation.reset([100 + r for r in rows])
    actions = plan(rows, family)
    for action in actions[:5]:
        simulation.step(action)
    restarted = simulation.reset([101], np.array([1]))
    np.testing.assert_array_equal(restarted[1], observations[0, 1])
    np.testing.assert_array_equal(restarted[[0, 2]], observations[5, [0, 2]])
    for t, action in enumerate(actions[5:], start=6):
        step = simulation.step(np.stack([action[0], actions[t - 6, 1], action[2]]))
        np.testing.assert_array_equal(step.observation[[0, 2]], observations[t, [0, 2]])
        np.testing.assert_array_equal(step.observation[1], observations[t - 5, 1])


@every_family
def test_tasks_differ_in_what_the_family_says(family):
    """One seed, one plan, all tasks: rewards differ, or the physics does."""
    rows, tasks = [0] * family.n_tasks, np.arange(family.n_tasks)
    observations, outcomes, _ = run(family, rows, tasks=tasks)
    actions = plan(rows, family)
    rewards = family.reward(outcomes, actions, family.parameters[None, tasks])
    elsewhere = family.reward(outcomes, actions, family.parameters[None, tasks[::-1]])
    if family.varies == "reward":
        assert (observations == observations[:, :1]).all()
        assert len(np.unique(rewards.sum(axis=0))) > 0.75 * len(
            tasks
        )  # goals can be equally far away
        assert np.allclose(rewards, elsewhere) != family.relabels
    else:
        last = observations[-1]
        assert len(np.unique(last, axis=0)) > len(tasks) / 2
        np.testing.assert_array_equal(rewards, elsewhere)


@every_family_of_rewards
def test_relabelled_rewards_are_those_of_the_other_task(family):
    """Stored outcomes and actions are all it takes to know a reward under any task."""
    actions = plan([0], family, family.horizon)
    tasks = some_tasks(family, 3)
    episodes = [
        rollout(family, family.parameters[[task]], lambda _, t: actions[t], [9]) for task in tasks
    ]
    simulation = family.simulate(family.parameters[tasks[:1]])
    simulation.reset([9])
    outcomes = np.stack([simulation.step(action).outcome for action in actions])
    length = episodes[0].length[0]
    for task, episode in zip(tasks, episodes, strict=True):
        assert episode.length[0] == length
        again = family.reward(outcomes, actions, family.parameters[None, [task]])[:length, 0]
        np.testing.assert_array_equal(again.astype(np.float32), episode.reward[0, :length])


@every_family
def test_splits_hold_held_out_tasks_inside_and_others_outside(family):
    for split in family.choices.get("split", (None,)):
        made = family if split is None else make_family(family.name, split=split)
        groups = made.split
        assert tuple(groups)[:3] == GROUPS
        assert sorted(i for tasks in groups.values() for i in tasks) == list(range(made.n_tasks))
        assert all(groups.values())
        assert len(np.unique(made.parameters.round(9), axis=0)) == made.n_tasks
        if made.parameters.shape[1] == 1:
            values = {name: made.parameters[list(tasks), 0] for name, tasks in groups.items()}
            low, high = values["train"].min(), values["train"].max()
            assert ((values["test-id"] > low) & (values["test-id"] < high)).all()
            for name in list(groups)[2:]:
                assert ((values[name] < low) | (values[name] > high)).all()


@pytest.mark.parametrize("name", paper_families())
def test_families_of_the_paper_have_its_numbers_of_tasks(name):
    assert [len(tasks) for tasks in make_family(name).split.values()] == [20, 10, 10]


def test_wrong_options_are_refused_with_a_reason():
    with pytest.raises(ConfigError, match=r"unknown option of cheetah-vel 'spilt'.*'split'"):
        make_family("cheetah-vel", spilt="paper")
    with pytest.raises(ConfigError, match="split is one of 'paper', 'released', got 'realeased'"):
        make_family("cheetah-vel", split="realeased")
    with pytest.raises(ConfigError, match="refresh_constants is one of True, False, got 1"):
        make_family("hopper-mass", refresh_constants=1)
    with pytest.raises(ConfigError, match="Did you mean 'hopper-mass'"):
        make_family("hoper-mass")
    with pytest.raises(ConfigError, match="mass_factor must be positive, got -1"):
        hopper_walker.HopperMass().simulate(np.array([[1.0], [-1.0]]))
    with pytest.raises(ConfigError, match=r"a split has the group train .*got \['test-id'\]"):
        type("Mine", (PointRobot,), {"split": {"test-id": [0]}})()
    simulation = make_family("hopper-mass").simulate(np.ones((2, 1)))
    with pytest.raises(ConfigError, match=r"expected actions \(2, 3\), got \(2, 1\)"):
        simulation.step(np.zeros((2, 1)))


def test_the_released_split_has_tasks_far_out():
    split = make_family("cheetah-vel", split="released").split
    assert [len(tasks) for tasks in split.values()] == [20, 10, 10, 10]
    assert split["test-extreme"][-1] == 49
