"""Checks of the synthetic studies of HyperBO: landscapes, estimated posteriors, costs, transfer (hyperbo §5, §6.3).

Draws of a study are independent: shares of them have exact intervals, means over them Student's t.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata
from scipy.stats import t as student

from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.ranges import ranged
from metabo.papers.engine.claims.verdicts import (
    LEVEL,
    Finding,
    about_equal,
    fact,
    order,
    share,
    untestable,
)

WORDS = {"mle": "MLE", "unbiased": "unbiased estimate", "pretrained": "pre-trained GP", "truth": "truth"}
WORDS |= {"single_task": "single-task GP"}
_LEAST = np.finfo(np.float64).tiny
"""In place of a divergence of 0, which has no logarithm."""


def _mean(values: Float[np.ndarray, " n"]) -> tuple[float, float, float]:
    """Return the mean over draws with its interval (Student's t); NaN ends for one draw."""
    mean, number = float(values.mean()), len(values)
    if number < 2:
        return mean, np.nan, np.nan
    half = float(student.ppf(1 - LEVEL / 2, number - 1) * values.std(ddof=1) / np.sqrt(number))
    return mean, mean - half, mean + half


def _apart(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]) -> tuple[tuple[float, float, float], int]:
    """Return the mean of a minus that of b, which has other draws, with its interval (Welch), and its degrees of
    freedom + 1."""
    gap = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return (gap, np.nan, np.nan), 1
    errors = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
    parts = errors**2 / np.array([len(a) - 1, len(b) - 1])
    freedom = float(errors.sum() ** 2 / parts.sum()) if errors.sum() > 0 else float(len(a) + len(b) - 2)
    half = float(student.ppf(1 - LEVEL / 2, freedom) * np.sqrt(errors.sum()))
    return (gap, gap - half, gap + half), int(freedom) + 1


def minima_differ(evidence: Evidence, least: float = 0.5) -> Finding:
    """Along each parameter, the minima of the two losses differ in more than a share of the draws (Figure 3)."""
    found = []
    for row in evidence.table("differ").itertuples():
        label = f"draws in which the minima along the {row.parameter} differ"
        found.append(share(label, round(row.share * row.of), int(row.of), least, unit="share of draws"))
    return together(found, "parameters")


def _divergence(evidence: Evidence) -> pd.DataFrame:
    """Return the mean divergence from the truth over the points, by (functions, observations, draw) and model."""
    marginal = evidence.studies["estimates"]["marginal"]
    keys = ["functions", "observations", "draw"]
    return marginal.pivot_table(index=keys, columns="model", values="kl", aggfunc="mean")


def drifts(evidence: Evidence, models: Sequence[str], functions: int) -> Finding:
    """The divergence from the true posterior grows with the observations, 0 to 4 (Figures 4, 5).

    Spearman's correlation of the two within a draw, mean over draws, lies above 0. Ranks, since some draws diverge by
    orders of magnitude more.
    """
    divergence, found = _divergence(evidence), []
    for model in models:
        own = divergence[model].xs(functions, level="functions").unstack("observations").sort_index(axis=1)
        ranks = rankdata(own.to_numpy(), axis=1)
        ranks -= ranks.mean(axis=1, keepdims=True)
        times = np.arange(own.shape[1]) - (own.shape[1] - 1) / 2
        norm = np.sqrt((ranks**2).sum(axis=1) * (times**2).sum())
        rho = np.divide(ranks @ times, norm, out=np.zeros(len(own)), where=norm > 0)
        listed = ", ".join(f"{v:.3g}" for v in own.median())
        label = f"{WORDS[model]}, N = {functions}: median divergence {listed} after 0 to {len(times) - 1} observations"
        label += ", mean rank correlation within a draw"
        found.append(order(label, _mean(rho), False, "Spearman's rho", clusters=len(rho)))
    return together(found, "models")


