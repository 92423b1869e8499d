"""The value of every candidate in every past task: looked up if the task evaluated it, interpolated otherwise.

The interpolation is Shepard's (1968): the mean of the k nearest evaluations, weighted by the inverse of their squared
distances. Among equal distances, earlier rows count as nearer.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt64

from metabo.tasks.rows import Rows

DIGITS = 12
"""The number of decimals to which regrets are rounded."""
TINY = 1e-300
"""The smallest squared distance that is inverted."""


def normalised_regrets(y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, " n"]:
    """Return how far each output of a task is below its best, as a share of its range: from 0 to 1, and 0 if it has no
    range."""
    best, worst = jnp.max(jnp.where(mask, y, -jnp.inf)), jnp.min(jnp.where(mask, y, jnp.inf))
    spread = jnp.where(best > worst, best - worst, 1.0)
    return jnp.where(mask & (best > worst), (best - y) / spread, 0.0)


def deviations(y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, ""]:
    """Return the range of a task's outputs in standard deviations (ddof 0), or 0 if it has no range. A normalised
    regret times this is the number of standard deviations by which an output is below the best."""
    count = jnp.maximum(jnp.sum(mask), 1)
    centred = jnp.where(mask, y - jnp.sum(jnp.where(mask, y, 0.0)) / count, 0.0)
    spread = jnp.max(jnp.where(mask, y, -jnp.inf)) - jnp.min(jnp.where(mask, y, jnp.inf))
    varies = spread > 0
    return jnp.where(varies, spread / jnp.where(varies, jnp.sqrt(jnp.sum(centred**2) / count), 1.0), 0.0)


def codes(x: Float[Array, "*n d"]) -> UInt64[Array, " *n"]:
    """Return a code for each point, the same for equal points, so that finding a point takes one comparison instead of
    d.

    Every bit of a point reaches every bit of its code (the finaliser of SplitMix64, Steele, Lea and Flood 2014): among
    n different points, the probability that any two share a code is about n² / 2^65.
    """
    bits = jax.lax.bitcast_convert_type(x + 0.0, jnp.uint64)  # -0.0 equals 0.0

    def mixed(code: Array) -> Array:
        code = (code ^ (code >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
        code = (code ^ (code >> 27)) * jnp.uint64(0x94D049BB133111EB)
        return code ^ (code >> 31)

    code = jnp.zeros(x.shape[:-1], jnp.uint64)
    for column in range(x.shape[-1]):
        code = mixed(code + jnp.uint64(0x9E3779B97F4A7C15) + bits[..., column])
    return code


def interpolated(
    x: Float[Array, " d"], rows: Float[Array, "n d"], values: Float[Array, " n"], mask: Bool[Array, " n"], k: int
) -> Float[Array, ""]:
    """Return Shepard's mean of the values at the k rows nearest to x, where x equals none of them; 0 if there are no
    rows."""
    left = jnp.where(mask, jnp.sum((rows - x) ** 2, axis=1), jnp.inf)
    weights, total = jnp.asarray(0.0), jnp.asarray(0.0)
    for _ in range(k):
        nearest = jnp.argmin(left)
        weight = 1.0 / jnp.maximum(left[nearest], TINY)  # 0 where no row is left
        left, weights, total = left.at[nearest].set(jnp.inf), weights + weight, total + weight * values[nearest]
    return total / jnp.where(weights > 0, weights, 1.0)


def regrets_at(x: Float[Array, "c d"], past: Rows, neighbours: int) -> Float[Array, "m c"]:
    """Return the normalised regret of candidates x in each of m past tasks: the mean over evaluations at the candidate,
    or an interpolation if there are none.

    The regrets are rounded, so that means of equal regrets tie whatever their weights.
    """
    wanted = codes(x)

    def of_task(task: tuple[Array, Array, Array]) -> Float[Array, " c"]:
        rows, y, mask = task
        regrets, known = normalised_regrets(y, mask), codes(rows)

        def looked_up(code: Array) -> tuple[Array, Array]:
            same = mask & (known == code)
            count = jnp.sum(same)
            return jnp.sum(jnp.where(same, regrets, 0.0)) / jnp.maximum(count, 1), count > 0

        found, exists = jax.lax.map(looked_up, wanted)
        (missing,) = jnp.nonzero(~exists, size=len(x), fill_value=0)

        def fill(number: Array, values: Array) -> Array:
            point = missing[number]
            return values.at[point].set(interpolated(x[point], rows, regrets, mask, neighbours))

        # A loop over the missing points, not a branch for each point: runs side by side would execute both branches.
        return jax.lax.fori_loop(0, jnp.sum(~exists), fill, found)

    return jnp.round(jax.lax.map(of_task, tuple(map(jnp.asarray, past))), DIGITS)


def ranks(values: Float[Array, " c"], mask: Bool[Array, " c"]) -> Float[Array, " c"]:
    """Return the rank of each valid value, 1 for the smallest, with ties averaged; invalid values rank last."""
    known = jnp.where(mask, values, jnp.inf)
    ordered = jnp.sort(known)
    before, until = (jnp.searchsorted(ordered, known, side=side) for side in ("left", "right"))
    return (before + until + 1) / 2.0
