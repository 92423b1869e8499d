"""Checks of regret across search spaces: who ends lower, by how much, and when (mphd §4.3).

From the figures' tables: `difference` holds regret minus that of a reference with its bootstrap interval over spaces,
test tasks and seeds, `ending` the last regrets. Methods are named without acquisition and split: `acquisitions` and
`panel` ("default", "ntot", "homogeneous") say which runs are meant. The last iteration decides unless said otherwise.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.papers.engine.claims.comparing import OTHERS, name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    MARGIN,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    equivalent,
    interval,
    order,
    share,
    together,
    untestable,
)
from metabo.plan.runs import RunId, method_of

UNIT = "normalised regret"
VARIANTS = ("mphd_squashed",)
"""Methods of the figures that the paper does not have, left out of "others"."""


def _rows(evidence: Evidence, table: str, panel: str, acquisition: str) -> pd.DataFrame:
    """Return a table's rows of one panel and acquisition, with plain method names and the runs' own in `run`."""
    rows = evidence.table(table)
    rows = rows[(rows["panel"] == panel) & (rows["acquisition"] == acquisition)]
    rows = rows.assign(run=rows["method"], method=rows["method"].map(method_of))
    return rows.assign(reference=rows["reference"].map(method_of)) if "reference" in rows else rows


def _gaps(evidence: Evidence, method: str, others: str | Sequence[str], but: Sequence[str], panel: str, acq: str):
    """Return the rows of others minus `method` at every iteration, without `but` and our own variants."""
    rows = _rows(evidence, "difference", panel, acq)
    rows = rows[rows["reference"] == method]
    if others == OTHERS:
        return rows[~rows["method"].isin([*but, *VARIANTS])]
    return rows[rows["method"].isin(list(others))]


def beats(
    evidence: Evidence,
    method: str,
    others: str | Sequence[str] = OTHERS,
    but: Sequence[str] = (),
    panel: str = "default",
    acquisitions: Sequence[str] = ("pi",),
) -> Finding:
    """ORD: `method` has a lower last regret than each of `others` (all but `but`), with every acquisition."""
    return _compared(evidence, method, others, but, panel, acquisitions, True)


def beaten_by(
    evidence: Evidence, method: str, by: Sequence[str], panel: str, acquisitions: Sequence[str] = ("pi",)
) -> Finding:
    """ORD: each of `by` has a lower last regret than `method`, with every acquisition."""
    return _compared(evidence, method, by, (), panel, acquisitions, False)


def _compared(evidence, method, others, but, panel, acquisitions, below) -> Finding:
    found = []
    for acq in acquisitions:
        rows = _gaps(evidence, method, others, but, panel, acq)
        last = rows["iteration"].max()
        for row in rows[rows["iteration"] == last].itertuples():
            label = f"{name(method)} minus {name(row.method)}, {panel}, {acq}:"
            found.append(order(label, (0 - row.difference, 0 - row.high, 0 - row.low), below, UNIT))  # 0 - 0 is no -0
    return together(found, "comparisons", 1 if below else -1)


def matches(
    evidence: Evidence,
    method: str,
    reference: str,
    panel: str = "default",
    acquisitions: Sequence[str] = ("pi",),
    margin: float = MARGIN,
) -> Finding:
    """The interval of the difference lies within ± `margin` times Random's last regret; weak: the estimate alone."""
    found = []
    for acq in acquisitions:
        rows = _gaps(evidence, method, [reference], (), panel, acq)
        ends = _rows(evidence, "ending", panel, acq).set_index("method")["last"]
        if rows.empty or "rand" not in ends:
            found.append(untestable(f"{name(reference)} was not run on {evidence.benchmark}"))
            continue
        row, limit = rows.loc[rows["iteration"].idxmax()], margin * float(ends["rand"])
        value, low, high = (0 - float(row[column]) for column in ("difference", "high", "low"))
        said = f"{name(method)} minus {name(reference)}, {acq}: {interval(value, low, high)}, margin {limit:.3g}"
        found.append(Finding(equivalent(value, low, high, limit), said, value, low, high, UNIT))
    return together(found, "comparisons")


def by_margin(evidence: Evidence, method: str, other: str, panel: str, deviations: float) -> Finding:
    """ORD with PI, and the gap is at least `deviations` pooled standard deviations over seeds (else at most weak)."""
    found = beats(evidence, method, [other], panel=panel)
    ends = _rows(evidence, "ending", panel, "pi").set_index("method")
    if found.value is None or not {method, other} <= set(ends.index):
        return untestable(f"{name(other)} was not run on {evidence.benchmark}")
    spread = float(np.sqrt((ends.at[method, "std"] ** 2 + ends.at[other, "std"] ** 2) / 2))
    wide = -found.value >= deviations * spread
    verdict = found.verdict if wide or found.verdict != REPLICATED else WEAK
    said = f"{found.said}; pooled deviation over seeds {spread:.3g}, {deviations:g} of them wanted"
    return Finding(verdict, said, found.value, found.low, found.high, UNIT)


