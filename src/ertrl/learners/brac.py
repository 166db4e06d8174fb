"""BRAC (Wu et al., 2019) as ER-TRL uses it: SAC with a penalty on KL(pi || beta).

The divergence is estimated in its dual form by a critic c of its own, and its weight alpha is
learned so that the divergence stays at a target. SAC's first form: a V-function with a target
network, no target Q. [released] The paper writes a target Q.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.learners.base import Learner, LearnerStep
from ertrl.nets import MLP, TanhGaussian, Twin, over_batch, toward
from ertrl.types import Dims, Transitions


@dataclass(frozen=True)
class BracConfig:
    """Settings of the BRAC learner."""

    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of actor, critics, value function and dual critic."""
    learning_rate: float = 3e-4
    """Adam step size of actor, critics and value function."""
    dual_learning_rate: float = 1e-4
    """Adam step size of the dual critic."""
    dual_updates: int = 3
    """Dual-critic steps per update, each on a fresh RL batch."""
    penalty_weight: float = 5.0
    """Weight of the penalty on dual-critic slopes above 1."""
    discount: float = 0.99
    """gamma."""
    tau: float = 0.005
    """Step of the target value function per update."""
    reward_scale: float = 5.0
    """Factor on rewards; with entropy weight 1 its inverse is the temperature."""
    alpha_init: float = 50.0
    """Weight of the divergence at the start."""
    alpha_max: float = 2000.0
    """Upper bound of that weight; it is projected into [0, alpha_max] after every step."""
    alpha_learning_rate: float = 1.0
    """Plain gradient step size of alpha."""
    divergence_target: float = 0.05
    """alpha grows while the divergence is above this."""
    regularisation: float = 1e-3
    """Weight of the squared mean and log-std of the policy."""
    log_std_range: tuple[float, float] = (-20.0, 0.0)
    """Bounds of the policy's log-std."""


class BracState(NamedTuple):
    """Everything that must survive a crash."""

    actor: TanhGaussian
    critic: Twin
    value: MLP
    target_value: MLP
    dual: MLP
    alpha: Float[Array, ""]
    actor_opt: optax.OptState
    critic_opt: optax.OptState
    value_opt: optax.OptState
    dual_opt: optax.OptState


def init(config: BracConfig, dims: Dims, latent_dim: int, key: PRNGKeyArray) -> BracState:
    """Fresh networks; the target starts as a copy."""
    keys = jax.random.split(key, 4)
    inputs = dims.observation + latent_dim
    actor = TanhGaussian(
        inputs, config.hidden, dims.action, keys[0], log_std_range=config.log_std_range
    )
    critic = Twin(inputs + dims.action, config.hidden, keys[1])
    value = MLP(inputs, config.hidden, 1, keys[2])
    dual = MLP(inputs + dims.action, config.hidden, 1, keys[3])
    adam = optax.adam(config.learning_rate)
    start = [adam.init(eqx.filter(net, eqx.is_array)) for net in (actor, critic, value)]
    return BracState(
        actor=actor,
        critic=critic,
        value=value,
        target_value=value,
        dual=dual,
        alpha=jnp.asarray(config.alpha_init, dtype=float),  # not weakly typed: one program
        actor_opt=start[0],
        critic_opt=start[1],
        value_opt=start[2],
        dual_opt=optax.adam(config.dual_learning_rate).init(eqx.filter(dual, eqx.is_array)),
    )


