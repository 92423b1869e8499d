"""Checks of correlations between regret and losses over methods, repetitions and tasks (hyperbo §7.4.2, §7.6.3)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from metabo.artefacts import api as artefacts
from metabo.metrics import Runs, paired, pearson
from metabo.metrics.runs import task_labels
from metabo.papers.engine.claims.comparing import data_set_of_task
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import ROUNDING
from metabo.papers.engine.claims.jackknifed import jackknife, jackknifed
from metabo.papers.engine.claims.verdicts import LEVEL, Finding, order, share_of_units, told_power, untestable
from metabo.papers.hyperbo.metrics.losses import loss_runs

LOSSES = ("test_nll", "train_nll", "ekl")
"""Losses of Figure 10, which shows the tasks that have them all."""
NORMALISED = "normalised_regret"
"""The regret of Table 7."""
LARGEST = 1 - 1e-12
"""Of a correlation whose Fisher z is still finite."""


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
    one = _order_of_r(label, found.estimate, False, found.clusters, effect=abs(printed), freedom=found.freedom)
    return replace(one, suite=_as_r(found.suite), new=_as_r(found.new))


def _as_r(z: Sequence[float]) -> tuple[float, ...]:
    """Return correlations in place of Fisher's z; ends that are one number are no interval, since nothing varied."""
    if z[-1] - z[-2] <= ROUNDING * abs(z[-1]):
        z = [*z[:-2], np.nan, np.nan]
    return tuple(float(np.tanh(number)) for number in z)


def _order_of_r(
    label: str,
    z: Sequence[float],
    below: bool,
    clusters: int | None,
    level: float = 0.95,
    effect: float | None = None,
    freedom: float | None = None,
) -> Finding:
    """Return the finding of a correlation below 0, or above: its p values and its power are those of Fisher's z, whose
    interval of `level` is symmetric. `z`: value, low, high; `effect`: a correlation."""
    found = order(label, _as_r(z), below, "Pearson's r", clusters=clusters, freedom=freedom)
    if found.low is None:
        return replace(found, effect=effect)
    size = None if effect is None else float(np.arctanh(min(effect, LARGEST)))
    on_z = order(label, z, below, effect=size, clusters=clusters, level=level, freedom=freedom)
    return told_power(replace(found, against=on_z.against, support=on_z.support), on_z.power, on_z.needed, effect)


def mostly_positive(evidence: Evidence) -> Finding:
    """Pearson's r of regret and Training NLL is positive in most spaces, and negative in some (§7.6.3, Table 7).

    Spaces count as draws, but never more of them than there are data sets, which spaces share. That one is negative is
    tested in each, at the level of all together (Bonferroni).
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
    data_sets = data_set_of_task(evidence)
    units = min(of, len({data_sets[task] for task in tasks}))
    found = share_of_units(label, positive / of, units, 0.5, unit="share of spaces")
    return replace(found, count=positive, of=of, clusters=units)


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
