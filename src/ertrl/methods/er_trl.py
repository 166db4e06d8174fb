"""ER-TRL (Nakhaei et al., AAAI 2025): z says what the task is and not who collected the data.

Next to the distance-metric loss, the encoder maximises the entropy of a GAN-modelled behaviour
policy given z: what z tells about the data's actions is what it should not tell.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.errors import ConfigError
from ertrl.methods.base import Method, Metrics
from ertrl.methods.encoder import (
    DmlConfig,
    EncoderConfig,
    MeanEncoder,
    first_of_each_task,
    metric_loss,
    spread,
)
from ertrl.methods.gan import Gan, GanConfig, gan_round, generate, init_gan
from ertrl.nets import MLP
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
    use_dml: bool = True
    """Off: the paper's ablation, in which the entropy alone trains the encoder."""
    entropy: Literal["pooled", "per-state"] = "pooled"
    """Spread of generated actions over a task's states (released), or within a state (paper)."""
    draws_per_state: int = 32
    """Generated actions per state, if per-state; takes 1/draws of the states, for equal cost."""
    ridge: float = 1e-5
    """Added to the diagonal of the covariance of generated actions."""


class ErTrlState(NamedTuple):
    """Everything that must survive a crash."""

    encoder: MeanEncoder
    encoder_opt: optax.OptState
    gan: Gan


def init(config: ErTrlConfig, dims: Dims, key: PRNGKeyArray) -> ErTrlState:
    """Fresh networks."""
    if config.entropy == "per-state" and config.draws_per_state <= dims.action:
        raise ConfigError(
            f"method.draws_per_state is {config.draws_per_state}; a covariance of {dims.action} "
            f"action dimensions needs at least {dims.action + 1}"
        )
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


def _mutual_information(
    config: ErTrlConfig,
    generator: MLP,
    s: Float[Array, "T B O"],
    z: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> Float[Array, ""]:
    """L_MI: minus the entropy of generated actions."""
    if config.entropy == "pooled":
        fake = generate(config.gan, generator, s, z, key)
        return losses.mutual_information(fake, config.ridge)
    m = config.draws_per_state
    states = s[:, : max(s.shape[1] // m, 1)]
    fake = generate(config.gan, generator, jnp.repeat(states, m, axis=1), z, key)
    per_state = fake.reshape(*states.shape[:2], m, fake.shape[-1])
    return -losses.entropy_per_state(per_state, config.ridge).mean()


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
        dml = metric_loss(config.dml, codes, batch.task)
        # The generator is a constant here: only the encoder hears of the entropy.
        z = first_of_each_task(codes)
        mi = _mutual_information(config, gan.generator, batch.rl.observation, z, entropy_key)
        return config.use_dml * dml + config.mi_weight * mi, (dml, mi)

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
    loss="dml_loss",
)
