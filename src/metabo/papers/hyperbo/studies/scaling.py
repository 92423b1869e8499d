"""Scaling exponents: the slope of log cost over log size, with its interval, beside the orders that Table 1 states."""

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
CASE = ["objective", "row", "resource", "axis"]
"""What identifies one series of measurements: ekl | nll, row of Table 1, time | memory, and the size that varies."""

STATED = {
    ("ekl", "overhead", "time", "M"): (2, (1.6, 2.3)),
    ("ekl", "overhead", "time", "N"): (1, (0.7, 1.2)),
    ("ekl", "loss", "time", "M"): (3, (2.3, 3.3)),
    ("ekl", "loss", "time", "N"): (0, (-0.1, 0.2)),
    ("ekl", "loss", "memory", "M"): (2, None),
    ("ekl", "loss", "memory", "N"): (0, None),
    ("ekl", "GD", "time", "K"): (1, None),
    ("ekl", "SGD", "time", "B"): (2, None),
    ("ekl", "SGD", "memory", "B"): (2, None),
    ("nll", "loss", "time", "M"): (3, (2.3, 3.3)),
    ("nll", "loss", "time", "N"): (1, (0.8, 1.2)),
    ("nll", "loss", "memory", "M"): (2, None),
    ("nll", "loss", "memory", "N"): (0, None),
    ("nll", "parallel", "memory", "M"): (2, None),
    ("nll", "parallel", "memory", "N"): (1, None),
    ("nll", "GD", "time", "K"): (1, None),
    ("nll", "SGD", "time", "B"): (2, None),
    ("nll", "SGD", "memory", "B"): (2, None),
}
"""Exponent of Table 1 (hyperbo §5.4), and the range in which a measured one on this kind of grid counts as agreeing
(finite sizes and caches bend the line); None: no range was fixed beforehand."""


def slope(sizes: np.ndarray, costs: np.ndarray) -> tuple[float, float, float]:
    """Return the least-squares slope of log cost over log size and its t interval; infinite with two sizes."""
    fit = stats.linregress(np.log(sizes), np.log(costs))
    freedom = len(sizes) - 2
    error = 0.0 if np.ptp(costs) == 0 else fit.stderr  # linregress gives NaN for equal costs
    half = error * stats.t.ppf(0.5 + CONFIDENCE / 2, freedom) if freedom > 0 else np.inf
    return float(fit.slope), float(fit.slope - half), float(fit.slope + half)


def exponents(measured: pd.DataFrame) -> pd.DataFrame:
    """Return one row per series, in the order of STATED: slope, low, high, sizes, from, to, stated, lowest, highest,
    agrees.

    `measured`: objective, row, resource, axis, size, value. `stated` to `highest` are NaN for a series that is not in
    STATED; `agrees` (slope within the range) is 1, 0, or NaN without a range.
    """
    rows = []
    for case, series in measured.groupby(CASE, sort=False):
        value, low, high = slope(series["size"].to_numpy(), series["value"].to_numpy())
        order, accepted = STATED.get(case, (np.nan, None))
        lowest, highest = accepted or (np.nan, np.nan)
        agrees = np.nan if accepted is None else float(lowest <= value <= highest)
        rows.append(
            {
                **dict(zip(CASE, case, strict=True)), "slope": value, "low": low, "high": high, "sizes": len(series),
                "from": series["size"].min(), "to": series["size"].max(), "stated": float(order), "lowest": lowest,
                "highest": highest, "agrees": agrees,
            }
        )  # fmt: skip
    table, order = pd.DataFrame(rows), {case: place for place, case in enumerate(STATED)}
    place = table[CASE].apply(lambda row: order.get(tuple(row), len(order)), axis=1)
    return table.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)
