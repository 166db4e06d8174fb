"""UNICORN (Li et al., NeurIPS 2024): z as what predicts the task's transitions.

Self-supervised (-SS): a decoder predicts s' - s and r from (s, a, z), next to the distance-metric
loss. Supervised (-SUP): a classifier names the training task from z, and nothing else is learned.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.errors import ConfigError
from ertrl.methods.base import Method, Metrics
from ertrl.methods.encoder import (
    DmlConfig,
    EncoderConfig,
    MeanEncoder,
    first_of_each_task,
    metric_loss,
    spread,
)
from ertrl.methods.moments import Moments
from ertrl.nets import MLP, over_batch
from ertrl.types import Context, Dims, TaskBatch, Transitions


@dataclass(frozen=True)
class UnicornConfig:
    """Settings of UNICORN."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder; its step size is the decoder's and classifier's, too."""
    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    supervision: Literal["self", "task"] = "self"
    """Predict transitions next to L_DML (-SS), or name the training task (-SUP)."""
    prediction_weight: float = 6.67
    """Weight of the prediction error against L_DML: 1 / beta of UNICORN. ER-TRL's code has beta."""
    decoder_hidden: tuple[int, ...] = (256, 256)
    """Widths of the decoder."""
    change_scale: Literal["changes", "states"] = "changes"
    """s' - s is divided by the spread of such changes, or of the states (released)."""


class UnicornState(NamedTuple):
    """Everything that must survive a crash."""

    nets: tuple[MeanEncoder, MLP]
    """Encoder, and decoder or classifier: trained by one loss and one optimiser."""
    nets_opt: optax.OptState
    seen: Moments
    """Of (s, s' - s, r) in all batches so far: the scale of the predictions."""


def init(config: UnicornConfig, dims: Dims, key: PRNGKeyArray) -> UnicornState:
    """Fresh networks."""
    key_encoder, key_head = jax.random.split(key)
    encoder = MeanEncoder(config.encoder, dims, key_encoder)
    latent = config.encoder.latent_dim
    if config.supervision == "self":
        inputs = dims.observation + dims.action + latent
        head = MLP(inputs, config.decoder_hidden, dims.observation + 1, key_head)
    elif dims.training_tasks:
        head = MLP(latent, (), dims.training_tasks, key_head)
    else:
        raise ConfigError("method.supervision=task needs to know the number of training tasks")
    opt = optax.adam(config.encoder.learning_rate).init(eqx.filter((encoder, head), eqx.is_array))
    return UnicornState((encoder, head), opt, Moments.of_nothing(2 * dims.observation + 1))


def encode(config: UnicornConfig, state: UnicornState, context: Context) -> Float[Array, "*b Z"]:
    """Infer z."""
    return state.nets[0](context)


def _columns(rl: Transitions) -> Float[Array, "T B N"]:
    change = rl.next_observation - rl.observation
    return jnp.concatenate([rl.observation, change, rl.reward[..., None]], axis=-1)


def _targets(config: UnicornConfig, seen: Moments, rl: Transitions) -> Float[Array, "T B N"]:
    """(s' - s, r) on a common scale. Only r is centred: a change of 0 stays 0."""
    n = rl.observation.shape[-1]
    spread = seen.deviation()
    scale = spread.at[n : 2 * n].set(spread[:n]) if config.change_scale == "states" else spread
    centre = seen.mean.at[: 2 * n].set(0)
    return ((_columns(rl) - centre) / scale)[..., n:]


def update(
    config: UnicornConfig,
    state: UnicornState,
    batch: TaskBatch,
    z_gradient: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> tuple[UnicornState, Metrics]:
    """One step of encoder and decoder (-SS), or of encoder and classifier (-SUP)."""
    seen = state.seen.with_rows(_columns(batch.rl))
    rl, target = batch.rl, _targets(config, seen, batch.rl)

    def self_supervised(nets: tuple[MeanEncoder, MLP]):
        encoder, decoder = nets
        codes = encoder(batch.context)
        dml = metric_loss(config.dml, codes, batch.task)
        z = over_batch(first_of_each_task(codes), rl.observation)
        error = losses.prediction_error(decoder(rl.observation, rl.action, z), target)
        loss = dml + config.prediction_weight * error
        return loss, {"dml_loss": dml, "prediction_error": error, **spread(codes)}

    def supervised(nets: tuple[MeanEncoder, MLP]):
        encoder, classifier = nets
        codes = encoder(batch.context)
        logits = classifier(codes)
        loss = losses.task_cross_entropy(logits, batch.task)
        right = (logits.argmax(axis=-1) == batch.task[:, None]).mean()
        return loss, {"cross_entropy": loss, "task_accuracy": right, **spread(codes)}

    loss = self_supervised if config.supervision == "self" else supervised
    grad, metrics = jax.grad(loss, has_aux=True)(state.nets)
    steps, opt = optax.adam(config.encoder.learning_rate).update(grad, state.nets_opt)
    return UnicornState(eqx.apply_updates(state.nets, steps), opt, seen), metrics


METHOD = Method(
    name="unicorn",
    summary="z that predicts next state and reward (+ distance metric), or names the task",
    paper="https://arxiv.org/abs/2402.02429",
    config=UnicornConfig,
    init=init,
    encode=encode,
    update=update,
    loss="dml_loss",
)
