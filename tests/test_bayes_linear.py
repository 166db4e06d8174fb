"""Bayes-linear: the closed form against least squares, and contexts that try to break it."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference as ref
from ertrl.methods.bayes_linear import BayesLinear, columns, scaled
from ertrl.methods.encoder import EncoderConfig
from ertrl.methods.posterior import residual_variance, solve_positive
from ertrl.methods.prior import Prior
from ertrl.types import Context, Dims, TaskBatch

DIMS = Dims(observation=3, action=2)
KINDS = {"reward": False, "dynamics": True}
kinds = pytest.mark.parametrize("kind", KINDS)


def method(kind, **settings):
    encoder = EncoderConfig(latent_dim=4, hidden=(16,), next_observation=KINDS[kind])
    return BayesLinear(encoder=encoder, **settings)


def context(*shape, seed=0, scale=1.0):
    draw = np.random.default_rng(seed)
    s, a, s2 = (draw.normal(size=(*shape, n)) for n in (3, 2, 3))
    arrays = s, np.tanh(a), scale * draw.normal(size=shape), s2
    return Context.of([x.astype(np.float32) for x in arrays])


@cache
def program(config, name):
    """Compiled once for all tests: one operation after the other takes several times as long."""
    return jax.jit(getattr(config, name))


def encode(config, state, one):
    return program(config, "encode")(state, one)


@cache
def trained(kind, **settings):
    """Settings and a state whose features have left their start near zero."""
    config = method(kind, **settings)
    state = config.init(DIMS, jax.random.key(0))
    for i in range(30):
        batch = TaskBatch(np.arange(5), context(5, 2, 20, seed=i), None, None)  # ty: ignore
        state, _ = program(config, "update")(state, batch, None, jax.random.key(i))
    if config.prior:  # noise has no tasks to find
        z = np.random.default_rng(0).normal(0.5, [1.0, 0.5, 0.2, 0.1], (40, 4))
        z[:, 1] += z[:, 0]
        mean, covariance = z.mean(axis=0), np.cov(z.T, bias=True)
        root = np.linalg.cholesky(config.prior * covariance + 0.01 * np.eye(4))
        state = state._replace(prior=Prior(*map(jnp.asarray, (mean, covariance, root))))
    return config, state


def prior_of(config, state):
    """Mean and covariance of w before the first transition."""
    if not config.prior:
        return np.zeros(4), np.eye(4)
    mean, covariance, _ = (np.asarray(x, float) for x in state.prior)
    return mean, config.prior * covariance + 0.01 * np.eye(4)


def by_least_squares(config, state, one):
    """The posterior's mean in NumPy, in double precision: ridge regression on augmented rows."""
    seen = state.seen
    spread = np.sqrt(np.asarray(seen.variance, float))
    rows = (np.asarray(columns(one), float) - seen.mean) / spread
    targets = 4 if config.encoder.next_observation else 1
    out = ref.mlp(state.features.net.net, rows[:, :-targets]).reshape(len(rows), targets, 5)
    phi, rest = np.tanh(out[..., :4]), rows[:, -targets:] - out[..., 4]
    mean, covariance = prior_of(config, state)
    left = np.square(rest - phi @ mean).mean(axis=1)
    counts = np.minimum(1, config.trust / left) if config.trust else np.ones(len(rows))
    phi, rest = np.sqrt(counts)[:, None, None] * phi, np.sqrt(counts)[:, None] * rest
    grown = 1 + counts.sum() / config.at_most if config.at_most else 1
    noise = config.adapting_noise or config.noise
    believed = noise * np.sqrt(grown) * np.linalg.inv(np.linalg.cholesky(covariance))
    a = np.concatenate([phi.reshape(-1, 4), believed])
    b = np.concatenate([rest.reshape(-1), believed @ mean])
    return np.linalg.lstsq(a, b, rcond=None)[0]


@kinds
@pytest.mark.parametrize(
    "settings",
    [
        {"noise": 0.3},
        {"noise": 1.0},
        {"trust": 0.8},
        {"noise": 0.3, "at_most": 5.0},
        {"trust": 0.8, "at_most": 5.0},
        {"prior": 2.0},
        {"noise": 0.3, "trust": 0.8, "at_most": 5.0, "prior": 0.5},
        {"adapting_noise": 0.3},
        {"adapting_noise": 0.3, "trust": 0.8, "at_most": 5.0, "prior": 0.5},
    ],
)
def test_z_is_the_solution_of_regularised_least_squares(kind, settings):
    config, state = trained(kind, clip=100.0, **settings)
    one = context(3, 40, seed=9, scale=3.0)
    z = encode(config, state, one)
    for i in range(3):
        expected = by_least_squares(config, state, Context(*(x[i] for x in one)))
        np.testing.assert_allclose(z[i], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 20])
