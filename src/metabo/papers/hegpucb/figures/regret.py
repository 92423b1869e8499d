"""Regret on the four problems of HE-GP-UCB (hegpucb Figure 2)."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from metabo.papers.hegpucb.figures.looks import MEASURES, PROBLEMS, PROFILES, legend, line, look
from metabo.plots import style

PRINTED = {"color": "0.45", "linewidth": 2.5, "solid_capstyle": "butt"}
"""Mark of what the paper's axis spans."""


def regret_panels(
    curves: pd.DataFrame,
    left: pd.DataFrame,
    ticks: Mapping[str, Mapping[str, tuple[float, float]]],
    profile: str,
    title: str,
    distinct: pd.DataFrame | None = None,
) -> Figure:
    """Draw Figure 2 under one profile: simple (top) and cumulative regret of each problem, mean ± s.e., and below them
    the candidates that HE-GP-UCB has left, mean and least. Two problems stand side by side, the next two below them.

    `curves`: problem, profile, method, iteration, measure, mean, error; `left`: problem, profile, iteration, alive,
    least; `ticks`: first and last tick label of the paper's axis, by problem and measure, marked at the right;
    `distinct`: problem, profile, method, distinct, queries (`metabo.papers.hegpucb.studies.summaries.distinct`), for
    the legend.
    """
    asked_for = None if distinct is None else distinct[distinct["profile"] == profile]
    own = curves[curves["profile"] == profile]
    own = own.assign(low=own["mean"] - own["error"], high=own["mean"] + own["error"])
    problems = list(dict.fromkeys(own["problem"]))
    blocks = [problems[place : place + style.COLUMNS] for place in range(0, len(problems), style.COLUMNS)]
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 4.6 * len(blocks) + 1.6), layout="constrained")
        grid = figure.add_gridspec(3 * len(blocks), len(blocks[0]), height_ratios=(3, 3, 1.6) * len(blocks))
        for block, members in enumerate(blocks):
            for column, problem in enumerate(members):
                simple, cumulative, alive = (figure.add_subplot(grid[3 * block + row, column]) for row in range(3))
                for ax, measure in ((simple, "simple"), (cumulative, "cumulative")):
                    mine = own[(own["problem"] == problem) & (own["measure"] == measure)]
                    _regret_panel(ax, mine, ticks[problem][measure])
                    ax.set_ylabel(MEASURES[measure] if column == 0 else "")
                simple.set_title(PROBLEMS[problem])
                _left_panel(alive, left[(left["profile"] == profile) & (left["problem"] == problem)])
                alive.set_ylabel("candidates\nleft" if column == 0 else "")
        handles = [
            Line2D([], [], **PRINTED, label="paper's axis, first to last label"),
            Line2D([], [], color="0.3", linewidth=1.5, label="candidates left: mean"),
            Line2D([], [], color="0.3", linewidth=1.0, dashes=(1, 1.2), label="fewest in a run"),
        ]
        legend(figure, list(dict.fromkeys(own["method"])), 2, handles, asked_for)
        figure.suptitle(f"{title}:\n{PROFILES[profile]}")
    return figure


def _regret_panel(ax: Axes, mine: pd.DataFrame, printed: tuple[float, float]) -> None:
    for method, rows in mine.groupby("method", sort=False):
        line(ax, str(method), rows, "low", "high")
    # Random points would press the others together: their regret leaves the panel.
    highest = 1.05 * max(mine.loc[mine["method"] != "uniform", "high"].max(), printed[1])
    ax.set_ylim(-0.03 * highest, highest)  # a regret of 0 is not hidden by the axis
    ax.plot([1.02, 1.02], printed, transform=ax.get_yaxis_transform(), clip_on=False, **PRINTED)
    equal = one_line(mine, 0.0)
    alike = [
        (" =\n" if names in equal else " ≈\n").join(look(name).label for name in names)
        for names in one_line(mine, 0.01 * highest)
    ]
    if alike:  # where curves of this measure leave room; the panel's width does not make room for the text
        words = "\n\n".join(alike).splitlines()
        place = style.free_height(
            mine, (-0.03 * highest, highest), 0.03 * max(map(len, words)), 0.095 * len(words),
            above=set(mine["measure"]) != {"cumulative"},
        )  # fmt: skip
        note = ax.text(
            0.98, place, "\n".join(words), transform=ax.transAxes, ha="right", va="bottom", fontsize=7.5, color="0.2",
            zorder=1.5,
        )  # fmt: skip
        note.set_in_layout(False)


def one_line(curves: pd.DataFrame, within: float) -> list[list[str]]:
    """Return the methods whose means are nowhere further than `within` apart, so that they look like one line.

    `curves`: method, iteration, mean. Methods that coincide with none are left out.
    """
    means = curves.pivot(index="iteration", columns="method", values="mean")
    groups: list[list[str]] = []
    for method in map(str, dict.fromkeys(curves["method"])):
        near = [group for group in groups if (means[group[0]] - means[method]).abs().max() <= within]
        if near:
            near[0].append(method)
        else:
            groups.append([method])
    return [group for group in groups if len(group) > 1]


def _left_panel(ax: Axes, rows: pd.DataFrame) -> None:
    colour = look("he_gp_ucb").colour
    ax.plot(rows["iteration"], rows["alive"], color=colour, linewidth=1.5)
    ax.plot(rows["iteration"], rows["least"], color=colour, linewidth=1.0, dashes=(1, 1.2))
    ax.set_ylim(0.0, 1.08 * rows["alive"].max())
    ax.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    ax.set_xlabel("iteration")
