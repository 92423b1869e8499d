"""Hyperparameters of one GP over several studies, by maximum a posteriori. With one study it is a plain GP.

Study t's outcomes are z_t(x) = m_t + f(x) + g_t(x) + noise, with f common and g_t the study's own, both Matérn-5/2 with
the same length-scales: Cov = v (ρ + (1 - ρ) [t = t']) k(x, x') + [t = t'] c + noise. The studies themselves determine
their correlation ρ, which is near 0 if they have nothing in common.

A past optimiser tried more points where outcomes were good, so the plain mean of its outcomes is too high. m_t has a
flat prior (variance c), which makes it the generalised least squares mean, in which a cluster of trials counts like a
few.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs
from scipy.optimize import minimize

from metabo.tuner.blend import kernel

Vector = Float[np.ndarray, " n"]
Settings = Float[np.ndarray, " q"]
OFFSET = 25.0
"""Variance c of a study's offset, which is flat compared with a spread of about 1."""


class Hyper(NamedTuple):
    """Length-scales (p,), variance v, correlation ρ, and noise variance."""

    scales: Float[np.ndarray, " p"]
    variance: float
    correlation: float
    noise: float


def columns_of(scales: Float[np.ndarray, " p"], owner: Int[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return the factor of each column."""
    return kernel.widths(owner) / scales[owner]


def prior_of(width: int) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Return means and deviations of the Normal priors on log length-scales, log v, logit ρ and log noise.

    Length-scales grow with the root of the dimension (Hvarfner, Hellsten, Nardi 2024)."""
    mean = np.concatenate([np.full(width, np.log(0.6) + 0.5 * np.log(width)), [0.0, 0.5, np.log(0.02)]])
    return mean, np.concatenate([np.full(width, 0.9), [0.7, 1.5, 1.0]])


def fit(
    x: Float[np.ndarray, "n d"], z: Vector, study: Int[np.ndarray, " n"],
    owner: Int[np.ndarray, " d"], steps: int,
) -> Hyper:  # fmt: skip
    """Return the most probable hyperparameters (MAP), by L-BFGS."""
    width = int(owner.max()) + 1
    mean, deviation = prior_of(width)
    same = study[:, None] == study
    found = minimize(
        lambda t: loss(t, x, z, same, owner, mean, deviation), mean, jac=True, method="L-BFGS-B",
        bounds=[(m - 4 * s, m + 4 * s) for m, s in zip(mean, deviation, strict=True)], options={"maxiter": steps},
    )  # fmt: skip
    return unpacked(found.x, width)


def unpacked(t: Float[np.ndarray, " q"], width: int) -> Hyper:
    """Return the hyperparameters from the vector that is optimised."""
    return Hyper(np.exp(t[:width]), float(np.exp(t[width])), float(1 / (1 + np.exp(-t[width + 1]))),
                 float(np.exp(t[width + 2])))  # fmt: skip


def covariance(
    h: Hyper, x: Float[np.ndarray, "n d"], same: Bool[np.ndarray, "n n"], owner: Int[np.ndarray, " d"]
) -> Float[np.ndarray, "n n"]:
    """Return the covariance of outcomes, including noise. `same` says whether two outcomes are of one study."""
    columns = columns_of(h.scales, owner)
    cov = h.variance * np.where(same, 1.0, h.correlation) * kernel.matern52(kernel.squared(x, x, columns))
    return cov + OFFSET * same + h.noise * np.eye(len(x))


def loss(
    t: Settings, x: Float[np.ndarray, "n d"], z: Vector, same: Bool[np.ndarray, "n n"], owner: Int[np.ndarray, " d"],
    mean: Settings, deviation: Settings,
) -> tuple[float, Settings]:  # fmt: skip
    """Return the negative log posterior density of t (up to a constant) and its gradient. `mean` and `deviation` are
    those of `prior_of`; `same` says whether two trials are of one study."""
    width = len(t) - 3
    h = unpacked(t, width)
    columns = columns_of(h.scales, owner)
    square = kernel.squared(x, x, columns)
    k = kernel.matern52(square)
    share = np.where(same, 1.0, h.correlation)
    signal = h.variance * share * k
    cov = signal + OFFSET * same
    cov[np.diag_indices(len(cov))] += h.noise
    low, lower = cho_factor(cov, lower=True)
    alpha = cho_solve((low, lower), z)
    (potri,) = get_lapack_funcs(("potri",), (low,))
    inverse, _ = potri(low, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    g = 0.5 * (inverse - np.outer(alpha, alpha))
    weights = g * h.variance * share * kernel.slope(square)
    per_column = kernel.spread(weights, x, columns)
    d_scales = np.bincount(owner, per_column, minlength=width)
    d_variance = np.sum(g * signal)
    d_rho = np.sum(g * np.where(same, 0.0, h.variance * k)) * h.correlation * (1 - h.correlation)
    d_noise = np.trace(g) * h.noise
    value = 0.5 * z @ alpha + np.sum(np.log(np.diag(low)))
    scaled = (t - mean) / deviation
    return float(value + 0.5 * scaled @ scaled), np.concatenate(
        [d_scales, [d_variance, d_rho, d_noise]]
    ) + scaled / deviation
