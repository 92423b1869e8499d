"""The posterior of a Gaussian process in long doubles, by dense algebra of its own, and how far float64 may be from it.

The long doubles have 64 bits of mantissa: what a posterior may differ from them by follows from the condition number of
the covariance, the size of the inputs on their lengthscales, and the rounding of float64.
"""

import math
from typing import NamedTuple

import numpy as np

JITTER, RELATIVE_JITTER = 1e-6, 1e-10
"""What the model documents to add to the noise: the larger of the first and of this share of the variance."""
SLACK = 10.0
"""Times the bound of first order that an error may be."""

Long = np.ndarray


class Moments(NamedTuple):
    """Mean and variance of a posterior, and the log marginal likelihood."""

    mean: np.ndarray
    variance: np.ndarray
    evidence: float


class Exact(NamedTuple):
    """The same in long doubles, and how much of each rounding may take."""

    moments: Moments
    bounds: Moments


class Inputs(NamedTuple):
    """Observations `x`, `y`, and where to predict."""

    x: np.ndarray
    y: np.ndarray
    new: np.ndarray


def factor(matrix: Long) -> Long:
    """Return the lower Cholesky factor, row by row."""
    out = np.zeros_like(matrix)
    for row in range(len(matrix)):
        for column in range(row + 1):
            rest = matrix[row, column] - out[row, :column] @ out[column, :column]
            out[row, column] = np.sqrt(rest) if row == column else rest / out[column, column]
    return out


def solved(lower: Long, right: Long) -> Long:
    """Return L⁻¹ b for the columns b of `right`."""
    out = np.zeros_like(right)
    for row in range(len(lower)):
        out[row] = (right[row] - lower[row, :row] @ out[:row]) / lower[row, row]
    return out


def radial(kernel: str, r: Long) -> Long:
    """Return the kernel of unit variance at a distance in lengthscales (Rasmussen and Williams 2006, Eq. 4.14-4.17)."""
    root = {"matern32": np.sqrt(np.longdouble(3)), "matern52": np.sqrt(np.longdouble(5))}.get(kernel, np.longdouble(1))
    s = root * r
    polynomial = {"matern32": 1 + s, "matern52": 1 + s + s**2 / 3}.get(kernel, np.ones_like(r))
    return polynomial * np.exp(-(r**2) / 2 if kernel == "squared_exponential" else -s)


def exact(kernel: str, lengthscale: np.ndarray, variance: float, noise: float, mean: float, inputs: Inputs) -> Exact:
    """Return moments in long doubles by dense algebra, and bounds of first order of float64's errors."""
    x, y, new, scale = (np.asarray(one, np.longdouble) for one in (inputs.x, inputs.y, inputs.new, lengthscale))
    size = np.longdouble(variance)

    def between(a: Long, b: Long) -> Long:
        return size * radial(kernel, np.sqrt((((a[:, None] - b[None]) / scale) ** 2).sum(2)))

    covariance = between(x, x) + (np.longdouble(noise) + max(JITTER, RELATIVE_JITTER * variance)) * np.eye(len(x))
    lower, cross, rest = factor(covariance), between(x, new), y - np.longdouble(mean)
    half, whitened = solved(lower, rest[:, None])[:, 0], solved(lower, cross)
    weights = solved(lower.T[::-1, ::-1], half[::-1, None])[::-1, 0]
    evidence = -half @ half / 2 - np.log(np.diag(lower)).sum() - len(x) * np.log(2 * np.pi) / 2
    moments = Moments(mean + whitened.T @ half, size - (whitened**2).sum(0), float(evidence))
    least = float(noise + max(JITTER, RELATIVE_JITTER * variance))
    norms = 1 + float(max((x**2 / scale**2).sum(1).max(), (new**2 / scale**2).sum(1).max()))
    # An entry of the covariance is off by eps times the squared norms of the inputs; solving divides that by `least`.
    off = SLACK * np.finfo(np.float64).eps * norms * len(x) * float(size + least)
    solving = np.abs(solved(lower, cross)).max(0) * math.sqrt(len(x))
    cost = off * float(np.linalg.norm(weights.astype(float))) * (1 + solving.astype(float) / math.sqrt(least))
    spread = off * (1 + solving.astype(float) / math.sqrt(least)) ** 2
    whole = off * (float(weights @ weights) + len(x) / least) + SLACK * np.finfo(np.float64).eps * abs(float(evidence))
    return Exact(moments, Moments(cost + 1e-14 * abs(mean), spread, whole))


def differing(found: Moments, wanted: Exact) -> str:
    """Say which moment is further from the long doubles than rounding takes it."""
    for name, one, other, bound in zip(Moments._fields, found, *wanted, strict=True):
        if not np.isfinite(one).all():
            return f"{name} is not finite: {one}"
        if (np.abs(one - other) > bound).any():
            worst = int(np.argmax(np.abs(np.atleast_1d(one - other)) - np.atleast_1d(bound)))
            values = [float(np.atleast_1d(part)[worst]) for part in (one, other, bound)]
            return f"{name} is {values[0]!r}, in long doubles {values[1]!r}; rounding takes at most {values[2]:.2g}"
    if (np.asarray(found.variance) < 0).any():
        return f"a variance is negative: {found.variance}"
    return ""
