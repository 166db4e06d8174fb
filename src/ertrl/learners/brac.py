"""BRAC (Wu et al., 2019) as ER-TRL uses it: SAC with a penalty on KL(pi || beta).

The divergence is estimated in its dual form by a critic c of its own, or against a learned model of
beta, and its weight alpha is learned so that the divergence stays at a target. Which settings
learn, and why, is in results/brac.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ertrl import losses
from ertrl.learners.base import Learner, LearnerStep
from ertrl.nets import MLP, Sample, TanhGaussian, Twin, log_density, over_batch, toward
from ertrl.types import Dims, Transitions


@dataclass(frozen=True)
class BracConfig:
    """Settings of the BRAC learner."""

    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of actor, critics, value function and dual critic or model of the data."""
    learning_rate: float = 3e-4
    """Adam step size of actor, critics, value function and model of the data."""
    divergence: Literal["dual", "primal"] = "dual"
    """Estimate KL(pi || beta) by a dual critic [paper], or as KL(pi || beta') with a Gaussian
    model beta' of the data, fitted alongside; the original BRAC has both."""
    dual_learning_rate: float = 1e-4
    """Adam step size of the dual critic."""
    dual_updates: int = 3
    """Dual-critic steps per update, each on a fresh RL batch."""
    target: Literal["value", "q"] = "value"
    """Bootstrap from a V-function with a target network [released], or from the smaller of two
    target critics at the policy's next action [paper]. Both include the entropy."""
    penalty: Literal["gradient", "value"] = "gradient"
    """Keep the dual critic's slope in the action below 1, as BRAC derives it, or its value
    [released], which caps the divergence it can measure at about 1."""
    penalty_weight: float = 5.0
    """Weight of that penalty."""
    value_penalty: bool = False
    """Also subtract alpha times the divergence from the bootstrapped value (BRAC-v)."""
    discount: float = 0.99
    """gamma."""
    tau: float = 0.005
    """Step of the target value function per update."""
    reward_scale: float = 5.0
    """Factor on rewards."""
    entropy_weight: float = 1.0
    """SAC's bonus for entropy; divided by reward_scale it is the temperature. The original BRAC
    has 0: the divergence alone keeps the policy as wide as the data."""
    alpha_init: float = 50.0
    """Weight of the divergence at the start."""
    alpha_max: float = 2000.0
    """Upper bound of that weight."""
    project_alpha: bool = True
    """Put alpha back into [0, alpha_max] after every step. The released code only clips it where
    it is used, so that it may wind up far outside and take long to come back."""
    alpha_learning_rate: float = 1.0
    """Plain gradient step size of alpha."""
    divergence_target: float = 0.05
    """alpha grows while the divergence is above this."""
    regularisation: float = 1e-3
    """Weight of the squared mean and log-std of the policy."""
    log_std_range: tuple[float, float] = (-20.0, 0.0)
    """Bounds of the policy's log-std."""
    warm_start: int = 0
    """Updates at the start in which the actor only imitates the data (maximum likelihood) and
    alpha rests, while critics and dual critic learn. BRAC clones first, too."""


class BracState(NamedTuple):
    """Everything that must survive a crash."""

    actor: TanhGaussian
    critic: Twin
    value: MLP | None
    target_value: MLP | None
    """V-function and its slow copy, if the target is "value"."""
    target_critic: Twin | None
    """Slow copy of the critics, if the target is "q"."""
    dual: MLP | None
    behaviour: TanhGaussian | None
    """What measures the divergence: the dual critic or the model of the data."""
    alpha: Float[Array, ""]
    actor_opt: optax.OptState
    critic_opt: optax.OptState
    value_opt: optax.OptState
    dual_opt: optax.OptState
    behaviour_opt: optax.OptState
    updates: Int[Array, ""]


def init(config: BracConfig, dims: Dims, latent_dim: int, key: PRNGKeyArray) -> BracState:
    """Fresh networks; the target starts as a copy."""
    keys = jax.random.split(key, 4)
    inputs = dims.observation + latent_dim
    bounds = {"log_std_range": config.log_std_range}
    actor = TanhGaussian(inputs, config.hidden, dims.action, keys[0], **bounds)
    critic = Twin(inputs + dims.action, config.hidden, keys[1])
    value = MLP(inputs, config.hidden, 1, keys[2]) if config.target == "value" else None
    dual = behaviour = None
    if config.divergence == "dual":
        dual = MLP(inputs + dims.action, config.hidden, 1, keys[3])
    else:
        behaviour = TanhGaussian(inputs, config.hidden, dims.action, keys[3], **bounds)

    def fresh(net: eqx.Module | None, learning_rate: float = config.learning_rate):
        """An optimiser's state; of no network, nothing."""
        if net is None:
            return optax.EmptyState()
        return optax.adam(learning_rate).init(eqx.filter(net, eqx.is_array))

    return BracState(
        actor=actor,
        critic=critic,
        value=value,
        target_value=value,
        target_critic=critic if value is None else None,
        dual=dual,
        behaviour=behaviour,
        alpha=jnp.asarray(config.alpha_init, dtype=float),  # not weakly typed: one program
        actor_opt=fresh(actor),
        critic_opt=fresh(critic),
        value_opt=fresh(value),
        dual_opt=fresh(dual, config.dual_learning_rate),
        behaviour_opt=fresh(behaviour),
        updates=jnp.zeros((), jnp.int32),
    )


