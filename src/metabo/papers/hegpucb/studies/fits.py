"""Study of the candidates of panel (b): likeliest periodic kernels of its pieces, and of the whole (hegpucb §7).

The paper takes the fits to the four sines as wrong candidates, and that to the whole function as the true one. A fit
maximises the likelihood over period and length-scale, at the best signal variance, first on a grid, then locally.
"""

from itertools import pairwise

import jax
import numpy as np
import pandas as pd
from scipy.optimize import minimize, minimize_scalar

from metabo.compute.keys import stream
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.papers.hegpucb.problems import PIECES, period_function

STUDIES = {"hegpucb_fits": {}}

PERIODS, LENGTHSCALES = (0.1, 2.0), (0.05, 20.0)
"""Bounds of the search. A pure sine is fitted best by an infinite length-scale: the upper bound is where it ends."""
NUGGET = 1e-6
"""Noise variance as a share of the signal variance."""
BINS = 12
"""Ranges of the period, equal in its logarithm; in each, the best point of the grid is polished: the likelihood
of a pure sine has a narrow ridge at its period, whose top is far from the grid."""


def log_likelihood(
    x: np.ndarray, y: np.ndarray, period: np.ndarray, lengthscale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log likelihood (m,) of m pairs of hyperparameters at their best signal variance (m,), zero mean.

    x, y: (n,). With C the correlations and the nugget: s² = yᵀC⁻¹y/n and -n/2 (log 2πs² + 1) - ½ log|C|.
    """
    wave = np.sin(np.pi * (x[:, None] - x) / period[:, None, None]) ** 2
    factor = np.linalg.cholesky(np.exp(-2.0 * wave / lengthscale[:, None, None] ** 2) + NUGGET * np.eye(len(x)))
    white = np.linalg.solve(factor, np.broadcast_to(y[:, None], (len(period), len(x), 1)))[..., 0]
    scale = np.mean(white**2, axis=1)
    half_logdet = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * len(x) * (np.log(2.0 * np.pi * scale) + 1.0) - half_logdet, scale


def fit(x: np.ndarray, y: np.ndarray, periods: int, lengthscales: int) -> dict[str, float]:
    """Return the likeliest period, lengthscale and scale (signal variance), its log likelihood (nats), and by how much
    that exceeds the best one with period 1 (`margin`). periods, lengthscales: values on the grid."""
    p, ell = np.geomspace(*PERIODS, periods), np.geomspace(*LENGTHSCALES, lengthscales)
    values = np.stack([log_likelihood(x, y, p, np.full(periods, one))[0] for one in ell], axis=1)
    groups = np.array_split(np.arange(periods), min(BINS, periods))
    best = [group[0] * lengthscales + np.argmax(values[group]) for group in groups]
    starts = [(p[i // lengthscales], ell[i % lengthscales]) for i in best]

    def cost(log):
        return -float(log_likelihood(x, y, *np.exp(log)[:, None])[0][0])

    bounds = [tuple(np.log(PERIODS)), tuple(np.log(LENGTHSCALES))]
    place = int(np.argmax([-cost(np.array([0.0, log])) for log in np.log(ell)]))
    around = np.log([ell[max(place - 1, 0)], ell[min(place + 1, lengthscales - 1)]])
    one = minimize_scalar(lambda log: cost(np.array([0.0, log])), bounds=around, method="bounded")
    # The kinks of the whole make its likelihood ragged: its top is not found from the points of the grid alone.
    starts.append((1.0, np.exp(one.x)))
    found = min((minimize(cost, np.log(s), method="L-BFGS-B", bounds=bounds) for s in starts), key=lambda r: r.fun)
    period, lengthscale = np.exp(found.x)
    scale = log_likelihood(x, y, np.array([period]), np.array([lengthscale]))[1][0]
    named = {"period": period, "lengthscale": lengthscale, "scale": scale, "log_likelihood": -found.fun}
    return {name: float(value) for name, value in named.items()} | {"margin": float(one.fun - found.fun)}


class PieceFitSpec(StudySpec):
    """Draws of points, points of a piece and of the whole, and sizes of the grid of periods and length-scales."""

    seeds: int
    points: int
    whole_points: int
    periods: int
    lengthscales: int


def run(spec: PieceFitSpec) -> Frames:
    """Return the fits: piece (0 to 3; 4: the whole), seed, low, high (where its points are), and the keys of `fit`."""
    ends = [*pairwise(PIECES), (0.0, 2.0)]
    rows = []
    for piece, (low, high) in enumerate(ends):
        count = spec["whole_points"] if piece == len(ends) - 1 else spec["points"]
        for seed in range(spec["seeds"]):
            key = stream(spec["seed"], "hegpucb_fits", piece, seed)
            x = np.asarray(jax.random.uniform(key, (count,), minval=low, maxval=high))
            found = fit(x, period_function(x[:, None]), spec["periods"], spec["lengthscales"])
            rows.append({"piece": piece, "seed": seed, "low": low, "high": high, **found})
    return {"fit": pd.DataFrame(rows)}
