"""Add one observation of a pool to a GP with fixed hyperparameters: one new Cholesky row, no refactorisation."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from metabo.gp.kernels import Pool
from metabo.gp.linalg import RAISED, jitter
from metabo.gp.model import GP

MARGIN = 10.0
"""A pivot as small as the rounding error would amplify that error, because the next row is divided by the pivot's
root."""


class NewRow(NamedTuple):
    """The next row of L⁻¹ K(X, pool), its pivot d², the variance that was added to the pivot beyond the usual jitter,
    and whether the row is sound."""

    values: Float[Array, " c"]
    pivot: Float[Array, ""]
    raised: Float[Array, ""]
    ok: Bool[Array, ""]


def new_row(
    gp: GP, pool: Pool, rows: Float[Array, "b c"], variance: Float[Array, " c"], index: Int[Array, ""]
) -> NewRow:
    """Return the next row after observing candidate `index`.

    `rows` are the rows so far (zeros beyond them), `variance` is the posterior variance of f on the pool. With v the
    new row, the variance falls by v², and every quantity that is linear in the outputs moves by v times the residual at
    `index` over d (hyperbo Eq. 17-18 written incrementally). A pivot that is not positive, because rounding has left a
    variance far below 0, is replaced by noise and jitter plus `MARGIN` times that error. The row is unsound if this
    raises the pivot by more than the last share in `RAISED` of the prior variance. Cost O(b c).
    """
    covariances = gp.kernel.row(pool, index)
    prior, usual = covariances[index], gp.noise + jitter(covariances[index])
    given = variance[index] + usual
    pivot = jnp.where(given > 0, given, usual - MARGIN * variance[index])
    raised = pivot - given
    values = (covariances - rows[:, index] @ rows) / jnp.sqrt(pivot)
    return NewRow(values, pivot, raised, raised <= RAISED[-1] * prior)
