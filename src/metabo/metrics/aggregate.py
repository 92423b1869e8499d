"""Aggregated results: regret curves, performance profiles, ranks and the best metric (hyperbo §7.3, §7.4.2).

All functions take `Runs` and return tidy DataFrames, one row per plotted point. `unit` is explained in
`metabo.metrics.runs`.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from metabo.errors import DataError
from metabo.metrics import pools
from metabo.metrics.runs import Runs, paired, repetitions
from metabo.tasks.benchmark import Benchmark

LOW, HIGH = 20, 80
"""Percentiles of the bands, hyperbo §7.3."""
DECIMALS = 8
"""Decimals of a mean regret; means that agree to these share a rank, whatever the order of summation."""
ROUNDING = 1e-9
"""A relative tolerance: a regret that equals the resolution of its table up to rounding counts as within it."""


def regret_curves(runs: Runs, unit: str = "prior") -> pd.DataFrame:
    """Return method, iteration, median, low, high, mean, repetitions: regret against BO iteration.

    Median, 20th and 80th percentile (linear interpolation) over repetitions q of the mean over tasks
    (1/P) sum_p r_t^(p,q); hyperbo §7.3.
    """
    frames = []
    for method, values in repetitions(runs, unit).items():
        curve = values.mean(axis=1)
        low, median, high = np.percentile(curve, [LOW, 50, HIGH], axis=0)
        columns = {"median": median, "low": low, "high": high, "mean": curve.mean(axis=0)}
        frames.append(_frame(method, runs.iterations, **columns, repetitions=len(curve)))
    return pd.concat(frames, ignore_index=True)


def regret_slices(runs: Runs, iterations: list[int], unit: str = "prior") -> pd.DataFrame:
    """Return method, iteration, repetition, regret: the mean over tasks of each repetition (the violins' points)."""
    frames = []
    for iteration in iterations:
        for method, values in repetitions(runs.at(iteration), unit).items():
            regret = values.mean(axis=(1, 2))
            frame = pd.DataFrame({"repetition": np.arange(len(regret)), "regret": regret})
            frame.insert(0, "iteration", iteration)
            frame.insert(0, "method", method)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def regret_by_task(runs: Runs, iteration: int, unit: str = "prior") -> pd.DataFrame:
    """Return task, method, iteration, median, mean of each task's regret over repetitions.

    This shows which tasks dominate a mean over tasks: one hard task can outweigh all others.
    """
    frames = []
    for method, values in repetitions(runs.at(iteration), unit).items():
        v = values[..., 0]
        columns = {"task": runs.tasks, "method": method, "iteration": iteration}
        frames.append(pd.DataFrame({**columns, "median": np.median(v, axis=0), "mean": v.mean(axis=0)}))
    return pd.concat(frames, ignore_index=True)


def performance_profiles(runs: Runs, thresholds: list[float], unit: str = "prior") -> pd.DataFrame:
    """Return method, threshold, iteration, fraction, low, high, repetitions: share of tasks solved.

    Solved means r_t < C, strictly (the formula of hyperbo §7.3; its captions say "at most"). `fraction` is the mean
    over repetitions; low and high are the 20th and 80th percentile over repetitions of the share of tasks.
    """
    frames = []
    for threshold in thresholds:
        solved = replace(runs, values={m: (v < threshold).astype(np.float64) for m, v in runs.values.items()})
        for method, values in repetitions(solved, unit).items():
            share = values.mean(axis=1)
            low, high = np.percentile(share, [LOW, HIGH], axis=0)
            columns = {"fraction": share.mean(axis=0), "low": low, "high": high, "repetitions": len(share)}
            frames.append(_frame(method, runs.iterations, threshold=threshold, **columns))
    return pd.concat(frames, ignore_index=True)


def resolutions(benchmark: Benchmark, noise: Mapping[str, np.ndarray], regret: str) -> dict[str, float]:
    """Return the smallest regret that each task's pool can tell from 0 (`metabo.metrics.pools.resolution`), in the unit
    of `regret` ("simple_regret" or "normalised_regret"). `noise` maps a task to the (n,) standard deviations of its
    noise, where they are known."""
    found = {}
    for name, task in benchmark.tasks.items():
        width = np.ptp(task.y) if regret == "normalised_regret" else 1.0
        found[name] = pools.resolution(task.y, noise.get(name)) / width if width > 0 else 0.0
    return found


def profile_of_resolved(runs: Runs, resolution: Mapping[str, float], unit: str = "prior") -> pd.DataFrame:
    """Return method, iteration, fraction, low, high, repetitions: the share of tasks whose regret is at most what their
    own pool can tell from 0 (`metabo.metrics.pools.resolution`, in the unit of the regret, by task).

    Below that, a difference shows which of two near-equal rows was queried, not which method is better. Raises
    DataError for a task without a resolution.
    """
    if lost := [task for task in runs.tasks if task not in resolution]:
        raise DataError(f"no resolution of task '{lost[0]}' is given; load the benchmark that the runs are on")
    least = np.array([resolution[task] for task in runs.tasks])[:, None]
    beyond = {m: np.where(v <= least * (1 + ROUNDING), 0.0, 1.0) for m, v in runs.values.items()}
    return performance_profiles(replace(runs, values=beyond), [0.5], unit).drop(columns="threshold")


def ranks(runs: Runs, unit: str = "prior") -> pd.DataFrame:
    """Return method, iteration, mean, std, repetitions: rank of the mean regret over tasks, 1 = lowest.

    Methods are ranked within each repetition and iteration. Ties share the average rank; means that agree to DECIMALS
    tie. Mean and standard deviation (ddof 0) are over repetitions. Source: hyperbo §7.3.
    """
    rank = rankdata(np.round(paired(runs, unit).mean(axis=2), DECIMALS), axis=0, method="average")
    frames = []
    for method, r in zip(runs.methods, rank, strict=True):
        frames.append(_frame(method, runs.iterations, mean=r.mean(axis=0), std=r.std(axis=0), repetitions=len(r)))
    return pd.concat(frames, ignore_index=True)


def best_metric(outputs: Runs, metric: Runs, unit: str = "prior") -> pd.DataFrame:
    """Return task, method, mean, std, repetitions: original metric of the best point of all T iterations (Table 5).

    `outputs` holds the maximised y, `metric` the original metric of the same queries (both from `collect`). The best
    point is the first one with the largest y, so no direction of the metric is assumed. Mean and standard deviation
    (ddof 0) over repetitions.
    """
    found = {}
    for method, y in outputs.values.items():
        # Look up a method's metrics by run before copies of identical runs are dropped in one of the two.
        m = np.broadcast_to(metric.values[method], np.broadcast_shapes(y.shape, metric.values[method].shape))
        index = np.broadcast_to(np.argmax(y, axis=-1)[..., None], (*m.shape[:-1], 1))
        found[method] = np.take_along_axis(m, index, axis=-1)
    best = replace(outputs, values=found, iterations=outputs.iterations[-1:])
    frames = []
    for method, values in repetitions(best, unit).items():
        v = values[..., 0]
        columns = {"task": outputs.tasks, "method": method, "mean": v.mean(axis=0), "std": v.std(axis=0)}
        frames.append(pd.DataFrame({**columns, "repetitions": len(v)}))
    return pd.concat(frames, ignore_index=True)


def _frame(method: str, iterations: np.ndarray, **columns: np.ndarray | float) -> pd.DataFrame:
    return pd.DataFrame({"method": method, "iteration": iterations, **columns})
