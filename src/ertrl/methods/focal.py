"""FOCAL (Li et al., ICLR 2021): distance-metric learning of task representations."""

from dataclasses import dataclass, field
from typing import NamedTuple

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.methods.base import Method, Metrics
from ertrl.methods.encoder import DmlConfig, EncoderConfig, MeanEncoder, metric_loss, spread
from ertrl.types import Context, Dims, TaskBatch


@dataclass(frozen=True)
class FocalConfig:
    """Settings of FOCAL."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder."""
    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""


class FocalState(NamedTuple):
    """Everything that must survive a crash."""

    encoder: MeanEncoder
    encoder_opt: optax.OptState


def init(config: FocalConfig, dims: Dims, key: PRNGKeyArray) -> FocalState:
    """Fresh encoder."""
    encoder = MeanEncoder(config.encoder, dims, key)
    adam = optax.adam(config.encoder.learning_rate)
    return FocalState(encoder, adam.init(eqx.filter(encoder, eqx.is_array)))


def encode(config: FocalConfig, state: FocalState, context: Context) -> Float[Array, "*b Z"]:
    """Infer z."""
    return state.encoder(context)


def update(
    config: FocalConfig,
    state: FocalState,
    batch: TaskBatch,
    z_gradient: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> tuple[FocalState, Metrics]:
    """One step on L_DML alone. The critic's gradient does not reach the encoder."""

    def encoder_loss(encoder: MeanEncoder):
        codes = encoder(batch.context)
        return metric_loss(config.dml, codes, batch.task), codes

    (dml, codes), grad = jax.value_and_grad(encoder_loss, has_aux=True)(state.encoder)
    steps, opt = optax.adam(config.encoder.learning_rate).update(grad, state.encoder_opt)
    encoder = eqx.apply_updates(state.encoder, steps)
    return FocalState(encoder, opt), {"dml_loss": dml, **spread(codes)}


METHOD = Method(
    name="focal",
    summary="distance-metric learning of z",
    paper="https://arxiv.org/abs/2010.01112",
    config=FocalConfig,
    init=init,
    encode=encode,
    update=update,
    loss="dml_loss",
)
