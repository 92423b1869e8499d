"""Checks of regret against the amount of training data (hyperbo §7.4.3, §7.4.4, §7.6.2).

The figures' numbers say which run has which size; the runs themselves give differences and their intervals.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from metabo.metrics import Runs
from metabo.papers.engine.claims.comparing import (
    Compared,
    at_moment,
    compared,
    difference,
    name,
    side_values,
    tenth_of_random,
    unit,
)
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import LEVEL, Finding, untestable
from metabo.plan.runs import on_splits

ITERATION = 100
"""The iteration at which the figures compare regrets; a run that ends earlier is compared at its last."""


def _sized(evidence: Evidence, table: str) -> pd.DataFrame:
    """Return the rows of a table of the figure by ascending size, with the name of each one's run."""
    rows = evidence.table(table).sort_values("size")
    return rows.assign(run=on_splits(rows["method"], rows["split"]))


def _regret(evidence: Evidence) -> Runs:
    return at_moment(evidence.runs, ITERATION)[0]


def _missing(method: str) -> str:
    return f"{name(method)} was not run"


def beside_reference(
    evidence: Evidence, methods: Sequence[str], sizes: Sequence[float | None], below: bool = True
) -> Finding:
    """ORD: with training data of [from, to] points or tasks, each method has less regret than the figure's reference.

    If `to` is None, there is no upper end. A method without a size in that range is judged at its largest below it
    (H-EKL has no more points than are matched). If `below` is false: more regret instead.
    """
    rows, here = _sized(evidence, "difference"), _regret(evidence)
    start, end = sizes[0] or 0, np.inf if sizes[1] is None else sizes[1]
    found = []
    for method in methods:
        own = rows[rows["method"] == method]
        chosen = own[(own["size"] >= start) & (own["size"] <= end)]
        chosen = own[own["size"] <= end].tail(1) if chosen.empty else chosen
        if chosen.empty:
            found.append(untestable(f"{name(method)} was not run with so few" if len(own) else _missing(method)))
        for row in chosen.itertuples():
            label = f"{name(method)} minus {name(row.reference)} with {row.size:.0f} (ratio {row.ratio:.2g}):"
            found.append(_beside(evidence, here, row.run, row.reference, label, len(found), below))
    return together(found, "comparisons")


def _beside(
    evidence: Evidence, here: Runs, run: str, reference: str, label: str, place: int, below: bool, level: float = 0.95
) -> Finding:
    gap = difference(evidence, here, run, reference, place, level)
    effect = tenth_of_random(here, reference)
    return gap.order(label, below, unit(evidence), effect=effect, level=level)


class _Line(NamedTuple):
    """A change of regret along the sizes of a method, what it is called, and MARGIN of Random's regret."""

    label: str
    change: Compared
    margin: float


def _line(evidence: Evidence, method: str, place: int) -> _Line | None:
    """Return the change of regret from the smallest size to the largest along a line through the sizes in order.

    Of each repetition and task; sizes count by their rank, as in the figure's rank correlation. None for one size.
    """
    rows, here = _sized(evidence, "curve"), _regret(evidence)
    own = rows[rows["method"] == method]
    if len(own) < 2:
        return None
    step = np.arange(len(own)) - (len(own) - 1) / 2
    values = side_values(here, list(own["run"]))
    change = (len(own) - 1) * np.tensordot(step, values, axes=1) / (step @ step)
    label = f"{name(method)}, {own['size'].iloc[0]:.0f} to {own['size'].iloc[-1]:.0f}: change of regret along a line"
    return _Line(
        f"{label} through {len(own)} sizes:",
        compared(evidence, change, place),
        tenth_of_random(here, own["run"].iloc[0]),
    )


def trend_down(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """ORD: regret falls with the amount of data, for each method, along a line through the sizes (`_line`)."""
    found = []
    for place, method in enumerate(methods):
        line = _line(evidence, method, place)
        if line is None:
            found.append(untestable(f"{name(method)} was run with one size, or not at all"))
            continue
        gap = line.change
        one = gap.order(line.label, True, unit(evidence), effect=line.margin)
        found.append(one)
    return together(found, "methods")


def trend_flat(evidence: Evidence, method: str) -> Finding:
    """A method does not improve with the amount of data: its regret falls by at most MARGIN of Random's (`_line`)."""
    line = _line(evidence, method, 0)
    if line is None:
        return untestable(f"{name(method)} was run with one size, or not at all")
    gap = line.change
    return gap.similar(line.label, line.margin, False, unit(evidence))


def wider_beyond(evidence: Evidence, methods: Sequence[str], size: float) -> Finding:
    """ORD: regret varies more over pre-training seeds above `size` than up to it, for each method (Figure 11).

    Varies: distance from the median over repetitions, of each repetition and task (Brown and Forsythe 1974), mean over
    sizes. The finding also gives the widths of the figure's bands, which have no interval.
    """
    rows, here = _sized(evidence, "curve"), _regret(evidence)
    found = []
    for place, method in enumerate(methods):
        own = rows[rows["method"] == method]
        above = (own["size"] > size).to_numpy()
        if not len(own) or above.all() or not above.any():
            found.append(untestable(f"{name(method)}: no sizes on both sides of {size:g}"))
            continue
        values = side_values(here, list(own["run"]))
        if values.shape[1] < 2:
            found.append(untestable(f"{name(method)}: one repetition"))
            continue
        gap = compared(evidence, _spread(values[above]) - _spread(values[~above]), place)
        few, many = ((own["high"] - own["low"])[chosen].mean() for chosen in (~above, above))
        label = f"{name(method)}: band {many:.3g} wide above {size:g}, {few:.3g} up to it; distance from the median"
        label += " above minus up to it:"
        effect = tenth_of_random(here, own["run"].iloc[0])
        one = gap.order(label, False, unit(evidence), effect=effect)
        found.append(one)
    return together(found, "methods")


def _spread(values: Float[np.ndarray, "s q k"]) -> Float[np.ndarray, "q k"]:
    """Return the distance of each repetition from the median of all, mean over sizes."""
    return np.abs(values - np.median(values, axis=1, keepdims=True)).mean(axis=0)


def fewest_needed(evidence: Evidence, method: str) -> Finding:
    """At some size a method has less regret than the reference, while every other one with as much data has more.

    Others are judged at their largest size up to that. Each size is tested at the level of all together (Bonferroni).
    """
    rows, here = _sized(evidence, "difference"), _regret(evidence)
    own, others = rows[rows["method"] == method], rows[rows["method"] != method]
    if own.empty or others.empty:
        return untestable(f"{name(method)} or the others were not run")
    reference, level = str(own["reference"].iloc[0]), 1 - LEVEL / len(own)
    found, place = [], 0
    for row in own.itertuples():
        nearest = others[others["size"] <= row.size].groupby("method", sort=False).tail(1)
        parts = []
        for side in [row, *nearest.itertuples()]:
            label = f"{name(side.method)} minus {name(reference)} with {side.size:.0f}:"
            parts.append(_beside(evidence, here, side.run, reference, label, place, side is row, level))
            place += 1
        found.append(together(parts, "methods"))
    return any_of(found, "sizes")
