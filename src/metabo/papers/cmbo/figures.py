"""Figures of cm-BO: mean regret by acquisition, ranks and solved runs, and the number of clusters (Figures 1 to 3)."""

from collections.abc import Mapping

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
    indices: pd.DataFrame | None = None,
    rows: int = 0,
) -> Figure:
    """Draw one panel per key of `headings` of the mean normalised regret with its interval, on one logarithmic axis.

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
        if rows:
            columns = -(-count // rows)
            figure = Figure(figsize=(0.8 + 2.4 * columns, 1.3 + 2.6 * rows), layout="constrained")
            axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
        else:
            columns = style.COLUMNS
            figure, axes = style.panels(count, 2.6, below=1.4)
        for ax, (panel, heading) in zip(axes, headings.items(), strict=False):
            style.regret_axis(ax, curves["mean"].to_numpy())
            _lines(ax, curves[curves["panel"] == panel])
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
    """Draw intraCE/interCS against the number of clusters: a line for each space, mean over its folds, and a cross for
    the number that each fold chose."""
    for place, (space, rows) in enumerate(own[own["clusters"] > 1].groupby("space", sort=False)):
        means = rows.groupby("clusters")["ratio"].mean()
        ax.plot(means.index, means, color=f"C{place}", marker="o", markersize=3, label=str(space))
        best = rows[rows["chosen"] == 1]
        ax.plot(best["clusters"], best["ratio"], color=f"C{place}", marker="x", linestyle="none", markersize=6)
    ax.plot([], [], color="0.3", marker="x", linestyle="none", markersize=6, label="chosen in a split")
    ax.set(
        xlabel="number of clusters",
        ylabel="intraCE / interCS",
        xticks=sorted(own.loc[own["clusters"] > 1, "clusters"].unique()),
    )
    ax.set_ylim(top=ax.get_ylim()[0] + 1.3 * np.ptp(ax.get_ylim()))  # room for the legend
    ax.legend(frameon=False, fontsize="small", loc="upper center", ncols=3)


def _lines(ax: Axes, table: pd.DataFrame, floor: float = 0.0) -> None:
    last = int(table["iteration"].max())
    for method, rows in table.groupby("method", sort=False):
        x, mean, low, high = rows[["iteration", "mean", "low", "high"]].to_numpy().T
        style.line(ax, method_of(str(method)), x, mean, (np.maximum(low, floor), high))
    ax.set_xlim(1 - 0.02 * last, 1.02 * last)
    ax.set_xlabel("BO iteration")


def rank_and_solved(ranks: pd.DataFrame, solved: pd.DataFrame, title: str, groups: Mapping[str, str]) -> Figure:
    """Draw a row of panels for each acquisition, and for each group of spaces two columns: average rank and share of
    runs solved.

    Both tables: group, acquisition (a slug, or "pooled"), method, iteration, mean, low, high. `groups`: name to
    heading.
    """
    scopes = list(dict.fromkeys(ranks["acquisition"]))
    methods = list(dict.fromkeys(map(method_of, ranks["method"])))
    with style.theme():
        size = (0.6 + 3.3 * 2 * len(groups), 1.2 + 2.4 * len(scopes))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(scopes), 2 * len(groups), squeeze=False)
        for row, scope in zip(axes, scopes, strict=True):
            for place, (group, heading) in enumerate(groups.items()):
                for ax, table, what in (
                    (row[2 * place], ranks, "average rank"), (row[2 * place + 1], solved, "share solved"),
                ):  # fmt: skip
                    own = table[(table["group"] == group) & (table["acquisition"] == scope)]
                    _lines(ax, own)
                    ax.set(title=f"{heading}, {look.ACQUISITIONS.get(scope, scope)}", ylabel=what)
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure
