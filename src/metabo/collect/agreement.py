"""How far two collections of one benchmark agree, trial by trial."""

from collections.abc import Hashable, Mapping
from typing import TypedDict

import numpy as np
import pandas as pd
from scipy.stats import spearmanr


class Agreement(TypedDict):
    """How far two tables agree (`compare`); None where there is nothing to compare or nothing varies."""

    rows: int
    only_ours: int
    only_theirs: int
    other_inputs: int
    status_equal: float | None
    equal: float | None
    max_difference: float | None
    median_difference: float | None
    spearman: float | None


def compare(ours: pd.DataFrame, theirs: pd.DataFrame, keys: list[str], inputs: list[str], value: str) -> Agreement:
    """Compare the trials that both tables hold: same `keys`, and same `inputs` (numbers, or one column of lists).

    Returns, ready for JSON: `rows` compared; `only_ours`, `only_theirs`, `other_inputs` (not compared); `status_equal`
    and `equal`, the shares with the same status and the same `value` (none in both counts as the same);
    `max_difference`, `median_difference` and `spearman` of the values that both have. None where there is nothing to
    compare or nothing varies.
    """
    columns = [*keys, *inputs, value, "status"]
    text = dict.fromkeys([k for k in keys if not pd.api.types.is_numeric_dtype(ours[k])] + ["status"], str)
    sides = [table[columns].astype(text) for table in (ours, theirs)]
    both = sides[0].merge(sides[1], on=keys, suffixes=("", "_theirs"))
    same = np.array([_same(row, inputs) for row in both.to_dict("records")], dtype=bool)
    only_ours, only_theirs = len(ours) - len(both), len(theirs) - len(both)
    both = both.loc[same]
    a, b = (both[name].to_numpy(np.float64) for name in (value, f"{value}_theirs"))
    finite = np.isfinite(a) & np.isfinite(b)
    difference = np.abs(a - b)[finite]
    varied = len(difference) > 2 and min(np.ptp(a[finite]), np.ptp(b[finite])) > 0
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    return {
        "rows": len(both),
        "only_ours": only_ours,
        "only_theirs": only_theirs,
        "other_inputs": int((~same).sum()),
        "status_equal": float((both["status"] == both["status_theirs"]).mean()) if len(both) else None,
        "equal": float(equal.mean()) if len(both) else None,
        "max_difference": float(difference.max()) if len(difference) else None,
        "median_difference": float(np.median(difference)) if len(difference) else None,
        "spearman": float(spearmanr(a[finite], b[finite]).statistic) if varied else None,
    }


def _same(row: Mapping[Hashable, float | np.ndarray], inputs: list[str]) -> bool:
    return all(np.array_equal(row[name], row[f"{name}_theirs"]) for name in inputs)
