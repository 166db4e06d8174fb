"""CSRO (Gao et al., NeurIPS 2023): z without what a single state and action already tell.

Next to the distance-metric loss, the encoder minimises an upper bound (CLUB) on the mutual
information of a transition's code and its (s, a). A network of its own models q(z | s, a).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ertrl import losses
from ertrl.config import Amount, Widths
from ertrl.methods.base import Method
from ertrl.methods.encoder import DmlConfig, MeanEncoder, mean_code, metric_loss, spread
from ertrl.nets import MLP, Trained
from ertrl.types import Context, Dims, TaskBatch


class CsroState(NamedTuple):
    encoder: Trained[MeanEncoder]
    club: Trained[MLP]


def predicted(club: MLP, context: Context) -> tuple[Float[Array, "*b H Z"], Float[Array, "*b H Z"]]:
    """Mean and variance of q(z | s, a); tanh keeps the variance between 0.31 and 1.31."""
    mean, raw = jnp.split(jnp.tanh(club(context.observation, context.action)), 2, axis=-1)
    return mean, jax.nn.softplus(raw)


@dataclass(frozen=True)
class Csro(Method):
    """Settings of CSRO."""

    name = "csro"
    summary = "distance metric + an upper bound on what (s, a) tells about z"
    paper = "https://arxiv.org/abs/2311.03695"
    loss = "dml_loss"

    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    club_weight: Amount = 1.0
    """Weight of the bound against L_DML: 1/10 of the released `club_loss_weight`."""
    club_hidden: Widths = (200, 200, 200)
    """Widths of the network behind q(z | s, a)."""
    club_learning_rate: Amount = 3e-4
    """Adam step size of that network."""

    def init(self, dims: Dims, key):
        key_encoder, key_club = jax.random.split(key)
        encoder = MeanEncoder(self.encoder, dims, key_encoder)
        inputs = dims.observation + dims.action
        club = MLP(inputs, self.club_hidden, 2 * self.latent_dim, key_club)
        return CsroState(Trained.of(encoder), Trained.of(club))

    def update(self, state: CsroState, batch: TaskBatch, z_gradient, key):
        """A maximum-likelihood step of q, then an encoder step on L_DML + weight * bound."""
        context = batch.context

        def loss(encoder: MeanEncoder):
            codes = encoder.per_transition(context)
            constant = jax.lax.stop_gradient(codes)

            def club_loss(club: MLP):
                surprise = losses.club_likelihood(constant, *predicted(club, context), context.mask)
                return surprise, surprise

            club, likelihood = state.club.minimise(club_loss, self.club_learning_rate)
            # q is a constant from here on: only the encoder is to make (s, a) say less about z.
            mean, variance = predicted(club.net, context)
            z = mean_code(codes, context)
            dml = metric_loss(self.dml, z, batch.task)
            bound = losses.club_bound(codes, mean, variance, context.mask)
            metrics = {"dml_loss": dml, "club_bound": bound, "club_loss": likelihood}
            return dml + self.club_weight * bound, (club, metrics | spread(z[:, 0]))

        encoder, (club, metrics) = state.encoder.minimise(loss, self.encoder.learning_rate)
        return CsroState(encoder, club), metrics


METHOD = Csro
