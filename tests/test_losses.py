"""Every loss against small cases done by hand and against its slow twin in reference.py."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax.test_util import check_grads
from scipy import integrate
from scipy.stats import expectile, norm

import reference
import toys
from ertrl import losses
from ertrl.nets import MLP, TanhGaussian, Twin, log_prob, over_batch, toward
from toys import examples, random_state

TWO_PI_E = 2 * np.pi * np.e


def numbers(*shape, bound=3.0):
    return toys.numbers(*shape, least=-bound, most=bound)


def close(ours, twin, rtol=2e-5, atol=2e-5):
    np.testing.assert_allclose(np.asarray(ours), twin, rtol=rtol, atol=atol)


dml = jax.jit(losses.distance_metric)
dml_value_and_slope = jax.jit(jax.value_and_grad(losses.distance_metric))


# --- distance metric ---


def test_dml_of_one_negative_pair():
    # d^2 = ((2 - 0)^2 + 0^2) / 2 = 2: the mean over dimensions. 3 / (2 + 0.1).
    z = jnp.array([[2.0, 1.0], [0.0, 1.0]])
    close(dml(z, jnp.array([0, 1]), 0.001, 0.1, 3.0), 3 / 2.1)


def test_dml_of_one_positive_pair():
    # The same d^2 = 2, pulled together as sqrt(2 + 0.25) = 1.5; beta has no part in it.
    z = jnp.array([[2.0, 1.0], [0.0, 1.0]])
    close(dml(z, jnp.array([7, 7]), 0.25, 0.1, 3.0), 1.5)


def test_dml_averages_positive_and_negative_pairs_apart():
    # Codes 0, 2, 3 on a line, tasks a, a, b. Positive: d^2 = 4. Negative: d^2 = 9 and 1.
    # sqrt(4 + 0) + beta (1/(9 + 1) + 1/(1 + 1)) / 2 = 2 + 2 * 0.3.
    z = jnp.array([[0.0], [2.0], [3.0]])
    close(dml(z, jnp.array([0, 0, 1]), 0.0, 1.0, 2.0), 2.6)


def test_dml_without_positive_pairs_only_pushes():
    z, task = jnp.array([[0.0], [1.0], [3.0]]), jnp.array([0, 1, 2])
    # 1/(1 + 0.1), 1/(9 + 0.1), 1/(4 + 0.1), whatever epsilon the absent positive pairs have.
    pushes = (1 / 1.1 + 1 / 9.1 + 1 / 4.1) / 3
    for positive_epsilon in (0.0, 1e-3, 100.0):
        value, slope = dml_value_and_slope(z, task, positive_epsilon, 0.1, 1.0)
        close(value, pushes)
        if positive_epsilon:
            assert np.isfinite(slope).all()
            # Falling means: the outer codes move outwards.
            assert slope[0, 0] > 0 > slope[2, 0]


def test_dml_without_negative_pairs_only_pulls_and_of_one_code_is_nothing():
    z = jnp.array([[0.0], [1.0], [3.0]])
    close(dml(z, jnp.array([5, 5, 5]), 0.0, 0.1, 1.0), (1 + 3 + 2) / 3)
    assert dml(z[:1], jnp.array([5]), 0.001, 0.1, 1.0) == 0


def test_dml_has_a_finite_gradient_where_representations_coincide():
    z, task = jnp.zeros((4, 3)), jnp.array([0, 0, 1, 1])
    value, slope = dml_value_and_slope(z, task, 1e-3, 0.1, 1.0)
    close(value, np.sqrt(1e-3) + 10)
    np.testing.assert_array_equal(slope, 0)


@examples
@given(numbers(7, 3), arrays(np.int32, 7, elements=st.integers(0, 3)), st.floats(0.1, 5))
def test_dml_is_its_twin(z, task, beta):
    close(dml(z, task, 1e-3, 0.1, beta), reference.distance_metric(z, task, 1e-3, 0.1, beta))


@examples
@given(numbers(7, 3), arrays(np.int32, 7, elements=st.integers(0, 3)), st.permutations(range(7)))
def test_dml_does_not_care_for_order_or_for_the_names_of_tasks(z, task, order):
    order = np.array(order)
    value = dml(z, task, 1e-3, 0.1, 1.0)
    close(dml(z[order], task[order], 1e-3, 0.1, 1.0), value)
    close(dml(z, 100 - 7 * task, 1e-3, 0.1, 1.0), value)


def test_dml_descends_by_joining_a_task_and_parting_tasks():
    z = jnp.array([[0.0], [1.0], [2.0], [3.0]])
    task = jnp.array([0, 0, 1, 1])
    slope = dml_value_and_slope(z, task, 1e-3, 0.1, 1.0)[1][:, 0]
    only_pull = dml_value_and_slope(z, task, 1e-3, 0.1, 0.0)[1][:, 0]
    assert only_pull[0] < 0 < only_pull[1]  # 0 moves up towards 1, 1 moves down towards 0
    assert only_pull[2] < 0 < only_pull[3]
    push = slope - only_pull
    assert push[1] > 0 > push[2]  # the inner codes of different tasks part


# --- GAN ---


def test_gan_losses_by_hand():
    # Logit 0 is D = 1/2: -log(1/2) - log(1/2), and -log(1/2) for the generator.
    zero = jnp.zeros((2, 3))
    close(losses.discriminator_loss(zero, zero), 2 * np.log(2))
    close(losses.generator_loss(zero), np.log(2))
    # D(real) = 3/4 is the logit log 3, D(fake) = 1/4 the logit -log 3.
    real, fake = jnp.array([np.log(3.0)]), jnp.array([-np.log(3.0)])
    close(losses.discriminator_loss(real, fake), -2 * np.log(3 / 4))
    close(losses.generator_loss(fake), -np.log(1 / 4))


def test_discriminator_and_generator_pull_in_opposite_directions():
    logit = jnp.array([0.3])
    # D falls where it takes fakes for real; the generator's loss falls where D is deceived.
    assert jax.grad(losses.discriminator_loss, argnums=1)(logit, logit)[0] > 0
    assert jax.grad(losses.discriminator_loss, argnums=0)(logit, logit)[0] < 0
    assert jax.grad(losses.generator_loss)(logit)[0] < 0


def test_gan_losses_survive_certainty():
    # Non-saturating: a discriminator that is sure of a fake still gives slope -1.
    value, slope = jax.value_and_grad(losses.generator_loss)(jnp.array([-200.0]))
    close(value, 200)
    close(slope, [-1.0])
    close(losses.discriminator_loss(jnp.array([-200.0]), jnp.array([300.0])), 500)


@examples
@given(numbers(3, 4, bound=20), numbers(3, 4, bound=20))
def test_gan_losses_are_their_twins(real, fake):
    close(losses.discriminator_loss(real, fake), reference.discriminator_loss(real, fake))
    close(losses.generator_loss(fake), reference.generator_loss(fake))


# --- entropy of actions ---


entropy = jax.jit(losses.entropy_of_actions)
mi_loss = jax.jit(losses.mutual_information)


def test_entropy_by_hand():
    # Actions -1, 0, 1: variance (1 + 0 + 1) / (3 - 1) = 1. H = 1/2 log(2 pi e).
    line = jnp.array([[[-1.0], [0.0], [1.0]]])
    close(entropy(line, 0.0), [0.5 * np.log(TWO_PI_E)])
    # Corners of a square: covariance diag(4/3, 4/3); with the ridge 2/3 it is diag(2, 2).
    # H = 1/2 log 4 + log(2 pi e).
    square = jnp.array([[[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]])
    close(entropy(square, 2 / 3), [np.log(2) + np.log(TWO_PI_E)])
    close(mi_loss(square, 2 / 3), -np.log(2) - np.log(TWO_PI_E))


def test_entropy_of_constant_actions_is_that_of_the_ridge():
    # Covariance 0 + 1e-5 I in two dimensions: 1/2 log(1e-10) + log(2 pi e). And no NaN behind it.
    constant = jnp.full((1, 6, 2), 0.7)
    close(entropy(constant), [np.log(1e-5) + np.log(TWO_PI_E)], rtol=1e-4)
    assert np.isfinite(jax.jit(jax.grad(losses.mutual_information))(constant)).all()


def test_each_task_has_its_own_entropy_and_states_are_pooled():
    draw = np.random.default_rng(0)
    narrow, wide = 0.1 * draw.normal(size=(50, 2)), draw.normal(size=(50, 2))
    both = jnp.asarray(np.stack([narrow, wide]), jnp.float32)
    close(entropy(both), reference.action_entropy(both, 1e-5), rtol=1e-4)
    # Had the tasks been pooled, moving one as a whole would change the result.
    close(entropy(both + jnp.array([[[5.0]], [[-5.0]]])), entropy(both), rtol=1e-3)


@examples
@given(numbers(2, 9, 3, bound=1), st.sampled_from([1e-3, 1e-2, 1.0]))
def test_entropy_is_its_twin(actions, ridge):
    close(entropy(actions, ridge), reference.action_entropy(actions, ridge), 1e-3, 1e-3)
    close(
        mi_loss(actions, ridge),
        reference.mutual_information(actions, ridge),
        1e-3,
        1e-3,
    )


@examples
@given(numbers(2, 9, 3, bound=1), st.permutations(range(9)))
def test_entropy_does_not_care_for_order_or_place(actions, order):
    value = entropy(actions, 1e-2)
    close(entropy(actions[:, np.array(order)], 1e-2), value, 1e-3, 1e-3)
    close(entropy(actions + np.float32(0.5), 1e-2), value, 1e-3, 1e-3)


def test_more_spread_is_more_entropy_and_less_loss():
    actions = jnp.asarray(np.random.default_rng(1).normal(size=(2, 64, 3)), jnp.float32)
    scales = jnp.array([0.1, 0.3, 1.0, 3.0])
    mi = np.array([mi_loss(s * actions) for s in scales])
    # k log(3.16..) per step of the scale, k = 3: a Gaussian's entropy grows by k log(scale).
    close(-np.diff(mi), 3 * np.diff(np.log(scales)), 1e-2, 1e-2)
    # Descending L_MI spreads actions: its slope along the present spread is negative,
    # exactly -k (Euler), because H(s a) = H(a) + k log s.
    slope = jax.jit(jax.grad(losses.mutual_information))(actions)
    close((slope * (actions - actions.mean(axis=1, keepdims=True))).sum(), -3, 1e-3)


# --- temporal difference ---


def test_td_target_by_hand():
    reward, value = jnp.array([1.0, 1.0, -2.0]), jnp.array([10.0, 10.0, 4.0])
    terminated = jnp.array([0.0, 1.0, 0.0])
    # 1 + 0.9 * 10, then a terminal state without a future, then -2 + 0.9 * 4.
    close(losses.temporal_difference(reward, terminated, value, 0.9), [10.0, 1.0, 1.6])


@examples
@given(numbers(3, 4), arrays(np.float32, (3, 4), elements=st.sampled_from([0, 1])), numbers(3, 4))
def test_td_target_is_its_twin(reward, terminated, value):
    close(
        losses.temporal_difference(reward, terminated, value, 0.99),
        reference.td_target(reward, terminated, value, 0.99),
    )


# --- dual KL ---


def test_dual_kl_by_hand():
    # softplus(0) = log 2: log log 2 - log 2 + 1.
    close(losses.dual_kl(jnp.zeros(1), jnp.zeros(1)), [np.log(np.log(2)) - np.log(2) + 1])
    # c = log(e - 1) gives g = 1, the density ratio of equal policies: no divergence.
    one = jnp.array([np.log(np.e - 1)])
    close(losses.dual_kl(one, one), [0.0])


@examples
@given(numbers(3, 4, bound=15), numbers(3, 4, bound=15))
def test_dual_kl_is_its_twin(c_policy, c_data):
    close(losses.dual_kl(c_policy, c_data), reference.dual_kl(c_policy, c_data), 1e-4, 1e-4)


def test_dual_kl_stays_finite_for_extreme_critics():
    extreme = jnp.array([-200.0, -20.0, 20.0, 200.0])
    value, slope = jax.value_and_grad(lambda c: losses.dual_kl(c, c).sum())(extreme)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


PI, BETA = (0.5, 0.8), (0.0, 1.0)  # mean and standard deviation
MIDPOINTS = (np.arange(20_000) + 0.5) / 20_000
POLICY, DATA = norm.ppf(MIDPOINTS, *PI), norm.ppf(MIDPOINTS, *BETA)


def bound_with(c):
    """The dual estimate with stratified samples of both Gaussians."""
    return float(losses.dual_kl(jnp.asarray(c(POLICY)), jnp.asarray(c(DATA))).mean())


@examples
@given(arrays(np.float64, 4, elements=st.floats(-2, 2)))
def test_dual_kl_never_exceeds_the_divergence(weights):
    def c(x):
        return weights[0] + weights[1] * x + weights[2] * np.sin(2 * x) + weights[3] * x**2 / 4

    assert bound_with(c) <= reference.kl_of_gaussians(*PI, *BETA) + 1e-3


def optimal_critic(x):
    """softplus(c) = pi / beta, that is c = log(e^ratio - 1)."""
    return np.log(np.expm1(norm.pdf(x, *PI) / norm.pdf(x, *BETA)))


def test_dual_kl_is_tight_for_the_optimal_critic():
    divergence = reference.kl_of_gaussians(*PI, *BETA)
    assert divergence == pytest.approx(0.1681, abs=1e-4)  # log(1/0.8) + 0.89/2 - 0.5 = 0.1681
    assert bound_with(optimal_critic) == pytest.approx(divergence, abs=1e-3)
    # And every way off it is worse.
    for shift in (-0.3, 0.3):
        assert bound_with(lambda x, by=shift: optimal_critic(x) + by) < divergence - 1e-3


def test_dual_kl_by_monte_carlo():
    draw = np.random.default_rng(0)
    policy, data = draw.normal(*PI, 200_000), draw.normal(*BETA, 200_000)
    rows = losses.dual_kl(jnp.asarray(optimal_critic(policy)), jnp.asarray(optimal_critic(data)))
    error = float(rows.std()) / np.sqrt(len(rows))
    assert abs(float(rows.mean()) - reference.kl_of_gaussians(*PI, *BETA)) < 4 * error
    # Both from the data: KL = 0, so any critic may claim nothing above it.
    c = jnp.asarray(1.5 * np.sin(data))
    assert float(losses.dual_kl(c, c[::-1]).mean()) < 4 * error


# --- TD3+BC ---


def test_td3bc_actor_by_hand():
    # mean|Q| = 2, mean Q = 1: -2.5 * 1 / 2 + ((0.5 - 0)^2 + (0 - 1)^2) / 2 = -1.25 + 0.625.
    q = jnp.array([3.0, -1.0])
    action, data = jnp.array([[0.5], [0.0]]), jnp.array([[0.0], [1.0]])
    close(losses.td3bc_actor(q, action, data, 2.5), -0.625)


def test_td3bc_scale_is_no_way_to_lower_the_loss():
    # With mean|Q| a constant the slope in Q is -weight / mean|Q| / n; were it differentiated,
    # the slope of Q / |Q| would be zero for Q of one sign.
    q, action = jnp.array([3.0, 1.0]), jnp.zeros((2, 1))
    close(jax.grad(losses.td3bc_actor)(q, action, action, 2.5), [-0.625, -0.625])


@examples
@given(numbers(3, 4).filter(lambda q: np.abs(q).mean() > 0.1), numbers(3, 4, 2), numbers(3, 4, 2))
def test_td3bc_actor_is_its_twin(q, action, data):
    close(
        losses.td3bc_actor(q, action, data, 2.5),
        reference.td3bc_actor(q, action, data, 2.5),
        1e-4,
        1e-4,
    )


# --- IQL ---


def test_the_expectile_of_values_is_where_its_error_is_least():
    """By SciPy, which defines expectiles by their own equation."""
    values = np.random.default_rng(0).normal(size=200)
    for share in (0.2, 0.5, 0.8):
        at = expectile(values, share)
        slope = jax.grad(lambda v, share=share: losses.expectile_error(values - v, share))(at)
        close(slope, 0.0, atol=1e-6)


@examples
@given(numbers(3, 4))
def test_iql_losses_are_their_twins(difference):
    close(losses.expectile_error(difference, 0.8), reference.expectile_error(difference, 0.8), 1e-4)
    close(
        losses.advantage_weight(difference, 3.0, 100.0),
        reference.advantage_weight(difference, 3.0, 100.0),
        1e-4,
    )


def test_a_huge_advantage_has_the_largest_weight():
    close(losses.advantage_weight(jnp.array([1e30, -1e30]), 3.0, 100.0), [100.0, 0.0], 1e-4)


# --- networks ---


def test_tanh_gaussian_log_density_by_hand():
    # u = mean = 0, std = 1: the squashing has slope 1 there, so it is N(0; 0, 1) per dimension.
    zero = jnp.zeros(2)
    close(log_prob(zero, zero, zero), -np.log(2 * np.pi))
    # Far out, 1 - tanh(u)^2 -> 4 e^(-2u): at u = mean = 30, log p = -log sqrt(2 pi) - log 4 + 60.
    far = jnp.array([30.0])
    close(log_prob(far, far, jnp.zeros(1)), -0.5 * np.log(2 * np.pi) - np.log(4) + 60)
    close(log_prob(-far, -far, jnp.zeros(1)), -0.5 * np.log(2 * np.pi) - np.log(4) + 60)


@examples
@given(numbers(3, 2, bound=6), numbers(3, 2), numbers(3, 2, bound=1.5))
def test_tanh_gaussian_log_density_is_its_twin(u, mean, log_std):
    twin = reference.tanh_gaussian_log_density(u, mean, log_std)
    close(log_prob(u, mean, log_std), twin, 1e-4, 1e-3)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.8, -0.7), (-1.0, -0.2)])
def test_tanh_gaussian_density_integrates_to_one(mean, log_std):
    density = jax.jit(
        lambda a: jnp.exp(log_prob(jnp.arctanh(a)[None], jnp.array([mean]), jnp.array([log_std])))
    )
    total, _ = integrate.quad(lambda a: float(density(a)), -0.9999, 0.9999, epsabs=1e-4)
    tails = norm.sf(np.arctanh(0.9999), [mean, -mean], np.exp(log_std)).sum()
    assert total + tails == pytest.approx(1, abs=1e-3)


def test_policy_samples_carry_their_own_density():
    policy = random_state(partial(TanhGaussian, log_std_range=(-2.0, 0.0)), 3, (8,), 2)
    policy = jax.tree.map(lambda x: 1.5 * x, policy)
    s = jnp.asarray(np.random.default_rng(0).normal(size=(500, 3)), jnp.float32)
    sample = policy.sample(jax.random.key(1), s)
    mean, log_std = reference.gaussian_policy(policy.net, (-2.0, 0.0), np.asarray(s))
    close(sample.mean, mean, 1e-3, 1e-3)
    close(sample.log_std, log_std, 1e-3, 1e-3)
    assert log_std.min() == -2
    assert log_std.max() == 0
    inside = np.abs(sample.action).max(axis=1) < 0.999  # arctanh is ill-conditioned beyond
    assert inside.sum() > 30
    u = np.arctanh(np.asarray(sample.action, np.float64)[inside])
    twin = reference.tanh_gaussian_log_density(u, mean[inside], log_std[inside])
    close(sample.log_prob[inside], twin, 1e-2, 2e-2)
    # It is noise of that standard deviation, and the mode is without it.
    noise = (u - mean[inside]) / np.exp(log_std[inside])
    assert 0.5 < noise.std() < 1.5
    close(policy.act(None, s), np.tanh(mean), 1e-4, 1e-4)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4)])
def test_mlp_is_its_twin(shape):
    net = random_state(MLP, 4, (8, 6), 2)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    close(net(x), reference.mlp(net, x), 1e-4, 1e-4)
    close(net(x[..., :1], x[..., 1:]), reference.mlp(net, x), 1e-4, 1e-4)


def test_twin_critics_differ_and_the_smaller_counts():
    twin = random_state(Twin, 3, (8,))
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    first, second = reference.mlp(twin.first, x)[:, 0], reference.mlp(twin.second, x)[:, 0]
    assert 0 < (first < second).sum() < 50
    close(twin.least(x), np.minimum(first, second), 1e-3, 1e-2)


def test_every_row_of_a_batch_gets_the_z_of_its_task():
    z = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(over_batch(z, np.zeros((2, 4, 7))), reference.for_rows(z, 4))


@examples
@given(numbers(3), numbers(3), st.sampled_from([0.0, 0.005, 0.5, 1.0]))
def test_soft_update_is_its_twin(target, source, tau):
    moved = toward({"w": jnp.asarray(target)}, {"w": jnp.asarray(source)}, tau)["w"]
    close(moved, reference.soft_update(target, source, tau), 1e-6, 1e-6)


# --- KL of two Gaussians ---


def test_gaussian_kl_by_hand():
    # One dimension shifted by two of the other's standard deviations (4 / 2), one twice as narrow
    # (log 2 - 3/8), and none between equals.
    zero = jnp.zeros(2)
    wide = jnp.log(jnp.array([0.5, 2.0]))
    narrow = jnp.log(jnp.array([0.5, 1.0]))
    close(losses.gaussian_kl(jnp.array([1.0, 0.0]), narrow, zero, wide), 2 + np.log(2) - 3 / 8)
    close(losses.gaussian_kl(zero, wide, zero, wide), 0)


@examples
@given(numbers(4), numbers(4), st.floats(-2, 1), st.floats(-2, 1))
def test_gaussian_kl_is_its_twin(mean, other, log_std, other_log_std):
    ours = losses.gaussian_kl(
        jnp.asarray(mean), jnp.full(4, log_std), jnp.asarray(other), jnp.full(4, other_log_std)
    )
    twin = reference.kl_of_gaussians(
        np.asarray(mean), np.exp(log_std), np.asarray(other), np.exp(other_log_std)
    )
    close(ours, twin.sum(), 1e-4, 1e-4)


# --- gradients in double precision ---


def smooth_inputs():
    draw = np.random.default_rng(0)
    return {
        "z": draw.normal(size=(6, 3)),
        "task": np.array([0, 0, 1, 1, 2, 2]),
        "logit": draw.normal(size=(2, 3)),
        "actions": draw.normal(size=(2, 7, 2)),
        "q": draw.normal(size=(2, 3)) + 2,
    }


@pytest.mark.parametrize(
    "loss",
    [
        lambda i: (lambda z: losses.distance_metric(z, i["task"], 1e-3, 0.1, 1.5), i["z"]),
        lambda i: (lambda x: losses.discriminator_loss(x, 0.5 * x), i["logit"]),
        lambda i: (losses.generator_loss, i["logit"]),
        lambda i: (losses.entropy_of_actions, i["actions"]),
        lambda i: (losses.mutual_information, i["actions"]),
        lambda i: (lambda v: losses.temporal_difference(i["q"], 0.0, v, 0.9), i["q"]),
        lambda i: (lambda c: losses.dual_kl(c, 0.5 * c), i["logit"]),
        lambda i: (lambda a: losses.td3bc_actor(i["q"], a, 0.0, 2.5), i["actions"]),
        lambda i: (lambda u: log_prob(u, 0.3 * u**2, jnp.sin(u)), i["actions"]),
    ],
    ids=["dml", "discriminator", "generator", "entropy", "mi", "td", "kl", "td3bc", "log_prob"],
)
def test_gradients_are_those_of_the_values(loss):
    with jax.enable_x64(True):
        function, at = loss(smooth_inputs())
        at = jnp.asarray(at)
        assert at.dtype == jnp.float64
        check_grads(jax.jit(function), (at,), order=1, modes=["rev"], rtol=1e-6, atol=1e-6)
