"""Elimination among pre-trained priors against each single prior (hegpucb_x04).

A method that chooses among priors has one run per set of candidates: seed s leaves out the prior of seed s
(`metabo.methods.elimination.candidates`). It is compared with the single priors of its set.
"""

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.metrics.inference import Difference, paired_difference
from metabo.metrics.jackknife import jackknife
from metabo.metrics.runs import Runs

SUMMARIES = ("mean", "best", "worst")
"""Of the single priors of a set: their mean; the one with the lowest, or highest, mean regret over the iterations of
that task, which cannot be known beforehand."""


def singles(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return, by summary, the regret of the single priors of each set (sets, tasks, iterations).

    `values`: (priors, tasks, iterations); set s leaves out prior s. Raises DataError for fewer than two priors.
    """
    count = len(values)
    if count < 2:
        raise DataError(f"single priors: needs at least two, got {count}; raise config key 'elimination.seeds'")
    found: dict[str, list[np.ndarray]] = {name: [] for name in SUMMARIES}
    level = values.mean(axis=2)
    for left_out in range(count):
        kept = [s for s in range(count) if s != left_out]
        tasks = np.arange(values.shape[1])
        found["mean"].append(values[kept].mean(axis=0))
        for name, pick in (("best", np.argmin), ("worst", np.argmax)):
            found[name].append(values[kept][pick(level[kept], axis=0), tasks])
    return {name: np.stack(parts) for name, parts in found.items()}


def against_singles(runs: Runs, single: str) -> dict[str, np.ndarray]:
    """Return the regret of every method but `single`, and of the single priors by summary, (sets, tasks, iterations).

    BO seeds are averaged first. Raises DataError if the methods do not have one set per single prior.
    """
    values = {name: array.mean(axis=1) for name, array in runs.values.items()}
    own = values.pop(single)
    for name, array in values.items():
        if len(array) not in (1, len(own)):
            raise DataError(
                f"'{name}' has {len(array)} sets of candidates for {len(own)} single priors of '{single}'; make both "
                "again on the same split"
            )
        values[name] = np.broadcast_to(array, own.shape)  # runs that are the same for all sets are stored once
    return values | {f"single_{name}": array for name, array in singles(own).items()}


def set_curves(values: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return the mean over tasks, and the least and highest of the sets: method, iteration, mean, low, high."""
    rows = []
    for method, array in values.items():
        of_sets = array.mean(axis=1)
        columns = {"mean": of_sets.mean(axis=0), "low": of_sets.min(axis=0), "high": of_sets.max(axis=0)}
        rows.append(pd.DataFrame({"method": method, "iteration": np.arange(1, array.shape[2] + 1), **columns}))
    return pd.concat(rows, ignore_index=True)


def set_differences(
    values: dict[str, np.ndarray], reference: str, iterations: list[int], runs: Runs, seed: int
) -> pd.DataFrame:
    """Return the regret of `reference` minus that of every other, paired by set and task: method, iteration,
    difference, low, high (95 % interval over what `runs` draws), wins (share of tasks in which it is lower, on
    average of sets).

    `values`: those of `against_singles`, of methods that all choose among, or are, priors that were trained on other
    folds' tasks; these folds share, so that the variance over folds grows as in every other comparison
    (`Runs.overlap`). That is too much, if anything: the priors of a fold see few of the tasks that it may share.

    Sets are not independent repetitions: any two share all candidates but one, and their runs may be the same. So
    they are averaged before folds or tasks are drawn; an interval that speaks of these tasks alone ("fixed") is a
    jackknife's, since each set leaves out one prior.
    """
    rows = []
    for iteration in iterations:
        for place, method in enumerate(m for m in values if m != reference):
            a, b = (values[name][:, :, iteration - 1] for name in (reference, method))
            rng = np.random.default_rng([seed, iteration, place])
            found = _difference(a - b, rng, runs)
            numbers = {"difference": found.estimate, "low": found.low, "high": found.high}
            wins = float(((a - b).mean(axis=0) < 0).mean())
            rows.append({"reference": reference, "method": method, "iteration": iteration, **numbers, "wins": wins})
    return pd.DataFrame(rows)


def _difference(d: np.ndarray, rng: np.random.Generator, runs: Runs) -> Difference:
    """Return the mean of differences (sets, tasks) with its interval."""
    if runs.drawn == "fixed":
        return jackknife(d.mean(axis=1))
    of_tasks = d.mean(axis=0, keepdims=True)
    zero = np.zeros_like(of_tasks)
    return paired_difference(of_tasks, zero, rng, runs.drawn, **runs.clusters, overlap=runs.overlap)


def set_tasks(values: dict[str, np.ndarray], tasks: tuple[str, ...], iteration: int) -> pd.DataFrame:
    """Return the regret per task at one iteration, mean over sets: task, method, mean."""
    parts = [
        pd.DataFrame({"task": tasks, "method": method, "mean": array[:, :, iteration - 1].mean(axis=0)})
        for method, array in values.items()
    ]
    return pd.concat(parts, ignore_index=True)
