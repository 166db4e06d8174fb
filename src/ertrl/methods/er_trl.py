"""ER-TRL (Nakhaei et al., AAAI 2025): z says what the task is and not who collected the data.

Next to the distance-metric loss, the encoder maximises the entropy of a GAN-modelled behaviour
policy given z: what z tells about the data's actions is what it should not tell.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.config import Amount, Count
from ertrl.errors import ConfigError
from ertrl.methods.base import Method
from ertrl.methods.encoder import DmlConfig, MeanEncoder, metric_loss, spread
from ertrl.methods.gan import Gan, GanState, generate
from ertrl.nets import MLP, Trained
from ertrl.types import Dims, TaskBatch


class ErTrlState(NamedTuple):
    encoder: Trained[MeanEncoder]
    gan: GanState


@dataclass(frozen=True)
class ErTrl(Method):
    """Settings of ER-TRL."""

    name = "er-trl"
    summary = "distance metric + maximal entropy of the GAN-modelled behaviour policy given z"
    paper = "https://arxiv.org/abs/2412.14834"
    loss = "dml_loss"

    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    gan: Gan = field(default_factory=Gan)
    """Model of the behaviour policy."""
    mi_weight: Amount = 0.5
    """lambda in L_DML + lambda L_MI (the paper's equation puts it on the wrong term)."""
    use_dml: bool = True
    """Off: the paper's ablation, in which the entropy alone trains the encoder."""
    entropy: Literal["pooled", "per-state"] = "pooled"
    """Spread of generated actions over a task's states (released), or within a state (paper)."""
    draws_per_state: Count = 32
    """Generated actions per state, if per-state; takes 1/draws of the states, for equal cost."""
    ridge: Amount = 1e-5
    """Added to the diagonal of the covariance of generated actions."""

    def init(self, dims: Dims, key):
        if self.entropy == "per-state" and self.draws_per_state <= dims.action:
            raise ConfigError(
                f"method.draws_per_state is {self.draws_per_state}; a covariance of {dims.action} "
                f"action dimensions needs at least {dims.action + 1}"
            )
        key_encoder, key_gan = jax.random.split(key)
        encoder = MeanEncoder(self.encoder, dims, key_encoder)
        return ErTrlState(Trained.of(encoder), self.gan.init(dims, self.latent_dim, key_gan))

    def update(self, state: ErTrlState, batch: TaskBatch, z_gradient, key):
        """Algorithm 1: GAN rounds, then one encoder step on L_DML + lambda L_MI."""
        gan_key, entropy_key = jax.random.split(key)

        def loss(encoder: MeanEncoder):
            codes = encoder(batch.context)
            z = codes[:, 0]
            # The GAN follows the encoder but is a constant to it: only z hears of the entropy.
            constant = jax.lax.stop_gradient(z)
            gan, gan_metrics = self.gan.train(state.gan, batch.rl, constant, gan_key)
            dml = metric_loss(self.dml, codes, batch.task)
            mi = self.mutual_information(gan.generator.net, batch.rl.observation, z, entropy_key)
            metrics = {"dml_loss": dml, "mi_loss": mi, **spread(z), **gan_metrics}
            return self.use_dml * dml + self.mi_weight * mi, (gan, metrics)

        encoder, (gan, metrics) = state.encoder.minimise(loss, self.encoder.learning_rate)
        return ErTrlState(encoder, gan), metrics

    def mutual_information(
        self, generator: MLP, s: Float[Array, "T B O"], z: Float[Array, "T Z"], key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """L_MI: minus the entropy of generated actions."""
        if self.entropy == "pooled":
            fake = generate(generator, s, z, self.gan.noise(s, key))
            return losses.mutual_information(fake, self.ridge)
        m = self.draws_per_state
        states = s[:, : max(s.shape[1] // m, 1)]
        rows = jnp.repeat(states, m, axis=1)
        fake = generate(generator, rows, z, self.gan.noise(rows, key))
        per_state = fake.reshape(*states.shape[:2], m, fake.shape[-1])
        return -losses.entropy_per_state(per_state, self.ridge).mean()


METHOD = ErTrl
