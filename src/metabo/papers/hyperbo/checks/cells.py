"""Checks of tables: best values per task, losses, printed cells, correlations, speed-ups (hyperbo §7.4, §7.6)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.metrics import metric_sign
from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    interval,
    known,
    share,
    together,
    untestable,
)
from metabo.papers.hyperbo.printed import compare

RESAMPLES = 10_000


def best_in_most(evidence: Evidence, method: str, among: Sequence[str], least: float = 0.5) -> Finding:
    """CNT: in more than a share `least` of the tasks, no method of `among` has a better mean of the best metric.

    Ties count for all, as the paper's bold cells. Better: as the benchmark's own metric says.
    """
    wide = evidence.table("best_metric").pivot(index="task", columns="method", values="mean")
    shown = [m for m in among if m in wide]
    if method not in shown or len(shown) < 2:
        return untestable(f"{name(method)} or the others were not run")
    values = wide[shown] * -metric_sign(evidence.trajectories)
    count, of = int((values[method] <= values.min(axis=1)).sum()), len(values)
    lost = ", ".join(name(m) for m in among if m not in shown)
    label = f"tasks on which {name(method)} has the best mean of {len(shown)} methods"
    label += f" ({lost} not run)" if lost else ""
    return share(count, of, label, count > least * of, "share of tasks")


def lowest_more_often(evidence: Evidence, metric: str, method: str, other: str) -> Finding:
    """CNT: of all methods shown, `method` has the lowest mean loss of a task more often than `other`."""
    losses = evidence.table("loss")
    wide = losses[losses["metric"] == metric].pivot(index="task", columns="method", values="mean").dropna()
    if not {method, other} <= set(wide):
        return untestable(f"{name(method)} or {name(other)} has no {metric} on this benchmark")
    lowest = {m: int((wide[m] <= wide.min(axis=1)).sum()) for m in (method, other)}
    counts = f"{name(method)} {lowest[method]}, {name(other)} {lowest[other]} of {len(wide)}"
    said = f"tasks with the lowest {metric}: {counts}"
    return Finding(counted(lowest[method] > lowest[other]), said, lowest[method] - lowest[other], unit="tasks")


def printed_cells(
    evidence: Evidence,
    table: str,
    metric: str,
    printed: str,
    rows: str = "task",
    scale: float = 1.0,
    least: float = 0.95,
) -> Finding:
    """NUM: at least a share of the printed cells agrees with ours within 3 √(s₁² + s₂²)/√5
    (`metabo.papers.hyperbo.printed.compare`).

    `table` and `metric` name our cells in data.csv ("" where a table has one metric), `printed` is "table metric" of
    the printed ones; our numbers times `scale` have the printed unit.
    """
    ours = evidence.table(table)
    ours = ours[ours["metric"] == metric] if metric else ours
    ours = ours.rename(columns={rows: "task"}).assign(mean=lambda t: t["mean"] * scale, std=lambda t: t["std"] * scale)
    both = compare(ours, *printed.split())
    if both.empty:
        return untestable(f"benchmark {evidence.benchmark} has none of the tasks of the printed table")
    count, of = int(both["within"].sum()), len(both)
    return share(count, of, f"cells of {printed} within the tolerance", count >= least * of, "share of cells")


def correlation(evidence: Evidence, comparison: str, printed: float) -> Finding:
    """Pearson's r is positive: replicated if its 95 % interval excludes 0 and holds the printed r, else weak.

    A wide interval holds every printed r, so that holding it alone says nothing.
    """
    rows = evidence.table("pearson").set_index("comparison")
    if comparison not in rows.index or not np.isfinite(rows.at[comparison, "r"]):
        return untestable(f"no correlation of {comparison} on this benchmark")
    r, low, high, n = (float(rows.at[comparison, column]) for column in ("r", "low", "high", "n"))
    agrees = low > 0 and low <= printed <= high
    verdict = FAILED if not r > 0 else REPLICATED if agrees else WEAK
    said = f"{comparison}: r = {interval(r, low, high)} over {n:.0f} points; printed {printed:g}"
    return Finding(verdict, said, r, known(low), known(high), "Pearson's r")


def mostly_positive(evidence: Evidence, exceptions: int = 1) -> Finding:
    """CNT: Pearson's r is positive in more than half of the spaces, and negative in at least `exceptions`."""
    found = evidence.table("pearson").set_index("space")["r"].dropna()
    negative = [str(space) for space in found.index[found < 0]]
    positive, of = int((found > 0).sum()), len(found)
    label = f"spaces with a positive correlation (negative: {', '.join(negative) or 'none'})"
    return share(positive, of, label, 2 * positive > of and len(negative) >= exceptions, "share of spaces")


