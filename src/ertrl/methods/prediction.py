"""What decoders predict of a transition, (s' - s, r), on the scale of everything seen so far."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ertrl.types import Transitions


class Moments(NamedTuple):
    """Mean and spread of all rows so far, merged batch by batch (Chan et al., 1979)."""

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


def columns(rl: Transitions) -> Float[Array, "*b N"]:
    """(s, s' - s, r), whose moments give the scale."""
    change = rl.next_observation - rl.observation
    return jnp.concatenate([rl.observation, change, rl.reward[..., None]], axis=-1)


def targets(seen: Moments, rl: Transitions, *, by_states: bool = False) -> Float[Array, "*b N"]:
    """(s' - s, r), scaled. Only r is centred: a change of 0 stays 0."""
    n = rl.observation.shape[-1]
    spread = seen.deviation()
    scale = spread.at[n : 2 * n].set(spread[:n]) if by_states else spread
    centre = seen.mean.at[: 2 * n].set(0)
    return ((columns(rl) - centre) / scale)[..., n:]


def outcome(
    seen: Moments, s: Float[Array, "*b O"], y: Float[Array, "*b N"]
) -> tuple[Float[Array, "*b O"], Float[Array, "*b"]]:
    """What y is the target of: s' and r."""
    n = s.shape[-1]
    scaled = y * seen.deviation()[n:]
    return s + scaled[..., :n], seen.mean[-1] + scaled[..., n]
