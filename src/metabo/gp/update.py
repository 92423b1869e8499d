"""One more observation of a pool under a GP with fixed hyperparameters: one new Cholesky row, no refactorisation."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from metabo.gp.kernels import Pool
from metabo.gp.linalg import JITTER
from metabo.gp.model import GP


def new_row(
    gp: GP, pool: Pool, rows: Float[Array, "b c"], variance: Float[Array, " c"], index: Int[Array, ""]
) -> tuple[Float[Array, " c"], Float[Array, ""]]:
    """Return the next row of L⁻¹ K(X, pool) after observing candidate `index`, and its pivot d² (<= 0: unsound).

    `rows` are those so far (zeros beyond), `variance` the posterior variance of f on the pool. With v the new row,
    variance falls by v², and what is linear in the outputs moves by v times the residual at `index` over d
    (hyperbo Eq. 17-18 written incrementally). Cost O(b c).
    """
    pivot = variance[index] + gp.noise + JITTER
    return (gp.kernel.row(pool, index) - rows[:, index] @ rows) / jnp.sqrt(pivot), pivot
