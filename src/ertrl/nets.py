"""Networks as Equinox modules: pytrees of plain arrays.

Leading axes are merged before the first product, because one wide product is faster than a batch
of small ones.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl.runtime import layers

FINAL_LAYER_RANGE = 3e-3
ADAM = optax.scale_by_adam()

N = TypeVar("N")
K = TypeVar("K")


class Trained(NamedTuple, Generic[N]):
    """A network (or several, trained as one) together with its optimiser."""

    net: N
    adam: Any
    """Adam's moments of the gradient and its count of steps."""

    @classmethod
    def of(cls, net: N) -> "Trained[N]":
        return cls(net, ADAM.init(net))  # ty: ignore[invalid-argument-type]

    def step(self, gradient: N, learning_rate: float | Array) -> "Trained[N]":
        """One Adam step against this gradient."""
        direction, adam = ADAM.update(gradient, self.adam)  # ty: ignore[invalid-argument-type]
        steps = jax.tree.map(lambda d: -learning_rate * d, direction)
        return Trained(eqx.apply_updates(self.net, steps), adam)

    def minimise(
        self, loss: Callable[[N], tuple[Array, K]], learning_rate: float | Array
    ) -> tuple["Trained[N]", K]:
        """One Adam step down `loss(net) -> (loss, whatever else is to be kept)`, and that."""
        gradient, kept = jax.grad(loss, has_aux=True)(self.net)
        return self.step(gradient, learning_rate), kept


class MLP(eqx.Module):
    """Fully connected ReLU network, optionally with layer normalisation before each ReLU."""

    weights: tuple[Float[Array, "i o"], ...]
    biases: tuple[Float[Array, "o"], ...]
    layer_norm: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: tuple[int, ...],
        outputs: int,
        key: PRNGKeyArray,
        *,
        layer_norm: bool = False,
    ):
        """Hidden weights U(+-1/sqrt(fan-in)), biases 0; the last layer starts near zero.

        The released code takes the fan-out for the fan-in and starts hidden biases at 0.1.
        """
        sizes = (inputs, *hidden, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        ranges = [*(1 / jnp.sqrt(n) for n in sizes[:-2]), FINAL_LAYER_RANGE]
        self.weights = tuple(
            jax.random.uniform(k, (i, o), minval=-r, maxval=r)
            for k, i, o, r in zip(keys, sizes[:-1], sizes[1:], ranges, strict=True)
        )
        self.biases = tuple(jnp.zeros(o) for o in sizes[1:])
        self.layer_norm = layer_norm

    def __call__(self, *inputs: Float[Array, "..."]) -> Float[Array, "... outputs"]:
        """Concatenate the inputs along their last axis and apply the network."""
        joined = jnp.concatenate(inputs, axis=-1)
        x = joined.reshape(-1, joined.shape[-1])
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight + bias
            if self.layer_norm:
                x = x - x.mean(axis=-1, keepdims=True)
                x = x * jax.lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + 1e-5)
            x = jax.nn.relu(x)
        x = x @ self.weights[-1] + self.biases[-1]
        return x.reshape(*joined.shape[:-1], x.shape[-1])

    def plain(self, outputs: int | None = None) -> layers.MLP:
        """The same network without JAX, of the first so many outputs."""
        weights, biases = ([np.asarray(x) for x in part] for part in (self.weights, self.biases))
        weights[-1] = np.ascontiguousarray(weights[-1][:, :outputs])
        biases[-1] = biases[-1][:outputs]
        return layers.MLP(tuple(weights), tuple(biases), self.layer_norm)


def over_batch(z: Float[Array, "T Z"], like: Float[Array, "T B _"]) -> Float[Array, "T B Z"]:
    """Give every row of a task's batch that task's z."""
    return jnp.broadcast_to(z[:, None], (*like.shape[:2], z.shape[-1]))


class Twin(eqx.Module):
    """Two critics of the same shape. Two plain products are faster than one batched product."""

    first: MLP
    second: MLP

    def __init__(self, inputs: int, hidden: tuple[int, ...], key: PRNGKeyArray, **options):
        keys = jax.random.split(key)
        self.first = MLP(inputs, hidden, 1, keys[0], **options)
        self.second = MLP(inputs, hidden, 1, keys[1], **options)

    def __call__(self, *inputs: Array) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        return self.first(*inputs)[..., 0], self.second(*inputs)[..., 0]

    def least(self, *inputs: Array) -> Float[Array, "..."]:
        """The smaller of both values: clipped double Q."""
        return jnp.minimum(*self(*inputs))


class Sample(NamedTuple):
    """An action, its log-density and the Gaussian it came from (before tanh)."""

    action: Float[Array, "... A"]
    log_prob: Float[Array, "..."]
    mean: Float[Array, "... A"]
    log_std: Float[Array, "... A"]


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def elastic_clip(x: Array, low: float, high: float) -> Array:
    """Keep within bounds; outside of them, a gradient passes that leads back.

    A plain clip passes none there: what once left its bounds would never return.
    """
    return jnp.clip(x, low, high)


