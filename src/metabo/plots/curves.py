"""Curves over BO iterations: regret with violins (hyperbo Figures 8, 16), profiles (7, 15) and ranks (9, 17);
regret on several splits."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from metabo.plots import look, style

FEWEST = 8
"""Repetitions that a density is drawn of; fewer are dots."""


def regret_figure(
    curves: pd.DataFrame,
    slices: pd.DataFrame,
    title: str,
    regret: str = "simple regret",
    distinct: Mapping[str, float] | None = None,
) -> Figure:
    """Draw regret curves (median, 20-80 % band) and one panel of repetitions per sliced iteration, on log axes.

    `curves`: method, iteration, median, low, high; `slices`: method, iteration, regret (one row per repetition);
    `distinct`: mean number of different candidates that a method's runs query, for the legend. Repetitions are dots
    with their median (white); from FEWEST on violins: density on the axis's own scale, cut at the lowest and highest
    repetition, black bar = 20th to 80th percentile. Exact zeros stay visible (`style.regret_axis`).
    """
    methods, at = list(dict.fromkeys(curves["method"])), list(dict.fromkeys(slices["iteration"]))
    with style.theme():
        width = 4.0 + len(at) * (0.9 + 0.32 * len(methods))
        figure = Figure(figsize=(width, 3.5 if len(methods) <= 8 else 3.9), layout="constrained")
        axes = figure.subplots(1, 1 + len(at), width_ratios=[4.0, *[0.6 + 0.32 * len(methods)] * len(at)])
        axes = np.atleast_1d(axes)
        style.regret_axis(axes[0], curves[["median", "low", "high"]].to_numpy().ravel())
        style.iteration_axis(axes[0], int(curves["iteration"].max()))
        for method, rows in curves.groupby("method", sort=False):
            x, median, low, high = rows[["iteration", "median", "low", "high"]].to_numpy().T
            style.line(axes[0], str(method), x, median, (low, high))
        axes[0].set_ylabel(f"{regret}, mean over tasks")
        for ax, iteration in zip(axes[1:], at, strict=True):
            rows = slices[slices["iteration"] == iteration]
            style.regret_axis(ax, rows["regret"].to_numpy())
            for place, method in enumerate(methods):
                violin(ax, place, rows.loc[rows["method"] == method, "regret"].to_numpy(), look.of(method).colour)
            method_axis(ax, methods)
            ax.set_title(f"iteration {iteration}")
        axes[0].set_title("median, 20th to 80th percentile")
        style.legend(figure, methods, notes={m: f"{number:.3g}" for m, number in (distinct or {}).items()})
        if distinct:
            last = int(curves["iteration"].max())
            style.imprint(figure, f"in brackets: different candidates among {last} queries, mean over runs", left=True)
        figure.suptitle(title)
    return figure


def violin(ax: Axes, place: float, values: np.ndarray, colour: str) -> None:
    """Draw the repetitions `values` at x = `place`: dots and their median; from FEWEST on their density on the axis's
    scale, median and 20th to 80th percentile."""
    low, median, high = np.percentile(values, [20, 50, 80])
    if len(values) < FEWEST:
        ax.plot(
            np.full(len(values), place), values, linestyle="none", marker="o", markersize=4, color=colour, alpha=0.7
        )
        ax.plot(place, median, marker="D", markersize=4, color="white", markeredgecolor="black", zorder=5)
        return
    scale = ax.yaxis.get_transform()
    points = scale.transform(values)
    if np.ptp(points) > 1e-9:
        density = gaussian_kde(points)
        grid = np.linspace(points.min(), points.max(), 200)
        height = scale.inverted().transform(grid)
        half = 0.4 * density(grid) / density(grid).max()
        ax.fill_betweenx(height, place - half, place + half, color=colour, alpha=0.6, linewidth=0)
    else:
        ax.hlines(median, place - 0.4, place + 0.4, color=colour, linewidth=2, alpha=0.6)
    ax.plot(np.full(len(values), place), values, linestyle="none", marker="_", color="0.35", markersize=5, zorder=3)
    ax.vlines(place, low, high, color="black", linewidth=3, zorder=4)
    ax.plot(place, median, marker="o", markersize=4.5, color="white", markeredgecolor="black", zorder=5)


def method_axis(ax: Axes, methods: list[str]) -> None:
    """Write the methods' labels below their places 0, 1, ..."""
    ax.set_xticks(range(len(methods)), [look.of(m).label for m in methods], rotation=45, ha="right")
    ax.set_xlim(-0.7, len(methods) - 0.3)
    ax.grid(visible=False, axis="x")


