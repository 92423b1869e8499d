"""Checks of learned priors of GP parameters against the number of domains (mphd §3.2, Figures 5, 6, 10, 11).

Seeds are the draws, each with domains of its own, and the tables behind the figures hold each of them. The values of
one seed at several numbers of domains are not independent draws: trends have seeds as units. Seeds with the same number
are copies of one draw, as all are where they share their domains, and count once.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import gamma

from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import (
    ROUNDING,
    apart,
    combined,
    distance,
    of_deviation,
    of_mean,
    varies,
)
from metabo.papers.engine.claims.verdicts import MARGIN, Finding, order, untestable
from metabo.papers.mphd.studies import summaries

NOISE_LIMIT = 2e-4
"""Upper end of the range of noise variances that Figure 11 shows; the figure's parameter `noise_limit`."""


def settles(evidence: Evidence, parameters: Sequence[str]) -> Finding:
    """ORD: from the fewest to the most domains, the first number of each prior varies less over seeds, and its mean
    comes nearer to the truth."""
    parts = [part for p in parameters for part in (_varies_less(evidence, p), _comes_nearer(evidence, p))]
    return together(parts, "conditions")


def _ends(evidence: Evidence, parameter: str) -> list[pd.DataFrame]:
    """Return the priors of every seed with the fewest domains, and with the most."""
    rows = evidence.table("prior")
    rows = rows[rows["parameter"] == parameter]
    return [rows[rows["train"] == end] for end in (rows["train"].min(), rows["train"].max())]


def _truth(evidence: Evidence, parameter: str) -> tuple[float, float]:
    row = evidence.table("truth").set_index("parameter").loc[parameter]
    return float(row["first"]), float(row["second"])


def _between(ends: Sequence[pd.DataFrame]) -> str:
    few, many = ends
    return f"{many['train'].iloc[0]} minus {few['train'].iloc[0]} domains"


def _less(label: str, few: np.ndarray, many: np.ndarray, unit: str) -> Finding:
    """ORD: the mean of `many` is below that of `few`, two samples over seeds; power is for a tenth less."""
    said = f"{label} ({np.mean(few):.3g} to {np.mean(many):.3g}):"
    effect, seeds = MARGIN * abs(float(np.mean(few))), min(len(few), len(many))
    return order(said, apart(many, few), True, unit, effect=effect, clusters=seeds)


def _from_median(values: np.ndarray) -> np.ndarray:
    """Return distances from the median, the spread that Brown and Forsythe (1974) compare."""
    return np.abs(values - np.median(values))


def _same(ends: Sequence[pd.DataFrame], parameter: str) -> list[Finding]:
    """Return a finding, not testable, for each end at which seeds do not differ: their noise is not known."""
    return [
        untestable(f"{parameter}: seeds do not differ with {rows['train'].iloc[0]} domains")
        for rows in ends
        if not varies(rows["first"].to_numpy())
    ]


def _varies_less(evidence: Evidence, parameter: str) -> Finding:
    ends = _ends(evidence, parameter)
    if same := _same(ends, parameter):
        return same[0]
    few, many = (_from_median(rows["first"].to_numpy()) for rows in ends)
    label = f"{parameter}, mean distance from the median over seeds, {_between(ends)}"
    return _less(label, few, many, "first number of the prior")


def _comes_nearer(evidence: Evidence, parameter: str) -> Finding:
    """ORD: the mean over seeds is nearer to the truth; the interval of its distance does not go below 0."""
    ends, truth = _ends(evidence, parameter), _truth(evidence, parameter)[0]
    if same := _same(ends, parameter):
        return same[0]
    few, many = (rows["first"].to_numpy() for rows in ends)
    gaps = [distance(of_mean(values), truth) for values in (few, many)]
    label = f"{parameter}, distance of the mean from the truth ({truth:g}), {_between(ends)} ({gaps[0][0]:.3g} to "
    label += f"{gaps[1][0]:.3g}):"
    estimate, seeds = combined((1.0, gaps[1]), (-1.0, gaps[0])), min(len(few), len(many))
    effect = MARGIN * gaps[0][0]
    return order(label, estimate, True, "first number of the prior", effect=effect, clusters=seeds)


def steadier(evidence: Evidence, parameter: str) -> Finding:
    """ORD: with the most domains the densities vary less over seeds, and diverge less from the truth, than with the
    fewest.

    The variation of densities is their mean distance (L2) from their mean (Anderson 2006).
    """
    ends, truth = _ends(evidence, parameter), _truth(evidence, parameter)
    if same := _same(ends, parameter):
        return together(same)
    spreads = [_from_mean_density(parameter, rows) for rows in ends]
    label = f"{parameter}, mean distance of the densities from their mean, {_between(ends)}"
    stable = _less(label, *spreads, "distance of densities")
    divergences = [
        summaries.from_truth(parameter, truth, rows["first"].to_numpy(), rows["second"].to_numpy()) for rows in ends
    ]
    nearer = _less(f"{parameter}, divergence from the truth, {_between(ends)}", *divergences, "nats")
    return together([stable, nearer], "conditions")


def _from_mean_density(parameter: str, rows: pd.DataFrame) -> np.ndarray:
    """Return the distance of every seed's density from the mean density."""
    x = np.linspace(*getattr(summaries.RANGES, parameter), summaries.GRID)[1:]
    pairs = rows[["first", "second"]].to_numpy()
    curves = np.array([summaries.density(parameter, x, *pair) for pair in pairs])
    return np.sqrt(((curves - curves.mean(axis=0)) ** 2).sum(axis=1) * (x[1] - x[0]))


