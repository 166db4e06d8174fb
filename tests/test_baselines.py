"""CSRO, UNICORN, OfflinePEARL and ER-TRL's switches: equations, gradients, who hears of what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reference as ref
from ertrl import losses
from ertrl.errors import ConfigError
from ertrl.methods.encoder import EncoderConfig, GaussianEncoder
from ertrl.nets import Moments
from ertrl.types import Context, Dims
from toys import (
    DIMS,
    NO_SLOPE,
    assert_follows,
    assert_trees_equal,
    examples,
    method_setting,
    numbers,
    one_batch,
    random_state,
    small_config,
    table,
    trees_differ,
    with_fields,
)


def close(ours, twin, rtol=1e-4, atol=1e-4):
    np.testing.assert_allclose(np.asarray(ours), twin, rtol=rtol, atol=atol)


def dml(config, codes, task):
    flat, of_code = codes.reshape(-1, codes.shape[-1]), np.repeat(task, codes.shape[1])
    c = config.dml
    return ref.distance_metric(flat, of_code, c.positive_epsilon, c.negative_epsilon, c.beta)


# --- equations ---

club_bound, club_likelihood = jax.jit(losses.club_bound), jax.jit(losses.club_likelihood)


def test_club_by_hand():
    # Codes 1 and 3, both predicted as 0 with variance 2. Matched and unmatched pairs are the same
    # numbers in another order, so (s, a) is found to tell nothing.
    z = jnp.array([[[1.0], [3.0]]])
    flat, two, all_of_it = jnp.zeros((1, 2, 1)), jnp.full((1, 2, 1), 2.0), jnp.ones((1, 2))
    close(club_bound(z, flat, two, all_of_it), 0.0)
    # Predicted exactly: matched 0; unmatched per code (0 + 4) / 2 / 2 = 1.
    close(club_bound(z, z, two, all_of_it), 1.0)
    # (1 + 9) / 2 over twice the variance, plus half the log of the variance.
    close(club_likelihood(z, flat, two, all_of_it), 5 / 4 + 0.5 * np.log(2))
    # A masked slot is nobody's pair: one code alone has no unmatched partner.
    close(club_bound(z, flat, two, jnp.array([[1.0, 0.0]])), 0.0)
    close(club_likelihood(z, flat, two, jnp.array([[1.0, 0.0]])), 1 / 4 + 0.5 * np.log(2))


@examples
@given(
    numbers(3, 2, 6, 4),
    numbers(3, 2, 6, 4),
    numbers(3, 2, 6, 4, least=0.25, most=1.5),
    arrays(np.float32, (3, 2, 6), elements=st.sampled_from([0.0, 1.0])),
)
def test_club_in_linear_time_is_the_quadratic_one(z, mean, variance, mask):
    mask[..., 0] = 1
    close(club_bound(z, mean, variance, mask), ref.club_bound(z, mean, variance, mask))
    twin = ref.club_likelihood(z, mean, variance, mask)
    close(club_likelihood(z, mean, variance, mask), twin)


def test_club_forms_no_pairs():
    """Doubling the context doubles the work: no array of H x H numbers."""
    h = 64
    z = np.zeros((2, 1, h, 3), np.float32)
    program = jax.make_jaxpr(jax.grad(losses.club_bound))(z, z, z + 1, z[..., 0] + 1)
    sizes = [v.aval.size for e in program.jaxpr.eqns for v in e.outvars]
    assert max(sizes) <= z.size


@examples
@given(numbers(4, 2, 5, least=-20, most=20), st.permutations(range(5)))
def test_cross_entropy_is_its_twin(logits, order):
    task = np.array(order[:4], np.int32)
    close(losses.task_cross_entropy(logits, task), ref.cross_entropy(logits, task))


def test_prediction_error_by_hand():
    predicted, target = jnp.array([[1.0, 2.0], [0.0, 0.0]]), jnp.array([[0.0, 0.0], [0.0, 2.0]])
    close(losses.prediction_error(predicted, target), (1 + 4 + 4) / 4)


def test_kl_to_standard_normal_by_hand_and_by_integration():
    close(losses.kl_to_standard_normal(jnp.zeros(3), jnp.ones(3)), 0.0)
    # 1/2 (4 + 9 - 1 - log 4)
    close(losses.kl_to_standard_normal(jnp.array([3.0]), jnp.array([4.0])), 6 - np.log(2))
    mean, variance = np.array([0.3, -1.2, 2.0]), np.array([0.1, 1.0, 3.0])
    close(
        losses.kl_to_standard_normal(mean, variance),
        ref.kl_to_standard_normal(mean, variance),
        rtol=1e-5,
    )


@examples
@given(numbers(2, 3, 9, 2, least=-1, most=1), st.sampled_from([1e-3, 1e-2, 1.0]))
def test_entropy_per_state_is_its_twin(actions, ridge):
    ours = losses.entropy_per_state(jnp.asarray(actions), ridge)
    close(ours, ref.entropy_per_state(actions, ridge), 1e-3, 1e-3)


def test_entropy_per_state_does_not_see_differences_between_states():
    draw = np.random.default_rng(0).normal(size=(2, 3, 9, 2)).astype(np.float32)
    moved = draw + np.arange(3, dtype=np.float32)[None, :, None, None]
    close(losses.entropy_per_state(moved), losses.entropy_per_state(draw), 1e-3, 1e-3)
    pooled = [losses.entropy_of_actions(x.reshape(2, 27, 2)) for x in (draw, moved)]
    assert (pooled[1] > pooled[0] + 0.1).all()


@examples
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 99))
def test_moments_merge_batches_of_any_size(sizes, seed):
    draw = np.random.default_rng(seed)
    parts = [draw.normal(3, 2, size=(n, 2, 3)).astype(np.float32) for n in sizes]
    seen = Moments.of_nothing(3)
    for part in parts:
        seen = seen.with_rows(part)
    everything = np.concatenate(parts).reshape(-1, 3)
    assert seen.count == len(everything)
    close(seen.mean, everything.mean(axis=0))
    close(seen.variance, everything.var(axis=0), rtol=1e-3)
    close(seen.deviation(), everything.std(axis=0), rtol=1e-3)


def test_what_never_changes_is_not_divided_by_zero():
    seen = Moments.of_nothing(2).with_rows(jnp.array([[1.0, 5.0], [3.0, 5.0]]))
    np.testing.assert_array_equal(seen.deviation(), [1.0, 1.0])


# --- CSRO ---


def test_csro_follows_distance_metric_and_bound():
    config, program, state, batch = method_setting("csro", next_observation=True)
    new, metrics = program(state, batch, NO_SLOPE)
    context = batch.context

    def codes_of(encoder):
        inputs = (context.observation, context.action, context.reward[..., None])
        return np.tanh(ref.mlp(encoder.net, *inputs, context.next_observation))

    def likelihood(club):
        return ref.club_likelihood(codes_of(state.encoder.net), *ref.club_net(club, context), mask)

    mask = context.mask
    assert_follows(likelihood, state.club, new.club, config.club_learning_rate)
    np.testing.assert_allclose(metrics["club_loss"], likelihood(state.club.net), rtol=1e-9)

    def loss(encoder):  # q has moved before, and is a constant
        codes = codes_of(encoder)
        bound = ref.club_bound(codes, *ref.club_net(new.club.net, context), mask)
        return dml(config, codes.mean(axis=-2), batch.task) + config.club_weight * bound

    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)
    total = metrics["dml_loss"] + config.club_weight * metrics["club_bound"]
    np.testing.assert_allclose(total, loss(state.encoder.net), rtol=1e-9)
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_the_bound_reaches_csro_s_encoder_only():
    _, program, state, batch = method_setting("csro", next_observation=True)
    without, much = (program(state, batch, NO_SLOPE, club_weight=w)[0] for w in (0.0, 100.0))
    assert_trees_equal(without.club, much.club)
    assert trees_differ(without.encoder, much.encoder)


# --- UNICORN ---


@pytest.mark.parametrize("scale", ["changes", "states"])
def test_unicorn_follows_distance_metric_and_prediction(scale):
    config, program, state, batch = method_setting("unicorn", change_scale=scale)
    state = state._replace(seen=jax.tree.map(np.zeros_like, state.seen))
    new, metrics = program(state, batch, NO_SLOPE)
    s, a, r, s2, _ = batch.rl
    change = s2 - s
    rows = (0, 1)
    spread = s.std(axis=rows) if scale == "states" else change.std(axis=rows)
    target = np.concatenate([change / spread, ((r - r.mean()) / r.std())[..., None]], axis=-1)

    def error(nets):
        encoder, decoder = nets
        codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
        zs = ref.for_rows(codes[:, 0], s.shape[1])
        return np.mean((ref.mlp(decoder, s, a, zs) - target) ** 2), codes

    def loss(nets):
        prediction, codes = error(nets)
        return dml(config, codes, batch.task) + config.prediction_weight * prediction

    assert_follows(loss, state.nets, new.nets, config.encoder.learning_rate)
    np.testing.assert_allclose(metrics["prediction_error"], error(state.nets.net)[0], rtol=1e-9)
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_supervised_unicorn_follows_the_task_s_number_alone():
    config, program, state, batch = method_setting("unicorn", supervision="task")
    new, metrics = program(state, batch, NO_SLOPE)

    def loss(nets):
        encoder, classifier = nets
        codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
        return ref.cross_entropy(ref.mlp(classifier, codes), batch.task)

    assert_follows(loss, state.nets, new.nets, config.encoder.learning_rate)
    np.testing.assert_allclose(metrics["cross_entropy"], loss(state.nets.net), rtol=1e-9)
    for values in ({"beta": 9.0}, {"prediction_weight": 9.0}):
        assert_trees_equal(new.nets, program(state, batch, NO_SLOPE, **values)[0].nets)


def test_supervised_unicorn_must_know_how_many_tasks_there_are():
    config = with_fields(small_config("unicorn", "td3bc").method, supervision="task")
    with pytest.raises(ConfigError, match="number of training tasks"):
        config.init(Dims(3, 2), jax.random.key(0))


# --- OfflinePEARL ---


def test_offline_pearl_s_encoder_follows_the_critic_s_slope():
    config, program, state, batch = method_setting("offline-pearl")
    slope = np.random.default_rng(0).normal(size=NO_SLOPE.shape)
    new, _ = program(state, batch, slope)

    def loss(encoder):
        codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
        return (codes[:, 0] * slope).sum()

    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)
    # Without a slope there is nothing to learn from.
    unmoved, _ = program(state, batch, NO_SLOPE)
    assert_trees_equal(unmoved.encoder.net, state.encoder.net)


def belief(encoder, context, row):
    """The first context's Gaussian of one task, factor by factor."""
    inputs = (context.observation, context.action, context.reward[..., None])
    out = ref.mlp(encoder.net, *(x[row, 0] for x in inputs))
    mean, raw = np.split(out, 2, axis=-1)
    return ref.product_of_gaussians(mean, np.log1p(np.exp(raw)))


