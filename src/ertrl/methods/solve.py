"""Many small systems of linear equations at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


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