def nll_falls(evidence: Evidence) -> Finding:
    """The test NLL, and its distance from the median over seeds, fall with the number of domains (Spearman)."""
    rows = evidence.table("nll")
    return together(
        [
            _falls("test NLL over seeds", rows["train"], rows["value"], rows["seed"]),
            _falls("spread of the test NLL over seeds", rows["train"], rows["value"], rows["seed"], spread=True),
        ],
        "trends",
    )


def _falls(label: str, sizes: pd.Series, values: pd.Series, seeds: pd.Series, spread: bool = False) -> Finding:
    """Return the finding that values, one per seed and size, fall with the size; `spread`: their distances from the
    median of their size do.

    Spearman's correlation over all points is a sum of what each seed adds to it; its interval is that of a sum of
    independent draws (Student's t). Copies, equal values of one size, count once (`ROUNDING`), and a size with one
    value has no spread.
    """
    points = pd.DataFrame({"size": sizes, "value": values, "seed": seeds}).reset_index(drop=True)
    scale = np.maximum(points.groupby("size")["value"].transform(lambda own: own.abs().max()), np.finfo(float).tiny)
    points = points[
        ~points.assign(rounded=(points["value"] / scale / ROUNDING).round()).duplicated(["size", "rounded"])
    ]
    if spread:
        points = points[points.groupby("size")["value"].transform("size") > 1]
        points = points.assign(value=points.groupby("size")["value"].transform(lambda own: (own - own.median()).abs()))
    if len(points) < 3 or points["size"].nunique() < 2 or points["value"].nunique() < 2:
        return untestable(f"{label}: one size only, or nothing varies")
    ranks = points[["size", "value"]].rank()
    ranks = (ranks - ranks.mean()) / ranks.std(ddof=0)
    added = (ranks["size"] * ranks["value"] / len(ranks)).groupby(points["seed"]).sum().to_numpy()
    rho, low, high = (float(end * len(added)) for end in of_mean(added))
    return order(
        f"{label}: Spearman, {len(added)} seeds,", (rho, low, high), True, "Spearman's rho", clusters=len(added)
    )


def divergence_falls(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """The divergence from the true length-scale prior falls with the number of domains, for each method, over seeds."""
    rows = evidence.table("divergence")
    each = {method: rows[rows["method"] == method] for method in methods}
    found = [
        _falls(name(method), own["train"], own["kl"], own["seed"])
        if len(own)
        else untestable(f"{name(method)} was not run")
        for method, own in each.items()
    ]
    return together(found, "methods")


def lower_divergence(evidence: Evidence, method: str, than: str = "mphd_non_nn") -> Finding:
    """ORD: at every number of domains, the divergence is below that of the prior without a network, paired by seed."""
    rows, each = evidence.table("difference"), evidence.table("divergence")
    reference = each[each["method"] == than].groupby("train")["kl"]
    found = []
    for row in rows[rows["method"] == method].sort_values("train").itertuples():
        label = f"{name(method)} minus {name(than)} with {row.train:.0f} domains:"
        effect, seeds = MARGIN * float(reference.mean()[row.train]), int(reference.count()[row.train])
        estimate = (row.difference, row.low, row.high)
        found.append(order(label, estimate, unit="nats", effect=effect, clusters=seeds))
    return together(found, "numbers of domains")


def spread_falls(evidence: Evidence) -> Finding:
    """The distance of every estimate from its median over runs falls with the number of sub-datasets (Spearman)."""
    rows = evidence.table("estimate")
    parts = [
        _falls(f"spread of the {parameter} over runs", own["functions"], own["value"], own["run"], spread=True)
        for parameter, own in rows.groupby("parameter", sort=False)
    ]
    return together(parts, "parameters")


def noise_stays_away(evidence: Evidence, least: float) -> Finding:
    """ORD: with the most domains, the noise prior's shape varies less than with the fewest, its mean over seeds is more
    than two deviations from the truth, and a mean mass of at least `least` lies where the paper sees most of it."""
    many, truth = _ends(evidence, "noise")[1], _truth(evidence, "noise")[0]
    if same := _same([many], "noise"):
        return same[0]
    first, second = (many[column].to_numpy() for column in ("first", "second"))
    return together([_varies_less(evidence, "noise"), _stays_away(first, truth), _mass(evidence, first, second, least)])


def _stays_away(values: np.ndarray, truth: float) -> Finding:
    gap = distance(of_mean(values), truth)
    deviation = of_deviation(float(np.std(values, ddof=min(1, len(values) - 1))), len(values) - 1)
    label = f"shape {np.mean(values):.3g} ± {deviation[0]:.2g}, truth {truth:g}; distance minus two deviations:"
    estimate = combined((1.0, gap), (-2.0, deviation))
    return order(label, estimate, False, "shape", effect=MARGIN * abs(truth), clusters=len(values))


def _mass(evidence: Evidence, first: np.ndarray, second: np.ndarray, least: float) -> Finding:
    limit = float(evidence.parameters.get("noise_limit", NOISE_LIMIT))
    masses = gamma.cdf(limit, first, scale=1.0 / second)
    label = f"mass of the noise prior in [0, {limit:g}], {least:g} wanted:"
    if not varies(masses):
        return order(f"{label} the same for all seeds,", (float(masses.mean()), np.nan, np.nan), False, "mass")
    found = order(label, of_mean(masses), False, "mass", bound=least, effect=MARGIN, clusters=len(first))
    if found.low is None or found.high is None:
        return found
    return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))
