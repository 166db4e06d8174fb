"""A slowly moving code per training task, for contrastive methods to compare with."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ertrl import losses
from ertrl.errors import ConfigError
from ertrl.nets import toward
from ertrl.types import Dims, Metrics


def fresh_prototypes(dims: Dims, latent_dim: int) -> Float[Array, "N Z"]:
    """One per training task, where fresh encoders put their codes."""
    if not dims.training_tasks:
        raise ConfigError("prototypes per task need to know the number of training tasks")
    return jnp.zeros((dims.training_tasks, latent_dim))


def contrast(
    prototypes: Float[Array, "N Z"],
    codes: Float[Array, "T C Z"],
    task: Int[Array, "T"],
    rate: float,
    radius: float,
) -> tuple[Float[Array, ""], Float[Array, "N Z"], Metrics]:
    """InfoNCE against prototypes that have first moved a little toward the codes; both of these.

    Prototypes are constants to the encoder.
    """
    centre = jax.lax.stop_gradient(codes.mean(axis=1))
    prototypes = prototypes.at[task].set(toward(prototypes[task], centre, rate))
    logits = losses.prototype_logits(codes, prototypes, radius)
    loss = losses.task_cross_entropy(logits, task)
    right = (logits.argmax(axis=-1) == task[:, None]).mean()
    return loss, prototypes, {"info_nce": loss, "task_accuracy": right}
