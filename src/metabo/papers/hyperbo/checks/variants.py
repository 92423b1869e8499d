"""Checks of variants of one method: acquisition functions, mean and kernel structures (hyperbo D.2, D.3).

The figures' numbers say what a panel shows, and the runs give differences and their intervals. `panel` names a row of
the figure, e.g. "H-NLL"; `metric` is "last" (regret at the last iteration) or "mean" (over all iterations).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pandas as pd

from metabo.errors import unknown
from metabo.metrics import Runs
from metabo.papers.engine.claims.comparing import (
    Moment,
    at_moment,
    difference,
    fold_of_task,
    independent_folds,
    name,
    orders,
    side_values,
    tenth_of_random,
    unit,
)
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.jackknifed import jackknifed
from metabo.papers.engine.claims.verdicts import MARGIN, Finding, share_of_units, untestable
from metabo.papers.hyperbo.metrics.variants import by_structure

METRICS = ("last", "mean")


def _moment(evidence: Evidence, metric: str) -> Moment:
    """Return when a metric looks at regret. Raises ConfigError for an unknown one."""
    if metric not in METRICS:
        raise unknown("metric of a panel", metric, METRICS)
    return evidence.runs.last if metric == "last" else "area"


def _members(evidence: Evidence, panel: str) -> list[str]:
    """Return the methods of a panel; none if the benchmark lacks it."""
    rows = evidence.table("ending")
    return list(dict.fromkeys(rows.loc[rows["panel"] == panel, "method"]))


def _structures(evidence: Evidence, panel: str) -> pd.DataFrame | None:
    """Return the methods by mean function and layers (columns from small to large), or None without the panel."""
    methods = _members(evidence, panel)
    return by_structure(pd.DataFrame({"method": methods, "name": methods}), "name") if methods else None


def bands_meet(evidence: Evidence) -> Finding:
    """The curves of every variant and its reference are so near that their 20 to 80 % bands meet (D.2, Figure 23).

    Two bands meet if their middles are no further apart than the mean of their widths: about equal, within that margin,
    of the mean over iterations. The finding also gives the share of iterations in which the figure's bands meet, which
    has no interval.
    """
    rows = evidence.table("difference").drop_duplicates(["panel", "method", "reference"])
    curves = evidence.table("curve")
    width = (curves["high"] - curves["low"]).groupby([curves["panel"], curves["method"]]).mean()
    here, when = at_moment(evidence.runs, "area")
    found = []
    for row in rows.itertuples():
        both = f"{name(row.method)} minus {name(row.reference)}"
        limit = float(width[row.panel, row.method] + width[row.panel, row.reference]) / 2
        if not limit > 0:
            found.append(untestable(f"{both}: bands without width"))
            continue
        gap = difference(evidence, here, row.method, row.reference, len(found))
        label = f"{both} {when} (bands meet in {row.bands_meet:.0%} of the iterations):"
        one = gap.about_equal(label, limit, unit(evidence))
        found.append(one)
    return together(found, "pairs")


def no_difference(evidence: Evidence) -> Finding:
    """The last regret of every variant is about equal to that of its reference, within MARGIN of Random's (D.2).

    Of the reference's where the figure has no Random. In a small study, two variants "do not differ significantly"
    whatever the truth; hence the margin.
    """
    rows = evidence.table("difference")
    rows = rows[rows["metric"] == "last"]
    pairs = list(zip(rows["method"], rows["reference"], strict=True))
    here, _ = at_moment(evidence.runs, evidence.runs.last)
    return together(_equal(evidence, here, pairs, {pair: tenth_of_random(here, pair[1]) for pair in pairs}), "pairs")


def _equal(
    evidence: Evidence, here: Runs, pairs: Sequence[tuple[str, str]], limits: dict[tuple[str, str], float]
) -> list[Finding]:
    """Return the finding of "about equal" of each pair."""
    found = []
    for place, (first, second) in enumerate(pairs):
        gap = difference(evidence, here, first, second, place)
        label, limit = f"{name(first)} minus {name(second)}:", limits[first, second]
        found.append(gap.about_equal(label, limit, unit(evidence)))
    return found


def about_equal(evidence: Evidence, panel: str, methods: Sequence[str]) -> Finding:
    """The last regrets of any two of the named structures are about equal (D.3, Figure 25).

    Within MARGIN of Random's, or of the mean of the named where the figure has no Random.
    """
    if not set(methods) <= set(_members(evidence, panel)):
        return untestable(f"panel {panel} lacks some of these structures")
    here, _ = at_moment(evidence.runs, evidence.runs.last)
    pairs = list(combinations(methods, 2))
    typical = "rand" if "rand" in here.methods else list(methods)
    limit = MARGIN * float(side_values(here, [typical]).mean())
    return together(_equal(evidence, here, pairs, dict.fromkeys(pairs, limit)), "pairs")


def best_are(evidence: Evidence, panel: str, metric: str, methods: Sequence[str]) -> Finding:
    """ORD: every named structure has less regret than every other one of the panel (D.3)."""
    members = _members(evidence, panel)
    others = [m for m in members if m not in methods]
    if not set(methods) <= set(members) or not others:
        return untestable(f"panel {panel} lacks some of these structures, or all others")
    pairs = [(own, other) for own in methods for other in others]
    return together(orders(evidence, pairs, [_moment(evidence, metric)]), "comparisons")


def worst_is(evidence: Evidence, panel: str, metric: str, method: str) -> Finding:
    """ORD: every other structure of the panel has less regret than the named one (D.3)."""
    members = _members(evidence, panel)
    if method not in members or len(members) < 2:
        return untestable(f"panel {panel} lacks {name(method)}, or all others")
    pairs = [(other, method) for other in members if other != method]
    return together(orders(evidence, pairs, [_moment(evidence, metric)]), "comparisons")


def all_above(evidence: Evidence, panel: str, metric: str, mean: str) -> Finding:
    """ORD: every structure with the mean function `mean` has more regret than every other structure (D.3)."""
    structures = _structures(evidence, panel)
    if structures is None or mean not in structures.index or len(structures) < 2:
        return untestable(f"panel {panel} has no structure with mean function {mean}, or no other one")
    above = structures.loc[mean].dropna()
    others = [m for m in _members(evidence, panel) if m not in set(above)]
    pairs = [(other, own) for own in above for other in others]
    return together(orders(evidence, pairs, [_moment(evidence, metric)]), "comparisons")


def mean_wins(evidence: Evidence, better: str, worse: str, panels: Sequence[str] = ()) -> Finding:
    """A mean function has less regret than another one in more than half of the cases (D.3).

    A case: one panel, network, metric, task and repetition; equality counts half. The cases of one fold share tasks and
    priors, so that folds are the units, and of these tasks repetitions; a unit counts as one draw, however its cases
    agree (`metabo.papers.engine.claims.comparing.independent_folds`). `panels`: those that count, all by default.
    """
    won = []
    for panel in panels or dict.fromkeys(evidence.table("ending")["panel"]):
        structures = _structures(evidence, panel)
        if structures is None or not {better, worse} <= set(structures.index):
            continue
        both = structures.loc[[better, worse]].dropna(axis=1)
        for metric in METRICS:
            here, _ = at_moment(evidence.runs, _moment(evidence, metric))
            for pair in zip(both.loc[better], both.loc[worse], strict=True):
                own, other = side_values(here, pair)
                won.append((own < other) + 0.5 * (own == other))
    if not won:
        return untestable(f"no network with mean functions {better} and {worse}")
    values = np.mean(won, axis=0)
    if evidence.estimand == "suite" or evidence.runs.drawn == "fixed":
        clusters, units = len(values), len(values) if len(values) > 1 else np.nan
    else:
        clusters = len(set(fold_of_task(evidence).values()))
        units = independent_folds(evidence, evidence.runs.tasks)
    label = f"share of cases in which mean {better} is below {worse}, {len(won)} a task and repetition:"
    found = share_of_units(label, float(values.mean()), units, 0.5, unit="share of cases")
    return replace(found, clusters=clusters)


def wider_spread(evidence: Evidence, panel: str, than: str, metric: str = "last") -> Finding:
    """Highest minus lowest mean regret over the structures is larger in a panel than in another one (D.3).

    A range is not a mean, so its interval is a jackknife over folds (repetitions).
    """
    sides = [_members(evidence, which) for which in (panel, than)]
    if not all(sides):
        return untestable(f"the benchmark lacks {panel} or {than}")
    here, when = at_moment(evidence.runs, _moment(evidence, metric))
    values = side_values(here, [*sides[0], *sides[1]])
    place = {task: number for number, task in enumerate(here.tasks)}

    def wider(repetitions: np.ndarray, tasks: Sequence[str]) -> float:
        means = values[:, repetitions][..., [place[task] for task in tasks]].mean(axis=(1, 2))
        own, other = np.split(means, [len(sides[0])])
        return float(np.ptp(own) - np.ptp(other))

    gap = jackknifed(evidence, wider, values.shape[1], here.tasks)
    label = f"range over structures {when}, {panel} minus {than}:"
    effect = tenth_of_random(here, sides[1])
    return gap.order(label, False, unit(evidence), effect=effect)


def falls_with_size(evidence: Evidence, panel: str, metric: str, mean: str) -> Finding:
    """ORD: with the mean function `mean`, each larger network has less regret than the one before it (D.3)."""
    structures = _structures(evidence, panel)
    if structures is None or mean not in structures.index or structures.loc[mean].notna().sum() < 2:
        return untestable(f"panel {panel} has fewer than two networks with mean function {mean}")
    pairs = [(larger, smaller) for smaller, larger in pairwise(structures.loc[mean].dropna())]
    return together(orders(evidence, pairs, [_moment(evidence, metric)]), "comparisons")
