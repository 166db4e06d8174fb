"""How z is inferred: sums over transitions, then a small function of them."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float

from ertrl.runtime.inference import Inference as PlainInference
from ertrl.types import Context


class Belief(NamedTuple):
    """What a context says of the task."""

    z: Any  # Float[Array, "*b Z"], of JAX or NumPy
    covariance: Any = None
    """Of the posterior, for what has one."""


@runtime_checkable
class Inference(Protocol):
    """z as a small function of sums over transitions: so it can be inferred step by step."""

    def __call__(self, context: Context) -> Float[Array, "*b Z"]:
        """Infer z from a whole context."""
        ...

    def evidence(self, context: Context) -> Any:
        """A pytree of sums over a context's transitions; those of two contexts add up."""
        ...

    def belief(self, evidence: Any) -> Belief:
        """What these sums say; its z is that of the whole context."""
        ...

    def plain(self) -> PlainInference:
        """The same without JAX."""
        ...
