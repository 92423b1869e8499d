"""pd1_mini 2: every point trained several times with different random streams, and one row with mean and spread.

A mean and a standard deviation (n - 1 in the denominator) are over the trainings that did not diverge. A point counts
as diverged if more than half of its trainings diverged (of three, at least two). What a training reached before it
diverged is neither counted nor stored.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.data.pd1_columns import CHANCE, DIVERGED, INPUTS, LOSS, METRIC, REPEATS, STATUS, TASK

COLUMNS = (
    TASK, "dataset", "model", "trial_id", "phase", "matched", STATUS, "hps.batch_size", *INPUTS, REPEATS, DIVERGED,
    *(name for metric in (METRIC, LOSS) for name in (metric, f"{metric}_std")), f"{METRIC}_repeats", CHANCE,
)  # fmt: skip
"""Columns of the table: a row shares the first ones with version 1, then `summary`, then the error of guessing."""

Cell = str | float | np.floating | np.ndarray
Row = dict[str, Cell]
"""A row of a table of trials."""


def names(trial: str, repeats: int) -> list[str]:
    """Return the name of each training of a trial, which keys its random stream: the first one is the trial's own, so
    that it is the training of version 1."""
    return [trial, *(f"{trial}-repeat{r}" for r in range(1, repeats))]


def summary(errors: Sequence[float], losses: Sequence[float], diverged: Sequence[bool]) -> Row:
    """Return status, counts, means and standard deviations of the trainings of one point, as in `COLUMNS`.

    `errors`, `losses`: best validation error rate and cross entropy of each. A mean of none and a deviation of one are
    NaN. The error rates are kept one by one, NaN where the training diverged.
    """
    lost = np.array(diverged, bool)
    made: Row = {
        STATUS: "diverged" if 2 * lost.sum() > len(lost) else "done",
        REPEATS: len(lost),
        DIVERGED: int(lost.sum()),
        f"{METRIC}_repeats": np.where(lost, np.nan, errors).astype(np.float32),
    }
    for name, values in ((METRIC, errors), (LOSS, losses)):
        sound = np.array(values, np.float64)[~lost]
        made[name] = sound.mean() if len(sound) else np.nan
        made[f"{name}_std"] = sound.std(ddof=1) if len(sound) > 1 else np.nan
    return made


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Make the table: hyperparameters float64, metrics float32."""
    metrics = (METRIC, f"{METRIC}_std", LOSS, f"{LOSS}_std", CHANCE)
    kinds = dict.fromkeys(metrics, np.float32) | dict.fromkeys(("phase", REPEATS, DIVERGED), np.int8)
    table = pd.DataFrame(list(rows), columns=pd.Index(COLUMNS))
    return table.astype(kinds | {"matched": bool, "hps.batch_size": np.int32})


def of(table: pd.DataFrame) -> bool:
    """Return whether a collected table is of version 2."""
    return REPEATS in table


def guessing(labels: np.ndarray) -> float:
    """Return the error rate of always guessing the most frequent label (of text: the most frequent token)."""
    return 1 - int(np.bincount(labels.ravel()).max()) / labels.size
