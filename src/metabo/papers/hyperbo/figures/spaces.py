"""One panel per search space: performance profiles, regret curves or ranks (hyperbo D.4, Figures 27 to 29)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metabo.errors import unknown
from metabo.plots import style

KINDS = {
    "profile": "fraction of tasks solved", "curve": "{regret},\nmean over tasks", "rank": "mean rank of the regret",
}  # fmt: skip
"""What the panels show, and the label of their vertical axis."""
_HEIGHT = 2.0


def space_panels(
    table: pd.DataFrame, kind: str, titles: dict[str, str], title: str, regret: str = "simple regret", columns: int = 3
) -> Figure:
    """Draw one panel per space, in the order of `titles` (space -> title of its panel).

    `table`: space, method, iteration and, by `kind`, fraction ("profile"), median, low, high ("curve") or mean
    ("rank"; bands around every line would cover each other). Profiles and ranks share their vertical axis; regrets of
    two spaces have nothing in common. Raises ConfigError for another `kind`.
    """
    if kind not in KINDS:
        raise unknown("kind of panel", kind, KINDS)
    methods = list(dict.fromkeys(table["method"]))
    columns = min(columns, len(titles), max(2, -(-len(titles) // 2)))
    rows = -(-len(titles) // columns)
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 1.2 + _HEIGHT * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns, sharey=kind != "curve")).ravel()
        for ax in axes[len(titles) :]:
            ax.set_axis_off()
        for place, (ax, (space, heading)) in enumerate(zip(axes, titles.items(), strict=False)):
            mine = table[table["space"] == space]
            style.iteration_axis(ax, int(mine["iteration"].max()), narrow=True)
            _panel(ax, mine, kind, len(methods))
            ax.set_title(heading, fontsize="small")
            if place + columns < len(titles):
                ax.set_xlabel("")
        label = KINDS[kind].format(regret=regret)
        if rows == 1:
            axes[0].set_ylabel(label)
        else:
            figure.supylabel(label.replace("\n", " "), fontsize="medium")
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


def _panel(ax: Axes, table: pd.DataFrame, kind: str, methods: int) -> None:
    """Draw every method's line on the axis of its kind."""
    if kind == "profile":
        ax.set_ylim(-0.02, 1.02)
    elif kind == "rank":
        ax.set_ylim(0.6, methods + 0.4)
        ax.set_yticks(range(1, methods + 1))
    else:
        style.regret_axis(ax, table[["median", "low", "high"]].to_numpy().ravel())
    # Random is what all are compared with, so its line lies above those that it coincides with.
    for method, rows in sorted(table.groupby("method", sort=False), key=lambda entry: entry[0] == "rand"):
        x = rows["iteration"].to_numpy()
        if kind == "profile":
            style.line(ax, str(method), x, rows["fraction"].to_numpy())
        elif kind == "rank":
            style.line(ax, str(method), x, rows["mean"].to_numpy())
        else:
            median, low, high = rows[["median", "low", "high"]].to_numpy().T
            style.line(ax, str(method), x, median, (low, high))
