"""Checks of HE-GP-UCB on its four problems (hegpucb §7): candidates that are chosen, fitted and dropped.

Runs are paired by seed, as in `regret`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import binom, binomtest

from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import of_mean, varies
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    MARGIN,
    UNDECIDED,
    Finding,
    about_equal,
    fact,
    order,
    share,
    untestable,
)
from metabo.papers.hegpucb.paired import (
    OURS,
    POINTS,
    STUDY,
    WORDS,
    absent,
    at_the_end,
    by_seed,
    gap_of,
    profile,
    runs_of,
)
from metabo.papers.hegpucb.problems import LENGTHSCALES
from metabo.papers.hegpucb.studies import summaries

FITS = "hegpucb_fits"
UNTRUE = "lengthscale"
"""The problem in which no candidate is true."""


def chosen_lengthscales(evidence: Evidence, until: int, mle: float, ours: float) -> Finding:
    """At every iteration up to `until`, MLE follows a length-scale of at least `mle` in most runs, HE-GP-UCB one of at
    most `ours`: so do the medians."""
    runs = runs_of(evidence, "lengthscale")
    scales, found = _lengthscales(evidence), []
    for t in sorted(set(runs.loc[runs["iteration"] <= until, "iteration"])):
        at = runs[runs["iteration"] == t]
        for method, long in (("mle", True), (OURS, False)):
            chosen = scales[at.loc[at["method"] == method, "u"].to_numpy(dtype=int)]
            stated = chosen >= mle if long else chosen <= ours
            words = f"at least {mle:g}" if long else f"at most {ours:g}"
            label = f"runs of {WORDS[method]} with a length-scale of {words} at iteration {t}"
            found.append(share(label, int(stated.sum()), len(stated), 0.5, unit="share of runs"))
    return together(found, "iterations")


def stuck(evidence: Evidence, method: str, long: float, more_than: float = 0.5) -> Finding:
    """Of the runs of a method whose length-scale at the first query is at least `long`, more than a share ask for the
    right end alone with their last queries, and more than that share miss the peak."""
    runs = runs_of(evidence, "lengthscale")
    own = runs[runs["method"] == method]
    first = own[own["iteration"] == own["iteration"].min()]
    chosen = _lengthscales(evidence)[first["u"].to_numpy(dtype=int)]
    own = own[own["seed"].isin(first.loc[chosen >= long, "seed"])]
    if own.empty:
        return untestable(f"no run of {WORDS[method]} begins with a length-scale of at least {long:g}")
    shares, of = summaries.stuck(own).set_index("method"), own["seed"].nunique()
    words = {"fraction": "ask for the right end in the end", "missed": "miss the peak"}
    begun = f"runs of {WORDS[method]} that begin with a length-scale of at least {long:g} and"
    found = [
        share(f"{begun} {text}", round(shares.at[method, column] * of), of, more_than) for column, text in words.items()
    ]
    return together(found, "conditions")


def _lengthscales(evidence: Evidence) -> np.ndarray:
    """Return the candidates of the problem of the length-scale, under the profile of the evidence."""
    return np.array(LENGTHSCALES["code" if profile(evidence) == "successor" else "paper"])


def _followed(evidence: Evidence, problem: str) -> pd.DataFrame:
    """Return, per method and seed, the share of queries that follow a wrong candidate (`wrong`) and the query from
    which on the true one is followed for good (`settled`; one beyond the last: never)."""
    runs = runs_of(evidence, problem)
    runs = runs.assign(wrong=(runs["u"] != runs["truth"]).astype(float))
    runs = runs.assign(missed=runs["wrong"] * runs["iteration"])
    groups = runs.groupby(["method", "seed"])
    return pd.DataFrame({"wrong": groups["wrong"].mean(), "settled": groups["missed"].max() + 1}).reset_index()


def fewer_wrong(evidence: Evidence, problem: str, than: str) -> Finding:
    """ORD: HE-GP-UCB follows a wrong candidate in a smaller share of its queries than `than`, paired by seed."""
    table = _followed(evidence, problem)
    if lost := absent([OURS, than], table["method"], problem):
        return together(lost)
    wide = by_seed(table, "wrong")
    means = f"HE-GP-UCB {wide[OURS].mean():.3f}, {WORDS[than]} {wide[than].mean():.3f}"
    label = f"queries that follow a wrong candidate, {problem}: {means}; difference:"
    return order(label, gap_of(wide, OURS, than, [5]), True, "share of queries", effect=MARGIN, clusters=len(wide))


def settles_sooner(evidence: Evidence, problem: str, than: Sequence[str]) -> Finding:
    """ORD: HE-GP-UCB settles on the true candidate, for good, before each of `than`, paired by seed.

    A run that never does counts as one query beyond its last. Power is for a tenth of the other's queries.
    """
    wide = by_seed(_followed(evidence, problem), "settled")
    found: list[Finding] = []
    for other in [name for name in than if {name, OURS} <= set(wide)]:
        medians = f"medians {wide[OURS].median():g} and {wide[other].median():g}"
        label = f"query from which on the true candidate is followed, {problem} ({medians}), HE-GP-UCB minus "
        gap, effect = gap_of(wide, OURS, other, [6, len(found)]), MARGIN * float(wide[other].mean())
        found.append(order(f"{label}{WORDS[other]}:", gap, True, "queries", effect=effect, clusters=len(wide)))
    return together([*found, *absent([OURS, *than], wide.columns, problem)], "comparisons")


def fitted_periods(
    evidence: Evidence, whole: float, pieces: Sequence[float] = (), tolerance: float = 0.05, by_share: bool = False
) -> Finding:
    """About equal: the mean fitted period of the whole function over draws of points is `whole` within a share
    `tolerance`; no fit of a piece finds `whole`; and with `pieces`, the period of each piece is the stated one.

    `by_share`: in most draws, the fitted period is the stated one within `tolerance`; fits that end at an end of the
    search count as one miss each, where they move a mean by as much as they are off.
    """
    rows = evidence.studies[FITS]["fit"]
    each = [own["period"].to_numpy() for _, own in rows.groupby("piece")]
    if pieces and len(each) != len(pieces) + 1:
        return untestable(f"{len(each)} fits for {len(pieces) + 1} stated periods")
    if len(each) < 2:
        return untestable("no piece was fitted")
    labelled = [(f"piece {place + 1}", each[place], stated) for place, stated in enumerate(pieces)]
    labelled.append(("whole function", each[-1], whole))
    found = [_fitted(*one, tolerance, by_share) for one in labelled]
    ones = sum(int((np.abs(periods / whole - 1) < tolerance).sum()) for periods in each[:-1])
    fits = sum(map(len, each[:-1]))
    found.append(fact(f"{ones} of {fits} fits of a piece find period {whole:g}", ones == 0, ones, "fits"))
    return together(found, "fits")


def _fitted(label: str, periods: np.ndarray, wanted: float, tolerance: float, by_share: bool) -> Finding:
    """Return the finding of the fits of one piece.

    If all draws end at one point, such as an end of the search, Student's t has no width: their exact share counts.
    """
    said, errors = f"{label}: median period {np.median(periods):.4g}, stated {wanted:.4g}", periods / wanted - 1
    if varies(periods) and not by_share:
        return about_equal(f"{said}; mean relative error", of_mean(errors), tolerance, "relative error", len(periods))
    near = int((np.abs(errors) <= tolerance).sum())
    return share(f"{said}; draws of points with that fit", near, len(periods), 0.5, unit="share of draws")


def kept(evidence: Evidence, delta: float) -> Finding:
    """Where a candidate is true, HE-GP-UCB drops it in a share of the runs below `delta`, in every problem."""
    found = []
    for row in evidence.table("drop").itertuples():
        if row.problem != UNTRUE:
            label = f"runs that drop the true candidate, {row.problem}"
            found.append(share(label, int(row.true), int(row.runs), delta, above=False, unit="share of runs"))
    return together(found, "problems")


def rejects_most(evidence: Evidence, problem: str, more_than: float = 0.5) -> Finding:
    """HE-GP-UCB drops more than a share of the wrong candidates by its last query, on average over seeds."""
    runs = runs_of(evidence, problem)
    own = runs[runs["method"] == OURS]
    if own.empty:
        return untestable(f"HE-GP-UCB was not run on {problem}")
    listed = evidence.studies[STUDY]["candidate"]
    count = int(((listed["problem"] == problem) & (listed["profile"] == profile(evidence))).sum()) - 1
    wrong = own["rejected"].astype(bool) & (own["u"] != own["truth"])
    shares = wrong.groupby(own["seed"]).sum().to_numpy(dtype=np.float64) / count
    label = f"{more_than:g} minus the share of {count} wrong candidates dropped, {problem} ({shares.mean():.3f}):"
    gap = of_mean(more_than - shares)
    return order(label, gap, True, "share of candidates", effect=MARGIN, clusters=len(shares))


def recovers_less(evidence: Evidence, problems: Sequence[str]) -> Finding:
    """In at least one problem, fewer runs of MLE than of random points end with the true candidate as the likeliest.

    Paired by seed (exact McNemar test), at the level 0.05/n for n problems, including those that were not run.
    """
    pairs, lost = [], []
    for problem in problems:
        ends = at_the_end(runs_of(evidence, problem))
        missing = absent(["mle", POINTS], ends["method"], problem)
        lost += missing
        if not missing:
            right = by_seed(ends.assign(right=ends["mle"] == ends["truth"]), "right")
            pairs.append((problem, *right[["mle", POINTS]].dropna().to_numpy(dtype=bool).T))
    return any_of([*(_fewer_right(*one, LEVEL / len(problems)) for one in pairs), *lost], "problems")


def _fewer_right(problem: str, ours: np.ndarray, other: np.ndarray, level: float) -> Finding:
    less, more = int((other & ~ours).sum()), int((ours & ~other).sum())
    p = float(binomtest(less, less + more).pvalue) if less + more else 1.0
    verdict = UNDECIDED if not p < level else HOLDS if less > more else CONTRADICTED
    said = f"runs with the true candidate likeliest at the end, {problem}: MLE {ours.mean():.2f}, random points "
    said += f"{other.mean():.2f}, p = {p:.2g} (level {level:.3g})"
    against, support = (float(binom.sf(count - 1, less + more, 0.5)) for count in (more, less))
    return Finding(
        verdict, said, float(ours.mean() - other.mean()), unit="share of runs", clusters=len(ours), against=against,
        support=support,
    )  # fmt: skip


def likeliest_dropped(evidence: Evidence) -> Finding:
    """A wrong candidate can be dropped while it is the likeliest, before and after the observation that drops it: a
    single run in which this happens shows it. Where no candidate is true, none counts.

    If none does, the exact interval of the share of runs that drop a wrong candidate tells how often it may happen:
    contradicted if in fewer than LEVEL of them, and undecided otherwise.
    """
    runs = evidence.studies[STUDY]["run"]
    own = runs[(runs["profile"] == profile(evidence)) & (runs["method"] == OURS) & (runs["problem"] != UNTRUE)]
    own = own.sort_values(["problem", "seed", "iteration"])
    own = own.assign(later=own.groupby(["problem", "seed"])["mle"].shift(-1))
    own = own[own["rejected"].astype(bool) & (own["u"] != own["truth"])]
    before = own["u"] == own["mle"]
    still = before & (own["u"] == own["later"])
    flags = own.assign(before=before, still=still).groupby(["problem", "seed"])[["before", "still"]].any()
    if flags.empty:
        return untestable("no wrong candidate was dropped")
    count, of = int(flags["still"].sum()), len(flags)
    each = flags["still"].groupby("problem").agg(["sum", "size"])
    listed = "; ".join(f"{row.Index} {row.sum:.0f} of {row.size}" for row in each.rename(columns=str).itertuples())
    said = f"runs that drop a wrong candidate that is the likeliest before and after the observation ({listed}; just "
    found = share(f"{said}before it, {int(flags['before'].sum())} of {of})", count, of, LEVEL)
    if count:
        return replace(found, verdict=HOLDS, against=1.0, support=0.0)
    return found
