"""Problem (b) of HE-GP-UCB with candidates that share a length-scale: numbers and drawing (hegpucb_x05)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from metabo.metrics.inference import paired_difference
from metabo.papers.engine.claims.intervals import of_mean
from metabo.papers.hegpucb.figures import MEASURES, look
from metabo.papers.hegpucb.gates import OFTEN
from metabo.papers.hegpucb.studies.common import EACH
from metabo.plots import style

WRONG, CUMULATIVE = "wrong", "cumulative"
DRAWN = {WRONG: ("mle", "he_gp_ucb"), CUMULATIVE: ("mle", "expected_ucb", "he_gp_ucb", "gp_ucb")}
"""Methods of each panel. Random points would press the others together, and GP-UCB is given the candidate."""
LABELS = {WRONG: "queries that follow\na wrong period", CUMULATIVE: MEASURES[CUMULATIVE]}


def by_seed(run: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run: lengthscale, method, seed, share of queries with a wrong candidate (wrong), cumulative and
    simple regret at the last iteration. `run`: of study hegpucb_common."""
    keys = ["lengthscale", "method", "seed"]
    found = run.assign(wrong=run["u"] != run["truth"]).groupby(keys, sort=False)["wrong"].mean()
    last = run[run["iteration"] == run["iteration"].max()].set_index(keys)
    return last[["cumulative", "simple"]].join(found).reset_index()


