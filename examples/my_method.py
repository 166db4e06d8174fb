"""A method of one's own: FOCAL whose z also has to predict the mean reward of its context.

`ertrl train my_method.py:METHOD --data DIR` trains it, with all settings as options; in Python,
`ertrl.train(METHOD, data)` does. A file in src/ertrl/methods/ is known by its name alone.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ertrl.config import Amount
from ertrl.methods.base import Method
from ertrl.methods.encoder import DmlConfig, MeanEncoder, metric_loss, spread
from ertrl.nets import MLP, Trained
from ertrl.types import Context, Dims, TaskBatch


class State(NamedTuple):
    nets: Trained[tuple[MeanEncoder, MLP]]


@dataclass(frozen=True)
class MyMethod(Method):
    name = "my-method"
    summary = "distance-metric learning of z, which also tells the mean reward"
    paper = "https://arxiv.org/abs/2010.01112"
    loss = "dml_loss"

    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    weight: Amount = 1.0
    """Of the prediction error."""

    def init(self, dims: Dims, key):
        key_encoder, key_head = jax.random.split(key)
        encoder = MeanEncoder(self.encoder, dims, key_encoder)
        return State(Trained.of((encoder, MLP(self.latent_dim, (), 1, key_head))))

    def encode(self, state: State, context: Context):
        return state.nets.net[0](context)

    def update(self, state: State, batch: TaskBatch, z_gradient, key):
        def loss(nets: tuple[MeanEncoder, MLP]):
            encoder, head = nets
            codes = encoder(batch.context)
            dml = metric_loss(self.dml, codes, batch.task)
            error = jnp.mean((head(codes)[..., 0] - batch.context.reward.mean(-1)) ** 2)
            metrics = {"dml_loss": dml, "reward_error": error, **spread(codes[:, 0])}
            return dml + self.weight * error, metrics

        nets, metrics = state.nets.minimise(loss, self.encoder.learning_rate)
        return State(nets), metrics


METHOD = MyMethod