def excess_slope(
    dual: MLP,
    s: Float[Array, "T B O"],
    mixed: Float[Array, "T B A"],
    zs: Float[Array, "T B Z"],
) -> Float[Array, ""]:
    """Mean max(|grad_a c(s, a, z)| - 1, 0)^2 at actions between the policy's and the data's."""
    _, pullback = jax.vjp(lambda a: dual(s, a, zs), mixed)
    (slope,) = pullback(jnp.ones((*mixed.shape[:-1], 1)))
    norm = jnp.sqrt(jnp.square(slope).sum(axis=-1) + 1e-8)
    return jnp.square(jnp.maximum(norm - 1, 0)).mean()


def excess_value(
    dual: MLP,
    s: Float[Array, "T B O"],
    mixed: Float[Array, "T B A"],
    zs: Float[Array, "T B Z"],
) -> Float[Array, ""]:
    """Mean max(|c(s, a, z)| - 1, 0)^2 at actions in between. [released] Not a slope."""
    return jnp.square(jnp.maximum(jnp.abs(dual(s, mixed, zs)) - 1, 0)).mean()


PENALTIES = {"gradient": excess_slope, "value": excess_value}


def update_dual(
    config: BracConfig, state: BracState, rl: Transitions, z: Float[Array, "T Z"], key: PRNGKeyArray
) -> BracState:
    """One step of the dual critic towards a tight bound on KL(pi || beta)."""
    key_policy, key_mix = jax.random.split(key)
    s, a = rl.observation, rl.action
    zs = over_batch(z, s)
    sampled = state.actor.sample(key_policy, s, zs).action
    share = jax.random.uniform(key_mix, (*a.shape[:-1], 1))
    mixed = sampled + share * (a - sampled)

    def dual_loss(dual: MLP):
        c = dual(
            jnp.concatenate([s, s], axis=1),
            jnp.concatenate([sampled, a], axis=1),
            jnp.concatenate([zs, zs], axis=1),
        )[..., 0]
        c_policy, c_data = jnp.split(c, 2, axis=1)
        bound = losses.dual_kl(c_policy, c_data).mean()
        return -bound + config.penalty_weight * PENALTIES[config.penalty](dual, s, mixed, zs)

    grad = jax.grad(dual_loss)(state.dual)
    steps, dual_opt = optax.adam(config.dual_learning_rate).update(grad, state.dual_opt)
    return state._replace(dual=eqx.apply_updates(state.dual, steps), dual_opt=dual_opt)


def update_behaviour(
    config: BracConfig, state: BracState, rl: Transitions, z: Float[Array, "T Z"]
) -> BracState:
    """One maximum-likelihood step of the model of the data."""

    def surprise(behaviour: TanhGaussian):
        gaussian = behaviour.gaussian(rl.observation, over_batch(z, rl.observation))
        return -log_density(rl.action, *gaussian).mean()

    grad = jax.grad(surprise)(state.behaviour)
    steps, opt = optax.adam(config.learning_rate).update(grad, state.behaviour_opt)
    return state._replace(behaviour=eqx.apply_updates(state.behaviour, steps), behaviour_opt=opt)


def divergence(
    state: BracState,
    s: Float[Array, "T B O"],
    zs: Float[Array, "T B Z"],
    sampled: Sample,
    data_action: Float[Array, "T B A"] | None = None,
) -> Float[Array, "T B"]:
    """KL(pi || beta) per row, as the estimator in use sees it."""
    if state.behaviour is not None:
        beta = state.behaviour.gaussian(s, zs)
        return losses.gaussian_kl(sampled.mean, sampled.log_std, *beta)
    assert state.dual is not None
    c_policy = state.dual(s, sampled.action, zs)[..., 0]
    if data_action is None:  # where c is tight, log g is log(pi / beta)
        return losses.log_ratio(c_policy)
    return losses.dual_kl(c_policy, state.dual(s, data_action, zs)[..., 0])


def used_alpha(config: BracConfig, state: BracState) -> Float[Array, ""]:
    """The divergence's weight in the losses."""
    return jnp.clip(state.alpha, 0, config.alpha_max)


def bootstrapped_value(
    config: BracConfig,
    state: BracState,
    s2: Float[Array, "T B O"],
    zs: Float[Array, "T B Z"],
    key: PRNGKeyArray,
) -> Float[Array, "T B"]:
    """The soft value of the next state."""
    if state.target_value is not None:
        return state.target_value(s2, zs)[..., 0]
    assert state.target_critic is not None
    sampled = state.actor.sample(key, s2, zs)
    bonus = -config.entropy_weight * sampled.log_prob
    value = state.target_critic.least(s2, sampled.action, zs) + bonus
    if config.value_penalty:  # the data's action in s' is not known here
        value -= used_alpha(config, state) * divergence(state, s2, zs, sampled)
    return value


