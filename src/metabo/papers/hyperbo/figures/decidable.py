"""What a table can decide, one line for each test task: random search, the gap below the best, noise, the ceiling."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from metabo.papers.hyperbo.metrics.decidable import NEAR, QUERIES
from metabo.plots import style

EARLY, LATE = (f"random_{q}_share" for q in QUERIES)
MARKS = {
    EARLY: ("Random after 10 queries (median)", {"marker": "o", "markerfacecolor": "white", "color": "#0072b2"}),
    LATE: ("Random after 100 queries (median)", {"marker": "o", "color": "#0072b2"}),
    "ceiling_share": (
        "first choice of a model of all other rows",
        {"marker": "D", "markerfacecolor": "none", "color": "#d08000"},
    ),
    "gap_share": ("gap between best and second-best output", {"marker": "|", "color": "black", "markeredgewidth": 1.6}),
    "noise_share": ("noise of a row among the best tenth", {"marker": "x", "color": "#d55e00", "markeredgewidth": 1.3}),
}
"""Columns drawn, each with its words in the legend and its marker."""
_THRESHOLD = {"color": "0.4", "linewidth": 0.9, "linestyle": ":"}
_LINE, _CHARACTER, _PANEL = 0.19, 0.068, 4.6
"""Inches: height of a line, width of a character of a label, width of the panel."""


def dot_plot(tasks: pd.DataFrame, labels: list[str], title: str) -> Figure:
    """Draw a line for each test task, tasks of a space under its name, regrets as shares of best minus median.

    `tasks`: space, rows, better, tied and the columns of `MARKS`, tasks of a space next to each other; `labels`: a
    name for each row. Right of the panel: how many rows are better than Random's median at 100, of how many. A task
    whose median is its best has no marks.
    """
    lines = _lines(list(tasks["space"]))
    shown = [name for name in MARKS if np.isfinite(tasks[name].to_numpy(dtype=np.float64)).any()]
    widest = max(map(len, labels)) + max(len(_beside(row)) for _, row in tasks.iterrows())
    with style.theme():
        size = (_PANEL + _CHARACTER * widest + 0.4, _LINE * (max(lines) + 1) + 1.9)
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.subplots()
        ax.hlines(lines, tasks[LATE], tasks[EARLY], color="#0072b2", linewidth=1.2, alpha=0.5)
        for name in shown:
            ax.plot(tasks[name], lines, linestyle="none", markersize=5, **MARKS[name][1])
        _share_axis(ax, tasks[shown].to_numpy(dtype=np.float64))
        _name_lines(ax, tasks, lines, labels)
        handles = [Line2D([], [], linestyle="none", markersize=5, label=MARKS[n][0], **MARKS[n][1]) for n in shown]
        if "noise_share" not in shown:
            handles.append(Line2D([], [], linestyle="none", label=f"({MARKS['noise_share'][0]}: not known)"))
        handles.append(Line2D([], [], label=f"{100 * NEAR:g} % of best minus median", **_THRESHOLD))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="small")
        figure.suptitle(title)
    return figure


def _lines(spaces: list[str]) -> list[int]:
    """Return the line of each task, downwards, with one line for the name of its space if there are several."""
    if len(set(spaces)) == 1:
        return list(range(len(spaces)))
    started = np.cumsum([i == 0 or spaces[i] != spaces[i - 1] for i in range(len(spaces))])
    return [i + int(started[i]) for i in range(len(spaces))]


def _beside(row: pd.Series) -> str:
    return f"{row['better']:,} of {row['rows']:,}"


def _name_lines(ax: Axes, tasks: pd.DataFrame, lines: list[int], labels: list[str]) -> None:
    names = [f"{name} (tied)" if tied else name for name, tied in zip(labels, tasks["tied"], strict=True)]
    ax.set_yticks(lines, names, fontsize=7)
    for text, tied in zip(ax.get_yticklabels(), tasks["tied"], strict=True):
        text.set_color("0.55" if tied else "black")
    ax.set_ylim(max(lines) + 0.7, -0.7)
    ax.tick_params(axis="y", length=0)
    right = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
    for line, (_, row) in zip(lines, tasks.iterrows(), strict=True):
        ax.annotate(_beside(row), (1, line), (6, 0), va="center", fontsize=7, **right)
    ax.annotate("rows above\nRandom after 100", (1, -0.7), (6, 3), va="bottom", fontsize=7, color="0.3", **right)
    if min(lines):
        first = dict(zip(reversed(tasks["space"].tolist()), reversed(lines), strict=True))
        for space, line in first.items():
            ax.annotate(space, (0, line - 1), (-6, 0), ha="right", va="center", fontsize=7.5, weight="bold", **right)


def _share_axis(ax: Axes, values: np.ndarray) -> None:
    """Logarithmic axis of shares, linear below the decade of the smallest positive one, so that zeros are visible."""
    known = values[np.isfinite(values)]
    positive = known[known > 0]
    ax.axvline(NEAR, **_THRESHOLD)
    ax.set_xlabel("regret, gap or noise as a share of the task's best minus median output")
    if len(positive) == 0:
        return
    if len(positive) == len(known):
        ax.set_xscale("log")
        return
    edge = 10.0 ** np.floor(np.log10(min(positive.min(), NEAR)))
    ax.set_xscale("symlog", linthresh=edge, linscale=0.4)
    ax.set_xlim(-0.15 * edge, 1.3 * positive.max())
    decades = np.arange(np.log10(edge), np.ceil(np.log10(positive.max())))
    ax.set_xticks([0.0, *10.0**decades], ["0", *(f"$10^{{{round(d)}}}$" for d in decades)])
    ax.set_xticks([], minor=True)
    ax.axvline(edge, color="0.7", linewidth=0.7, zorder=0)
    ax.annotate(
        "linear below", (edge, 0), (-3, 4), xycoords=ax.get_xaxis_transform(), textcoords="offset points", rotation=90,
        ha="right", va="bottom", fontsize=6, color="0.4",
    )  # fmt: skip
