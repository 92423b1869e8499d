"""What checks of BO runs share: which runs, at which iterations, and one paired difference with its intervals.

Two estimands. "suite": these tasks, with other priors and seeds: what the papers report, and what a direct test is
about. "new": a new data set: folds are the units, and because they share training tasks their mean varies more than if
they were independent (Nadeau and Bengio 2003); more priors never narrow it. Where tasks of several folds are about the
same data sets, data sets are units too (`metabo.metrics.clusters`). A conceptual test is about that. Each finding has
both intervals; `Evidence.estimand` says which one decides.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from metabo.artefacts.api import available
from metabo.metrics import Runs, independent_units, paired, paired_difference
from metabo.metrics.clusters import TaskClusters, clusters
from metabo.papers.engine.claims import verdicts
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import LEVEL, MARGIN, Finding, share_of_units, untestable
from metabo.plots import look

OTHERS = "others"
"""In place of a list of methods: all that the figure shows besides those on the other side."""
Side = str | Sequence[str]
"""One run, or several whose values are averaged in pairs."""
Moment = int | str | Sequence[int]
"""An iteration, [from, to] for the mean over these, or "area" for the mean over all."""
SEED = 0


def members(side: Side) -> list[str]:
    """Return the runs of one side."""
    return [side] if isinstance(side, str) else list(side)


def name(side: Side) -> str:
    """Return how one side of a comparison is called in a sentence."""
    return ", ".join(look.of(run).label for run in members(side))


def held(sides: Sequence[Side], runs: Runs) -> list[Side]:
    """Keep the sides whose runs are all there: a benchmark may lack methods or splits."""
    return [side for side in sides if set(members(side)) <= set(runs.methods)]


def absent(sides: str | Sequence[Side], runs: Runs) -> list[Finding]:
    """Return a finding, not testable, for every run of these sides that is not there; none for OTHERS."""
    wanted = [] if sides == OTHERS else dict.fromkeys(run for side in sides for run in members(side))
    return [untestable(f"{name(run)} was not run") for run in wanted if run not in runs.methods]


def barred(evidence: Evidence, *sides: Side) -> Finding | None:
    """Return the finding, not testable, of a comparison of runs that a failed gate is about; None: it can be made."""
    lost = [evidence.failing[run] for side in sides for run in members(side) if run in evidence.failing]
    return untestable(lost[0]) if lost else None


def against(than: str | Sequence[Side], sides: Sequence[Side], runs: Runs) -> list[Side]:
    """Return the runs on the other side: those named, or all others."""
    if than != OTHERS:
        return held(than, runs)
    named = {run for side in sides for run in members(side)}
    return [run for run in runs.methods if run not in named]


def solved(runs: Runs, threshold: float) -> Runs:
    """Return runs whose value is 1 where the regret is below `threshold`, else 0 (hyperbo §7.3)."""
    return replace(runs, values={m: (v < threshold).astype(np.float64) for m, v in runs.values.items()})


def at_moment(runs: Runs, moment: Moment) -> tuple[Runs, str]:
    """Return the runs' value at a moment, as their only iteration, and how the moment is called.

    An iteration beyond the last becomes the last.
    """
    if moment == "area":
        first, last = 1, runs.last
    elif isinstance(moment, int):
        first = last = available([moment], runs.last)[0]
    else:
        first, last = (available([int(end)], runs.last)[0] for end in moment)
    chosen = (runs.iterations >= first) & (runs.iterations <= last)
    values = {m: v[..., chosen].mean(axis=-1, keepdims=True) for m, v in runs.values.items()}
    shown = f"at iteration {last}" if first == last else f"over iterations {first} to {last}"
    return replace(runs, values=values, iterations=np.array([last])), shown


class Compared(NamedTuple):
    """A mean with the interval of the evidence's estimand, the units of that interval, and both intervals. `counted`:
    what the units are, where they are folds and data sets crossed. `freedom`: degrees of freedom of the interval, where
    they are not the units less one."""

    value: float
    low: float
    high: float
    clusters: int | None
    suite: tuple[float, float]
    new: tuple[float, float]
    counted: str = ""
    freedom: float | None = None

    @property
    def estimate(self) -> tuple[float, float, float]:
        """Value, low, high."""
        return self.value, self.low, self.high

    def told(self, found: Finding) -> Finding:
        """Add both intervals to a finding on this number, and to its power what is counted."""
        said = f"{found.said} ({self.counted})" if self.counted and found.needed else found.said
        return replace(found, said=said, suite=self.suite, new=self.new)

    def order(
        self,
        label: str,
        below: bool = True,
        unit: str = "",
        bound: float = 0.0,
        effect: float | None = None,
        level: float = 1 - LEVEL,
    ) -> Finding:
        """Return the finding that this number lies below `bound`, or above it (`verdicts.order`)."""
        return self.told(
            verdicts.order(label, self.estimate, below, unit, bound, effect, self.clusters, level, self.freedom)
        )

    def about_equal(self, label: str, limit: float, unit: str = "") -> Finding:
        """Return the finding that this number is 0 within ± `limit` (`verdicts.about_equal`)."""
        return self.told(verdicts.about_equal(label, self.estimate, limit, unit, self.clusters, self.freedom))

    def similar(self, label: str, limit: float, below: bool = True, unit: str = "") -> Finding:
        """Return the finding that this number is not worse than 0 by more than `limit` (`verdicts.similar`)."""
        return self.told(verdicts.similar(label, self.estimate, limit, below, unit, self.clusters, self.freedom))


def compared(evidence: Evidence, values: np.ndarray, place: int, level: float = 0.95, trained: bool = True) -> Compared:
    """Return the mean of paired differences (repetitions, tasks) of `evidence.runs` with both estimands' intervals.

    `place` is the number of the comparison, which keys its random numbers. `trained`: one of the methods learns from
    other tasks, which folds share. Where all tasks are of one data set (`runs.drawn` is "fixed"), nothing can be said
    about a new one: its interval is NaN.
    """
    runs = evidence.runs
    zero = np.zeros_like(values)
    rng = np.random.default_rng([SEED, place])
    suite = paired_difference(values, zero, rng, "fixed", level=level)
    overlap = runs.overlap if trained else 0.0
    new = paired_difference(values, zero, rng, runs.drawn, level=level, **runs.clusters, overlap=overlap)
    chosen, drawn = (suite, "fixed") if evidence.estimand == "suite" else (new, runs.drawn)
    unknown = (np.nan, np.nan) if runs.drawn == "fixed" else (new.low, new.high)
    units = independent_units(values.shape, drawn, **runs.clusters)
    of = clusters(values.shape[1], **runs.clusters)
    counted, freedom = (crossed_units(of), of.freedom) if drawn == "nested" and of.units > 1 else ("", None)
    return Compared(suite.estimate, chosen.low, chosen.high, units, (suite.low, suite.high), unknown, counted, freedom)


def crossed_units(of: TaskClusters) -> str:
    """Say what the units of crossed clusters are; "" where they are nested."""
    if of.data_set is None:
        return ""
    return f"units: the fewer of {of.folds} folds and {int(of.data_set.max()) + 1} data sets, of which both must grow"


def difference(evidence: Evidence, runs: Runs, first: Side, second: Side, place: int, level: float = 0.95) -> Compared:
    """Return the mean of `first` minus `second`, paired by repetition and task. `runs` hold one iteration."""
    values = side_values(runs, [first, second])
    trained = not set(members(first)) | set(members(second)) <= runs.single_task
    return compared(evidence, values[0] - values[1], place, level, trained)


def side_values(runs: Runs, sides: Sequence[Side]) -> np.ndarray:
    """Return (sides, repetitions, tasks): the value of each side at the only iteration of `runs`, in pairs."""
    names = list(dict.fromkeys(run for side in sides for run in members(side)))
    values = paired(runs.select(names))[..., 0]
    return np.stack([np.mean([values[names.index(run)] for run in members(side)], axis=0) for side in sides])


def tenth_of_random(runs: Runs, second: Side) -> float:
    """Return the effect that power is stated for where the paper prints none: MARGIN of Random's value at the only
    iteration of `runs`, of the other side's where Random was not run."""
    reference = [m for m in ("rand", "rand_once", *members(second)) if m in runs.methods]
    return MARGIN * abs(float(np.mean(runs.values[reference[0]]))) if reference else 0.0


