"""Checks of tables: best values per task, losses, printed cells, speed-ups (hyperbo §7.4, §7.6)."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from metabo.errors import unknown
from metabo.metrics import Runs, metric_sign
from metabo.metrics.runs import task_labels
from metabo.papers.engine.claims.comparing import (
    at_moment,
    compared,
    difference,
    name,
    share_of_tasks,
    tenth_of_random,
    unit,
)
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding, fact, untestable
from metabo.papers.engine.printed import tasknames
from metabo.papers.hyperbo.metrics.crossing import AREA, SETTING, factors
from metabo.papers.hyperbo.printed import compare
from metabo.plan.runs import RunId, acquisition_of

SUMMARIES = ("share", "median", "mean")
"""How speed-ups of several tasks become one number."""


def best_in_most(evidence: Evidence, method: str, among: Sequence[str], least: float = 0.5) -> Finding:
    """In more than a share `least` of the tasks, no method of `among` has a better mean of the best metric (Table 5).

    Ties count for all, as the paper's bold cells. Better: as the benchmark's own metric says. Folds are the units.
    """
    wide = evidence.table("best_metric").pivot(index="task", columns="method", values="mean")
    shown = [m for m in among if m in wide]
    if method not in shown or len(shown) < 2:
        return untestable(f"{name(method)} or the others were not run")
    values = wide[shown] * -metric_sign(evidence.trajectories)
    holds = _by_identifier(values[method] <= values.min(axis=1), evidence)
    label = f"tasks on which {name(method)} has the best mean of {len(shown)} methods"
    lost = [untestable(f"{name(m)} was not run") for m in among if m not in shown]
    return together([share_of_tasks(evidence, label, holds, least), *lost], "methods")


def _by_identifier(values: pd.Series, evidence: Evidence) -> pd.Series:
    """Return values of tasks, named as the tables do, by the tasks' names in the runs."""
    return values.rename(index={tasknames.label(task): task for task in evidence.runs.tasks})


def lower_more_often(evidence: Evidence, metric: str, method: str, other: str) -> Finding:
    """On more than half of the tasks, `method` has a lower mean loss than `other` (Table 6).

    On all tasks that both have: leaving out those on which a third method is lowest would not do so at random. The
    finding also says on how many each is the lowest of all methods, which is what the paper counts. The folds of the
    table of losses are the units.
    """
    losses = evidence.evaluations
    losses = losses[losses["metric"] == metric]
    losses = losses.assign(label=task_labels(losses))
    wide = losses.pivot_table(index="label", columns="method", values="value", aggfunc="mean")
    if not {method, other} <= set(wide):
        return untestable(f"{name(method)} or {name(other)} has no {metric} on this benchmark")
    wide = wide.dropna(subset=[method, other])
    lowest = {m: wide[m] <= wide.min(axis=1) for m in (method, other)}
    counts = ", ".join(f"{name(m)} {int(tasks.sum())}" for m, tasks in lowest.items())
    label = f"tasks with the lowest {metric}: {counts} of {len(wide)}; {name(method)} below {name(other)}"
    return share_of_tasks(_tasks_alone(evidence, losses), label, wide[method] < wide[other], 0.5)


def _tasks_alone(evidence: Evidence, losses: pd.DataFrame) -> Evidence:
    """Return evidence of "runs" that only say which fold each task of the losses is in."""
    rows = losses.drop_duplicates(["space", "task"]).assign(prior_seed=0, seed=0, iteration=1)
    own = Evidence(evidence.benchmark, {"trajectories": lambda: rows.assign(method="rand")}, {"regret": "value"})
    return own.about(evidence.estimand)


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

    This is a fixed rule for the paper's own data, whose tolerance already includes both spreads; so the result is a
    fact. `table` and `metric` name our cells in data.csv ("" where a table has one metric), `printed` is "table metric"
    of the printed ones; our numbers times `scale` have the printed unit.
    """
    ours = evidence.table(table)
    ours = ours[ours["metric"] == metric] if metric else ours
    ours = ours.rename(columns={rows: "task"}).assign(mean=lambda t: t["mean"] * scale, std=lambda t: t["std"] * scale)
    both = compare(ours, *printed.split())
    if both.empty:
        return untestable(f"benchmark {evidence.benchmark} has none of the tasks of the printed table")
    count, of = int(both["within"].sum()), len(both)
    label = f"cells of {printed} within the tolerance: {count} of {of}, at least {least:.0%} stated"
    return replace(fact(label, count >= least * of, count / of, "share of cells"), count=count, of=of)


def speedup(
    evidence: Evidence,
    methods: Sequence[str],
    factor: float,
    over: str = "best alternative",
    by: str = "share",
    best_of: bool = False,
) -> Finding:
    """The speed-up over `over` is at least `factor` in most tasks (`by` "share"), or in the median or mean task.

    Speed-up: iterations that the best alternative (or the method `over`) needs to its last regret, divided by those
    that the method needs to pass it (0 if it never does; `metabo.metrics.speedups`). `best_of`: the faster of
    `methods` on each task, else each of them must hold. A median of at least `factor` is the same as that speed-up on
    at least half of the tasks, and is tested so. Folds are the units. Raises ConfigError for another `by`.
    """
    if by not in SUMMARIES:
        raise unknown("summary of speed-ups", by, SUMMARIES)
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
    if by == "mean":
        gap = compared(evidence, values.reindex(evidence.runs.tasks).to_numpy()[None], 0)
        label = f"mean speed-up of {label}, at least {factor:g} stated:"
        return gap.order(label, False, "times", factor)
    label = f"{by if by == 'median' else 'most tasks'}: speed-up of {label} of at least {factor:g}"
    label += f" (median {values.median():.3g})"
    return share_of_tasks(evidence, label, values >= factor, 0.5)


def crossed_lower(evidence: Evidence, reference: str, measure: str) -> Finding:
    """ORD: H-EKL is below `reference`, on average over the settings of hyperbo_x01: candidates, steps, acquisitions.

    In pairs of one setting, repetition and task. Settings share priors and tasks, so a count of them is not a test; the
    finding says in how many of them an interval over priors excludes 0.
    """
    rows = evidence.table("verdict")
    rows = rows[(rows["reference"] == reference) & (rows["measure"] == measure)]
    pairs = _crossed(evidence.runs, reference) if len(rows) else []
    if not pairs:
        return untestable(f"no comparison with {reference} {measure}")
    moment = AREA if measure == AREA else int(measure.removeprefix("iteration "))
    here, when = at_moment(evidence.runs, moment)
    first, second = (list(side) for side in zip(*pairs, strict=True))
    gap = difference(evidence, here, first, second, 0)
    lower, higher, settings = (int(rows[column].iloc[0]) for column in ("lower", "higher", "settings"))
    label = f"H-EKL minus {reference} {when}, mean of {len(pairs)} settings (over priors lower in {lower}, higher in "
    label += f"{higher} of {settings}):"
    effect = tenth_of_random(here, second)
    return gap.order(label, True, unit(evidence), effect=effect)


def _crossed(runs: Runs, reference: str) -> list[tuple[str, str]]:
    """Return the runs of H-EKL and of the learner `reference`, in pairs of one setting."""
    own: dict[tuple[str, ...], str] = {}
    others: dict[tuple[str, ...], str] = {}
    for run in runs.methods:
        levels = factors(RunId.parse(run).split, RunId.parse(run).method, acquisition_of(run))
        side = own if levels["method"] == "h_ekl" else others if levels["learner"] == reference else {}
        side[tuple(levels[key] for key in SETTING)] = run
    return [(run, others[setting]) for setting, run in own.items() if setting in others]
