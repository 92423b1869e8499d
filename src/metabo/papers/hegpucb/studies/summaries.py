"""Numbers that the figures of HE-GP-UCB report, from the tables of its studies alone (hegpucb §7; claims G2 to G8, G10,
G11, G15, G16)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.metrics.inference import paired_difference
from metabo.papers.hegpucb.problems import lengthscale_function

QUANTITIES = ("simple", "cumulative")
PANEL = ["problem", "profile"]
EDGE, LAST = 0.95, 20
"""G5: a run is stuck if its last 20 queries have x >= 0.95 in (a), whose best point is near 0.2."""
SEVERAL_INPUTS = "decomposition"
"""Problem (c), the one with more than one input."""
EARLY, LATE = 15, 50
"""G8: iterations at which panel (c) is compared."""
TICKS = {
    "lengthscale": {"simple": (0.05, 0.15), "cumulative": (2.0, 4.0)},
    "period": {"simple": (0.2, 0.6), "cumulative": (5.0, 10.0)},
    "decomposition": {"simple": (1.0, 2.0), "cumulative": (20.0, 40.0)},
    "mean": {"simple": (1.0, 2.0), "cumulative": (40.0, 80.0)},
}
"""First and last tick label of the axes of the paper's Figure 2."""


def curves(run: pd.DataFrame, keys: Sequence[str] = PANEL) -> pd.DataFrame:
    """Return the mean over seeds of simple and cumulative regret and its standard error (Figure 2).

    `run`: the keys, method, seed, iteration, simple, cumulative. Columns: keys, method, iteration, measure, mean,
    error.
    """
    groups = run.groupby([*keys, "method", "iteration"], sort=False)
    parts = []
    for quantity in QUANTITIES:
        values = groups[quantity]
        table = pd.DataFrame({"mean": values.mean(), "error": values.std(ddof=1) / np.sqrt(values.count())})
        parts.append(table.reset_index().assign(measure=quantity))
    return pd.concat(parts, ignore_index=True)


def last(run: pd.DataFrame, keys: Sequence[str] = PANEL) -> pd.DataFrame:
    """Return the rows of the last iteration of every panel."""
    return run[run["iteration"] == run.groupby(list(keys))["iteration"].transform("max")]


def endings(run: pd.DataFrame, keys: Sequence[str] = PANEL) -> pd.DataFrame:
    """Return the curves' last points, the number of candidates dropped (mean and largest), and of runs."""
    ends = curves(last(run, keys), keys)
    groups = [*keys, "method"]
    dropped = run.groupby([*groups, "seed"], sort=False)["rejected"].sum().groupby(groups, sort=False)
    counts = pd.DataFrame({"dropped": dropped.mean(), "most": dropped.max(), "runs": dropped.count()}).reset_index()
    return ends.merge(counts, on=groups)


def differences(
    ending: pd.DataFrame, keys: Sequence[str] = PANEL, reference: str = "he_gp_ucb", seed: int = 0
) -> pd.DataFrame:
    """Return the regret of `reference` minus that of every other method, paired by seed, with a 95 % interval
    (over seeds, `paired_difference`) and the verdict: "lower" or "higher" if the interval is, else "undecided".

    `ending`: keys, method, seed, simple, cumulative, one row a run. Columns: keys, reference, method, measure,
    difference, low, high, verdict.
    """
    rows = []
    for place, (panel, own) in enumerate(ending.groupby(list(keys), sort=False)):
        for quantity in QUANTITIES:
            wide = own.pivot(index="seed", columns="method", values=quantity)
            for method in [m for m in dict.fromkeys(own["method"]) if m != reference]:
                rng = np.random.default_rng([seed, place, len(rows)])
                pair = (wide[[name]].to_numpy() for name in (reference, method))
                found = paired_difference(*pair, rng, "fixed")
                verdict = "lower" if found.high < 0 else "higher" if found.low > 0 else "undecided"
                key = dict(zip(keys, panel, strict=True)) | {"reference": reference, "method": method}
                numbers = {"difference": found.estimate, "low": found.low, "high": found.high}
                rows.append({**key, "measure": quantity, **numbers, "verdict": verdict})
    return pd.DataFrame(rows)


