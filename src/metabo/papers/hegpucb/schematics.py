"""Drawings of HE-GP-UCB's paper: elimination in one picture, and the four test problems (Figures 1 and 3 to 6)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metabo.plots import style

_FIRST, _SECOND, _TRUTH = "#0072b2", "#d55e00", "black"
_OUTCOMES = {
    "kept": ("*", 14, "inside both: both kept"),
    "eliminated": ("D", 8, "inside GP 1 only: speaks against GP 2"),
}


def _band(ax: Axes, rows: pd.DataFrame, colour: str, label: str, line: str = "-", band: str | None = None) -> None:
    ax.plot(rows["x"], rows["mean"], color=colour, linestyle=line, linewidth=1.4, label=label)
    ax.fill_between(rows["x"], rows["low"], rows["high"], color=colour, alpha=0.18, linewidth=0, label=band)


def elimination_figure(tables: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Draw Figure 1 from "band" (model, x, mean, low, high), "point" (x, y), "outcome" (kind, x, y)."""
    with style.theme():
        figure = Figure(figsize=(6.2, 3.6), layout="constrained")
        ax = figure.subplots()
        looks = ((_FIRST, "-"), (_SECOND, "--"))
        for (model, rows), (colour, line) in zip(tables["band"].groupby("model", sort=False), looks, strict=True):
            _band(ax, rows, colour, str(model), line)
        ax.plot(tables["point"]["x"], tables["point"]["y"], linestyle="none", marker="o", color="black", label="data")
        for row in tables["outcome"].itertuples():
            marker, size, label = _OUTCOMES[row.kind]
            ax.plot(
                row.x, row.y, linestyle="none", marker=marker, markersize=size, color="white",
                markeredgecolor="black", label=label, zorder=5,
            )  # fmt: skip
        ax.set(xlabel="x", ylabel="f(x)")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(title)
    return figure


def misfit_figure(tables: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Draw Figure 3 from "band" (x, mean, low, high), "function" (x, value), "point" (x, y)."""
    with style.theme():
        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        ax = figure.subplots()
        _band(ax, tables["band"], _SECOND, "GP with a long length-scale", "--", "two standard deviations")
        ax.plot(tables["function"]["x"], tables["function"]["value"], color=_TRUTH, linewidth=1.4, label="function (a)")
        ax.plot(tables["point"]["x"], tables["point"]["y"], linestyle="none", marker="o", color="black", label="data")
        ax.set(xlabel="x", ylabel="f(x)")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(title)
    return figure


def period_figure(function: pd.DataFrame, variants: Mapping[str, str], title: str) -> Figure:
    """Draw function (b), one panel per variant. `function`: variant, x, value; `variants`: variant to panel title."""
    with style.theme():
        figure = Figure(figsize=(3.4 * len(variants) + 0.4, 2.9), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(variants), sharey=True))
        for ax, (variant, heading) in zip(axes, variants.items(), strict=True):
            rows = function[function["variant"] == variant]
            # Jumps are not part of the function: a line across them would look like one.
            value = rows["value"].where(rows["value"].diff().abs().fillna(0.0) < 0.2)
            ax.plot(rows["x"], value, color=_FIRST, linewidth=1.3)
            ax.axvline(1.0, color="0.6", linewidth=0.8, linestyle=":")
            ax.set(xlabel="x", title=heading)
        axes[0].set_ylabel("f(x)")
        figure.suptitle(title)
    return figure


def decomposition_figure(function: pd.DataFrame, title: str) -> Figure:
    """Draw function (c) over inputs 1 and 2 as a heat map. `function`: x1, x2, value, on a grid."""
    grid = function.pivot(index="x2", columns="x1", values="value")
    with style.theme():
        figure = Figure(figsize=(4.6, 3.7), layout="constrained")
        ax = figure.subplots()
        image = ax.pcolormesh(grid.columns, grid.index, grid.to_numpy(), shading="nearest", cmap="viridis")
        image.set_rasterized(True)
        figure.colorbar(image, ax=ax, label="f(x)")
        ax.grid(visible=False)
        ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
        figure.suptitle(title)
    return figure


def means_figure(mean: pd.DataFrame, headings: Mapping[int, str], title: str) -> Figure:
    """Draw prior means of (d), one panel per candidate. `mean`: u, x, value; `headings`: u to panel title."""
    with style.theme():
        figure = Figure(figsize=(5.2, 1.5 * len(headings) + 0.8), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(headings), 1, sharex=True, sharey=True))
        for ax, (u, heading) in zip(axes, headings.items(), strict=True):
            rows = mean[mean["u"] == u]
            ax.plot(rows["x"], rows["value"], color=_FIRST, linewidth=1.3)
            ax.set(ylabel="prior mean", title=heading)
        axes[-1].set_xlabel("x")
        figure.suptitle(title)
    return figure
