"""How far training goes (hyperbo_x12)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from metabo.papers.hyperbo.metrics.ladder import CONSTANT, DECAYING
from metabo.plots import style

PANELS = {"train_nll": "training NLL (nats)", "test_nll": "Test NLL (nats)", "area": "mean {regret}"}
LOOKS = {CONSTANT: ("#1f77b4", "o", "-"), DECAYING: ("#d62728", "^", "--")}


def ladder_panels(climbed: pd.DataFrame, random: float, gaps: pd.DataFrame, title: str, regret: str) -> Figure:
    """Draw one panel per metric against the steps of training: a mark per prior, and a line through the means of the
    rungs that have all priors (other priors have other losses at any step). The last panel has the regret of the first
    query minus Random's, with its 95 % interval, hollow where that contains 0.

    `climbed`: kind, steps, metric, prior_seed, value; `random`: the area of random search, a grey line; `gaps`:
    `metabo.papers.hyperbo.metrics.ladder.against_random`.
    """
    with style.theme():
        figure, axes = style.panels(len(PANELS) + 1, height=2.7)
        _first_queries(axes[-1], gaps[gaps["measure"] == "first query"], regret)
        for ax, (metric, label) in zip(axes, PANELS.items(), strict=False):
            own = climbed[climbed["metric"] == metric]
            for kind, (colour, marker, line) in LOOKS.items():
                rows = own[own["kind"] == kind]
                priors = rows.groupby("steps")["prior_seed"].nunique()
                means = rows.groupby("steps")["value"].mean()[priors == priors.max()]
                ax.plot(means.index, means, color=colour, linestyle=line, linewidth=1.4, label=kind)
                ax.plot(
                    rows["steps"], rows["value"], color=colour, marker=marker, linestyle="none", markersize=5, alpha=0.7
                )
            _steps_axis(ax, own["steps"])
            ax.set_ylabel(label.format(regret=regret))
            if metric == "area":
                ax.axhline(random, color="0.5", linewidth=1.0, dashes=(2, 2), label="Random")
                ax.set_ylim(bottom=0.0)
        handles, labels = axes[len(PANELS) - 1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(title)
    return figure


def _first_queries(ax: Axes, gaps: pd.DataFrame, regret: str) -> None:
    for kind, (colour, marker, _) in LOOKS.items():
        shift = 1.3 if kind == DECAYING else 1.0  # both kinds have rungs of as many steps
        for row in gaps[gaps["kind"] == kind].to_dict("records"):
            ax.vlines(shift * row["steps"], row["low"], row["high"], color=colour, linewidth=1.4)
            face = "white" if row["verdict"] == "undecided" else colour
            ax.plot(shift * row["steps"], row["difference"], color=colour, marker=marker, markerfacecolor=face)
    ax.axhline(0.0, color="0.5", linewidth=1.0, dashes=(2, 2))
    _steps_axis(ax, gaps["steps"])
    ax.set_ylabel(f"{regret} of the first\nquery minus Random's")


def _steps_axis(ax: Axes, steps: pd.Series) -> None:
    ax.set_xscale("log")
    ticks = sorted(steps.unique())
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=45, ha="right", fontsize="small")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("steps of Adam")
