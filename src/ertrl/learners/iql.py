"""IQL (Kostrikov et al., 2022): imitate the data, the more so the better an action is.

The value of a state is a high expectile of what its logged actions are worth, so no action outside
of the data is ever asked about. Most of the data may be poor: the actor clones what is better than
usual. The newest work on these tasks (SPC) trains every method with it.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from annotated_types import Gt, Lt
from jaxtyping import Array, Float

from ertrl import losses
from ertrl.config import Amount, Positive, Share, Widths
from ertrl.learners.base import Learner, LearnerStep
from ertrl.learners.critic import critic_step
from ertrl.nets import MLP, Trained, Twin, elastic_clip, over_batch, toward
from ertrl.types import Dims, Transitions

LOG_STD_RANGE = (-5.0, 2.0)


class Policy(NamedTuple):
    """A Gaussian around a bounded mean, as wide in every state."""

    mean: MLP
    log_std: Float[Array, "A"]

    def best(self, *inputs: Array) -> Float[Array, "... A"]:
        return jnp.tanh(self.mean(*inputs))

    def std(self) -> Float[Array, "A"]:
        return jnp.exp(elastic_clip(self.log_std, *LOG_STD_RANGE))


class IqlState(NamedTuple):
    """Everything that must survive a crash."""

    actor: Trained[Policy]
    critic: Trained[Twin]
    target_critic: Twin
    value: Trained[MLP]


@dataclass(frozen=True)
class Iql(Learner):
    """Settings of the IQL learner."""

    name = "iql"
    summary = "implicit Q-learning: clones what is better than usual, asks about no other action"
    paper = "https://arxiv.org/abs/2110.06169"

    hidden: Widths = (256, 256, 256)
    """Widths of actor, critics and value function."""
    layer_norm: bool = False
    """Layer normalisation in critics and value function."""
    learning_rate: Amount = 3e-4
    """Adam step size of all networks."""
    discount: Share = 0.99
    """gamma."""
    tau: Share = 0.005
    """Step of the target critics per update."""
    expectile: Annotated[float, Gt(0), Lt(1)] = 0.8
    """Which expectile of the logged actions' worth a state's value is; near 1: the best of them."""
    temperature: Amount = 3.0
    """How much more a better action is imitated: its weight is exp(temperature x advantage)."""
    weight_max: Positive = 100.0
    """Upper bound of that weight."""

    def init(self, dims: Dims, latent_dim: int, key):
        """Fresh networks; the target starts as a copy."""
        key_actor, key_critic, key_value = jax.random.split(key, 3)
        inputs, options = dims.observation + latent_dim, {"layer_norm": self.layer_norm}
        mean = MLP(inputs, self.hidden, dims.action, key_actor)
        critic = Twin(inputs + dims.action, self.hidden, key_critic, **options)
        return IqlState(
            actor=Trained.of(Policy(mean, jnp.zeros(dims.action))),
            critic=Trained.of(critic),
            target_critic=critic,
            value=Trained.of(MLP(inputs, self.hidden, 1, key_value, **options)),
        )

    def update(self, state: IqlState, rl: Transitions, more_rl, z, key):
        """One step of value function, actor and critics."""
        s, a, r, s2, terminated = rl
        zs = over_batch(z, s)
        q = state.target_critic.least(s, a, zs)

        def value_loss(value: MLP):
            v = value(s, zs)[..., 0]
            loss = losses.expectile_error(q - v, self.expectile)
            return loss, (loss, v)

        value, (v_loss, v) = state.value.minimise(value_loss, self.learning_rate)
        weight = losses.advantage_weight(q - v, self.temperature, self.weight_max)

        def actor_loss(actor: Policy):
            off = (a - actor.best(s, zs)) / actor.std()
            surprise = (0.5 * jnp.square(off) + jnp.log(actor.std())).sum(axis=-1)
            loss = (weight * surprise).mean()
            return loss, loss

        actor, pi_loss = state.actor.minimise(actor_loss, self.learning_rate)
        y = losses.temporal_difference(r, terminated, value.net(s2, zs)[..., 0], self.discount)
        critic, z_gradient, metrics = critic_step(state.critic, rl, z, y, self.learning_rate)
        new = IqlState(actor, critic, toward(state.target_critic, critic.net, self.tau), value)
        metrics |= {
            "actor_loss": pi_loss,
            "value_loss": v_loss,
            "advantage": (q - v).mean(),
            "weight_at_bound": (weight >= self.weight_max).mean(),
        }
        return LearnerStep(new, z_gradient, metrics)

    def policy(self, state: IqlState):
        return state.actor.net.mean.plain()

    def act(self, state: IqlState, observation, z, key=None):
        """The mean, with the policy's own noise if a key is given."""
        actor = state.actor.net
        action = actor.best(observation, z)
        if key is None:
            return action
        return jnp.clip(action + actor.std() * jax.random.normal(key, action.shape), -1, 1)


LEARNER = Iql
