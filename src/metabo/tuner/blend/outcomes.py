"""Outcomes of one study on a scale that all studies share, whatever their units.

z = -log(1 + (best - y) / h), h the median gap between the best and the others: 0 at the best, -log 2 at the median, and
logarithmic beyond, so that how hopeless a trial was does not decide what is learned.
"""

import numpy as np
from jaxtyping import Float

Outcomes = Float[np.ndarray, " n"]


def warped(y: Outcomes) -> Outcomes:
    """Return outcomes (to be maximised; NaN: failed) on the common scale. A failure counts as the worst."""
    good = np.isfinite(y)
    if not good.any():
        return np.zeros(len(y))
    y = np.where(good, y, y[good].min())
    gap = y.max() - y
    positive = gap[gap > 0]
    return -np.log1p(gap / np.median(positive)) if len(positive) else np.zeros(len(y))
