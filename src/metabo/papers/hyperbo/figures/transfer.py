"""A pre-trained GP in one dimension: priors while it trains, priors and posteriors (hyperbo Figures 1, 6)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from metabo.plots import style

LABELS = {"truth": "ground truth", "pretrained": "pre-trained", "single_task": "single-task"}
_BANDS = ((2.5758293035489004, 0.18), (1.959963984540054, 0.25))
"""Half-widths of the 99 % and 95 % intervals in standard deviations, and how opaque they are."""
_SEEN = 1.0 - (1.0 - _BANDS[0][1]) * (1.0 - _BANDS[1][1])
"""How opaque the 95 % interval looks, which is drawn over the 99 % interval."""
_BLUE = "#1f77b4"
_TRAINING = "#b35900"
"""One colour for all training functions: several would be those of methods in other figures."""


def pretraining_panels(function: pd.DataFrame, band: pd.DataFrame, sample: pd.DataFrame, title: str) -> Figure:
    """Draw the pre-trained prior at successive steps with the training functions, then posteriors of the test function.

    `function`: kind (training, test, observed), function, x, y; `band`: kind (prior, posterior), model, step, x, mean,
    std; `sample`: kind, model, step, draw, x, y.
    """
    priors = band[(band["kind"] == "prior") & (band["model"] == "pretrained")]
    panels = [("prior", "pretrained", step, f"prior, step {step}") for step in sorted(priors["step"].unique())]
    last = int(priors["step"].max())
    panels.append(("posterior", "pretrained", last, "posterior, pre-trained"))
    panels.append(("posterior", "single_task", last, "posterior, without pre-training"))
    return _grid(panels, function, band, sample, title)


def comparison_panels(function: pd.DataFrame, band: pd.DataFrame, sample: pd.DataFrame, title: str) -> Figure:
    """Draw priors (left) and posteriors (right) of truth, pre-trained and single-task GP. Tables as above."""
    last = int(band["step"].max())
    panels = [(kind, m, last, f"{kind}, {LABELS[m]}") for m in LABELS for kind in ("prior", "posterior")]
    return _grid(panels, function, band, sample, title)


def _grid(
    panels: list[tuple[str, str, int, str]],
    function: pd.DataFrame,
    band: pd.DataFrame,
    sample: pd.DataFrame,
    title: str,
) -> Figure:
    """Draw panels, each of a kind, a model, a training step and a heading."""
    with style.theme():
        rows = -(-len(panels) // style.COLUMNS)
        figure = Figure(figsize=(style.WIDEST, 2.2 * rows + 1.2), layout="constrained")
        axes = figure.subplots(rows, style.COLUMNS, sharex=True, sharey=True)
        for ax, (kind, model, step, heading) in zip(axes.ravel(), panels, strict=False):
            chosen: dict[str, str | int] = {"kind": kind, "model": model, "step": step}
            _gaussian_process(ax, _rows(band, chosen), _rows(sample, chosen))
            _functions(ax, function, kind)
            ax.set_title(heading)
        for ax in axes.ravel()[len(panels) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("f(x)")
        for ax in axes[-1]:
            ax.set_xlabel("x")
        # the functions decide the range: a single-task prior may have a standard deviation of any size
        low, high = function["y"].min(), function["y"].max()
        axes[0, 0].set_ylim(low - 0.35 * (high - low), high + 0.35 * (high - low))
        axes[0, 0].set_xlim(function["x"].min(), function["x"].max())
        handles = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
        handles |= dict(zip(*reversed(axes[-1, -1].get_legend_handles_labels()), strict=True))
        handles["95 % interval"] = Patch(color=_BLUE, alpha=_SEEN, linewidth=0)
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(title)
    return figure


def _rows(table: pd.DataFrame, chosen: dict[str, str | int]) -> pd.DataFrame:
    return table[(table[list(chosen)] == pd.Series(chosen)).all(axis=1)]


def _gaussian_process(ax: Axes, band: pd.DataFrame, sample: pd.DataFrame) -> None:
    x, mean, std = (band[c].to_numpy() for c in ("x", "mean", "std"))
    for (width, alpha), label in zip(_BANDS, ("99 % interval", "95 % interval"), strict=True):
        ax.fill_between(x, mean - width * std, mean + width * std, color=_BLUE, alpha=alpha, linewidth=0, label=label)
    for number, rows in sample.groupby("draw"):
        label = "samples of the GP" if number == 0 else None
        ax.plot(rows["x"], rows["y"], color="0.35", linestyle=":", linewidth=0.9, label=label)
    ax.plot(x, mean, color=_BLUE, linewidth=1.6, label="mean")


def _functions(ax: Axes, function: pd.DataFrame, kind: str) -> None:
    if kind == "prior":
        for number, rows in function[function["kind"] == "training"].groupby("function"):
            label = "training functions" if number == 0 else None
            ax.plot(rows["x"], rows["y"], color=_TRAINING, linewidth=1.0, label=label)
        return
    test, seen = function[function["kind"] == "test"], function[function["kind"] == "observed"]
    ax.plot(test["x"], test["y"], color="black", linewidth=1.0, label="test function")
    ax.plot(seen["x"], seen["y"], color="black", marker="o", markersize=5, linestyle="none", label="observations")
