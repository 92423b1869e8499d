"""One more observation of a pool under a GP with fixed hyperparameters: one new Cholesky row, no refactorisation."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from metabo.gp.kernels import Pool
from metabo.gp.linalg import RAISED, jitter
from metabo.gp.model import GP

MARGIN = 10.0
"""A pivot of the size of the rounding error would blow it up: the next row divides by its root."""


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

    `rows` are those so far (zeros beyond), `variance` the posterior variance of f on the pool. With v the new row,
    variance falls by v², and what is linear in the outputs moves by v times the residual at `index` over d
    (hyperbo Eq. 17-18 written incrementally). A pivot that is not positive, where rounding has left a variance far
    below 0, is raised by `MARGIN` times that error; the row is unsound where that is more than the last of `RAISED` of
    the prior variance. Cost O(b c).
    """
    covariances = gp.kernel.row(pool, index)
    prior, usual = covariances[index], gp.noise + jitter(covariances[index])
    given = variance[index] + usual
    pivot = jnp.where(given > 0, given, usual - MARGIN * variance[index])
    raised = pivot - given
    values = (covariances - rows[:, index] @ rows) / jnp.sqrt(pivot)
    return NewRow(values, pivot, raised, raised <= RAISED[-1] * prior)
