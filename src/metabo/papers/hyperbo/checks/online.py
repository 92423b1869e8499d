"""Checks of online tuning: who ends with the better value, and who asks for infeasible points (hyperbo §7.5, D.1)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metabo.papers.engine.claims.comparing import absent, at_moment, difference, held, name, share_of_tasks
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import CONTRADICTED, MARGIN, Finding, share, untestable
from metabo.papers.engine.printed import tasknames
from metabo.papers.hyperbo.metrics.online import by_data_set

INFEASIBLE = "infeasible"


def _queries(evidence: Evidence) -> Evidence:
    """Return the online queries as runs whose value is 1 at an infeasible query."""
    infeasible = (~evidence.online["feasible"].astype(bool)).astype(np.float64)
    runs = by_data_set(evidence.online).assign(infeasible=infeasible)
    own = Evidence(evidence.benchmark, {"trajectories": lambda: runs}, {"regret": INFEASIBLE})
    return own.about(evidence.estimand)


def ends_lower(
    evidence: Evidence, methods: Sequence[str], reference: str, least: float, strictly: bool = False
) -> Finding:
    """On at least a share of the tasks (`strictly`: on more), each method's median is below `reference`'s.

    Median over runs of the best value after the last query. A run without any feasible point is worse than every
    value; a tie is not a win. The share of a new task is compared with `least`, and data sets are the units: an
    interval that decides does so for "more than" and for "at least".
    """
    final = evidence.table("final").pivot(index="task", columns="method", values="median")
    asked = _queries(evidence)
    tasks = {tasknames.label(task): task for task in asked.runs.tasks}
    stated = f"{'more than' if strictly else 'at least'} {least:.3g} stated"
    found = []
    for method in methods:
        if not {method, reference} <= set(final):
            found.append(untestable(f"{name(method)} or {name(reference)} was not run"))
            continue
        wins = (final[method] < final[reference]).rename(index=tasks)
        label = f"tasks on which {name(method)} ends below {name(reference)} ({stated})"
        found.append(share_of_tasks(asked, label, wins, least))
    return together(found, "methods")


def only_infeasible(evidence: Evidence, method: str, tasks: Sequence[str]) -> Finding:
    """No run of a method finds a feasible point on the named tasks (a name that a task's begins with).

    One feasible query contradicts "only". Without any it holds if the exact interval of the share of such runs lies
    above one half, which takes six runs.
    """
    rows = evidence.table("final")
    own = rows[rows["method"] == method]
    if own.empty:
        return untestable(f"{name(method)} was not run")
    found = []
    for begin in tasks:
        named = own[own["task"].str.startswith(begin)]
        if named.empty:
            found.append(untestable(f"benchmark {evidence.benchmark} has no task {begin}"))
        for row in named.itertuples():
            found.append(_never(method, row.task, int(row.repetitions), int(row.with_value)))
    never = int((own["with_value"] == 0).sum())
    whole = together(found, "tasks")
    general = f"no run of {name(method)} finds a feasible point on {never} of {len(own)} tasks of {evidence.benchmark}"
    return replace(whole, said=f"{whole.said}; {general}")


def _never(method: str, task: str, runs: int, with_value: int) -> Finding:
    without = runs - with_value
    label = f"runs of {name(method)} on {task} that ask for infeasible points only"
    found = share(label, without, runs, 0.5, unit="share of runs")
    return found if without == runs else replace(found, verdict=CONTRADICTED, against=0.0)


def more_infeasible(evidence: Evidence, more: Sequence[str], than: Sequence[str]) -> Finding:
    """ORD: each of `more` asks for infeasible points in a larger share of its queries than each of `than`.

    Power is for a share that is larger by MARGIN; data sets are the units.
    """
    asked = _queries(evidence)
    here, _ = at_moment(asked.runs, "area")
    found = []
    for own in held(more, asked.runs):
        for other in held(than, asked.runs):
            gap = difference(asked, here, own, other, len(found))
            label = f"share of infeasible queries, {name(own)} minus {name(other)}:"
            one = gap.order(label, False, "share of queries", effect=MARGIN)
            found.append(one)
    return together([*found, *absent(more, asked.runs), *absent(than, asked.runs)], "comparisons")
