"""Panels of online tuning: best value so far against BO iteration, one panel per task (hyperbo Figures 14, 22)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from metabo.plots import look as looks
from metabo.plots import style

_HEIGHT = 1.9
_LOG_FROM = 5.0
"""Ratio of greatest to least value from which a panel has a logarithmic axis."""


def online_panels(curves: pd.DataFrame, infeasible: pd.DataFrame, title: str, columns: int = 3) -> Figure:
    """Draw one panel per task: median and band of the best value so far. The legend has the share of each method's
    queries that were infeasible; a panel names the methods without a line.

    `curves`: task, metric (axis label), method, iteration, median, low, high, with NaN where a method has no value (no
    line there) and +inf in `high` where the band has none (it is open at the top). `infeasible`: task, method, queries,
    infeasible. The axis of a panel is logarithmic if its values span a factor of 5 and none is 0.
    """
    tasks, methods = list(dict.fromkeys(curves["task"])), list(dict.fromkeys(curves["method"]))
    columns = min(columns, len(tasks))
    rows = -(-len(tasks) // columns)
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 1.1 + _HEIGHT * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for ax in axes[len(tasks) :]:
            ax.set_axis_off()
        for place, (ax, task) in enumerate(zip(axes, tasks, strict=False)):
            mine = curves[curves["task"] == task]
            style.iteration_axis(ax, int(mine["iteration"].max()), narrow=True)
            if place + columns < len(tasks):
                ax.set_xlabel("")
            metric = mine["metric"].iloc[0]
            beside = tasks[place - 1] if place % columns else None
            if beside is None or curves.loc[curves["task"] == beside, "metric"].iloc[0] != metric:
                ax.set_ylabel(metric, fontsize="small")
            ax.set_title(task, fontsize="small")
            top = _value_axis(ax, mine[["median", "low", "high"]].to_numpy().ravel())
            for method, line in mine.groupby("method", sort=False):
                known = line.loc[line["median"].notna(), ["iteration", "median", "low", "high"]]
                x, median, low, high = known.to_numpy().T
                if len(x):
                    style.line(ax, str(method), x, median, (low, np.minimum(high, top)))
            _name_missing(ax, [m for m in methods if m not in set(mine.loc[mine["median"].notna(), "method"])])
        total = infeasible.groupby("method", sort=False)[["infeasible", "queries"]].sum()
        share = total["infeasible"] / total["queries"]
        style.legend(figure, methods, notes={m: percent(share[m]) for m in share.index}, says="(infeasible queries)")
        figure.suptitle(title)
    return figure


def percent(share: float) -> str:
    """Return a share in whole percent; one that only rounds to none or to all is told from these."""
    rounded = f"{100 * share:.0f}"
    if rounded == "0" and share > 0:
        return "<1 %"
    if rounded == "100" and share < 1:
        return ">99 %"
    return f"{rounded} %"


def _value_axis(ax: Axes, values: np.ndarray) -> float:
    """Scale the axis to the finite values, log if they span much; return its upper limit."""
    values = values[np.isfinite(values)]
    if not len(values):
        ax.set(ylim=(0, 1), yticks=[])
        return 1.0
    least, most = values.min(), values.max()
    if least > 0 and most / least >= _LOG_FROM:
        ax.set_yscale("log")
        ax.set_ylim(least / 1.15, most * 1.15)
        steps = (1, 2, 5) if most / least < 100 else (1,)
        ticks = [s * 10.0**e for e in range(-12, 13) for s in steps if least / 1.15 <= s * 10.0**e <= most * 1.15]
        ax.yaxis.set_major_locator(FixedLocator(ticks))
        ax.yaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        margin = 0.06 * (most - least) or 0.05 * (abs(most) or 1.0)
        ax.set_ylim(least - margin, most + margin)
    return float(ax.get_ylim()[1])


def _name_missing(ax: Axes, methods: list[str]) -> None:
    """Name the methods without a line in the upper right corner, where falling curves leave room."""
    if methods:
        text = "no line: " + ",\n".join(looks.of(method).label for method in methods)
        ax.text(
            0.98, 0.97, text, transform=ax.transAxes, ha="right", va="top", fontsize=6.5, color="0.2", zorder=10,
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip
