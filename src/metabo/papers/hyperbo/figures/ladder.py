"""How far training goes (hyperbo_x12)."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from metabo.papers.hyperbo.metrics.ladder import CONSTANT, DECAYING
from metabo.plots import style

PANELS = {"train_nll": "training NLL (nats)", "test_nll": "Test NLL (nats)", "area": "mean {regret}"}
LOOKS = {CONSTANT: ("#1f77b4", "o", "-"), DECAYING: ("#d62728", "^", "--")}


def ladder_panels(climbed: pd.DataFrame, random: float, title: str, regret: str) -> Figure:
    """Draw one panel per metric against the steps of training: a mark per prior, and a line through the means of the
    rungs that have all priors (other priors have other losses at any step).

    `climbed`: kind, steps, metric, prior_seed, value; `random`: the area of random search, a grey line.
    """
    with style.theme():
        figure, axes = style.panels(len(PANELS), height=2.7)
        for ax, (metric, label) in zip(axes, PANELS.items(), strict=True):
            own = climbed[climbed["metric"] == metric]
            for kind, (colour, marker, line) in LOOKS.items():
                rows = own[own["kind"] == kind]
                priors = rows.groupby("steps")["prior_seed"].nunique()
                means = rows.groupby("steps")["value"].mean()[priors == priors.max()]
                ax.plot(means.index, means, color=colour, linestyle=line, linewidth=1.4, label=kind)
                ax.plot(
                    rows["steps"], rows["value"], color=colour, marker=marker, linestyle="none", markersize=5, alpha=0.7
                )
            ax.set_xscale("log")
            ticks = sorted(own["steps"].unique())
            ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=45, ha="right", fontsize="small")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set(xlabel="steps of Adam", ylabel=label.format(regret=regret))
            if metric == "area":
                ax.axhline(random, color="0.5", linewidth=1.0, dashes=(2, 2), label="Random")
                ax.set_ylim(bottom=0.0)
        handles, labels = axes[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(title)
    return figure
