"""The gate of HE-GP-UCB: a method of elimination must eliminate before it is compared as one."""

import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import Gate

STUDY = "hegpucb_runs"
DROPPING = "drops a wrong candidate"
LEAST = 0.5
"""The share of runs in which HE-GP-UCB drops at least one wrong candidate."""
OF_PROBLEM = ("fewer_wrong", "settles_sooner")
"""Checks that compare HE-GP-UCB with others on the problem that they name."""
OF_ALL = ("kept",)
"""Checks that speak of all problems. That a true candidate is kept says nothing where none is dropped."""


def gates(evidence: Evidence) -> list[Gate]:
    """Return DROPPING for each problem of the figure that has a true candidate, under the figure's profile.

    In (a) no candidate is the function's own, so that none is wrong. Tests of HE-GP-UCB on the problem rest on it;
    those that compare other methods alone, such as ExpectedUCB with MLE, do not.
    """
    if not evidence.has("studies") or STUDY not in evidence.studies:
        return []
    runs = evidence.studies[STUDY]["run"]
    profile = str(evidence.parameters.get("profile", "figure"))
    own = runs[(runs["profile"] == profile) & (runs["method"] == "he_gp_ucb") & (runs["truth"] >= 0)]
    return [gate for problem, rows in own.groupby("problem", sort=False) for gate in _dropping(str(problem), rows)]


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
