"""Decision rule of estimated numbers (MPHD sheet §7): rates, spreads and ratios, with intervals, against a range.

A claim such as "the error falls like M^(-1/2)" is decided by the interval of a fitted number: supported if all of it
lies in the range that the claim allows, refuted if none of it does. Its cells are of the kind "expectation".
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from metabo.errors import NumericsError
from metabo.papers.engine.theory.verdicts import ALPHA, INCONCLUSIVE, REFUTED, SUPPORTED, Numbers, Ruling

QUANTILE = float(stats.norm.isf(ALPHA))
"""Standard errors on each side of an interval: both of its bounds are one-sided, at the level ALPHA."""


class Estimate(NamedTuple):
    """An estimated number with its standard error."""

    value: float
    error: float


def within(found: Estimate, low: float, high: float, quantile: float = QUANTILE) -> Ruling:
    """Decide low <= number <= high (one of them may be infinite) by the interval value ± `quantile` errors.

    Of the numbers of the ruling, `expected` is the middle of the range, or its finite end. Raises NumericsError for
    an estimate that is not finite or has no error: the computation of the check is at fault.
    """
    value, error = float(found.value), float(found.error)
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        raise NumericsError(f"theory check: the estimate is {value} ± {error}; the computation is at fault, mend it")
    below, above = value - quantile * error, value + quantile * error
    inside, outside = low <= below and above <= high, above < low or below > high
    ends = [end for end in (low, high) if math.isfinite(end)]
    expected = sum(ends) / len(ends)
    verdict = SUPPORTED if inside else REFUTED if outside else INCONCLUSIVE
    numbers: Numbers = {"mean": value, "expected": expected, "error": error, "z": (value - expected) / error}
    return Ruling(verdict, numbers | {"low": below, "high": above, "least": low, "most": high})


def mean(values: np.ndarray) -> Estimate:
    """Return the mean of independent replicates (r,)."""
    return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))))


def spread(values: np.ndarray, unit: float = 1.0) -> Estimate:
    """Return the standard deviation of independent replicates (r,), in `unit`s; any law with a fourth moment."""
    centred = np.asarray(values) - np.mean(values)
    deviation = float(np.sqrt(np.mean(centred**2)))
    influence = 0.5 * deviation * (centred**2 / deviation**2 - 1.0)
    return Estimate(deviation / unit, float(influence.std(ddof=1) / math.sqrt(len(values))) / unit)


def product(first: np.ndarray, second: np.ndarray, unit: float = 1.0) -> Estimate:
    """Return the covariance of two quantities over independent replicates (r,), in `unit`s."""
    products = (first - np.mean(first)) * (second - np.mean(second))
    return Estimate(float(products.mean()) / unit, float(products.std(ddof=1) / math.sqrt(len(first))) / abs(unit))


def rate(values: np.ndarray, sizes: np.ndarray, power: float = 1.0) -> Estimate:
    """Return the slope of ln(mean over replicates)^power in ln(size), by least squares over the sizes.

    `values` (r, k): positive, one row per independent replicate, one column per size; columns may depend on each
    other. With squared errors and `power` ½ this is the rate of the root mean square error. The error is that of the
    slope as a linear function of the rows (delta method).
    """
    logs = np.log(np.asarray(sizes, dtype=np.float64))
    weights = power * (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    means = np.mean(values, axis=0)
    influence = (values / means) @ weights
    return Estimate(float(weights @ np.log(means)), float(influence.std(ddof=1) / math.sqrt(len(values))))
