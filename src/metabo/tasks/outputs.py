"""Map the outputs of one task to [-2, 2] and failures to -2, as online tuning trains on them (hyperbo §7.5, sheet
4.3)."""

import numpy as np

INFEASIBLE = -2.0
"""The mapped output of an evaluation without a value: the limit of the map as outputs get worse."""


def softplus(values: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(v)) without overflow."""
    return np.logaddexp(0.0, values)


def rescale(y: np.ndarray, successful: np.ndarray | None = None) -> np.ndarray:
    """Map the n successful outputs `y` of one task by 4 softplus(y - ȳ) / softplus(y_max - ȳ) - 2.

    ȳ and y_max are the median and the largest of `successful` (the task's outputs; `y` itself unless given), so that
    the largest becomes exactly 2. Equal outputs all become 2. The denominator is at least log 2, so the result is
    finite, however large the spread.
    """
    reference = y if successful is None else successful
    if len(y) == 0:
        return np.zeros(0)
    middle, top = np.median(reference), np.max(reference)
    return 4.0 * softplus(y - middle) / softplus(top - middle) - 2.0


def rescale_all(y: np.ndarray) -> np.ndarray:
    """Map the n outputs of one task, where NaN marks an infeasible evaluation. Infeasible ones become -2, and so do all
    if none has a value (the paper leaves open how to map a task without any success)."""
    feasible = ~np.isnan(y)
    mapped = np.full(len(y), INFEASIBLE)
    mapped[feasible] = rescale(y[feasible])
    return mapped
