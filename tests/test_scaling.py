"""Scaled inputs: from the training tasks' numbers, the same in training and in an agent's hands."""

import jax
import numpy as np
import pytest

from conftest import tiny_config
from ertrl import api
from ertrl.data import Sampler
from ertrl.data.scaling import Scaling
from ertrl.training.update import init, make_chunk, run_key
from ertrl.types import Context
from toys import assert_trees_equal


def all_rows(dataset, task):
    data = dataset.task(task)
    return data.transitions(np.arange(len(data.steps)))


def test_each_training_task_counts_the_same(tiny_dataset):
    rows = [all_rows(tiny_dataset, task) for task in tiny_dataset.group("train")]
    scaling = Scaling.of(tiny_dataset)
    seen = np.stack([scaling.observations(r.observation) for r in rows])  # equally many rows each
    np.testing.assert_allclose(seen.mean(axis=(0, 1)), 0, atol=1e-4)
    np.testing.assert_allclose(seen.std(axis=(0, 1)), 1, atol=1e-4)
    rewards = np.stack([scaling.context(Context.of(r)).reward for r in rows])
    np.testing.assert_allclose([rewards.mean(), rewards.std()], [0, 1], atol=1e-4)
    worth = np.stack([scaling.transitions(r).reward for r in rows])
    np.testing.assert_allclose(
        worth * scaling.reward_deviation, [r.reward for r in rows], rtol=1e-5
    )


def test_what_never_changes_is_not_blown_up():
    class Constant:
        dims = type("Dims", (), {"observation": 2})

        def group(self, name):
            return [0]

        def task(self, task):
            return self

        steps = np.arange(7)

        def transitions(self, which):
            ones = np.full((len(which), 2), 3e4, np.float32)
            return Context.of((ones, ones, np.zeros(len(which), np.float32), ones))

    scaling = Scaling.of(Constant())
    np.testing.assert_array_equal(scaling.observations(np.full(2, 3e4, np.float32)), 0)
    assert scaling.reward_deviation == 1


def test_json_keeps_every_bit(tiny_dataset):
    scaling = Scaling.of(tiny_dataset)
    assert_trees_equal(scaling, Scaling.of_json(scaling.to_json()))


@pytest.fixture(scope="module")
def scaled_run(tiny_dataset, tmp_path_factory):
    out = tmp_path_factory.mktemp("scaled")
    return api.start(tiny_config("focal", standardise=True), tiny_dataset, out=out, progress="none")


def test_training_sees_scaled_batches(tiny_dataset, scaled_run):
    """A run equals one whose batches were scaled by hand."""
    config = scaled_run.config
    batches = Sampler(tiny_dataset, config.sampling, 0, config.seed).batches(0, 40)
    by_hand = Scaling.of(tiny_dataset).batch(batches)
    state, _ = make_chunk(config)(init(config, tiny_dataset.dims), by_hand, run_key(config.seed))
    trained, _ = scaled_run.load()
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(trained), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_an_agent_scales_what_it_is_given(tiny_dataset, scaled_run):
    agent, scaling = api.load_agent(scaled_run), scaled_run.scaling
    state, _ = scaled_run.load()
    rows = all_rows(tiny_dataset, 3)
    context = Context.of(x[None] for x in rows)
    z = scaled_run.method.encode(state.method, scaling.context(context))
    np.testing.assert_allclose(agent.adapt(rows).z, z[0], atol=1e-5)
    seen = scaling.observations(rows.observation[:1])
    action = scaled_run.learner.act(state.learner, seen, z)
    np.testing.assert_allclose(agent.act(rows.observation[:1], np.asarray(z)), action, atol=1e-5)
    plain = scaled_run.learner.act(state.learner, rows.observation[:1], z)
    assert np.abs(action - plain).max() > 1e-4


def test_without_the_setting_nothing_is_recorded(tiny_run, scaled_run):
    assert "scaling" in scaled_run.spec
    assert "scaling" not in tiny_run.spec
    assert tiny_run.scaling is None
