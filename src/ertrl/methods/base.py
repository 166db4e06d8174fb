"""What a method is: how the task representation z is learned. One method, one file."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.methods.encoder import EncoderConfig
from ertrl.methods.inference import Inference
from ertrl.types import Context, Dims, Metrics, TaskBatch


@dataclass(frozen=True)
class Method(ABC):
    """Settings, as fields, and what is done with them; arrays live in a state of its own.

    A file of this folder defines one and ends in `METHOD = ...`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    """Where it is from, if it was published."""
    title: ClassVar[str] = ""
    """How reports write its name, if not in capitals."""
    loss: ClassVar[str] = "critic_loss"
    """The metric that `update` drives down; a test sees it fall and the encoder move."""
    hears_critic: ClassVar[bool] = False
    """Whether `update` uses z_gradient. A test holds a method to what it declares here."""
    always_sees_next_state: ClassVar[bool] = False
    """Whether z depends on next states even if `encoder.next_observation` is off."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder."""

    @property
    def latent_dim(self) -> int:
        """Size of z, as actor and critic see it."""
        return self.encoder.latent_dim

    @property
    def window(self) -> int:
        """How many consecutive transitions `update` wants in `batch.windows`; 0: none."""
        return 0

    @abstractmethod
    def init(self, dims: Dims, key: PRNGKeyArray) -> Any:
        """A fresh state: a NamedTuple of everything that must survive a crash."""

    def inference(self, state: Any) -> Inference:
        """How z is summed up from transitions: `state.encoder` says, or the first of `state.nets`.

        What is trained together with an encoder stands behind it in `nets`.
        """
        return state.encoder.net if hasattr(state, "encoder") else state.nets.net[0]

    def encode(self, state: Any, context: Context) -> Float[Array, "*b Z"]:
        """Infer z: `inference` does.

        A method that z is no function of sums for says here how it is inferred. How it aggregates
        is its own business, as long as the order of the context does not matter and masked slots
        count for nothing.
        """
        return self.inference(state)(context)

    def z0(self, state: Any) -> Float[Array, "Z"]:
        """The z of a task of which nothing is known yet."""
        return jnp.zeros(self.latent_dim)

    def sums(self, state: Any) -> Inference | None:
        """`inference`, if it is what `encode` does: then z can be inferred step by step."""
        if type(self).encode is not Method.encode:
            return None
        found = self.inference(state)
        return found if isinstance(found, Inference) else None

    def draw(self, state: Any, context: Context, key: PRNGKeyArray) -> Float[Array, "T Z"]:
        """The z that training conditions on: encode's, unless that is to be a sample."""
        return self.encode(state, context)

    @abstractmethod
    def update(
        self,
        state: Any,
        batch: TaskBatch,
        z_gradient: Float[Array, "T Z"],
        key: PRNGKeyArray,
    ) -> tuple[Any, Metrics]:
        """One step: the next state and what was measured.

        `z_gradient` is the gradient of the critic's loss at the z of the first contexts, for
        methods that want it; `key` is the one that `draw` got.
        """
