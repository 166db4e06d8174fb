"""A conditional GAN that models the behaviour policy.

Generator a_fake = G(s, z, eps), discriminator D(a, s, z) = P(a is real).
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.learners.base import Metrics
from ertrl.nets import MLP, over_batch
from ertrl.types import Dims, Transitions


@dataclass(frozen=True)
class GanConfig:
    """Settings of generator and discriminator."""

    rounds: int = 5
    """Discriminator and generator steps per update, to keep up with the moving encoder."""
    learning_rate: float = 3e-4
    """Adam step size of both networks. [paper] The released code has 2e-4."""
    generator_hidden: tuple[int, ...] = (200, 200, 200)
    """Widths of the generator."""
    discriminator_hidden: tuple[int, ...] = (256, 256)
    """Widths of the discriminator."""
    noise_dim: int = 20
    """Size of the generator's noise."""


class Gan(NamedTuple):
    """Everything that must survive a crash."""

    generator: MLP
    discriminator: MLP
    generator_opt: optax.OptState
    discriminator_opt: optax.OptState


def init_gan(config: GanConfig, dims: Dims, latent_dim: int, key: PRNGKeyArray) -> Gan:
    """Fresh networks."""
    key_g, key_d = jax.random.split(key)
    inputs = dims.observation + latent_dim
    generator = MLP(inputs + config.noise_dim, config.generator_hidden, dims.action, key_g)
    discriminator = MLP(inputs + dims.action, config.discriminator_hidden, 1, key_d)
    adam = optax.adam(config.learning_rate)
    return Gan(
        generator,
        discriminator,
        adam.init(eqx.filter(generator, eqx.is_array)),
        adam.init(eqx.filter(discriminator, eqx.is_array)),
    )


def generate(
    config: GanConfig, generator: MLP, s: Array, z: Array, key: PRNGKeyArray
) -> Float[Array, "T B A"]:
    """a_fake = G(s, z, eps), Eq. (generate)."""
    noise = jax.random.normal(key, (*s.shape[:-1], config.noise_dim))
    return jnp.tanh(generator(s, over_batch(z, s), noise))


def gan_round(
    config: GanConfig, gan: Gan, rl: Transitions, z: Float[Array, "T Z"], key: PRNGKeyArray
) -> tuple[Gan, Metrics]:
    """A discriminator step, then a generator step on the same fakes. z is a constant here."""
    adam = optax.adam(config.learning_rate)
    s, real = rl.observation, rl.action
    zs = over_batch(z, s)
    fake, generator_pullback = jax.vjp(lambda g: generate(config, g, s, z, key), gan.generator)

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

    def g_loss(fake: Float[Array, "T B A"]):
        return losses.generator_loss(discriminator(fake, s, zs))

    g, fake_gradient = jax.value_and_grad(g_loss)(fake)
    (grad,) = generator_pullback(fake_gradient)
    steps, generator_opt = adam.update(grad, gan.generator_opt)
    generator = eqx.apply_updates(gan.generator, steps)
    metrics = {"discriminator_loss": d, "generator_loss": g, "discriminator_accuracy": accuracy}
    return Gan(generator, discriminator, generator_opt, discriminator_opt), metrics
