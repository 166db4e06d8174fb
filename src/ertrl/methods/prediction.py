"""What decoders predict of a transition, (s' - s, r), on the scale of everything seen so far."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ertrl.nets import Moments
from ertrl.types import Transitions


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