def negative_in(evidence: Evidence, spaces: Sequence[str]) -> Finding:
    """CNT: Pearson's r is negative in the named spaces."""
    found = evidence.table("pearson").set_index("space")["r"].reindex(list(spaces))
    lost, found = found.index[found.isna()], found.dropna()
    if found.empty:
        return untestable(f"benchmark {evidence.benchmark} has none of the spaces {', '.join(spaces)}")
    said = "; ".join(f"space {space}: r = {r:.3g}" for space, r in found.items())
    said += f"; not testable: no correlation in {', '.join(lost)}" if len(lost) else ""
    return Finding(counted(bool((found < 0).all())), said, float(found.max()), unit="Pearson's r")


def speedup(
    evidence: Evidence,
    methods: Sequence[str],
    factor: float,
    over: str = "best alternative",
    by: str = "share",
    best_of: bool = False,
) -> Finding:
    """CNT: the speed-up over `over` is at least `factor` in most tasks (`by` share), or in the median or mean task.

    Speed-up: iterations that the best alternative (or the method `over`) needs to its last regret, divided by those
    that the method needs to pass it (0 if it never does; `metabo.metrics.speedups`). `best_of`: the faster of
    `methods` on each task, else each of them must hold. The interval of median and mean is a percentile bootstrap over
    folds, each with all its tasks, or over tasks where there is one fold; it decides nothing.
    """
    rows = evidence.table("speedup")
    rows = rows[rows["comparison"] == over]
    wide = rows.pivot(index="task", columns="method", values="speedup")
    chosen = [m for m in methods if m in wide]
    if not chosen:
        return untestable(f"no speed-up of {', '.join(map(name, methods))} over {over}")
    named = {", ".join(map(name, chosen)): wide[chosen].max(axis=1)} if best_of else {name(m): wide[m] for m in chosen}
    found = [_speedup(evidence, values, factor, by, f"{who} over {over}") for who, values in named.items()]
    lost = [untestable(f"no speed-up of {name(m)}") for m in methods if m not in wide]
    return together([*found, *lost], "methods")


def _speedup(evidence: Evidence, values: pd.Series, factor: float, by: str, label: str) -> Finding:
    of, count = len(values), int((values >= factor).sum())
    if by == "share":
        return share(count, of, f"tasks on which {label} is at least {factor:g} times as fast", 2 * count > of, "share")
    summarise = {"median": np.median, "mean": np.mean}[by]
    groups = _by_fold(evidence, values)
    drawn = np.random.default_rng(0).integers(len(groups), size=(RESAMPLES, len(groups)))
    low, high = np.percentile([summarise(np.concatenate([groups[g] for g in row])) for row in drawn], [2.5, 97.5])
    value = float(summarise(values))
    said = f"{by} speed-up of {label}: {interval(value, low, high)}, at least {factor:g} on {count} of {of} tasks"
    return Finding(counted(value >= factor), said, value, float(low), float(high), "times")


def _by_fold(evidence: Evidence, values: pd.Series) -> list[np.ndarray]:
    """Return the tasks' values by fold, which share data set and priors; each on its own where there is one fold."""
    runs = evidence.runs
    fold = values.index.map(dict(zip(runs.tasks, runs.folds or range(len(runs.tasks)), strict=True)))
    groups = [own.to_numpy() for _, own in values.groupby(fold)]
    return groups if len(groups) > 1 else [own[None] for own in values.to_numpy()]


def crossed_lower(evidence: Evidence, reference: str, measure: str) -> Finding:
    """CNT: H-EKL is below `reference` by an interval over priors that excludes 0 in more than half of the settings.

    Settings: candidates, steps and acquisitions of hyperbo_x01.
    """
    rows = evidence.table("verdict")
    rows = rows[(rows["reference"] == reference) & (rows["measure"] == measure)]
    if rows.empty:
        return untestable(f"no comparison with {reference} {measure}")
    lower, of = int(rows["lower"].iloc[0]), int(rows["settings"].iloc[0])
    label = f"settings in which H-EKL is below {reference} at {measure} (above in {int(rows['higher'].iloc[0])})"
    return share(lower, of, label, 2 * lower > of, "share of settings")