def comparisons(ending: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return `differences` of HE-GP-UCB from every other method, then of ExpectedUCB from MLE (G10), and in (a) of
    A-GP-UCB from both (G3)."""
    among = {"expected_ucb": ("expected_ucb", "mle"), "a_gp_ucb": ("a_gp_ucb", "mle", "expected_ucb")}
    parts = [differences(ending, seed=seed)]
    for reference, methods in among.items():
        own = ending[ending["method"].isin(methods)]
        known = own.groupby(PANEL)["method"].transform(lambda names, one=reference: (names == one).any())
        parts.append(differences(own[known], reference=reference, seed=seed))
    return pd.concat(parts, ignore_index=True)


def nearly_equal(ending: pd.DataFrame, share: float = 0.2) -> pd.DataFrame:
    """Return how far HE-GP-UCB and A-GP-UCB are apart, as a share of the regret of MLE (G3: at most 20 %).

    Columns: profile, measure, he_gp_ucb, a_gp_ucb, mle (means), apart, agrees (1 or 0).
    """
    rows = []
    for profile, own in ending[ending["problem"] == "lengthscale"].groupby("profile", sort=False):
        for quantity in QUANTITIES:
            means = {m: own.loc[own["method"] == m, quantity].mean() for m in ("he_gp_ucb", "a_gp_ucb", "mle")}
            apart = abs(means["he_gp_ucb"] - means["a_gp_ucb"]) / means["mle"]
            rows.append({"profile": profile, "measure": quantity, **means, "apart": apart, "agrees": apart <= share})
    return pd.DataFrame(rows)


def choices(run: pd.DataFrame) -> pd.DataFrame:
    """Return which candidate each method follows: problem, profile, method, iteration, u, fraction of seeds."""
    counts = run.groupby([*PANEL, "method", "iteration"], sort=False)["u"].value_counts(normalize=True)
    return counts.rename("fraction").reset_index().sort_values([*PANEL, "method", "iteration", "u"], kind="stable")


def chosen_scales(run: pd.DataFrame, scales: dict[str, Sequence[float]]) -> pd.DataFrame:
    """Return the median chosen length-scale in (a) per iteration (G4): profile, method, iteration, median.

    `scales`: the candidates' length-scales by profile.
    """
    own = run[run["problem"] == "lengthscale"]
    value = np.concatenate([np.asarray(scales[p])[t["u"]] for p, t in own.groupby("profile", sort=False)])
    ordered = pd.concat([t for _, t in own.groupby("profile", sort=False)]).assign(median=value)
    return ordered.groupby(["profile", "method", "iteration"], sort=False)["median"].median().reset_index()


def stuck(run: pd.DataFrame) -> pd.DataFrame:
    """Return shares of the runs in (a) (G5): profile, method, fraction (last queries all near the right end), missed
    (at the end the regret of the best query is still over half of that of the right end: the bump is not found)."""
    own = run[(run["problem"] == "lengthscale")]
    late = own[own["iteration"] > own["iteration"].max() - LAST]
    values = lengthscale_function(np.linspace(0.0, 1.0, 1001)[:, None])
    each = late.groupby(["profile", "method", "seed"], sort=False).agg(x=("x", "min"), simple=("simple", "min"))
    each = each.assign(fraction=each["x"] >= EDGE, missed=each["simple"] > 0.5 * (values.max() - values[-1]))
    return each.groupby(["profile", "method"], sort=False)[["fraction", "missed"]].mean().reset_index()


def wrong(run: pd.DataFrame) -> pd.DataFrame:
    """Return how often a method follows a wrong candidate, where one is true (G6, G8): problem, profile, method,
    wrong (share of queries), settled (median over seeds of the first query from which on u is true for good; one beyond
    the last: never), recovered (share of seeds whose likeliest candidate at the last query is the true one; G15)."""
    known = run[run["truth"] >= 0]
    rows = []
    for keys, own in known.groupby([*PANEL, "method"], sort=False):
        wide = own.assign(miss=own["u"] != own["truth"]).pivot(index="seed", columns="iteration", values="miss")
        misses = wide.to_numpy()
        settled = np.where(misses.any(axis=1), misses.shape[1] - misses[:, ::-1].argmax(axis=1), 0) + 1
        final = own[own["iteration"] == own["iteration"].max()]
        row = dict(zip([*PANEL, "method"], keys, strict=True))
        right = (final["mle"] == final["truth"]).mean()
        rows.append({**row, "wrong": misses.mean(), "settled": float(np.median(settled)), "recovered": right})
    return pd.DataFrame(rows)


def phases(run: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return `differences` in (c) early and late (G8): iteration and the columns of `differences`."""
    own = run[run["problem"] == "decomposition"]
    end = int(own["iteration"].max())
    parts = []
    for at in dict.fromkeys(min(at, end) for at in (EARLY, LATE)):
        parts.append(differences(own[own["iteration"] == at], seed=seed).assign(iteration=at))
    return pd.concat(parts, ignore_index=True)


def drops(run: pd.DataFrame) -> pd.DataFrame:
    """Return what HE-GP-UCB dropped: problem, profile, dropped (candidates, all runs), likeliest (of these, how many
    had the largest likelihood just before; G16), true (how many were the true one; G12), runs."""
    own = run[run["method"] == "he_gp_ucb"]
    flags = own.assign(
        dropped=own["rejected"].astype(int),
        likeliest=(own["rejected"] & (own["u"] == own["mle"]) & (own["u"] != own["truth"])).astype(int),
        true=(own["rejected"] & (own["u"] == own["truth"])).astype(int),
    )
    groups = flags.groupby(PANEL, sort=False)
    return groups.agg(
        dropped=("dropped", "sum"), likeliest=("likeliest", "sum"), true=("true", "sum"), runs=("seed", "nunique")
    ).reset_index()


def left(run: pd.DataFrame) -> pd.DataFrame:
    """Return the mean number of candidates that HE-GP-UCB has left: problem, profile, iteration, alive, least."""
    own = run[run["method"] == "he_gp_ucb"].groupby([*PANEL, "iteration"], sort=False)["alive"]
    return own.agg(alive="mean", least="min").reset_index()


def distinct(run: pd.DataFrame, keys: Sequence[str] = PANEL) -> pd.DataFrame:
    """Return how many different points a run queries, mean over seeds: keys, method, distinct, queries (of a run).

    Problem (c) is left out: of its three inputs, tables have the first alone.
    """
    own = run[run["problem"] != SEVERAL_INPUTS] if "problem" in run else run
    groups = [*keys, "method"]
    of_runs = own.groupby([*groups, "seed"], sort=False)
    counts = of_runs["x"].agg(distinct="nunique", queries="size")
    found = counts.groupby(groups, sort=False).agg(distinct=("distinct", "mean"), queries=("queries", "max"))
    return found.reset_index()


def calibration(means: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Return, for each constant β, where the highest curve of cumulative regret ends on the axis of the paper's figure.

    `means`: `cell_means`; of its cells those count that have the first value of every setting but β. The curve lands if
    it ends between 0.9 times the last tick label and one label's distance above it. `chosen`: the β that lands in most
    problems, of these the one with the least sum of |log(end / last label)|. Only the highest of `methods` is looked
    at, never which one it is: the order of the methods decides nothing. Columns: problem, beta, highest, low, high
    (where it lands), lands, chosen (1 or 0).
    """
    cells = means[(means["measure"] == "cumulative") & means["method"].isin(methods)]
    first = cells.groupby("problem", sort=False).transform("first")
    others = ["variant", "noise", "standardise", "predictive", "height", "width"]
    along = cells[(cells[others] == first[others]).all(axis=1) & (cells["beta"] > 0)]
    found = along.groupby(["problem", "beta"], sort=False)["mean"].max().rename("highest").reset_index()
    ticks = np.array([TICKS[problem]["cumulative"] for problem in found["problem"]])
    found = found.assign(low=0.9 * ticks[:, 1], high=2 * ticks[:, 1] - ticks[:, 0])
    found["lands"] = found["highest"].between(found["low"], found["high"]).astype(int)
    away = np.abs(np.log(found["highest"] / ticks[:, 1]))
    total = found.assign(away=away).groupby("beta")[["lands", "away"]].sum()
    best = total.sort_values(["lands", "away"], ascending=[False, True]).index[0]
    return found.assign(chosen=(found["beta"] == best).astype(int))


def cell_orders(ending: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return `differences` in every cell of the sensitivity grid: problem, cell and the columns of `differences`."""
    return differences(ending, ("problem", "cell"), seed=seed)


def cell_means(ending: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error per cell and method: problem, cell, variant and settings, method, measure, mean,
    error, alive (mean number of candidates left)."""
    keys = ["problem", "cell", "variant", "beta", "noise", "standardise", "predictive", "height", "width", "method"]
    groups = ending.groupby(keys, sort=False)
    parts = []
    for quantity in QUANTITIES:
        values = groups[quantity]
        table = {"mean": values.mean(), "error": values.std(ddof=1) / np.sqrt(values.count())}
        parts.append(pd.DataFrame({**table, "alive": groups["alive"].mean()}).reset_index().assign(measure=quantity))
    return pd.concat(parts, ignore_index=True)


def verdict_counts(orders: pd.DataFrame) -> pd.DataFrame:
    """Count the cells in which HE-GP-UCB is lower, higher or neither: problem, method, measure, lower, higher,
    undecided."""
    counts = (
        orders.groupby(["problem", "method", "measure"], sort=False)["verdict"].value_counts().unstack(fill_value=0)
    )
    return counts.reindex(columns=["lower", "higher", "undecided"], fill_value=0).reset_index()


def robust_curves(run: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error of cumulative, best and reported ε-regret: method, iteration, measure, mean,
    error."""
    groups = run.groupby(["method", "iteration"], sort=False)
    parts = []
    for quantity in ("cumulative", "simple", "reported"):
        values = groups[quantity]
        table = pd.DataFrame({"mean": values.mean(), "error": values.std(ddof=1) / np.sqrt(values.count())})
        parts.append(table.reset_index().assign(measure=quantity))
    return pd.concat(parts, ignore_index=True)


def period_fits(fit: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of each piece over the draws of points (G7): piece, low, high, median of period, lengthscale,
    scale; least and most: the fitted periods; one: the share of fits within 5 % of period 1."""
    groups = fit.assign(one=(fit["period"] - 1.0).abs() < 0.05).groupby(["piece", "low", "high"], sort=False)
    return groups.agg(
        period=("period", "median"), lengthscale=("lengthscale", "median"), scale=("scale", "median"),
        least=("period", "min"), most=("period", "max"), one=("one", "mean"), margin=("margin", "median"),
    ).reset_index()  # fmt: skip
