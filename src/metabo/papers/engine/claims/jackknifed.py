"""Intervals of statistics that are not means, such as a range or a correlation: leave out one unit at a time."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import t as student

from metabo.metrics.clusters import clusters, two_way
from metabo.metrics.jackknife import jackknife_variance
from metabo.papers.engine.claims.comparing import Compared, crossed_units
from metabo.papers.engine.claims.evidence import Evidence


def jackknife(
    statistic: Callable[[np.ndarray], float],
    units: Sequence[int] | np.ndarray,
    level: float = 0.95,
    overlap: float = 0.0,
) -> tuple[float, float, float]:
    """Return a statistic of all units with its delete-one interval (Tukey 1958; Student's t); NaN ends for one unit.

    Use it for statistics that are not means, such as a range or a correlation. `overlap`: as in
    `metabo.metrics.paired_difference`.
    """
    units = np.asarray(units)
    value, number = float(statistic(units)), len(units)
    if number < 2:
        return value, np.nan, np.nan
    return _around(value, _jackknife_variance(statistic, units) * (1 + overlap), number - 1, level)


def _jackknife_variance(statistic: Callable[[np.ndarray], float], units: np.ndarray) -> float:
    return jackknife_variance(np.array([statistic(np.delete(units, place)) for place in range(len(units))]))


def _around(value: float, variance: float, freedom: float, level: float = 0.95) -> tuple[float, float, float]:
    """Return a value with Student's t interval."""
    half = float(student.ppf(0.5 + level / 2, freedom) * np.sqrt(variance))
    return value, value - half, value + half


def jackknifed(
    evidence: Evidence,
    statistic: Callable[[np.ndarray, Sequence[str]], float],
    repetitions: int,
    tasks: Sequence[str],
) -> Compared:
    """Return a statistic of repetitions (their numbers) and tasks (of `evidence.runs`) with both estimands' intervals.

    One repetition, or one fold (data set) with all its tasks, is left out at a time (`jackknife`). For crossed folds
    and data sets, the variances are combined as those of a mean are (`metabo.metrics.clusters.two_way`). The degrees of
    freedom are those of a mean, too: with one fewer than pd1_mini's folds, which differ in size, an interval is wrong
    on either side in up to 3.3 % of studies, and in 2.2 % with these.
    """
    runs, every = evidence.runs, np.arange(repetitions)
    own = dict(zip(runs.tasks, zip(runs.folds or runs.tasks, runs.data_sets or runs.tasks, strict=True), strict=True))
    folds, data_sets = zip(*(own[task] for task in tasks), strict=True)
    of = clusters(len(tasks), folds, data_sets if runs.data_sets else None)

    def over(labels: np.ndarray) -> float:
        def of_kept(kept: np.ndarray) -> float:
            return statistic(every, [task for task, label in zip(tasks, labels, strict=True) if label in kept])

        return _jackknife_variance(of_kept, np.unique(labels))

    suite = jackknife(lambda kept: statistic(kept, tasks), every)
    value = float(statistic(every, tasks))
    nothing = (value, np.nan, np.nan)
    new = _around(value, float(two_way(of, over, runs.overlap)), of.freedom) if of.units > 1 else nothing
    fixed = runs.drawn == "fixed"
    chosen, units = (suite, repetitions) if fixed or evidence.estimand == "suite" else (new, of.units)
    counted, freedom = (crossed_units(of), of.freedom) if chosen is new and of.units > 1 else ("", None)
    return Compared(*chosen, units, suite[1:], (np.nan, np.nan) if fixed else new[1:], counted, freedom)
