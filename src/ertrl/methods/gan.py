"""A conditional GAN that models the behaviour policy.

Generator a_fake = G(s, z, eps), discriminator D(a, s, z) = P(a is real).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.config import Amount, Count, Size, Widths
from ertrl.nets import MLP, Trained, over_batch
from ertrl.types import Dims, Metrics, Transitions


def generate(
    generator: MLP,
    s: Float[Array, "T B O"],
    z: Float[Array, "T Z"],
    noise: Float[Array, "T B E"],
) -> Float[Array, "T B A"]:
    """a_fake = G(s, z, eps), Eq. (generate)."""
    return jnp.tanh(generator(s, over_batch(z, s), noise))


class GanState(NamedTuple):
    generator: Trained[MLP]
    discriminator: Trained[MLP]


@dataclass(frozen=True)
class Gan:
    """Settings of generator and discriminator."""

    rounds: Count = 5
    """Discriminator and generator steps per update, to keep up with the moving encoder."""
    learning_rate: Amount = 3e-4
    """Adam step size of both networks. [paper] The released code has 2e-4."""
    generator_hidden: Widths = (200, 200, 200)
    """Widths of the generator."""
    discriminator_hidden: Widths = (256, 256)
    """Widths of the discriminator."""
    noise_dim: Size = 20
    """Size of the generator's noise."""

    def init(self, dims: Dims, latent_dim: int, key: PRNGKeyArray) -> GanState:
        key_g, key_d = jax.random.split(key)
        inputs = dims.observation + latent_dim
        generator = MLP(inputs + self.noise_dim, self.generator_hidden, dims.action, key_g)
        discriminator = MLP(inputs + dims.action, self.discriminator_hidden, 1, key_d)
        return GanState(Trained.of(generator), Trained.of(discriminator))

    def noise(self, s: Float[Array, "T B O"], key: PRNGKeyArray) -> Float[Array, "T B E"]:
        """Eps, a draw for each state."""
        return jax.random.normal(key, (*s.shape[:-1], self.noise_dim))

    def train(
        self, state: GanState, rl: Transitions, z: Float[Array, "T Z"], key: PRNGKeyArray
    ) -> tuple[GanState, Metrics]:
        """All rounds of an update, and what the last one measured."""
        state, metrics = jax.lax.scan(
            lambda state, key: self.round(state, rl, z, key),
            state,
            jax.random.split(key, self.rounds),
        )
        return state, jax.tree.map(lambda x: x[-1], metrics)

    def round(
        self, state: GanState, rl: Transitions, z: Float[Array, "T Z"], key: PRNGKeyArray
    ) -> tuple[GanState, Metrics]:
        """A discriminator step, then a generator step on the same fakes. z is a constant here."""
        s, real, zs = rl.observation, rl.action, over_batch(z, rl.observation)
        noise = self.noise(s, key)
        fake = generate(state.generator.net, s, z, noise)

        def d_loss(discriminator: MLP):
            # Real and fake side by side: one product instead of two.
            logit = discriminator(
                jnp.concatenate([real, fake], axis=1),
                jnp.concatenate([s, s], axis=1),
                jnp.concatenate([zs, zs], axis=1),
            )
            real_logit, fake_logit = jnp.split(logit, 2, axis=1)
            loss = losses.discriminator_loss(real_logit, fake_logit)
            accuracy = 0.5 * ((real_logit > 0).mean() + (fake_logit < 0).mean())
            return loss, {"discriminator_loss": loss, "discriminator_accuracy": accuracy}

        discriminator, metrics = state.discriminator.minimise(d_loss, self.learning_rate)

        def g_loss(generator: MLP):
            fake = generate(generator, s, z, noise)  # compiled, it is computed once
            loss = losses.generator_loss(discriminator.net(fake, s, zs))
            return loss, metrics | {"generator_loss": loss}

        generator, metrics = state.generator.minimise(g_loss, self.learning_rate)
        return GanState(generator, discriminator), metrics
