"""What is believed of a task's weights w before its first transition."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

RATE = 0.01
"""Of a batch in the averages: features move while they learn, and old codes fade."""
LEAST_VARIANCE = 0.01
"""In every direction, also where training tasks do not differ: others may."""


class Prior(NamedTuple):
    """w ~ N(mean, root root^T), about where the z of training tasks lie.

    With w = mean + root u it is u ~ N(0, I), and regression as always, for u.
    """

    mean: Float[Array, "Z"]
    covariance: Float[Array, "Z Z"]
    """Of the z of training tasks, a slow average as the mean is."""
    root: Float[Array, "Z Z"]
    """Kept, and not computed where it is needed: all who adapt must have the same bits of it."""

    @classmethod
    def of_nothing(cls, size: int, times: float) -> "Prior":
        """Before the first batch: as if z of training tasks were N(0, I)."""
        return cls(jnp.zeros(size), jnp.eye(size), _root(jnp.eye(size), times))

    def with_codes(self, z: Float[Array, "*b Z"], times: float) -> "Prior":
        """What is known after these codes; the prior has so many times their covariance."""
        rows = z.reshape(-1, z.shape[-1])
        apart, here = rows.mean(axis=0) - self.mean, rows - rows.mean(axis=0)
        before = self.covariance + RATE * jnp.outer(apart, apart)
        covariance = (1 - RATE) * before + RATE * here.T @ here / len(rows)
        return Prior(self.mean + RATE * apart, covariance, _root(covariance, times))

    def unit(
        self, phi: Float[Array, "*b M Z"], rest: Float[Array, "*b M"]
    ) -> tuple[Float[Array, "*b M Z"], Float[Array, "*b M"]]:
        """Features and rest of the model of u."""
        return phi @ self.root, rest - phi @ self.mean

    def weights(self, u: Float[Array, "*b Z"]) -> Float[Array, "*b Z"]:
        """The w of a u."""
        return self.mean + u @ self.root.T


def _root(covariance: Float[Array, "Z Z"], times: float) -> Float[Array, "Z Z"]:
    return jnp.linalg.cholesky(times * covariance + LEAST_VARIANCE * jnp.eye(len(covariance)))
