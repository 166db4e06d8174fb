"""DORA (Zhang et al., ICML 2024): z near its task's prototype, and no longer than it has to be.

InfoNCE against a moving average of each task's codes, and a debiasing term that bounds what z can
tell of the behaviour policy's actions. The authors encode histories with a recurrent network; as
in SPC's comparison, here it is the mean encoder that all methods have.
"""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Array, Float

from ertrl import losses
from ertrl.config import Amount, Positive, Share
from ertrl.methods.base import Method
from ertrl.methods.encoder import MeanEncoder, spread
from ertrl.methods.prototypes import contrast, fresh_prototypes
from ertrl.nets import Trained
from ertrl.types import Dims, TaskBatch


class DoraState(NamedTuple):
    encoder: Trained[MeanEncoder]
    prototypes: Float[Array, "N Z"]


@dataclass(frozen=True)
class Dora(Method):
    """Settings of DORA."""

    name = "dora"
    summary = "InfoNCE against a moving average of each task's codes + a bound on z's length"
    paper = "https://arxiv.org/abs/2402.11317"
    loss = "info_nce"

    radius: Positive = 0.1
    """Distances to prototypes are divided by this; the smaller, the more the nearest ones count."""
    prototype_rate: Share = 0.05
    """How far a task's prototype moves toward its codes in one update."""
    debias_weight: Amount = 0.01
    """Weight of the debiasing term against InfoNCE."""

    def init(self, dims: Dims, key):
        encoder = MeanEncoder(self.encoder, dims, key)
        return DoraState(Trained.of(encoder), fresh_prototypes(dims, self.latent_dim))

    def update(self, state: DoraState, batch: TaskBatch, z_gradient, key):
        """One encoder step on InfoNCE + weight * debiasing."""

        def loss(encoder: MeanEncoder):
            codes = encoder(batch.context)
            info_nce, prototypes, metrics = contrast(
                state.prototypes, codes, batch.task, self.prototype_rate, self.radius
            )
            debias = losses.debiasing(codes)
            metrics |= {"debias_loss": debias, **spread(codes[:, 0])}
            return info_nce + self.debias_weight * debias, (prototypes, metrics)

        encoder, (prototypes, metrics) = state.encoder.minimise(loss, self.encoder.learning_rate)
        return DoraState(encoder, prototypes), metrics


METHOD = Dora
