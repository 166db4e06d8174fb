"""Mean and spread of everything seen so far, without keeping it."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Moments(NamedTuple):
    """Merged batch by batch (Chan et al., 1979)."""

    count: Float[Array, ""]
    mean: Float[Array, "N"]
    variance: Float[Array, "N"]
    """Of the population, not of a sample."""

    @classmethod
    def of_nothing(cls, size: int) -> "Moments":
        """Before the first batch."""
        return cls(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))

    def with_rows(self, rows: Float[Array, "*b N"]) -> "Moments":
        """What is known after these rows."""
        flat = rows.reshape(-1, rows.shape[-1])
        total = self.count + len(flat)
        share = len(flat) / total
        apart = flat.mean(axis=0) - self.mean
        return Moments(
            total,
            self.mean + share * apart,
            (1 - share) * (self.variance + share * jnp.square(apart)) + share * flat.var(axis=0),
        )

    def deviation(self) -> Float[Array, "N"]:
        """Standard deviations; 1 for what never changes."""
        deviation = jnp.sqrt(self.variance)
        return jnp.where(deviation > 1e-6, deviation, 1.0)
