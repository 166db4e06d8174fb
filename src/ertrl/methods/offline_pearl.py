"""OfflinePEARL: z is what helps the critic (PEARL, Rakelly et al., ICML 2019, on logged data).

As in the ER-TRL paper, the encoder is deterministic and learns from the critic's loss alone. With
`probabilistic`, it is PEARL's own: a product of Gaussians, sampled, with a KL term to N(0, I).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ertrl import losses
from ertrl.config import Amount
from ertrl.methods.base import Method
from ertrl.methods.encoder import GaussianEncoder, MeanEncoder, spread
from ertrl.nets import Trained
from ertrl.types import Context, Dims, TaskBatch


class OfflinePearlState(NamedTuple):
    encoder: Trained[MeanEncoder] | Trained[GaussianEncoder]


@dataclass(frozen=True)
class OfflinePearl(Method):
    """Settings of OfflinePEARL."""

    name = "offline-pearl"
    title = "OfflinePEARL"
    summary = "z trained by the critic's loss; optionally a Gaussian belief"
    paper = "https://arxiv.org/abs/1903.08254"
    hears_critic = True

    probabilistic: bool = False
    """A Gaussian belief about z instead of one code. Tests use its mean."""
    kl_weight: Amount = 0.1
    """Weight of KL(belief || N(0, I)), summed over tasks and dimensions as PEARL does."""

    def init(self, dims: Dims, key):
        kind = GaussianEncoder if self.probabilistic else MeanEncoder
        return OfflinePearlState(Trained.of(kind(self.encoder, dims, key)))

    def draw(self, state: OfflinePearlState, context: Context, key):
        """The z that training conditions on: the code, or a sample of the belief."""
        return z_and_kl(state.encoder.net, context, key)[0]

    def update(self, state: OfflinePearlState, batch: TaskBatch, z_gradient, key):
        """One encoder step along the critic's gradient at z; the actor's does not reach it."""

        def loss(encoder: MeanEncoder | GaussianEncoder):
            z, kl = z_and_kl(encoder, batch.context.first(), key)
            metrics = {"z_gradient": jnp.abs(z_gradient).mean(), **spread(z)}
            if self.probabilistic:
                metrics["belief_kl"] = kl / len(z)
            # The first term's gradient in z is the critic's.
            return (z * z_gradient).sum() + self.kl_weight * kl, metrics

        encoder, metrics = state.encoder.minimise(loss, self.encoder.learning_rate)
        return OfflinePearlState(encoder), metrics


def z_and_kl(encoder: MeanEncoder | GaussianEncoder, context: Context, key: PRNGKeyArray):
    """What training conditions on, and the divergence of the belief it comes from."""
    if isinstance(encoder, MeanEncoder):
        return encoder(context), jnp.zeros(())
    mean, variance = encoder.posterior(context)
    z = mean + jnp.sqrt(variance) * jax.random.normal(key, mean.shape)
    return z, losses.kl_to_standard_normal(mean, variance).sum()


METHOD = OfflinePearl
