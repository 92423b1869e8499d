"""Pre-training objectives: NLL (hyperbo Eq. 13) and EKL (Eq. 6, 7, 8), as functions of a GP and padded data."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float

from metabo.gp.linalg import cholesky, half_quadratic_logdet
from metabo.gp.model import GP
from metabo.tasks.rows import AnyArray, Moments


def nll(
    gp: GP,
    x: Float[AnyArray, "tasks n d"],
    y: Float[AnyArray, "tasks n"],
    mask: Bool[AnyArray, "tasks n"],
) -> Float[Array, ""]:
    """Mean negative log marginal likelihood over the tasks that have at least one valid row (Eq. 13)."""
    present = jnp.any(mask, axis=1)
    losses = -jax.vmap(gp.log_prob)(x, y, mask)
    return jnp.sum(jnp.where(present, losses, 0.0)) / jnp.sum(present)


def ekl_training(gp: GP, data: Moments) -> Float[Array, ""]:
    """Eq. 8 with Eq. 7 less its constants: mean over blocks of ½[tr(Σ⁻¹Σ̃) + Mahalanobis + ln|Σ|] (sheet §2.6).

    On one matched block this equals the NLL up to a constant, whatever the rank of Σ̃. Cost O(m³ + m² n) per block.
    """

    def block(x, mean, root, mask):
        phi = gp.features(x)
        shift = jnp.where(mask, mean - gp.mean(phi), 0.0)
        return half_quadratic_logdet(gp.covariance(phi, mask), jnp.concatenate([root, shift[:, None]], axis=1))

    present = data.mask.any(axis=1)
    losses = jax.vmap(block)(*data)
    return jnp.sum(jnp.where(present, losses, 0.0)) / jnp.sum(present)


def gaussian_kl(
    mean0: Float[Array, " m"], cov0: Float[Array, "m m"], mean1: Float[Array, " m"], cov1: Float[Array, "m m"]
) -> Float[Array, ""]:
    """KL(N(mean0, cov0) ‖ N(mean1, cov1)) of two non-degenerate Gaussians (Eq. 7). NaN if either is singular."""
    factor0, _ = cholesky(cov0)
    factor1, _ = cholesky(cov1)
    shift = mean1 - mean0
    trace = jnp.trace(cho_solve((factor1, True), cov0))
    quadratic = shift @ cho_solve((factor1, True), shift)
    logdet = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor1)) - jnp.log(jnp.diagonal(factor0)))
    return 0.5 * (trace + quadratic + logdet - mean0.shape[0])


def degenerate_ekl(
    mean: np.ndarray, covariance: np.ndarray, sample_mean: np.ndarray, root: np.ndarray, cutoff: float = 1e-10
) -> float:
    """EKL of Eq. 6: KL on the range of a singular Σ̃ = root rootᵀ, spanned by the r eigenvectors with eigenvalues above
    `cutoff` x the largest.

    `mean` (m,), `covariance` (m, m) are the model's, `sample_mean` (m,), `root` (m, N) the sample's. Never pad Σ̃ by an
    absolute number here: in float64 that turns the null space into signal (sheet §2.4). Reduces to Eq. 7 when r = m.
    Returns NaN if the projected covariance is not positive definite, or if Σ̃ is zero up to rounding (all tasks agree),
    because its range is then empty and there is nothing to compare.
    """
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    if singular[0] <= 8 * np.finfo(np.float64).eps * np.linalg.norm(sample_mean):
        return float("nan")
    eigenvalues = singular**2
    keep = eigenvalues > cutoff * eigenvalues[0]
    # A = V Λ^{1/2}, so A⁺ = Λ^{-1/2} Vᵀ.
    pseudo_inverse = left[:, keep].T / singular[keep][:, None]
    projected = pseudo_inverse @ covariance @ pseudo_inverse.T
    shift = pseudo_inverse @ (mean - sample_mean)
    try:
        logdet = 2.0 * np.log(np.diagonal(np.linalg.cholesky(projected))).sum()
    except np.linalg.LinAlgError:
        return float("nan")
    inverse = np.linalg.solve(projected, np.column_stack([np.eye(keep.sum()), shift]))
    return float(0.5 * (np.trace(inverse[:, :-1]) + shift @ inverse[:, -1] + logdet - keep.sum()))
