"""Bayes-linear: the task is the weights of a linear model in learned features, in closed form.

What the environment does is predicted as y = b(x) + Phi(x) w + noise. The networks b and Phi are
shared by all tasks; w ~ N(0, I) is the task, and Bayesian linear regression on a context gives its
posterior, whose mean is z. As x holds state and action, which of them were visited says nothing by
itself: z can only carry what followed from them, whoever collected the data.

Where rewards differ between tasks, x = (s, a, s' - s) and y = r; where dynamics do, x = (s, a) and
y = (s' - s, r). The noise is as large as y itself, on purpose: a likelihood that trusts its
features goes astray on contexts that are unlike the training data.

Bayesian regression in the last layer of a meta-learned network: ALPaCA (Harrison et al., 2018).
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.config import Amount
from ertrl.methods.base import Method
from ertrl.methods.encoder import EncoderConfig, spread
from ertrl.methods.moments import Moments
from ertrl.methods.regression import posterior_mean
from ertrl.nets import MLP, Trained
from ertrl.types import Context, Dims, TaskBatch


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


class BayesLinearState(NamedTuple):
    """Everything that must survive a crash."""

    features: Trained[Features]
    seen: Moments
    """Of transitions in all contexts so far: the scale of inputs and targets."""


@dataclass(frozen=True)
class BayesLinear(Method):
    """Settings of Bayes-linear. The encoder's are those of the feature network."""

    name = "bayes-linear"
    title = "Bayes-linear"
    summary = "posterior weights of a linear model of reward or dynamics in learned features"
    paper = "https://arxiv.org/abs/1807.08912"
    loss = "prediction_error"
    always_sees_next_state = True

    noise: Amount = 1.0
    """Standard deviation of what the model leaves open, in units of the targets' own."""
    clip: Amount = 5.0
    """Bound of each number of z; it begins as N(0, 1)."""
    weight_decay: Amount = 1e-3
    """Weight of |z|^2 next to the squared error of prediction."""

    def init(self, dims: Dims, key):
        """Fresh networks."""
        features = Features(self.encoder, dims, key)
        seen = Moments.of_nothing(2 * dims.observation + dims.action + 1)
        return BayesLinearState(Trained.of(features), seen)

    def encode(self, state: BayesLinearState, context: Context):
        """Infer z: the posterior's mean."""
        features = state.features.net
        return self.posterior(*features(scaled(state.seen, context)), features.mask(context))

    def update(self, state: BayesLinearState, batch: TaskBatch, z_gradient, key):
        """One step on the error with which the z of one context predicts another."""
        seen = state.seen.with_rows(columns(batch.context))
        rows, mask = scaled(seen, batch.context), state.features.net.mask(batch.context)

        def loss(features: Features):
            phi, rest = features(rows)
            z = self.posterior(phi, rest, mask)
            predicted = jnp.einsum("tcmz,tcz->tcm", phi, jnp.roll(z, 1, axis=1))
            error = (jnp.square(rest - predicted) * mask).sum() / jnp.maximum(mask.sum(), 1)
            size = jnp.square(z).sum(axis=-1).mean()
            metrics = {"prediction_error": error, "z_size": size, **spread(z[:, 0])}
            return error + self.weight_decay * size, metrics

        features, metrics = state.features.minimise(loss, self.encoder.learning_rate)
        return BayesLinearState(features, seen), metrics

    def posterior(
        self, phi: Float[Array, "*b M Z"], rest: Float[Array, "*b M"], mask: Float[Array, "*b M"]
    ) -> Float[Array, "*b Z"]:
        """The posterior's mean, kept in bounds."""
        return jnp.clip(posterior_mean(phi, rest, mask, self.noise), -self.clip, self.clip)


def columns(context: Context) -> Float[Array, "*b H N"]:
    """(s, a, s' - s, r): inputs first, what is predicted last."""
    change = context.next_observation - context.observation
    inputs = [context.observation, context.action, change, context.reward[..., None]]
    return jnp.concatenate(inputs, axis=-1)


def scaled(seen: Moments, context: Context) -> Float[Array, "*b H N"]:
    """These columns on a common scale."""
    return (columns(context) - seen.mean) / seen.deviation()


METHOD = BayesLinear
