"""Intervals of 95 % from small samples, for checks whose tables hold repetitions or sizes in place of an interval.

An estimate is value, low, high; the ends are NaN where nothing says how much the value varies.
"""

import math
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, linregress
from scipy.stats import t as student

from metabo.papers.engine.claims.verdicts import LEVEL

Estimate = tuple[float, float, float]
EXACT = 8
"""Points up to which the p value of a rank correlation is that of all permutations."""
SIGNS = 12
"""Draws up to which all their signs are turned."""
STEP = np.sqrt(1 / 6)
"""Standard deviation that rounding to whole numbers adds to a difference of two of them (Sheppard)."""
ROUNDING = 1e-9
"""Relative difference up to which two numbers of the same computation are the same."""


def varies(values: np.ndarray) -> bool:
    """Tell whether draws differ by more than rounding; if they do not, they say nothing about their noise."""
    return bool(np.ptp(values) > ROUNDING * np.max(np.abs(values)))


def of_mean(values: np.ndarray) -> Estimate:
    """Return the mean of independent draws with Student's t interval."""
    return apart(values, np.zeros(len(values)))


def apart(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Return the mean of `first` minus that of `second`, two independent samples of unequal variance.

    Student's t has the fewer degrees of freedom of the two, which is on the safe side of Welch's.
    """
    gap, count = float(np.mean(first) - np.mean(second)), min(len(first), len(second))
    if count < 2:
        return gap, np.nan, np.nan
    error = np.sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second))
    half = float(student.ppf(1 - LEVEL / 2, count - 1) * error)
    return gap, gap - half, gap + half


def of_deviation(deviation: float, freedom: int) -> Estimate:
    """Return a standard deviation with its interval: `freedom` degrees of freedom, normal draws."""
    if freedom < 1:
        return deviation, np.nan, np.nan
    low, high = (deviation * np.sqrt(freedom / chi2.ppf(end, freedom)) for end in (1 - LEVEL / 2, LEVEL / 2))
    return deviation, float(low), float(high)


def distance(estimate: Estimate, truth: float) -> Estimate:
    """Return the absolute distance of an estimate from a known number."""
    value, low, high = (end - truth for end in estimate)
    ends = abs(low), abs(high)
    return abs(value), 0.0 if low <= 0 <= high else min(ends), max(ends)


def combined(*terms: tuple[float, Estimate]) -> Estimate:
    """Return a weighted sum of independent estimates, given as (weight, estimate).

    Variance estimates recovered from the estimates' own intervals, which need not be symmetric (Zou and Donner 2008).
    """
    value = below = above = 0.0
    for weight, one in terms:
        own, *ends = (weight * number for number in one)
        value += own
        below += (own - min(ends)) ** 2
        above += (max(ends) - own) ** 2
    return value, value - float(np.sqrt(below)), value + float(np.sqrt(above))


def of_slope(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Return the slope of a straight line through points (least squares) with Student's t interval."""
    found = linregress(x, y)
    if len(x) < 3:
        return float(found.slope), np.nan, np.nan
    half = float(student.ppf(1 - LEVEL / 2, len(x) - 2) * found.stderr)
    return float(found.slope), float(found.slope - half), float(found.slope + half)


def spearman_p(rho: float, points: int) -> float:
    """Return the two-sided p value of a rank correlation without ties: of all permutations up to EXACT points, else
    Student's t. Points that are all in order have two of the permutations, however many they are."""
    if not np.isfinite(rho) or points < 3:
        return np.nan
    if points <= EXACT:
        return float(np.mean(np.abs(_every_correlation(points)) >= abs(rho) - 1e-9))
    if abs(rho) >= 1:
        return 2.0 / math.factorial(points)
    return float(2 * student.sf(abs(rho) * np.sqrt((points - 2) / (1 - rho**2)), points - 2))


@cache
def _every_correlation(points: int) -> np.ndarray:
    """Return Spearman's correlation of every order of `points` ranks with their own."""
    ranks = np.arange(points)
    squares = ((np.array(list(permutations(ranks))) - ranks) ** 2).sum(axis=1)
    return 1 - 6 * squares / (points * (points**2 - 1))


class RankGap(NamedTuple):
    """A mean difference of ranks with its interval; p values of the tests that it is below 0, and above.

    `draws`: how many independent draws its units are worth; `decidable`: whether they could exclude 0.
    """

    value: float
    low: float
    high: float
    below: float
    above: float
    draws: float
    decidable: bool


def of_ranks(gaps: np.ndarray, most: int, level: float = 1 - LEVEL, overlap: float = 0.0) -> RankGap:
    """Return the mean of differences of ranks (units,), each in ± `most`, with its interval of `level`.

    Ranks are whole numbers: few units are often all equal by chance, and Student's t has no width then. The interval is
    the wider of two: that of the test which turns the signs of the differences in all ways (Fisher 1935; its ends are
    means of subsets, Hartigan 1969; up to SIGNS units), and Student's t with a deviation of at least STEP. With n
    units, no p value is below 2^-n; if that is too large for the level, the interval is the whole range. `overlap`: as
    in `metabo.metrics.paired_difference`; the units are then worth fewer draws.
    """
    gaps = np.asarray(gaps, dtype=np.float64)
    count, value, tail = len(gaps), float(np.mean(gaps)), (1 - level) / 2
    draws = count / (1 + (count - 1) * overlap / (count + overlap))
    low, high, *turned = _turned(gaps, tail)
    freedom, spread = max(count - 1, 1), float(np.std(gaps, ddof=min(1, count - 1)))
    error = max(spread, STEP) * np.sqrt((1 + overlap) / count)
    tails = (float(student.cdf(sign * value / error, freedom)) for sign in (1, -1))
    below, above = (max(*both, 2.0**-draws) for both in zip(turned, tails, strict=True))
    if 2.0**-draws > tail:
        return RankGap(value, -float(most), float(most), below, above, draws, False)
    half = float(student.ppf(1 - tail, freedom) * error)
    return RankGap(value, min(low, value - half), max(high, value + half), below, above, draws, True)


def _turned(gaps: np.ndarray, tail: float) -> tuple[float, float, float, float]:
    """Return the interval of a mean from the signs, and the p values below and above 0; no width beyond SIGNS units."""
    if len(gaps) > SIGNS:
        return float(np.mean(gaps)), float(np.mean(gaps)), 0.0, 0.0
    chosen = _subsets(len(gaps))
    sums, near = chosen @ gaps, ROUNDING * np.abs(gaps).sum()
    means = np.sort(sums[1:] / chosen[1:].sum(axis=1))
    cut = max(int(tail * len(sums) + ROUNDING), 1)
    return float(means[cut - 1]), float(means[-cut]), float(np.mean(sums >= -near)), float(np.mean(sums <= near))


@cache
def _subsets(units: int) -> np.ndarray:
    """Return all subsets of units as rows of 0 and 1, the empty one first."""
    return np.array(list(product((0.0, 1.0), repeat=units)))
