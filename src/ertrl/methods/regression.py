"""Bayesian linear regression, for many small problems at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def posterior_mean(
    features: Float[Array, "*b M Z"],
    targets: Float[Array, "*b M"],
    mask: Float[Array, "*b M"],
    noise: float,
) -> Float[Array, "*b Z"]:
    """E[w | features, targets] for targets = features w + noise and w ~ N(0, I).

    (noise^2 I + sum_m f_m f_m^T)^-1 sum_m f_m y_m over the rows whose mask is 1.
    """
    counted = features * mask[..., None]
    precision = jnp.einsum("...mi,...mj->...ij", counted, features)
    precision += noise**2 * jnp.eye(features.shape[-1])
    return solve_positive(precision, jnp.einsum("...mi,...m->...i", counted, targets))


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
