"""Regret against the amount of training data (hyperbo Figures 11, 12, 18); three views of a comparison (13, 20)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metabo.plots import look as looks
from metabo.plots import style
from metabo.plots.curves import REPETITIONS, legend_with_counts, method_axis, violin

AXES = {"points": "points per training task, at most", "tasks": "training tasks"}
"""What varies: text of the horizontal axis. Points are on a logarithmic axis, tasks on a linear one."""

_DIGIT = 0.0085
"""Width of half a digit as a share of the axis, with some space: ticks whose numbers would overlap are left out."""


def sweep_figure(
    curves: pd.DataFrame,
    references: pd.DataFrame,
    slices: pd.DataFrame,
    varied: str,
    title: str,
    regret: str = "simple regret",
    distinct: Mapping[str, Sequence[float]] | None = None,
    last: int = 0,
) -> Figure:
    """Draw regret at one iteration against size (median, 20-80 % band) and one violin panel per size in `slices`.

    `curves`: method, size, median, low, high; `references` (methods without pre-training, may be empty): method,
    median, low, high, drawn across; `slices` (may be empty): size, method, regret. `varied`: a key of `AXES`.
    `distinct`: mean number of different candidates among the `last` queries of a method's runs, of each size.
    """
    alone = list(references["method"])
    methods = [*dict.fromkeys(curves["method"]), *alone]
    at = list(dict.fromkeys(slices["size"])) if len(slices) else []
    with style.theme():
        figure, axes = style.above(len(at))
        parts = [table[["median", "low", "high"]].to_numpy().ravel() for table in (curves, references)]
        style.regret_axis(axes[0], np.concatenate(parts))
        _size_axis(axes[0], sorted(set(curves["size"])), varied)
        for method, rows in curves.groupby("method", sort=False):
            x, median, low, high = rows[["size", "median", "low", "high"]].to_numpy().T
            style.line(axes[0], str(method), x, median, (low, high))
            axes[0].lines[-1].set_markevery(1)
        for place, (method, *ends) in enumerate(references[["method", "median", "low", "high"]].to_numpy()):
            _across(axes[0], str(method), ends, (place + 0.5) / len(alone))
        axes[0].set_ylabel(f"{regret},\nmean over tasks")
        axes[0].set_title("median, 20th to 80th percentile")
        for ax, size in zip(axes[1:], at, strict=True):
            rows = slices[slices["size"] == size]
            shown = [m for m in methods if m in set(rows["method"])]
            style.regret_axis(ax, rows["regret"].to_numpy())
            for place, method in enumerate(shown):
                violin(ax, place, rows.loc[rows["method"] == method, "regret"].to_numpy(), looks.of(method).colour)
            method_axis(ax, shown)
            ax.set_title(f"{size} {'points a task' if varied == 'points' else AXES[varied]}")
        if at:
            axes[1].set_ylabel(regret)
        legend_with_counts(figure, methods, distinct, last, [REPETITIONS] if at else [], "sizes")
        figure.suptitle(title)
    return figure


def _size_axis(ax: Axes, sizes: list[int], varied: str) -> None:
    """Ticks at the sizes, where there is room; the largest is all that there is."""
    if varied == "points":
        ax.set_xscale("log")
    scale = np.log10 if varied == "points" else np.asarray
    places = np.asarray(scale(np.asarray(sizes, dtype=np.float64)))
    span = float(np.ptp(places)) or 1.0
    low, high = places[0] - 0.05 * span, places[-1] + 0.05 * span
    ax.set_xlim(*(10.0 ** np.array([low, high]) if varied == "points" else (low, high)))
    texts = [*map(str, sizes[:-1]), f"{sizes[-1]} (all)"]
    kept = [len(sizes) - 1]
    for i in range(len(sizes) - 2, -1, -1):
        if places[kept[-1]] - places[i] > _DIGIT * len(texts[kept[-1]] + texts[i]) * span:
            kept.append(i)
    labels = [texts[i] for i in kept]
    ax.set_xticks([sizes[i] for i in kept], labels)
    ax.set_xticks([], minor=True)
    ax.set_xlabel(AXES[varied])


def _across(ax: Axes, method: str, ends: list[float], place: float) -> None:
    """Draw a reference, which has no size, over the whole axis with one marker at the share `place` of it."""
    median, low, high = ends
    look = looks.of(method)
    ax.axhspan(low, high, color=look.colour, alpha=0.08, linewidth=0)
    drawn = ax.axhline(median, color=look.colour, dashes=look.dashes or (None, None), linewidth=1.2, label=look.label)
    drawn.set(zorder=1.5)
    ax.plot(
        place, median, transform=ax.get_yaxis_transform(), color=look.colour, marker=look.marker, markersize=5,
        markeredgecolor="white", markeredgewidth=0.4,
    )  # fmt: skip


def three_views(
    profiles: pd.DataFrame,
    curves: pd.DataFrame,
    ranks: pd.DataFrame,
    title: str,
    regret: str = "simple regret",
    distinct: Mapping[str, float] | Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Draw one row per panel: performance profile, regret curve (20-80 % band), mean rank.

    All tables have `panel` (name of the row, "" for none), method, iteration; `profiles` one threshold and fraction,
    `curves` median, low, high, `ranks` mean. Bands of ranks would cover each other. `distinct`: as in
    `metabo.plots.regret_figure`, or a number for each panel.
    """
    panels = list(dict.fromkeys(curves["panel"]))
    methods = list(dict.fromkeys(curves["method"]))
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 1.3 + 2.2 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 3, squeeze=False)
        for row, panel in zip(axes, panels, strict=True):
            parts = [table[table["panel"] == panel] for table in (profiles, curves, ranks)]
            _views(row, *parts, methods)
            row[0].set_ylabel(panel, weight="bold")
        solved = f"fraction of tasks\nsolved, C = {profiles['threshold'].iloc[0]:g}"
        headings = (solved, f"{regret},\nmean over tasks", "mean rank of this\nregret (1 = lowest)")
        for ax, heading in zip(axes[0], headings, strict=True):
            ax.set_title(heading)
        for ax in axes[:-1].ravel():
            ax.set_xlabel("")
        legend_with_counts(figure, methods, distinct, int(curves["iteration"].max()))
        figure.suptitle(title)
    return figure


def _views(
    row: np.ndarray,
    profiles: pd.DataFrame,
    curves: pd.DataFrame,
    ranks: pd.DataFrame,
    methods: list[str],
) -> None:
    for ax in row:
        style.iteration_axis(ax, int(curves["iteration"].max()), narrow=True)
    style.regret_axis(row[1], curves[["median", "low", "high"]].to_numpy().ravel())
    for method in methods:
        profile, curve, rank = (table[table["method"] == method] for table in (profiles, curves, ranks))
        style.line(row[0], method, *profile[["iteration", "fraction"]].to_numpy().T)
        x, median, low, high = curve[["iteration", "median", "low", "high"]].to_numpy().T
        style.line(row[1], method, x, median, (low, high))
        style.line(row[2], method, *rank[["iteration", "mean"]].to_numpy().T)
    row[0].set_ylim(-0.02, 1.02)
    row[2].set_ylim(0.6, len(methods) + 0.4)
    row[2].set_yticks(range(1, len(methods) + 1))