def test_probabilistic_pearl_samples_its_belief_and_keeps_it_near_the_prior():
    config, program, state, batch = method_setting("offline-pearl", probabilistic=True)
    slope = np.random.default_rng(0).normal(size=NO_SLOPE.shape)
    new, metrics = program(state, batch, slope)
    noise = table(NO_SLOPE.shape, "normal")

    def beliefs(encoder):
        return [belief(encoder, batch.context, row) for row in range(len(slope))]

    def kl(encoder):
        return sum(
            0.5 * (v + m**2 - 1 - np.log(v)).sum() for m, v in beliefs(encoder)
        )  # its own test integrates it

    def loss(encoder):
        z = np.stack(
            [m + np.sqrt(v) * n for (m, v), n in zip(beliefs(encoder), noise, strict=True)]
        )
        return (z * slope).sum() + config.kl_weight * kl(encoder)

    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)
    np.testing.assert_allclose(metrics["belief_kl"], kl(state.encoder.net) / len(slope), rtol=1e-6)


def test_the_belief_is_a_product_and_the_prior_where_nothing_is_known():
    config = EncoderConfig(latent_dim=2, hidden=(8,))
    encoder = random_state(lambda key: GaussianEncoder(config, DIMS, key))
    draw = np.random.default_rng(0)
    columns = [draw.normal(size=(4, 6, n)).astype(np.float32) for n in (3, 2, 1, 3)]
    mask = np.ones((4, 6), np.float32)
    mask[1, 2:] = 0
    mask[2] = 0
    context = Context(columns[0], columns[1], columns[2][..., 0], columns[3], mask)
    mean, variance = encoder.posterior(context)
    out = ref.mlp(encoder.net, *columns[:3])
    for row in (0, 1, 3):
        known = mask[row] > 0
        m, raw = np.split(out[row][known], 2, axis=-1)
        expected = ref.product_of_gaussians(m, np.log1p(np.exp(raw)))
        close(mean[row], expected[0])
        close(variance[row], expected[1])
    np.testing.assert_array_equal(mean[2], 0)
    np.testing.assert_array_equal(variance[2], 1)


