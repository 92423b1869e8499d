"""The only place that factorises covariance matrices: jitter, masks, and the Gaussian loss with its own gradient."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

JITTER = 1e-6
"""Added to the noise variance in every covariance (value of the authors' code; outputs have unit order)."""
RELATIVE_JITTER = 1e-10
"""At least this share of the prior variance is added, because an absolute number would vanish beside a variance of
1e10."""
RAISED = (1e-8, 1e-6, 1e-4)
"""Shares of the largest variance that are added, one after another, to a covariance that cannot be factorised."""


def jitter(variance: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return the jitter that is added to the noise for a prior variance of `variance`: JITTER up to a variance of
    1e4."""
    return jnp.maximum(JITTER, RELATIVE_JITTER * variance)


def masked_covariance(
    gram: Float[Array, "n n"], noise: Float[Array, ""], mask: Bool[Array, " n"]
) -> Float[Array, "n n"]:
    """Return K + (noise + jitter) I on the valid rows and unit rows elsewhere, so that padding changes nothing.

    The noise indicator compares indices, not input values (hyperbo §3), so repeated inputs stay non-singular.
    """
    valid = mask[:, None] & mask[None, :]
    diagonal = jnp.where(mask, noise + jitter(jnp.diagonal(gram)), 1.0)
    return jnp.where(valid, gram, 0.0) + jnp.diag(diagonal)


def cholesky(covariance: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Bool[Array, ""]]:
    """Return the lower factor and a flag that is False when the matrix was not positive definite."""
    factor = jnp.linalg.cholesky(covariance, symmetrize_input=False)
    return factor, jnp.isfinite(factor).all()


def escalated(
    covariance: Float[Array, "n n"],
) -> tuple[Float[Array, "n n"], Float[Array, ""], Bool[Array, ""]]:
    """Return the lower factor, the variance that was added to the diagonal to obtain it, and whether there is a factor.

    It first adds 0 and then, until one succeeds, the shares `RAISED` of the largest variance. A covariance with NaN or
    infinity has no factor. This function has no reverse-mode derivative.
    """
    largest = jnp.max(jnp.diagonal(covariance))
    shares = jnp.asarray((0.0, *RAISED), covariance.dtype)

    def failed(carry):
        _, ok, level = carry
        return ~ok & (level < len(RAISED)) & jnp.isfinite(largest)

    def again(carry):
        level = carry[2] + 1
        added = shares[level] * largest
        return *cholesky(covariance + added * jnp.eye(len(covariance), dtype=covariance.dtype)), level

    factor, ok, level = jax.lax.while_loop(failed, again, (*cholesky(covariance), jnp.asarray(0)))
    return factor, jnp.where(ok, shares[level] * largest, 0.0), ok


@jax.custom_vjp
def half_quadratic_logdet(covariance: Float[Array, "n n"], residuals: Float[Array, "n c"]) -> Float[Array, ""]:
    """Return ½ [ sum over columns of rᵀ Σ⁻¹ r + ln|Σ| ], the core of NLL (one column) and EKL (several).

    The gradient has a closed form, ½(Σ⁻¹ - V Vᵀ) for Σ and V = Σ⁻¹ R for R, which needs one inverse instead of
    differentiating through the Cholesky factorisation. Cost O(n³ + n² c).
    """
    factor = jnp.linalg.cholesky(covariance, symmetrize_input=False)
    whitened = solve_triangular(factor, residuals, lower=True)
    return 0.5 * jnp.sum(whitened**2) + jnp.sum(jnp.log(jnp.diagonal(factor)))


def invert_lower(factor: Float[Array, "n n"], block: int = 16) -> Float[Array, "n n"]:
    """Return L⁻¹ by halving. A library's triangular solve against I does twice the work, because it ignores the zeros
    of I."""
    n = factor.shape[0]
    if n <= block:
        return solve_triangular(factor, jnp.eye(n, dtype=factor.dtype), lower=True)
    half = (n + 1) // 2
    top, bottom = invert_lower(factor[:half, :half], block), invert_lower(factor[half:, half:], block)
    corner = -(bottom @ (factor[half:, :half] @ top))
    return jnp.block([[top, jnp.zeros((half, n - half), factor.dtype)], [corner, bottom]])


def gram_lower(factor: Float[Array, "n n"], block: int = 64) -> Float[Array, "n n"]:
    """Return LᵀL of a lower-triangular L by halving. A plain product does three times the work, because it multiplies
    zeros and computes both halves of a symmetric result."""
    n = factor.shape[0]
    if n <= block:
        return factor.T @ factor
    half = (n + 1) // 2
    corner, bottom = factor[half:, :half], factor[half:, half:]
    side = bottom.T @ corner
    top = gram_lower(factor[:half, :half], block) + corner.T @ corner
    return jnp.block([[top, side.T], [side, gram_lower(bottom, block)]])


def _forward(covariance, residuals):
    factor = jnp.linalg.cholesky(covariance, symmetrize_input=False)
    inverse_factor = invert_lower(factor)
    whitened = inverse_factor @ residuals
    value = 0.5 * jnp.sum(whitened**2) + jnp.sum(jnp.log(jnp.diagonal(factor)))
    return value, (inverse_factor, whitened)


def _backward(saved, cotangent):
    inverse_factor, whitened = saved
    solution = inverse_factor.T @ whitened
    gradient = 0.5 * (inverse_factor.T @ inverse_factor - solution @ solution.T)
    return cotangent * gradient, cotangent * solution


half_quadratic_logdet.defvjp(_forward, _backward)
