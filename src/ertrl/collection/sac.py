"""Soft actor-critic (Haarnoja et al., 2018) for behaviour policies.

The task is an input of its own, of size 0 where each task has a network. Layer normalisation keeps
it stable at several updates per step.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from ertrl import losses
from ertrl.collection.config import CollectConfig
from ertrl.nets import TanhGaussian, Twin, toward
from ertrl.types import Dims, Transitions

LOG_STD_RANGE = (-5.0, 2.0)


def adam(config: CollectConfig) -> optax.GradientTransformation:
    """Adam with the configured rise and fall of its step size."""
    updates = config.steps * config.updates_per_step
    warmup, decay = (round(share * updates) for share in (config.warmup, config.decay))

    def step_size(update: ArrayLike) -> ArrayLike:
        rate = config.learning_rate
        rising = optax.linear_schedule(0.0, rate, warmup)(update) if warmup else rate
        left = (updates - jnp.asarray(update)) / decay if decay else 1.0
        return jnp.minimum(rising, rate * jnp.clip(left, 0.0, 1.0))

    return optax.adam(step_size if warmup or decay else config.learning_rate)


class SacState(NamedTuple):
    """Everything that must survive a crash."""

    actor: TanhGaussian
    critic: Twin
    target_critic: Twin
    log_temperature: Float[Array, ""]
    actor_opt: optax.OptState
    critic_opt: optax.OptState
    temperature_opt: optax.OptState


def init(config: CollectConfig, dims: Dims, parameter_dim: int, key: PRNGKeyArray) -> SacState:
    """Fresh networks; the target starts as a copy."""
    key_actor, key_critic = jax.random.split(key)
    inputs = dims.observation + parameter_dim
    actor = TanhGaussian(
        inputs,
        config.hidden,
        dims.action,
        key_actor,
        log_std_range=LOG_STD_RANGE,
        layer_norm=config.layer_norm,
    )
    critic = Twin(inputs + dims.action, config.hidden, key_critic, layer_norm=config.layer_norm)
    log_temperature = jnp.asarray(math.log(config.initial_temperature), dtype=float)
    optimiser = adam(config)
    return SacState(
        actor=actor,
        critic=critic,
        target_critic=critic,
        log_temperature=log_temperature,
        actor_opt=optimiser.init(eqx.filter(actor, eqx.is_array)),
        critic_opt=optimiser.init(eqx.filter(critic, eqx.is_array)),
        temperature_opt=optimiser.init(log_temperature),
    )


def update(
    config: CollectConfig,
    state: SacState,
    batch: Transitions,
    task: Float[Array, "B P"],
    key: PRNGKeyArray,
) -> tuple[SacState, dict[str, Array]]:
    """One step of critics, actor and temperature. Time-outs bootstrap."""
    optimiser = adam(config)
    key_next, key_now = jax.random.split(key)
    s, a, r, s2, terminated = batch
    temperature = jnp.exp(state.log_temperature)
    target_entropy = -a.shape[-1]

    after = state.actor.sample(key_next, s2, task)
    soft_value = state.target_critic.least(s2, after.action, task) - temperature * after.log_prob
    y = losses.temporal_difference(r, terminated, soft_value, config.discount)

    def critic_loss(critic: Twin):
        q1, q2 = critic(s, a, task)
        return jnp.square(q1 - y).mean() + jnp.square(q2 - y).mean()

    q_loss, grad = jax.value_and_grad(critic_loss)(state.critic)
    steps, critic_opt = optimiser.update(grad, state.critic_opt)
    critic = eqx.apply_updates(state.critic, steps)

    def actor_loss(actor: TanhGaussian):
        now = actor.sample(key_now, s, task)
        q = critic.least(s, now.action, task)
        return (temperature * now.log_prob - q).mean(), -now.log_prob.mean()

    (pi_loss, entropy), grad = jax.value_and_grad(actor_loss, has_aux=True)(state.actor)
    steps, actor_opt = optimiser.update(grad, state.actor_opt)
    actor = eqx.apply_updates(state.actor, steps)

    temperature_grad = jnp.exp(state.log_temperature) * (entropy - target_entropy)
    step, temperature_opt = optimiser.update(temperature_grad, state.temperature_opt)
    new = SacState(
        actor=actor,
        critic=critic,
        target_critic=toward(state.target_critic, critic, config.tau),
        log_temperature=eqx.apply_updates(state.log_temperature, step),
        actor_opt=actor_opt,
        critic_opt=critic_opt,
        temperature_opt=temperature_opt,
    )
    metrics = {
        "critic_loss": q_loss,
        "actor_loss": pi_loss,
        "entropy": entropy,
        "temperature": temperature,
    }
    return new, metrics
