"""Checks of how many queries methods need across search spaces, and of plateaus (mphd §1, §4.3), as in `spaces`."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from metabo.papers.engine.claims.comparing import OTHERS, name
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence, NoTable
from metabo.papers.engine.claims.verdicts import MARGIN, Finding, order, untestable
from metabo.papers.mphd.checks.spaces import VARIANTS
from metabo.plan.runs import method_of

TWICE = 1.0
"""The effect that power is stated for, in doublings: half the queries."""


def fewer_queries(
    evidence: Evidence,
    method: str,
    panel: str,
    others: str | Sequence[str] = OTHERS,
    but: Sequence[str] = (),
    acquisitions: Sequence[str] = ("pi",),
) -> Finding:
    """ORD: `method` needs fewer queries than each of `others` (all but `but`) to reach what the worse of the two ends
    with (`metabo.papers.mphd.queries.query_savings`), with every acquisition."""
    found = []
    for acq in acquisitions:
        rows = _rows(evidence, "savings", method, panel, acq)
        named = ~rows["method"].isin([*but, *VARIANTS]) if others == OTHERS else rows["method"].isin(list(others))
        for row in rows[named].itertuples():
            label = f"doublings of queries of {name(row.method)} over {name(method)}, {panel}, {acq} "
            label += f"({2**row.difference:.2g} times; reached by {row.reached:.0%}):"
            found.append(_found(evidence, row, label, False, "doublings", TWICE))
        lost = [] if others == OTHERS else [other for other in others if other not in set(rows["method"])]
        found += [untestable(f"{name(method)} or {name(other)} was not run, {panel}, {acq}") for other in lost]
    return together(found, "comparisons")


def falls_less(
    evidence: Evidence, methods: Sequence[str], reference: str, start: int, panel: str = "default"
) -> Finding:
    """ORD with PI: from iteration `start` to the last, the mean regret of each method falls by less than a tenth, and
    by a smaller share than that of `reference` (`metabo.papers.mphd.queries.late_falls`)."""
    rows = _rows(evidence, "falls", reference, panel, "pi")
    rows = rows[rows["since"] == start] if len(rows) else rows
    found = []
    for method in methods:
        own = rows[rows["method"] == method] if len(rows) else rows
        if not len(own):
            found.append(untestable(f"{name(method)} or {name(reference)} was not run beyond iteration {start}"))
        for row in own.itertuples():
            than = f"that of {name(reference)}" if row.against == "reference" else f"{1 - MARGIN:.0%}"
            label = f"share of the regret at iteration {start} that {name(method)} keeps to the last (it loses "
            label += f"{row.fall:.0%}) minus {than}:"
            found.append(_found(evidence, row, label, False, "share", MARGIN))
    return together(found, "conditions")


def _rows(evidence: Evidence, table: str, reference: str, panel: str, acquisition: str) -> pd.DataFrame:
    """Return a table's rows against a reference in one panel, with plain method names; none without the table."""
    try:
        rows = evidence.table(table)
    except NoTable:
        return pd.DataFrame(columns=["method"])
    rows = rows[(rows["panel"] == panel) & (rows["acquisition"] == acquisition)]
    rows = rows[rows["reference"].map(method_of) == reference]
    return rows.assign(method=rows["method"].map(method_of))


def _found(evidence: Evidence, row, label: str, below: bool, unit: str, effect: float | None) -> Finding:
    """Return the finding of an order of a row's difference and 0, by the evidence's estimand, with both intervals."""
    suite, new = (row.suite_low, row.suite_high), (row.low, row.high)
    suited = evidence.estimand == "suite"
    ends, units, freedom = (suite, row.suite_units, None) if suited else (new, row.units, float(row.freedom))
    one = order(label, (row.difference, *ends), below, unit, effect=effect, clusters=int(units), freedom=freedom)
    return replace(one, suite=suite, new=new)
