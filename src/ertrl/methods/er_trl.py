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
from ertrl.nets import MLP, over_batch
from ertrl.types import Context, Dims, TaskBatch, Transitions


@dataclass(frozen=True)
class ErTrlConfig:
    """Settings of ER-TRL."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder."""
    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    mi_weight: float = 0.5
    """lambda in L_DML + lambda L_MI. (The paper's equation puts lambda on the other term; its
    table and the released code agree with this placement.)"""
    gan_rounds: int = 5
    """Discriminator and generator steps per update."""
    gan_learning_rate: float = 3e-4
    """Adam step size of generator and discriminator."""
    generator_hidden: tuple[int, ...] = (200, 200, 200)
    """Widths of the generator."""
    discriminator_hidden: tuple[int, ...] = (256, 256)
    """Widths of the discriminator."""
    noise_dim: int = 20
    """Size of the generator's noise."""
    ridge: float = 1e-5
    """Added to the diagonal of the covariance of generated actions."""


class Gan(NamedTuple):
    """The behaviour policy's model: a_fake = G(s, z, eps), D(a, s, z) = P(a is real)."""

    generator: MLP
    discriminator: MLP
    generator_opt: optax.OptState
    discriminator_opt: optax.OptState


class ErTrlState(NamedTuple):
    """Everything that must survive a crash."""

    encoder: MeanEncoder
    encoder_opt: optax.OptState
    gan: Gan


def init(config: ErTrlConfig, dims: Dims, key: PRNGKeyArray) -> ErTrlState:
    """Fresh networks."""
    keys = jax.random.split(key, 3)
    inputs = dims.observation + config.encoder.latent_dim
    encoder = MeanEncoder(config.encoder, dims, keys[0])
    generator = MLP(inputs + config.noise_dim, config.generator_hidden, dims.action, keys[1])
    discriminator = MLP(inputs + dims.action, config.discriminator_hidden, 1, keys[2])
    adam, gan_adam = optax.adam(config.encoder.learning_rate), optax.adam(config.gan_learning_rate)
    return ErTrlState(
        encoder,
        adam.init(eqx.filter(encoder, eqx.is_array)),
        Gan(
            generator,
            discriminator,
            gan_adam.init(eqx.filter(generator, eqx.is_array)),
            gan_adam.init(eqx.filter(discriminator, eqx.is_array)),
        ),
    )


def encode(config: ErTrlConfig, state: ErTrlState, context: Context) -> Float[Array, "*b Z"]:
    """Infer z."""
    return state.encoder(context)


def generate(
    config: ErTrlConfig, generator: MLP, s: Array, z: Array, key: PRNGKeyArray
) -> Float[Array, "T B A"]:
    """a_fake = G(s, z, eps), Eq. (generate)."""
    noise = jax.random.normal(key, (*s.shape[:-1], config.noise_dim))
    return jnp.tanh(generator(s, over_batch(z, s), noise))


def gan_round(
    config: ErTrlConfig, gan: Gan, rl: Transitions, z: Float[Array, "T Z"], key: PRNGKeyArray
) -> tuple[Gan, Metrics]:
    """A discriminator step, then a generator step on the same fakes. z is a constant here."""
    adam = optax.adam(config.gan_learning_rate)
    s, real = rl.observation, rl.action
    zs = over_batch(z, s)
    fake, generator_pullback = eqx.filter_vjp(
        lambda g: generate(config, g, s, z, key), gan.generator
    )

    def d_loss(discriminator: MLP):
        # Real and fake side by side: one product instead of two.
        logit = discriminator(
            jnp.concatenate([real, fake], axis=1),
            jnp.concatenate([s, s], axis=1),
            jnp.concatenate([zs, zs], axis=1),
        )
        real_logit, fake_logit = jnp.split(logit, 2, axis=1)
        accuracy = 0.5 * ((real_logit > 0).mean() + (fake_logit < 0).mean())
        return losses.discriminator_loss(real_logit, fake_logit), accuracy

    (d, accuracy), grad = jax.value_and_grad(d_loss, has_aux=True)(gan.discriminator)
    steps, discriminator_opt = adam.update(grad, gan.discriminator_opt)
    discriminator = eqx.apply_updates(gan.discriminator, steps)

    g, fake_gradient = jax.value_and_grad(
        lambda a: losses.generator_loss(discriminator(a, s, zs))
    )(fake)
    (grad,) = generator_pullback(fake_gradient)
    steps, generator_opt = adam.update(grad, gan.generator_opt)
    generator = eqx.apply_updates(gan.generator, steps)
    metrics = {"discriminator_loss": d, "generator_loss": g, "discriminator_accuracy": accuracy}
    return Gan(generator, discriminator, generator_opt, discriminator_opt), metrics


def update(
    config: ErTrlConfig,
    state: ErTrlState,
    batch: TaskBatch,
    z_gradient: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> tuple[ErTrlState, Metrics]:
    """Algorithm 1: GAN rounds, then one encoder step on L_DML + lambda L_MI."""
    gan_key, entropy_key = jax.random.split(key)
    z = first_of_each_task(state.encoder(batch.context))
    gan, gan_metrics = jax.lax.scan(
        lambda gan, k: gan_round(config, gan, batch.rl, z, k),
        state.gan,
        jax.random.split(gan_key, config.gan_rounds),
    )

    def encoder_loss(encoder: MeanEncoder):
        codes = encoder(batch.context)
        task = jnp.repeat(batch.task, codes.shape[1])
        dml = losses.distance_metric(codes.reshape(len(task), -1), task, **asdict(config.dml))
        # The generator is a constant here: only the encoder hears of the entropy.
        z = first_of_each_task(codes)
        fake = generate(config, gan.generator, batch.rl.observation, z, entropy_key)
        mi = losses.mutual_information(fake, config.ridge)
        return dml + config.mi_weight * mi, (dml, mi, codes)

    grad, (dml, mi, codes) = jax.grad(encoder_loss, has_aux=True)(state.encoder)
    steps, opt = optax.adam(config.encoder.learning_rate).update(grad, state.encoder_opt)
    encoder = eqx.apply_updates(state.encoder, steps)
    metrics = {"dml_loss": dml, "mi_loss": mi, **spread(codes)}
    metrics |= jax.tree.map(lambda x: x[-1], gan_metrics)
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
