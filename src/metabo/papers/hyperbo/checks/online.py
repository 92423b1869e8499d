"""Checks of online tuning: who ends with the better value, and who asks for infeasible points (hyperbo §7.5, D.1)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding, counted, share, together, untestable


def ends_lower(
    evidence: Evidence, methods: Sequence[str], reference: str, least: float, strictly: bool = False
) -> Finding:
    """CNT: on at least a share of the tasks (`strictly`: on more), each method's median is below `reference`'s.

    Median over runs of the best value after the last query. A run without any feasible point is worse than every
    value; equality is no win.
    """
    final = evidence.table("final").pivot(index="task", columns="method", values="median")
    found = []
    for method in methods:
        if not {method, reference} <= set(final):
            found.append(untestable(f"{name(method)} or {name(reference)} was not run"))
            continue
        wins, of = int((final[method] < final[reference]).sum()), len(final)
        holds = wins > least * of if strictly else wins >= least * of - 1e-9
        label = f"tasks on which {name(method)} ends below {name(reference)}"
        found.append(share(wins, of, label, holds, "share of tasks"))
    return together(found, "methods")


def only_infeasible(evidence: Evidence, method: str, tasks: Sequence[str]) -> Finding:
    """CNT: all queries of a method are infeasible on the named tasks (a name that a task's begins with)."""
    rows = evidence.table("infeasible")
    own = rows[rows["method"] == method]
    named = own[[any(task.startswith(begin) for begin in tasks) for task in own["task"]]]
    everywhere = int((own["share"] == 1).sum())
    general = f"{name(method)} has only infeasible queries on {everywhere} of {len(own)} tasks of {evidence.benchmark}"
    if own.empty or named.empty:
        return untestable(f"benchmark {evidence.benchmark} has no task {' or '.join(tasks)}; {general}")
    said = f"{general}; share of infeasible queries on the named: {_shares(named)}"
    least = float(named["share"].min())
    return Finding(counted(least == 1), said, least, unit="share of queries")


def _shares(rows: pd.DataFrame) -> str:
    return ", ".join(f"{row.task} {row.share:.2f}" for row in rows.itertuples())


def more_infeasible(evidence: Evidence, more: Sequence[str], than: Sequence[str]) -> Finding:
    """CNT: each of `more` asks for infeasible points in a larger share of its queries than any of `than`."""
    rows = evidence.table("infeasible").groupby("method")[["infeasible", "queries"]].sum()
    shares = rows["infeasible"] / rows["queries"]
    known = [method for method in than if method in shares]
    found = []
    for method in more:
        if method not in shares or not known:
            found.append(untestable(f"{name(method)} was not run"))
            continue
        most = float(np.max([shares[other] for other in known]))
        said = f"infeasible queries: {name(method)} {shares[method]:.3f}, at most {most:.3f} for the others"
        found.append(Finding(counted(shares[method] > most), said, float(shares[method]), unit="share of queries"))
    return together(found, "methods")
