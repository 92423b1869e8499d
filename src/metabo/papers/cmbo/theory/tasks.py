"""Synthetic tasks of the checks: functions of a Matérn 3/2 RKHS on [0, 1], and posteriors of them, many at once.

Leading axes are batches (replicates r, source tasks K). The kernel has unit variance, as the paper assumes (k <= 1).
"""

from typing import NamedTuple

import numpy as np

LENGTHSCALE = 0.2
NOISE = 1e-2
"""σ²; the standard deviation 0.1 is that of the sheet."""
CENTRES = 8
"""Kernel functions that a drawn function is made of."""


class Function(NamedTuple):
    """Σ_j a_j k(c_j, ·): centres and coefficients, both (..., c)."""

    centres: np.ndarray
    coefficients: np.ndarray


class Gaussian(NamedTuple):
    """Normal laws on v points: means (..., v), covariances (..., v, v)."""

    mean: np.ndarray
    cov: np.ndarray


def matern32(x: np.ndarray, z: np.ndarray, lengthscale: float = LENGTHSCALE) -> np.ndarray:
    """Return k(x, z) of points x (..., n), z (..., m) on the line: (..., n, m)."""
    r = np.sqrt(3.0) * np.abs(x[..., :, None] - z[..., None, :]) / lengthscale
    return (1.0 + r) * np.exp(-r)


def draw_functions(rng: np.random.Generator, *shape: int, norm: float = 1.0) -> Function:
    """Draw functions (*shape) of RKHS norm `norm`: normal coefficients at uniform centres, scaled."""
    centres, a = rng.random((*shape, CENTRES)), rng.standard_normal((*shape, CENTRES))
    return Function(centres, norm * a / np.sqrt(squared_norm(Function(centres, a)))[..., None])


def squared_norm(f: Function) -> np.ndarray:
    """Return ‖f‖² in the RKHS, aᵀ k(c, c) a."""
    gram = matern32(f.centres, f.centres)
    return np.einsum("...i,...ij,...j->...", f.coefficients, gram, f.coefficients)


def values(f: Function, x: np.ndarray) -> np.ndarray:
    """Return f(x) of points x (..., n), with the batches of f and x broadcast: (..., n)."""
    return np.einsum("...nc,...c->...n", matern32(x, f.centres), f.coefficients)


def add(f: Function, g: Function, factor: float) -> Function:
    """Return f + factor · g."""
    shape = np.broadcast_shapes(f.centres.shape[:-1], g.centres.shape[:-1])

    def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in (a, b)], axis=-1)

    return Function(join(f.centres, g.centres), join(f.coefficients, factor * g.coefficients))


def smoother(x: np.ndarray, grid: np.ndarray, noise: float, lengthscale: float = LENGTHSCALE) -> Gaussian:
    """Return what Eqs. 1 and 2 make of observations at x (..., n) under a zero-mean prior, whatever their values.

    As a pair: the matrix (..., v, n) that maps y to the posterior mean on `grid` (v,), in the place of the mean, and
    the posterior covariance (..., v, v).
    """
    gram = matern32(x, x, lengthscale) + noise * np.eye(x.shape[-1])
    cross = matern32(np.broadcast_to(grid, (*x.shape[:-1], len(grid))), x, lengthscale)
    gain = np.linalg.solve(gram, cross.swapaxes(-2, -1)).swapaxes(-2, -1)
    return Gaussian(gain, symmetric(matern32(grid, grid, lengthscale) - gain @ cross.swapaxes(-2, -1)))


def posterior(
    x: np.ndarray, y: np.ndarray, grid: np.ndarray, noise: float, lengthscale: float = LENGTHSCALE
) -> Gaussian:
    """Return the posterior on `grid` (v,) of observations y (..., n) at x (..., n) under a zero-mean prior."""
    gain, cov = smoother(x, grid, noise, lengthscale)
    return Gaussian((gain @ y[..., None])[..., 0], cov)


def condition(prior: Gaussian, index: np.ndarray, y: np.ndarray, noise: float) -> Gaussian:
    """Condition laws on a grid (r, v) on m noisy observations y (r, m) at its points `index` (r, m): Eqs. 1 and 2."""
    rows = np.arange(len(index))[:, None]
    cross = prior.cov[rows, index]  # (r, m, v)
    gram = np.take_along_axis(cross, index[:, None, :], axis=2) + noise * np.eye(index.shape[1])
    gain = np.linalg.solve(gram, cross)
    residual = y - prior.mean[rows, index]
    mean = prior.mean + np.einsum("rmv,rm->rv", gain, residual)
    return Gaussian(mean, symmetric(prior.cov - cross.swapaxes(1, 2) @ gain))


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric part of matrices (..., v, v): rounding makes them differ from it."""
    return 0.5 * (matrix + matrix.swapaxes(-2, -1))


def information(cov: np.ndarray, index: np.ndarray, noise: float) -> np.ndarray:
    """Return ½ ln|I + k(X)/σ²| (r,) of the points `index` (r, m) under covariances (r, v, v)."""
    rows = np.arange(len(index))[:, None]
    gram = np.take_along_axis(cov[rows, index], index[:, None, :], axis=2)
    return 0.5 * np.linalg.slogdet(np.eye(index.shape[1]) + gram / noise)[1]


def greedy_information(cov: np.ndarray, queries: int, noise: float) -> np.ndarray:
    """Return the information (r, queries + 1) of 0, 1, ... points chosen greedily under covariances (r, v, v).

    The largest information of t points is at most 1/(1 - 1/e) times that of t points chosen greedily.
    """
    cov, rows = cov.copy(), np.arange(len(cov))
    total = np.zeros((len(cov), queries + 1))
    for t in range(queries):
        variance = np.diagonal(cov, axis1=1, axis2=2)
        best = np.argmax(variance, axis=1)
        own = np.maximum(variance[rows, best], 0.0)
        total[:, t + 1] = total[:, t] + 0.5 * np.log1p(own / noise)
        column = cov[rows, best]
        cov -= column[:, :, None] * column[:, None, :] / (own + noise)[:, None, None]
    return total
