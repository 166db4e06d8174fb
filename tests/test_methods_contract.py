"""What every method of the registry promises, whatever it does inside."""

import dataclasses
import operator
import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ertrl import store
from ertrl.config import replace_from_json, to_json
from ertrl.contracts.of_learners import LEARNER_CHECKS
from ertrl.contracts.of_methods import METHOD_CHECKS
from ertrl.errors import RunError
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key
from toys import (
    DIMS,
    LEARNERS,
    METHODS,
    assert_trees_equal,
    batches,
    random_state,
    small_config,
    trees_differ,
)

every_method = pytest.mark.parametrize("method", METHODS)
every_learner = pytest.mark.parametrize("learner", LEARNERS)


@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
@every_method
def test_promises_of_a_method_are_kept(method, check):
    check(get_method(method))


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=lambda check: check.__name__)
@every_learner
def test_promises_of_a_learner_are_kept(learner, check):
    check(get_learner(learner))


# --- files and configurations ---


@every_method
def test_a_method_is_a_short_file_that_says_where_it_comes_from(method):
    entry = get_method(method)
    file = Path(sys.modules[entry.update.__module__].__file__)
    assert len(file.read_text().splitlines()) < 150
    assert file.stem.replace("_", "-") == method == entry.name
    assert entry.paper.startswith("https://")
    assert entry.summary


@every_method
@every_learner
def test_configurations_survive_json(method, learner):
    config = small_config(method, learner, learning_rate=1e-5, meta_batch=3, repeats=5, seed=9)
    blank = TrainConfig(method=get_method(method)(), learner=get_learner(learner)())
    assert config != blank
    assert replace_from_json(blank, to_json(config)) == config


# --- states ---


def some_state(method, learner, seed=0):
    """A whole training state, made without compiling anything."""
    config = small_config(method, learner)
    state = random_state(lambda key: init(config, DIMS), seed=seed)
    return jax.tree.map(jnp.asarray, state)


def restored(state, like):
    return store.tree_from_bytes(store.tree_to_bytes(state), like, Path("test"))


@every_learner
@every_method
def test_states_survive_the_disk_bit_by_bit(method, learner):
    state, blank = some_state(method, learner), some_state(method, learner, seed=1)
    assert trees_differ(state, blank)
    back = restored(state, blank)
    assert_trees_equal(state, back)
    assert jax.tree.map(jax.typeof, state) == jax.tree.map(jax.typeof, back)
    with pytest.raises(RunError, match="does not fit"):
        restored(state.method, blank)


# --- training ---


@cache
def program(method):
    """Configuration, compiled chunks and a list that grows with each tracing of an update."""
    traced = []

    class Counted(get_method(method)):
        def update(self, *args):
            traced.append(method)
            return super().update(*args)

    config = small_config(method, "td3bc", learning_rate=5e-3)
    config = dataclasses.replace(config, method=Counted(**vars(config.method)))
    return config, make_chunk(config), traced


@cache
def fresh(method):
    return jax.jit(lambda: init(program(method)[0], DIMS))()


def run(method, state, data, size):
    """All batches, `size` of them per call."""
    _, chunk, _ = program(method)
    metrics = []
    for first in range(0, len(data.task), size):
        part = slice(first, first + size)
        state, measured = chunk(state, jax.tree.map(operator.itemgetter(part), data), run_key(0))
        metrics.append(measured)
    return state, jax.tree.map(lambda *x: np.concatenate(x), *metrics)


@every_method
def test_results_do_not_depend_on_updates_per_call(method):
    config, _, traced = program(method)
    data = batches(10, config)
    state, metrics = run(method, fresh(method), data, 5)
    assert state.step == 10
    for values in metrics.values():
        assert values.shape == (10,)
        assert np.isfinite(values).all()
    other, other_metrics = run(method, fresh(method), data, 1)
    assert_trees_equal(state, other)
    # A single update is not looped over, and its means may be summed in another order.
    for name, values in metrics.items():
        np.testing.assert_allclose(values, other_metrics[name], rtol=1e-5, err_msg=name)
    # One program per size: neither a later chunk nor a restored state is traced anew.
    count = len(traced)
    run(method, state, data, 5)
    run(method, restored(state, fresh(method)), data, 1)
    assert len(traced) == count