def slope_penalty(
    dual: MLP,
    s: Float[Array, "T B O"],
    mixed: Float[Array, "T B A"],
    zs: Float[Array, "T B Z"],
) -> Float[Array, ""]:
    """Mean max(|grad_a c(s, a, z)| - 1, 0)^2 at actions between the policy's and the data's.

    [paper] The released code penalises the value of c in place of its gradient, which caps the
    divergence it can measure at about 1.
    """
    _, pullback = jax.vjp(lambda a: dual(s, a, zs), mixed)
    (slope,) = pullback(jnp.ones((*mixed.shape[:-1], 1)))
    norm = jnp.sqrt(jnp.square(slope).sum(axis=-1) + 1e-8)
    return jnp.square(jnp.maximum(norm - 1, 0)).mean()


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
        return -bound + config.penalty_weight * slope_penalty(dual, s, mixed, zs)

    grad = jax.grad(dual_loss)(state.dual)
    steps, dual_opt = optax.adam(config.dual_learning_rate).update(grad, state.dual_opt)
    return state._replace(dual=eqx.apply_updates(state.dual, steps), dual_opt=dual_opt)


def update(
    config: BracConfig,
    state: BracState,
    rl: Transitions,
    more_rl: Transitions,
    z: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> LearnerStep:
    """Dual critic, then critics, value function, actor and alpha."""
    adam = optax.adam(config.learning_rate)
    key_actor, *dual_keys = jax.random.split(key, 1 + config.dual_updates)
    s, a, r, s2, terminated = rl
    zs = over_batch(z, s)

    state = update_dual(config, state, rl, z, dual_keys[0])
    for i, dual_key in enumerate(dual_keys[1:]):
        fresh = jax.tree.map(lambda x, i=i: x[i], more_rl)
        state = update_dual(config, state, fresh, z, dual_key)

    next_value = state.target_value(s2, zs)[..., 0]
    y = losses.temporal_difference(config.reward_scale * r, terminated, next_value, config.discount)

    def critic_loss(critic: Twin, z: Float[Array, "T Z"]):
        q1, q2 = critic(s, a, over_batch(z, s))
        return jnp.square(q1 - y).mean() + jnp.square(q2 - y).mean(), q1.mean()

    (q_loss, q_mean), (critic_grad, z_grad) = jax.value_and_grad(
        critic_loss, argnums=(0, 1), has_aux=True
    )(state.critic, z)
    steps, critic_opt = adam.update(critic_grad, state.critic_opt)
    critic = eqx.apply_updates(state.critic, steps)

    c_data = state.dual(s, a, zs)[..., 0]

    def actor_loss(actor: TanhGaussian):
        sampled = actor.sample(key_actor, s, zs)
        q = critic.least(s, sampled.action, zs)
        kl = losses.dual_kl(state.dual(s, sampled.action, zs)[..., 0], c_data)
        small = jnp.square(sampled.mean).mean() + jnp.square(sampled.log_std).mean()
        loss = (sampled.log_prob - q + state.alpha * kl).mean() + config.regularisation * small
        return loss, (q - sampled.log_prob, kl.mean(), sampled.log_prob.mean())

    (pi_loss, (v_target, kl, log_pi)), actor_grad = jax.value_and_grad(actor_loss, has_aux=True)(
        state.actor
    )
    steps, actor_opt = adam.update(actor_grad, state.actor_opt)
    actor = eqx.apply_updates(state.actor, steps)

    def value_loss(value: MLP):
        return jnp.square(value(s, zs)[..., 0] - v_target).mean()

    v_loss, value_grad = jax.value_and_grad(value_loss)(state.value)
    steps, value_opt = adam.update(value_grad, state.value_opt)
    value = eqx.apply_updates(state.value, steps)

    alpha = state.alpha + config.alpha_learning_rate * (kl - config.divergence_target)
    new = state._replace(
        actor=actor,
        critic=critic,
        value=value,
        target_value=toward(state.target_value, value, config.tau),
        alpha=jnp.clip(alpha, 0, config.alpha_max),
        actor_opt=actor_opt,
        critic_opt=critic_opt,
        value_opt=value_opt,
    )
    metrics = {
        "critic_loss": q_loss,
        "value_loss": v_loss,
        "actor_loss": pi_loss,
        "q_mean": q_mean,
        "divergence": kl,
        "alpha": new.alpha,
        "log_prob": log_pi,
    }
    return LearnerStep(new, z_grad, metrics)


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
    extra_batches=lambda config: config.dual_updates - 1,
)
