"""What every method of the registry promises, whatever it does inside."""

import dataclasses
import inspect
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
from ertrl.errors import RunError
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key, update
from ertrl.types import Context
from toys import (
    DIMS,
    LATENT,
    LEARNERS,
    METHODS,
    assert_trees_equal,
    batches,
    one_batch,
    random_state,
    small_config,
    trees_differ,
    with_fields,
)

every_method = pytest.mark.parametrize("method", METHODS)
every_learner = pytest.mark.parametrize("learner", LEARNERS)


# --- encoding ---


@cache
def encoder(method, next_observation=True):
    """A jitted encode with a random state."""
    config = with_fields(small_config(method, "td3bc"), next_observation=next_observation).method
    state = random_state(config.init, DIMS)
    return jax.jit(lambda context: config.encode(state, context))


def contexts(tasks=5, slots=7, seed=0):
    draw = np.random.default_rng(seed)
    shape = (tasks, slots)
    s, a, s2 = (draw.normal(size=(*shape, n)) for n in (DIMS.observation, DIMS.action, 3))
    drawn = s, np.tanh(a), draw.normal(size=shape), s2, np.ones(shape)
    return Context(*(x.astype(np.float32) for x in drawn))


def same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@every_method
def test_encode_gives_one_finite_code_per_task_that_tells_tasks_apart(method):
    z = encoder(method)(contexts())
    assert z.shape == (5, LATENT)
    assert np.isfinite(z).all()
    assert np.abs(z[0] - z[1]).max() > 1e-3


@every_method
def test_encode_does_not_care_for_the_order_of_a_context(method):
    context = contexts()
    order = np.random.default_rng(1).permutation(7)
    shuffled = jax.tree.map(lambda x: x[:, order], context)
    same(encoder(method)(context), encoder(method)(shuffled))


@every_method
def test_masked_slots_count_for_nothing(method):
    context, junk = contexts(), contexts(seed=1)
    mask = np.ones((5, 7), np.float32)
    mask[:, 4:] = 0
    one, other = (
        Context(*(np.where(mask.reshape(5, 7, *(1,) * (x.ndim - 2)), x, y) for x, y in pairs))
        for pairs in (
            zip(context[:4], context[:4], strict=True),
            zip(context[:4], (1e3 * j for j in junk[:4]), strict=True),
        )
        for pairs in [[*pairs, (mask, mask)]]
    )
    z = encoder(method)(one)
    same(z, encoder(method)(other))
    # Not even their number counts: the code is that of the four transitions alone.
    alone = jax.tree.map(lambda x: x[:, :4], context)
    same(z, encoder(method)(alone))
    assert np.abs(z - encoder(method)(context)).max() > 1e-3


@every_method
def test_an_empty_context_has_a_finite_code(method):
    context = contexts()
    assert np.isfinite(encoder(method)(context._replace(mask=0 * context.mask))).all()


@every_method
def test_encode_treats_tasks_alike_and_apart(method):
    context = contexts()
    order = np.array([3, 0, 4, 1, 2])
    z = np.asarray(encoder(method)(context))
    same(encoder(method)(jax.tree.map(lambda x: x[order], context)), z[order])
    changed = context._replace(reward=context.reward + np.eye(5, dtype=np.float32)[2][:, None])
    moved = np.abs(encoder(method)(changed) - z).max(axis=1) > 1e-6
    np.testing.assert_array_equal(moved, [False, False, True, False, False])


@every_method
def test_encode_takes_any_leading_axes(method):
    context = contexts(tasks=6)
    folded = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), context)
    same(encoder(method)(folded), encoder(method)(context).reshape(2, 3, LATENT))


@every_method
@pytest.mark.parametrize("shown", [False, True])
def test_the_encoder_sees_next_states_if_and_only_if_asked(method, shown):
    context = contexts()
    other = context._replace(next_observation=context.next_observation + 1)
    encode = encoder(method, next_observation=shown)
    seen = shown or get_method(method).always_sees_next_state
    assert (np.abs(encode(context) - encode(other)).max() > 1e-6) == seen


