"""Wasserstein barycenter of centred Gaussians on a finite index set (cm-BO §3.2, Remark 1; sheet §2.3).

The barycenter of covariances Σ_j with weights ξ_j is the only positive-definite Σ with Σ = Σ_j ξ_j (Σ^½ Σ_j Σ^½)^½.
Fixed-point iteration of Álvarez-Esteban et al. (2016), Σ ← Σ^-½ (Σ_j ξ_j (Σ^½ Σ_j Σ^½)^½)² Σ^-½, written with the
Cholesky factor of Σ in place of its root: a rotation of the same matrices, without the root's eigen-decomposition.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int

TOLERANCE = 1e-10
STEPS = 100


class Barycenter(NamedTuple):
    """The barycenter's covariance, the relative residual of its fixed-point equation (Frobenius norm), and the
    iterations until it fell below the tolerance (or the limit). The residual is not a number where a covariance that
    is iterated on is singular."""

    cov: Float[Array, "*c v v"]
    residual: Float[Array, "*c"]
    iterations: Int[Array, "*c"]


def barycenter(
    covs: Float[Array, "n v v"],
    weights: Float[Array, " n"],
    tolerance: float = TOLERANCE,
    steps: int = STEPS,
    start: Float[Array, "v v"] | None = None,
) -> Barycenter:
    """Return the barycenter of positive-definite covariances; the weights sum to 1, and those that are 0 cost nothing.

    `start`: where the iteration begins, the weighted mean covariance unless given, which is the barycenter of one
    covariance at once. Without any weight it is the identity. Cost per step: an eigen-decomposition for each
    covariance. Does not raise: see `unconverged`.
    """
    size = covs.shape[-1]
    there = weights > 0

    def target(lower):
        """Return Σ_j ξ_j (Lᵀ Σ_j L)^½, what LᵀL is at the fixed point."""

        def add(total, one):
            cov, weight = one

            def more():
                values, vectors = jnp.linalg.eigh(lower.T @ cov @ lower)
                return total + weight * (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T

            return jax.lax.cond(weight > 0, more, lambda: total), None

        return jax.lax.scan(add, jnp.zeros((size, size)), (covs, weights))[0]

    def step(carry):
        current, _, number = carry
        lower = jnp.linalg.cholesky(current, symmetrize_input=False)
        wanted, held = target(lower), lower.T @ lower
        left = jnp.linalg.norm(wanted - held) / jnp.linalg.norm(held)
        # Σ ← L^-T M M L^-1 = B Bᵀ with B = L^-T M
        half = solve_triangular(lower, wanted, lower=True, trans="T")
        number = number + 1
        return jnp.where(unfinished((current, left, number)), half @ half.T, current), left, number

    def unfinished(carry):
        _, left, number = carry
        return (number < steps) & (left > tolerance)  # also ends at a residual that is not a number

    begin = jnp.where(there.any(), jnp.tensordot(weights, covs, axes=1), jnp.eye(size)) if start is None else start
    at_once = (there.sum() <= 1) & (start is None)
    carry = (begin, jnp.where(at_once, 0.0, jnp.inf), jnp.where(at_once, 0, -1))  # the first step updates nothing yet
    return Barycenter(*jax.lax.while_loop(unfinished, step, carry))


def barycenters(
    covs: Float[Array, "n v v"], share: Float[Array, "c n"], tolerance: float = TOLERANCE, steps: int = STEPS
) -> Barycenter:
    """Return the barycenters of several clusters; `share`: the weights of the n covariances in each, 0 if they are not
    members."""
    return jax.lax.map(lambda weights: barycenter(covs, weights, tolerance, steps), share)


def unconverged(found: Barycenter, tolerance: float = TOLERANCE) -> list[str]:
    """Return a sentence for each of several barycenters (leading axis c) whose residual is not within the tolerance:
    its position from 1, the residual, the iterations, and what to do."""
    residuals, iterations = np.asarray(found.residual), np.asarray(found.iterations)
    said = []
    for i in np.flatnonzero(~(residuals <= tolerance)):
        finite = np.isfinite(residuals[i])
        cause = "allow more iterations" if finite else "a covariance is singular: add jitter (`regularised`)"
        said.append(
            f"cluster {i + 1}: the Wasserstein barycenter did not converge: residual {residuals[i]:.2g} after "
            f"{iterations[i]} iterations, needs {tolerance:.2g}; {cause}"
        )
    return said
