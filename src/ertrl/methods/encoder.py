"""The context encoder that the paper's methods share."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.config import EncoderConfig
from ertrl.nets import MLP
from ertrl.types import Context, Dims


class MeanEncoder(eqx.Module):
    """z = mean over the context of tanh(MLP(s, a, r[, s'])), Eq. (encoder)."""

    net: MLP
    next_observation: bool = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, dims: Dims, key: PRNGKeyArray):
        """Inputs are (s, a, r), with s' where the configuration asks for it."""
        inputs = dims.observation + dims.action + 1
        inputs += dims.observation if config.next_observation else 0
        self.net = MLP(inputs, config.hidden, config.latent_dim, key)
        self.next_observation = config.next_observation

    def per_transition(self, context: Context) -> Float[Array, "*b H Z"]:
        """One bounded code per transition."""
        inputs = [context.observation, context.action, context.reward[..., None]]
        if self.next_observation:
            inputs.append(context.next_observation)
        return jnp.tanh(self.net(*inputs))

    def __call__(self, context: Context) -> Float[Array, "*b Z"]:
        """The mean over the slots that hold a transition."""
        mask = context.mask[..., None]
        total = (self.per_transition(context) * mask).sum(axis=-2)
        return total / jnp.maximum(mask.sum(axis=-2), 1)


def first_of_each_task(codes: Float[Array, "T C Z"]) -> Float[Array, "T Z"]:
    """The code that conditions actor, critic and generator."""
    return codes[:, 0]


def spread(codes: Float[Array, "T C Z"]) -> dict[str, Float[Array, ""]]:
    """Early warnings: representations that collapse to a point or saturate at +-1."""
    z = jax.lax.stop_gradient(first_of_each_task(codes))
    return {
        "z_spread": z.std(axis=0).mean(),
        "z_saturation": (jnp.abs(z) > 0.95).mean(),
    }
