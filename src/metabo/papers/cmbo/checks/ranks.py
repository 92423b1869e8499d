"""Checks of cm-BO's ranks and shares of runs solved (cm-BO §4.2, Figure 2).

They are over the search spaces of a group of the figure, paired by run, with splits as the folds of their intervals.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import rankdata

from metabo.data.cmbo import IDS
from metabo.metrics import Runs, paired
from metabo.papers.cmbo.metrics import SOLVED
from metabo.papers.cmbo.panels import absent, most, panels, runs_of
from metabo.papers.engine.claims.comparing import barred, compared, name
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import MARGIN, Finding, untestable

GROUPS = {"a": ("rpart.preproc",), "b": ("rpart", "svm", "ranger")}
"""Search spaces of Figure 2, by their names in Table 1."""


def _group(evidence: Evidence, group: str) -> Evidence | None:
    """Return the evidence of the search spaces of a group; if none of the paper's is there, group "a" has all."""
    table = evidence.trajectories
    labels = {id: label for label, ids in IDS.get(evidence.benchmark, {}).items() for id in ids}
    if set(table["space"]) & set(labels):
        rows = table[table["space"].map(labels).isin(GROUPS[group])]
    else:
        rows = table if group == "a" else table.iloc[:0]
    if rows.empty:
        return None
    here = Evidence(evidence.benchmark, {"trajectories": lambda: rows}, evidence.parameters)
    return here.about(evidence.estimand, evidence.failing)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each method's regret within its run, ties averaged: (methods, repetitions, targets, T)."""
    return rankdata(values, axis=0, method="average")


def _solved(values: np.ndarray) -> np.ndarray:
    return (values < SOLVED).astype(np.float64)


MEASURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"rank": _ranks, "solved": _solved}
"""What Figure 2 shows of each run."""
UNITS = {"rank": ("ranks", 1.0), "solved": ("share of runs", MARGIN)}
"""Their units, and the differences that power is stated for: one rank, a tenth of the runs."""


def _pooled(runs: Runs, measure: str, first: int, last: int) -> dict[str, np.ndarray]:
    """Return a measure of each run, mean over iterations [first, last] and acquisitions: (repetitions, targets).

    Of the methods that were run with every acquisition, as in the paper's first row of panels.
    """
    shown = list(panels(runs).values())
    shared = [method for method in (shown[0] if shown else []) if all(method in names for names in shown)]
    if not shared:
        return {}
    chosen = (runs.iterations >= first) & (runs.iterations <= last)
    each = [
        MEASURES[measure](paired(runs.select([names[m] for m in shared]), "run")[..., chosen]).mean(axis=-1)
        for names in shown
    ]
    return dict(zip(shared, np.mean(each, axis=0), strict=True))


def _measured(
    evidence: Evidence,
    measure: str,
    where: str,
    values: dict[str, np.ndarray],
    pairs: Sequence[tuple[str, str]],
    higher: bool,
) -> list[Finding]:
    """Return one ORD finding per pair: the first has the lower measure, or the `higher` one."""
    found = []
    for first, second in pairs:
        if lost := barred(evidence, *(runs_of(evidence.runs, method) for method in (first, second))):
            found.append(lost)
            continue
        gap = compared(evidence, values[first] - values[second], len(found))
        label, (measured, effect) = f"{measure}, {where}: {name(first)} minus {name(second)}:", UNITS[measure]
        one = gap.order(label, not higher, measured, effect=effect)
        found.append(one)
    return found


def ahead_in_most(evidence: Evidence, variants: Sequence[str], others: Sequence[str], groups: Sequence[str]) -> Finding:
    """ORD: at the last iteration, in most of (group, rank or share solved, other method), most variants are ahead.

    All acquisitions pooled, of the methods that were run with each of them. Comparisons share runs, so that they are
    counted by how many are surely won and surely lost.
    """
    found: list[Finding] = []
    ahead = []
    for group in groups:
        here = _group(evidence, group)
        last = here.runs.last if here else 0
        for measure in MEASURES:
            values = _pooled(here.runs, measure, last, last) if here else {}
            ours = [m for m in variants if m in values]
            for other in [m for m in others if m in values] if here and ours else []:
                where, higher = f"group ({group}), iteration {last}", measure == "solved"
                parts = _measured(here, measure, where, values, [(own, other) for own in ours], higher)
                better = [part.value is not None and (part.value > 0 if higher else part.value < 0) for part in parts]
                found.append(most(f"{measure}, {where}: variants ahead of {name(other)}", parts, better))
                ahead.append(2 * sum(better) > len(better))
    if not found:
        return untestable(f"groups {', '.join(groups)} have no runs of the variants and of the others")
    return most("comparisons in which most variants are ahead", found, ahead, "comparisons")


def best_in_band(
    evidence: Evidence, table: str, group: str, methods: Sequence[str], within: Sequence[int], higher: bool = False
) -> Finding:
    """ORD: over the iterations [from, to], the methods take the first places, in this order: each is ahead of those
    after it and of all others.

    `table`: "rank" (lower is better) or "solved" (`higher`), all acquisitions pooled.
    """
    here = _group(evidence, group)
    if here is None or here.runs.last < within[0]:
        return untestable(f"no runs of group ({group}) in iterations {within[0]} to {within[1]}")
    values = _pooled(here.runs, table, *within)
    if lost := [method for method in methods if method not in values]:
        return untestable(f"{name(lost)} was not run with every acquisition")
    pairs = [(own, other) for i, own in enumerate(methods) for other in values if other not in methods[: i + 1]]
    where = f"group ({group}), iterations {within[0]} to {within[1]}"
    return together(_measured(here, table, where, values, pairs, higher), "comparisons")


def fewer_solved(evidence: Evidence, method: str, than: Sequence[str], groups: Sequence[str]) -> Finding:
    """ORD: at the last iteration most of `than` have solved a larger share of runs than a method, in every group."""
    found = []
    for group in groups:
        here = _group(evidence, group)
        last = here.runs.last if here else 0
        values = _pooled(here.runs, "solved", last, last) if here else {}
        others = [m for m in than if m in values]
        if here is None or method not in values or not others:
            found.append(untestable(f"group ({group}) has no runs of {name(method)} or of the others"))
            continue
        pairs = [(other, method) for other in others]
        parts = _measured(here, "solved", f"group ({group}), iteration {last}", values, pairs, True)
        ahead = [(part.value or 0.0) > 0 for part in parts]
        found.append(
            most(
                f"group ({group}), iteration {last}: methods that solve more than {name(method)}",
                parts,
                ahead,
                "methods",
            )
        )
    return together([*found, *absent(than, evidence.runs)], "groups")
