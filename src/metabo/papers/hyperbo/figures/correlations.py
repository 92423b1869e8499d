"""Scatter panels with their correlation (hyperbo Figure 10)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from metabo.metrics import Pearson
from metabo.plots import look, style

LARGE = 1e4
"""Numbers from here on are written with k or M."""
TICKS = 4
"""The most intervals between the numbers of an axis."""


def correlation_panels(
    points: pd.DataFrame, panels: list[tuple[str, str]], results: list[Pearson], names: dict[str, str], title: str
) -> Figure:
    """Draw one scatter panel per (x column, y column): colour and marker = method, one point per repetition.

    `points`: method and the columns named in `panels`; `names`: axis label of each column. Each panel's title gives
    Pearson's r. It gives no interval: the points of one method are not independent draws, and the claim is judged by an
    interval that accounts for this.
    """
    methods = list(dict.fromkeys(points["method"]))
    with style.theme():
        figure, axes = style.panels(len(panels), 2.5)
        for ax, (x, y), result in zip(axes, panels, results, strict=True):
            for method, rows in points.groupby("method", sort=False):
                s = look.of(str(method))
                ax.scatter(rows[x], rows[y], color=s.colour, marker=s.marker, s=26, linewidth=0.4, edgecolor="white")
            ax.set_xlabel(names[x])
            ax.set_ylabel(names[y])
            for axis, column in ((ax.xaxis, x), (ax.yaxis, y)):
                axis.set_major_locator(MaxNLocator(TICKS))
                if points[column].abs().max() >= LARGE:  # a power of ten at the end of an axis would lie on its label
                    axis.set_major_formatter(EngFormatter())
            ax.set_title(_headline(result))
            ax.margins(0.1)
        style.legend(figure, methods, lines=False)
        figure.suptitle(title)
    return figure


def _headline(result: Pearson) -> str:
    if np.isnan(result.r):
        return f"r undefined (n = {result.n})"
    return f"r = {result.r:.2f} (n = {result.n})".replace("-", "−")
