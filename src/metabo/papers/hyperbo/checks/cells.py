"""Checks of tables: best values per task, losses, printed cells, correlations, speed-ups (hyperbo §7.4, §7.6)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from metabo.artefacts import api as artefacts
from metabo.errors import unknown
from metabo.metrics import Runs, metric_sign, paired, pearson
from metabo.metrics.runs import task_labels
from metabo.papers.engine.claims.comparing import (
    at_moment,
    compared,
    difference,
    independent_folds,
    jackknife,
    jackknifed,
    name,
    share_of_tasks,
    tenth_of_random,
    unit,
)
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import ROUNDING
from metabo.papers.engine.claims.verdicts import LEVEL, Finding, fact, interval, order, share_of_units, untestable
from metabo.papers.engine.printed import tasknames
from metabo.papers.hyperbo.metrics.crossing import AREA, SETTING, factors
from metabo.papers.hyperbo.metrics.losses import loss_runs
from metabo.papers.hyperbo.printed import compare
from metabo.plan.runs import RunId, acquisition_of

SUMMARIES = ("share", "median", "mean")
"""How speed-ups of several tasks become one number."""
LOSSES = ("test_nll", "train_nll", "ekl")
"""Losses of Figure 10, which shows the tasks that have them all."""
NORMALISED = "normalised_regret"
"""The regret of Table 7."""
LARGEST = 1 - 1e-12
"""Of a correlation whose Fisher z is still finite."""


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


class _Points(NamedTuple):
    """`values[quantity]`: (methods, repetitions, tasks), of the tasks that have all quantities."""

    values: dict[str, Float[np.ndarray, "m q k"]]
    tasks: list[str]

    @property
    def repetitions(self) -> int:
        return next(iter(self.values.values())).shape[1]


def _points(runs: Runs, losses: pd.DataFrame, metrics: Sequence[str]) -> _Points:
    """Return the last regret and the losses of every method that has losses."""
    methods = [m for m in runs.methods if m in set(losses["method"])]
    parts = {"regret": runs.at(runs.last)} | {metric: loss_runs(losses, metric)[0] for metric in metrics}
    tasks = [task for task in runs.tasks if all(task in part.tasks for part in parts.values())]
    places = {quantity: [part.tasks.index(task) for task in tasks] for quantity, part in parts.items()}
    values = {quantity: paired(part.select(methods))[:, :, places[quantity], 0] for quantity, part in parts.items()}
    return _Points(values, tasks)


def _fisher(points: _Points, y: str, x: str, repetitions: np.ndarray, tasks: Sequence[str]) -> float:
    """Return Fisher's z of Pearson's r over methods and repetitions, each a mean over tasks."""
    chosen = [points.tasks.index(task) for task in tasks]
    means = (points.values[quantity][:, repetitions][..., chosen].mean(axis=-1).ravel() for quantity in (x, y))
    return float(np.arctanh(np.clip(pearson(*means).r, -LARGEST, LARGEST)))


def correlation(evidence: Evidence, comparison: str, printed: float) -> Finding:
    """Pearson's r over methods and pre-training seeds is positive: its interval lies above 0 (§7.4.2, Figure 10).

    Repeats of one method are not independent draws: the interval is a jackknife of Fisher's z that leaves out one fold,
    or one repetition of all methods, at a time. The sign is what other tables can replicate; the finding also says
    whether the interval contains the printed r.
    """
    y, _, x = comparison.partition(" against ")
    losses = evidence.evaluations
    if not {y, x} <= {"regret", *losses["metric"]}:
        return untestable(f"no correlation of {comparison} on this benchmark")
    points = _points(evidence.runs, losses, [m for m in LOSSES if m in set(losses["metric"])])
    found = jackknifed(evidence, partial(_fisher, points, y, x), points.repetitions, points.tasks)
    if not np.isfinite(found.value):
        return untestable(f"{comparison}: nothing varies")
    _, low, high = _as_r(found.estimate)
    beside = "" if np.isnan(low) else ", inside" if low <= printed <= high else ", outside"
    label = f"{comparison} (printed {printed:g}{beside}): r ="
    one = _order_of_r(label, found.estimate, False, found.clusters, effect=abs(printed))
    return replace(one, suite=_as_r(found.suite), new=_as_r(found.new))


def _as_r(z: Sequence[float]) -> tuple[float, ...]:
    """Return correlations in place of Fisher's z; ends that are one number are no interval, since nothing varied."""
    if z[-1] - z[-2] <= ROUNDING * abs(z[-1]):
        z = [*z[:-2], np.nan, np.nan]
    return tuple(float(np.tanh(number)) for number in z)


