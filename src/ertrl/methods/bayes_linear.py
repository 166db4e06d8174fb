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

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ertrl.config import UNSAID, Amount, Positive
from ertrl.methods.base import Method
from ertrl.methods.encoder import spread
from ertrl.methods.posterior import residual_variance, sums
from ertrl.methods.prior import RATE, Prior
from ertrl.methods.regression import Features, Regression, columns, scaled
from ertrl.nets import Moments, Trained
from ertrl.types import Context, Dims, TaskBatch


class BayesLinearState(NamedTuple):
    features: Trained[Features]
    seen: Moments
    """Of transitions in all contexts so far: the scale of inputs and targets."""
    residual: Float[Array, ""]
    """Variance of what the model leaves open in tasks that are known well: a slow average."""
    prior: Prior | None = None
    """Learned from training tasks; None is N(0, I)."""


@dataclass(frozen=True)
class BayesLinear(Method):
    """Settings of Bayes-linear. The encoder's are those of the feature network."""

    name = "bayes-linear"
    title = "Bayes-linear"
    summary = "posterior weights of a linear model of reward or dynamics in learned features"
    paper = "https://arxiv.org/abs/1807.08912"
    loss = "prediction_error"
    always_sees_next_state = True

    noise: Positive = 1.0
    """Standard deviation of what the model leaves open, in units of the targets' own."""
    adapting_noise: Amount = field(default=0.0, metadata=UNSAID)
    """The same while adapting; 0: as in training. What the features really leave open is often far
    less, and with less noise a few transitions say more; give `at_most`, too, so that many do not
    say too much."""
    clip: Positive = 5.0
    """Bound of each number of z; it begins as N(0, 1)."""
    trust: Amount = field(default=0.0, metadata=UNSAID)
    """0: all transitions of a context count alike. Otherwise a transition counts less once the
    mean of (y - b(x))^2 over its targets, in standardised units, is above this; at twice as much,
    half. A walker that falls moves like nothing in the data, and would say more of its task than
    all the rest. With a prior, what its mean predicts is taken off as well."""
    at_most: Amount = field(default=0.0, metadata=UNSAID)
    """0: n transitions of a context count as n. Otherwise as n / (1 + n / at_most), which is never
    more than this: those of one episode resemble each other, and what the model gets wrong about
    one it gets wrong about all."""
    prior: Amount = field(default=0.0, metadata=UNSAID)
    """0: w ~ N(0, I). Otherwise w is believed to lie about where that of training tasks does, this
    many times their covariance: in what they do not differ, a new task is not suspected to. This,
    trust and at_most are for adaptation alone; training believes N(0, I), and all count."""
    weight_decay: Amount = 1e-3
    """Weight of |z|^2 next to the squared error of prediction."""

    def init(self, dims: Dims, key):
        features = Features(self.encoder, dims, key)
        seen = Moments.of_nothing(2 * dims.observation + dims.action + 1)
        prior = Prior.of_nothing(self.latent_dim, self.prior) if self.prior else None
        return BayesLinearState(Trained.of(features), seen, jnp.ones(()), prior)

    def inference(self, state: BayesLinearState):
        """Regression in the features as they are."""
        regression = self._regression(state.features.net, state.seen)
        return regression._replace(
            noise=self.adapting_noise or self.noise,
            trust=self.trust,
            at_most=self.at_most,
            prior=state.prior,
            residual=state.residual,
        )

    def z0(self, state: BayesLinearState):
        """The prior's mean."""
        return super().z0(state) if state.prior is None else state.prior.mean

    def draw(self, state: BayesLinearState, context: Context, key):
        """Training sees the z of contexts that are the data: all of it is trusted."""
        return self._regression(state.features.net, state.seen)(context)

    def _regression(self, features: Features, seen: Moments) -> Regression:
        return Regression(features, seen, self.noise, self.clip)

    def update(self, state: BayesLinearState, batch: TaskBatch, z_gradient, key):
        """One step on the error with which the z of one context predicts another."""
        context = batch.context if batch.context.mask.shape[1] > 1 else halves(batch.context)
        seen = state.seen.with_rows(columns(context))
        rows, mask = scaled(seen, context), state.features.net.mask(context)

        def loss(features: Features):
            phi, rest = features(rows)
            z = self._regression(features, seen).mean(sums(phi, rest, mask))
            predicted = jnp.einsum("tcmz,tcz->tcm", phi, jnp.roll(z, 1, axis=1))
            error = (jnp.square(rest - predicted) * mask).sum() / jnp.maximum(mask.sum(), 1)
            size = jnp.square(z).sum(axis=-1).mean()
            metrics = {"prediction_error": error, "z_size": size, **spread(z[:, 0])}
            fitted = jax.lax.stop_gradient((phi, rest))
            left = residual_variance(*map(merged, (*fitted, mask)))
            return error + self.weight_decay * size, (z, left, metrics)

        features, (z, left, metrics) = state.features.minimise(loss, self.encoder.learning_rate)
        residual = state.residual + RATE * (left - state.residual)
        prior = state.prior and state.prior.with_codes(z, self.prior)
        return BayesLinearState(features, seen, residual, prior), metrics


def halves(context: Context) -> Context:
    """The only context of each task as two: z predicts transitions that it has not seen."""
    count = context.mask.shape[-1] // 2
    return Context(*(x[:, 0, : 2 * count].reshape(len(x), 2, count, *x.shape[3:]) for x in context))


def merged(rows: Float[Array, "T C M *n"]) -> Float[Array, "T CM *n"]:
    """All contexts of a task as one."""
    return rows.reshape(rows.shape[0], -1, *rows.shape[3:])


METHOD = BayesLinear