def means(each: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over seeds with its 95 % interval: lengthscale, method, measure, mean, low, high, seeds."""
    rows = []
    for (lengthscale, method), own in each.groupby(["lengthscale", "method"], sort=False):
        for measure in (WRONG, CUMULATIVE, "simple"):
            mean, low, high = of_mean(own[measure].to_numpy(dtype=np.float64))
            numbers = {"mean": mean, "low": low, "high": high, "seeds": len(own)}
            rows.append({"lengthscale": lengthscale, "method": method, "measure": measure, **numbers})
    return pd.DataFrame(rows)


def differences(each: pd.DataFrame, reference: str = "he_gp_ucb") -> pd.DataFrame:
    """Return `reference` minus every other method, paired by seed: lengthscale, reference, method, measure, difference,
    low, high (95 % interval over seeds). Shares of wrong candidates are compared with MLE's alone."""
    rows = []
    for place, (lengthscale, own) in enumerate(each.groupby("lengthscale", sort=False)):
        for number, measure in enumerate((WRONG, CUMULATIVE, "simple")):
            wide = own.pivot(index="seed", columns="method", values=measure)
            others = ["mle"] if measure == WRONG else [m for m in dict.fromkeys(own["method"]) if m != reference]
            for method in others:
                pair = (wide[[name]].to_numpy(dtype=np.float64) for name in (reference, method))
                found = paired_difference(*pair, np.random.default_rng([place, number, len(rows)]), "fixed")
                key = {"lengthscale": lengthscale, "reference": reference, "method": method, "measure": measure}
                rows.append({**key, "difference": found.estimate, "low": found.low, "high": found.high})
    return pd.DataFrame(rows)


def followed(run: pd.DataFrame, methods: Sequence[str] = DRAWN[WRONG]) -> pd.DataFrame:
    """Return which candidate a method follows: lengthscale, method, u, share of queries."""
    own = run[run["method"].isin(methods)]
    counts = own.groupby(["lengthscale", "method"], sort=False)["u"].value_counts(normalize=True)
    return counts.rename("share").reset_index().sort_values(["lengthscale", "method", "u"], kind="stable")


def drops(run: pd.DataFrame) -> pd.DataFrame:
    """Return what HE-GP-UCB drops: lengthscale, wrong candidates (mean over runs), and the share of runs that drop the
    true one (true)."""
    own = run[run["method"] == "he_gp_ucb"]
    true = own["u"] == own["truth"]
    flags = own.assign(wrong=own["rejected"] & ~true, true=own["rejected"] & true)
    of_runs = flags.groupby(["lengthscale", "seed"], sort=False)[["wrong", "true"]].sum()
    return of_runs.groupby("lengthscale", sort=False).mean().reset_index()


def lengthscale_label(lengthscale: float) -> str:
    """Return what a shared length-scale is called on an axis and in a table."""
    return "one each" if lengthscale == EACH else f"{lengthscale:g}"


def written(table: pd.DataFrame, value: str, measure: str) -> pd.DataFrame:
    """Return the numbers of one measure as text with their intervals, a row per length-scale and a column per method.

    `table`: `means` (value "mean") or `differences` ("difference").
    """
    own = table[table["measure"] == measure]
    texts = [f"{row[value]:.3g} ({row['low']:.3g} to {row['high']:.3g})" for _, row in own.iterrows()]
    wide = own.assign(text=texts).pivot(index="lengthscale", columns="method", values="text")
    return wide[list(dict.fromkeys(own["method"]))].rename(index=lengthscale_label)


def shared_panels(numbers: pd.DataFrame, title: str, chosen: float) -> Figure:
    """Draw, by shared length-scale, the share of queries that follow a wrong period, and cumulative regret.

    `numbers`: `means`; hollow markers: candidates with a length-scale each (EACH); `chosen`: the length-scale of the
    true candidate, in bold.
    """
    places = {value: place for place, value in enumerate(dict.fromkeys(numbers["lengthscale"]))}
    with style.theme():
        figure = Figure(figsize=(style.WIDEST, 6.0), layout="constrained")
        panels = figure.subplots(2, 1, sharex=True)
        for ax, measure in zip(panels, DRAWN, strict=True):
            for place, method in enumerate(DRAWN[measure]):
                rows = numbers[(numbers["measure"] == measure) & (numbers["method"] == method)]
                _points(ax, method, rows, places, 0.13 * (place - (len(DRAWN[measure]) - 1) / 2))
            ax.axvline(places[EACH] + 0.5, color="0.6", linewidth=0.8)
            ax.set_ylabel(LABELS[measure])
            ax.grid(False, axis="x")
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        panels[0].axhline(OFTEN, color="0.3", linewidth=1.0, dashes=(1, 1.5))
        panels[1].set_xticks(list(places.values()), [lengthscale_label(value) for value in places])
        panels[1].get_xticklabels()[places[chosen]].set_fontweight("bold")
        panels[1].set_xlabel("length-scale that the candidates share")
        figure.legend(handles=_handles(), loc="outside lower center", ncols=2, frameon=False, handlelength=3.2)
        figure.suptitle(f"{title}:\nmeans and 95 % intervals, {numbers['seeds'].min()} seeds")
    return figure


def _points(ax: Axes, method: str, rows: pd.DataFrame, places: dict[float, int], shift: float) -> None:
    one = look(method)
    x = np.array([places[value] for value in rows["lengthscale"]]) + shift
    ax.vlines(x, rows["low"], rows["high"], color=one.colour, linewidth=1.5)
    shared = (rows["lengthscale"] != EACH).to_numpy()
    ax.plot(
        x[shared], rows["mean"][shared], color=one.colour, dashes=one.dashes or (None, None), linewidth=1.0,
        marker=one.marker, markersize=6,
    )  # fmt: skip
    ax.plot(
        x[~shared], rows["mean"][~shared], linestyle="none", color=one.colour, marker=one.marker, markersize=6,
        markerfacecolor="white", markeredgewidth=1.3,
    )  # fmt: skip


def _handles() -> list[Line2D]:
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, dashes=one.dashes or (None, None), label=one.label)
        for one in map(look, DRAWN[CUMULATIVE])
    ]
    hollow = {"linestyle": "none", "color": "0.3", "marker": "o", "markersize": 6, "markerfacecolor": "white"}
    handles.append(Line2D([], [], **hollow, label="hollow: a length-scale each (hegpucb_fig02)"))
    handles.append(Line2D([], [], color="0.3", dashes=(1, 1.5), linewidth=1.0, label="a tenth: often enough for G6"))
    return handles