def test_training_conditions_on_the_sample_that_the_encoder_is_updated_for():
    """The z of the learner and of the encoder's step come from the same noise."""
    config = with_fields(small_config("offline-pearl", "td3bc").method, probabilistic=True)
    state = random_state(config.init, DIMS)
    context = one_batch(small_config("focal", "td3bc")).context.first()
    key, other = jax.random.split(jax.random.key(0))
    z = config.draw(state, context, key)
    np.testing.assert_array_equal(z, config.draw(state, context, key))
    assert trees_differ(z, config.draw(state, context, other))
    assert trees_differ(z, config.encode(state, context))


# --- ER-TRL's switches ---


def test_per_state_entropy_spreads_draws_within_few_states():
    values = {"rounds": 1, "entropy": "per-state", "draws_per_state": 4}
    config, program, state, batch = method_setting("er-trl", **values)
    new, metrics = program(state, batch, NO_SLOPE)
    s = batch.rl.observation[:, :3]  # 12 rows, 4 draws each: as many generated actions as before

    def mi(encoder):
        codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
        rows = np.repeat(s, 4, axis=1)
        noise = table((*rows.shape[:2], config.gan.noise_dim), "normal")
        zs = ref.for_rows(codes[:, 0], rows.shape[1])
        fake = np.tanh(ref.mlp(new.gan.generator.net, rows, zs, noise))
        actions = fake.reshape(*s.shape[:2], 4, -1)
        return -ref.entropy_per_state(actions, config.ridge).mean()

    def loss(encoder):
        codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
        return dml(config, codes, batch.task) + config.mi_weight * mi(encoder)

    np.testing.assert_allclose(metrics["mi_loss"], mi(state.encoder.net), rtol=1e-9)
    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)


def test_too_few_draws_per_state_are_refused():
    config = with_fields(
        small_config("er-trl", "td3bc").method, entropy="per-state", draws_per_state=2
    )
    with pytest.raises(ConfigError, match="needs at least 3"):
        config.init(DIMS, jax.random.key(0))


def test_er_trl_without_dml_follows_the_entropy_alone():
    _, program, state, batch = method_setting("er-trl", rounds=1, use_dml=False)
    new, metrics = program(state, batch, NO_SLOPE)
    assert metrics["dml_loss"] > 0, "it is still watched"
    assert_trees_equal(new, program(state, batch, NO_SLOPE, beta=50.0)[0])
    still, _ = program(state, batch, NO_SLOPE, mi_weight=0.0)
    assert_trees_equal(still.encoder.net, state.encoder.net)
    _, with_dml, *_ = method_setting("er-trl", rounds=1)
    assert trees_differ(new.encoder, with_dml(state, batch, NO_SLOPE)[0].encoder)
