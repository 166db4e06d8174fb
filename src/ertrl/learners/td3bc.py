"""TD3+BC (Fujimoto & Gu, 2021): a deterministic actor held near the data by behaviour cloning.

The learner of the laptop profile: it needs no dual critic and learns in few updates. Targets move
with every update here; the original moves them with the actor only.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ertrl import losses
from ertrl.learners.base import Learner, LearnerStep, Metrics
from ertrl.nets import MLP, Twin, over_batch, toward
from ertrl.types import Dims, Transitions


@dataclass(frozen=True)
class Td3bcConfig:
    """Settings of the TD3+BC learner."""

    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of actor and critics."""
    learning_rate: float = 3e-4
    """Adam step size of actor and critics."""
    discount: float = 0.99
    """gamma."""
    tau: float = 0.005
    """Step of the target networks per update."""
    weight: float = 2.5
    """How much the actor trusts Q against imitating the data."""
    policy_noise: float = 0.2
    """Standard deviation of the noise that smooths the target action."""
    noise_clip: float = 0.5
    """Bound of that noise."""
    actor_every: int = 2
    """Critic updates per actor update."""
    exploration_noise: float = 0.1
    """Standard deviation of actions where a protocol asks for stochastic ones."""


class Td3bcState(NamedTuple):
    """Everything that must survive a crash."""

    actor: MLP
    critic: Twin
    target_actor: MLP
    target_critic: Twin
    actor_opt: optax.OptState
    critic_opt: optax.OptState
    updates: Int[Array, ""]
    actor_metrics: Metrics
    """Of the last actor step, to report in between."""


def init(config: Td3bcConfig, dims: Dims, latent_dim: int, key: PRNGKeyArray) -> Td3bcState:
    """Fresh networks; targets start as copies."""
    key_actor, key_critic = jax.random.split(key)
    inputs = dims.observation + latent_dim
    actor = MLP(inputs, config.hidden, dims.action, key_actor)
    critic = Twin(inputs + dims.action, config.hidden, key_critic)
    adam = optax.adam(config.learning_rate)
    return Td3bcState(
        actor=actor,
        critic=critic,
        target_actor=actor,
        target_critic=critic,
        actor_opt=adam.init(eqx.filter(actor, eqx.is_array)),
        critic_opt=adam.init(eqx.filter(critic, eqx.is_array)),
        updates=jnp.zeros((), jnp.int32),
        actor_metrics={"actor_loss": jnp.zeros(()), "imitation_error": jnp.zeros(())},
    )


def update(
    config: Td3bcConfig,
    state: Td3bcState,
    rl: Transitions,
    more_rl: Transitions,
    z: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> LearnerStep:
    """One critic step; every `actor_every`-th time also an actor step."""
    adam = optax.adam(config.learning_rate)
    s, a, r, s2, terminated = rl

    noise = config.policy_noise * jax.random.normal(key, a.shape)
    noise = jnp.clip(noise, -config.noise_clip, config.noise_clip)
    zs = over_batch(z, s)
    a2 = jnp.clip(jnp.tanh(state.target_actor(s2, zs)) + noise, -1, 1)
    y = losses.temporal_difference(
        r, terminated, state.target_critic.least(s2, a2, zs), config.discount
    )

    def critic_loss(critic: Twin, z: Float[Array, "T Z"]):
        q1, q2 = critic(s, a, over_batch(z, s))
        return jnp.square(q1 - y).mean() + jnp.square(q2 - y).mean(), q1.mean()

    (q_loss, q_mean), (critic_grad, z_grad) = jax.value_and_grad(
        critic_loss, argnums=(0, 1), has_aux=True
    )(state.critic, z)
    steps, critic_opt = adam.update(critic_grad, state.critic_opt)
    critic = eqx.apply_updates(state.critic, steps)

    def actor_loss(actor: MLP):
        action = jnp.tanh(actor(s, zs))
        q = critic.first(s, action, zs)[..., 0]
        loss = losses.td3bc_actor(q, action, a, config.weight)
        return loss, {"actor_loss": loss, "imitation_error": jnp.square(action - a).mean()}

    def actor_step(actor, actor_opt):
        grad, metrics = jax.grad(actor_loss, has_aux=True)(actor)
        steps, actor_opt = adam.update(grad, actor_opt)
        return eqx.apply_updates(actor, steps), actor_opt, metrics

    def no_step(actor, actor_opt):
        return actor, actor_opt, jax.tree.map(jnp.zeros_like, state.actor_metrics)

    moves = state.updates % config.actor_every == 0
    actor, actor_opt, measured = jax.lax.cond(
        moves, actor_step, no_step, state.actor, state.actor_opt
    )
    actor_metrics = jax.tree.map(partial(jnp.where, moves), measured, state.actor_metrics)
    new = Td3bcState(
        actor=actor,
        critic=critic,
        target_actor=toward(state.target_actor, actor, config.tau),
        target_critic=toward(state.target_critic, critic, config.tau),
        actor_opt=actor_opt,
        critic_opt=critic_opt,
        updates=state.updates + 1,
        actor_metrics=actor_metrics,
    )
    metrics = {"critic_loss": q_loss, "q_mean": q_mean, **actor_metrics}
    return LearnerStep(new, z_grad, metrics)


def act(
    config: Td3bcConfig,
    state: Td3bcState,
    observation: Float[Array, "N O"],
    z: Float[Array, "N Z"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "N A"]:
    """The actor's action, with exploration noise if a key is given."""
    action = jnp.tanh(state.actor(observation, z))
    if key is None:
        return action
    noise = config.exploration_noise * jax.random.normal(key, action.shape)
    return jnp.clip(action + noise, -1, 1)


LEARNER = Learner(
    name="td3bc",
    summary="TD3 with behaviour cloning: fast, deterministic actor",
    paper="https://arxiv.org/abs/2106.06860",
    config=Td3bcConfig,
    init=init,
    update=update,
    act=act,
    extra_batches=lambda config: 0,
)
