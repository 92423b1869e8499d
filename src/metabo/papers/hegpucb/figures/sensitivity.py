"""How far HE-GP-UCB depends on what the paper leaves open (hegpucb_x02)."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from metabo.papers.hegpucb.figures.looks import PROBLEMS, look
from metabo.plots import style

COMPARISONS = {"lower": "#0072b2", "undecided": "0.75", "higher": "#d55e00"}
SETTINGS = ["variant", "beta", "noise", "standardise", "predictive", "height", "width"]
"""Of a cell of the study of sensitivity."""


def sensitivity_panels(orders: pd.DataFrame, means: pd.DataFrame, title: str) -> Figure:
    """Draw, per problem, the cumulative regret of HE-GP-UCB minus that of every other method in every cell, as a share
    of the other's mean, with 95 % intervals; the cells' settings are the labels.

    `orders`: problem, cell, method, measure, difference, low, high, verdict; `means`: problem, cell, the settings,
    method, measure, mean.
    """
    own = orders[orders["measure"] == "cumulative"]
    own = own.merge(
        means[["problem", "cell", "method", "measure", "mean"]], on=["problem", "cell", "method", "measure"]
    )
    # The regret of a cell depends on its variant and height: only shares of it fit on one axis.
    own = own.assign(**{name: own[name] / own["mean"] for name in ("difference", "low", "high")})
    problems = list(dict.fromkeys(own["problem"]))
    counts = {p: own.loc[own["problem"] == p, "cell"].nunique() for p in problems}
    with style.theme():
        figure = Figure(
            figsize=(style.WIDEST, 1.6 + 0.9 * len(problems) + 0.2 * sum(counts.values())), layout="constrained"
        )
        grid = figure.add_gridspec(len(problems), 1, height_ratios=list(counts.values()))
        for number, problem in enumerate(problems):
            ax = figure.add_subplot(grid[number])
            mine = own[own["problem"] == problem]
            methods = list(dict.fromkeys(mine["method"]))
            for place, method in enumerate(methods):
                rows, one = mine[mine["method"] == method], look(method)
                y = rows["cell"] + 0.4 * (place / max(len(methods) - 1, 1) - 0.5)
                colours = [COMPARISONS[v] for v in rows["verdict"]]
                ax.hlines(y, rows["low"], rows["high"], colors=colours, linewidth=1.6)
                ax.scatter(rows["difference"], y, c=colours, marker=one.marker, s=18, zorder=3)
            ax.axvline(0.0, color="black", linewidth=0.8)
            settings = means[means["problem"] == problem].drop_duplicates("cell").sort_values("cell")
            labels = [cell_label(*row) for row in settings[SETTINGS].itertuples(index=False, name=None)]
            ax.set_yticks(settings["cell"], labels, fontsize=9)
            first = settings["cell"].iloc[0]
            ax.set_ylim(first + counts[problem] - 0.4, first - 0.6)
            ax.set(title=PROBLEMS[problem], xlabel="relative difference")
            ax.locator_params(axis="x", nbins=5)
        methods = list(dict.fromkeys(own["method"]))
        handles = [
            Line2D([], [], linestyle="none", color="0.3", marker=look(m).marker, label=f"against {look(m).label}")
            for m in methods
        ]
        handles += [Line2D([], [], color=c, linewidth=2, label=f"HE-GP-UCB {v}") for v, c in COMPARISONS.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(COMPARISONS), frameon=False)
        figure.suptitle(title)
    return figure


def cell_label(
    variant: str, beta: float, noise: float, standardise: float, predictive: float, height: float, width: float
) -> str:
    """Return the settings of a cell in short; those that its problem does not have are left out."""
    parts = [f"β = {beta:g}" if beta else "β of the theorem"]
    parts += [f"λ = {noise:g}", "stand." if standardise else "raw"]
    parts += ["σ with noise"] if predictive else []
    parts += [f"h = {height:g}", f"w = {width:g}"] if height else []
    # The first variant of each problem is the default, which every other cell has.
    return ", ".join([*([variant] if variant not in ("code", "whole", "hills") else []), *parts])
