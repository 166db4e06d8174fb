"""Context encoders and what methods do with their codes."""

from dataclasses import asdict, dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ertrl import losses
from ertrl.config import Amount, Positive, Size, Widths
from ertrl.methods.inference import Belief
from ertrl.nets import MLP
from ertrl.runtime import inference
from ertrl.types import Context, Dims, Metrics


@dataclass(frozen=True)
class EncoderConfig:
    """The context encoder e_theta: an MLP per transition, tanh, mean over the context."""

    latent_dim: Size = 20
    """Size of the task representation z."""
    hidden: Widths = (200, 200, 200)
    """Widths of the hidden layers."""
    next_observation: bool = False
    """Show the encoder (s, a, r, s') instead of (s, a, r). Needed where the dynamics differ."""
    learning_rate: Amount = 3e-4
    """Adam step size of the encoder."""


@dataclass(frozen=True)
class DmlConfig:
    """The distance-metric loss shared by FOCAL, ER-TRL and others."""

    positive_epsilon: Positive = 1e-3
    """Inside the square root of a positive pair's distance; keeps its gradient finite at 0."""
    negative_epsilon: Positive = 0.1
    """epsilon_0: added to a negative pair's squared distance before it is inverted."""
    beta: Amount = 1.0
    """Weight of negative pairs against positive ones."""


class MeanEncoder(eqx.Module):
    """z = mean over the context of tanh(MLP(s, a, r[, s'])), Eq. (encoder)."""

    net: MLP
    next_observation: bool = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, dims: Dims, key: PRNGKeyArray):
        """Inputs are (s, a, r), with s' where the configuration asks for it."""
        self.net = MLP(_width(config, dims), config.hidden, config.latent_dim, key)
        self.next_observation = config.next_observation

    def per_transition(self, context: Context) -> Float[Array, "*b H Z"]:
        """One bounded code per transition."""
        return jnp.tanh(self.net(*_columns(context, self.next_observation)))

    def __call__(self, context: Context) -> Float[Array, "*b Z"]:
        """The mean over the slots that hold a transition."""
        return mean_code(self.per_transition(context), context)

    def evidence(self, context: Context) -> tuple[Float[Array, "*b Z"], Float[Array, "*b"]]:
        """Sum of codes, and their number."""
        codes = self.per_transition(context) * context.mask[..., None]
        return codes.sum(axis=-2), context.mask.sum(axis=-1)

    def belief(self, evidence: tuple[Array, Array]) -> Belief:
        total, count = evidence
        return Belief(total / jnp.maximum(count, 1)[..., None])

    def plain(self) -> inference.Mean:
        return inference.Mean(self.net.plain(), self.next_observation)


class GaussianEncoder(eqx.Module):
    """PEARL: each transition votes with a Gaussian; their product is the belief about z."""

    net: MLP
    next_observation: bool = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, dims: Dims, key: PRNGKeyArray):
        """The network gives a mean and, through softplus, a variance per dimension of z."""
        self.net = MLP(_width(config, dims), config.hidden, 2 * config.latent_dim, key)
        self.next_observation = config.next_observation

    def posterior(self, context: Context) -> tuple[Float[Array, "*b Z"], Float[Array, "*b Z"]]:
        """Mean and variance; N(0, I) where nothing is known."""
        return _product(self.evidence(context))

    def evidence(self, context: Context) -> tuple[Array, Array, Array]:
        """Sums of the votes' means, weighted by precision, of precisions, and their number."""
        out = self.net(*_columns(context, self.next_observation))
        mean, raw_variance = jnp.split(out, 2, axis=-1)
        votes = context.mask[..., None] / jnp.maximum(jax.nn.softplus(raw_variance), 1e-7)
        return (votes * mean).sum(axis=-2), votes.sum(axis=-2), context.mask.sum(axis=-1)

    def belief(self, evidence: tuple[Array, Array, Array]) -> Belief:
        z, variance = _product(evidence)
        return Belief(z, variance[..., None] * jnp.eye(z.shape[-1]))

    def plain(self) -> inference.Gaussian:
        return inference.Gaussian(self.net.plain(), self.next_observation)

    def __call__(self, context: Context) -> Float[Array, "*b Z"]:
        """The posterior's mean."""
        return self.posterior(context)[0]


def _product(evidence: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    weighted, precision, count = evidence
    variance = 1 / jnp.where(count[..., None] > 0, precision, 1)
    return variance * weighted, variance


def _width(config: EncoderConfig, dims: Dims) -> int:
    observations = 2 if config.next_observation else 1
    return observations * dims.observation + dims.action + 1


def _columns(context: Context, next_observation: bool) -> list[Array]:
    inputs = [context.observation, context.action, context.reward[..., None]]
    return [*inputs, context.next_observation] if next_observation else inputs


def mean_code(codes: Float[Array, "*b H Z"], context: Context) -> Float[Array, "*b Z"]:
    """The mean over the slots that hold a transition."""
    mask = context.mask[..., None]
    return (codes * mask).sum(axis=-2) / jnp.maximum(mask.sum(axis=-2), 1)


def metric_loss(
    config: DmlConfig, codes: Float[Array, "T C Z"], task: Int[Array, "T"]
) -> Float[Array, ""]:
    """L_DML over all contexts of all tasks: contexts of one task are its positive pairs."""
    of_code = jnp.repeat(task, codes.shape[1])
    return losses.distance_metric(codes.reshape(len(of_code), -1), of_code, **asdict(config))


def spread(z: Float[Array, "T Z"]) -> Metrics:
    """Early warnings: representations that collapse to a point or saturate at +-1."""
    z = jax.lax.stop_gradient(z)
    return {
        "z_spread": z.std(axis=0).mean(),
        "z_saturation": (jnp.abs(z) > 0.95).mean(),
    }
