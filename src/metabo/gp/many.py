"""The posteriors of a finite set of GPs on one pool, given the same observations. The hyperparameter candidates form a
batch axis (hegpucb §1).

Each candidate u has a prior mean μ_0^u and a kernel k^u on the pool of c points, and a noise variance. An observation
appends one row to every Cholesky factor, as in `metabo.bo.fixed_prior`. This costs O(U b c) for b rows and needs no
refactorisation.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Belief(NamedTuple):
    """Posteriors of U candidates on c points after `seen` observations, at most b.

    `fit` = kᵀK⁻¹(y - μ_0) and `unit` = kᵀK⁻¹1 (U, c), `variance` of f (U, c), `rows` of L⁻¹K(X, pool) (U, b, c);
    `quadratic` (U, 3): (y - μ_0)ᵀK⁻¹(y - μ_0), (y - μ_0)ᵀK⁻¹1, 1ᵀK⁻¹1; `logdet` log|K| with the noise. `average` and
    `scatter` of the outputs (sum of squared deviations). `ok`: every pivot was positive.
    """

    fit: Float[Array, "u c"]
    unit: Float[Array, "u c"]
    variance: Float[Array, "u c"]
    rows: Float[Array, "u b c"]
    quadratic: Float[Array, "u 3"]
    logdet: Float[Array, " u"]
    seen: Int[Array, ""]
    average: Float[Array, ""]
    scatter: Float[Array, ""]
    ok: Bool[Array, ""]


class OutputScale(NamedTuple):
    """The GPs see the outputs as (y - shift) / spread. `centred` is 1.0 if their prior mean is zero on that scale, and
    0.0 if they have prior means of their own, which are on the scale of y."""

    shift: Float[Array, ""]
    spread: Float[Array, ""]
    centred: Float[Array, ""]


def start(variance: Float[Array, "u c"], budget: int) -> Belief:
    """Return the belief before any observation, from the prior variances, with room for `budget` observations."""
    many, points = variance.shape
    zero = jnp.zeros(())
    return Belief(
        fit=jnp.zeros((many, points)),
        unit=jnp.zeros((many, points)),
        variance=variance,
        rows=jnp.zeros((many, budget, points)),
        quadratic=jnp.zeros((many, 3)),
        logdet=jnp.zeros(many),
        seen=jnp.asarray(0),
        average=zero,
        scatter=zero,
        ok=jnp.asarray(True),
    )


def condition(
    belief: Belief,
    kernel_rows: Float[Array, "u c"],
    index: Int[Array, ""],
    y: Float[Array, ""],
    residual: Float[Array, " u"],
    noise: Float[Array, " u"],
) -> Belief:
    """Return the belief after output y at point `index`; `residual` = y - μ_0^u there, `kernel_rows` = k^u(·, there).

    With v the new row and d² its pivot: fit += v (residual - fit)/d, variance -= v² (hyperbo Eq. 17-18).
    """
    pivot = belief.variance[:, index] + noise
    root = jnp.sqrt(pivot)
    above = jnp.einsum("ub,ubc->uc", belief.rows[:, :, index], belief.rows)
    row = (kernel_rows - above) / root[:, None]
    white, one = (residual - belief.fit[:, index]) / root, (1.0 - belief.unit[:, index]) / root
    seen = belief.seen + 1
    step = y - belief.average
    average = belief.average + step / seen
    return Belief(
        fit=belief.fit + row * white[:, None],
        unit=belief.unit + row * one[:, None],
        variance=belief.variance - row**2,
        rows=jax.lax.dynamic_update_index_in_dim(belief.rows, row, belief.seen, 1),
        quadratic=belief.quadratic + jnp.stack([white * white, white * one, one * one], axis=1),
        logdet=belief.logdet + jnp.log(pivot),
        seen=seen,
        average=average,
        scatter=belief.scatter + step * (y - average),
        ok=belief.ok & jnp.all(pivot > 0),
    )


def raw_scale() -> OutputScale:
    """Return the scale that leaves outputs as they are."""
    return OutputScale(jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(0.0))


def scale(belief: Belief, standardise: bool | Bool[Array, ""], centred: bool | Bool[Array, ""]) -> OutputScale:
    """Return the scale of the outputs so far: their mean and standard deviation (n - 1) if `standardise`, else raw.

    A single output, or equal ones, have no deviation; their spread is 1.
    """
    deviation = jnp.sqrt(belief.scatter / jnp.maximum(belief.seen - 1, 1))
    spread = jnp.where((belief.seen > 1) & (deviation > 0), deviation, 1.0)
    shift = jnp.where(standardise, belief.average, 0.0)
    return OutputScale(shift, jnp.where(standardise, spread, 1.0), jnp.asarray(centred, jnp.float64))


def moments(
    belief: Belief, means: Float[Array, "u c"], on: OutputScale, added: Float[Array, " u"] | float = 0.0
) -> tuple[Float[Array, "u c"], Float[Array, "u c"]]:
    """Return posterior means and standard deviations (U, c) on the scale of y; `added` (U,): variance added to that of
    f, on the scale of the GPs (the noise, for predictive deviations)."""
    mean = means + on.shift * on.centred * (1.0 - belief.unit) + belief.fit
    variance = jnp.maximum(belief.variance, 0.0) + jnp.broadcast_to(added, belief.logdet.shape)[:, None]
    return mean, on.spread * jnp.sqrt(variance)


def log_evidence(belief: Belief, on: OutputScale) -> Float[Array, " u"]:
    """Return log p(y | u) of the observations on the scale of the GPs (U,)."""
    shift = on.shift * on.centred
    own, cross, ones = belief.quadratic.T
    quadratic = (own - 2.0 * shift * cross + shift**2 * ones) / on.spread**2
    return -0.5 * (quadratic + belief.logdet + belief.seen * jnp.log(2.0 * jnp.pi))


def information_gain(belief: Belief, noise: Float[Array, " u"]) -> Float[Array, " u"]:
    """Return ½ log|I + K/noise| of the observed points (U,)."""
    return 0.5 * (belief.logdet - belief.seen * jnp.log(noise))
