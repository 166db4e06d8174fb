"""CSRO (Gao et al., NeurIPS 2023): z without what a single state and action already tell.

Next to the distance-metric loss, the encoder minimises an upper bound (CLUB) on the mutual
information of a transition's code and its (s, a). A network of its own models q(z | s, a).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.methods.base import Method, Metrics
from ertrl.methods.encoder import (
    DmlConfig,
    EncoderConfig,
    MeanEncoder,
    mean_code,
    metric_loss,
    spread,
)
from ertrl.nets import MLP
from ertrl.types import Context, Dims, TaskBatch


@dataclass(frozen=True)
class CsroConfig:
    """Settings of CSRO."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Context encoder."""
    dml: DmlConfig = field(default_factory=DmlConfig)
    """Distance-metric loss."""
    club_weight: float = 1.0
    """Weight of the bound against L_DML: 1/10 of the released `club_loss_weight`."""
    club_hidden: tuple[int, ...] = (200, 200, 200)
    """Widths of the network behind q(z | s, a)."""
    club_learning_rate: float = 3e-4
    """Adam step size of that network."""


class CsroState(NamedTuple):
    """Everything that must survive a crash."""

    encoder: MeanEncoder
    encoder_opt: optax.OptState
    club: MLP
    club_opt: optax.OptState


def init(config: CsroConfig, dims: Dims, key: PRNGKeyArray) -> CsroState:
    """Fresh networks."""
    key_encoder, key_club = jax.random.split(key)
    encoder = MeanEncoder(config.encoder, dims, key_encoder)
    inputs = dims.observation + dims.action
    club = MLP(inputs, config.club_hidden, 2 * config.encoder.latent_dim, key_club)
    return CsroState(
        encoder,
        optax.adam(config.encoder.learning_rate).init(eqx.filter(encoder, eqx.is_array)),
        club,
        optax.adam(config.club_learning_rate).init(eqx.filter(club, eqx.is_array)),
    )


def encode(config: CsroConfig, state: CsroState, context: Context) -> Float[Array, "*b Z"]:
    """Infer z."""
    return state.encoder(context)


def _q(club: MLP, context: Context) -> tuple[Float[Array, "*b H Z"], Float[Array, "*b H Z"]]:
    """Mean and variance of q(z | s, a); tanh keeps the variance between 0.31 and 1.31."""
    mean, raw = jnp.split(jnp.tanh(club(context.observation, context.action)), 2, axis=-1)
    return mean, jax.nn.softplus(raw)


def update(
    config: CsroConfig,
    state: CsroState,
    batch: TaskBatch,
    z_gradient: Float[Array, "T Z"],
    key: PRNGKeyArray,
) -> tuple[CsroState, Metrics]:
    """A maximum-likelihood step of q, then an encoder step on L_DML + weight * bound."""
    context = batch.context
    codes, encoder_pullback = jax.vjp(lambda e: e.per_transition(context), state.encoder)

    def club_loss(club: MLP):
        return losses.club_likelihood(codes, *_q(club, context), context.mask)

    likelihood, grad = jax.value_and_grad(club_loss)(state.club)
    steps, club_opt = optax.adam(config.club_learning_rate).update(grad, state.club_opt)
    club = eqx.apply_updates(state.club, steps)
    # q is a constant from here on: only the encoder is to make (s, a) say less about z.
    mean, variance = _q(club, context)

    def loss_of_codes(codes: Float[Array, "T C H Z"]):
        z = mean_code(codes, context)
        dml = metric_loss(config.dml, z, batch.task)
        bound = losses.club_bound(codes, mean, variance, context.mask)
        return dml + config.club_weight * bound, (dml, bound, z)

    code_gradient, (dml, bound, z) = jax.grad(loss_of_codes, has_aux=True)(codes)
    (grad,) = encoder_pullback(code_gradient)
    steps, opt = optax.adam(config.encoder.learning_rate).update(grad, state.encoder_opt)
    encoder = eqx.apply_updates(state.encoder, steps)
    metrics = {"dml_loss": dml, "club_bound": bound, "club_loss": likelihood, **spread(z)}
    return CsroState(encoder, opt, club, club_opt), metrics


METHOD = Method(
    name="csro",
    summary="distance metric + an upper bound on what (s, a) tells about z",
    paper="https://arxiv.org/abs/2311.03695",
    config=CsroConfig,
    init=init,
    encode=encode,
    update=update,
    loss="dml_loss",
)
