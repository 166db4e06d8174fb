"""Meta-World behind the same door: repaired, its goals hidden, its experts good."""

import importlib
import sys

import numpy as np
import pytest

from ertrl.envs import make_family, rollout
from ertrl.envs.families import metaworld as family_file
from ertrl.errors import ConfigError, MissingExtra

NAMES = ("metaworld-reach", "metaworld-push", "metaworld-pick-place")


@pytest.mark.parametrize("name", NAMES)
def test_goals_lie_in_the_box_of_ml1(name):
    family = make_family(name)
    middle = np.add(family.goal_low, family.goal_high) / 2
    half = np.subtract(family.goal_high, family.goal_low) / 2
    outward = np.abs((family.parameters - middle) / half).max(axis=1)
    assert (outward[:30] <= 0.75).all()
    np.testing.assert_allclose(outward[30:], 1, err_msg="out of distribution: on its surface")
    assert len(np.unique(family.parameters.round(3), axis=0)) == 40


def test_without_the_package_the_message_says_what_to_install(monkeypatch):
    family_file._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "metaworld", None)
    monkeypatch.setitem(sys.modules, "metaworld.envs", None)
    family = make_family("metaworld-push")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[metaworld\]'"):
        family.simulate(family.parameters[:1])


needs_metaworld = pytest.mark.skipif(
    not importlib.util.find_spec("metaworld"),
    reason="Meta-World is not installed: pip install -e '.[metaworld]'",
)


@needs_metaworld
def test_another_version_is_named(monkeypatch):
    family_file._environment.cache_clear()
    monkeypatch.setattr(family_file, "version", lambda name: "4.0.0")
    with pytest.raises(MissingExtra, match=r"Meta-World 4.0.0 is installed.*metaworld>=3,<3\.2"):
        family_file.HiddenGoal("Reach", {"goal_x": 0.0, "goal_y": 0.8, "goal_z": 0.1})


@needs_metaworld
def test_the_repair_is_needed_and_ties_the_hand_as_meta_world_does():
    """If the first part fails, MuJoCo and Meta-World agree again: the repair may go."""
    from metaworld.envs import SawyerReachEnvV3

    with pytest.raises(ValueError, match="broadcast"):
        SawyerReachEnvV3()
    env = family_file._environment("Reach")()
    welds = env.model.eq_data[env.model.eq_type == 1]
    assert len(welds) == 1
    np.testing.assert_array_equal(welds[0], [*family_file.WELD, 0.0])


@needs_metaworld
def test_a_goal_that_meta_world_would_not_take_is_refused():
    with pytest.raises(ConfigError, match=r"at least 0.15 m from where the object may start"):
        family_file.HiddenGoal("Reach", {"goal_x": 0.0, "goal_y": 0.7, "goal_z": 0.1})


@needs_metaworld
@pytest.mark.parametrize("name", NAMES)
def test_experts_fulfil_tasks_whose_goals_nobody_sees(name, monkeypatch):
    family = make_family(name)
    monkeypatch.setattr(family, "horizon", 100)
    tasks = family.parameters[[0, 33]]
    episodes = rollout(family, tasks, lambda seen, _: family.expert(seen, tasks), [3, 3])
    np.testing.assert_array_equal(episodes.success, [1, 1])
    np.testing.assert_array_equal(
        episodes.observation[0, 0], episodes.observation[1, 0], "the start tells nothing"
    )
    assert not np.allclose(episodes.observation[0, -1], episodes.observation[1, -1])


@needs_metaworld
def test_observations_and_rewards_are_meta_worlds():
    task = {"goal_x": 0.05, "goal_y": 0.85}
    ours, theirs = family_file.HiddenGoal("Push", task), family_file._environment("Push")()
    seen, _ = ours.reset(seed=5)
    theirs._freeze_rand_vec = theirs._set_task_called = True
    theirs._last_rand_vec = np.array([*ours._env._last_rand_vec])
    whole, _ = theirs.reset()
    for action in np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32):
        kept = np.concatenate([whole[:11], whole[18:29]])
        np.testing.assert_array_equal(seen, kept)
        assert not whole[11:18].any(), "no second object"
        assert not whole[36:].any(), "no goal"
        seen, reward, *_, info = ours.step(action)
        whole, expected, *_, told = theirs.step(action)
        assert (reward, info["success"]) == (expected, told["success"])


@needs_metaworld
def test_what_the_gripper_touches_is_what_meta_world_says(monkeypatch):
    """An expert touches the puck on its way, and lets go of it in the end."""
    family = make_family("metaworld-pick-place")
    environment = family_file._environment("PickPlace")
    ours, theirs = environment.touching_object, environment.__mro__[1].touching_object
    said = []

    def both(env, geom):
        said.append((ours(env, geom), theirs(env, geom)))
        return said[-1][1]

    monkeypatch.setattr(environment, "touching_object", both)
    monkeypatch.setattr(family, "horizon", 60)
    tasks = family.parameters[:1]
    rollout(family, tasks, lambda seen, _: family.expert(seen, tasks), [3])
    assert {bool(ours) for ours, _ in said} == {True, False}, "both happen"
    assert [bool(ours) for ours, _ in said] == [bool(theirs) for _, theirs in said]
