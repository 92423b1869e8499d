"""Panels of online tuning: best value so far against BO iteration, one panel per task (hyperbo Figures 14, 22)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from metabo.plots import look as looks
from metabo.plots import style

_WIDTH, _HEIGHT = 2.75, 2.3
_LOG_FROM = 5.0
"""Ratio of greatest to least value from which a panel has a logarithmic axis."""


def online_panels(curves: pd.DataFrame, infeasible: pd.DataFrame, title: str, columns: int = 3) -> Figure:
    """Draw one panel per task: median and 20-80 % band of the best value so far, and each method's infeasible queries.

    `curves`: task, metric (axis label), method, iteration, median, low, high, with NaN where a method has no value (no
    line there) and +inf in `high` where the 80th percentile has none (the band is open at the top). `infeasible`: task,
    method, share. The axis of a panel is logarithmic if its values span a factor of 5 and none is 0.
    """
    tasks, methods = list(dict.fromkeys(curves["task"])), list(dict.fromkeys(curves["method"]))
    columns = min(columns, len(tasks))
    rows = -(-len(tasks) // columns)
    with style.theme():
        figure = Figure(figsize=(0.3 + _WIDTH * columns, 0.8 + _HEIGHT * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for ax in axes[len(tasks) :]:
            ax.set_axis_off()
        for place, (ax, task) in enumerate(zip(axes, tasks, strict=False)):
            mine = curves[curves["task"] == task]
            style.iteration_axis(ax, int(mine["iteration"].max()))
            if place + columns < len(tasks):
                ax.set_xlabel("")
            ax.set_ylabel(mine["metric"].iloc[0], fontsize="small")
            ax.set_title(task, fontsize="small")
            top = _value_axis(ax, mine[["median", "low", "high"]].to_numpy().ravel())
            for method, line in mine.groupby("method", sort=False):
                known = line.loc[line["median"].notna(), ["iteration", "median", "low", "high"]]
                x, median, low, high = known.to_numpy().T
                if len(x):
                    style.line(ax, str(method), x, median, (low, np.minimum(high, top)))
            shares = infeasible[infeasible["task"] == task].set_index("method")["share"]
            _note(ax, {m: shares[m] for m in methods if m in shares}, set(mine.loc[mine["median"].notna(), "method"]))
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


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


def _note(ax: Axes, shares: dict[str, float], drawn: set[str]) -> None:
    """List each method's share of infeasible queries in the upper right corner, where falling curves leave room."""
    lines = [("infeasible", "0.3")]
    for method, share in shares.items():
        look = looks.of(method)
        lines.append((f"{look.label} {100 * share:.0f} %" + ("" if method in drawn else " (no line)"), look.colour))
    for row, (text, colour) in enumerate(lines):
        down = ScaledTranslation(0, -row * 7.0 / 72, ax.figure.dpi_scale_trans)
        ax.text(
            0.985, 0.985, text, transform=ax.transAxes + down, ha="right", va="top", fontsize=6, color=colour,
            bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.4}, zorder=10,
        )  # fmt: skip
