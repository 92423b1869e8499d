"""What rules, problems and profiles of HE-GP-UCB are called and look like, their lines and legends."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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


def line(ax: Axes, name: str, rows: pd.DataFrame, low: str, high: str) -> None:
    """Draw a method's mean over iterations with its band. `rows`: iteration, mean, and the columns `low` and `high`."""
    one = look(name)
    x = rows["iteration"].to_numpy()
    ax.plot(
        x, rows["mean"], label=one.label, color=one.colour, dashes=one.dashes or (None, None), linewidth=1.5,
        marker=one.marker, markevery=style.marks(len(x), len(ax.lines)), markersize=4, markeredgecolor="white",
        markeredgewidth=0.4,
    )  # fmt: skip
    ax.fill_between(x, rows[low], rows[high], color=one.colour, alpha=0.15, linewidth=0)


def legend(
    figure: Figure,
    names: list[str],
    columns: int,
    others: Sequence[Line2D] = (),
    distinct: pd.DataFrame | None = None,
) -> None:
    """Put a legend below the panels; with `distinct`, it says how many different points a method's runs query."""
    notes, said = {}, ""
    if distinct is not None:
        counts = distinct.groupby("method")["distinct"].agg(list)
        numbers = {str(method): values for method, values in counts.items()}
        least, most = (int(end) for end in distinct["queries"].agg(["min", "max"]))
        each = "panels but (c)" if "problem" in distinct else "panels"
        notes, said = asked(numbers, most, each, "points", least)
    handles = [
        Line2D(
            [], [], color=o.colour, marker=o.marker, markersize=5, dashes=o.dashes or (None, None),
            label=o.label + (f" ({notes[name]})" if name in notes else ""),
        )
        for name, o in zip(names, map(look, names), strict=True)
    ]  # fmt: skip
    figure.legend(
        handles=[*handles, *others], loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2,
        title=said or None, title_fontsize="small",
    )  # fmt: skip