def _order_of_r(
    label: str, z: Sequence[float], below: bool, clusters: int | None, level: float = 0.95, effect: float | None = None
) -> Finding:
    """Return the finding of a correlation below 0, or above: its p values and its power are those of Fisher's z, whose
    interval of `level` is symmetric. `z`: value, low, high; `effect`: a correlation."""
    found = order(label, _as_r(z), below, "Pearson's r", clusters=clusters)
    if found.low is None:
        return replace(found, effect=effect)
    size = None if effect is None else float(np.arctanh(min(effect, LARGEST)))
    on_z = order(found.said, z, below, effect=size, clusters=clusters, level=level)
    said = on_z.said.replace(f" {interval(*z)}", "", 1).replace(f"for {size or 0:.3g}", f"for {effect or 0:.3g}")
    return replace(
        found, said=said, against=on_z.against, support=on_z.support, power=on_z.power, needed=on_z.needed,
        effect=effect,
    )  # fmt: skip


def mostly_positive(evidence: Evidence) -> Finding:
    """Pearson's r of regret and Training NLL is positive in most spaces, and negative in some (§7.6.3, Table 7).

    Spaces test on the same data sets, so they are as few draws as any folds that do (`independent_folds`). That one is
    negative is tested in each, at the level of all together (Bonferroni).
    """
    points, spaces = _spaces(evidence)
    level = 1 - LEVEL / max(len(spaces), 1)
    found = {space: _in_space(points, tasks, level) for space, tasks in spaces.items()}
    lost = [untestable(f"space {space}: nothing varies") for space, z in found.items() if not np.isfinite(z[0])]
    found = {space: z for space, z in found.items() if np.isfinite(z[0])}
    positive = sum(z[0] > 0 for z in found.values())
    counted = _share_of_spaces(evidence, positive, [task for space in found for task in spaces[space]], len(found))
    negative = [_below_zero(space, z, points.repetitions, level) for space, z in found.items()]
    return together([counted, any_of([*negative, *lost], "spaces")])


def _share_of_spaces(evidence: Evidence, positive: int, tasks: Sequence[str], of: int) -> Finding:
    if not of:
        return untestable("spaces with a positive correlation: nothing to count")
    label = f"spaces with a positive correlation: {positive} of {of}, share"
    units = independent_folds(evidence, tasks)
    found = share_of_units(label, positive / of, units, 0.5, unit="share of spaces")
    return replace(found, count=positive, of=of, clusters=of)


def negative_in(evidence: Evidence, spaces: Sequence[str]) -> Finding:
    """Pearson's r of regret and Training NLL is negative in each of the named spaces (§7.6.3)."""
    points, there = _spaces(evidence)
    found = {space: _in_space(points, there[space]) for space in spaces if space in there}
    held = {s: _below_zero(s, r, points.repetitions) for s, r in found.items() if np.isfinite(r[0])}
    none = f"benchmark {evidence.benchmark} has no correlation in space"
    lost = [untestable(f"{none} {space}") for space in spaces if space not in held]
    return together([*held.values(), *lost], "spaces")


def _spaces(evidence: Evidence) -> tuple[_Points, dict[str, list[str]]]:
    """Return the points of Table 7 and the tasks of each space."""
    losses = evidence.evaluations
    points = _points(artefacts.runs(evidence.trajectories, NORMALISED), losses, ["train_nll"])
    space = dict(zip(task_labels(losses), losses["space"], strict=True))
    tasks: dict[str, list[str]] = {}
    for task in points.tasks:
        tasks.setdefault(space[task], []).append(task)
    return points, tasks


def _in_space(points: _Points, tasks: Sequence[str], level: float = 0.95) -> tuple[float, float, float]:
    """Return Fisher's z of r with its interval over pre-training seeds: a space has one or few folds."""
    every = np.arange(points.repetitions)
    return jackknife(lambda kept: _fisher(points, "regret", "train_nll", kept, tasks), every, level)


def _below_zero(space: str, z: tuple[float, float, float], repetitions: int, level: float = 0.95) -> Finding:
    return _order_of_r(f"space {space}: r =", z, True, repetitions, level)


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
        return gap.told(order(label, gap.estimate, False, "times", factor, clusters=gap.clusters))
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
    return gap.told(order(label, gap.estimate, True, unit(evidence), effect=effect, clusters=gap.clusters))


def _crossed(runs: Runs, reference: str) -> list[tuple[str, str]]:
    """Return the runs of H-EKL and of the learner `reference`, in pairs of one setting."""
    own: dict[tuple[str, ...], str] = {}
    others: dict[tuple[str, ...], str] = {}
    for run in runs.methods:
        levels = factors(RunId.parse(run).split, RunId.parse(run).method, acquisition_of(run))
        side = own if levels["method"] == "h_ekl" else others if levels["learner"] == reference else {}
        side[tuple(levels[key] for key in SETTING)] = run
    return [(run, others[setting]) for setting, run in own.items() if setting in others]
