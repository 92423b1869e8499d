"""Robust queries, and elimination among pre-trained priors (hegpucb_x03, hegpucb_x04)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from metabo.papers.hegpucb.figures.looks import legend, line, look
from metabo.plots import style


def robust_panels(
    curves: pd.DataFrame, function: pd.DataFrame, run: pd.DataFrame, title: str, distinct: pd.DataFrame | None = None
) -> Figure:
    """Draw the function with its worst case and the last queries x_t of every run, and the ε-regrets, mean ± s.e.

    `curves`: method, iteration, measure, mean, error; `function`: x, value, worst; `run`: method, iteration, x;
    `distinct`: method, distinct, queries, for the legend.
    """
    methods = list(dict.fromkeys(curves["method"]))
    own = curves.assign(low=curves["mean"] - curves["error"], high=curves["mean"] + curves["error"])
    last = run[run["iteration"] == run["iteration"].max()]
    with style.theme():
        figure, axes = style.panels(4, 2.4)
        axes[0].plot(function["x"], function["value"], color="0.6", linewidth=1.2, label="f(x)")
        axes[0].plot(function["x"], function["worst"], color="black", linewidth=1.4, label="least f within ε")
        for place, method in enumerate(methods):
            one, x = look(method), last.loc[last["method"] == method, "x"]
            axes[0].plot(
                x, np.full(len(x), -0.05 - 0.05 * place), linestyle="none", marker=one.marker, color=one.colour,
                markersize=4, alpha=0.5,
            )  # fmt: skip
        axes[0].legend(frameon=False, fontsize="small", loc="upper right")
        highest = float(function["value"].max())
        axes[0].set(xlabel="x", ylabel="f", title="f, and last query of every run (below)")
        axes[0].set_ylim(-0.1 - 0.05 * len(methods), 1.4 * highest)
        axes[0].set_yticks([tick for tick in axes[0].get_yticks() if 0.0 <= tick <= 1.4 * highest])
        for ax, measure in zip(axes[1:], ("cumulative", "simple", "reported"), strict=True):
            for method, rows in own[own["measure"] == measure].groupby("method", sort=False):
                line(ax, str(method), rows, "low", "high")
            ax.set_ylim(bottom=0.0)
            ax.set(xlabel="iteration", ylabel=f"ε-regret: {measure}")
        legend(figure, methods, 2, distinct=distinct)
        figure.suptitle(title)
    return figure


def prior_panels(
    curves: pd.DataFrame,
    tasks: pd.DataFrame,
    labels: Mapping[str, str],
    title: str,
    distinct: pd.DataFrame | None = None,
) -> Figure:
    """Draw regret when choosing among priors beside the single priors, and the last regret of every task.

    `curves`: method, iteration, mean, low, high (bands: least and highest set); `tasks`: task, method, mean; `labels`:
    what a task is called; `distinct`: method, distinct, queries, for the legend.
    """
    methods = list(dict.fromkeys(curves["method"]))
    names = list(dict.fromkeys(tasks["task"]))
    with style.theme():
        heights = (3.0, max(1.4, 0.5 + 0.2 * len(names)))
        figure = Figure(figsize=(style.WIDEST, sum(heights) + 1.4), layout="constrained")
        mean, each = figure.subplots(2, 1, height_ratios=heights)
        style.regret_axis(mean, curves[["mean", "high"]].to_numpy().ravel())
        for method, rows in curves.groupby("method", sort=False):
            line(mean, str(method), rows, "low", "high")
        style.iteration_axis(mean, int(curves["iteration"].max()))
        mean.set(ylabel="simple regret, mean over tasks", title="mean and range over sets of candidates")
        for method, rows in tasks.groupby("method", sort=False):
            one = look(str(method))
            each.plot(
                rows["mean"], [names.index(t) for t in rows["task"]], linestyle="none", marker=one.marker,
                color=one.colour, markersize=5, alpha=0.85,
            )  # fmt: skip
        each.set_yticks(range(len(names)), [labels.get(name, name) for name in names], fontsize=7)
        each.set_ylim(len(names) - 0.5, -0.5)
        each.set_xlim(left=min(0.0, -0.02 * tasks["mean"].max()))
        each.set(xlabel="simple regret at the last iteration", title="each task")
        legend(figure, methods, 2, distinct=distinct)
        figure.suptitle(title)
    return figure
