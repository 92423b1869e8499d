"""The gate of HE-GP-UCB: a method of elimination must eliminate before it is compared as one."""

import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import Gate

STUDY = "hegpucb_runs"
DROPPING = "drops a wrong candidate"
LEAST = 0.5
"""The share of runs in which HE-GP-UCB drops at least one wrong candidate."""


def gates(evidence: Evidence) -> list[Gate]:
    """Return DROPPING for each problem of the figure that has a true candidate, under the figure's profile.

    In (a) no candidate is the function's own, so that none is wrong. Tests that name the problem rest on it.
    """
    if not evidence.has("studies") or STUDY not in evidence.studies:
        return []
    runs = evidence.studies[STUDY]["run"]
    profile = str(evidence.parameters.get("profile", "figure"))
    own = runs[(runs["profile"] == profile) & (runs["method"] == "he_gp_ucb") & (runs["truth"] >= 0)]
    return [_dropping(str(problem), rows) for problem, rows in own.groupby("problem", sort=False)]


def _dropping(problem: str, rows: pd.DataFrame) -> Gate:
    wrong = rows.assign(wrong=rows["rejected"] & (rows["u"] != rows["truth"])).groupby("seed")["wrong"].any()
    share = float(wrong.mean())
    said = f"{problem}: HE-GP-UCB drops a wrong candidate in {int(wrong.sum())} of {len(wrong)} runs"
    return Gate(DROPPING, (problem,), share >= LEAST, share, LEAST, said, unless_named=False)
