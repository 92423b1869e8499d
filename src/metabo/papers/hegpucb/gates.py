"""The gates of HE-GP-UCB: a method of elimination must eliminate before it is compared as one, and MLE must err where a
claim says that it does; on simple regret no methods are compared where random points find as much as the best of them.

The rules on MLE and on random points were written when the results had been seen (docs/replication-notes.md)."""

import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import LEARNABLE, Gate
from metabo.papers.engine.claims.verdicts import LEVEL, interval
from metabo.papers.hegpucb.paired import (
    COMMON,
    EARLY,
    LAST,
    LATE,
    POINTS,
    STUDY,
    WORDS,
    by_seed,
    gap_of,
    iteration_at,
    profile_runs,
)

DROPPING = "drops a wrong candidate"
LEAST = 0.5
"""The share of runs in which HE-GP-UCB drops at least one wrong candidate."""
ERRING = "MLE often follows a wrong candidate"
OFTEN = 0.1
"""The share of MLE's queries that must follow a wrong candidate to do so "often"."""
ERRS = "period"
"""The problem on which the paper says that MLE does so; ours is a reconstruction (Eq. 14 cannot be used as printed)."""
OF_PROBLEM = ("fewer_wrong", "settles_sooner")
"""Checks that compare HE-GP-UCB with others on the problem that they name."""
OF_ALL = ("kept",)
"""Checks that speak of all problems. That a true candidate is kept says nothing where none is dropped."""


def gates(evidence: Evidence) -> list[Gate]:
    """Return LEARNABLE for each problem of the figure, DROPPING for each that has a true candidate, and ERRING for the
    one on which MLE is said to err, under the figure's profile.

    In (a) no candidate is the function's own, so that none is wrong. Tests of HE-GP-UCB on the problem rest on
    DROPPING; those that compare other methods alone, such as ExpectedUCB with MLE, do not.
    """
    if not evidence.has("studies") or not {STUDY, COMMON} & set(evidence.studies):
        return []
    runs = profile_runs(evidence)
    own = runs[(runs["method"] == "he_gp_ucb") & (runs["truth"] >= 0)]
    mle = runs[(runs["method"] == "mle") & (runs["problem"] == ERRS)]
    return [
        *([] if mle.empty else [_erring(mle)]),
        *(gate for problem, rows in runs.groupby("problem", sort=False) for gate in _learnable(str(problem), rows)),
        *(gate for problem, rows in own.groupby("problem", sort=False) for gate in _dropping(str(problem), rows)),
    ]


def _learnable(problem: str, rows: pd.DataFrame) -> list[Gate]:
    """The simple regret of some method is below that of random points at the iteration that a test compares, the
    candidate that is true among the methods: an interval over seeds at level 1 - LEVEL / methods.

    Tests of simple regret rest on it. In cumulative regret random points are no rival: they never stop exploring.
    """
    orders = ("seeds_order",)
    moments = [(LAST, (problem, "simple", LAST), orders)]
    if problem == "lengthscale":
        moments.append((LAST, ("simple",), ("nearly_equal",)))
    if problem == "decomposition":
        moments += [(EARLY, (problem, "simple", EARLY), orders), (LATE, (), ("catch_up",))]
    return [gate for moment in moments for gate in _ahead(problem, rows, *moment)]


def _ahead(
    problem: str, rows: pd.DataFrame, moment: str, subjects: tuple[str, ...], checks: tuple[str, ...]
) -> list[Gate]:
    number = iteration_at(moment, rows)
    wide = by_seed(rows[rows["iteration"] == number], "simple")
    others = [str(method) for method in wide.columns if method != POINTS]
    if POINTS not in wide or not others:
        return []
    level = 1 - LEVEL / len(others)
    gaps = [(gap_of(wide, method, POINTS, [8, place], level), method) for place, method in enumerate(others)]
    (estimate, low, high), best = min(gaps, key=lambda one: one[0][2])
    bounds = interval(estimate, low, high)
    said = f"{problem}, iteration {number}: {WORDS[best]} minus random points, simple regret: {bounds}"
    return [Gate(LEARNABLE, subjects, bool(high < 0), float(high), 0.0, said, unless_named=False, checks=checks)]


def _erring(rows: pd.DataFrame) -> Gate:
    share = float((rows["u"] != rows["truth"]).mean())
    said = f"{ERRS}: {share:.1%} of the queries of MLE follow a wrong candidate"
    subjects, tests = (ERRS, "mle"), ("fewer_wrong", "seeds_order")
    return Gate(ERRING, subjects, share >= OFTEN, share, OFTEN, said, unless_named=False, checks=tests)


def _dropping(problem: str, rows: pd.DataFrame) -> list[Gate]:
    wrong = rows.assign(wrong=rows["rejected"] & (rows["u"] != rows["truth"])).groupby("seed")["wrong"].any()
    share = float(wrong.mean())
    said = f"{problem}: HE-GP-UCB drops a wrong candidate in {int(wrong.sum())} of {len(wrong)} runs"
    gate = Gate(DROPPING, (problem,), share >= LEAST, share, LEAST, said, unless_named=False, checks=OF_PROBLEM)
    found = [
        gate,
        gate._replace(subjects=(problem, "he_gp_ucb"), checks=("seeds_order",)),
        gate._replace(subjects=(), checks=OF_ALL),
    ]
    return [*found, gate._replace(subjects=(), checks=("catch_up",))] if problem == "decomposition" else found