def test_elimination_solves_as_scipy_does_and_so_do_its_gradients(size):
    rows = jax.random.normal(jax.random.key(size), (3, 2, 60, size))
    a = jnp.einsum("...mi,...mj->...ij", rows, rows) + jnp.eye(size)
    b = jax.random.normal(jax.random.key(1), (3, 2, size))

    def plain(a, b):
        return jnp.linalg.solve(a, b[..., None])[..., 0]

    def found(solve):
        """The solution, and the gradients of a function of it."""
        gradients = jax.grad(lambda a, b: jnp.sin(solve(a, b)).sum(), argnums=(0, 1))
        return jax.jit(lambda: (solve(a, b), *gradients(a, b)))()

    (ours, *our_gradients), (theirs, *their_gradients) = map(found, (solve_positive, plain))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    for one, other in zip(our_gradients, their_gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-5)


@kinds
def test_the_loss_is_the_error_on_the_other_context(kind):
    config, state = trained(kind)
    batch = TaskBatch(np.arange(5), context(5, 2, 20, seed=99), None, None)  # ty: ignore
    _, metrics = program(config, "update")(state, batch, None, jax.random.key(0))
    seen = state.seen.with_rows(columns(batch.context))
    state = state._replace(seen=seen)
    targets = 4 if KINDS[kind] else 1
    rows = (np.asarray(columns(batch.context), float) - seen.mean) / np.sqrt(seen.variance)
    out = ref.mlp(state.features.net.net, rows[..., :-targets]).reshape(5, 2, 20, targets, 5)
    z = np.asarray(encode(config, state, batch.context))[:, ::-1]  # each predicts the other
    predicted = out[..., 4] + np.einsum("tchmz,tcz->tchm", np.tanh(out[..., :4]), z)
    error = np.square(rows[..., -targets:] - predicted).mean()
    np.testing.assert_allclose(metrics["prediction_error"], error, rtol=1e-3)


def test_the_only_context_of_a_task_is_cut_in_halves():
    """Its rows must not be predicted from themselves: `--variant released` has one context."""
    config, state = trained("reward")
    two = context(5, 2, 10, seed=9)
    one = Context(*(x.reshape(5, 1, 20, *x.shape[3:]) for x in two))
    found = [
        config.update(state, TaskBatch(np.arange(5), c, None, None), None, jax.random.key(0))  # ty: ignore
        for c in (two, one)
    ]
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_array_equal(a, b)


@kinds
def test_odd_contexts_have_a_finite_bounded_code(kind):
    config, state = trained(kind)
    one = context(1, 1)
    again = Context(*(np.repeat(x, 500, axis=1) for x in one))
    constant = context(1, 50)._replace(reward=np.full((1, 50), 7, np.float32))
    huge = Context(*(x * 1e6 for x in context(1, 50)))._replace(mask=np.ones((1, 50), np.float32))
    for odd in (one, again, constant, huge):
        z = np.asarray(encode(config, state, odd))
        assert np.isfinite(z).all()
        assert (np.abs(z) <= config.clip).all()


@kinds
def test_nothing_known_is_the_prior_and_more_moves_z_away_from_it(kind):
    config, state = trained(kind)
    known = context(1, 200, scale=3.0)
    sizes = []
    for rows in (0, 1, 200):
        mask = (np.arange(200) < rows).astype(np.float32)[None]
        sizes.append(float(np.linalg.norm(encode(config, state, known._replace(mask=mask)))))
    assert sizes[0] == 0
    assert sizes[0] < sizes[1]


def test_who_visited_what_says_nothing_if_the_outcome_is_as_expected():
    """Rewards that the baseline explains leave z at the prior, wherever they were collected."""
    config, state = trained("reward")
    for seed in range(3):
        one = context(1, 50, seed=seed)
        rows = scaled(state.seen, one)
        _, rest = state.features.net(rows)
        spread = np.sqrt(np.asarray(state.seen.variance))[-1]
        explained = one._replace(reward=one.reward - np.asarray(rest) * spread)
        np.testing.assert_allclose(encode(config, state, explained), 0, atol=1e-4)


def test_a_transition_like_none_before_hardly_moves_z_if_it_is_not_trusted():
    one = context(1, 40, seed=3)
    fallen = one._replace(next_observation=one.next_observation.copy())
    fallen.next_observation[0, 0] = 30.0
    moved = {}
    for trust in (0.0, 1.0):
        config, state = trained("dynamics", trust=trust)
        usual, disturbed = (encode(config, state, c) for c in (one, fallen))
        moved[trust] = float(np.abs(usual - disturbed).max())
    assert moved[1.0] < 0.2 * moved[0.0]


