"""Distances between Gaussians on a finite index set (cm-BO §3.1; sheet §2.1): Jeffreys divergence and 2-Wasserstein.

A Gaussian is a mean (v,) and a covariance (v, v). Nothing here adds jitter by itself: `regularised` does, and says how
much. The distances take one pair of Gaussians; `jax.vmap` makes them batched.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from metabo.errors import unknown
from metabo.gp.linalg import gram_lower, invert_lower

DISTANCES = ("jeffreys", "wasserstein")
RELATIVE_JITTER = 1e-6
"""Share of its mean variance that `regularised` adds to every variance of a covariance."""


def regularised(cov: Float[Array, "*b v v"], share: float = RELATIVE_JITTER) -> Float[Array, "*b v v"]:
    """Return the covariance with `share` of its mean variance added to its diagonal, as every inverse needs."""
    size = cov.shape[-1]
    mean = jnp.trace(cov, axis1=-2, axis2=-1) / size
    return cov + share * mean[..., None, None] * jnp.eye(size)


def root(cov: Float[Array, "v v"]) -> Float[Array, "v v"]:
    """Return R with R Rᵀ = cov; eigenvalues below 0 (from rounding, or because cov is not a covariance) count as 0."""
    values, vectors = jnp.linalg.eigh(cov)
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0))


def roots(covs: Float[Array, "n v v"]) -> Float[Array, "n v v"]:
    """Return R with R Rᵀ = cov for each covariance: Cholesky factors, which take a tenth of the time of `root`, unless
    one of the covariances has none."""
    factors = jnp.linalg.cholesky(covs, symmetrize_input=False)
    return jax.lax.cond(jnp.isfinite(factors).all(), lambda: factors, lambda: jax.vmap(root)(covs))


def precision(cov: Float[Array, "v v"]) -> Float[Array, "v v"]:
    """Return the inverse of a positive-definite matrix; NaN if it is singular."""
    return gram_lower(invert_lower(jnp.linalg.cholesky(cov, symmetrize_input=False)))


def kl(
    m0: Float[Array, " v"], s0: Float[Array, "v v"], m1: Float[Array, " v"], s1: Float[Array, "v v"]
) -> Float[Array, ""]:
    """KL(P‖Q) in nats of P = N(m0, s0) from Q = N(m1, s1); not a number if a covariance is singular."""
    l0, l1 = (jnp.linalg.cholesky(s, symmetrize_input=False) for s in (s0, s1))
    inverse = invert_lower(l1)
    logs = 2.0 * jnp.sum(jnp.log(jnp.diagonal(l1)) - jnp.log(jnp.diagonal(l0)))
    return 0.5 * (jnp.sum((inverse @ l0) ** 2) + jnp.sum((inverse @ (m1 - m0)) ** 2) - len(m0) + logs)


def jeffreys(
    m0: Float[Array, " v"], s0: Float[Array, "v v"], m1: Float[Array, " v"], s1: Float[Array, "v v"]
) -> Float[Array, ""]:
    """KL(P‖Q) + KL(Q‖P) in nats, the log-determinants of which cancel; not a number if a covariance is singular."""
    return jeffreys_prepared(m0, s0, precision(s0), m1, s1, precision(s1))


def jeffreys_prepared(
    m0: Float[Array, " v"],
    s0: Float[Array, "v v"],
    p0: Float[Array, "v v"],
    m1: Float[Array, " v"],
    s1: Float[Array, "v v"],
    p1: Float[Array, "v v"],
) -> Float[Array, ""]:
    """Jeffreys divergence from covariances s and their inverses p. Cost O(v²)."""
    shift = m1 - m0
    traces = jnp.sum(p1 * s0) + jnp.sum(p0 * s1) - 2.0 * len(m0)
    return 0.5 * (traces + shift @ ((p0 + p1) @ shift))


def wasserstein(
    m0: Float[Array, " v"], s0: Float[Array, "v v"], m1: Float[Array, " v"], s1: Float[Array, "v v"]
) -> Float[Array, ""]:
    """W2 (the metric, not its square) of two Gaussians; covariances may be singular."""
    return wasserstein_prepared(m0, root(s0), m1, root(s1))


def wasserstein_prepared(
    m0: Float[Array, " v"], r0: Float[Array, "v v"], m1: Float[Array, " v"], r1: Float[Array, "v v"]
) -> Float[Array, ""]:
    """W2 from any square roots, s = r rᵀ: the trace of (s1^½ s0 s1^½)^½ is the sum of the singular values of r0ᵀ r1.

    Cost: one set of singular values, which takes a third of the time of an eigen-decomposition.
    """
    overlap = jnp.sum(jnp.linalg.svd(r0.T @ r1, compute_uv=False))
    squared = jnp.sum((m0 - m1) ** 2) + jnp.sum(r0**2) + jnp.sum(r1**2) - 2.0 * overlap
    return jnp.sqrt(jnp.maximum(squared, 0.0))


class Prepared(NamedTuple):
    """Gaussians with what their distances need: `part` (n, v, v) is the inverse (Jeffreys) or a root (W2) of `covs`."""

    means: Float[Array, "n v"]
    covs: Float[Array, "n v v"]
    part: Float[Array, "n v v"]


def prepared(means: Float[Array, "n v"], covs: Float[Array, "n v v"], distance: str) -> Prepared:
    """Factorise every covariance once. Raises ConfigError for an unknown distance."""
    if distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    return Prepared(means, covs, jax.vmap(precision)(covs) if distance == "jeffreys" else roots(covs))


def distances(a: Prepared, b: Prepared, distance: str, wanted: Bool[Array, " c"] | None = None) -> Float[Array, "n c"]:
    """Return the distances of the n Gaussians of `a` from the c of `b`, both prepared for `distance`; infinite from
    those that are not `wanted`.

    Jeffreys: two matrix products for all pairs. W2: one set of singular values a pair.
    """
    wanted = jnp.ones(len(b.means), bool) if wanted is None else wanted
    if distance == "wasserstein":

        def from_one(one):
            mean, part, known = one
            per_pair = jax.vmap(wasserstein_prepared, in_axes=(0, 0, None, None))
            nowhere = jnp.full(len(a.means), jnp.inf)
            return jax.lax.cond(known, lambda: per_pair(a.means, a.part, mean, part), lambda: nowhere)

        return jax.lax.map(from_one, (b.means, b.part, wanted)).T
    flat = [x.reshape(len(x), -1) for x in (a.covs, a.part, b.covs, b.part)]
    traces = flat[0] @ flat[3].T + flat[1] @ flat[2].T - 2.0 * a.means.shape[1]
    shift = a.means[:, None] - b.means[None]
    of_a = jnp.einsum("ncv,nvu,ncu->nc", shift, a.part, shift)
    of_b = jnp.einsum("ncv,cvu,ncu->nc", shift, b.part, shift)
    return jnp.where(wanted, 0.5 * (traces + of_a + of_b), jnp.inf)


@partial(jax.jit, static_argnames="distance")
def pairwise(means: Float[Array, "n v"], covs: Float[Array, "n v v"], distance: str) -> Float[Array, "n n"]:
    """Return the distances between n Gaussians, exactly symmetric with zeros on the diagonal."""
    all_of_them = prepared(means, covs, distance)
    above = jnp.triu(distances(all_of_them, all_of_them, distance), 1)
    return above + above.T
