"""Confidence bands of small examples: elimination in one picture, and a length-scale that misses a bump (hegpucb
Figures 1 and 3). Exact GPs in NumPy, zero mean, RBF kernel of variance 1."""

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve

from metabo.errors import DataError
from metabo.papers.hegpucb.problems import lengthscale_function

POINTS, VALUES = (0.08, 0.33, 0.62, 0.92), (-0.3, 0.6, 0.2, -0.5)
"""Observations of Figure 1; the paper gives no numbers."""
LENGTHSCALES = (0.1, 0.5)
"""Of GP 1 and GP 2 in Figure 1, in our drawing."""
BETA, NOISE = 2.0, 1e-2
"""Band: mean ± β σ; noise variance."""
MISFIT_POINTS, MISFIT_LENGTHSCALE = (0.45, 0.63, 0.82, 1.0), 1.0
"""Of Figure 3: right of the bump of (a), with the longest candidate."""
GRID = 401


def band(
    grid: Float[np.ndarray, " n"],
    x: Float[np.ndarray, " m"],
    y: Float[np.ndarray, " m"],
    lengthscale: float,
    noise: float = NOISE,
    beta: float = BETA,
) -> pd.DataFrame:
    """Return x, mean, low, high of the posterior on the grid: mean ± β σ of the function.

    Raises DataError for a noise variance that is not positive.
    """
    if not noise > 0:
        raise DataError(f"band: the noise variance is {noise:g}; it must be positive")

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (a[:, None] - b) ** 2 / lengthscale**2)

    factor = cho_factor(kernel(x, x) + noise * np.eye(len(x)))
    cross = kernel(grid, x)
    mean = cross @ cho_solve(factor, y)
    variance = 1.0 - np.einsum("nm,mn->n", cross, cho_solve(factor, cross.T))
    half = beta * np.sqrt(np.maximum(variance, 0.0))
    return pd.DataFrame({"x": grid, "mean": mean, "low": mean - half, "high": mean + half})


def elimination_example() -> dict[str, pd.DataFrame]:
    """Return Figure 1: "band" (model, x, mean, low, high), "point" (x, y) and "outcome" (kind, x, y): "kept", an
    observation inside both bands, and "eliminated", one inside the band of GP 1 only."""
    grid, x, y = np.linspace(0.0, 1.0, GRID), np.array(POINTS), np.array(VALUES)
    first, second = (band(grid, x, y, scale) for scale in LENGTHSCALES)
    low, high = np.maximum(first["low"], second["low"]), np.minimum(first["high"], second["high"])
    apart = int(np.argmax(first["high"] - second["high"]))
    # Away from the other one, so that both can be seen.
    shared = int(np.argmax(np.where(np.abs(grid - grid[apart]) > 0.2, high - low, -np.inf)))
    outcomes = [
        ("kept", grid[shared], (low[shared] + 2.0 * high[shared]) / 3.0),
        ("eliminated", grid[apart], 0.5 * (first["high"][apart] + second["high"][apart])),
    ]
    return {
        "band": pd.concat([first.assign(model="GP 1"), second.assign(model="GP 2")], ignore_index=True),
        "point": pd.DataFrame({"x": x, "y": y}),
        "outcome": pd.DataFrame(outcomes, columns=["kind", "x", "y"]),
    }


def misfit_example() -> dict[str, pd.DataFrame]:
    """Return Figure 3: "band" of the long length-scale (x, mean, low, high), "function" (x, value), "point" (x, y)."""
    grid, x = np.linspace(0.0, 1.0, GRID), np.array(MISFIT_POINTS)
    y = lengthscale_function(x[:, None])
    value = lengthscale_function(grid[:, None])
    return {
        "band": band(grid, x, y, MISFIT_LENGTHSCALE),
        "function": pd.DataFrame({"x": grid, "value": value}),
        "point": pd.DataFrame({"x": x, "y": y}),
    }
