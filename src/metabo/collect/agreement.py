"""How far two collections of one benchmark agree, trial by trial."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr


def compare(ours: pd.DataFrame, theirs: pd.DataFrame, keys: list[str], inputs: list[str], value: str) -> dict[str, Any]:
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
    counts = {
        "only_ours": len(ours) - len(both), "only_theirs": len(theirs) - len(both), "other_inputs": int((~same).sum()),
    }  # fmt: skip
    both = both[same]
    a, b = (both[name].to_numpy(np.float64) for name in (value, f"{value}_theirs"))
    finite = np.isfinite(a) & np.isfinite(b)
    difference = np.abs(a - b)[finite]
    varied = len(difference) > 2 and min(np.ptp(a[finite]), np.ptp(b[finite])) > 0
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    return {
        "rows": len(both),
        **counts,
        "status_equal": float((both["status"] == both["status_theirs"]).mean()) if len(both) else None,
        "equal": float(equal.mean()) if len(both) else None,
        "max_difference": float(difference.max()) if len(difference) else None,
        "median_difference": float(np.median(difference)) if len(difference) else None,
        "spearman": float(spearmanr(a[finite], b[finite]).statistic) if varied else None,
    }


def _same(row: dict[str, Any], inputs: list[str]) -> bool:
    return all(np.array_equal(row[name], row[f"{name}_theirs"]) for name in inputs)
