"""GENTLE (Zhou et al., AAAI 2024): z that predicts the task's answer to everybody's questions.

An auto-encoder: z of a context, then a decoder that predicts s' - s and r from (s, a, z), with no
other loss (UNICORN without its metric). So that z cannot tell tasks by where their data lies, part
of each task's transitions are pseudo-transitions: (s, a) of another task, and s' and r as a model
of this task predicts them. The authors pretrain a model per task and let their policy choose a;
here one model that knows the task's number learns alongside, and a is logged.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.config import Share, Widths
from ertrl.errors import ConfigError
from ertrl.methods.base import Method
from ertrl.methods.encoder import MeanEncoder, spread
from ertrl.methods.prediction import columns, outcome, targets
from ertrl.nets import MLP, Moments, Trained, over_batch
from ertrl.types import Context, Dims, TaskBatch, Transitions


class GentleState(NamedTuple):
    nets: Trained[tuple[MeanEncoder, MLP]]
    """Encoder and decoder: trained by one loss and one optimiser."""
    model: Trained[MLP]
    """(s, a, number of the task) -> s' - s and r: relabels what other tasks did."""
    seen: Moments
    """Of (s, s' - s, r) in all batches so far: the scale of the predictions."""


@dataclass(frozen=True)
class Gentle(Method):
    """Settings of GENTLE. The encoder's step size is the decoder's and the model's, too."""

    name = "gentle"
    summary = "z that predicts next state and reward, also of other tasks' states and actions"
    paper = "https://arxiv.org/abs/2312.15909"
    loss = "unexplained_reward"

    pseudo_share: Share = 0.5
    """Part of the transitions that are other tasks', relabelled. 0: a plain auto-encoder."""
    decoder_hidden: Widths = (256, 256)
    """Widths of the decoder."""
    model_hidden: Widths = (256, 256)
    """Widths of the model that relabels."""

    def init(self, dims: Dims, key):
        if not dims.training_tasks:
            raise ConfigError("gentle needs to know the number of training tasks")
        keys, inputs = jax.random.split(key, 3), dims.observation + dims.action
        outputs = dims.observation + 1
        encoder = MeanEncoder(self.encoder, dims, keys[0])
        decoder = MLP(inputs + self.latent_dim, self.decoder_hidden, outputs, keys[1])
        model = MLP(inputs + dims.training_tasks, self.model_hidden, outputs, keys[2])
        seen = Moments.of_nothing(2 * dims.observation + 1)
        return GentleState(Trained.of((encoder, decoder)), Trained.of(model), seen)

    def update(self, state: GentleState, batch: TaskBatch, z_gradient, key):
        """A step of the model on real transitions, then one of the auto-encoder on mixed ones."""
        rl, count = batch.rl, state.model.net.weights[0].shape[0]
        width = rl.observation.shape[-1] + rl.action.shape[-1]
        number = jax.nn.one_hot(batch.task, count - width, dtype=rl.observation.dtype)
        seen = state.seen.with_rows(columns(rl))

        def fit(model: MLP):
            predicted = model(rl.observation, rl.action, over_batch(number, rl.observation))
            error = losses.prediction_error(predicted, targets(seen, rl))
            return error, error

        model, model_error = state.model.minimise(fit, self.encoder.learning_rate)
        keys = jax.random.split(key)
        context = Context(*self.mixed(model.net, seen, number, batch.context, keys[0]))
        rows = Transitions(*self.mixed(model.net, seen, number, rl, keys[1]))

        def loss(nets: tuple[MeanEncoder, MLP]):
            encoder, decoder = nets
            z = encoder(context)[:, 0]
            predicted = decoder(rows.observation, rows.action, over_batch(z, rows.observation))
            y = targets(seen, rows)
            error = losses.prediction_error(predicted, y)
            # Targets become more varied as the model learns: only their unexplained share falls.
            r, r_predicted = y[..., -1], predicted[..., -1]
            unexplained = jnp.square(r - r_predicted).mean() / jnp.maximum(r.var(), 1e-6)
            metrics = {"prediction_error": error, "unexplained_reward": unexplained}
            return error, metrics | {"model_error": model_error, **spread(z)}

        nets, metrics = state.nets.minimise(loss, self.encoder.learning_rate)
        return GentleState(nets, model, seen), metrics

    def mixed(
        self,
        model: MLP,
        seen: Moments,
        number: Float[Array, "T N"],
        rows: Context | Transitions,
        key: PRNGKeyArray,
    ) -> Context | Transitions:
        """Some contexts or rows of each task replaced by what another one did, relabelled.

        A context comes from one task as a whole: so does the one that an agent gathers itself.
        """
        shape, tasks = rows.reward.shape, len(number)
        one = (*shape[:2], *(1,) * (len(shape) - 2))
        own = jnp.arange(tasks).reshape(-1, *(1,) * (len(shape) - 1))
        u = jnp.broadcast_to(jax.random.uniform(key, one), shape)
        pseudo = u < self.pseudo_share
        ahead = 1 + jnp.floor(u / jnp.maximum(self.pseudo_share, 1e-6) * (tasks - 1)).astype(int)
        source = jnp.where(pseudo, (own + ahead) % tasks, own)
        drawn = type(rows)(*(_take(x, source) for x in rows))
        names = jnp.broadcast_to(number.reshape(*own.shape, -1), (*shape, number.shape[-1]))
        y = model(drawn.observation, drawn.action, names)
        s2, r = outcome(seen, drawn.observation, y)
        return drawn._replace(
            next_observation=jnp.where(pseudo[..., None], s2, drawn.next_observation),
            reward=jnp.where(pseudo, r, drawn.reward),
        )


def _take(x: Array, source: Array) -> Array:
    """Slot by slot, what the source's task has there."""
    return jnp.take_along_axis(x, source.reshape(*source.shape, *(1,) * (x.ndim - source.ndim)), 0)


METHOD = Gentle
