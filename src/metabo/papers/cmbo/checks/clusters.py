"""Checks of cm-BO: what its figures say of one search space and acquisition, and of clusters (cm-BO §4.2).

Claims that the figures' notebooks decide are read from their tables `claim`; the rest is computed here from the runs or
from the curves with their 95 % bands over targets.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import t as t_distribution

from metabo.metrics import Runs
from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    LEVEL,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    order,
    share,
    together,
    trend,
    untestable,
)
from metabo.plan.runs import acquisition_of, method_of

FEWEST = 3
"""Repetitions from which on an interval over them is taken."""


def as_ranged(evidence: Evidence, claim: str) -> Finding:
    """CNT, NUM: every row of the table `claim` for this claim meets the condition that the notebook checked."""
    rows = evidence.table("claim")
    rows = rows[rows["claim"] == claim]
    found = []
    for row in rows.itertuples():
        where = f" ({row.panel})" if "panel" in rows else ""
        limits = f", accepted {row.low:g} to {row.high:g}" if "low" in rows and np.isfinite(row.low) else ""
        found.append(Finding(counted(row.holds == 1), f"{row.comparison}{where}: {row.value:.3g}{limits}", row.value))
    return together(found, "conditions")


def _last(evidence: Evidence) -> pd.DataFrame:
    """Return the mean last regret by (space, acquisition) and method, a method without acquisition under each."""
    table = evidence.trajectories
    ends = table[table["iteration"] == table["iteration"].max()]
    ends = ends.assign(plain=ends["method"].map(method_of), acq=ends["method"].map(acquisition_of))
    means = ends.groupby(["space", "acq", "plain"])[evidence.regret].mean().unstack("plain")
    free = [acq for acq in means.index.unique("acq") if acq == "uniform"]
    for acq in free:  # random search is beside every acquisition
        rows = means.xs(acq, level="acq")
        means = means.drop(index=acq, level="acq")
        for method in rows.columns[rows.notna().all()]:
            means[method] = means.index.get_level_values("space").map(rows[method])
    return means


def wins_most(evidence: Evidence, variants: Sequence[str], others: Sequence[str]) -> Finding:
    """CNT: in most of (space, acquisition, other method), the best of the variants has the lower mean last regret, and
    so has their median."""
    means = _last(evidence)
    ours = [m for m in variants if m in means]
    rest = [m for m in others if m in means]
    if not ours or not rest:
        return untestable("the variants or the other methods were not run")
    found = []
    for words, own in (("best", means[ours].min(axis=1)), ("median", means[ours].median(axis=1))):
        gaps = pd.concat([(own - means[m]).dropna() for m in rest])
        wins, of = int((gaps < 0).sum()), len(gaps)
        label = f"(space, acquisition, method) in which the {words} variant is lower"
        found.append(share(wins, of, label, 2 * wins > of, "share of comparisons"))
    return together(found, "comparisons")


def larger_area(evidence: Evidence, method: str, than: Sequence[str]) -> Finding:
    """ORD: over all iterations, a method has more regret than each of `than`, in every panel of the figure."""
    rows = evidence.table("difference")
    rows = rows[(rows["reference"].map(method_of) == method) & rows["method"].map(method_of).isin(than)]
    found = [
        order(f"{name(row.reference)} minus {name(row.method)}, mean over iterations:",
              (-row.area, -row.area_high, -row.area_low), False, "normalised regret")
        for row in rows.itertuples()
    ]  # fmt: skip
    return together(found, "comparisons", -1)


def _curves(evidence: Evidence, table: str, **where: str) -> pd.DataFrame:
    rows = evidence.table(table)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.assign(method=rows["method"].map(method_of))


def small_gain(evidence: Evidence, method: str, variants: Sequence[str], start: int, most: float) -> Finding:
    """CNT: from iteration `start` to the last, the mean regret of a method falls by less than the share `most`, and by
    less than that of the median variant, in every panel."""
    found = []
    rows = _curves(evidence, "curve")
    last = rows["iteration"].max()
    for panel, own in rows.groupby("panel", sort=False):
        wide = own.pivot(index="iteration", columns="method", values="mean")
        if method not in wide or start >= last:
            return untestable(f"{name(method)} was not run beyond iteration {start}")
        falls = 1 - wide.loc[last] / wide.loc[start].where(wide.loc[start] > 0)
        median = float(falls[[v for v in variants if v in falls]].median())
        value = float(falls[method])
        said = f"{panel}: regret of {name(method)} falls by {value:.0%} from iteration {start} to {last}"
        said += f", that of the median variant by {median:.0%}"
        found.append(Finding(counted(value < most and value < median), said, value, unit="share of the regret"))
    return together(found, "panels", 1)


def best_areas(evidence: Evidence, methods: Sequence[str], among: Sequence[str]) -> Finding:
    """CNT: in every panel, the lowest means over all iterations of `among` are those of `methods`, in any order."""
    found = []
    for panel, own in _curves(evidence, "curve").groupby("panel", sort=False):
        areas = own[own["method"].isin(among)].groupby("method")["mean"].mean().sort_values()
        if not set(methods) <= set(areas.index):
            return untestable("some of these methods were not run")
        right = len(set(areas.index[: len(methods)]) & set(methods))
        listed = ", ".join(f"{name(m)} {v:.3g}" for m, v in areas.items())
        found.append(Finding(counted(right == len(methods)), f"{panel}: {listed}", right, unit=f"of {len(methods)}"))
    return together(found, "panels", -1)


def best_in_band(
    evidence: Evidence, table: str, group: str, methods: Sequence[str], within: Sequence[int], higher: bool = False
) -> Finding:
    """Over the iterations [from, to], the methods take the first places, in this order, in a table with bands.

    Replicated if the first one's band is also clear of that of every method behind them, weak if the means alone.
    `table`: "rank" (lower is better) or "solved" (`higher`), all acquisitions pooled.
    """
    rows = _curves(evidence, table, group=group, acquisition="pooled")
    rows = rows[(rows["iteration"] >= within[0]) & (rows["iteration"] <= within[1])]
    means = rows.groupby("method")[["mean", "low", "high"]].mean().sort_values("mean", ascending=not higher)
    if not set(methods) <= set(means.index):
        return untestable(f"no runs of group ({group}) in iterations {within[0]} to {within[1]}")
    first = means.loc[methods[0]]
    rest = means.drop(index=list(methods))
    clear = (first["low"] > rest["high"]).all() if higher else (first["high"] < rest["low"]).all()
    placed = list(means.index[: len(methods)]) == list(methods)
    listed = ", ".join(f"{name(m)} {v:.3g}" for m, v in means["mean"].head(len(methods) + 2).items())
    said = f"{table}, group ({group}), iterations {within[0]} to {within[1]}: {listed}"
    verdict = FAILED if not placed else REPLICATED if clear else WEAK
    return Finding(verdict, said, *map(float, first[["mean", "low", "high"]]), unit=table)


def fewer_solved(evidence: Evidence, method: str, than: Sequence[str], groups: Sequence[str]) -> Finding:
    """CNT: at the last iteration a method has solved fewer runs than each of `than`, in every group."""
    found = []
    for group in groups:
        rows = _curves(evidence, "solved", group=group, acquisition="pooled")
        ends = rows[rows["iteration"] == rows["iteration"].max()].set_index("method")["mean"]
        others = ends[[m for m in than if m in ends]]
        if method not in ends or others.empty:
            found.append(untestable(f"group ({group}) has no runs of {name(method)} or of the others"))
            continue
        said = (
            f"runs solved, group ({group}): {name(method)} {ends[method]:.2f}, the others {others.min():.2f} and more"
        )
        found.append(Finding(counted(bool((others > ends[method]).all())), said, float(ends[method]), unit="share"))
    return together(found, "groups")


def falls_every_decade(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """CNT: the mean regret of each method falls from every tenth iteration to the next, in every panel."""
    found = []
    for panel, own in _curves(evidence, "curve").groupby("panel", sort=False):
        wide = own.pivot(index="iteration", columns="method", values="mean")
        tenths = wide.loc[[t for t in wide.index if t % 10 == 0]]
        for method in [m for m in methods if m in wide] if len(tenths) > 1 else []:
            steps = -np.diff(tenths[method].to_numpy())
            listed = ", ".join(f"{step:.2g}" for step in steps)
            said = f"{panel}, {name(method)}: falls by {listed} from iteration {tenths.index[0]} on"
            found.append(Finding(counted(bool((steps > 0).all())), said, float(steps.min()), unit="normalised regret"))
    return together(found, "curves", -1)


def more_clusters_help(evidence: Evidence, least: int) -> Finding:
    """CNT: for each variant, at least `least` of the numbers of clusters above one end lower than one cluster."""
    found = []
    for panel, own in evidence.table("number").groupby("panel", sort=False):
        several = own[own["clusters"] > 1]
        better, of = int(several["better"].sum()), len(several)
        found.append(share(better, of, f"{name(panel)}: numbers of clusters better than one", better >= least))
    return together(found, "variants")


def index_agrees(evidence: Evidence) -> Finding:
    """A larger ratio of the indices (worse clusters) goes with more regret: Spearman over the numbers of clusters."""
    if "correlation" not in set(evidence.data["table"]):
        return untestable("the figure has no correlation of the indices with regret")
    found = []
    for row in evidence.table("correlation").itertuples():
        n, rho = int(row.points), float(row.spearman)
        with np.errstate(divide="ignore"):
            p = 2 * t_distribution.sf(abs(rho) * np.sqrt((n - 2) / (1 - rho**2)), n - 2) if n > 2 else np.nan
        found.append(trend(f"{name(row.panel)}, {row.distance}, {n} numbers of clusters", rho, float(p), rises=True))
    return together(found, "correlations", -1)


def run_count(evidence: Evidence, stated: int, repetitions: int, tolerance: float = 0.1) -> Finding:
    """NUM: the runs of a method, repetitions x splits x targets over all spaces, are the stated number."""
    spaces = evidence.table("space")
    runs = int(repetitions * (spaces["splits"] * spaces["targets"]).sum())
    return Finding(counted(abs(runs - stated) <= tolerance * stated), f"{runs} runs a method, stated {stated}", runs)


def table_of_spaces(evidence: Evidence) -> Finding:
    """CNT: every space has the stated numbers of inputs and tasks, those with constant outputs among them."""
    found = []
    for row in evidence.table("space").dropna(subset=["stated_inputs"]).itertuples():
        holds = (row.inputs, row.tasks) == (row.stated_inputs, row.stated_tasks)
        said = f"{row.space}: {row.inputs:.0f} inputs, {row.tasks:.0f} tasks ({row.flat:.0f} constant); "
        said += f"stated {row.stated_inputs:.0f} and {row.stated_tasks:.0f}"
        found.append(Finding(counted(holds), said, row.tasks, unit="tasks"))
    return together(found, "spaces")


def negative_transfer(evidence: Evidence, single: str, meta: Sequence[str]) -> Finding:
    """CNT: on at least one target, a GP that knows no other task ends lower than one of the methods that do.

    A gap is the GP's last regret minus the method's, mean over priors and over the acquisitions that both have. Of many
    targets and methods some gaps are below 0 by chance: replicated only if, for one of them, the interval over
    repetitions (other initial points) is, with Bonferroni's correction for all; else weak, as with fewer than three
    repetitions. Acquisitions share the initial points: they are no repetitions.
    """
    ends = _ends(evidence.runs)
    gaps = {m: _gap(ends[single], ends[m]) for m in meta if m in ends} if single in ends else {}
    gaps = {m: gap for m, gap in gaps.items() if gap is not None}
    if not gaps:
        return untestable(f"{name(single)} or the others were not run")
    every = np.stack(list(gaps.values()))  # methods, repetitions, targets
    ahead = (every.mean(axis=1) < 0).any(axis=0)
    clear = _clear(every)
    label = f"targets on which {name(single)} ends below one of {len(gaps)} methods that learn from other tasks"
    found = share(int(ahead.sum()), len(ahead), label, bool(clear.any()), "share of targets")
    repetitions = every.shape[1]
    if repetitions < FEWEST:
        why = f"with {repetitions} of at least {FEWEST} repetitions no gap has an interval, and noise gives some too"
    else:
        why = f"on {int(clear.any(axis=0).sum())} beyond the noise of {repetitions} repetitions (Bonferroni)"
    verdict = REPLICATED if clear.any() else WEAK if ahead.any() else FAILED
    return replace(found, verdict=verdict, said=f"{found.said}; {why}")


def _ends(runs: Runs) -> dict[str, dict[str, np.ndarray]]:
    """Return the last regrets (repetitions, targets), mean over priors, of each method by acquisition."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for run, values in runs.values.items():
        found.setdefault(method_of(run), {})[acquisition_of(run)] = values[..., -1].mean(axis=0)
    return found


def _gap(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> np.ndarray | None:
    shared = [acq for acq in one if acq in other and one[acq].shape == other[acq].shape]
    return np.mean([one[acq] - other[acq] for acq in shared], axis=0) if shared else None


def _clear(gaps: np.ndarray) -> np.ndarray:
    """Return for which (methods, targets) the mean of (methods, repetitions, targets) is below 0 with Bonferroni's
    correction: a t interval over repetitions. Repetitions that do not differ tell nothing of their noise."""
    count = gaps.shape[1]
    if count < FEWEST:
        return np.zeros((len(gaps), gaps.shape[2]), bool)
    error = gaps.std(axis=1, ddof=1) / np.sqrt(count)
    reach = t_distribution.ppf(1 - LEVEL / (2 * gaps[:, 0].size), count - 1)
    return (error > 0) & (gaps.mean(axis=1) + reach * error < 0)
