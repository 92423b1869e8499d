"""Intervals of differences of MPHD's regrets over search spaces: their units, their overlap in training, and data sets
that several spaces share."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as student_t

from metabo.metrics.clusters import TaskClusters, clusters, degrees_of_freedom, two_way, variance_of_mean
from metabo.metrics.runs import Runs, paired, shared_training

LEVEL = 0.95


def training_overlap(parts: Mapping[str, Runs], methods: Sequence[str]) -> float:
    """Return what training that spaces share adds to the variance of a mean over them, as a share of it; 0 for one
    space, or where neither method learns from tasks."""
    trained = not all(set(methods) <= runs.single_task for runs in parts.values())
    return shared_training(pd.DataFrame({"space": "", "fold": list(parts)})) if trained else 0.0


def units_of(parts: Mapping[str, Runs], methods: Sequence[str]) -> int:
    """Return how many independent draws an interval rests on: spaces (data sets, where spaces share them and have fewer
    of them), else the tasks of the only one, else seeds."""
    if len(parts) > 1:
        return _labels(parts).units
    _, seeds, tasks, _ = paired(next(iter(parts.values())).select(methods), "run").shape
    return tasks if tasks > 1 else seeds


def half_width(draws: np.ndarray, units: int, overlap: float) -> np.ndarray:
    """Return half the interval's width (iterations,) of bootstrap means (b, iterations) of `units` draws, whose mean
    varies more by `overlap`, a share of its variance."""
    if units == 1:
        return np.full(draws.shape[1], np.nan)
    quantile = student_t.ppf(0.5 + LEVEL / 2, units - 1)
    return np.asarray(quantile * draws.std(axis=0) * np.sqrt(units / (units - 1) * (1 + overlap)))


def _labels(parts: Mapping[str, Runs]) -> TaskClusters:
    """Return the spaces of all tasks as units, crossed with data sets where spaces share these."""
    spaces = [space for space, runs in parts.items() for _ in runs.tasks]
    named = [name for space, runs in parts.items() for name in runs.data_sets or [f"{space}: {t}" for t in runs.tasks]]
    return clusters(len(spaces), spaces, named)


def share_data_sets(parts: Mapping[str, Runs]) -> bool:
    """Return whether two spaces have test tasks about one data set."""
    of = _labels(parts)
    return len(parts) > 1 and (of.data_set is not None or of.units < len(parts))


def task_gaps(parts: Mapping[str, Runs], method: str, reference: str) -> np.ndarray:
    """Return (tasks of all spaces, iterations): regret of `method` minus that of `reference`, mean over seeds."""
    gaps = []
    for runs in parts.values():
        first, second = paired(runs.select([method, reference]), "run").mean(axis=1)
        gaps.append(first - second)
    return np.concatenate(gaps)


def _weights(parts: Mapping[str, Runs]) -> np.ndarray:
    """Return the weight of each task of all spaces in a mean over tasks, then over spaces."""
    sizes = [len(runs.tasks) for runs in parts.values()]
    return np.repeat(1 / (len(parts) * np.array(sizes)), sizes)


def freedom_of(parts: Mapping[str, Runs], units: int) -> float:
    """Return the degrees of freedom of an interval where spaces test on the same data sets: the lesser of spaces and
    data sets.

    Spaces weigh the same, so that Student's t of one fewer stays valid where some have few tasks and vary more
    (Ibragimov and Müller 2010); data sets weigh unlike (`metabo.metrics.clusters.degrees_of_freedom`).
    """
    of = _labels(parts)
    return min(units - 1, degrees_of_freedom(of.unit if of.data_set is None else of.data_set, _weights(parts)))


def with_data_sets(
    parts: Mapping[str, Runs], gaps: np.ndarray, half: np.ndarray, units: int, freedom: float, overlap: float
) -> np.ndarray:
    """Return half the interval's width (iterations,) where spaces test on the same data sets.

    The bootstrap's variance, over spaces, plus that over data sets minus that over tasks about one data set in one
    space, and not below the larger of the first two (`metabo.metrics.clusters`; spaces weigh equally). `gaps`: (tasks,
    iterations); `half`: of the bootstrap, with `units` units and `overlap`, a share of the variance over spaces;
    `freedom`: of the interval.
    """
    of, weights = _labels(parts), _weights(parts)
    reach = student_t.ppf(0.5 + LEVEL / 2, units - 1)

    def one_way(labels: np.ndarray) -> np.ndarray:
        spaces = of.data_set is not None and labels is of.unit
        return (half / reach) ** 2 / (1 + overlap) if spaces else variance_of_mean(gaps.T, labels, weights)

    quantile = student_t.ppf(0.5 + LEVEL / 2, freedom)
    return np.asarray(quantile * np.sqrt(two_way(of, one_way, overlap)))
