"""The value of every candidate in every past task: a look-up where the task evaluated it, else an interpolation.

The interpolation is Shepard's (1968): the mean of the k nearest evaluations, weighted by the inverse of their squared
distances. Of equal distances the first rows count as nearer.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from metabo.tasks.rows import Rows

DIGITS = 12
"""Decimals of a regret that count."""
TINY = 1e-300
"""The least squared distance that has an inverse to count with."""


def normalised_regrets(y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, " n"]:
    """Return how far each output of a task is below its best, as a share of its range: 0 to 1, 0 if it has no range."""
    best, worst = jnp.max(jnp.where(mask, y, -jnp.inf)), jnp.min(jnp.where(mask, y, jnp.inf))
    spread = jnp.where(best > worst, best - worst, 1.0)
    return jnp.where(mask & (best > worst), (best - y) / spread, 0.0)


def deviations(y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, ""]:
    """Return the range of a task's outputs in standard deviations (ddof 0), 0 if it has no range. A normalised regret
    times this is how many standard deviations an output is below the best."""
    count = jnp.maximum(jnp.sum(mask), 1)
    centred = jnp.where(mask, y - jnp.sum(jnp.where(mask, y, 0.0)) / count, 0.0)
    spread = jnp.max(jnp.where(mask, y, -jnp.inf)) - jnp.min(jnp.where(mask, y, jnp.inf))
    varies = spread > 0
    return jnp.where(varies, spread / jnp.where(varies, jnp.sqrt(jnp.sum(centred**2) / count), 1.0), 0.0)


def value_at(
    x: Float[Array, " d"],
    rows: Float[Array, "d n"],
    values: Float[Array, " n"],
    mask: Bool[Array, " n"],
    neighbours: int,
) -> Float[Array, ""]:
    """Return the mean of the values evaluated at x, else Shepard's mean of its nearest; 0 for a task without rows.

    `rows` has one column for each row of the task: sums over inputs are then of contiguous numbers.
    """
    squared = jnp.where(mask, jnp.sum((rows - x[:, None]) ** 2, axis=0), jnp.inf)
    same = squared == 0.0

    def looked_up() -> Float[Array, ""]:
        return jnp.sum(jnp.where(same, values, 0.0)) / jnp.sum(same)

    def between() -> Float[Array, ""]:
        left, weights, total = squared, jnp.asarray(0.0), jnp.asarray(0.0)
        for _ in range(neighbours):
            nearest = jnp.argmin(left)
            weight = 1.0 / jnp.maximum(left[nearest], TINY)  # 0 where no row is left
            left, weights, total = left.at[nearest].set(jnp.inf), weights + weight, total + weight * values[nearest]
        return total / jnp.where(weights > 0, weights, 1.0)

    return jax.lax.cond(same.any(), looked_up, between)


def regrets_at(x: Float[Array, "c d"], past: Rows, neighbours: int) -> Float[Array, "m c"]:
    """Return the normalised regret of candidates x in each of m past tasks.

    One task and one candidate after another: the distances of one candidate stay in cache, and few interpolate where
    tasks share their inputs. Rounded, so that means of equal regrets tie whatever their weights.
    """

    def of_task(task: tuple[Array, Array, Array]) -> Float[Array, " c"]:
        rows, y, mask = task
        regrets = normalised_regrets(y, mask)
        return jax.lax.map(lambda point: value_at(point, rows.T, regrets, mask, neighbours), x)

    return jnp.round(jax.lax.map(of_task, tuple(map(jnp.asarray, past))), DIGITS)


def ranks(values: Float[Array, " c"], mask: Bool[Array, " c"]) -> Float[Array, " c"]:
    """Return the rank of each valid value, 1 for the smallest, ties averaged; invalid ones come after all."""
    known = jnp.where(mask, values, jnp.inf)
    ordered = jnp.sort(known)
    before, until = (jnp.searchsorted(ordered, known, side=side) for side in ("left", "right"))
    return (before + until + 1) / 2.0
