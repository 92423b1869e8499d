"""The power of a test that has an interval: Student's t, or, for many clusters (None), the normal distribution.

`freedom`: degrees of freedom of the t distribution. None: clusters - 1; fewer where few clusters have most of the tasks
(`metabo.metrics.clusters.TaskClusters.freedom`)."""

import math

from scipy.stats import nct, norm
from scipy.stats import t as student

LEVEL = 0.05
"""Of two-sided tests; an interval has the level 1 - LEVEL."""
WANTED = 0.8
"""The power that a number of clusters is looked for."""
MOST = 10_000
"""The largest number of clusters that is looked for."""


def critical(clusters: int | None, level: float = 1 - LEVEL, freedom: float | None = None) -> float:
    """Return the half-width of an interval of `level` in standard errors."""
    if clusters is None:
        return float(norm.ppf(0.5 + level / 2))
    return float(student.ppf(0.5 + level / 2, _freedom(clusters, freedom)))


def cdf(x: float, clusters: int | None, freedom: float | None = None) -> float:
    """Return the distribution function of the statistic at `x`."""
    return float(norm.cdf(x) if clusters is None else student.cdf(x, _freedom(clusters, freedom)))


def _freedom(clusters: int, freedom: float | None) -> float:
    return max(clusters - 1, 1) if freedom is None else freedom


def power_of(
    half: float, effect: float, clusters: int | None = None, level: float = 1 - LEVEL, freedom: float | None = None
) -> float:
    """Return how often an interval of `level` and half-width `half` excludes 0 on the right side if the truth is
    `effect` > 0.

    Noncentral t, normal without `clusters`; the spread is taken as known.
    """
    if not half > 0:
        return 1.0
    crit = critical(clusters, level, freedom)
    shift = effect / (half / crit)
    return float(norm.sf(crit - shift) if clusters is None else nct.sf(crit, _freedom(clusters, freedom), shift))


def clusters_needed(
    half: float,
    effect: float,
    clusters: int,
    wanted: float = WANTED,
    level: float = 1 - LEVEL,
    freedom: float | None = None,
) -> int | None:
    """Return how many clusters like these give the power `wanted`; None if it takes more than MOST.

    The half-width falls with the square root of their number, and with Student's t, whose degrees of freedom keep their
    ratio to clusters - 1.
    """
    error = half / critical(clusters, level, freedom) * math.sqrt(clusters)
    ratio = _freedom(clusters, freedom) / max(clusters - 1, 1)

    def power(count: int) -> float:
        own = ratio * (count - 1)
        return power_of(error / math.sqrt(count) * critical(count, level, own), effect, count, level, own)

    low, high = 2, MOST
    if power(high) < wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= wanted else (middle + 1, high)
    return low
