"""What the papers print: their tables as data, to set beside ours. Sources: README.md in this folder."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from metabo.errors import unknown

_FOLDER = Path(__file__).parent
PAPER_REPEATS = 5
"""Repeats behind each printed mean and standard deviation (hyperbo §7.4)."""

_FLOORS = {
    "error_percent": 0.05, "test_nll_hundreds": 1.0, "ekl": 0.1, "train_nll": 1.0, "regret_thousandths": 0.01
}  # fmt: skip
"""Smallest tolerance per metric: claim C40's 0.05 percentage points; else one unit of the last printed digit."""


def table(name: str) -> pd.DataFrame:
    """Return printed numbers, e.g. "hyperbo_tab05": task (paper's name), method, metric, mean, std.

    Raises ConfigError that lists the names.
    """
    tables = sorted(path.stem for pattern in ("*_tab*.csv", "*_fig*.csv") for path in _FOLDER.glob(pattern))
    if name not in tables:
        raise unknown("printed table", name, tables)
    return pd.read_csv(_FOLDER / f"{name}.csv", comment="#", dtype={"task": str})  # spaces of HPO-B are numbers


@cache
def _pd1_names() -> dict[str, str]:
    names = pd.read_csv(_FOLDER / "pd1_tasks.csv", comment="#")
    return dict(zip(names["task"], names["paper_name"], strict=True))


def short_name(task: str) -> str:
    """Return the paper's name of a PD1 task, or the task's own name."""
    return _pd1_names().get(task, task)


def compare(ours: pd.DataFrame, name: str, metric: str) -> pd.DataFrame:
    """Set our cells beside the printed ones: task, method, ours, paper, their std, tolerance, within.

    `ours`: task, method, mean, std in the printed unit. Cells that the paper does not print (or we did not run) are
    left out. Within: abs(ours - paper) <= max(3 sqrt(s_ours^2 + s_paper^2) / sqrt(5), floor of the metric); the rule
    of claim C40 (hyperbo Table 5), used for Tables 6 and 7 with one unit of the last printed digit as its floor.
    """
    printed = table(name)
    printed = printed[printed["metric"] == metric].drop(columns="metric")
    mine = ours[["task", "method", "mean", "std"]].assign(task=ours["task"].map(short_name))
    both = mine.merge(printed, on=["task", "method"], suffixes=("_ours", "_paper"))
    spread = np.hypot(both["std_ours"], both["std_paper"])
    tolerance = np.maximum(3 * spread / np.sqrt(PAPER_REPEATS), _FLOORS[metric])
    # One part in 1e9: a difference that equals the tolerance must not fail by rounding.
    within = (both["mean_ours"] - both["mean_paper"]).abs() <= tolerance * (1 + 1e-9)
    return both.assign(tolerance=tolerance, within=within)
