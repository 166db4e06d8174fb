"""Learned features of a transition, and the task as weights of a linear model in them.

The weights are Bayesian linear regression's, for many small problems at once.
"""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.methods.encoder import EncoderConfig
from ertrl.methods.inference import Belief
from ertrl.methods.posterior import Sums, posterior_covariance, posterior_mean, sums
from ertrl.methods.prior import Prior
from ertrl.nets import MLP, Moments
from ertrl.runtime.inference import LeastSquares
from ertrl.types import Context, Dims


def weights(rest: Float[Array, "*b M"], targets: int, trust: float) -> Float[Array, "*b M"]:
    """1, and less for the targets of a transition that is far from what all tasks have in common.

    `trust` is how far is not far yet: the mean square of what is left when nothing is known. As it
    looks at one transition alone, evidence stays a sum, in any order.
    """
    left = jnp.square(rest).reshape(*rest.shape[:-1], -1, targets).mean(axis=-1)
    return jnp.repeat(trust / jnp.maximum(left, trust), targets, axis=-1)


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
    trust: float = 0.0
    """How far a transition may be from what is shared and count in full; 0: all do."""
    at_most: float = 0.0
    """Transitions that a context is worth, however long it is; 0: as many as it has."""
    prior: Prior | None = None
    """Of w; None is N(0, I)."""
    residual: Float[Array, ""] | None = None
    """Variance of what is left open where the task is known well; inference does not use it."""

    def __call__(self, context: Context) -> Float[Array, "*b Z"]:
        return self.mean(self.evidence(context))

    def evidence(self, context: Context) -> Sums:
        """The sums that regression needs."""
        phi, rest = self.features(scaled(self.seen, context))
        if self.prior is not None:
            phi, rest = self.prior.unit(phi, rest)
        counts = self.features.mask(context)
        if self.trust:
            counts = counts * weights(rest, self.features.targets, self.trust)
        return sums(phi, rest, counts)

    def mean(self, evidence: Sums) -> Float[Array, "*b Z"]:
        w = posterior_mean(evidence, self.variance(evidence))
        if self.prior is not None:
            w = self.prior.weights(w)
        return jnp.clip(w, -self.clip, self.clip)

    def belief(self, evidence: Sums) -> Belief:
        covariance = posterior_covariance(evidence, self.variance(evidence))
        if self.prior is not None:
            covariance = self.prior.root @ covariance @ self.prior.root.T
        return Belief(self.mean(evidence), covariance)

    def variance(self, evidence: Sums) -> Float[Array, "*b"]:
        """Of the noise; larger for n transitions, so that n / (1 + n / at_most) count in full."""
        n = evidence.count / self.features.targets
        return self.noise**2 * (1 + n / self.at_most if self.at_most else jnp.ones_like(n))

    def plain(self) -> LeastSquares:
        scale = np.asarray(self.seen.mean), np.asarray(self.seen.deviation())
        net, targets = self.features.net.plain(), self.features.targets
        prior = () if self.prior is None else map(np.asarray, (self.prior.mean, self.prior.root))
        limits = self.noise, self.clip, self.trust, self.at_most
        residual = 0.0 if self.residual is None else float(np.sqrt(self.residual))
        plain = LeastSquares(net, targets, *scale, *limits, *prior)
        return replace(plain, residual=residual)


def columns(context: Context) -> Float[Array, "*b H N"]:
    """(s, a, s' - s, r): inputs first, what is predicted last."""
    change = context.next_observation - context.observation
    inputs = [context.observation, context.action, change, context.reward[..., None]]
    return jnp.concatenate(inputs, axis=-1)


def scaled(seen: Moments, context: Context) -> Float[Array, "*b H N"]:
    """These columns on a common scale."""
    return (columns(context) - seen.mean) / seen.deviation()
