"""What a learner is: offline actor-critic, given z, ignorant of how z is learned."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.runtime.layers import MLP
from ertrl.types import Dims, Metrics, Transitions


class LearnerStep(NamedTuple):
    """What one learner update returns."""

    state: Any
    z_gradient: Float[Array, "T Z"]
    """Gradient of the critic's loss with respect to z, for methods that train the encoder with
    it. Where nobody uses it, the compiler drops the computation."""
    metrics: Metrics


@dataclass(frozen=True)
class Learner(ABC):
    """Settings, as fields, and what is done with them; arrays live in a state of its own.

    A file of this folder defines one and ends in `LEARNER = ...`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    """Where it is from, if it was published."""
    has_critic: ClassVar[bool] = True
    """Whether the state has a `critic`. Without one `z_gradient` is zero, and methods that live on
    it refuse the learner."""

    @property
    def extra_batches(self) -> int:
        """How many further RL batches (`more_rl`) an update wants."""
        return 0

    @abstractmethod
    def init(self, dims: Dims, latent_dim: int, key: PRNGKeyArray) -> Any:
        """A fresh state: a NamedTuple of everything that must survive a crash."""

    @abstractmethod
    def update(
        self,
        state: Any,
        rl: Transitions,
        more_rl: Transitions,
        z: Float[Array, "T Z"],
        key: PRNGKeyArray,
    ) -> LearnerStep:
        """One step on the batch `rl` [T, B]; `more_rl` has axes [R, T, B]. z is a constant."""

    def policy(self, state: Any) -> MLP | None:
        """The network net without JAX, if the best action is tanh(net(s, z))."""
        return None

    @abstractmethod
    def act(
        self,
        state: Any,
        observation: Float[Array, "N O"],
        z: Float[Array, "N Z"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "N A"]:
        """The best action, or a stochastic one if a key is given."""
