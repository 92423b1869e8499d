"""scikit-learn's GP on the same data: the fit and the prediction.

It has no mean to fit: the outputs are standardised, which sets the mean to theirs and scales variance and noise.
"""

import warnings
from collections.abc import Callable

import numpy as np
from case import Case
from problem import Sizes, fit_rows, likelihood_per_point
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

ALPHA = 1e-10
"""What scikit-learn adds to the diagonal by default."""


def untrained(dim: int):
    """Return the kernel with the values of metabo's before a fit."""
    scale = float(np.log(2.0))
    return ConstantKernel(scale) * Matern(np.full(dim, scale), nu=2.5) + WhiteKernel(float(np.log1p(np.exp(-4.0))))


def quality(fitted: GaussianProcessRegressor, x: np.ndarray, y: np.ndarray) -> float:
    """Return the log likelihood per point, of the outputs as they were given."""
    (constant, matern), white = (fitted.kernel_.k1.k1, fitted.kernel_.k1.k2), fitted.kernel_.k2
    squared = np.var(y)
    noise = (white.noise_level + ALPHA) * squared
    return likelihood_per_point(x, y, y.mean(), matern.length_scale, constant.constant_value * squared, noise)


def fit(sizes: Sizes, number: int) -> Case:
    """Maximise the likelihood by scikit-learn's default, L-BFGS-B from one start."""
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    x, y, _ = fit_rows(sizes, number)

    def once() -> GaussianProcessRegressor:
        return GaussianProcessRegressor(untrained(sizes.dim), alpha=ALPHA, normalize_y=True).fit(x, y)

    def repeat() -> int:
        for _ in range(sizes.fits):
            once()
        return sizes.fits

    return Case(repeat, facts={"log_likelihood": quality(once(), x, y)})


def predict(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of a new output (with noise) at the candidates, nothing fitted."""
    x, y, pool = fit_rows(sizes, sizes.fit_points)
    given = GaussianProcessRegressor(untrained(sizes.dim), alpha=ALPHA, optimizer=None).fit(x, y)
    return given.predict(pool, return_std=True)


def posterior(sizes: Sizes) -> Case:
    def repeat() -> int:
        predict(sizes)
        return 1

    return Case(repeat)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "gp_fit": {"sklearn": lambda sizes: fit(sizes, sizes.fit_points)},
    "gp_fit_large": {"sklearn": lambda sizes: fit(sizes, sizes.fit_points_large)},
    "gp_posterior": {"sklearn": posterior},
}