def _elastic_backward(low: float, high: float, x: Array, gradient: Array) -> tuple[Array]:
    # Who descends moves against the gradient.
    passes = ((x > low) | (gradient < 0)) & ((x < high) | (gradient > 0))
    return (jnp.where(passes, gradient, 0),)


elastic_clip.defvjp(lambda x, low, high: (elastic_clip(x, low, high), x), _elastic_backward)


class TanhGaussian(eqx.Module):
    """A stochastic policy: tanh of a Gaussian whose mean and log-std a network computes."""

    net: MLP
    log_std_min: float = eqx.field(static=True)
    log_std_max: float = eqx.field(static=True)
    plain_clip: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: tuple[int, ...],
        actions: int,
        key: PRNGKeyArray,
        *,
        log_std_range: tuple[float, float],
        plain_clip: bool = False,
        **options,
    ):
        """log-std is clipped to its range, and starts at 0 or, where that is outside, inside.

        What leaves the range can come back, unless the clip is a plain one.
        """
        net = MLP(inputs, hidden, 2 * actions, key, **options)
        low, high = log_std_range
        if not low <= 0 <= high:
            start = (
                max(high - 0.5, (low + high) / 2) if high < 0 else min(low + 0.5, (low + high) / 2)
            )
            bias = net.biases[-1].at[actions:].set(start)
            net = eqx.tree_at(lambda n: n.biases[-1], net, bias)
        self.net = net
        self.log_std_min, self.log_std_max, self.plain_clip = low, high, plain_clip

    def gaussian(self, *inputs: Array) -> tuple[Float[Array, "... A"], Float[Array, "... A"]]:
        mean, log_std = jnp.split(self.net(*inputs), 2, axis=-1)
        clip = jnp.clip if self.plain_clip else elastic_clip
        return mean, clip(log_std, self.log_std_min, self.log_std_max)

    def plain(self) -> layers.MLP:
        """The network of the mean, without JAX."""
        return self.net.plain(self.net.biases[-1].shape[0] // 2)

    def act(self, key: PRNGKeyArray | None, *inputs: Array) -> Float[Array, "... A"]:
        """A random action or, without a key, the most probable one."""
        if key is None:
            return jnp.tanh(self.gaussian(*inputs)[0])
        return self.sample(key, *inputs).action

    def sample(self, key: PRNGKeyArray, *inputs: Array) -> Sample:
        """A reparameterised draw."""
        mean, log_std = self.gaussian(*inputs)
        before = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)
        return Sample(jnp.tanh(before), log_prob(before, mean, log_std), mean, log_std)


def log_prob(
    before_tanh: Float[Array, "... A"], mean: Float[Array, "... A"], log_std: Float[Array, "... A"]
) -> Float[Array, "..."]:
    """Log-density of tanh(u) for u ~ N(mean, std), in a form that does not overflow.

    log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)).
    """
    u = before_tanh
    gaussian = (
        -0.5 * jnp.square((u - mean) / jnp.exp(log_std)) - log_std - 0.5 * jnp.log(2 * jnp.pi)
    )
    squash = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
    return (gaussian - squash).sum(axis=-1)


def log_density(
    action: Float[Array, "... A"], mean: Float[Array, "... A"], log_std: Float[Array, "... A"]
) -> Float[Array, "..."]:
    """Log-density of a given action; one at the very bound counts as just inside of it."""
    inside = jnp.clip(action, -1 + 1e-4, 1 - 1e-4)
    return log_prob(jnp.arctanh(inside), mean, log_std)


class Moments(NamedTuple):
    """Mean and spread of all rows seen so far, merged batch by batch (Chan et al., 1979)."""

    count: Float[Array, ""]
    mean: Float[Array, "N"]
    variance: Float[Array, "N"]
    """Of the population, not of a sample."""

    @classmethod
    def of_nothing(cls, size: int) -> "Moments":
        """Before the first batch."""
        return cls(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))

    def with_rows(self, rows: Float[Array, "*b N"]) -> "Moments":
        """What is known after these rows."""
        flat = rows.reshape(-1, rows.shape[-1])
        total = self.count + len(flat)
        share = len(flat) / total
        apart = flat.mean(axis=0) - self.mean
        return Moments(
            total,
            self.mean + share * apart,
            (1 - share) * (self.variance + share * jnp.square(apart)) + share * flat.var(axis=0),
        )

    def deviation(self) -> Float[Array, "N"]:
        """Standard deviations; 1 for what never changes."""
        deviation = jnp.sqrt(self.variance)
        return jnp.where(deviation > 1e-6, deviation, 1.0)


def toward(target, source, step: float):
    """Exponential moving average: target <- (1 - step) target + step source.

    As Optax's `incremental_update`, whose sum of two products rounds differently: runs go on bit
    for bit with this one.
    """
    return jax.tree.map(lambda t, s: t + step * (s - t), target, source)