@kinds
def test_a_context_is_worth_so_many_transitions_however_often_it_is_repeated(kind):
    config, state = trained(kind, at_most=5.0)
    one = context(1, 20, seed=4)

    def learned(times, **settings):
        """How far the covariance has shrunk from the prior's."""
        many = Context(*(np.repeat(x, times, axis=1) for x in one))
        inference = dataclasses.replace(config, **settings).inference(state)
        return 4 - float(np.trace(inference.belief(inference.evidence(many)).covariance[0]))

    assert 0 < learned(100) < 1.3 * learned(1), "20 of at most 5 count as 4, 2000 as 5"
    assert learned(100, at_most=0.0) > 2 * learned(1, at_most=0.0)


@pytest.mark.parametrize("setting", ["trust", "at_most", "prior", "adapting_noise"])
def test_training_trusts_its_data(setting):
    (plain, state), (wary, same) = (trained("dynamics", **{setting: t}) for t in (0.0, 0.1))
    jax.tree.map(np.testing.assert_array_equal, state, same._replace(prior=None))
    one = context(3, 20, seed=1, scale=5.0)
    drawn = wary.draw(same, one, jax.random.key(0))
    np.testing.assert_allclose(drawn, plain.encode(state, one), atol=1e-6)
    assert np.abs(drawn - wary.encode(same, one)).max() > 0.01


def test_the_prior_is_a_slow_average_over_training_contexts():
    prior, mean, squares = Prior.of_nothing(2, 3.0), np.zeros(2), np.eye(2)
    for seed in range(400):
        z = np.random.default_rng(seed).normal([1.0, -2.0], [0.5, 2.0], size=(8, 2, 2))
        prior = prior.with_codes(jnp.asarray(z, jnp.float32), 3.0)
        rows = z.reshape(16, 2)
        mean += 0.01 * (rows.mean(axis=0) - mean)
        squares += 0.01 * (np.einsum("ni,nj->ij", rows, rows) / 16 - squares)
    covariance = squares - np.outer(mean, mean)
    np.testing.assert_allclose(prior.mean, mean, rtol=1e-4)
    np.testing.assert_allclose(prior.covariance, covariance, rtol=1e-3, atol=1e-4)
    found = prior.root @ prior.root.T
    np.testing.assert_allclose(found, 3 * covariance + 0.01 * np.eye(2), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(prior.mean, [1.0, -2.0], atol=0.1)


@kinds
def test_before_the_first_transition_the_prior_is_believed(kind):
    config, state = trained(kind, prior=2.0)
    nothing = Context(*(np.zeros_like(x) for x in context(1, 1)))
    inference = config.inference(state)
    belief = inference.belief(inference.evidence(nothing))
    mean, covariance = prior_of(config, state)
    np.testing.assert_allclose(belief.z[0], mean, atol=1e-5)
    np.testing.assert_allclose(config.z0(state), mean, atol=1e-5)
    np.testing.assert_allclose(belief.covariance[0], covariance, rtol=1e-3, atol=1e-4)


def test_what_training_tasks_do_not_differ_in_is_not_suspected():
    config, state = trained("reward", prior=1.0)
    # Of four weights only the first ever differed between tasks.
    root = jnp.sqrt(jnp.diag(jnp.array([1.0, 0.01, 0.01, 0.01])))
    alike = Prior(jnp.zeros(4), jnp.zeros((4, 4)), root)
    one = context(1, 40, seed=5)
    z = encode(config, state._replace(prior=alike), one)[0]
    plain, free = trained("reward")
    assert np.abs(z[1:]).max() < 0.2 * np.abs(encode(plain, free, one)[0][1:]).max()
    assert np.abs(z[0]) > np.abs(z[1:]).max()


def test_the_residual_is_the_errors_variance_whoever_the_task_is():
    """Per task by NumPy's least squares: squared errors over rows less weights, pooled."""
    draw, d = np.random.default_rng(8), 4
    features = draw.normal(size=(6, 30, d))
    targets = np.einsum("tmi,ti->tm", features, 3 * draw.normal(size=(6, d)))
    targets += 0.3 * draw.normal(size=targets.shape)
    mask = np.ones((6, 30))
    mask[0, 10:] = 0
    squared, freedom = 0.0, 0
    for f, y, here in zip(features, targets, mask.astype(bool), strict=True):
        squared += np.linalg.lstsq(f[here], y[here], rcond=None)[1][0]
        freedom += here.sum() - d
    found = residual_variance(*map(jnp.asarray, (features, targets, mask)))
    np.testing.assert_allclose(found, squared / freedom, rtol=0.01)
    np.testing.assert_allclose(found, 0.09, rtol=0.3)