def update(
    config: BracConfig,
    state: BracState,
    rl: Transitions,
    more_rl: Transitions,
    z: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> LearnerStep:
    """Divergence estimator, then critics, actor, value function and alpha."""
    adam = optax.adam(config.learning_rate)
    key_actor, key_next, *dual_keys = jax.random.split(key, 2 + config.dual_updates)
    s, a, r, s2, terminated = rl
    zs = over_batch(z, s)

    if config.divergence == "primal":
        state = update_behaviour(config, state, rl, z)
    else:
        state = update_dual(config, state, rl, z, dual_keys[0])
        for i, dual_key in enumerate(dual_keys[1:]):
            fresh = jax.tree.map(lambda x, i=i: x[i], more_rl)
            state = update_dual(config, state, fresh, z, dual_key)

    next_value = bootstrapped_value(config, state, s2, zs, key_next)
    y = losses.temporal_difference(config.reward_scale * r, terminated, next_value, config.discount)

    def critic_loss(critic: Twin, z: Float[Array, "T Z"]):
        q1, q2 = critic(s, a, over_batch(z, s))
        return jnp.square(q1 - y).mean() + jnp.square(q2 - y).mean(), q1.mean()

    (q_loss, q_mean), (critic_grad, z_grad) = jax.value_and_grad(
        critic_loss, argnums=(0, 1), has_aux=True
    )(state.critic, z)
    steps, critic_opt = adam.update(critic_grad, state.critic_opt)
    critic = eqx.apply_updates(state.critic, steps)

    alpha = used_alpha(config, state)
    cloning = state.updates < config.warm_start

    def actor_loss(actor: TanhGaussian):
        sampled = actor.sample(key_actor, s, zs)
        q = critic.least(s, sampled.action, zs)
        kl = divergence(state, s, zs, sampled, a)
        small = jnp.square(sampled.mean).mean() + jnp.square(sampled.log_std).mean()
        loss = (config.entropy_weight * sampled.log_prob - q + alpha * kl).mean()
        if config.warm_start:
            likelihood = log_density(a, sampled.mean, sampled.log_std).mean()
            loss = jnp.where(cloning, -likelihood, loss)
        return loss + config.regularisation * small, (sampled, q, kl)

    (pi_loss, (sampled, q, kl)), actor_grad = jax.value_and_grad(actor_loss, has_aux=True)(
        state.actor
    )
    steps, actor_opt = adam.update(actor_grad, state.actor_opt)
    moved = state.alpha + config.alpha_learning_rate * (kl.mean() - config.divergence_target)
    if config.project_alpha:
        moved = jnp.clip(moved, 0, config.alpha_max)
    if config.warm_start:
        moved = jnp.where(cloning, state.alpha, moved)
    new = state._replace(
        actor=eqx.apply_updates(state.actor, steps),
        critic=critic,
        alpha=moved,
        actor_opt=actor_opt,
        critic_opt=critic_opt,
        updates=state.updates + 1,
    )
    metrics = {
        "critic_loss": q_loss,
        "actor_loss": pi_loss,
        "q_mean": q_mean,
        "q_policy": q.mean(),
        "divergence": kl.mean(),
        "alpha": used_alpha(config, new),
        "log_prob": sampled.log_prob.mean(),
        "log_std": sampled.log_std.mean(),
    }
    if new.value is None:
        slow = toward(new.target_critic, critic, config.tau)
        return LearnerStep(new._replace(target_critic=slow), z_grad, metrics)

    v_target = q - config.entropy_weight * sampled.log_prob
    if config.value_penalty:
        v_target -= alpha * kl

    def value_loss(value: MLP):
        return jnp.square(value(s, zs)[..., 0] - v_target).mean()

    v_loss, value_grad = jax.value_and_grad(value_loss)(new.value)
    steps, value_opt = adam.update(value_grad, new.value_opt)
    value = eqx.apply_updates(new.value, steps)
    new = new._replace(
        value=value,
        value_opt=value_opt,
        target_value=toward(new.target_value, value, config.tau),
    )
    return LearnerStep(new, z_grad, {**metrics, "value_loss": v_loss})


def act(
    config: BracConfig,
    state: BracState,
    observation: Float[Array, "N O"],
    z: Float[Array, "N Z"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "N A"]:
    """The mode of the policy, or a sample if a key is given."""
    if key is None:
        return state.actor.mode(observation, z)
    return state.actor.sample(key, observation, z).action


LEARNER = Learner(
    name="brac",
    summary="SAC held near the data by a dual-form KL penalty: the paper's learner",
    paper="https://arxiv.org/abs/1911.11361",
    config=BracConfig,
    init=init,
    update=update,
    act=act,
    extra_batches=lambda config: config.dual_updates - 1 if config.divergence == "dual" else 0,
)