def variance_ratios(evidence: Evidence) -> Finding:
    """The mean variance ratio to the truth is (N - t)/N for MLE and 1 when rescaled (§6.3.1, Theorem 5).

    About equal: within half of what one iteration changes, 1/N, so that t is told from t - 1, which §6.3.1 has for the
    number of observations. For the figure's number of functions, in every cell.
    """
    rows, functions = evidence.table("variance"), evidence.parameters.get("functions")
    rows = rows if functions is None else rows[rows["functions"] == functions]
    draws = int(evidence.studies["estimates"]["marginal"]["draw"].nunique())
    reach = float(student.ppf(1 - LEVEL / 2, max(draws - 1, 1)))
    found = []
    for row in rows.itertuples():
        gap, half = row.ratio - row.expected, reach * row.error
        label = f"{WORDS[row.model]}, N = {row.functions:.0f}, {row.observations:.0f} observations: variance ratio "
        label += f"{row.ratio:.3f} minus {row.expected:.3g}:"
        limit = 1 / row.functions / 2
        found.append(about_equal(label, (gap, gap - half, gap + half), limit, "ratio", draws))
    return together(found, "cells")


def more_functions_help(evidence: Evidence, few: int, many: int) -> Finding:
    """With `many` functions every estimate is nearer to the truth, and rescaling matters less (Figure 5).

    Nearer: a lower mean logarithm of the divergence, after any number of observations. Rescaling: the same of the
    distance between the divergences of MLE and unbiased estimate, mean over observations. The draws of the two differ
    (Welch).
    """
    divergence = _divergence(evidence)
    found = []
    for model in [m for m in WORDS if m in divergence and m != "truth"]:
        for observations in divergence.index.unique("observations"):
            own = divergence[model].xs(observations, level="observations")
            label = f"{WORDS[model]}, {observations} observations: log divergence"
            found.append(_lower(label, own, few, many))
    change = (divergence["mle"] - divergence["unbiased"]).abs().groupby(["functions", "draw"]).mean()
    found.append(_lower("log change of the divergence by rescaling", change, few, many))
    return together(found)


def _lower(label: str, values: pd.Series, few: int, many: int) -> Finding:
    """Return the finding that the logarithms of values by (functions, draw) are lower for `many` functions."""
    logs = np.log(values.clip(lower=_LEAST))
    estimate, clusters = _apart(*(logs.xs(number, level="functions").to_numpy() for number in (many, few)))
    return order(f"{label} at N = {many} minus at {few}:", estimate, True, "log divergence", clusters=clusters)


def nearest_share(evidence: Evidence, least: float) -> Finding:
    """The pre-trained GP is nearer to the truth than both estimates in at least a share of the draws of a cell."""
    found = []
    for row in evidence.table("wins").sort_values("share").itertuples():
        label = "draws in which the pre-trained GP is nearest, "
        label += f"N = {row.functions:.0f}, {row.observations:.0f} observations"
        found.append(share(label, round(row.share * row.of), int(row.of), least, unit="share of draws"))
    return together(found, "cells")


def exponents(evidence: Evidence) -> Finding:
    """No fitted exponent that has an accepted range lies above it with its interval (Table 1).

    The table prints upper bounds, O(.), which a cost that grows more slowly cannot break. That the NLL's time is
    linear in N is also what makes the EKL cheaper: that one must not lie below its range either.
    """
    rows = evidence.table("exponent").dropna(subset=["lowest", "highest"])
    found = []
    for row in rows.itertuples():
        label = f"{row.objective.upper()} {row.row}, {row.resource} against {row.axis}: exponent"
        least = row.lowest if (row.objective, row.axis) == ("nll", "N") else -np.inf
        units = int(row.sizes) - 1  # a mean of that many has the freedom of a line through all sizes
        found.append(ranged(label, (row.slope, row.low, row.high), least, row.highest, "exponent", units))
    return together(found, "exponents")


