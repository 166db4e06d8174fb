"""Soft actor-critic (Haarnoja et al., 2018) for behaviour policies.

The task is an input of its own, of size 0 where each task has a network. Layer normalisation keeps
it stable at several updates per step.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ertrl import losses
from ertrl.collection.config import CollectConfig
from ertrl.nets import Moments, TanhGaussian, Trained, Twin, toward
from ertrl.types import Dims, Transitions

LOG_STD_RANGE = (-5.0, 2.0)
SMALL_DEVIATION, FAR_OUT = 0.01, 10.0
"""What hardly ever changes is not blown up, and no observation is further out than this."""


def learning_rate(config: CollectConfig, update: Int[Array, ""]) -> float | Array:
    """Adam's step size at that update, with the configured rise and fall."""
    updates, rate = config.steps * config.updates_per_step, config.learning_rate
    warmup, decay = (round(share * updates) for share in (config.warmup, config.decay))
    if not warmup and not decay:
        return rate
    rising = optax.linear_schedule(0.0, rate, warmup)(update) if warmup else rate
    left = (updates - update) / decay if decay else 1.0
    return jnp.minimum(rising, rate * jnp.clip(left, 0.0, 1.0))


def standardised(seen: Moments, observation: Float[Array, "*b O"]) -> Float[Array, "*b O"]:
    """Observations at a scale of about 1; as they are, if nothing was seen."""
    scaled = (observation - seen.mean) / (seen.deviation() + SMALL_DEVIATION)
    return jnp.where(seen.count > 0, jnp.clip(scaled, -FAR_OUT, FAR_OUT), observation)


class Behaviour(NamedTuple):
    """A policy that acts: the actor, and the scale on which it sees states."""

    actor: TanhGaussian
    seen: Moments

    def act(self, key: PRNGKeyArray | None, observation: Array, *told: Array) -> Array:
        """A random action or, without a key, the most probable one."""
        return self.actor.act(key, standardised(self.seen, observation), *told)

    def gaussian(self, observation: Array, *told: Array) -> tuple[Array, Array]:
        """Mean and log-std before tanh."""
        return self.actor.gaussian(standardised(self.seen, observation), *told)


class SacState(NamedTuple):
    """Everything that must survive a crash."""

    actor: Trained[TanhGaussian]
    critic: Trained[Twin]
    target_critic: Twin
    log_temperature: Trained[Float[Array, ""]]
    seen: Moments
    """Of observations; of nothing, if they are not standardised."""

    @property
    def behaviour(self) -> Behaviour:
        return Behaviour(self.actor.net, self.seen)


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
        plain_clip=True,  # as all datasets so far were collected: they can be made again
        layer_norm=config.layer_norm,
    )
    critic = Twin(inputs + dims.action, config.hidden, key_critic, layer_norm=config.layer_norm)
    log_temperature = jnp.asarray(math.log(config.initial_temperature), dtype=float)
    return SacState(
        actor=Trained.of(actor),
        critic=Trained.of(critic),
        target_critic=critic,
        log_temperature=Trained.of(log_temperature),
        seen=Moments.of_nothing(dims.observation),
    )


def update(
    config: CollectConfig,
    state: SacState,
    batch: Transitions,
    task: Float[Array, "B P"],
    key: PRNGKeyArray,
) -> tuple[SacState, dict[str, Array]]:
    """One step of critics, actor and temperature. Time-outs bootstrap."""
    rate = learning_rate(config, state.actor.adam.count)
    key_next, key_now = jax.random.split(key)
    s, a, r, s2, terminated = batch
    seen = state.seen.with_rows(s) if config.standardise else state.seen
    s, s2 = standardised(seen, s), standardised(seen, s2)
    temperature = jnp.exp(state.log_temperature.net)
    target_entropy = -a.shape[-1]

    after = state.actor.net.sample(key_next, s2, task)
    soft_value = state.target_critic.least(s2, after.action, task) - temperature * after.log_prob
    y = losses.temporal_difference(r, terminated, soft_value, config.discount)

    def critic_loss(critic: Twin):
        loss = losses.twin_error(*critic(s, a, task), y)
        return loss, loss

    critic, q_loss = state.critic.minimise(critic_loss, rate)

    def actor_loss(actor: TanhGaussian):
        now = actor.sample(key_now, s, task)
        q = critic.net.least(s, now.action, task)
        loss = (temperature * now.log_prob - q).mean()
        return loss, (loss, -now.log_prob.mean())

    actor, (pi_loss, entropy) = state.actor.minimise(actor_loss, rate)
    new = SacState(
        actor=actor,
        critic=critic,
        target_critic=toward(state.target_critic, critic.net, config.tau),
        log_temperature=state.log_temperature.step(temperature * (entropy - target_entropy), rate),
        seen=seen,
    )
    metrics = {
        "critic_loss": q_loss,
        "actor_loss": pi_loss,
        "entropy": entropy,
        "temperature": temperature,
    }
    return new, metrics