@every_method
def test_sums_over_transitions_say_what_encode_says(method):
    """Contexts add up; what agents without JAX do comes to the same."""
    config = with_fields(small_config(method, "td3bc"), next_observation=True).method
    state = random_state(config.init, DIMS)
    inference, context = config.sums(state), contexts()
    if inference is None:
        pytest.skip("z is no function of sums: it works in JAX only")
    parts = (jax.tree.map(lambda x, c=c: x[:, c], context) for c in (slice(3), slice(3, 7)))
    evidence = jax.tree.map(jnp.add, *map(inference.evidence, parts))
    expected = np.asarray(config.encode(state, context))
    np.testing.assert_allclose(inference.belief(evidence).z, expected, rtol=1e-4, atol=1e-5)
    plain = inference.plain()
    assert plain.fits(DIMS.observation, DIMS.action)
    assert plain.latent_dim == LATENT
    for task in range(5):
        belief = plain.begin()
        for s, a, r, s2 in zip(*(np.asarray(x[task]) for x in context[:4]), strict=True):
            belief.add((s, a, r[None], s2))
        np.testing.assert_allclose(belief.z, expected[task], rtol=1e-4, atol=1e-5)


@every_learner
def test_the_policy_without_jax_acts_as_the_learner_does(learner):
    config = small_config("focal", learner).learner
    state = random_state(lambda key: config.init(DIMS, LATENT, key))
    policy = config.policy(state)
    if policy is None:
        pytest.skip("it works in JAX only")
    draw = np.random.default_rng(0)
    s, z = (draw.normal(size=(9, n)).astype(np.float32) for n in (DIMS.observation, LATENT))
    plain = np.tanh(policy(np.concatenate([s, z], axis=-1)))
    np.testing.assert_allclose(plain, config.act(state, s, z), rtol=0, atol=1e-5)


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


@every_method
def test_every_setting_is_explained(method):
    """A docstring under each field of a configuration is its text in `--help`."""

    def check(config):
        kinds = [kind for kind in type(config).__mro__ if dataclasses.is_dataclass(kind)]
        source = "\n".join(map(inspect.getsource, kinds))
        lines = [line.strip() for line in source.splitlines()]
        for name in (field.name for field in dataclasses.fields(config)):
            place = next(i for i, line in enumerate(lines) if line.startswith(f"{name}:"))
            assert lines[place + 1].startswith('"""'), f"{type(config).__name__}.{name}"
            if hasattr(getattr(config, name), "__dataclass_fields__"):
                check(getattr(config, name))

    check(get_method(method)())


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


@every_learner
@every_method
def test_an_update_returns_the_types_it_was_given(method, learner):
    """Shapes, dtypes and weak types: otherwise the second call would compile a second program."""
    config = small_config(method, learner)
    batch = one_batch(config, learner)
    given = jax.eval_shape(lambda: init(config, DIMS))
    returned = jax.eval_shape(lambda s: update(config, s, batch, run_key(0))[0], given)
    for (path, before), after in zip(
        jax.tree_util.tree_leaves_with_path(given), jax.tree.leaves(returned), strict=True
    ):
        types = [(x.shape, x.dtype, x.weak_type) for x in (before, after)]
        assert types[0] == types[1], jax.tree_util.keystr(path)
        assert not before.weak_type, jax.tree_util.keystr(path)


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
    data = batches(10, config, "td3bc")
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


@every_method
def test_losses_fall_on_a_toy_batch(method):
    one = batches(1, program(method)[0], "td3bc")
    data = jax.tree.map(lambda x: np.repeat(x, 10, axis=0), one)
    state, metrics = fresh(method), []
    for _ in range(5):
        state, measured = run(method, state, data, 5)
        metrics.append(measured)
    first, last = ({n: v.mean() for n, v in m.items()} for m in (metrics[0], metrics[-1]))
    for name in {get_method(method).loss, "critic_loss"}:
        assert last[name] < 0.8 * first[name], name
    context = jax.tree.map(lambda x: x[0, :, 0], one.context)
    config = program(method)[0].method
    before, after = (config.encode(s.method, context) for s in (fresh(method), state))
    assert np.abs(after - before).max() > 1e-3, "the encoder has moved"
