"""The ceiling: how well a model does on a row of a task after it has seen the rows of the other folds.

A method that transfers from other tasks cannot be expected to rank the rows of a task better than a learner that is
given the task itself. The model is a forest of extremely randomised trees (Geurts, Ernst, Wehenkel 2006) with
scikit-learn's defaults; a better model would raise the ceiling.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

FOLDS = 5
TREES = 50
MOST = 2000
"""If there are more training rows than this, each tree sees a random sample of this many."""


class Ceiling(NamedTuple):
    """R² of held-out rows, and the simple regret of the row ranked first; NaN where they are undefined."""

    r2: float
    regret: float


def ceiling(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], seed: int = 0) -> Ceiling:
    """Predict each row with a model of the other folds' rows, compare the prediction with the output, and rank all
    rows.

    `x` has the inputs, `y` the outputs to maximise. Rows with the same inputs are in one fold. R² is NaN for constant
    outputs, and both numbers are NaN for fewer than two distinct inputs.
    """
    inputs = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    folds = min(FOLDS, int(inputs.max()) + 1)
    if folds < 2:
        return Ceiling(np.nan, np.nan)
    sample = {"bootstrap": True, "max_samples": MOST} if len(y) > MOST * FOLDS / (FOLDS - 1) else {}
    forest = ExtraTreesRegressor(TREES, random_state=seed, n_jobs=1, **sample)
    cross = GroupKFold(folds, shuffle=True, random_state=seed)
    predicted = np.asarray(cross_val_predict(forest, x, y, groups=inputs, cv=cross), dtype=np.float64)
    total = float(((y - y.mean()) ** 2).sum())
    r2 = 1.0 - float(((y - predicted) ** 2).sum()) / total if np.ptp(y) > 0 else np.nan
    return Ceiling(r2, float(y.max() - y[np.argmax(predicted)]))
