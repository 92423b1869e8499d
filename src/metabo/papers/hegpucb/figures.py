"""Figures of HE-GP-UCB's studies: regret on the four problems, sensitivity grid, robust queries, pre-trained priors."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from metabo.plots import look as looks
from metabo.plots import style
from metabo.plots.curves import asked
from metabo.plots.look import Look

RULES = {
    "mle": Look("MLE", "#0072b2", "s", (4, 1.5)),
    "expected_ucb": Look("ExpectedUCB", "#e69f00", "^", (1, 1.2)),
    "a_gp_ucb": Look("A-GP-UCB", "#009e73", "D", (6, 1.5, 1, 1.5)),
    "he_gp_ucb": Look("HE-GP-UCB", "#d62728", "o", ()),
    "gp_ucb": Look("GP-UCB, true candidate", "#000000", "*", (10, 2.5)),
    "uniform": Look("random points", "#7f7f7f", "v", (2, 2)),
    "he_stable_opt": Look("HE-StableOpt", "#d62728", "o", ()),
    "stable_opt": Look("StableOpt, longest length-scale", "#000000", "*", (10, 2.5)),
    "mle_stable_opt": Look("StableOpt, likeliest length-scale", "#0072b2", "s", (4, 1.5)),
}
"""Looks of the rules of `metabo.methods.elimination.rules`, which no benchmark registers."""
SINGLES = {
    "single_mean": Look("single prior, mean", "#7f7f7f", "v", (2, 2)),
    "single_best": Look("single prior, best of the set", "#009e73", "D", (6, 1.5, 1, 1.5)),
    "single_worst": Look("single prior, worst of the set", "#e69f00", "^", (1, 1.2)),
}
"""Single priors beside the methods that choose among them (`metabo.papers.hegpucb.metrics`)."""
PROBLEMS = {
    "lengthscale": "(a) length-scale",
    "period": "(b) period",
    "decomposition": "(c) decomposition",
    "mean": "(d) mean",
}
PROFILES = {
    "figure": "constant β, chosen by the paper's axes",
    "plain": "constants of the repaired theorems",
    "successor": "settings of the later code",
}
MEASURES = {"simple": "simple regret", "cumulative": "cumulative regret", "reported": "regret of the reported point"}
PRINTED = {"color": "0.45", "linewidth": 2.5, "solid_capstyle": "butt"}
"""Mark of what the paper's axis spans."""
COMPARISONS = {"lower": "#0072b2", "undecided": "0.75", "higher": "#d55e00"}
SETTINGS = ["variant", "beta", "noise", "standardise", "predictive", "height", "width"]
"""Of a cell of the study of sensitivity."""


def look(name: str) -> Look:
    """Return the look of a rule, a summary of single priors, or a registered method. Raises ConfigError."""
    own = RULES | SINGLES
    return own[name] if name in own else looks.of(name)


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Replace names by labels in the columns and the index that hold methods, and in the names of columns, for
    display."""

    def label(name: str) -> str:
        return look(name).label

    methods = set(table.columns) if table.columns.name == "method" else set(table.columns) & RULES.keys()
    named = {c: [label(str(name)) for name in table[c]] for c in ("method", "reference") if c in table}
    shown = table.assign(**named).rename(columns=lambda name: label(name) if name in methods else name)
    return shown.rename(index=label) if table.index.name == "method" else shown


def _line(ax: Axes, name: str, rows: pd.DataFrame, low: str, high: str) -> None:
    one = look(name)
    x = rows["iteration"].to_numpy()
    ax.plot(
        x, rows["mean"], label=one.label, color=one.colour, dashes=one.dashes or (None, None), linewidth=1.5,
        marker=one.marker, markevery=style.marks(len(x), len(ax.lines)), markersize=4, markeredgecolor="white",
        markeredgewidth=0.4,
    )  # fmt: skip
    ax.fill_between(x, rows[low], rows[high], color=one.colour, alpha=0.15, linewidth=0)


def _legend(
    figure: Figure,
    names: list[str],
    columns: int,
    others: Sequence[Line2D] = (),
    distinct: pd.DataFrame | None = None,
) -> None:
    """Put a legend below the panels; with `distinct`, it says how many different points a method's runs query."""
    notes, line = {}, ""
    if distinct is not None:
        counts = distinct.groupby("method")["distinct"].agg(list)
        numbers = {str(method): values for method, values in counts.items()}
        least, most = (int(end) for end in distinct["queries"].agg(["min", "max"]))
        each = "panels but (c)" if "problem" in distinct else "panels"
        notes, line = asked(numbers, most, each, "points", least)
    handles = [
        Line2D(
            [], [], color=o.colour, marker=o.marker, markersize=5, dashes=o.dashes or (None, None),
            label=o.label + (f" ({notes[name]})" if name in notes else ""),
        )
        for name, o in zip(names, map(look, names), strict=True)
    ]  # fmt: skip
    figure.legend(
        handles=[*handles, *others], loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2,
        title=line or None, title_fontsize="small",
    )  # fmt: skip


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
        _legend(figure, list(dict.fromkeys(own["method"])), 2, handles, asked_for)
        figure.suptitle(f"{title}:\n{PROFILES[profile]}")
    return figure


def _regret_panel(ax: Axes, mine: pd.DataFrame, printed: tuple[float, float]) -> None:
    for method, rows in mine.groupby("method", sort=False):
        _line(ax, str(method), rows, "low", "high")
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
                _line(ax, str(method), rows, "low", "high")
            ax.set_ylim(bottom=0.0)
            ax.set(xlabel="iteration", ylabel=f"ε-regret: {measure}")
        _legend(figure, methods, 2, distinct=distinct)
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
            _line(mean, str(method), rows, "low", "high")
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
        _legend(figure, methods, 2, distinct=distinct)
        figure.suptitle(title)
    return figure
