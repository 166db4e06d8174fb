"""BRAC against its formulas: every switch, its gradients and what they may touch.

As in test_gradient_flow.py: Adam's first moment after one step gives the gradient, which is
compared with differences of the loss as stated in reference.py, in double precision with all noise
fixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference as ref
from ertrl.learners import brac, get_learner
from ertrl.nets import MLP, elastic_clip, log_density
from ertrl.types import Transitions
from test_gradient_flow import noticed, setting
from toys import (
    DIMS,
    LATENT,
    assert_follows,
    assert_gradient,
    assert_trees_equal,
    exact,
    random_state,
    small,
    table,
    with_fields,
)

ALPHA = 3.0


def brac_setting(seed=0, **values):
    """With a plain clip: beyond bounds, an elastic one has not the gradient of its value."""
    config, program, state, batch, z = setting("brac", seed=seed, plain_clip=True, **values)
    return config, program, state._replace(alpha=np.asarray(ALPHA)), batch, z


def steep(state):
    """With a dual critic that its penalty minds."""
    net = jax.tree.map(lambda x: 2 * x, state.estimator.net)
    return state._replace(estimator=state.estimator._replace(net=net))


def policy(config, actor, s, zs):
    mean, log_std = ref.gaussian_policy(actor.net, config.log_std_range, s, zs)
    u = mean + np.exp(log_std) * table(mean.shape, "normal")
    return np.tanh(u), ref.tanh_gaussian_log_density(u, mean, log_std), mean, log_std


def least(critic, s, action, zs):
    return np.minimum(*(ref.mlp(q, s, action, zs)[..., 0] for q in (critic.first, critic.second)))


# --- dual critic ---


@pytest.mark.parametrize("penalty", ["gradient", "value"])
def test_dual_critic_follows_the_bound_and_its_penalty(penalty):
    config, _, state, batch, z = brac_setting(penalty=penalty)
    dual = steep(state).estimator
    program = exact(brac.Brac.dual_step, config)
    s, a = batch.rl.observation, batch.rl.action
    zs = ref.for_rows(z, s.shape[1])
    sampled = policy(config, state.actor.net, s, zs)[0]
    mixed = sampled + table((*a.shape[:2], 1), "uniform") * (a - sampled)
    excess = {"gradient": ref.slope_penalty, "value": ref.size_penalty}[penalty]

    def weighed(dual):
        return config.penalty_weight * excess(lambda x: ref.mlp(dual, s, x, zs)[..., 0], mixed)

    def loss(dual):
        c_policy, c_data = (ref.mlp(dual, s, x, zs)[..., 0] for x in (sampled, a))
        return -ref.dual_kl(c_policy, c_data).mean() + weighed(dual)

    assert weighed(dual.net) > 0.05
    new = program(dual, state.actor.net, batch.rl, z)
    assert_follows(loss, dual, new, config.dual_learning_rate, tolerance=1e-4)


slope_excess, value_excess = (brac.Brac(penalty=p).excess for p in ("gradient", "value"))


def linear_dual(weight):
    """The function c = weight . (s, a, z): a network without hidden layers."""
    column = np.array([weight], np.float32).T
    net = random_state(MLP, len(weight), (), 1)
    return jax.tree.map(lambda x: column if x.ndim == 2 else np.zeros_like(x), net)


def test_penalties_by_hand():
    # c = 3 a_1 + 4 a_2: |slope| = 5 in each row, (5 - 1)^2 = 16; s and z do not count. At
    # a = (1, 1) its value is 7, (7 - 1)^2 = 36.
    dual = linear_dual([0, 0, 0, 3, 4, 0, 0, 0, 0])
    s, a, z = jnp.ones((2, 5, 3)), jnp.ones((2, 5, 2)), jnp.ones((2, 5, 4))
    assert slope_excess(dual, s, a, z) == pytest.approx(16, rel=1e-5)
    assert value_excess(dual, s, a, z) == pytest.approx(36, rel=1e-5)
    assert value_excess(dual, s, -a, z) == pytest.approx(36, rel=1e-5)
    # Up to 1 both are free.
    flat = linear_dual([0, 0, 0, 0.3, 0.4, 0, 0, 0, 0])
    assert slope_excess(flat, s, a, z) == 0
    assert value_excess(flat, s, a, z) == 0
    # They are different things: what is large everywhere has no slope, and steep may be small.
    assert slope_excess(linear_dual([5, 0, 0, 0, 0, 0, 0, 0, 0]), s, a, z) == 0
    assert value_excess(dual, s, 0 * a, z) == 0


@pytest.mark.parametrize("scale", [0.5, 1.5, 3.0])
def test_penalties_are_their_twins(scale):
    dual = jax.tree.map(lambda x: scale * x, random_state(MLP, 3 + 2 + 4, (16, 16), 1))
    draw = np.random.default_rng(0)
    s, a, z = (draw.normal(size=(2, 5, n)) for n in (3, 2, 4))
    rows = [jnp.asarray(x, jnp.float32) for x in (s, a, z)]

    def c(a):
        return ref.mlp(dual, s, a, z)[..., 0]

    slope, size = ref.slope_penalty(c, a), ref.size_penalty(c, a)
    np.testing.assert_allclose(jax.jit(slope_excess)(dual, *rows), slope, 1e-3, 1e-5)
    np.testing.assert_allclose(jax.jit(value_excess)(dual, *rows), size, 1e-4, 1e-5)
    assert (slope > 0) == (scale > 0.5)


def test_dual_critic_takes_its_further_steps_on_fresh_batches():
    config, program, state, batch, z = brac_setting()
    assert config.extra_batches == 2 == len(batch.more_rl.reward)
    base = program(state, batch.rl, batch.more_rl, z).state
    for i in range(2):
        action = np.array(batch.more_rl.action)
        action[i] = -action[i]
        more_rl = batch.more_rl._replace(action=action)
        new = program(state, batch.rl, more_rl, z).state
        assert noticed(base, new) == {"estimator", "actor", "alpha"}


# --- model of the data ---


def test_model_of_the_data_follows_its_likelihood():
    config, _, state, batch, z = brac_setting(divergence="primal")
    s, a = batch.rl.observation, batch.rl.action
    zs = ref.for_rows(z, s.shape[1])

    def loss(behaviour):
        mean, log_std = ref.gaussian_policy(behaviour.net, config.log_std_range, s, zs)
        return -ref.tanh_gaussian_log_density(np.arctanh(a), mean, log_std).mean()

    program = exact(lambda config, *args: config.fit_data(*args[:-1]), config)
    new = program(state.estimator, batch.rl, z)
    assert_follows(loss, state.estimator, new, config.learning_rate)
    assert config.extra_batches == 0


def test_model_of_the_data_finds_its_mean_and_width():
    config = small(get_learner("brac")())
    config = with_fields(config, divergence="primal", learning_rate=1e-2)
    model = config.init(DIMS, LATENT, jax.random.key(0)).estimator
    draw = np.random.default_rng(0)
    centre, width = np.array([0.7, -0.2]), np.array([0.2, 0.6])
    step = jax.jit(config.fit_data)
    for _ in range(400):
        s = draw.normal(size=(4, 32, DIMS.observation))
        a = np.tanh(centre + width * draw.normal(size=(4, 32, 2)))
        model = step(model, Transitions(s, a, 0, s, 0), np.ones((4, LATENT)))
    mean, log_std = model.net.gaussian(np.zeros((1, DIMS.observation)), np.ones((1, LATENT)))
    np.testing.assert_allclose(mean[0], centre, atol=0.1)
    np.testing.assert_allclose(np.exp(log_std[0]), width, atol=0.1)


@pytest.mark.parametrize("plain_clip", [False, True])
def test_a_width_that_left_its_bounds_comes_back(plain_clip):
    """While means are still wrong, likelihood wants a wide model; the data are narrow."""
    config = small(get_learner("brac")())
    bounds = {"log_std_range": (-5.0, -1.5), "plain_clip": plain_clip}
    config = with_fields(config, divergence="primal", learning_rate=1e-2, **bounds)
    model = config.init(DIMS, LATENT, jax.random.key(0)).estimator
    draw, step = np.random.default_rng(0), jax.jit(config.fit_data)
    for _ in range(600):
        s = draw.normal(size=(4, 32, DIMS.observation))
        a = np.tanh(0.9 + 0.05 * draw.normal(size=(4, 32, 2)))
        model = step(model, Transitions(s, a, 0, s, 0), np.ones((4, LATENT)))
    _, log_std = model.net.gaussian(s, np.ones((4, 32, LATENT)))
    found = np.mean(log_std)
    assert found == -1.5 if plain_clip else found < -2.5, "truth: -3.0"


def test_outside_of_bounds_only_what_leads_back_passes():
    x, gradient = np.array([-2.0, -2, 0, 0, 2, 2]), np.array([-1.0, 1, -1, 1, -1, 1])
    clipped, back = jax.vjp(lambda x: elastic_clip(x, -1.0, 1.0), x)
    np.testing.assert_array_equal(clipped, [-1, -1, 0, 0, 1, 1])
    np.testing.assert_array_equal(back(gradient)[0], [-1, 0, -1, 1, 0, 1])


# --- critics, actor and value function ---


@pytest.mark.parametrize("kind", ["dual", "primal"])
def test_follows_its_own_losses(kind):
    config, program, state, batch, z = brac_setting(divergence=kind)
    step = program(state, batch.rl, batch.more_rl, z, regularisation=0.1, entropy_weight=0.7)
    new, metrics = step.state, step.metrics
    s, a, r, s2, terminated = batch.rl
    zs = ref.for_rows(z, s.shape[1])
    sampled, log_pi, mean, log_std = policy(config, state.actor.net, s, zs)
    assert log_std.min() < log_std.max() == 0  # the clip is at work

    next_value = ref.mlp(state.target_value, s2, zs)[..., 0]
    y = ref.td_target(config.reward_scale * r, terminated, next_value, config.discount)

    def critic_loss(critic, z=z):
        return ref.twin_error(critic, s, a, z, y)

    def divergence(action, mean, log_std):  # by the estimator after its steps
        if kind == "dual":
            return ref.dual_kl(*(ref.mlp(new.estimator.net, s, x, zs)[..., 0] for x in (action, a)))
        beta = ref.gaussian_policy(new.estimator.net.net, config.log_std_range, s, zs)
        each = ref.kl_of_gaussians(mean, np.exp(log_std), beta[0], np.exp(beta[1]))
        return each.sum(axis=-1)

    def actor_loss(actor):
        action, log_pi, mean, log_std = policy(config, actor, s, zs)
        small = (mean**2).mean() + (log_std**2).mean()
        q = least(new.critic.net, s, action, zs)  # by the critics after their step
        return (0.7 * log_pi - q + ALPHA * divergence(action, mean, log_std)).mean() + 0.1 * small

    def value_loss(value):
        v = least(new.critic.net, s, sampled, zs) - 0.7 * log_pi
        return ((ref.mlp(value, s, zs)[..., 0] - v) ** 2).mean()

    for name, loss in {"critic": critic_loss, "actor": actor_loss, "value": value_loss}.items():
        before, after = getattr(state, name), getattr(new, name)
        assert_follows(loss, before, after, config.learning_rate)
        np.testing.assert_allclose(metrics[f"{name}_loss"], loss(before.net), rtol=1e-9)
    assert_gradient(lambda z: critic_loss(state.critic.net, z), z, step.z_gradient)
    kl = divergence(sampled, mean, log_std).mean()
    np.testing.assert_allclose(metrics["divergence"], kl, rtol=1e-9)
    np.testing.assert_allclose(new.alpha, ref.projected_alpha(ALPHA, kl, 0.05, 1.0, 2000.0))


def test_losses_move_their_own_network_only():
    _, program, state, batch, z = brac_setting()
    state = steep(state)

    def run(state=state, **values):
        return program(state, batch.rl, batch.more_rl, z, **values).state

    base = run()
    assert noticed(base, run(regularisation=0.5)) == {"actor"}
    assert noticed(base, run(entropy_weight=0.5)) == {"actor", "value", "target_value"}
    # The actor and alpha use the dual critic, and everything but the dual critic uses the critics.
    assert noticed(base, run(penalty_weight=0.5)) == {"estimator", "actor", "alpha"}
    assert noticed(base, run(discount=0.5)) == {"critic", "actor", "value", "target_value"}
    # With alpha = 0 the dual critic has no way into the actor.
    deaf = state._replace(alpha=np.asarray(0.0))
    assert "actor" not in noticed(run(deaf), run(deaf, penalty_weight=0.5))
    # The divergence is no part of the value that critics bootstrap from.
    assert noticed(base, run(state._replace(alpha=np.asarray(2 * ALPHA)))) == {"actor", "alpha"}


# --- warm start ---


def test_warm_start_clones_while_the_critics_learn():
    config, program, state, batch, z = brac_setting(warm_start=2)
    s, a = batch.rl.observation, batch.rl.action
    zs = ref.for_rows(z, s.shape[1])

    def cloning_loss(actor):
        mean, log_std = ref.gaussian_policy(actor.net, config.log_std_range, s, zs)
        likelihood = ref.tanh_gaussian_log_density(np.arctanh(a), mean, log_std).mean()
        return -likelihood + config.regularisation * ((mean**2).mean() + (log_std**2).mean())

    step = program(state, batch.rl, batch.more_rl, z)
    assert_follows(cloning_loss, state.actor, step.state.actor, config.learning_rate)
    np.testing.assert_allclose(step.metrics["actor_loss"], cloning_loss(state.actor.net), rtol=1e-9)
    assert step.state.updates == 1
    # alpha rests and everything else does as ever.
    assert step.state.alpha == ALPHA
    usual_program = brac_setting()[1]
    usual = usual_program(state, batch.rl, batch.more_rl, z).state
    assert noticed(usual, step.state) == {"actor", "alpha"}
    # Afterwards there is no difference at all.
    later = state._replace(updates=np.asarray(2))
    usual = usual_program(later, batch.rl, batch.more_rl, z).state
    assert_trees_equal(usual, program(later, batch.rl, batch.more_rl, z).state)


def test_a_saturated_action_has_a_finite_density():
    mean, log_std = jnp.zeros((3, 2)), jnp.full((3, 2), -3.0)
    action = jnp.array([[1.0, -1.0], [0.5, 0.0], [jnp.tanh(8.0), -0.3]])

    def density(mean):
        return log_density(action, mean, log_std).sum()

    value, slope = jax.value_and_grad(density)(mean)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
    u = np.arctanh(np.array([0.5, 0.0]))
    twin = ref.tanh_gaussian_log_density(u, np.zeros(2), np.full(2, -3.0))
    assert log_density(action, mean, log_std)[1] == pytest.approx(twin, rel=1e-4)


# --- alpha ---


def alpha_program(project_alpha):
    """After one update with a flat dual critic: c = 0, the estimate log log 2 - log 2 + 1."""
    _, program, state, batch, z = brac_setting(project_alpha=project_alpha)
    flat = state._replace(estimator=jax.tree.map(np.zeros_like, state.estimator))

    def after(alpha, **values):
        at = flat._replace(alpha=np.asarray(alpha))
        return program(at, batch.rl, batch.more_rl, z, dual_learning_rate=0.0, **values)

    return after


ESTIMATE = np.log(np.log(2)) - np.log(2) + 1


def test_alpha_stays_in_bounds_and_turns_at_once():
    after = alpha_program(project_alpha=True)
    # The estimate -0.0597 is below the target 0.05: alpha falls by 0.1097, but never below 0.
    assert after(10.0).metrics["divergence"] == pytest.approx(ESTIMATE, abs=1e-6)
    assert after(10.0).state.alpha == pytest.approx(10 - 0.05 + ESTIMATE, abs=1e-6)
    assert after(0.0).state.alpha == 0
    # With a target below the estimate it rises from 0 at once: nothing was wound up below 0.
    assert after(0.0, divergence_target=-1.0).state.alpha == pytest.approx(1 + ESTIMATE, abs=1e-6)
    assert after(7.0, divergence_target=-1.0, alpha_max=7.25).state.alpha == 7.25


def test_unprojected_alpha_winds_up_and_is_clipped_in_use():
    after = alpha_program(project_alpha=False)
    below = after(-1.0)
    assert below.state.alpha == pytest.approx(-1 - 0.05 + ESTIMATE, abs=1e-6)
    assert below.metrics["alpha"] == 0
    above = after(7.0, divergence_target=-1.0, alpha_max=7.25)
    assert above.state.alpha == pytest.approx(8 + ESTIMATE, abs=1e-6)
    assert above.metrics["alpha"] == 7.25
    # In the losses it is the clipped one that counts.
    _, program, state, batch, z = brac_setting(project_alpha=False)
    actors = [
        program(state._replace(alpha=np.asarray(alpha)), batch.rl, batch.more_rl, z, alpha_max=5.0)
        for alpha in (-9.0, 0.0, 5.0, 1000.0)
    ]
    wound_down, zero, most, wound_up = (step.state.actor for step in actors)
    assert_trees_equal(wound_down, zero)
    assert_trees_equal(wound_up, most)
    with pytest.raises(AssertionError):
        assert_trees_equal(zero, most)
