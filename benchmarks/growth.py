"""How time grows with size: the exponent of a power law, with its interval."""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95


class Exponent(NamedTuple):
    """b of time = a size^b with the ends of its 95 % interval, and `last`: b between the two largest sizes alone."""

    value: float
    low: float
    high: float
    last: float


def exponent(sizes: list[int], times: list[list[float]]) -> Exponent:
    """Fit log time on log size by least squares; `times` (repeats, sizes), in any unit, all above 0.

    The interval is Student's, from the residuals of the sizes' mean logarithms with two degrees of freedom fewer than
    there are sizes. It therefore covers noise as well as a curve that is no power law. The residuals of single
    measurements would not do: those of one size deviate from the line together, and many repeats of a bent curve would
    give a narrow interval. Raises ValueError for fewer than three sizes, or other than one time for each.
    """
    logs = np.log(np.asarray(times, float))
    x = np.log(np.asarray(sizes, float))
    if len(x) < 3 or logs.ndim != 2 or logs.shape[1] != len(x):
        raise ValueError(f"times of shape {logs.shape} for {len(x)} sizes; needs (repeats, sizes) and three sizes")
    y = logs.mean(axis=0)  # with as many repeats at each size its line is that of all measurements
    shifted = x - x.mean()
    spread = float(shifted @ shifted)
    slope = float(shifted @ y) / spread
    residuals = y - y.mean() - slope * shifted
    freedom = len(x) - 2
    error = math.sqrt(float(residuals @ residuals) / freedom / spread)
    margin = float(student.ppf(0.5 + LEVEL / 2, freedom)) * error
    last = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
    return Exponent(slope, slope - margin, slope + margin, last)
