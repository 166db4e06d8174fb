"""FOCAL (Li et al., ICLR 2021): distance-metric learning of task representations."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ertrl.methods.base import Method
from ertrl.methods.encoder import DmlConfig, MeanEncoder, metric_loss, spread
from ertrl.nets import Trained
from ertrl.types import Dims, TaskBatch


class FocalState(NamedTuple):
    encoder: Trained[MeanEncoder]


@dataclass(frozen=True)
class Focal(Method):
    """Settings of FOCAL."""

    name = "focal"
    summary = "distance-metric learning of z"
    paper = "https://arxiv.org/abs/2010.01112"
    loss = "dml_loss"

    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""

    def init(self, dims: Dims, key):
        return FocalState(Trained.of(MeanEncoder(self.encoder, dims, key)))

    def update(self, state: FocalState, batch: TaskBatch, z_gradient, key):
        """One step on L_DML alone. The critic's gradient does not reach the encoder."""

        def loss(encoder: MeanEncoder):
            codes = encoder(batch.context)
            dml = metric_loss(self.dml, codes, batch.task)
            return dml, {"dml_loss": dml, **spread(codes[:, 0])}

        encoder, metrics = state.encoder.minimise(loss, self.encoder.learning_rate)
        return FocalState(encoder), metrics


METHOD = Focal
