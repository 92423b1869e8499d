"""Figures of the synthetic studies: loss landscapes, estimated posteriors, losses along a run (hyperbo Figures 3-5)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from metabo.plots import style

MODELS = {
    "truth": ("ground truth", "black", "-"),
    "mle": ("MLE", "#1f77b4", "--"),
    "unbiased": ("unbiased", "#d62728", "-."),
    "pretrained": ("pre-trained", "#2ca02c", ":"),
}
"""Label, colour and line of each model of §6.3.1, coloured as in the paper."""

_EKL, _NLL = "#6a3d9a", "#d62728"


def landscape_panels(curves: pd.DataFrame, title: str) -> Figure:
    """Draw EKL and scaled NLL along each parameter, their lowest points marked.

    `curves`: parameter, x, ekl, nll_scaled. Positive parameters have a logarithmic axis. Each panel's loss axis goes
    from half the lowest loss of its two curves to six times it; what is above is cut off.
    """
    names = list(dict.fromkeys(curves["parameter"]))
    with style.theme():
        figure = Figure(figsize=(3.1 * len(names), 3.0), layout="constrained")
        for ax, name in zip(figure.subplots(1, len(names)), names, strict=True):
            rows = curves[curves["parameter"] == name]
            x = rows["x"].to_numpy()
            for column, label, colour, line in (("ekl", "EKL", _EKL, "-"), ("nll_scaled", "NLL, scaled", _NLL, "--")):
                loss = rows[column].to_numpy()
                best = int(loss.argmin())
                ax.plot(x, loss, color=colour, linestyle=line, label=label)
                ax.axvline(x[best], color=colour, linestyle=line, linewidth=0.8, alpha=0.6)
                ax.plot(x[best], loss[best], color=colour, marker="o", markersize=5, linestyle="none")
            if x.min() > 0:
                ax.set_xscale("log")
            lowest = rows[["ekl", "nll_scaled"]].min().min()
            ax.set_ylim(0.5 * lowest, 6 * lowest)
            ax.set(xlabel=name, title=f"lowest: EKL {_at(rows, 'ekl'):.2g}, NLL {_at(rows, 'nll_scaled'):.2g}")
        figure.axes[0].set_ylabel("loss")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(title)
    return figure


def _at(rows: pd.DataFrame, column: str) -> float:
    return float(rows["x"].iloc[int(rows[column].argmin())])


def estimate_panels(training: pd.DataFrame, marginal: pd.DataFrame, test: pd.DataFrame, title: str) -> Figure:
    """Draw training functions, prior marginals, and the posterior marginals after 1, 2, ... observations.

    `training`: function, x, y; `marginal`: observations, model, x, mean, variance; `test`: x, y, observed_from. A
    marginal is its density, drawn to the right of its point, all models at one point to one scale.
    """
    counts = sorted(marginal["observations"].unique())
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 7.6), layout="constrained")
        axes = figure.subplots(3, 2, sharex=True, sharey=True).ravel()
        for _, rows in training.groupby("function"):
            rows = rows.sort_values("x")
            axes[0].plot(rows["x"], rows["y"], color="0.35", alpha=0.6, marker="o", markersize=2.5, linewidth=0.9)
        axes[0].set_title(f"{training['function'].nunique()} training functions")
        for ax, count in zip(axes[1:], counts, strict=False):
            rows = marginal[marginal["observations"] == count]
            for x, cells in rows.groupby("x"):
                _densities(ax, float(x), cells)
            seen = test[test["observed_from"] <= count]
            ax.plot(seen["x"], seen["y"], color="black", marker="o", markersize=5, linestyle="none")
            ax.set_title("prior" if count == 0 else f"posterior, {count} observation{'s' if count > 1 else ''}")
        points = sorted(training["x"].unique())
        axes[0].set_xlim(min(points) - 0.3, max(points) + 1.0)
        axes[0].set_ylim(-3.6, 3.6)
        axes[0].set_xticks(points)
        for ax in axes[::2]:
            ax.set_ylabel("f(x)")
        for ax in axes[-2:]:
            ax.set_xlabel("x")
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(title)
    return figure


def _densities(ax: Axes, x: float, cells: pd.DataFrame) -> None:
    height = np.linspace(-4, 4, 1601)
    first = not ax.get_legend_handles_labels()[1]
    curves = {row.model: norm.pdf(height, row.mean, row.variance**0.5) for row in cells.itertuples()}
    widest = max(curve.max() for curve in curves.values())
    ax.axvline(x, color="0.8", linewidth=0.6, zorder=0)
    for model, (label, colour, line) in MODELS.items():
        density = curves[model] / widest
        shown = density > 1e-3
        ax.plot(
            x + 0.85 * density[shown], height[shown], color=colour, linestyle=line, linewidth=1.3,
            label=label if first else None,
        )  # fmt: skip


GAPS = {
    "one_block": ("training loss of H-EKL − NLL, one block", "black", "-"),
    "eq6": ("control: EKL of Eq. 6 − NLL, one block", _EKL, "--"),
    "two_blocks": ("control: training loss of H-EKL − NLL, two blocks", "#ff7f0e", "-."),
}
"""Label, colour and line of each difference."""


def gap_panels(loss: pd.DataFrame, difference: pd.DataFrame, title: str) -> Figure:
    """Draw EKL training loss and NLL along one run, and how far each difference moves from its reference.

    `loss`: step, metric (ekl_one_block, nll_one_block, ...), value; `difference`: step, kind, value, expected.
    """
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        names = {"ekl_one_block": ("training loss of H-EKL", _EKL, "-"), "nll_one_block": ("NLL", _NLL, "--")}
        for metric, (label, colour, line) in names.items():
            rows = loss[loss["metric"] == metric]
            left.plot(rows["step"], rows["value"], color=colour, linestyle=line, label=label)
        left.set(xlabel="training step", ylabel="loss (nats)", title="both losses along one run")
        left.legend(frameon=False)
        for kind, (label, colour, line) in GAPS.items():
            rows = difference[difference["kind"] == kind]
            moved = rows["value"] - rows["expected"]
            right.plot(rows["step"], moved, color=colour, linestyle=line, label=label)
        right.set(xlabel="training step", ylabel="difference − its reference (nats)", title="differences")
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=1, frameon=False)
        figure.suptitle(title)
    return figure
