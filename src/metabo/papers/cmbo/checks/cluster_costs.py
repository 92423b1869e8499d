"""Checks of cm-BO's study of times: what a query costs, and which distances rounding decides (cm-BO §4.2).

A time is the lowest of several repeats: one number. What varies is the ratio at equal sizes, and the points about a
straight line of logarithms; a number that was measured once decides nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import of_mean, of_slope
from metabo.papers.engine.claims.ranges import ranged
from metabo.papers.engine.claims.verdicts import Finding, share, untestable

FLAT, GROWING = (-np.inf, 0.2), (0.2, np.inf)
"""Accepted slopes of log time over log number: it does not grow, or does. A fixed part of the time, beside one that is
proportional to the number, makes the slope less than 1, and the paper prints no exponent."""
INFORMATIVE = 100.0
"""A limit that many times above what is measured says nothing (as of bounds: `metabo.papers.engine.theory`)."""
HALF = 0.5
"""What is typical, or said without a number, happens in more than half of the cases."""


def as_ranged(evidence: Evidence, claim: str) -> Finding:
    """Every row of the table `claim` for this claim, a time or a ratio of times, has its interval in the accepted
    range, or outside it. A limit that is INFORMATIVE times the time, measured on another machine, tests nothing."""
    rows = evidence.table("claim")
    found = [
        untestable(f"{row.comparison}: {row.value:.2g}, not informative beside a limit of {row.high:g}")
        if row.low == 0 and row.high >= INFORMATIVE * row.most
        else ranged(
            f"{row.comparison}:",
            (row.value, row.least, row.most),
            row.low,
            row.high,
            clusters=int(row.units),
            ratio=True,
        )
        for row in rows[rows["claim"] == claim].itertuples()
    ]
    return together(found, "conditions")


def more_stable(evidence: Evidence, kernels: Sequence[str]) -> Finding:
    """ORD: before jitter, with each of these kernels and sizes, rounding changes W2 less than Jeffreys in more than
    half of the pairs of posteriors (the study's perturbation, the same for both); W2 costs more.

    Distances are between neighbours in a ring: only every other pair counts as a draw. A distance that is not finite
    or not positive changes by infinitely much; where both are so, neither changes less.
    """
    rows = evidence.table("changes")
    rows = rows[(rows["jitter"] == 0) & rows["kernel"].isin(kernels) & (rows["pair"] % 2 == 0)]
    if set(kernels) - set(rows["kernel"]):
        return untestable(f"no distances with the kernels {', '.join(kernels)}")
    found = []
    for (kernel, size), own in rows.groupby(["kernel", "locations"], sort=False):
        less = own["wasserstein"] < own["jeffreys"]
        typical = ", ".join(
            f"{words} {own[key].median():.1g}" for words, key in (("W2", "wasserstein"), ("Jeffreys", "jeffreys"))
        )
        label = f"{kernel}, {size:.0f} locations: rounding changes W2 less than Jeffreys (medians {typical}) in"
        found.append(share(label, int(less.sum()), len(own), HALF, unit="share of pairs"))
    return together([*found, *_dearer(evidence)])


def _dearer(evidence: Evidence) -> list[Finding]:
    """ORD: W2 takes longer than Jeffreys at the same sizes, for an iteration of clustering and for a query."""
    times = evidence.table("claim")
    found = []
    for row in times[times["comparison"].str.contains("W2 over Jeffreys")].itertuples():
        label = f"{row.comparison}, {row.units:.0f} sizes:"
        estimate = (row.value, row.least, row.most)
        found.append(ranged(label, estimate, 1.0, np.inf, "times", int(row.units), ratio=True))
    return found or [untestable("no times of W2 and Jeffreys")]


def few_iterations(evidence: Evidence, fewer: int) -> Finding:
    """ORD: with each distance, more than half of the fits of k-means take fewer than `fewer` iterations."""
    found = []
    for measure, own in evidence.table("iterations").groupby("measure", sort=False):
        count = int((own["iterations"] < fewer).sum())
        found.append(share(f"{measure}: fits with fewer than {fewer} iterations", count, len(own), HALF))
    return together(found, "distances")


def grows_with_tasks(evidence: Evidence, flat: Sequence[str], growing: Sequence[str]) -> Finding:
    """NUM: the time of a query has a log-log slope in the number of source tasks in FLAT for the methods in `flat`, in
    GROWING for those in `growing`: its interval over the rounds of the study lies in the range, or outside it."""
    rows = evidence.table("time")
    rows = rows[rows["kind"] == "query"]
    found = []
    for methods, (least, most) in ((flat, FLAT), (growing, GROWING)):
        for method in methods:
            own = rows[rows["measure"] == method]
            if own["tasks"].nunique() < 2:
                found.append(untestable(f"no times of a query of {method} for several numbers of tasks"))
                continue
            slopes = [
                of_slope(np.log(one["tasks"].to_numpy(float)), np.log(one["seconds"].to_numpy()))[0]
                for _, one in own.groupby("repetition")
            ]
            sizes = own["tasks"].nunique()
            label = (
                f"time of a query of {method} against the number of tasks, {sizes} sizes, {len(slopes)} rounds: slope"
            )
            found.append(ranged(label, of_mean(np.asarray(slopes)), least, most, "slope", len(slopes)))
    return together(found, "methods")


def weak_growth(evidence: Evidence, kind: str, most: Mapping[str, float]) -> Finding:
    """NUM: the time of `kind` with the most clusters is at most `most` times that with the fewest.

    `most` has one limit for each distance. The ratio is that of a straight line of log time over log clusters.
    """
    rows = evidence.table("time")
    rows = rows[rows["kind"] == kind].sort_values("clusters")
    found = []
    for measure, limit in most.items():
        own = rows[rows["measure"] == measure]
        sizes = own["clusters"].to_numpy(float)
        if len(set(sizes)) < 2:
            found.append(untestable(f"{measure}: no times for several numbers of clusters"))
            continue
        slope = of_slope(np.log(sizes), np.log(own["seconds"].to_numpy()))
        ratio, low, high = (float(np.exp(end * np.log(sizes[-1] / sizes[0]))) for end in slope)
        label = f"{measure}: time with {sizes[-1]:.0f} clusters over that with {sizes[0]:.0f}, {len(own)} times:"
        found.append(ranged(label, (ratio, low, high), 0.0, limit, "times", len(own) - 1, ratio=True))
    return together(found, "distances")
