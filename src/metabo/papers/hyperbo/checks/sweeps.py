"""Checks of regret against the amount of training data (hyperbo §7.4.3, §7.4.4, §7.6.2), from the figures' numbers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    LEVEL,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    known,
    order,
    together,
    trend,
    untestable,
)

NEGLIGIBLE = 0.3
"""Largest rank correlation that counts as no trend."""


def beside_reference(
    evidence: Evidence, methods: Sequence[str], sizes: Sequence[float | None], below: bool = True
) -> Finding:
    """ORD: with training data of [from, to] points or tasks, each method has less regret than the figure's reference.

    None for `to`: no upper end. A method without a size in that range is judged at its largest below it (H-EKL has
    no more points than are matched). `below` false: more regret instead.
    """
    rows = evidence.table("difference")
    start, end = sizes[0] or 0, np.inf if sizes[1] is None else sizes[1]
    found = []
    for method in methods:
        own = rows[rows["method"] == method].sort_values("size")
        chosen = own[(own["size"] >= start) & (own["size"] <= end)]
        chosen = own[own["size"] <= end].tail(1) if chosen.empty else chosen
        if chosen.empty:
            found.append(untestable(f"{name(method)} was not run with so few" if len(own) else _missing(method)))
        for row in chosen.itertuples():
            label = f"{name(method)} minus {name(row.reference)} with {row.size:.0f} (ratio {row.ratio:.2g}):"
            found.append(order(label, (row.difference, row.low, row.high), below, evidence.regret.replace("_", " ")))
    return together(found, "comparisons", 1 if below else -1)


def trend_down(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """Regret falls with the amount of data, for each method (rank correlation over repetitions and sizes)."""
    rows = evidence.table("trend").set_index("method")
    shown = set(rows.index)
    found = [_trend(rows, m) if m in shown else untestable(_missing(m)) for m in methods]
    return together(found, "methods")


def _trend(rows: pd.DataFrame, method: str) -> Finding:
    return trend(name(method), rows.at[method, "spearman"], rows.at[method, "p"])


def _missing(method: str) -> str:
    return f"{name(method)} was not run"


def trend_flat(evidence: Evidence, method: str) -> Finding:
    """A method has no trend: p < 0.05 is one; without that, a rank correlation within ± NEGLIGIBLE is none, a larger
    one is undecided (weak): few runs rarely make a trend significant."""
    rows = evidence.table("trend").set_index("method")
    if method not in rows.index:
        return untestable(_missing(method))
    found = _trend(rows, method)
    if found.value is None:
        return found
    flat = REPLICATED if abs(found.value) <= NEGLIGIBLE else WEAK
    return replace(found, verdict=FAILED if rows.at[method, "p"] < LEVEL else flat)


def wider_beyond(evidence: Evidence, methods: Sequence[str], size: float) -> Finding:
    """CNT: the mean width of the 20 to 80 % band is larger above `size` than up to it, for each method."""
    curves = evidence.table("curve").assign(width=lambda t: t["high"] - t["low"])
    found = []
    for method in methods:
        own = curves[curves["method"] == method]
        few, many = (own.loc[chosen, "width"] for chosen in (own["size"] <= size, own["size"] > size))
        if few.empty or many.empty:
            found.append(untestable(f"{name(method)}: no sizes on both sides of {size:g}"))
            continue
        said = f"band of {name(method)}: {many.mean():.3g} wide above {size:g}, {few.mean():.3g} up to it"
        found.append(Finding(counted(many.mean() > few.mean()), said, many.mean() - few.mean(), unit="regret"))
    return together(found, "methods")


def fewest_needed(evidence: Evidence, method: str) -> Finding:
    """CNT: a method reaches the reference's median regret with less data than any other method."""
    first = evidence.table("below").set_index("method")["first"]
    if method not in first.index:
        return untestable(f"{name(method)} was not run")
    own, others = first[method], first.drop(method)
    listed = ", ".join(f"{name(m)} {'never' if np.isnan(v) else f'{v:.0f}'}" for m, v in first.items())
    holds = not np.isnan(own) and not (others <= own).any()
    return Finding(counted(bool(holds)), f"smallest size that reaches the reference's regret: {listed}", known(own))
