"""The power of a test that has an interval: Student's t with clusters - 1 degrees of freedom, or, for many clusters
(None), the normal distribution."""

import math

from scipy.stats import nct, norm
from scipy.stats import t as student

LEVEL = 0.05
"""Of two-sided tests; an interval has the level 1 - LEVEL."""
WANTED = 0.8
"""The power that a number of clusters is looked for."""
MOST = 10_000
"""The largest number of clusters that is looked for."""


def critical(clusters: int | None, level: float = 1 - LEVEL) -> float:
    """Return the half-width of an interval of `level` in standard errors."""
    return float(norm.ppf(0.5 + level / 2) if clusters is None else student.ppf(0.5 + level / 2, max(clusters - 1, 1)))


def cdf(x: float, clusters: int | None) -> float:
    """Return the distribution function of the statistic at `x`."""
    return float(norm.cdf(x) if clusters is None else student.cdf(x, max(clusters - 1, 1)))


def power_of(half: float, effect: float, clusters: int | None = None, level: float = 1 - LEVEL) -> float:
    """Return how often an interval of `level` and half-width `half` excludes 0 on the right side if the truth is
    `effect` > 0.

    Noncentral t with `clusters` - 1 degrees of freedom, normal for None; the spread is taken as known.
    """
    if not half > 0:
        return 1.0
    crit = critical(clusters, level)
    shift = effect / (half / crit)
    return float(norm.sf(crit - shift) if clusters is None else nct.sf(crit, max(clusters - 1, 1), shift))


def clusters_needed(
    half: float, effect: float, clusters: int, wanted: float = WANTED, level: float = 1 - LEVEL
) -> int | None:
    """Return how many clusters like these give the power `wanted`; None if it takes more than MOST.

    The half-width falls with the square root of their number, and with Student's t.
    """
    error = half / critical(clusters, level) * math.sqrt(clusters)

    def power(count: int) -> float:
        return power_of(error / math.sqrt(count) * critical(count, level), effect, count, level)

    low, high = 2, MOST
    if power(high) < wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= wanted else (middle + 1, high)
    return low