def ahead_then_behind(
    evidence: Evidence, method: str, reference: str, early: int, late: int, panel: str = "default"
) -> Finding:
    """ORD with PI: `method` has less regret than `reference` at iteration `early`, more at those from `late` on."""
    rows = _gaps(evidence, reference, [method], (), panel, "pi")
    found = []
    for row in rows.itertuples():
        if row.iteration == early or row.iteration >= late:
            label = f"{name(method)} minus {name(reference)} at iteration {row.iteration}:"
            estimate = (row.difference, row.low, row.high)
            found.append(order(label, estimate, row.iteration == early, UNIT))
    return together(found, "iterations")


def overtaken_at(evidence: Evidence, method: str, reference: str, at: int, panel: str = "default") -> Finding:
    """NUM with PI: the 95 % interval of the iteration from which `reference` stays below `method` holds `at`."""
    rows = _gaps(evidence, reference, [method], (), panel, "pi")
    if rows.empty or rows["iteration"].max() < at:
        return untestable(f"the runs of {name(method)} and {name(reference)} do not reach iteration {at}")
    first, low, high = (float(rows[c].iloc[0]) for c in ("overtaken", "overtaken_low", "overtaken_high"))
    said = f"{name(reference)} stays below {name(method)} from iteration {interval(first, low, high)} on; stated {at}"
    return Finding(counted(low <= at <= high), said, first, low, high, "iteration")


def costs_little(evidence: Evidence, method: str, deviations: float = 1.0) -> Finding:
    """CNT with PI: not training on the test space raises the last regret by less than `deviations` times its spread."""
    ends = {panel: _rows(evidence, "ending", panel, "pi").set_index("method") for panel in ("default", "ntot")}
    if any(method not in rows.index for rows in ends.values()):
        return untestable(f"{name(method)} was not run in both settings")
    last, std = ([float(rows.at[method, column]) for rows in ends.values()] for column in ("last", "std"))
    spread, gap = float(np.sqrt(np.mean(np.square(std)))), last[1] - last[0]
    said = f"{name(method)}: last regret {last[0]:.3g}, without the test space {last[1]:.3g}; deviation {spread:.3g}"
    return Finding(counted(gap < deviations * spread), said, gap, unit=UNIT)


def best_acquisition(evidence: Evidence, method: str, acquisition: str = "pi") -> Finding:
    """ORD: with its own acquisition, `method` has a lower last regret than with the others."""
    rows = evidence.table("difference")
    others = [run for run in map(RunId.parse, rows["method"].unique()) if run.method == method and run.acquisition]
    rows = rows[(rows["reference"] == method) & rows["method"].isin(list(map(str, others)))]
    last = rows[rows["iteration"] == rows["iteration"].max()]
    found = []
    for row in last.itertuples():
        label = f"{name(method)} with {acquisition} minus with {RunId.parse(row.method).acquisition}:"
        found.append(order(label, (0 - row.difference, 0 - row.high, 0 - row.low), True, UNIT))
    return together(found, "acquisitions", 1)


def wins(evidence: Evidence, method: str, but: Sequence[str] = ()) -> Finding:
    """CNT: in more than half of the (panel, acquisition) shown, `method` has the lowest last regret of all but `but`.

    Our own variants do not compete.
    """
    ends = evidence.table("ending")
    count, winners = 0, []
    for (panel, acq), _ in ends.groupby(["panel", "acquisition"]):
        rows = _rows(evidence, "ending", panel, acq)
        rows = rows[~rows["method"].isin([*but, *VARIANTS])]
        best = str(rows.loc[rows["last"].idxmin(), "method"])
        count += best == method
        winners.append(f"{panel}, {acq}: {name(best)}")
    label = f"panels in which {name(method)} ends lowest ({'; '.join(winners)})"
    return share(count, len(winners), label, 2 * count > len(winners), "share of panels")


def super_dataset(evidence: Evidence, seen: int, unseen: int, train: int, test: int, dims: Sequence[int]) -> Finding:
    """CNT: numbers of spaces, of the unseen space's training and test sub-datasets, range of inputs (mphd §4.1)."""
    spaces = evidence.table("space")
    inputs = evidence.table("context").groupby("space").size().reindex(spaces["space"])
    new = (spaces["unseen"] == 1).to_numpy()
    old = inputs.to_numpy()[~new]
    facts = [
        ("spaces that φ learns from", int((~new).sum()), seen),
        ("unseen spaces", int(new.sum()), unseen),
        ("training sub-datasets of the unseen space", int(spaces.loc[new, "train"].sum()), train),
        ("test sub-datasets of the unseen space", int(spaces.loc[new, "test"].sum()), test),
        ("fewest inputs", int(old.min()), dims[0]),
        ("most inputs", int(old.max()), dims[1]),
    ]
    return together((_fact(*fact) for fact in facts), "counts")


def _fact(label: str, found: int, stated: int) -> Finding:
    return Finding(counted(found == stated), f"{label}: {found}, stated {stated}", found, unit="count")
