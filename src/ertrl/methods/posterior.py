"""Bayesian linear regression, for many small problems at once."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

SLIGHT = 1e-5
"""Part of the features' own size that is added to it: equations stay solvable, weights as free."""


class Sums(NamedTuple):
    """All that regression needs to know of the rows."""

    squares: Float[Array, "*b Z Z"]
    """Of f f^T."""
    products: Float[Array, "*b Z"]
    """Of f y."""
    count: Float[Array, "*b"]
    """Of what the rows count: of all that are there, how many."""


def sums(
    features: Float[Array, "*b M Z"], targets: Float[Array, "*b M"], mask: Float[Array, "*b M"]
) -> Sums:
    """Each row as often as its mask says: 1, 0, or in between."""
    counted = features * mask[..., None]
    return Sums(
        jnp.einsum("...mi,...mj->...ij", counted, features),
        jnp.einsum("...mi,...m->...i", counted, targets),
        mask.sum(axis=-1),
    )


def posterior_mean(sums: Sums, variance: Float[Array, "*b"]) -> Float[Array, "*b Z"]:
    """E[w | rows] for y = f w + noise and w ~ N(0, I): (variance I + sum f f^T)^-1 sum f y."""
    return solve_positive(_precision(sums, variance), sums.products)


def posterior_covariance(sums: Sums, variance: Float[Array, "*b"]) -> Float[Array, "*b Z Z"]:
    """Cov[w | rows]: variance (variance I + sum f f^T)^-1."""
    return variance[..., None, None] * inverse(_precision(sums, variance))


def _precision(sums: Sums, variance: Float[Array, "*b"]) -> Float[Array, "*b Z Z"]:
    return sums.squares + variance[..., None, None] * jnp.eye(sums.squares.shape[-1])


def residual_variance(
    features: Float[Array, "T M Z"], targets: Float[Array, "T M"], mask: Float[Array, "T M"]
) -> Float[Array, ""]:
    """Variance of the errors of a linear model that fits each problem's rows as well as it can.

    Squared errors over degrees of freedom: rows, less the weights that they determine.
    """
    counted = features * mask[..., None]
    squares = jnp.einsum("tmi,tmj->tij", counted, features)
    size = jnp.trace(squares, axis1=-2, axis2=-1)[:, None, None] / features.shape[-1]
    solved = inverse(squares + (SLIGHT * size + 1e-6) * jnp.eye(features.shape[-1]))
    w = jnp.einsum("tij,tmj,tm->ti", solved, counted, targets)
    error = (targets - jnp.einsum("tmi,ti->tm", features, w)) * mask
    used = jnp.einsum("tij,tji->", solved, squares)
    return jnp.square(error).sum() / jnp.maximum(mask.sum() - used, 1.0)


@jax.custom_vjp
def solve_positive(a: Float[Array, "*b n n"], b: Float[Array, "*b n"]) -> Float[Array, "*b n"]:
    """A^-1 b for many small positive definite A.

    XLA's factorisations take small matrices one by one on a CPU and cost more than the rest of an
    update together; these few wide operations treat all of them at once.
    """
    return _solve(a, b)[0]


def _solve(a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
    """The solution; for the backward pass, the inverse: n sweeps, which need no pivoting here."""
    n, inverse = a.shape[-1], a
    for k in range(n):
        here = jnp.arange(n) == k
        pivot = inverse[..., k, k, None]
        row = jnp.where(here, 1 / pivot, inverse[..., k, :] / pivot)
        column = jnp.where(here, -1.0, inverse[..., :, k])
        others = jnp.where(here[:, None] | here[None, :], 0.0, inverse)
        inverse = others - column[..., :, None] * row[..., None, :]
    x = jnp.einsum("...ij,...j->...i", inverse, b)
    return x, (inverse, x)


def _solve_backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    inverse, x = kept
    to_b = jnp.einsum("...ji,...j->...i", inverse, gradient)
    return -to_b[..., :, None] * x[..., None, :], to_b


solve_positive.defvjp(_solve, _solve_backward)


def inverse(a: Float[Array, "*b n n"]) -> Float[Array, "*b n n"]:
    """A^-1, the same way."""
    return _solve(a, a[..., 0])[1][0]
