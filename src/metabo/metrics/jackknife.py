"""Intervals from values that each leave out one of the underlying draws."""

import numpy as np
from scipy.stats import t as t_distribution

from metabo.errors import DataError
from metabo.metrics.inference import Difference


def jackknife_variance(left_out: np.ndarray) -> float:
    """Return the jackknife variance of a statistic of n draws from its values (n,) with each draw left out (Tukey
    1958): (n - 1) / n times the sum of squared deviations."""
    return float((len(left_out) - 1) / len(left_out) * np.sum((left_out - left_out.mean()) ** 2))


def jackknife(left_out: np.ndarray, level: float = 0.95) -> Difference:
    """Return the mean of `left_out` and the jackknife interval of the statistic.

    `left_out` (n,) has the statistic of n draws, with each draw left out in turn. The interval uses
    `jackknife_variance` and Student's t with n - 1 degrees of freedom. The n values share most of their draws: treated
    as independent, they would give an interval n - 1 times narrower. The bounds are NaN for n = 1. Raises DataError if
    `left_out` is empty or has another shape.
    """
    values = np.asarray(left_out, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(f"jackknife: needs an array (n,) with one value per draw left out, got shape {values.shape}")
    n, mean = len(values), float(values.mean())
    if n == 1:
        return Difference(mean, np.nan, np.nan)
    half = float(t_distribution.ppf(0.5 + level / 2, n - 1) * np.sqrt(jackknife_variance(values)))
    return Difference(mean, mean - half, mean + half)
