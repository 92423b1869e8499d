"""Figures of MPHD: regret in panels of two settings, and priors from ever more data (Figures 5 to 14)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from metabo.plan.runs import method_of
from metabo.plots import look as looks
from metabo.plots import style
from metabo.plots.curves import FEWEST, asked, violin, violin_handles

LABELS = {
    "constant": ("constant mean", "mean c"),
    "lengthscale": ("length-scale", "shape a"),
    "variance": ("signal variance", "shape a"),
    "noise": ("noise variance", "shape a"),
}
"""Name of each GP parameter, and of the first number of its prior."""
OUTPUTS = {"linear": "mphd", "squashed": "mphd_squashed", "non_nn": "mphd_non_nn"}
"""Length-scale priors of Figure 6, and the method whose label and colour each has."""
LIMITS = {"squashed": "least with squashed output", "non_nn": "limit of one Gamma for all"}
"""What the dotted lines of Figure 6 are, with the output whose colour they have."""
LOGARITHMIC = ("noise",)
"""Parameters whose densities have a logarithmic axis: learned ones cling to 0."""
_FEW, _MANY, _MEAN, _TRUTH, _ESTIMATE = "#e69f00", "#0072b2", "#009e73", "black", "#56b4e9"


def regret_panels(
    curves: pd.DataFrame,
    title: str,
    headings: Mapping[str, str],
    regret: str = "normalised regret",
    over: str = "mean over spaces",
    distinct: pd.DataFrame | None = None,
) -> Figure:
    """Draw a grid of panels (rows: acquisition, columns: setting) of mean regret ∓ one standard deviation.

    `curves`: acquisition, panel, method, iteration, mean, low, high, seeds (their number). `headings`: title of each
    panel, in their order; `over`: what the regret is a mean over. `distinct`: method, distinct (mean number of
    different candidates of a run), for the legend, with a row for each panel. The panels of a row share their vertical
    axis (`style.regret_axis`), those of a single column too, as it compares acquisitions; a band that reaches 0 is cut
    at the axis.
    """
    together = len(headings) == 1
    acquisitions = list(dict.fromkeys(curves["acquisition"]))
    methods = list(dict.fromkeys(map(method_of, curves["method"])))
    with style.theme():
        size = (max(style.WIDEST, 0.7 + 4.1 * len(headings)), 1.3 + 2.7 * len(acquisitions))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(acquisitions), len(headings), sharey="all" if together else "row", squeeze=False)
        for row, acquisition in zip(axes, acquisitions, strict=True):
            mine = curves[curves["acquisition"] == acquisition]
            drawn = curves if together else mine
            for ax, (panel, heading) in zip(row, headings.items(), strict=True):
                style.regret_axis(ax, drawn[["mean", "high"]].to_numpy().ravel())
                _curves(ax, mine[mine["panel"] == panel])
                ax.set_title(f"{looks.ACQUISITIONS[acquisition]}, {heading}")
            row[0].set_ylabel(f"{regret},\n{over}")
        for ax in axes[-1]:
            ax.set_xlabel("BO iteration")
        seeds = " to ".join(map(str, sorted({int(curves["seeds"].min()), int(curves["seeds"].max())})))
        says = f"Bands: one standard deviation over {seeds} seed{'' if seeds == '1' else 's'}."
        shown = {} if distinct is None else distinct["distinct"].groupby(distinct["method"].map(method_of)).agg(list)
        notes, line = asked({str(method): numbers for method, numbers in shown.items()}, int(curves["iteration"].max()))
        style.legend(figure, methods, notes=notes, says=f"{says}\n{line}".rstrip())
        figure.suptitle(title)
    return figure


def _curves(ax: Axes, table: pd.DataFrame) -> None:
    last = int(table["iteration"].max())
    for method, rows in table.groupby("method", sort=False):
        x, mean, low, high = rows[["iteration", "mean", "low", "high"]].to_numpy().T
        style.line(ax, method_of(str(method)), x, mean, (np.maximum(low, 0.0), high))
    ax.set_xlim(1 - 0.02 * last, 1.02 * last)


def prior_panels(
    prior: pd.DataFrame,
    truth: pd.DataFrame,
    density: Mapping[str, pd.DataFrame],
    title: str,
    nll: pd.DataFrame | None = None,
) -> Figure:
    """Draw, in one row per parameter of `density`, the first number of its prior against the number of training
    domains, and the prior's density at the fewest and the most; last, the NLL of test data if given (Figures 5, 11).

    `prior`: train, seed, parameter, first; `truth`: parameter, first; `density`: parameter to train (0: truth), seed,
    x, density; `nll`: train, seed, value. Seeds as in `curves.violin`, line: mean over seeds.
    """
    rows = len(density) + (nll is not None)
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 2.3 * rows + 1.1), layout="constrained")
        grid = figure.add_gridspec(rows, 2)
        for row, (parameter, lines) in enumerate(density.items()):
            left, right = (figure.add_subplot(grid[row, column]) for column in range(2))
            name, number = LABELS[parameter]
            own = prior[prior["parameter"] == parameter]
            true = float(truth.loc[truth["parameter"] == parameter, "first"].iloc[0])
            grow(left, own.rename(columns={"train": "size", "first": "value"}), true, number.startswith("shape"))
            left.set(xlabel="training domains", ylabel=f"{number} of the prior", title=name)
            _densities(right, lines, parameter in LOGARITHMIC)
            right.set(xlabel=name, title=f"prior of the {name}")
        if nll is not None:
            left = figure.add_subplot(grid[-1, :])
            grow(left, nll.rename(columns={"train": "size"}), None, False)
            left.set(xlabel="training domains", ylabel="NLL (nats)", title="test data")
            _name_far(left, nll)
        sizes = prior.groupby(["parameter", "train"]).size()
        _legend(figure, violin_handles(sizes, _ESTIMATE, "seeds"))
        figure.suptitle(title)
    return figure


def grow(ax: Axes, table: pd.DataFrame, truth: float | None, log: bool) -> None:
    """Draw a violin of `value` at each `size`, in order and evenly spaced, the mean as a line, and the truth."""
    sizes = sorted(table["size"].unique())
    if log:
        ax.set_yscale("log")
    groups = [table.loc[table["size"] == size, "value"].to_numpy() for size in sizes]
    for place, values in enumerate(groups):
        violin(ax, place, values[np.isfinite(values)], _ESTIMATE)
    ax.plot(range(len(sizes)), [values.mean() for values in groups], color=_MEAN, linewidth=1.4, label="mean")
    if truth is not None:
        ax.axhline(truth, color=_TRUTH, linestyle="--", linewidth=1.1, label="truth")
    every = max(1, -(-len(sizes) // 8))
    ax.set_xticks(range(len(sizes))[::every], [str(size) for size in sizes[::every]])
    ax.set_xlim(-0.7, len(sizes) - 0.3)
    ax.grid(visible=False, axis="x")


def _name_far(ax: Axes, nll: pd.DataFrame) -> None:
    """End the axis of `grow` well above what most seeds have, and write above it what lies beyond: a prior of two
    domains may be worse by hundreds of nats, beside which no other number could be told apart."""
    groups = [values.to_numpy() for _, values in nll.groupby("train")["value"]]
    usual = [own for values in groups if len(own := values[np.isfinite(values)])]
    ends = np.array([np.percentile(own, [20, 80]) for own in usual])
    top = float(ends[:, 1].max() + 4.0 * np.ptp(ends, axis=1).max())
    if not any((values > top).any() for values in groups):
        return
    low = min(own.min() for own in usual)
    ax.set_title(ax.get_title(), pad=16)  # above the notes
    ax.set_ylim(low - 0.05 * (top - low), top)
    for place, values in enumerate(groups):
        far = [f"{value:.0f}" for value in np.sort(values[np.isfinite(values) & (values > top)])]
        far += ["∞"] * int(np.isinf(values).sum())
        if values.mean() > top:
            far.append(f"mean {values.mean():.0f}" if np.isfinite(values.mean()) else "mean ∞")
        if far:
            text = f"beyond: {', '.join(far)}"
            note = ax.text(place, top, text, ha="left", va="bottom", fontsize=7.5, clip_on=False)
            note.set_in_layout(False)


def _legend(figure: Figure, repetitions: list[Line2D]) -> None:
    """Put one legend of all lines that have a label below the panels, after the entries of the repetitions."""
    labels = {
        label: handle for ax in figure.axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles=[*repetitions, *labels.values()], loc="outside lower center", ncols=3, frameon=False)


def _densities(ax: Axes, lines: pd.DataFrame, log: bool) -> None:
    """Draw the densities; the axis ends above those of the truth and of the most domains, so others may be cut off.

    `log`: on a logarithmic axis, the density of the logarithm, x p(x), whose areas are probabilities there.
    """
    if log:
        lines = lines.assign(density=lines["x"] * lines["density"])
        ax.set_xscale("log")
    ax.set_ylabel("density of the logarithm" if log else "density")
    ends = [int(train) for train in sorted(lines["train"].unique()) if train]
    colours = dict(zip(ends, (_FEW, _MANY), strict=False))
    for (train, seed), own in lines[lines["train"] > 0].groupby(["train", "seed"]):
        label = f"{train} domains" if seed == lines["seed"].min() else None
        ax.plot(own["x"], own["density"], color=colours[int(train)], linewidth=0.9, alpha=0.8, label=label)
    true = lines[lines["train"] == 0]
    ax.plot(true["x"], true["density"], color=_TRUTH, linestyle="--", linewidth=1.4, label="truth")
    top = lines.loc[lines["train"].isin([0, ends[-1]]), "density"].max()
    ax.set(ylim=(0.0, 1.15 * top), xlim=(lines["x"].min(), lines["x"].max()))
    if not log:
        ax.locator_params(axis="x", nbins=3)


def divergence_panels(
    means: pd.DataFrame, limits: Mapping[str, float], grids: Mapping[str, Sequence[int]], title: str
) -> Figure:
    """Draw the divergence of each length-scale prior against the number of training domains, one panel per grid.

    `means`: output, train, seed, kl; `limits`: output to the divergence that it cannot pass, or ends at (dotted);
    `grids`: title of a panel to the numbers of domains that it shows, a band for each. Seeds as in `curves.violin`,
    line: mean over seeds. Logarithmic axis.
    """
    outputs = [output for output in OUTPUTS if output in set(means["output"])]
    shift = dict(zip(outputs, 0.27 * (np.arange(len(outputs)) - (len(outputs) - 1) / 2), strict=True))
    with style.theme():
        figure, axes = style.panels(len(grids), 3.3, below=1.7, share=True)
        for ax, (heading, grid) in zip(axes, grids.items(), strict=True):
            ax.set_yscale("log")
            for place in range(0, len(grid), 2):
                ax.axvspan(place - 0.5, place + 0.5, color="0.95", linewidth=0, zorder=0)
            for output in outputs:
                look, own = looks.of(OUTPUTS[output]), means[means["output"] == output]
                groups = [own.loc[own["train"] == train, "kl"].to_numpy() for train in grid]
                places = np.arange(len(grid)) + shift[output]
                for place, values in zip(places, groups, strict=True):
                    violin(ax, place, values, look.colour, look.marker, 0.13, 6.5)
                ax.plot(
                    places, [v.mean() for v in groups], color=look.colour, dashes=look.dashes or (None, None),
                    linewidth=1.0, alpha=0.8, zorder=1,
                )  # fmt: skip
                if output in limits:
                    ax.axhline(limits[output], color=look.colour, linestyle=":", linewidth=1.4, zorder=1)
            ax.set_xticks(range(len(grid)), [str(train) for train in grid])
            ax.set_xlim(-0.5, len(grid) - 0.5)
            ax.grid(visible=False, axis="x")
            ax.set(xlabel="training domains", title=heading)
        shown = pd.concat([means["kl"], pd.Series(list(limits.values()))])
        axes[0].set_ylim(shown.min() / 1.3, shown.max() * 1.3)
        style.plain_ticks(axes[0], *axes[0].get_ylim())
        axes[0].set_ylabel("mean KL(truth ‖ prior) (nats)")
        sizes = means.groupby(["output", "train"]).size()
        handles = [_mean_handle(OUTPUTS[output], int(sizes.min()) < FEWEST) for output in outputs]
        handles += [
            Line2D([], [], color=looks.of(OUTPUTS[output]).colour, linestyle=":", linewidth=1.4, label=LIMITS[output])
            for output in outputs if output in limits
        ]  # fmt: skip
        handles += violin_handles(sizes, "0.3", "seeds")
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, handlelength=3.2)
        figure.suptitle(title)
    return figure


def _mean_handle(method: str, dots: bool) -> Line2D:
    """Return the entry of a method's mean over seeds, with its symbol where seeds are `dots`."""
    look = looks.of(method)
    return Line2D(
        [], [], color=look.colour, dashes=look.dashes or (None, None), marker=look.marker if dots else "none",
        markersize=5, label=f"{look.label}, mean",
    )  # fmt: skip


def single_panels(estimate: pd.DataFrame, truth: pd.DataFrame, title: str) -> Figure:
    """Draw the estimates of each parameter of a single GP against the number of sub-datasets (Figure 10).

    `estimate`: functions, run, parameter, value; `truth`: parameter, value. Variances have a logarithmic axis.
    """
    order = ("lengthscale", "constant", "variance", "noise")
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 5.6), layout="constrained")
        for ax, parameter in zip(figure.subplots(2, 2).ravel(), order, strict=True):
            own = estimate[estimate["parameter"] == parameter].rename(columns={"functions": "size"})
            true = float(truth.loc[truth["parameter"] == parameter, "value"].iloc[0])
            grow(ax, own, true, parameter in ("variance", "noise"))
            ax.set(xlabel="sub-datasets", ylabel="estimate", title=LABELS[parameter][0])
        sizes = estimate.groupby(["parameter", "functions"]).size()
        _legend(figure, violin_handles(sizes, _ESTIMATE, "runs"))
        figure.suptitle(title)
    return figure
