"""Bayesian linear regression, for many small problems at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Sums = tuple[Float[Array, "*b Z Z"], Float[Array, "*b Z"]]
"""Of f f^T and of f y: all that regression needs to know of the rows."""


def sums(
    features: Float[Array, "*b M Z"], targets: Float[Array, "*b M"], mask: Float[Array, "*b M"]
) -> Sums:
    """Over the rows whose mask is 1."""
    counted = features * mask[..., None]
    return (
        jnp.einsum("...mi,...mj->...ij", counted, features),
        jnp.einsum("...mi,...m->...i", counted, targets),
    )


def posterior_mean(sums: Sums, noise: float) -> Float[Array, "*b Z"]:
    """E[w | rows] for y = f w + noise and w ~ N(0, I): (noise^2 I + sum f f^T)^-1 sum f y."""
    return solve_positive(_precision(sums, noise), sums[1])


def posterior_covariance(sums: Sums, noise: float) -> Float[Array, "*b Z Z"]:
    """Cov[w | rows]: noise^2 (noise^2 I + sum f f^T)^-1."""
    return noise**2 * _solve(_precision(sums, noise), sums[1])[1][0]


def _precision(sums: Sums, noise: float) -> Float[Array, "*b Z Z"]:
    return sums[0] + noise**2 * jnp.eye(sums[0].shape[-1])


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
