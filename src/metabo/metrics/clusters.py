"""Clusters of test tasks: what an interval of a mean takes for independent units where tasks share folds or data sets.

Tasks of one fold share a prior, or a search space; tasks on one data set share the data. The units are

- the folds, where every data set is in one of them (nested);
- the data sets, where every fold is in one of them (one task is left out at a time, and tasks repeat data sets);
- both, where neither is so (crossed: several search spaces test on the same data sets). Then the variance of the mean
  is that over folds plus that over data sets minus that over the cells that they have in common (Cameron, Gelbach and
  Miller 2011), and not below the larger of the first two.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from metabo.errors import DataError

Labels = Sequence[int] | Sequence[str] | np.ndarray
"""One fold, or data set, per task: numbers or names."""
WITHIN = 0.1
"""Correlation of two tasks of a unit in the working model of `degrees_of_freedom`. Bell and McCaffrey assume none, with
which an interval over units as unlike in size as those of pd1_mini is wrong on either side in up to 2.8 % of studies;
of 0, 0.1, 0.25, 0.5 and 1 this is the least with which it is in at most 2.5 %, however tasks correlate."""


class TaskClusters(NamedTuple):
    """`unit` (K,): number of each task's unit, 0 to G - 1. `data_set` (K,): the same of its data set where the units
    are folds and data sets crossed, else None. `folds`: number of folds."""

    unit: np.ndarray
    data_set: np.ndarray | None
    folds: int

    @property
    def units(self) -> int:
        """Number of units of the interval; of crossed ones the lesser."""
        return min(int(labels.max()) + 1 for labels in self.crossed)

    @property
    def crossed(self) -> list[np.ndarray]:
        """The labels of each kind of unit: one, or where folds and data sets are crossed, both."""
        return [labels for labels in (self.unit, self.data_set) if labels is not None]

    @property
    def freedom(self) -> float:
        """Degrees of freedom of an interval of a mean over tasks: the lesser where units are crossed."""
        return min(map(degrees_of_freedom, self.crossed))


def clusters(tasks: int, folds: Labels | None = None, data_sets: Labels | None = None) -> TaskClusters:
    """Return the units of `tasks` tasks. `folds` (K,): every task its own if not given; `data_sets` (K,): nothing is
    known of them if not given. Raises DataError unless there is one of each per task."""
    fold = _numbers(tasks, np.arange(tasks) if folds is None else folds, "fold")
    count = int(fold.max()) + 1
    if data_sets is None:
        return TaskClusters(fold, None, count)
    data_set = _numbers(tasks, data_sets, "data set")
    if _within(data_set, fold):
        return TaskClusters(fold, None, count)
    return TaskClusters(data_set, None, count) if _within(fold, data_set) else TaskClusters(fold, data_set, count)


def _numbers(tasks: int, labels: Labels, what: str) -> np.ndarray:
    _, numbers = np.unique(np.asarray(labels), return_inverse=True)
    if len(numbers) != tasks:
        raise DataError(f"paired difference: {len(numbers)} {what} numbers for {tasks} tasks; give one per task")
    return numbers


def _within(inner: np.ndarray, outer: np.ndarray) -> bool:
    """Tell whether all tasks of each inner cluster are in one outer one."""
    return len(set(zip(inner.tolist(), outer.tolist(), strict=True))) == int(inner.max()) + 1


def two_way(
    of: TaskClusters, one_way: Callable[[np.ndarray], np.ndarray | float], overlap: float = 0.0
) -> np.ndarray | float:
    """Return the variance of a statistic over units: `one_way(labels)` of the units of `of`, or, crossed, over both.

    `one_way`: the variance, a number or an array, with clusters numbered 0 to G - 1 by `labels` (K,) as units, its
    small-sample factor included. `overlap`: what training tasks that folds share add to the
    variance over folds, as a share of it; data sets do not differ less or more for it.
    """
    first = one_way(of.unit) * (1 + overlap)
    if of.data_set is None:
        return first
    second = one_way(of.data_set)
    both = one_way(np.unique(np.stack([of.unit, of.data_set]), axis=1, return_inverse=True)[1].reshape(-1))
    return np.maximum(first + second - both, np.maximum(first, second))


def variance_of_mean(values: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the cluster-robust variance (...) of the weighted mean over tasks of `values` (..., K): CR2 of Bell and
    McCaffrey (2002), if tasks of a cluster weigh the same; else unbiased where variances are inverse to weights.

    The sum over clusters of the squared sum of weighted deviations from the mean, each divided by 1 - W, with W the
    weight of the cluster; G / (G - 1) times the plain sum where all weigh the same. `labels` (K,): clusters, 0 to
    G - 1, G > 1. `weights` (K,) sum to 1; 1 / K if not given.
    """
    share, member = _shares(labels, weights)
    deviations = (values - (values * share).sum(axis=-1, keepdims=True)) * share
    return ((deviations @ member) ** 2 / (1 - share @ member)).sum(axis=-1)


def degrees_of_freedom(labels: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return Satterthwaite's degrees of freedom of `variance_of_mean` (Bell and McCaffrey 2002) under a working model:
    tasks of one variance, and of correlation `WITHIN` in a cluster. G - 1 where all clusters weigh the same and have as
    many tasks; fewer where few clusters have most of the tasks."""
    share, member = _shares(labels, weights)
    weight = share @ member
    own = (member.T - weight[:, None]) * share / np.sqrt(1 - weight)[:, None]
    within = own @ member
    spread = (1 - WITHIN) * own @ own.T + WITHIN * within @ within.T
    return float(np.trace(spread) ** 2 / np.sum(spread**2))


def _shares(labels: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of each task (K,) and the membership of tasks in clusters (K, G)."""
    share = np.full(len(labels), 1 / len(labels)) if weights is None else weights
    return share, (labels[:, None] == np.arange(int(labels.max()) + 1)).astype(np.float64)
