"""OfflinePEARL: z is what helps the critic (PEARL, Rakelly et al., ICML 2019, on logged data).

As in the ER-TRL paper, the encoder is deterministic and learns from the critic's loss alone. With
`probabilistic`, it is PEARL's own: a product of Gaussians, sampled, with a KL term to N(0, I).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.methods.base import Method, Metrics
from ertrl.methods.encoder import EncoderConfig, GaussianEncoder, MeanEncoder, spread
from ertrl.types import Context, Dims, TaskBatch


@dataclass(frozen=True)
class OfflinePearlConfig:
    """Settings of OfflinePEARL."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder."""
    probabilistic: bool = False
    """A Gaussian belief about z instead of one code. Tests use its mean."""
    kl_weight: float = 0.1
    """Weight of KL(belief || N(0, I)), summed over tasks and dimensions as PEARL does."""


class OfflinePearlState(NamedTuple):
    """Everything that must survive a crash."""

    encoder: MeanEncoder | GaussianEncoder
    encoder_opt: optax.OptState


def init(config: OfflinePearlConfig, dims: Dims, key: PRNGKeyArray) -> OfflinePearlState:
    """Fresh encoder."""
    kind = GaussianEncoder if config.probabilistic else MeanEncoder
    encoder = kind(config.encoder, dims, key)
    adam = optax.adam(config.encoder.learning_rate)
    return OfflinePearlState(encoder, adam.init(eqx.filter(encoder, eqx.is_array)))


def encode(
    config: OfflinePearlConfig, state: OfflinePearlState, context: Context
) -> Float[Array, "*b Z"]:
    """Infer z: the code, or the mean of the belief."""
    return state.encoder(context)


def draw(
    config: OfflinePearlConfig, state: OfflinePearlState, context: Context, key: PRNGKeyArray
) -> Float[Array, "T Z"]:
    """The z that training conditions on: a sample of the belief."""
    return _draw(state.encoder, context, key)[0]


def _draw(encoder: MeanEncoder | GaussianEncoder, context: Context, key: PRNGKeyArray):
    """Z and the divergence of the belief it comes from."""
    if isinstance(encoder, MeanEncoder):
        return encoder(context), jnp.zeros(())
    mean, variance = encoder.posterior(context)
    z = mean + jnp.sqrt(variance) * jax.random.normal(key, mean.shape)
    return z, losses.kl_to_standard_normal(mean, variance).sum()


def update(
    config: OfflinePearlConfig,
    state: OfflinePearlState,
    batch: TaskBatch,
    z_gradient: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> tuple[OfflinePearlState, Metrics]:
    """One encoder step along the critic's gradient at z. Actor and V-function do not reach it."""
    first = batch.context.first()

    def encoder_loss(encoder):
        z, kl = _draw(encoder, first, key)
        # Its gradient in z is the critic's.
        return (z * z_gradient).sum() + config.kl_weight * kl, (z, kl)

    grad, (z, kl) = jax.grad(encoder_loss, has_aux=True)(state.encoder)
    steps, opt = optax.adam(config.encoder.learning_rate).update(grad, state.encoder_opt)
    metrics = {"z_gradient": jnp.abs(z_gradient).mean(), **spread(z[:, None])}
    if config.probabilistic:
        metrics["belief_kl"] = kl / len(z)
    return OfflinePearlState(eqx.apply_updates(state.encoder, steps), opt), metrics


METHOD = Method(
    name="offline-pearl",
    summary="z trained by the critic's loss; optionally a Gaussian belief",
    paper="https://arxiv.org/abs/1903.08254",
    config=OfflinePearlConfig,
    init=init,
    encode=encode,
    update=update,
    hears_critic=True,
    draw=draw,
)
