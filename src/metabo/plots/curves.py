"""Curves over BO iterations: regret with violins (hyperbo Figures 8, 16), profiles (7, 15), ranks (9, 17), and regret
on several splits."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import gaussian_kde

from metabo.plots import look, style

FEWEST = 8
"""The fewest repetitions for which a density is drawn; fewer are drawn as dots."""
REPETITIONS = "Dots are repetitions, black lines their medians (violins: white dots)."
"""What the legend says about panels of `violin`."""
HOLLOW = "Hollow markers: priors on less training data."
"""What the legend says if a method is drawn with its twin on less data."""


def regret_figure(
    curves: pd.DataFrame,
    slices: pd.DataFrame,
    title: str,
    regret: str = "simple regret",
    distinct: Mapping[str, float] | None = None,
) -> Figure:
    """Draw regret curves (median, 20-80 % band) and one panel of repetitions per sliced iteration, on log axes.

    `curves`: method, iteration, median, low, high; `slices`: method, iteration, regret (one row per repetition);
    `distinct`: mean number of different candidates that a method's runs query, for the legend. The curves are above the
    panels of repetitions (`violin`). Exact zeros stay visible (`style.regret_axis`). Methods on less training data
    (`look.of`) have hollow markers.
    """
    methods, at = list(dict.fromkeys(curves["method"])), list(dict.fromkeys(slices["iteration"]))
    with style.theme():
        figure, axes = style.above(len(at))
        style.regret_axis(axes[0], curves[["median", "low", "high"]].to_numpy().ravel())
        style.iteration_axis(axes[0], int(curves["iteration"].max()))
        for method, rows in curves.groupby("method", sort=False):
            x, median, low, high = rows[["iteration", "median", "low", "high"]].to_numpy().T
            style.line(axes[0], str(method), x, median, (low, high))
        axes[0].set_ylabel(f"{regret},\nmean over tasks")
        for ax, iteration in zip(axes[1:], at, strict=True):
            rows = slices[slices["iteration"] == iteration]
            style.regret_axis(ax, rows["regret"].to_numpy())
            for place, method in enumerate(methods):
                violin(ax, place, rows.loc[rows["method"] == method, "regret"].to_numpy(), look.of(method).colour)
            method_axis(ax, methods)
            ax.set_title(f"iteration {iteration}")
        axes[0].set_title("median, 20th to 80th percentile")
        last = int(curves["iteration"].max())
        if at:
            axes[1].set_ylabel(regret)
        says = [REPETITIONS] if at else []
        says += [HOLLOW] if any(look.of(method).hollow for method in methods) else []
        legend_with_counts(figure, methods, distinct, last, says)
        figure.suptitle(title)
    return figure


def legend_with_counts(
    figure: Figure,
    methods: list[str],
    distinct: Mapping[str, float] | Mapping[str, Sequence[float]] | None,
    last: int,
    says: Sequence[str] = (),
    each: str = "panels",
) -> None:
    """Put the legend below the panels, with how many different candidates a method's runs query (`asked`; a list:
    in each of the panels, or of what `each` says), and the lines `says`."""
    numbers = {method: np.atleast_1d(number).tolist() for method, number in (distinct or {}).items()}
    notes, line = asked(numbers, last, each)
    style.legend(figure, methods, notes=notes, says="\n".join([*says, *([line] if line else [])]))


def asked(
    distinct: Mapping[str, Sequence[float]], last: int, each: str = "panels", what: str = "candidates", least: int = 0
) -> tuple[dict[str, str], str]:
    """Return what a legend says of how many different candidates (`what`) runs query: in brackets behind each method,
    and in a line below. Without `distinct` it says nothing.

    `distinct`: by method, the mean number over its runs in each panel (`each`); `last`: how many queries a run has;
    `least`: how many it has in the panel with the fewest, where panels differ.
    """
    if not distinct:
        return {}, ""
    ends = {method: (min(numbers), max(numbers)) for method, numbers in distinct.items()}
    if set(ends.values()) == {(last, last)}:
        return {}, f"Every run queries {last} different {what}."
    notes = {method: " to ".join(dict.fromkeys(f"{end:.3g}" for end in both)) for method, both in ends.items()}
    several = f" (least to most of the {each})" if any(low != high for low, high in ends.values()) else ""
    among = f"{least} to {last}" if 0 < least < last else str(last)
    return notes, f"In brackets: different {what} among {among} queries, mean over runs{several}."


def violin(
    ax: Axes,
    place: float,
    values: np.ndarray,
    colour: str,
    marker: str = "o",
    half_width: float = 0.4,
    size: float = 4.5,
) -> None:
    """Draw the repetitions `values` at x = `place`: dots, and their median as a black line behind them.

    From FEWEST on: their density on the axis's own scale, cut at the lowest and the highest, their median (white) and
    20th to 80th percentile (black bar). `half_width`: of the density and of the median's line, on the axis; `size`: of
    a dot, in points.
    """
    low, median, high = np.percentile(values, [20, 50, 80])
    if len(values) < FEWEST:
        ax.hlines(median, place - half_width, place + half_width, color="black", linewidth=1.2, zorder=2)
        ax.plot(
            np.full(len(values), place), values, linestyle="none", marker=marker, markersize=size, color=colour,
            markeredgecolor="white", markeredgewidth=0.4, zorder=3,
        )  # fmt: skip
        return
    scale = ax.yaxis.get_transform()
    points = scale.transform(values)
    if np.ptp(points) > 1e-9:
        density = gaussian_kde(points)
        grid = np.linspace(points.min(), points.max(), 200)
        height = scale.inverted().transform(grid)
        half = half_width * density(grid) / density(grid).max()
        ax.fill_betweenx(height, place - half, place + half, color=colour, alpha=0.6, linewidth=0)
    else:
        ax.hlines(median, place - half_width, place + half_width, color=colour, linewidth=2, alpha=0.6)
    ax.plot(np.full(len(values), place), values, linestyle="none", marker="_", color="0.35", markersize=5, zorder=3)
    ax.vlines(place, low, high, color="black", linewidth=3, zorder=4)
    ax.plot(place, median, marker="o", markersize=4.5, color="white", markeredgecolor="black", zorder=5)


def violin_handles(sizes: Collection[int], colour: str, what: str) -> list[Line2D]:
    """Return the entries of a legend for `violin` of groups of these `sizes`; `what`: what the repetitions are."""
    handles = []
    if min(sizes) < FEWEST:
        handles += [
            Line2D([], [], linestyle="none", marker="o", markersize=4.5, color=colour, label=what),
            Line2D([], [], color="black", linewidth=1.2, label="median"),
        ]
    if max(sizes) >= FEWEST:
        few = f"{what} of a violin" if handles else what
        handles += [
            Line2D([], [], linestyle="none", marker="_", markersize=5, color="0.35", label=few),
            Line2D(
                [], [], linestyle="none", marker="o", markersize=4.5, color="white", markeredgecolor="black",
                label="median of a violin" if handles else "median",
            ),
            Line2D([], [], color="black", linewidth=3, label="20th to 80th percentile"),
        ]  # fmt: skip
    return handles


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
        figure, axes = style.panels(len(splits), 2.6)
        for ax, split in zip(axes, splits, strict=True):
            style.regret_axis(ax, curves[["median", "low", "high"]].to_numpy().ravel())
            style.iteration_axis(ax, int(curves["iteration"].max()))
            for method, rows in curves[curves["split"] == split].groupby("method", sort=False):
                x, median, low, high = rows[["iteration", "median", "low", "high"]].to_numpy().T
                style.line(ax, str(method), x, median, (low, high))
            ax.set_title((titles or {}).get(split, f"split {split}"))
        for ax in axes[:: style.COLUMNS]:
            ax.set_ylabel(f"{regret}, mean over tasks")
        style.legend(figure, methods)
        figure.suptitle(title)
    return figure


def profile_panels(
    profiles: pd.DataFrame,
    title: str,
    resolved: pd.DataFrame | None = None,
    distinct: Mapping[str, float] | None = None,
) -> Figure:
    """Draw one panel per threshold C: share of tasks with regret below C against BO iteration.

    `profiles`: method, threshold, iteration, fraction. `resolved` (the same without threshold,
    `metabo.metrics.profile_of_resolved`) adds a panel where C is each task's own. `distinct`: as in `regret_figure`.
    """
    panels = {f"C = {c:g}": profiles[profiles["threshold"] == c] for c in dict.fromkeys(profiles["threshold"])}
    if resolved is not None:
        panels["C: what each table resolves"] = resolved
    methods = list(dict.fromkeys(profiles["method"]))
    with style.theme():
        figure, axes = style.panels(len(panels), share=True)
        for ax, (heading, own) in zip(axes, panels.items(), strict=True):
            style.iteration_axis(ax, int(profiles["iteration"].max()))
            for method, rows in own.groupby("method", sort=False):
                style.line(ax, str(method), *rows[["iteration", "fraction"]].to_numpy().T)
            ax.set_ylim(-0.02, 1.02)
            ax.set_title(heading)
        for ax in axes[:: style.COLUMNS]:
            ax.set_ylabel("fraction of tasks solved")
        legend_with_counts(figure, methods, distinct, int(profiles["iteration"].max()))
        figure.suptitle(title)
    return figure


def rank_curves(ranks: pd.DataFrame, title: str, distinct: Mapping[str, float] | None = None) -> Figure:
    """Draw mean ranks against BO iteration, and below them the first, tenth and last with one standard deviation.

    `ranks`: method, iteration, mean, std. Bands around every line would cover each other. `distinct`: as in
    `regret_figure`.
    """
    methods = list(dict.fromkeys(ranks["method"]))
    last = int(ranks["iteration"].max())
    shown = sorted({1, min(10, last), last})
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 6.0), layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(1.4, 1.0))
        style.iteration_axis(above, last)
        for place, (method, rows) in enumerate(ranks.groupby("method", sort=False)):
            one = look.of(str(method))
            style.line(above, str(method), *rows[["iteration", "mean"]].to_numpy().T)
            some = rows[rows["iteration"].isin(shown)]
            x = place + 0.26 * (np.arange(len(some)) - (len(some) - 1) / 2)
            room = np.stack([some["mean"] - 1, len(methods) - some["mean"]])  # no rank is beyond the first and the last
            below.errorbar(
                x, some["mean"], np.clip(room, 0.0, some["std"].to_numpy()), linestyle="none", marker=one.marker,
                markersize=5, color=one.colour, elinewidth=1.3, markeredgecolor="white", markeredgewidth=0.4,
            )  # fmt: skip
        method_axis(below, methods)
        below.set_title(f"iterations {', '.join(map(str, shown))} (left to right), mean ± one standard deviation")
        for ax in (above, below):
            ax.set_ylim(0.4, len(methods) + 0.6)
            ax.set_yticks(range(1, len(methods) + 1, 1 if len(methods) < 8 else 2))
            ax.set_ylabel("rank (1 = lowest regret)")
        legend_with_counts(figure, methods, distinct, last)
        figure.suptitle(title)
    return figure
