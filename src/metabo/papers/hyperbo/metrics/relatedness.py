"""How related tasks are: Spearman's rank correlation of their outputs over the inputs that two tasks share.

Shared inputs are points with identical coordinates and a finite output in both tasks: PD1's matched points, the
configurations that several data sets of HPO-B have in common, a table's whole pool. Ranks make the measure independent
of each task's scale and of a monotone warp of the output.
"""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.task import Task

LEAST = 10
"""Pairs with fewer shared inputs get no correlation."""

PERCENTILES = (5, 50, 95)


def task_correlations(benchmark: Benchmark, least: int = LEAST) -> pd.DataFrame:
    """Return one row per pair of tasks of one space: space, task, other, group, other_group, shared, correlation.

    Tasks of one group follow each other. The correlation is NaN for fewer than `least` shared inputs, or if a task is
    constant there. Raises DataError if no space has two tasks.
    """
    frames = []
    for space in benchmark.spaces:
        tasks = _by_group([task for task in benchmark.tasks.values() if task.space == space])
        correlation, shared = spearman(shared_outputs(tasks), least)
        i, j = np.triu_indices(len(tasks), 1)
        names, groups = (
            np.array([t.name for t in tasks], dtype=object),
            np.array([t.group for t in tasks], dtype=object),
        )
        columns = {"space": space, "task": names[i], "other": names[j], "group": groups[i], "other_group": groups[j]}
        frames.append(pd.DataFrame({**columns, "shared": shared[i, j], "correlation": correlation[i, j]}))
    pairs = pd.concat(frames, ignore_index=True)
    if pairs.empty:
        raise DataError(f"benchmark '{benchmark.name}': no space has two tasks, so nothing can be correlated")
    return pairs


def _by_group(tasks: list[Task]) -> list[Task]:
    groups = list(dict.fromkeys(task.group for task in tasks))
    return sorted(tasks, key=lambda task: groups.index(task.group))


def shared_outputs(tasks: list[Task]) -> np.ndarray:
    """Return (U, T) outputs at the U inputs that at least two of the T tasks have, NaN where a task lacks one.

    A point that a task has several times counts once, with its mean output. Cost O(n log n) in all points.
    """
    count = len(tasks)
    x = np.ascontiguousarray(np.concatenate([task.x for task in tasks]) + 0.0)  # + 0.0: -0.0 becomes 0.0
    bytes_of_row = x.view(np.dtype((np.void, x.dtype.itemsize * x.shape[1]))).ravel()
    point = np.unique(bytes_of_row, return_inverse=True)[1]
    owner = np.repeat(np.arange(count), [len(task.y) for task in tasks])
    cell, place = np.unique(point * count + owner, return_inverse=True)
    mean = np.bincount(place, np.concatenate([task.y for task in tasks])) / np.bincount(place)
    shared = np.bincount(cell // count) >= 2
    row = np.cumsum(shared) - 1
    kept = shared[cell // count]
    out = np.full((int(shared.sum()), count), np.nan)
    out[row[cell[kept] // count], cell[kept] % count] = mean[kept]
    return out


def spearman(values: np.ndarray, least: int = LEAST) -> tuple[np.ndarray, np.ndarray]:
    """Return ((T, T) correlations, (T, T) numbers of shared rows) of the columns of `values` (U, T), NaN = absent.

    Each pair is ranked over its own shared rows, ties sharing the average rank. NaN where fewer than `least` rows are
    shared or one column is constant on them; the diagonal likewise.
    """
    present = np.isfinite(values)
    shared = present.T.astype(np.int64) @ present.astype(np.int64)
    correlation = np.full(shared.shape, np.nan)
    for i in range(values.shape[1]):
        rows = values[present[:, i]]
        if len(rows) == 0:
            continue
        both = np.isfinite(rows[:, i:])
        mine = _centred_ranks(np.where(both, rows[:, i : i + 1], np.nan))
        theirs = _centred_ranks(np.where(both, rows[:, i:], np.nan))
        scale = np.sqrt((mine**2).sum(axis=0) * (theirs**2).sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.where(scale > 0, np.clip((mine * theirs).sum(axis=0) / scale, -1.0, 1.0), np.nan)
        correlation[i, i:] = correlation[i:, i] = r
    return np.where(shared >= least, correlation, np.nan), shared


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Rank each column's finite values (ties averaged) around their mean rank (n + 1) / 2; absent values become 0."""
    ranks = rankdata(values, axis=0, nan_policy="omit")
    return np.nan_to_num(ranks - (np.isfinite(values).sum(axis=0) + 1) / 2)


def correlation_summary(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return space, kind, pairs, without, low, median, high, positive: the distribution of the off-diagonal entries.

    `kind`: all pairs and, if both occur, those within a group and between groups. `without`: pairs that have no
    correlation, left out of the rest; low and high: 5th and 95th percentile; positive: share above 0.
    """
    same = pairs["group"] == pairs["other_group"]
    rows = []
    for space in dict.fromkeys(pairs["space"]):
        here = pairs["space"] == space
        kinds = {"all": here, "within a group": here & same, "between groups": here & ~same}
        for kind, chosen in kinds.items() if all(k.any() for k in kinds.values()) else [("all", here)]:
            found = pairs.loc[chosen, "correlation"]
            r = found.dropna().to_numpy()
            low, median, high = np.percentile(r, PERCENTILES) if len(r) else (np.nan,) * 3
            row = {"space": space, "kind": kind, "pairs": len(found), "without": len(found) - len(r)}
            positive = float((r > 0).mean()) if len(r) else np.nan
            rows.append({**row, "low": low, "median": median, "high": high, "positive": positive})
    return pd.DataFrame(rows)
