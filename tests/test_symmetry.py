"""Views in which tasks look alike: they must agree with the physics, not only with the algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ertrl.collection.config import CollectConfig
from ertrl.collection.policies import POLICIES, turned
from ertrl.envs import make_family
from ertrl.errors import ConfigError

CONFIG = CollectConfig(symmetry=True, hidden=(16,))
TASKS = [0, 5, 19, 33, 39]
every_symmetry = pytest.mark.parametrize("name", ["ant-dir", "ant-goal", "humanoid-dir"])


def moving(family, steps=15):
    """A simulation of some tasks in the middle of an episode, and what it observes."""
    simulation = family.simulate(family.parameters[TASKS], threads=1)
    observation = simulation.reset(TASKS)
    draw = np.random.default_rng(0)
    for _ in range(steps):
        action = draw.uniform(-0.5, 0.5, (len(TASKS), family.action_dim))
        observation = simulation.step(action).observation
    return simulation, observation


def turned_world(family, simulation, angle):
    """The same robots in a world that is turned about the origin, and their tasks with it."""
    other = family.simulate(family.parameters[TASKS], threads=1)
    other.reset(TASKS)
    cos, sin = np.cos(angle), np.sin(angle)
    matrix = np.array([[cos, -sin], [sin, cos]])
    qpos, qvel = simulation.qpos.copy(), simulation.qvel.copy()
    qpos[:, :2], qvel[:, :2] = qpos[:, :2] @ matrix.T, qvel[:, :2] @ matrix.T
    half = np.array([np.cos(angle / 2), np.sin(angle / 2)])
    w, x, y, z = qpos[:, 3:7].T.copy()
    qpos[:, 3] = half[0] * w - half[1] * z
    qpos[:, 4] = half[0] * x - half[1] * y
    qpos[:, 5] = half[0] * y + half[1] * x
    qpos[:, 6] = half[0] * z + half[1] * w
    other.qpos[:], other.qvel[:] = qpos, qvel
    parameters = family.parameters[TASKS]
    moved = parameters + angle if parameters.shape[1] == 1 else parameters @ matrix.T
    return other, moved


@every_symmetry
def test_a_turned_world_looks_the_same_and_goes_on_the_same(name):
    """By a quarter: friction in MuJoCo is a pyramid, which other turns change a little."""
    family = make_family(name)
    simulation, _ = moving(family)
    other, parameters = turned_world(family, simulation, np.pi / 2)
    action = np.random.default_rng(1).uniform(-1, 1, (len(TASKS), family.action_dim))
    for world in (simulation, other):
        world._batch.forward()
    steps = simulation.step(action), other.step(action)
    here, there = (
        family.symmetry.view(jnp.asarray(step.observation), jnp.asarray(p))
        for step, p in zip(steps, (family.parameters[TASKS], parameters), strict=True)
    )
    np.testing.assert_allclose(here[0], there[0], atol=2e-4)
    np.testing.assert_array_equal(here[1], there[1])
    earned = [
        family.reward(step.outcome, action, p)
        for step, p in zip(steps, (family.parameters[TASKS], parameters), strict=True)
    ]
    np.testing.assert_allclose(*earned, atol=1e-3)


@pytest.mark.parametrize("name", ["ant-dir", "humanoid-dir"])
def test_every_direction_looks_the_same(name):
    family = make_family(name)
    simulation, _ = moving(family)
    other, parameters = turned_world(family, simulation, 0.7)
    here, there = (
        family.symmetry.view(jnp.asarray(world.observe()), jnp.asarray(p))[0]
        for world, p in ((simulation, family.parameters[TASKS]), (other, parameters))
    )
    np.testing.assert_allclose(here, there, atol=1e-5)


def test_an_ant_whose_legs_are_renamed_goes_on_the_same():
    """Put the view itself into the simulator as a state: it must move as the ant that was seen."""
    family = make_family("ant-dir")
    simulation, observation = moving(family)
    tasks = jnp.asarray(family.parameters[TASKS], jnp.float32)
    shown, first = family.symmetry.view(jnp.asarray(observation), tasks)
    assert len(set(np.asarray(first).tolist())) > 1, "several legs come first"
    turn = family.symmetry.turns[np.asarray(first)]
    bend = np.array([1, 1, 1, -1, 1, -1, 1, 1.0])
    other = family.simulate(family.parameters[[0] * len(TASKS)], threads=1)
    other.reset(TASKS)
    seen = np.asarray(shown, np.float64)
    other.qpos[:, :2] = 0
    other.qpos[:, 2:] = np.concatenate([seen[:, :5], seen[:, 5:13] * bend], axis=1)
    other.qvel[:] = np.concatenate([seen[:, 13:19], seen[:, 19:27] * bend], axis=1)
    action = np.random.default_rng(2).uniform(-1, 1, (len(TASKS), 8)).astype(np.float32)
    # The other ant has the first leg first, and stands in a world whose direction is 0.
    renamed = turned(family.symmetry.turns[:1], np.asarray(turned(turn, action)), back=True)
    after = simulation.step(action).observation
    after_renamed = other.step(np.asarray(renamed)).observation
    expected, _ = family.symmetry.view(jnp.asarray(after), tasks)
    found, _ = family.symmetry.view(jnp.asarray(after_renamed), jnp.zeros((len(TASKS), 1)))
    np.testing.assert_allclose(found, expected, atol=2e-4)


@every_symmetry
def test_views_have_the_promised_shape_and_turns_are_signed_permutations(name):
    family = make_family(name)
    _, observation = moving(family, steps=1)
    shown, turn = family.symmetry.view(jnp.asarray(observation), family.parameters[TASKS])
    assert shown.shape == (len(TASKS), family.symmetry.size)
    assert turn.shape == (len(TASKS),)
    for matrix in family.symmetry.turns:
        np.testing.assert_array_equal(matrix @ matrix.T, np.eye(family.action_dim))
        assert set(np.abs(matrix).ravel()) == {0.0, 1.0}
    action = np.random.default_rng(3).normal(size=(len(TASKS), family.action_dim))
    matrices = family.symmetry.turns[np.asarray(turn)]
    there_and_back = turned(matrices, np.asarray(turned(matrices, action)), back=True)
    np.testing.assert_allclose(there_and_back, action, rtol=1e-6)


def test_the_unplaced_ant_is_seen_alike():
    family, unplaced = make_family("ant-dir"), make_family("ant-dir", observation_dim=27)
    _, observation = moving(family)
    _, body = moving(unplaced)
    views = [
        f.symmetry.view(jnp.asarray(o), jnp.asarray(family.parameters[TASKS]))
        for f, o in ((family, observation), (unplaced, body))
    ]
    jax.tree.map(np.testing.assert_array_equal, *views)


def test_acting_and_measuring_come_back_out_of_the_view():
    """The Gaussian's mean, turned out of the view, is what the deterministic policy does."""
    family = make_family("ant-dir")
    policies = POLICIES["conditioned"](family, CONFIG)
    state = policies.init(jax.random.key(0))
    rows = np.random.default_rng(4).normal(size=(family.n_tasks, 3, family.observation_dim))
    mean, log_std = policies.gaussian(state.behaviour, rows.astype(np.float32))
    action = policies.act(state.behaviour, rows.astype(np.float32), None)
    np.testing.assert_allclose(jnp.tanh(mean), action, atol=1e-6)
    assert log_std.shape == mean.shape
    assert np.isfinite(log_std).all()


def test_a_family_without_symmetry_says_so():
    with pytest.raises(ConfigError, match="hopper-mass has no symmetry"):
        POLICIES["conditioned"](make_family("hopper-mass"), CONFIG)
