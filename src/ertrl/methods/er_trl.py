"""ER-TRL (Nakhaei et al., AAAI 2025): z says what the task is and not who collected the data.

Next to the distance-metric loss, the encoder maximises the entropy of a GAN-modelled behaviour
policy given z: what z tells about the data's actions is what it should not tell.
"""

from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.config import DmlConfig, EncoderConfig
from ertrl.methods.base import Method, Metrics
from ertrl.methods.encoder import MeanEncoder, first_of_each_task, spread
from ertrl.methods.gan import Gan, GanConfig, gan_round, generate, init_gan
from ertrl.types import Context, Dims, TaskBatch


@dataclass(frozen=True)
class ErTrlConfig:
    """Settings of ER-TRL."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder."""
    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    gan: GanConfig = field(default_factory=GanConfig)
    """Model of the behaviour policy."""
    mi_weight: float = 0.5
    """lambda in L_DML + lambda L_MI (the paper's equation puts it on the wrong term)."""
    ridge: float = 1e-5
    """Added to the diagonal of the covariance of generated actions."""


class ErTrlState(NamedTuple):
    """Everything that must survive a crash."""

    encoder: MeanEncoder
    encoder_opt: optax.OptState
    gan: Gan


def init(config: ErTrlConfig, dims: Dims, key: PRNGKeyArray) -> ErTrlState:
    """Fresh networks."""
    key_encoder, key_gan = jax.random.split(key)
    encoder = MeanEncoder(config.encoder, dims, key_encoder)
    adam = optax.adam(config.encoder.learning_rate)
    return ErTrlState(
        encoder,
        adam.init(eqx.filter(encoder, eqx.is_array)),
        init_gan(config.gan, dims, config.encoder.latent_dim, key_gan),
    )


def encode(config: ErTrlConfig, state: ErTrlState, context: Context) -> Float[Array, "*b Z"]:
    """Infer z."""
    return state.encoder(context)


def update(
    config: ErTrlConfig,
    state: ErTrlState,
    batch: TaskBatch,
    z_gradient: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> tuple[ErTrlState, Metrics]:
    """Algorithm 1: GAN rounds, then one encoder step on L_DML + lambda L_MI."""
    gan_key, entropy_key = jax.random.split(key)
    codes, encoder_pullback = jax.vjp(lambda encoder: encoder(batch.context), state.encoder)
    gan, gan_metrics = jax.lax.scan(
        lambda gan, k: gan_round(config.gan, gan, batch.rl, first_of_each_task(codes), k),
        state.gan,
        jax.random.split(gan_key, config.gan.rounds),
    )

    def loss_of_codes(codes: Float[Array, "T C Z"]):
        task = jnp.repeat(batch.task, codes.shape[1])
        dml = losses.distance_metric(codes.reshape(len(task), -1), task, **asdict(config.dml))
        # The generator is a constant here: only the encoder hears of the entropy.
        z = first_of_each_task(codes)
        fake = generate(config.gan, gan.generator, batch.rl.observation, z, entropy_key)
        mi = losses.mutual_information(fake, config.ridge)
        return dml + config.mi_weight * mi, (dml, mi)

    code_gradient, (dml, mi) = jax.grad(loss_of_codes, has_aux=True)(codes)
    (grad,) = encoder_pullback(code_gradient)
    steps, opt = optax.adam(config.encoder.learning_rate).update(grad, state.encoder_opt)
    encoder = eqx.apply_updates(state.encoder, steps)
    last_round = jax.tree.map(lambda x: x[-1], gan_metrics)
    metrics = {"dml_loss": dml, "mi_loss": mi, **spread(codes), **last_round}
    return ErTrlState(encoder, opt, gan), metrics


METHOD = Method(
    name="er-trl",
    summary="distance metric + maximal entropy of the GAN-modelled behaviour policy given z",
    paper="https://arxiv.org/abs/2412.14834",
    config=ErTrlConfig,
    init=init,
    encode=encode,
    update=update,
)
