"""Eq. 1 of MPHD (§2.2, appendix B) as a formula, and the exact evidence of a linear mean with known K: H = 2."""

from collections.abc import Callable

import numpy as np
from scipy import stats

Numbers = np.ndarray | float


def laplace_log_evidence(
    log_likelihood: Numbers, log_prior: Numbers, hessian: Numbers, sets: int, parameters: int
) -> Numbers:
    """Return Eq. 1's term of one domain: ln √[(2π)^H/(M^H det ∇²(-ln p/M))] + ln p(D|θ̂) + ln p(θ̂|φ).

    `hessian`: det ∇²(-ln p(D|θ)/M) at θ̂; `sets`: M; `parameters`: H.
    """
    root = 0.5 * (parameters * np.log(2.0 * np.pi) - parameters * np.log(sets) - np.log(hessian))
    return root + log_prior + log_likelihood


def normal_log_density(value: np.ndarray, variance: float) -> np.ndarray:
    """Return the log density of N(0, variance)."""
    return stats.norm.logpdf(value, 0.0, np.sqrt(variance))


def slope_design(x: np.ndarray) -> np.ndarray:
    """Return Φ (l, 2), the values of the mean's two terms, 1 and x, at inputs x (l, 1)."""
    return np.concatenate([np.ones_like(x), x], axis=1)


def best_linear(y: np.ndarray, k: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return the coefficients θ̂ (r, 2) of maximum likelihood of y (r, M, l), mean Φθ, K (l, l) known."""
    weights = np.linalg.solve(k, phi)
    return np.linalg.solve(phi.T @ weights, (y.mean(axis=1) @ weights).T).T


def evidence_of_linear(y: np.ndarray, k: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return the exact log evidence (r,) under θ ~ N(0, I): all outputs (r, M, l) are jointly Gaussian, ⊕K + ΦΦᵀ."""
    sets = y.shape[1]
    whole = np.kron(np.eye(sets), k) + np.kron(np.ones((sets, sets)), phi @ phi.T)
    return np.atleast_1d(stats.multivariate_normal(np.zeros(len(whole)), whole).logpdf(y.reshape(len(y), -1)))


def laplace_of_linear(
    y: np.ndarray, k: np.ndarray, phi: np.ndarray, hessian: Callable[[np.ndarray], Numbers] = np.linalg.det
) -> np.ndarray:
    """Return Eq. 1 (r,) of y (r, M, l) under θ ~ N(0, I) by its formula, with H = 2.

    The matrix of second derivatives of -ln p/M is ΦᵀK⁻¹Φ; `hessian` is the number that Eq. 1 takes of it.
    """
    best = best_linear(y, k, phi)
    each = stats.multivariate_normal(np.zeros(len(k)), k).logpdf(y - (best @ phi.T)[:, None])
    likelihood = np.reshape(each, y.shape[:2]).sum(axis=1)
    prior = normal_log_density(best, 1.0).sum(axis=1)
    return laplace_log_evidence(likelihood, prior, hessian(phi.T @ np.linalg.solve(k, phi)), y.shape[1], 2)


def error_of_linear(estimates: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the exact evidence less Eq. 1 (r,) at θ̂ (r, 2) of that covariance: ln N(θ̂; 0, I + Cov) - ln N(θ̂; 0, I)."""
    law = stats.multivariate_normal(np.zeros(2), np.eye(2) + covariance)
    return np.atleast_1d(law.logpdf(estimates)) - normal_log_density(estimates, 1.0).sum(axis=1)
