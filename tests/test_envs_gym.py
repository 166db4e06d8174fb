"""Gymnasium's view of the families."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ertrl.envs import FamilyEnv, FamilyVectorEnv, env_id, family_names, make_family
from ertrl.envs.render import RenderError
from ertrl.errors import ConfigError
from toys import can_render

NAMES = [name for name in family_names() if not name.startswith("metaworld")]
"""Without those that need an extra and take long; tests/test_metaworld.py has them."""


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_to_complain_about(name):
    env = gymnasium.make(env_id(name), task=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Advice for whoever chooses units: ours are those of the environment behind it.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized")
        check_env(env.unwrapped, skip_render_check=not can_render())


def test_import_registers_without_jax_and_mujoco():
    code = (
        "import sys, gymnasium\n"
        "gymnasium.make('ertrl.envs:ertrl/PointRobot-v0')\n"
        "gymnasium.make('ertrl/PointRobot-v0')\n"
        "print([m for m in ('jax', 'mujoco', 'matplotlib') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_vector_env_is_row_by_row_the_single_env(name):
    """Beyond two episode ends, so that autoreset is part of it."""
    family = make_family(name)
    own = family.parameters[0] * 0.9
    tasks, limit = [0, 7, own, family.n_tasks - 1], 6

    def single(task):
        return lambda: gymnasium.make(env_id(name), task=task, max_episode_steps=limit)

    many = FamilyVectorEnv(name, tasks=tasks, max_episode_steps=limit)
    loop = SyncVectorEnv([single(task) for task in tasks])
    assert many.metadata["autoreset_mode"] == loop.metadata["autoreset_mode"]
    _assert_same(many.reset(seed=5), loop.reset(seed=5))
    many.action_space.seed(1)
    for _ in range(2 * limit + 4):
        action = many.action_space.sample()
        _assert_same(many.step(action), loop.step(action))
    _assert_same(many.reset(seed=[9, 8, 7, 6]), loop.reset(seed=[9, 8, 7, 6]))


def _assert_same(many, loop):
    for a, b in zip(many[:-1], loop[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
    many_info, loop_info = many[-1], loop[-1]
    for key in loop_info:
        np.testing.assert_array_equal(many_info[key], loop_info[key])
    # Where no row has anything to tell, Gymnasium leaves the key out and we mask all rows.
    assert not any(many_info[f"_{key.lstrip('_')}"].any() for key in many_info.keys() - loop_info)


def test_time_limit_truncates_and_the_row_restarts_in_the_next_step():
    env = gymnasium.make_vec(env_id("point-robot"), num_envs=2, task=1)
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    env.reset(seed=0)
    horizon = make_family("point-robot").horizon
    for step in range(1, horizon + 1):
        observation, _, terminated, truncated, _ = env.step(np.ones((2, 2), np.float32))
        assert truncated.all() == (step == horizon)
        assert not terminated.any()
    np.testing.assert_allclose(observation, 0.1 * horizon, rtol=1e-5)
    observation, reward, _, truncated, info = env.step(np.ones((2, 2), np.float32))
    assert not observation.any()
    assert not reward.any()
    assert not truncated.any()
    assert not info["_outcome"].any()


def test_options_of_the_family_and_of_the_time_limit_reach_the_environments():
    env = gymnasium.make(env_id("ant-dir"), task=49, split="released", observation_dim=27)
    assert env.observation_space.shape == (27,)
    assert env.spec.max_episode_steps == 200
    many = gymnasium.make_vec(
        env_id("point-robot"), num_envs=2, tasks=[1, [0.5, 0.5]], max_episode_steps=-1
    )
    many.reset(seed=np.int64(3))
    for _ in range(50):
        *_, truncated, _ = many.step(np.zeros((2, 2), np.float32))
        assert not truncated.any()


def test_info_tells_the_task_and_what_happened():
    env = gymnasium.make(env_id("point-robot"), task=[0.3, 0.9])
    _, info = env.reset(seed=0)
    np.testing.assert_array_equal(info["parameters"], [0.3, 0.9])
    observation, reward, *_, info = env.step(np.array([1.0, -0.5], np.float32))
    np.testing.assert_array_equal(info["outcome"], observation)
    assert reward == pytest.approx(-np.hypot(0.1 - 0.3, -0.05 - 0.9))


@pytest.mark.parametrize("task", [40, -1, [0.1], [np.nan, 0.0], "east"])
def test_bad_tasks_are_refused_with_a_reason(task):
    with pytest.raises(ConfigError, match="point-robot"):
        FamilyEnv("point-robot", task=task)


def test_bad_vector_requests_are_refused_with_a_reason():
    with pytest.raises(ConfigError, match="2 tasks for num_envs=3"):
        FamilyVectorEnv("point-robot", num_envs=3, tasks=[0, 1])
    with pytest.raises(ConfigError, match="1 seeds for 2 rows"):
        FamilyVectorEnv("point-robot", num_envs=2).reset(seed=[1])
    with pytest.raises(ConfigError, match="point-robot has no options, got 'wind'"):
        FamilyEnv("point-robot", wind=1)
    with pytest.raises(ConfigError, match="for a family given by name"):
        FamilyEnv(make_family("point-robot"), split="paper")


def test_families_without_a_picture_say_so():
    env = FamilyEnv("point-robot")
    assert env.metadata["render_modes"] == []
    with pytest.raises(RenderError, match="point-robot has no picture"):
        env.render()
