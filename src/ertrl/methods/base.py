"""What a method is: how the task representation z is learned. One method, one file."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.learners.base import Metrics
from ertrl.types import Context, Dims, TaskBatch


class Method(NamedTuple):
    """One file of this folder ends in `METHOD = Method(...)`."""

    name: str
    summary: str
    paper: str
    config: type
    """A frozen dataclass with a field `encoder: EncoderConfig`."""
    init: Callable[[Any, Dims, PRNGKeyArray], Any]
    """(config, dims, key) -> state"""
    encode: Callable[[Any, Any, Context], Float[Array, "*b Z"]]
    """(config, state, context) -> z. How it aggregates is the method's own business, as long as
    the order of the context does not matter and masked slots count for nothing."""
    update: Callable[[Any, Any, TaskBatch, Float[Array, "T Z"], PRNGKeyArray], tuple[Any, Metrics]]
    """(config, state, batch, z_gradient, key) -> (state, metrics). z_gradient is the gradient of
    the critic's loss at the z of the first contexts, for methods that want it."""
    loss: str = "critic_loss"
    """The metric that `update` drives down; a test sees it fall and the encoder move."""
    hears_critic: bool = False
    """Whether `update` uses z_gradient. A test holds a method to what it declares here."""
    draw: Callable[[Any, Any, Context, PRNGKeyArray], Float[Array, "T Z"]] | None = None
    """(config, state, context, key) -> the z that training conditions on, where that is a sample
    and not encode's. `update` gets the same key."""
