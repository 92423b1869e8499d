"""What HyperBO prints, to set beside ours; sources: papers/README.md."""

from pathlib import Path

import numpy as np
import pandas as pd

from metabo.papers.engine import printed

PAPER_REPEATS = 5
"""Repeats behind each printed mean and standard deviation (hyperbo §7.4)."""

_FLOORS = {
    "error_percent": 0.05, "test_nll_hundreds": 1.0, "ekl": 0.1, "train_nll": 1.0, "regret_thousandths": 0.01
}  # fmt: skip
"""Smallest tolerance per metric: claim C40's 0.05 percentage points; else one unit of the last printed digit."""


def table(name: str) -> pd.DataFrame:
    """Return printed numbers, e.g. "tab05": task (paper's name), method, metric, mean, std.

    Raises ConfigError, which lists the names.
    """
    return printed.read(Path(__file__).parent, name)


def compare(ours: pd.DataFrame, name: str, metric: str) -> pd.DataFrame:
    """Set our cells beside the printed ones: task, method, ours, paper, their std, tolerance, within.

    `ours`: task, method, mean, std in the printed unit. Cells that the paper does not print (or we did not run) are
    left out. Within: abs(ours - paper) <= max(3 sqrt(s_ours^2 + s_paper^2) / sqrt(5), floor of the metric); the rule
    of claim C40 (hyperbo Table 5), used for Tables 6 and 7 with one unit of the last printed digit as its floor.
    """
    paper = table(name)
    paper = paper[paper["metric"] == metric].drop(columns="metric")
    mine = ours[["task", "method", "mean", "std"]].assign(task=ours["task"].map(printed.short_name))
    both = mine.merge(paper, on=["task", "method"], suffixes=("_ours", "_paper"))
    spread = np.hypot(both["std_ours"], both["std_paper"])
    tolerance = np.maximum(3 * spread / np.sqrt(PAPER_REPEATS), _FLOORS[metric])
    # One part in 1e9: a difference that equals the tolerance must not fail by rounding.
    within = (both["mean_ours"] - both["mean_paper"]).abs() <= tolerance * (1 + 1e-9)
    return both.assign(tolerance=tolerance, within=within)