def extreme(evidence: Evidence, model: str, lowest: Sequence[str], highest: Sequence[str], least: float) -> Finding:
    """In more than a share `least` of the draws, `model` has the lowest of each loss of `lowest`, and the highest of
    each of `highest`, among the models of Table 2."""
    loss, found = evidence.studies["transfer"]["loss"], []
    for metric in [*lowest, *highest]:
        wide = loss[loss["metric"] == metric].pivot(index="seed", columns="model", values="value")
        if model not in wide or len(wide.columns) < 2:
            return untestable(f"{metric}: {WORDS[model]}, or the others, have no such loss")
        others = wide.drop(columns=model)
        below = metric in lowest
        own = (wide[model] < others.min(axis=1)) if below else (wide[model] > others.max(axis=1))
        label = f"draws in which the {WORDS[model]} has the {'lowest' if below else 'highest'} {metric}"
        found.append(share(label, int(own.sum()), len(own), least, unit="share of draws"))
    return together(found, "losses")


def covers_better(evidence: Evidence, model: str, other: str) -> Finding:
    """ORD: `other`'s 95 and 99 % bands cover less than nominal, and `model`'s coverage is nearer to nominal (Figure 6).

    Nearer: above `other`'s, and by less above nominal than that is below it. Means over draws, in pairs.
    """
    loss = evidence.studies["transfer"]["loss"]
    found = []
    for metric, nominal in (("coverage_95", 0.95), ("coverage_99", 0.99)):
        wide = loss[loss["metric"] == metric].pivot(index="seed", columns="model", values="value")
        own, theirs = wide[model].to_numpy(), wide[other].to_numpy()
        what = f"coverage of {nominal:.0%} bands"
        parts = {
            f"{what}, {WORDS[other]} ({theirs.mean():.3f}) minus nominal:": (theirs - nominal, True),
            f"{what}, {WORDS[model]} ({own.mean():.3f}) minus {WORDS[other]}:": (own - theirs, False),
            f"{what}, {WORDS[model]} above nominal minus {WORDS[other]} below:": (own + theirs - 2 * nominal, True),
        }
        for label, (gaps, below) in parts.items():
            found.append(order(label, _mean(gaps), below, "share covered", clusters=len(gaps)))
    return together(found, "bands")


def covers_all(evidence: Evidence, model: str, other: str) -> Finding:
    """ORD: `other`'s 95 and 99 % bands hold the whole test function in fewer than half of the draws, `model`'s in more
    draws than `other`'s: another reading of bands that "failed to cover the test function" (Figure 6)."""
    loss = evidence.studies["transfer"]["loss"]
    found = []
    for metric, nominal in (("coverage_95", 0.95), ("coverage_99", 0.99)):
        wide = loss[loss["metric"] == metric].pivot(index="seed", columns="model", values="value") == 1.0
        own, theirs = wide[model].to_numpy(), wide[other].to_numpy()
        what = f"{nominal:.0%} bands, the whole function,"
        found.append(share(f"{what} {WORDS[other]}", int(theirs.sum()), len(theirs), 0.5, above=False))
        gap = own.astype(float) - theirs
        label = f"{what} {WORDS[model]} ({own.mean():.3f}) minus {WORDS[other]}:"
        found.append(order(label, _mean(gap), False, "share of draws", clusters=len(gap)))
    return together(found, "bands")


def stays_constant(evidence: Evidence, most: float = 1e-8) -> Finding:
    """CNT: along a training run EKL minus NLL moves by at most `most` nats on one block, by more in the controls."""
    moved = evidence.table("moved").set_index("kind")["largest"]
    if "one_block" not in moved:
        return untestable("no run on one block")
    controls = moved.drop("one_block")
    listed = ", ".join(f"{kind.replace('_', ' ')} {value:.2g}" for kind, value in controls.items())
    said = f"EKL minus NLL moves by at most {moved['one_block']:.2g} nats on one block; controls: {listed}"
    holds = moved["one_block"] <= most and bool((controls > most).all())
    return fact(said, bool(holds), float(moved["one_block"]), "nats")