def unit(evidence: Evidence) -> str:
    """Return the unit of a regret difference."""
    return evidence.regret.replace("_", " ")


def orders(
    evidence: Evidence, pairs: Sequence[tuple[Side, Side]], at: Sequence[Moment], thresholds: Sequence[float] = ()
) -> list[Finding]:
    """Return one ORD finding per pair, moment and threshold: the first has the lower regret.

    With `thresholds` it solves the larger share of tasks instead.
    """
    found = []
    for threshold in thresholds or [None]:
        runs = evidence.runs if threshold is None else solved(evidence.runs, threshold)
        for moment in at:
            here, when = at_moment(runs, moment)
            when += f", C = {threshold:g}" if threshold is not None else ""
            for first, second in pairs:
                if lost := barred(evidence, first, second):
                    found.append(lost)
                    continue
                label = f"{name(first)} minus {name(second)} {when}:"
                gap = difference(evidence, here, first, second, len(found))
                below, measured = threshold is None, "share solved" if threshold is not None else unit(evidence)
                effect = tenth_of_random(here, second) if below else MARGIN
                one = gap.order(label, below, measured, effect=effect)
                found.append(one)
    return found


def share_of_tasks(
    evidence: Evidence, label: str, holds: pd.Series, bound: float, above: bool = True, unit: str = "share of tasks"
) -> Finding:
    """Return the finding of a share of test tasks with folds as units: its interval lies above (below) `bound`.

    `holds`: true or false for each task of `evidence.runs`, by its name. The interval is the exact one of as many draws
    as the folds are worth (`independent_folds`).
    """
    if holds.empty:
        return untestable(f"{label}: nothing to count")
    count, of, units = int(holds.sum()), len(holds), independent_folds(evidence, list(holds.index))
    found = share_of_units(f"{label}: {count} of {of}, share", count / of, units, bound, above, unit)
    clusters = min(len({label[task] for task in holds.index}) for label in _labels(evidence))
    return replace(found, count=count, of=of, clusters=clusters)


