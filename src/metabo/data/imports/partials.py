"""What a pruned trial of Optuna says: it was stopped because it looked no better than others."""

import math
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def typical(trials: "Sequence[FrozenTrial]") -> float | None:
    """Return the median outcome of the finished trials, None if there are none."""
    values = [one.value for one in trials if one.state.name == "COMPLETE" and one.value is not None]
    good = [value for value in values if math.isfinite(value)]
    return float(median(good)) if good else None


def partial(trial: "FrozenTrial", middle: float | None, maximise: bool) -> float | None:
    """Return the outcome that a pruned trial counts with: the last value that it reported, or the `middle` of the
    finished trials if that is worse, since a few steps may look better than all of them. None: it reported none, or no
    finite one, and counts as failed."""
    reported = trial.intermediate_values
    last = float(reported[max(reported)]) if reported else math.nan
    if not math.isfinite(last):
        return None
    if middle is None:
        return last
    return min(last, middle) if maximise else max(last, middle)