def split_panels(
    curves: pd.DataFrame, title: str, regret: str = "simple regret", titles: Mapping[str, str] | None = None
) -> Figure:
    """Draw one panel of regret curves (median, 20-80 % band) per split, on log axes that the panels share.

    `curves`: split, method, iteration, median, low, high; `titles` of the panels by split.
    """
    splits, methods = (list(dict.fromkeys(curves[column])) for column in ("split", "method"))
    with style.theme():
        figure = Figure(figsize=(0.6 + 3.7 * len(splits), 3.8), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(splits)))
        for ax, split in zip(axes, splits, strict=True):
            style.regret_axis(ax, curves[["median", "low", "high"]].to_numpy().ravel())
            style.iteration_axis(ax, int(curves["iteration"].max()))
            for method, rows in curves[curves["split"] == split].groupby("method", sort=False):
                x, median, low, high = rows[["iteration", "median", "low", "high"]].to_numpy().T
                style.line(ax, str(method), x, median, (low, high))
            ax.set_title((titles or {}).get(split, f"split {split}"))
        axes[0].set_ylabel(f"{regret}, mean over tasks")
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


def profile_panels(profiles: pd.DataFrame, title: str, resolved: pd.DataFrame | None = None) -> Figure:
    """Draw one panel per threshold C: share of tasks with regret below C against BO iteration.

    `profiles`: method, threshold, iteration, fraction. `resolved` (the same without threshold,
    `metabo.metrics.profile_of_resolved`) adds a panel where C is each task's own.
    """
    panels = {f"C = {c:g}": profiles[profiles["threshold"] == c] for c in dict.fromkeys(profiles["threshold"])}
    if resolved is not None:
        panels["C: what each table resolves"] = resolved
    methods = list(dict.fromkeys(profiles["method"]))
    with style.theme():
        figure = Figure(figsize=(max(4.6, 0.6 + 2.7 * len(panels)), 3.3), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
        for ax, (heading, own) in zip(axes, panels.items(), strict=True):
            style.iteration_axis(ax, int(profiles["iteration"].max()))
            for method, rows in own.groupby("method", sort=False):
                style.line(ax, str(method), *rows[["iteration", "fraction"]].to_numpy().T)
            ax.set_ylim(-0.02, 1.02)
            ax.set_title(heading)
        axes[0].set_ylabel("fraction of tasks solved")
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


def rank_curves(ranks: pd.DataFrame, title: str) -> Figure:
    """Draw mean rank +- 1 standard deviation against BO iteration; `ranks`: method, iteration, mean, std."""
    methods = list(dict.fromkeys(ranks["method"]))
    with style.theme():
        figure = Figure(figsize=(5.4, 4.0), layout="constrained")
        ax = figure.subplots()
        style.iteration_axis(ax, int(ranks["iteration"].max()))
        for method, rows in ranks.groupby("method", sort=False):
            x, mean, std = rows[["iteration", "mean", "std"]].to_numpy().T
            style.line(ax, str(method), x, mean, (mean - std, mean + std))
        ax.set_ylim(0.6, len(methods) + 0.4)
        ax.set_yticks(range(1, len(methods) + 1))
        ax.set_ylabel("rank of the mean regret (1 = lowest)")
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure
