"""TD3+BC (Fujimoto & Gu, 2021): a deterministic actor held near the data by behaviour cloning.

The learner of the laptop profile: it needs no dual critic and learns in few updates. Targets move
with every update here; the original moves them with the actor only.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ertrl import losses
from ertrl.config import Amount, Count, Share, Widths
from ertrl.learners.base import Learner, LearnerStep
from ertrl.learners.critic import critic_step
from ertrl.nets import MLP, Trained, Twin, over_batch, toward
from ertrl.types import Dims, Metrics, Transitions


class Td3bcState(NamedTuple):
    """Everything that must survive a crash."""

    actor: Trained[MLP]
    critic: Trained[Twin]
    target_actor: MLP
    target_critic: Twin
    updates: Int[Array, ""]
    actor_metrics: Metrics
    """Of the last actor step, to report in between."""


@dataclass(frozen=True)
class Td3bc(Learner):
    """Settings of the TD3+BC learner."""

    name = "td3bc"
    summary = "TD3 with behaviour cloning: fast, deterministic actor"
    paper = "https://arxiv.org/abs/2106.06860"

    hidden: Widths = (256, 256, 256)
    """Widths of actor and critics."""
    layer_norm: bool = False
    """Layer normalisation in the critics."""
    learning_rate: Amount = 3e-4
    """Adam step size of actor and critics."""
    discount: Share = 0.99
    """gamma."""
    tau: Share = 0.005
    """Step of the target networks per update."""
    weight: Amount = 2.5
    """How much the actor trusts Q against imitating the data."""
    policy_noise: Amount = 0.2
    """Standard deviation of the noise that smooths the target action."""
    noise_clip: Amount = 0.5
    """Bound of that noise."""
    actor_every: Count = 2
    """Critic updates per actor update."""
    exploration_noise: Amount = 0.1
    """Standard deviation of actions where a protocol asks for stochastic ones."""

    def init(self, dims: Dims, latent_dim: int, key):
        """Fresh networks; targets start as copies."""
        key_actor, key_critic = jax.random.split(key)
        inputs = dims.observation + latent_dim
        actor = MLP(inputs, self.hidden, dims.action, key_actor)
        critic = Twin(inputs + dims.action, self.hidden, key_critic, layer_norm=self.layer_norm)
        return Td3bcState(
            actor=Trained.of(actor),
            critic=Trained.of(critic),
            target_actor=actor,
            target_critic=critic,
            updates=jnp.zeros((), jnp.int32),
            actor_metrics={"actor_loss": jnp.zeros(()), "imitation_error": jnp.zeros(())},
        )

    def update(self, state: Td3bcState, rl: Transitions, more_rl, z, key):
        """One critic step; every `actor_every`-th time also an actor step."""
        s, a, r, s2, terminated = rl
        zs = over_batch(z, s)

        noise = self.policy_noise * jax.random.normal(key, a.shape)
        noise = jnp.clip(noise, -self.noise_clip, self.noise_clip)
        a2 = jnp.clip(jnp.tanh(state.target_actor(s2, zs)) + noise, -1, 1)
        next_value = state.target_critic.least(s2, a2, zs)
        y = losses.temporal_difference(r, terminated, next_value, self.discount)
        critic, z_gradient, metrics = critic_step(state.critic, rl, z, y, self.learning_rate)

        def actor_loss(actor: MLP):
            action = jnp.tanh(actor(s, zs))
            q = critic.net.first(s, action, zs)[..., 0]
            loss = losses.td3bc_actor(q, action, a, self.weight)
            return loss, {"actor_loss": loss, "imitation_error": jnp.square(action - a).mean()}

        actor, actor_metrics = jax.lax.cond(
            state.updates % self.actor_every == 0,
            lambda actor: actor.minimise(actor_loss, self.learning_rate),
            lambda actor: (actor, state.actor_metrics),
            state.actor,
        )
        new = Td3bcState(
            actor=actor,
            critic=critic,
            target_actor=toward(state.target_actor, actor.net, self.tau),
            target_critic=toward(state.target_critic, critic.net, self.tau),
            updates=state.updates + 1,
            actor_metrics=actor_metrics,
        )
        return LearnerStep(new, z_gradient, metrics | actor_metrics)

    def policy(self, state: Td3bcState):
        return state.actor.net.plain()

    def act(self, state: Td3bcState, observation, z, key=None):
        """The actor's action, with exploration noise if a key is given."""
        action = jnp.tanh(state.actor.net(observation, z))
        if key is None:
            return action
        noise = self.exploration_noise * jax.random.normal(key, action.shape)
        return jnp.clip(action + noise, -1, 1)


LEARNER = Td3bc
