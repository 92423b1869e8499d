"""Checks of cm-BO's study of times: what a query costs, and which distances rounding decides (cm-BO §4.2).

A time is the lowest of several repeats: one number. What varies is the ratio at equal sizes, and the points about a
straight line of logarithms; a number that was measured once decides nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import combined, of_slope
from metabo.papers.engine.claims.ranges import ranged
from metabo.papers.engine.claims.verdicts import MARGIN, Finding, clopper_pearson, order, untestable

FLAT, LINEAR = (-0.1, 0.2), (0.8, 1.2)
"""Accepted slopes of log time over log number (the ranges of HyperBO's Table 1)."""


def more_stable(evidence: Evidence, kernels: Sequence[str]) -> Finding:
    """ORD: before jitter, with these kernels, a smaller share of W2 distances than of Jeffreys divergences is lost (the
    study's rule, the same for both); W2 costs more.

    Distances are between neighbours in a ring, and all kernels and sizes share their random numbers: only every other
    pair of one of them counts as a draw. The interval of the difference is Newcombe's (1998) of exact ones, as if the
    two measures had pairs of their own, which is on the safe side.
    """
    rows = evidence.table("stability")
    rows = rows[(rows["jitter"] == 0) & rows["kernel"].isin(kernels)]
    if set(kernels) - set(rows["kernel"]):
        return untestable(f"no distances with the kernels {', '.join(kernels)}")
    lost = rows.groupby("measure")[["lost", "of"]].sum()
    change = rows.groupby("measure")["error"].max()
    pairs = max(int(rows["of"].max()) // 2, 1)
    told, shares = [], {}
    for measure, words in (("wasserstein", "W2"), ("jeffreys", "Jeffreys")):
        count, of = lost.loc[measure, ["lost", "of"]]
        told.append(f"{words} {count:.0f} of {of:.0f} (largest change {change[measure]:.1g})")
        shares[measure] = (count / of, *clopper_pearson(count / of * pairs, pairs))
    gap = combined((1.0, shares["wasserstein"]), (-1.0, shares["jeffreys"]))
    label = f"lost to rounding before jitter: {', '.join(told)}; difference of the shares, {pairs} draws:"
    stable = order(label, gap, True, "share of distances", effect=MARGIN, clusters=pairs)
    return together([stable, *_dearer(evidence)])


def _dearer(evidence: Evidence) -> list[Finding]:
    """ORD: W2 takes longer than Jeffreys at the same sizes, for an iteration of clustering and for a query."""
    times = evidence.table("claim")
    found = []
    for row in times[times["comparison"].str.contains("W2 over Jeffreys")].itertuples():
        label = f"{row.comparison}, {row.units:.0f} sizes:"
        found.append(order(label, (row.value, row.least, row.most), False, "times", 1.0, clusters=int(row.units)))
    return found or [untestable("no times of W2 and Jeffreys")]


def grows_with_tasks(evidence: Evidence, flat: Sequence[str], linear: Sequence[str]) -> Finding:
    """NUM: the time of a query has a log-log slope in the number of source tasks in FLAT for the methods in `flat`, in
    LINEAR for those in `linear`: its interval lies in the range, or outside it."""
    rows = evidence.table("time")
    rows = rows[rows["kind"] == "query"]
    found = []
    for methods, (least, most) in ((flat, FLAT), (linear, LINEAR)):
        for method in methods:
            own = rows[rows["measure"] == method]
            if own["tasks"].nunique() < 2:
                found.append(untestable(f"no times of a query of {method} for several numbers of tasks"))
                continue
            slope = of_slope(np.log(own["tasks"].to_numpy(float)), np.log(own["seconds"].to_numpy()))
            label = f"time of a query of {method} against the number of tasks, {len(own)} sizes: slope"
            found.append(ranged(label, slope, least, most, "slope", len(own) - 1))
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
        label = f"{measure}: time with {sizes[-1]:.0f} clusters over that with {sizes[0]:.0f}, {len(own)} sizes:"
        found.append(ranged(label, (ratio, low, high), -np.inf, limit, "times", len(own) - 1))
    return together(found, "distances")
