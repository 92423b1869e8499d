"""Matrices of pairwise correlations between tasks, one panel per search space."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metabo.plots import style

LABELLED = 30
"""A panel with more tasks than this has no tick labels."""
_CELL, _PANEL, _CHARACTER = 0.3, 2.5, 0.055
"""Inches: a cell of a single matrix, a panel of several, a character of a tick label."""


def correlation_matrices(pairs: pd.DataFrame, titles: dict[str, str], title: str, columns: int = 2) -> Figure:
    """Draw one heat map per space; white = 0, grey = no correlation, a dash marks a negative one.

    `pairs`: space, task, other, group, other_group, correlation, each pair once, tasks of one group next to each other
    (lines separate the groups). `titles`: title of each panel. One matrix alone has its numbers in its cells.
    """
    spaces = list(dict.fromkeys(pairs["space"]))
    matrices = {space: square(pairs[pairs["space"] == space]) for space in spaces}
    columns = min(columns, len(spaces))
    rows = -(-len(spaces) // columns)
    sizes = [_panel_size(matrix, len(spaces) == 1) for matrix in matrices.values()]
    width, height = max(w for w, _ in sizes) * columns + 1.1, max(h for _, h in sizes) * rows + 0.35
    with style.theme():
        figure = Figure(figsize=(width, height), layout="compressed")
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for ax in axes[len(spaces) :]:
            ax.set_axis_off()
        for ax, (space, matrix) in zip(axes, matrices.items(), strict=False):
            _heat_map(ax, matrix, numbers=len(spaces) == 1 and len(matrix) <= LABELLED)
            _part_groups(ax, _groups(pairs[pairs["space"] == space], matrix))
            ax.set_title(titles[space], fontsize="small" if len(spaces) > 1 else "medium")
        shown = [ax for ax in axes if ax.collections]
        bar = figure.colorbar(shown[0].collections[0], ax=list(axes), shrink=0.7, aspect=25, pad=0.02)
        marked = "" if len(spaces) == 1 and len(next(iter(matrices.values()))) <= LABELLED else "; dash: negative"
        bar.set_label(f"Spearman's rank correlation\n(grey: none{marked})", fontsize="small")
        bar.outline.set_visible(False)
        figure.suptitle(title)
    return figure


def square(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the symmetric matrix of one space's pairs, tasks in order of appearance, NaN on the diagonal."""
    tasks = list(dict.fromkeys([*pairs["task"], *pairs["other"]]))
    upper = pairs.pivot(index="task", columns="other", values="correlation").reindex(index=tasks, columns=tasks)
    return upper.fillna(upper.T).rename_axis(index=None, columns=None)


def _panel_size(matrix: pd.DataFrame, alone: bool) -> tuple[float, float]:
    if len(matrix) > LABELLED:
        side = 5.5 if alone else _PANEL
        return side, side + 0.4
    labels = _CHARACTER * max(len(str(name)) for name in matrix)
    side = max(2.6, _CELL * len(matrix)) if alone else _PANEL
    return side + labels, side + labels + 0.4


def _heat_map(ax: Axes, matrix: pd.DataFrame, numbers: bool) -> None:
    labels = list(matrix) if len(matrix) <= LABELLED else False
    ax.grid(visible=False)
    ax.set_facecolor("0.75")
    sns.heatmap(
        matrix, ax=ax, vmin=-1, vmax=1, cmap="RdBu_r", cbar=False, square=True, xticklabels=labels, yticklabels=labels,
        annot=numbers, fmt=".2f", annot_kws={"fontsize": 5.5 if len(matrix) > 12 else 8},
        linewidths=0.3 if len(matrix) <= LABELLED else 0, linecolor="white",
    )  # fmt: skip
    if not numbers:  # without colour, both ends of the scale are dark
        below, across = np.nonzero(matrix.to_numpy() < 0)
        dark = matrix.to_numpy()[below, across] < -0.5
        ax.scatter(
            across + 0.5, below + 0.5, marker="_", s=0.5 * (72 * _PANEL / len(matrix) * 0.45) ** 2, linewidths=0.8,
            c=np.where(dark, "white", "black"),
        )  # fmt: skip
    # The diagonal says nothing; it is white so that grey keeps its one meaning.
    for i in range(len(matrix)):
        ax.fill_between([i, i + 1], i, i + 1, color="white", linewidth=0, zorder=2)
    small = {"labelsize": 7 if len(matrix) <= 12 else 6.5, "length": 0}
    ax.tick_params(axis="x", rotation=90, **small)
    ax.tick_params(axis="y", rotation=0, **small)
    ax.set(xlabel="" if labels else "task", ylabel="" if labels else "task")


def _groups(pairs: pd.DataFrame, matrix: pd.DataFrame) -> list[str]:
    group = dict(zip(pairs["task"], pairs["group"], strict=True))
    group |= dict(zip(pairs["other"], pairs["other_group"], strict=True))
    return [group[task] for task in matrix]


def _part_groups(ax: Axes, groups: list[str]) -> None:
    """Draw a line between groups, unless every task is a group of its own."""
    if len(set(groups)) == len(groups):
        return
    for edge in [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]:
        ax.axhline(edge, color="black", linewidth=0.8, zorder=3)
        ax.axvline(edge, color="black", linewidth=0.8, zorder=3)
