"""DORA, SPC, GENTLE and the encoder's schedule: equations, gradients, who hears of what."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference as ref
from ertrl import losses
from ertrl.config import replace_from_json, to_json
from ertrl.contracts.small import demand_same_types
from ertrl.data import Sampler
from ertrl.data.sampler import SamplingConfig
from ertrl.errors import ConfigError
from ertrl.methods import get_method
from ertrl.methods.prediction import columns, outcome, targets
from ertrl.nets import Moments
from ertrl.training.config import Schedule, TrainConfig
from ertrl.training.update import blank_batch, init, make_chunk, run_key, update
from ertrl.types import Context, Dims, Transitions
from toys import (
    DIMS,
    NO_SLOPE,
    SAMPLING,
    assert_follows,
    assert_trees_equal,
    batches,
    double,
    examples,
    leaves,
    method_setting,
    numbers,
    one_batch,
    random_state,
    small_config,
    table,
    trees_differ,
    with_fields,
    write_dataset,
)


def codes_of(encoder, batch):
    return ref.encode(encoder.net, batch.context, encoder.next_observation)


# --- equations ---


def info_nce(z, task, prototypes, radius):
    return losses.task_cross_entropy(losses.prototype_logits(z, prototypes, radius), task)


def test_info_nce_by_hand():
    # At distance 0 and log 3 of its two prototypes: shares 3/4 and 1/4.
    prototypes = jnp.array([[0.0], [np.log(3.0)]])
    found = info_nce(jnp.zeros((1, 1, 1)), jnp.array([0]), prototypes, 1.0)
    np.testing.assert_allclose(found, -np.log(0.75), rtol=1e-3)
    # Far prototypes count for less, the smaller the radius is.
    assert info_nce(jnp.zeros((1, 1, 1)), jnp.array([0]), prototypes, 0.1) < 1e-4


@examples
@given(numbers(3, 2, 4), numbers(5, 4), st.sampled_from([0.3, 1.0, 100.0]))
def test_info_nce_is_its_twin(codes, prototypes, radius):
    task = np.array([4, 0, 2])
    twin = ref.info_nce(codes, task, prototypes, radius)
    np.testing.assert_allclose(info_nce(codes, task, prototypes, radius), twin, 1e-3, 1e-5)


def test_info_nce_has_a_slope_where_a_code_is_its_prototype():
    slope = jax.grad(info_nce)(jnp.zeros((1, 1, 2)), jnp.array([0]), jnp.zeros((3, 2)), 1.0)
    assert np.isfinite(slope).all()


def test_an_outcome_is_what_its_target_says():
    draw = np.random.default_rng(0)
    s, s2 = draw.normal(size=(2, 4, 6, 3))
    rl = Transitions(s, np.zeros((4, 6, 2)), draw.normal(3, 2, size=(4, 6)), s2, np.zeros((4, 6)))
    seen = Moments.of_nothing(7).with_rows(columns(rl))
    next_state, reward = outcome(seen, rl.observation, targets(seen, rl))
    np.testing.assert_allclose(next_state, s2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(reward, rl.reward, rtol=1e-4, atol=1e-5)


# --- DORA ---


def test_dora_follows_info_nce_and_its_debiasing():
    config, program, state, batch = method_setting("dora", next_observation=True)
    new, metrics = program(state, batch, NO_SLOPE)
    before = codes_of(state.encoder.net, batch)
    prototypes = ref.moved_prototypes(state.prototypes, before, batch.task, config.prototype_rate)
    np.testing.assert_allclose(new.prototypes, prototypes, rtol=1e-9)

    def loss(encoder):  # prototypes have moved before, and are constants
        codes = codes_of(encoder, batch)
        contrast = ref.info_nce(codes, batch.task, prototypes, config.radius)
        return contrast + config.debias_weight * np.mean(codes**2)

    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)
    total = metrics["info_nce"] + config.debias_weight * metrics["debias_loss"]
    np.testing.assert_allclose(total, loss(state.encoder.net), rtol=1e-9)
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_debiasing_shortens_codes_and_leaves_prototypes_alone():
    _, program, state, batch = method_setting("dora", next_observation=True)
    without, much = (program(state, batch, NO_SLOPE, debias_weight=w)[0] for w in (0.0, 100.0))
    np.testing.assert_array_equal(without.prototypes, much.prototypes)
    sizes = [np.square(codes_of(s.encoder.net, batch)).mean() for s in (state, much)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("method", ["dora", "spc", "gentle"])
def test_how_many_tasks_there_are_must_be_known(method):
    with pytest.raises(ConfigError, match="number of training tasks"):
        get_method(method)().init(Dims(3, 2), jax.random.key(0))


# --- SPC ---


def test_spc_follows_info_nce_and_what_its_model_predicts():
    config, program, state, batch = method_setting("spc", state_size=6)
    assert 0 < batch.windows.mask.mean() < 1
    new, metrics = program(state, batch, NO_SLOPE)
    before = codes_of(state.nets.net[0], batch)
    prototypes = ref.moved_prototypes(state.prototypes, before, batch.task, config.prototype_rate)
    np.testing.assert_allclose(new.prototypes, prototypes, rtol=1e-9)

    def parts(nets):
        encoder, world = nets
        codes = codes_of(encoder, batch)
        errors = ref.world_errors(world, state.target, batch.windows, codes[:, 0], config.rho)
        return ref.info_nce(codes, batch.task, prototypes, config.radius), *errors

    def loss(nets):
        contrast, consistency, reward = parts(nets)
        weighted = config.consistency_weight * consistency + config.reward_weight * reward
        return contrast + weighted

    assert_follows(loss, state.nets, new.nets, config.encoder.learning_rate)
    names = ("info_nce", "consistency_loss", "reward_loss")
    np.testing.assert_allclose([metrics[n] for n in names], parts(state.nets.net), rtol=1e-9)
    # The target follows the model's latent state from afar.
    assert_trees_equal(
        new.target,
        jax.tree.map(
            lambda t, s: t + config.target_rate * (s - t), state.target, new.nets.net[1].state
        ),
    )
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_spc_s_model_teaches_its_encoder():
    _, program, state, batch = method_setting("spc", state_size=6)
    quiet = {"consistency_weight": 0.0, "reward_weight": 0.0}
    base, _ = program(state, batch, NO_SLOPE, **quiet)
    for name in quiet:
        other, _ = program(state, batch, NO_SLOPE, **quiet | {name: 10.0})
        assert trees_differ(base.nets.net[0], other.nets.net[0]), name
        np.testing.assert_array_equal(base.prototypes, other.prototypes)


def test_what_is_behind_an_episode_s_end_does_not_count():
    _, program, state, batch = method_setting("spc", state_size=6)
    behind = batch.windows.mask == 0
    junk = Context(
        *(np.where(behind.reshape(*behind.shape, *(1,) * (x.ndim - 3)), 7.0, x)
          for x in batch.windows[:4]),
        batch.windows.mask,
    )  # fmt: skip
    assert trees_differ(junk, batch.windows)
    base, other = (
        program(state, batch._replace(windows=w), NO_SLOPE)[0] for w in (batch.windows, junk)
    )
    for a, b in zip(jax.tree.leaves(base), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# --- windows ---


def test_windows_go_on_from_the_rl_batch_to_the_episode_s_end(tmp_path):
    dataset = write_dataset(tmp_path / "toy")
    sampling = SamplingConfig(meta_batch=3, batch_size=40, context_size=10, contexts_per_task=2)
    plain = Sampler(dataset, sampling, 2, seed=0).batches(0, 5)
    batch = Sampler(dataset, sampling, 2, seed=0, window=3).batches(0, 5)
    windows = batch.windows
    assert windows.observation.shape == (5, 3, 13, 3, DIMS.observation), "40 // 3 windows"
    # Whoever asks for windows draws nothing else for it.
    assert plain.windows is None
    assert_trees_equal(plain, batch._replace(windows=None))
    for of_window, of_rl in zip(windows[:4], batch.rl[:4], strict=True):
        np.testing.assert_array_equal(of_window[:, :, :, 0], of_rl[:, :, :13])
    # Episodes hold steps 0, 1 and 10 to 13; a window keeps to its episode.
    inside, place = windows.mask == 1, windows.observation[..., 1]
    first = place[..., :1]
    ends = np.where(first < 10, 2, 14)
    np.testing.assert_array_equal(inside, first + np.arange(3) < ends)
    np.testing.assert_array_equal(place[inside], (first + np.arange(3))[inside])
    np.testing.assert_array_equal(windows.next_observation[..., 1][inside], place[inside] + 1)
    np.testing.assert_array_equal(windows.reward[inside], place[inside] % 10)
    assert windows.observation.max() < 99
    assert windows.next_observation.max() < 99
    assert {float(x) for x in first[~inside[..., -1]].ravel()} == {0.0, 1.0, 12.0, 13.0}


def test_batches_with_windows_depend_on_their_number_only(tmp_path):
    dataset = write_dataset(tmp_path / "toy")
    sampler = Sampler(dataset, SAMPLING, 1, seed=3, window=4)
    together = sampler.batches(5, 4)
    for i in range(4):
        here = jax.tree.map(lambda x, i=i: x[i : i + 1], together)
        assert_trees_equal(here, sampler.batches(5 + i, 1))


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(encoder_updates=3)])
def test_the_memory_estimate_knows_what_a_batch_holds(schedule, tmp_path):
    dataset = write_dataset(tmp_path / "toy")
    config = with_fields(small_config("spc", "brac"), encoder_updates=schedule.encoder_updates)
    extra = config.learner.extra_batches
    sampler = Sampler(dataset, config.drawn, extra, 0, config.method.window)
    drawn = jax.tree.map(lambda x: (x[0].shape, x.dtype), sampler.batches(0, 1))
    blank = jax.tree.map(lambda x: (x.shape, x.dtype), blank_batch(config, DIMS))
    assert jax.tree.leaves(drawn) == jax.tree.leaves(blank)


# --- GENTLE ---


def mixed_rows(config, model, seen, batch, rows):
    """The twin: row by row, another task's (s, a) with this task's answer, where noise says so."""
    mean, deviation = seen
    n = DIMS.observation
    shape, tasks = rows.reward.shape, len(batch.task)
    noise = np.broadcast_to(table((*shape[:2], *(1 for _ in shape[2:])), "uniform"), shape)
    made = [np.array(x) for x in rows]
    for at in np.ndindex(*rows.reward.shape):
        if noise[at] >= config.pseudo_share:
            continue
        other = (at[0] + 1 + int(noise[at] / config.pseudo_share * (tasks - 1))) % tasks
        s, a = (x[(other, *at[1:])] for x in rows[:2])
        y = ref.mlp(model, s, a, np.eye(DIMS.training_tasks)[batch.task[at[0]]])
        answer = s + y[:n] * deviation[n : 2 * n], y[n] * deviation[-1] + mean[-1]
        made[0][at], made[1][at], made[3][at], made[2][at] = s, a, *answer
    return type(rows)(*made)


def test_gentle_fits_its_model_and_follows_the_prediction_of_mixed_transitions():
    config, program, state, batch = method_setting("gentle", next_observation=True)
    state = state._replace(seen=jax.tree.map(np.zeros_like, state.seen))
    new, metrics = program(state, batch, NO_SLOPE)
    rl, number = batch.rl, np.eye(DIMS.training_tasks)[batch.task]
    rows = np.concatenate([rl[0], rl[3] - rl[0], rl[2][..., None]], axis=-1)
    moments = rows.mean(axis=(0, 1)), rows.std(axis=(0, 1))
    n = DIMS.observation

    def scaled(rl):
        r = (rl.reward - moments[0][-1]) / moments[1][-1]
        return np.concatenate([(rl[3] - rl[0]) / moments[1][n : 2 * n], r[..., None]], axis=-1)

    def fit(model):
        guess = ref.mlp(model, rl.observation, rl.action, ref.for_rows(number, rl.reward.shape[1]))
        return np.mean((guess - scaled(rl)) ** 2)

    assert_follows(fit, state.model, new.model, config.encoder.learning_rate)
    np.testing.assert_allclose(metrics["model_error"], fit(state.model.net), rtol=1e-9)
    context, mixed = (
        mixed_rows(config, new.model.net, moments, batch, x) for x in (batch.context, rl)
    )
    assert trees_differ(mixed, rl)

    def predicted(nets):
        encoder, decoder = nets
        z = ref.encode(encoder.net, context, encoder.next_observation)[:, 0]
        return ref.mlp(decoder, *mixed[:2], ref.for_rows(z, rl.reward.shape[1]))

    def loss(nets):  # the model has moved before, and is a constant
        return np.mean((predicted(nets) - scaled(mixed)) ** 2)

    assert_follows(loss, state.nets, new.nets, config.encoder.learning_rate)
    np.testing.assert_allclose(metrics["prediction_error"], loss(state.nets.net), rtol=1e-9)
    guess, r = predicted(state.nets.net)[..., -1], scaled(mixed)[..., -1]
    share = np.mean((guess - r) ** 2) / np.var(r)
    np.testing.assert_allclose(metrics["unexplained_reward"], share, rtol=1e-9)
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_gentle_without_pseudo_transitions_is_unicorn_s_prediction():
    _, gentle, state, batch = method_setting("gentle")
    _, unicorn, _, _ = method_setting("unicorn")
    nets = state.nets._replace(adam=state.nets.adam)
    other = double(random_state(small_config("unicorn", "td3bc").method.init, DIMS))
    _, alone = gentle(state, batch, NO_SLOPE, pseudo_share=0.0)
    _, beside = unicorn(other._replace(nets=nets, seen=state.seen), batch, NO_SLOPE)
    np.testing.assert_allclose(alone["prediction_error"], beside["prediction_error"], rtol=1e-12)


def test_pseudo_transitions_come_from_every_other_task_alike():
    config = small_config("gentle", "td3bc").method
    model = random_state(config.init, DIMS).model.net
    tasks, count = 5, 4000
    s = np.broadcast_to(np.arange(tasks)[:, None, None], (tasks, count, 3)).astype(np.float32)
    zero = np.zeros((tasks, count), np.float32)
    rows = Transitions(s, np.zeros((tasks, count, 2), np.float32), zero, s, zero)
    seen = Moments(*(np.ones(shape, np.float32) for shape in ((), 7, 7)))
    number = np.eye(tasks, DIMS.training_tasks, dtype=np.float32)
    made = config.mixed(model, seen, number, rows, jax.random.key(0))
    for task in range(tasks):
        share = np.bincount(np.asarray(made.observation[task, :, 0], int), minlength=tasks) / count
        expected = np.where(np.arange(tasks) == task, 0.5, 0.125)
        np.testing.assert_allclose(share, expected, atol=0.03)


# --- the encoder's schedule ---


def trained(schedule, steps=6, method="focal"):
    """States after each step, and metrics."""
    config = replace_from_json(small_config(method, "td3bc"), {"schedule": to_json(schedule)})
    config.validate()
    state, states, metrics = jax.jit(lambda: init(config, DIMS))(), [], []
    chunk, data = make_chunk(config), batches(steps, config)
    for i in range(steps):
        step = jax.tree.map(lambda x, i=i: x[i : i + 1], data)
        state, measured = chunk(state, step, run_key(0))
        states.append(state)
        metrics.append({k: float(v[0]) for k, v in measured.items()})
    return states, metrics


def moves(states, part):
    """In which steps after the first this part of the state changes."""
    return [trees_differ(getattr(a, part), getattr(b, part)) for a, b in pairwise(states)]


def test_the_encoder_waits_for_its_turn_and_the_policy_does_not():
    states, metrics = trained(Schedule(policy_updates=3))
    assert moves(states, "method") == [False, False, True, False, False]
    assert all(moves(states, "learner"))
    assert all(np.isfinite(list(m.values())).all() for m in metrics), "it is still measured"


def test_the_encoder_stops_for_good():
    states, _ = trained(Schedule(stop=3))
    assert moves(states, "method") == [True, True, False, False, False]
    assert all(moves(states, "learner"))


def test_several_encoder_updates_of_a_step_have_contexts_of_their_own():
    config = with_fields(small_config("focal", "td3bc"), encoder_updates=3)
    batch = one_batch(config)
    assert batch.context.reward.shape[1] == 3 * SAMPLING.contexts_per_task
    state = jax.jit(lambda: init(config, DIMS))()
    new, metrics = jax.jit(lambda s, b: update(config, s, b, run_key(0)))(state, batch)
    method, found = state.method, []
    for i in range(3):
        own = Context(*(x[:, 2 * i : 2 * i + 2] for x in batch.context))
        method, measured = config.method.update(
            method, batch._replace(context=own), NO_SLOPE, jax.random.key(0)
        )
        found.append(measured["dml_loss"])
    # Adam magnifies rounding where a gradient is near 0; a step's size is 3e-4.
    for a, b in zip(jax.tree.leaves(method), jax.tree.leaves(new.method), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=3e-5)
    np.testing.assert_allclose(metrics["dml_loss"], np.mean(found), rtol=1e-4)


def test_a_schedule_keeps_types():
    """So that one program serves a whole run."""
    config = with_fields(small_config("spc", "td3bc"), encoder_updates=2, policy_updates=2, stop=9)
    batch = one_batch(config)
    given = jax.eval_shape(lambda: init(config, DIMS))
    back = jax.eval_shape(lambda s: update(config, s, batch, run_key(0))[0], given)
    demand_same_types(given, back)


def test_the_usual_schedule_is_no_part_of_a_run_s_name():
    config = small_config("focal", "td3bc")
    assert "schedule" not in to_json(config)
    other = with_fields(config, stop=5)
    assert to_json(other)["schedule"] == {"stop": 5}, "what differs, and no more"
    blank = TrainConfig(type(config.method)(), type(config.learner)())
    assert replace_from_json(blank, to_json(other)) == other


def test_a_critic_s_gradient_is_not_followed_twice():
    with pytest.raises(ConfigError, match=r"offline-pearl.*schedule.encoder_updates is 2"):
        trained(Schedule(encoder_updates=2), method="offline-pearl")
    assert leaves(trained(Schedule(stop=2), steps=3, method="offline-pearl")[0][-1].method)
