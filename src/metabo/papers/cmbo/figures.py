"""Figures of cm-BO: mean regret by acquisition, ranks and solved runs, and the number of clusters (Figures 1 to 3)."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metabo.plan.runs import method_of
from metabo.plots import look, style


def regret_panels(
    curves: pd.DataFrame,
    title: str,
    headings: Mapping[str, str],
    bands: Collection[str],
    indices: pd.DataFrame | None = None,
    rows: int = 0,
) -> Figure:
    """Draw one panel per key of `headings` of the mean normalised regret, on one logarithmic axis, with the intervals
    of the methods `bands`: those of all would cover each other.

    `curves`: panel, method, iteration, mean, low, high. `indices` (as from
    `metabo.papers.cmbo.cluster_metrics.clusters_of`; not drawn if it has no rows): adds a panel for each of its
    distances. The panels fill `rows` rows, one after the other; 0: two stand side by side. Methods of one label are one
    entry of the legend.
    """
    names = list(dict.fromkeys(map(method_of, curves["method"])))
    methods = list({look.of(name).label: name for name in reversed(names)}.values())[::-1]
    distances = [] if indices is None else list(dict.fromkeys(indices["distance"]))
    with style.theme():
        count = len(headings) + len(distances)
        columns = -(-count // rows) if rows else style.COLUMNS
        width = 0.8 + 2.4 * columns if rows else style.WIDEST
        # Title and legend keep their room, whatever the number of methods.
        below = 0.6 + 0.22 * style.legend_rows([look.of(m).label for m in methods], width)
        if rows:
            figure = Figure(figsize=(width, below + 2.6 * rows), layout="constrained")
            axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
        else:
            figure, axes = style.panels(count, 2.6, below, least=width)
        for ax, (panel, heading) in zip(axes, headings.items(), strict=False):
            style.regret_axis(ax, curves["mean"].to_numpy())
            _lines(ax, curves[curves["panel"] == panel], bands)
            ax.set_title(heading)
        for ax in axes[: len(headings) : columns]:
            ax.set_ylabel("mean normalised\nsimple regret")
        for ax, distance in zip(axes[len(headings) :], distances, strict=True):
            _indices(ax, indices[indices["distance"] == distance])
            ax.set_title(f"{distance.capitalize()} clusters")
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


def _indices(ax: Axes, own: pd.DataFrame) -> None:
    """Draw intraCE/interCS against the number of clusters: a grey line for each space (colours are of methods), mean
    over its folds, and a cross at each fold's own ratio where it chose its number."""
    spaces = own["space"].nunique()
    for place, (space, rows) in enumerate(own[own["clusters"] > 1].groupby("space", sort=False)):
        means = rows.groupby("clusters")["ratio"].mean()
        grey, marker = str(0.62 - 0.62 * place / max(spaces - 1, 1)), "osD^v"[place % 5]
        ax.plot(means.index, means, color=grey, marker=marker, markersize=3, label=str(space))
        best = rows[rows["chosen"] == 1]
        ax.plot(best["clusters"], best["ratio"], color=grey, marker="x", linestyle="none", markersize=6)
    ax.plot([], [], color="0.3", marker="x", linestyle="none", markersize=6, label="chosen, by split or draw")
    ax.set(
        xlabel="number of clusters",
        ylabel="intraCE / interCS",
        xticks=sorted(own.loc[own["clusters"] > 1, "clusters"].unique()),
    )
    entries = len(ax.get_legend_handles_labels()[1])
    low, high = ax.get_ylim()
    ax.set_ylim(top=high + 0.14 * -(-entries // 2) * (high - low))  # room for the legend
    inside = ax.legend(
        frameon=False, fontsize="small", loc="upper center", ncols=2, handlelength=1.2, columnspacing=0.8,
        labelspacing=0.3, handletextpad=0.5, borderaxespad=0.2,
    )  # fmt: skip
    inside.set_in_layout(False)  # the panel's width does not make room for it


def _lines(ax: Axes, table: pd.DataFrame, bands: Collection[str]) -> None:
    last = int(table["iteration"].max())
    for method, rows in table.groupby("method", sort=False):
        name = method_of(str(method))
        x, mean, low, high = rows[["iteration", "mean", "low", "high"]].to_numpy().T
        style.line(ax, name, x, mean, (np.maximum(low, 0.0), high) if name in bands else None)
    ax.set_xlim(1 - 0.02 * last, 1.02 * last)
    ax.set_xlabel("BO iteration")


def rank_and_solved(
    ranks: pd.DataFrame, solved: pd.DataFrame, title: str, groups: Mapping[str, str], bands: Collection[str]
) -> Figure:
    """Draw, for each group of spaces, a row of panels for each acquisition: average rank and share of runs solved, with
    the intervals of the methods `bands`. The rows of the next group are below.

    Both tables: group, acquisition (a slug, or "pooled"), method, iteration, mean, low, high. `groups`: name to
    heading.
    """
    scopes = list(dict.fromkeys(ranks["acquisition"]))
    methods = list(dict.fromkeys(map(method_of, ranks["method"])))
    lines = [(group, scope) for group in groups for scope in scopes]
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 1.6 + 1.75 * len(lines)), layout="constrained")
        axes = figure.subplots(len(lines), 2, squeeze=False)
        for row, (group, scope) in zip(axes, lines, strict=True):
            for ax, table, what in zip(row, (ranks, solved), ("average rank", "share solved"), strict=True):
                _lines(ax, table[(table["group"] == group) & (table["acquisition"] == scope)], bands)
                ax.set(title=f"{groups[group]}, {look.ACQUISITIONS.get(scope, scope)}", ylabel=what)
                if scope != scopes[-1]:
                    ax.set_xlabel("")
        _alike(axes[:, 0])
        for ax in axes[:, 1]:
            ax.set_ylim(-0.03, 1.03)
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


def _alike(axes: np.ndarray) -> None:
    """Give axes the range that holds all of theirs."""
    low, high = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(low), max(high))
