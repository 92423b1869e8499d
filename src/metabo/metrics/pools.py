"""How much the outputs of a pool can decide: ties at the best, the gap below it, and the regret of random search.

Every function takes the outputs `y` (n,) of one task, to be maximised. Outputs count as equal if they differ by at most
the share `EQUAL` of the range of `y`, as repeats of one value do through rounding.
"""

import numpy as np
from jaxtyping import Float, Int

from metabo.errors import ConfigError

EQUAL = 1e-9
"""Share of the range of all outputs within which two outputs count as equal."""
TOP = 0.1
"""The noise of a pool is the median over this share of its rows, taken from the best."""


def scale(y: Float[np.ndarray, " n"]) -> float:
    """Return best minus median, which is the least that half of the rows lose. It is 0 if half of them are best."""
    return float(y.max() - np.median(y))


def at_best(y: Float[np.ndarray, " n"]) -> int:
    """Return how many rows equal the best."""
    return int(np.count_nonzero(_loss(y) == 0))


def near_best(y: Float[np.ndarray, " n"], share: float) -> int:
    """Return how many rows are at most `share` of `scale(y)` below the best, or equal it."""
    return int(np.count_nonzero(_loss(y) <= share * scale(y)))


def gap(y: Float[np.ndarray, " n"]) -> float:
    """Return best minus second-best distinct output, the smallest regret that is not 0. It is NaN if all outputs are
    equal."""
    loss = _loss(y)
    return float(loss[loss > 0].min()) if loss.any() else np.nan


def resolution(y: Float[np.ndarray, " n"], noise: Float[np.ndarray, " n"] | None = None) -> float:
    """Return the smallest regret that a pool can tell from 0: `gap(y)`, or the median noise of the best tenth of the
    rows (standard deviations, NaN where unknown) if that is larger. `gap(y)` counts as 0 if all outputs are equal."""
    best = np.argsort(-y, kind="stable")[: max(1, round(TOP * len(y)))]
    known = np.empty(0) if noise is None else noise[best][np.isfinite(noise[best])]
    least = gap(y)
    return max(0.0 if np.isnan(least) else least, float(np.median(known)) if len(known) else 0.0)


def _loss(y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return how far each row is below the best, exactly 0 for the rows that equal it."""
    loss = y.max() - y
    return np.where(loss <= EQUAL * np.ptp(y), 0.0, loss)


def best_of_draws(n: int, draws: int) -> Float[np.ndarray, " n"]:
    """Return P(the best of `draws` rows is among the k + 1 best of n) for k = 0, ..., n - 1, drawn without replacement.

    It is the complement 1 - C(n-k-1, draws) / C(n, draws) of the hypergeometric probability that no draw is among them.
    If there are more draws than rows, all rows are drawn. Raises ConfigError for fewer than one draw.
    """
    if draws < 1:
        raise ConfigError(f"draws: {draws} must be at least 1; without a draw there is no best one")
    k: Int[np.ndarray, " n"] = np.arange(n)
    return 1.0 - np.cumprod(np.maximum(n - draws - k, 0) / (n - k))


def random_regret(y: Float[np.ndarray, " n"], queries: int, level: float = 0.5) -> float:
    """Return the `level` quantile (0.5: median) of the simple regret of random search after `queries` distinct rows.

    The result is exact: the smallest regret that at least the share `level` of all draws reaches. Raises ConfigError
    for fewer than one query.
    """
    # Rounding must not turn a probability of exactly `level` into less.
    rank = int(np.argmax(best_of_draws(len(y), queries) >= level - 1e-12))
    return float(np.sort(_loss(y))[rank])
