"""What is believed of a task's weights w before its first transition."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ertrl.nets import toward

CODES_RATE = 0.01
"""Of a batch in the average over codes: features move while they learn, and old codes fade."""
LEAST_VARIANCE = 0.01
"""Of the prior, also where training tasks do not differ: others may."""


class Prior(NamedTuple):
    """w ~ N(mean, root root^T): what is known of a task before its first transition.

    With w = mean + root u it is u ~ N(0, I), and regression as always, for u.
    """

    mean: Float[Array, "Z"]
    root: Float[Array, "Z Z"]

    def unit(
        self, phi: Float[Array, "*b M Z"], rest: Float[Array, "*b M"]
    ) -> tuple[Float[Array, "*b M Z"], Float[Array, "*b M"]]:
        """Features and rest of the model of u."""
        return phi @ self.root, rest - phi @ self.mean

    def weights(self, u: Float[Array, "*b Z"]) -> Float[Array, "*b Z"]:
        """The w of a u."""
        return self.mean + u @ self.root.T


class Codes(NamedTuple):
    """Where the z of training tasks lie: slow averages, which begin as N(0, I)."""

    mean: Float[Array, "Z"]
    squares: Float[Array, "Z Z"]
    """Of z z^T."""

    @classmethod
    def of_nothing(cls, size: int) -> "Codes":
        """Before the first batch."""
        return cls(jnp.zeros(size), jnp.eye(size))

    def with_rows(self, z: Float[Array, "*b Z"]) -> "Codes":
        """What is known after these codes."""
        rows = z.reshape(-1, z.shape[-1])
        return toward(self, Codes(rows.mean(axis=0), rows.T @ rows / len(rows)), CODES_RATE)

    def prior(self, width: float) -> Prior:
        """So many times as wide as training tasks lie, and a little in every direction."""
        covariance = self.squares - jnp.outer(self.mean, self.mean)
        least = LEAST_VARIANCE * jnp.eye(len(self.mean))
        return Prior(self.mean, jnp.linalg.cholesky(width * covariance + least))