def independent_folds(evidence: Evidence, tasks: Sequence[str]) -> float:
    """Return how many independent draws the folds of `tasks` are worth for a share; NaN without two folds to draw.

    Tasks of one fold share priors or a search space, and those on one data set its data. How much they agree cannot be
    told from few of them (if all have equal shares, it says nothing), so they count as if they always did: a fold is
    one draw, and folds of m_g tasks are K = (Σ m_g)² / Σ m_g² draws (Kish 1965); data sets likewise, and the fewer
    count. G folds that share training tasks have the correlation ρ which `Runs.overlap` = G ρ / (1 - ρ) stands for
    (Nadeau and Bengio 2003), and are K / (1 + (K - 1) ρ) draws.
    """
    if evidence.runs.drawn == "fixed":  # variants of one data set: nothing to draw
        return np.nan
    sizes = [np.unique([label[task] for task in tasks], return_counts=True)[1] for label in _labels(evidence)]
    if min(map(len, sizes)) < 2:
        return np.nan
    draws = min(float(size.sum() ** 2 / (size**2).sum()) for size in sizes)
    overlap = evidence.runs.overlap
    return draws / (1 + (draws - 1) * overlap / (len(sizes[0]) + overlap))


def _labels(evidence: Evidence) -> tuple[dict[str, int], dict[str, str]]:
    """Return the folds and the data sets of tasks."""
    return fold_of_task(evidence), data_set_of_task(evidence)


def fold_of_task(evidence: Evidence) -> dict[str, int]:
    """Return the number of each task's fold; a number of its own where the runs have no folds."""
    runs = evidence.runs
    return dict(zip(runs.tasks, runs.folds or range(len(runs.tasks)), strict=True))


def data_set_of_task(evidence: Evidence) -> dict[str, str]:
    """Return the name of each task's data set; the task's own where none is known."""
    runs = evidence.runs
    return dict(zip(runs.tasks, runs.data_sets or runs.tasks, strict=True))
