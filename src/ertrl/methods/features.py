"""Learned features of a transition, and the task as weights of a linear model in them."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.methods.encoder import EncoderConfig
from ertrl.methods.inference import Belief
from ertrl.methods.regression import Sums, posterior_covariance, posterior_mean, sums
from ertrl.nets import MLP, Moments
from ertrl.runtime.inference import LeastSquares
from ertrl.types import Context, Dims


class Features(eqx.Module):
    """Phi(x), bounded, and b(x), for every number that is predicted."""

    net: MLP
    targets: int = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, dims: Dims, key: PRNGKeyArray):
        """Inputs and targets share the columns of a transition."""
        self.targets = dims.observation + 1 if config.next_observation else 1
        inputs = 2 * dims.observation + dims.action + 1 - self.targets
        self.net = MLP(inputs, config.hidden, self.targets * (config.latent_dim + 1), key)

    def __call__(
        self, rows: Float[Array, "*b H N"]
    ) -> tuple[Float[Array, "*b M Z"], Float[Array, "*b M"]]:
        """Phi and y - b, for every target of every transition: M is their product."""
        x, y = jnp.split(rows, [rows.shape[-1] - self.targets], axis=-1)
        out = self.net(x).reshape(*y.shape, -1)
        merged = (*y.shape[:-2], y.shape[-2] * y.shape[-1])
        features, baseline = jnp.tanh(out[..., :-1]), out[..., -1]
        return features.reshape(*merged, -1), (y - baseline).reshape(merged)

    def mask(self, context: Context) -> Float[Array, "*b M"]:
        """1 for every target of a slot that holds a transition."""
        return jnp.repeat(context.mask, self.targets, axis=-1)


class Regression(NamedTuple):
    """z of a context: the posterior's mean, kept in bounds."""

    features: Features
    seen: Moments
    noise: float
    clip: float

    def __call__(self, context: Context) -> Float[Array, "*b Z"]:
        return self.mean(self.evidence(context))

    def evidence(self, context: Context) -> Sums:
        """The sums that regression needs."""
        rows = scaled(self.seen, context)
        return sums(*self.features(rows), self.features.mask(context))

    def mean(self, evidence: Sums) -> Float[Array, "*b Z"]:
        return jnp.clip(posterior_mean(evidence, self.noise), -self.clip, self.clip)

    def belief(self, evidence: Sums) -> Belief:
        return Belief(self.mean(evidence), posterior_covariance(evidence, self.noise))

    def plain(self) -> LeastSquares:
        scale = np.asarray(self.seen.mean), np.asarray(self.seen.deviation())
        net, targets = self.features.net.plain(), self.features.targets
        return LeastSquares(net, targets, *scale, self.noise, self.clip)


def columns(context: Context) -> Float[Array, "*b H N"]:
    """(s, a, s' - s, r): inputs first, what is predicted last."""
    change = context.next_observation - context.observation
    inputs = [context.observation, context.action, change, context.reward[..., None]]
    return jnp.concatenate(inputs, axis=-1)


def scaled(seen: Moments, context: Context) -> Float[Array, "*b H N"]:
    """These columns on a common scale."""
    return (columns(context) - seen.mean) / seen.deviation()
