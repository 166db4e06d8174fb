"""What a learner is: offline actor-critic, given z, ignorant of how z is learned."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.types import Dims

Metrics = dict[str, Float[Array, ""]]


class LearnerStep(NamedTuple):
    """What one learner update returns."""

    state: Any
    z_gradient: Float[Array, "T Z"]
    """Gradient of the critic's loss with respect to z, for methods that train the encoder with
    it. Where nobody uses it, the compiler drops the computation."""
    metrics: Metrics


class Learner(NamedTuple):
    """One file of this folder ends in `LEARNER = Learner(...)`."""

    name: str
    summary: str
    paper: str
    config: type
    init: Callable[[Any, Dims, int, PRNGKeyArray], Any]
    """(config, dims, latent dimension, key) -> state"""
    update: Callable[..., LearnerStep]
    """(config, state, rl, more_rl, z, key) -> LearnerStep. z arrives without gradient."""
    act: Callable[..., Float[Array, "N A"]]
    """(config, state, observation [N, O], z [N, Z], key or None) -> action; None: deterministic"""
    extra_batches: Callable[[Any], int]
    """config -> how many further RL batches (`more_rl`) an update wants."""
