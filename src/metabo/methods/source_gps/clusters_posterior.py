"""cm-BO, Stage 3: the GP prior that is a weighted sum of prototypes, and the target's posterior under it (Algorithm 1,
lines 13 to 16; sheet §2.4).

The paper leaves open, and we chose: the noise variance is fitted by maximum likelihood at every query (`noise:
fitted`), in a range whose ends no fit of standardised outputs should reach. The prior of p clusters of equal weight has
1/p of a cluster's variance, so much of what it cannot explain is attributed to noise. Other readings are a fixed
variance of 1e-4 (`fixed`), and a factor on the prior's covariance that is fitted together with the noise (`scaled`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from metabo.gp.linalg import cholesky

FLOOR = 1e-12
"""The smallest variance of f that an acquisition sees."""
NOISE = (1e-6, 1e1)
"""Outputs are standardised, so that a noise variance of 1 explains all of their variance, and 10 a prior mean that is
off by three of their deviations. An upper end of 0.1 would hold two thirds of the fits on cmbo_mini."""
FIXED = 1e-4
"""The noise variance of `noise: fixed`."""
FACTORS = (0.1, 100.0, 31)
"""Factors on the prior's covariance that `noise: scaled` tries: smallest, largest, and number, evenly spaced on the log
scale."""
NOISES = 57
"""The number of noise variances that the fit tries, evenly spaced on the log scale, 0.12 of a decade apart; the
likelihood is flat at that scale."""


class Conditioned(NamedTuple):
    """The target's posterior: moments of f at the candidates (c,), covariance on the grid (g, g), noise variance, and
    soundness."""

    mean: Float[Array, " c"]
    variance: Float[Array, " c"]
    covariance: Float[Array, "g g"]
    noise: Float[Array, ""]
    ok: Bool[Array, ""]


class MetaPrior(NamedTuple):
    """Prototypes on c candidates: `means` (p, c), `covs` (p, c, c), `present` (p,). What their distances need on the g
    locations `grid`: `near` (p, g), `near_covs`, `part` (p, g, g). Their `weights` (p,). The observations to condition
    on: the candidates `queried` and outputs `y`, `observed` of them, padded to the budget."""

    valid: Bool[Array, " c"]
    priority: Float[Array, " c"]
    means: Float[Array, "p c"]
    covs: Float[Array, "p c c"]
    present: Bool[Array, " p"]
    grid: Int[Array, " g"]
    near: Float[Array, "p g"]
    near_covs: Float[Array, "p g g"]
    part: Float[Array, "p g g"]
    weights: Float[Array, " p"]
    queried: Int[Array, " b"]
    y: Float[Array, " b"]
    observed: Int[Array, ""]
    ok: Bool[Array, ""]


def condition(meta: MetaPrior, how: str = "fitted") -> Conditioned:
    """Condition the meta-prior on the observations (lines 13 to 15); `how` says how the noise is found. Cost O(b² c + b
    g²)."""
    squares = meta.weights**2
    seen = jnp.arange(len(meta.queried)) < meta.observed
    both = seen[:, None] & seen[None, :]
    prior = meta.weights @ meta.means
    cross = jnp.where(seen[:, None], jnp.einsum("p,pbc->bc", squares, meta.covs[:, meta.queried]), 0.0)
    inner = jnp.where(both, cross[:, meta.queried], 0.0)
    residual = jnp.where(seen, meta.y - prior[meta.queried], 0.0)
    scale, noise = variances(inner, residual, seen, how)
    squares, cross, inner = scale * squares, scale * cross, scale * inner
    factor, ok = cholesky(inner + jnp.diag(jnp.where(seen, noise, 1.0)))
    half = solve_triangular(factor, cross, lower=True)
    whitened = solve_triangular(factor, residual, lower=True)
    variance = squares @ jax.vmap(jnp.diagonal)(meta.covs) - jnp.sum(half**2, axis=0)
    on_grid = half[:, meta.grid]
    covariance = jnp.einsum("p,pij->ij", squares, meta.near_covs) - on_grid.T @ on_grid
    mean = prior + half.T @ whitened
    # Where the variance rounds to 0 or less, the acquisition would not be a number.
    return Conditioned(mean, jnp.maximum(variance, FLOOR), covariance, noise, ok & jnp.isfinite(mean).all())


def variances(
    inner: Float[Array, "b b"], residual: Float[Array, " b"], seen: Bool[Array, " b"], how: str = "fitted"
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the factor on `inner` and the noise variance that maximise the likelihood of `residual` under N(0, factor
    inner + noise I), among those that `how` tries; without an observation, factor 1 and the smallest noise tried. Rows
    that are not `seen` are zeros.

    One eigendecomposition serves all trials; the contribution of the padding's zeros is subtracted.
    """
    one = jnp.ones(1)
    if how == "fixed":
        return one[0], FIXED * one[0]
    values, vectors = jnp.linalg.eigh(inner)
    rotated = (vectors.T @ residual) ** 2
    trials = jnp.geomspace(*NOISE, NOISES)
    factors = jnp.geomspace(*FACTORS) if how == "scaled" else one
    total = factors[:, None, None] * jnp.maximum(values, 0.0) + trials[:, None]
    padding = len(seen) - jnp.sum(seen)
    losses = jnp.sum(rotated / total + jnp.log(total), axis=2) - padding * jnp.log(trials)
    factor, noise = jnp.unravel_index(jnp.argmin(losses), losses.shape)
    return jnp.where(seen.any(), factors[factor], 1.0), trials[noise]
