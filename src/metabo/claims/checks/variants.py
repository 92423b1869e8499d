"""Checks of variants of one method: acquisition functions, mean and kernel structures (hyperbo D.2, D.3).

From the figures' numbers. `panel` names a row of the figure, e.g. "H-NLL"; `metric` is "last" (regret at the last
iteration) or "mean" (over all iterations).
"""

from collections.abc import Sequence

import pandas as pd

from metabo.claims.checks.comparing import name
from metabo.claims.evidence import Evidence
from metabo.claims.verdicts import Finding, counted, interval, share, together, untestable
from metabo.metrics.variants import by_structure, lower_share


def bands_meet(evidence: Evidence, least: float = 0.5) -> Finding:
    """CNT: the 20 to 80 % band of every variant meets that of its reference in more than this share of iterations."""
    rows = evidence.table("difference").drop_duplicates(["method", "reference"])
    found = []
    for row in rows.itertuples():
        said = f"{name(row.method)} and {name(row.reference)}: bands meet in {row.bands_meet:.0%} of the iterations"
        found.append(Finding(counted(row.bands_meet > least), said, row.bands_meet, unit="share of iterations"))
    return together(sorted(found, key=lambda finding: finding.value), "pairs")


def no_difference(evidence: Evidence) -> Finding:
    """CNT: no variant's last regret differs from that of its reference by an interval that excludes 0."""
    rows = evidence.table("difference")
    found = []
    for row in rows[rows["metric"] == "last"].itertuples():
        said = f"{name(row.method)} minus {name(row.reference)}: {interval(row.difference, row.low, row.high)}"
        clear = row.low > 0 or row.high < 0
        found.append(Finding(counted(not clear), said, row.difference, row.low, row.high, "regret"))
    return together(found, "pairs")


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
    """CNT: the last regrets of the named structures do not differ from the panel's reference by an interval without 0.

    The reference is one of the named structures.
    """
    rows = evidence.table("difference")
    rows = rows[(rows["panel"] == panel) & (rows["metric"] == "last") & rows["method"].isin(methods)]
    if len(rows) != len(methods) - 1:
        return untestable(f"panel {panel} lacks some of these structures")
    found = []
    for row in rows.itertuples():
        said = f"{name(row.method)} minus {name(row.reference)}: {interval(row.difference, row.low, row.high)}"
        found.append(Finding(counted(row.low <= 0 <= row.high), said, row.difference, row.low, row.high, "regret"))
    return together(found, "pairs")


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
