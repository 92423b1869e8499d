"""Checks of variants of one method: acquisition functions, mean and kernel structures (hyperbo D.2, D.3).

From the figures' numbers. `panel` names a row of the figure, e.g. "H-NLL"; `metric` is "last" (regret at the last
iteration) or "mean" (over all iterations).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    MARGIN,
    WEAK,
    Finding,
    counted,
    equivalent,
    interval,
    known,
    share,
    together,
    untestable,
)
from metabo.papers.hyperbo.metrics.variants import by_structure, lower_share


def bands_meet(evidence: Evidence, least: float = 0.5) -> Finding:
    """CNT: the 20 to 80 % band of every variant meets that of its reference in more than this share of iterations."""
    rows = evidence.table("difference").drop_duplicates(["method", "reference"])
    found = []
    for row in rows.itertuples():
        said = f"{name(row.method)} and {name(row.reference)}: bands meet in {row.bands_meet:.0%} of the iterations"
        found.append(Finding(counted(row.bands_meet > least), said, row.bands_meet, unit="share of iterations"))
    return together(sorted(found, key=lambda finding: finding.value), "pairs")


def no_difference(evidence: Evidence) -> Finding:
    """No variant's last regret differs from that of its reference: an interval that excludes 0 is a difference; one
    that holds 0 is none if it lies within the margin (`_limit`), and undecided (weak) beyond it."""
    rows = evidence.table("difference")
    found = []
    for row in rows[rows["metric"] == "last"].itertuples():
        part = _equal(row, _limit(evidence, row.panel, row.reference))
        clear = row.low > 0 or row.high < 0
        verdict = FAILED if clear else WEAK if part.verdict == FAILED else part.verdict
        found.append(replace(part, verdict=verdict))
    return together(found, "pairs")


def _equal(row: NamedTuple, limit: float) -> Finding:
    """Return the finding of "about equal" of a row of `difference`."""
    gap = (float(row.difference), float(row.low), float(row.high))
    said = f"{name(row.method)} minus {name(row.reference)}: {interval(*gap)}, margin {limit:.3g}"
    return Finding(equivalent(*gap, limit), said, *map(known, gap), "regret")


def _limit(evidence: Evidence, panel: str, reference: str) -> float:
    """Return what counts as about the same: MARGIN of Random's last regret, or of the reference's without it."""
    values = _ending(evidence, panel, "last")
    return MARGIN * float(values["rand" if "rand" in values else reference])


def _ending(evidence: Evidence, panel: str, metric: str) -> pd.Series:
    """Return the mean of each method of a panel, best first; empty if the benchmark lacks the panel."""
    rows = evidence.table("ending")
    rows = rows[(rows["panel"] == panel) & (rows["metric"] == metric)]
    return rows.set_index("method")["mean"].sort_values()


def _listed(values: pd.Series) -> str:
    return ", ".join(f"{name(method)} {value:.3g}" for method, value in values.items())


def best_are(evidence: Evidence, panel: str, metric: str, methods: Sequence[str]) -> Finding:
    """CNT: the structures with the lowest means are the named ones, in any order."""
    values = _ending(evidence, panel, metric)
    if not set(methods) <= set(values.index):
        return untestable(f"panel {panel} lacks some of these structures")
    best = values.index[: len(methods)]
    said = f"lowest {metric} regret, {panel}: {_listed(values[: len(methods) + 1])}"
    right = len(set(best) & set(methods))
    return Finding(counted(right == len(methods)), said, right, unit=f"of {len(methods)} named")


def worst_is(evidence: Evidence, panel: str, metric: str, method: str) -> Finding:
    """CNT: the structure with the highest mean is the named one."""
    values = _ending(evidence, panel, metric)
    if method not in values.index:
        return untestable(f"panel {panel} lacks {name(method)}")
    place = int((values > values[method]).sum()) + 1
    said = f"highest {metric} regret, {panel}: {_listed(values.iloc[::-1][:2])}; {name(method)} {values[method]:.3g}"
    return Finding(counted(place == 1), said, place, unit="place from the worst")


def about_equal(evidence: Evidence, panel: str, methods: Sequence[str]) -> Finding:
    """The last regrets of the named structures differ from the panel's reference, which is one of them, by an interval
    within the margin (`_limit`); weak: the estimate alone."""
    rows = evidence.table("difference")
    rows = rows[(rows["panel"] == panel) & (rows["metric"] == "last") & rows["method"].isin(methods)]
    if len(rows) != len(methods) - 1:
        return untestable(f"panel {panel} lacks some of these structures")
    limits = {reference: _limit(evidence, panel, reference) for reference in rows["reference"].unique()}
    return together((_equal(row, limits[row.reference]) for row in rows.itertuples()), "pairs")


def all_above(evidence: Evidence, panel: str, metric: str, mean: str) -> Finding:
    """CNT: every structure with the mean function `mean` has more regret than every other structure."""
    wide = _wide(evidence, panel, metric)
    if wide is None or mean not in wide.index:
        return untestable(f"panel {panel} has no structure with mean function {mean}")
    least, most = float(wide.loc[mean].min()), float(wide.drop(index=mean).max(axis=None))
    said = f"{metric} regret, {panel}: {mean} mean {least:.3g} and more, the others at most {most:.3g}"
    return Finding(counted(least > most), said, least - most, unit="regret")


def mean_wins(evidence: Evidence, better: str, worse: str, panels: Sequence[str] = ()) -> Finding:
    """CNT: a mean function has less regret than another one in more than half of (panel, metric, layers).

    `panels`: those that count, all by default."""
    wins = cases = 0
    for panel in panels or dict.fromkeys(evidence.table("ending")["panel"]):
        for metric in ("last", "mean"):
            wide = _wide(evidence, panel, metric)
            if wide is not None and {better, worse} <= set(wide.index):
                won, of = lower_share(wide, better, worse)
                wins, cases = wins + won, cases + of
    return share(wins, cases, f"cases in which mean {better} is below {worse}", 2 * wins > cases, "share of cases")


def wider_spread(evidence: Evidence, panel: str, than: str, metric: str = "last") -> Finding:
    """CNT: highest minus lowest mean over the structures is larger in a panel than in another one."""
    both = [_ending(evidence, which, metric) for which in (panel, than)]
    if any(values.empty for values in both):
        return untestable(f"the benchmark lacks {panel} or {than}")
    own, other = (float(values.max() - values.min()) for values in both)
    said = f"range of the {metric} regret over structures: {panel} {own:.3g}, {than} {other:.3g}"
    return Finding(counted(own > other), said, own - other, unit="regret")


def falls_with_size(evidence: Evidence, panel: str, metric: str, mean: str) -> Finding:
    """CNT: with the mean function `mean`, each larger network has less regret than the one before it."""
    wide = _wide(evidence, panel, metric)
    if wide is None or mean not in wide.index or wide.loc[mean].notna().sum() < 2:
        return untestable(f"panel {panel} has fewer than two networks with mean function {mean}")
    values = wide.loc[mean].dropna()
    listed = ", ".join(f"{layers} {value:.3g}" for layers, value in values.items())
    said = f"{metric} regret, {panel}, {mean} mean: {listed}"
    change = float(values.iloc[-1] - values.iloc[0])
    return Finding(counted(bool((values.diff()[1:] < 0).all())), said, change, unit="regret")


def _wide(evidence: Evidence, panel: str, metric: str) -> pd.DataFrame | None:
    """Return the mean regret by mean function and layers (columns from small to large), or None without the panel."""
    values = _ending(evidence, panel, metric)
    return None if values.empty else by_structure(values.rename_axis("method").reset_index(), "mean")
