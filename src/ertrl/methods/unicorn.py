"""UNICORN (Li et al., NeurIPS 2024): z as what predicts the task's transitions.

Self-supervised (-SS): a decoder predicts s' - s and r from (s, a, z), next to the distance-metric
loss. Supervised (-SUP): a classifier names the training task from z, and nothing else is learned.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax

from ertrl import losses
from ertrl.config import Amount, Widths
from ertrl.errors import ConfigError
from ertrl.methods.base import Method
from ertrl.methods.encoder import DmlConfig, MeanEncoder, metric_loss, spread
from ertrl.methods.prediction import columns, targets
from ertrl.nets import MLP, Moments, Trained, over_batch
from ertrl.types import Dims, TaskBatch


class UnicornState(NamedTuple):
    nets: Trained[tuple[MeanEncoder, MLP]]
    """Encoder, and decoder or classifier: trained by one loss and one optimiser."""
    seen: Moments
    """Of (s, s' - s, r) in all batches so far: the scale of the predictions."""


@dataclass(frozen=True)
class Unicorn(Method):
    """Settings of UNICORN. The encoder's step size is the decoder's and classifier's, too."""

    name = "unicorn"
    summary = "z that predicts next state and reward (+ distance metric), or names the task"
    paper = "https://arxiv.org/abs/2402.02429"
    loss = "dml_loss"

    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    supervision: Literal["self", "task"] = "self"
    """Predict transitions next to L_DML (-SS), or name the training task (-SUP)."""
    prediction_weight: Amount = 6.67
    """Weight of the prediction error against L_DML: 1 / beta of UNICORN. ER-TRL's code has beta."""
    decoder_hidden: Widths = (256, 256)
    """Widths of the decoder."""
    change_scale: Literal["changes", "states"] = "changes"
    """s' - s is divided by the spread of such changes, or of the states (released)."""

    def init(self, dims: Dims, key):
        key_encoder, key_head = jax.random.split(key)
        encoder = MeanEncoder(self.encoder, dims, key_encoder)
        if self.supervision == "self":
            inputs = dims.observation + dims.action + self.latent_dim
            head = MLP(inputs, self.decoder_hidden, dims.observation + 1, key_head)
        elif dims.training_tasks:
            head = MLP(self.latent_dim, (), dims.training_tasks, key_head)
        else:
            raise ConfigError("method.supervision=task needs to know the number of training tasks")
        seen = Moments.of_nothing(2 * dims.observation + 1)
        return UnicornState(Trained.of((encoder, head)), seen)

    def update(self, state: UnicornState, batch: TaskBatch, z_gradient, key):
        """One step of encoder and decoder (-SS), or of encoder and classifier (-SUP)."""
        rl = batch.rl
        seen = state.seen.with_rows(columns(rl))

        def self_supervised(nets: tuple[MeanEncoder, MLP]):
            encoder, decoder = nets
            codes = encoder(batch.context)
            dml = metric_loss(self.dml, codes, batch.task)
            predicted = decoder(rl.observation, rl.action, over_batch(codes[:, 0], rl.observation))
            by_states = self.change_scale == "states"
            error = losses.prediction_error(predicted, targets(seen, rl, by_states=by_states))
            metrics = {"dml_loss": dml, "prediction_error": error, **spread(codes[:, 0])}
            return dml + self.prediction_weight * error, metrics

        def supervised(nets: tuple[MeanEncoder, MLP]):
            encoder, classifier = nets
            codes = encoder(batch.context)
            logits = classifier(codes)
            loss = losses.task_cross_entropy(logits, batch.task)
            right = (logits.argmax(axis=-1) == batch.task[:, None]).mean()
            return loss, {"cross_entropy": loss, "task_accuracy": right, **spread(codes[:, 0])}

        loss = self_supervised if self.supervision == "self" else supervised
        nets, metrics = state.nets.minimise(loss, self.encoder.learning_rate)
        return UnicornState(nets, seen), metrics


METHOD = Unicorn
