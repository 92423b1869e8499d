"""Online tuning (hyperbo §7.5, Figures 14, 22): best value so far, infeasible queries, and which method ends lower.

A query is infeasible when its training diverged, raised or returned no finite number. A run without any feasible query
so far has no value; it counts as worse than every value (+inf here), never as absent: leaving such runs out would
flatter a method that often fails. A repetition is one run, a (prior_seed, seed) pair: the prior is trained again in
every run.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from metabo.errors import DataError, unknown
from metabo.metrics.aggregate import HIGH, LOW
from metabo.papers.engine.printed import tasknames


class Shown(NamedTuple):
    """How a metric is shown: `label` with its unit, and the factor from the stored number to that unit."""

    label: str
    factor: float


SHOWN = {
    "error_rate": Shown("validation error rate (%)", 100.0),
    "ce_loss": Shown("validation cross entropy (nats)", 1.0),
}
"""Lower is better in both (hyperbo §7.5: error rate for image tasks, cross entropy for text tasks)."""


FEWEST = 5
"""Runs from which a percentile between the least and the greatest says more than these two."""


@dataclass(frozen=True)
class OnlineRuns:
    """`best[method]` (Q, K, T): best value so far in the shown unit, +inf before the first feasible query;
    `feasible[method]` (Q, K, T) bool; `tasks`: K names; `metric`: the label of each task's metric."""

    best: dict[str, np.ndarray]
    feasible: dict[str, np.ndarray]
    tasks: tuple[str, ...]
    metric: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the table."""
        return tuple(self.best)

    @property
    def last(self) -> int:
        """The last iteration, T."""
        return next(iter(self.best.values())).shape[-1]


def collect_online(table: pd.DataFrame) -> OnlineRuns:
    """Build the arrays from an online table (`metabo.records.results`).

    Every run of a method must have every task and the iterations 1..T; methods may differ in their number of runs.
    Raises DataError naming the first missing or repeated query, a task with two metrics, a feasible query without a
    finite metric, or a `best_metric` that is not the running minimum; ConfigError for an unknown metric.
    """
    if table.empty:
        raise DataError("online table: no row; run the online stage first")
    tasks, last = tuple(dict.fromkeys(table["task"])), int(table["iteration"].max())
    shown = [_shown(table, task) for task in tasks]
    factor = np.array([s.factor for s in shown])[:, None]
    best, feasible = {}, {}
    for method, rows in table.groupby("method", sort=False):
        metric, reported, good = _dense(rows, str(method), tasks, last)
        values = np.where(good, metric, np.inf)
        _require(np.isfinite(values) | ~good, rows, tasks, "is feasible but has no finite metric")
        running = np.minimum.accumulate(values, axis=-1)
        same = np.isclose(np.where(np.isnan(reported), np.inf, reported), running, rtol=1e-9, atol=0)
        _require(same, rows, tasks, "has a best_metric that is not the lowest feasible metric so far")
        best[str(method)], feasible[str(method)] = running * factor, good
    return OnlineRuns(best, feasible, tasks, tuple(s.label for s in shown))


def _shown(table: pd.DataFrame, task: str) -> Shown:
    names = table.loc[table["task"] == task, "metric_name"].unique()
    if len(names) > 1:
        raise DataError(f"online table: task '{task}' has several metrics, {sorted(names)}; run all methods again")
    if names[0] not in SHOWN:
        raise unknown("metric of an online table", names[0], SHOWN)
    return SHOWN[names[0]]


def _dense(rows: pd.DataFrame, method: str, tasks: tuple[str, ...], last: int) -> tuple[np.ndarray, ...]:
    """Return metric, best_metric, feasible of one method as (Q, K, T) arrays. Raises DataError for a gap or repeat."""
    runs = pd.MultiIndex.from_frame(rows[["prior_seed", "seed"]])
    names = runs.unique().sort_values()
    shape = (len(names), len(tasks), last)
    place = (
        names.get_indexer(runs),
        pd.Categorical(rows["task"], categories=tasks).codes,
        rows["iteration"].to_numpy() - 1,
    )
    if (place[2] < 0).any():
        raise DataError(f"online table: method={method} has an iteration below 1; run it again")
    counts = np.bincount(np.ravel_multi_index(place, shape), minlength=int(np.prod(shape))).reshape(shape)
    if (counts != 1).any():
        q, k, t = np.argwhere(counts != 1)[0]
        prior_seed, seed = names[q]
        raise DataError(
            f"online table: method={method}, task={tasks[k]}, prior_seed={prior_seed}, seed={seed}, iteration {t + 1} "
            f"of {last} {'is missing' if counts[q, k, t] == 0 else 'occurs more than once'}; "
            "delete this method's file and run it again"
        )
    arrays = []
    for column in ("metric", "best_metric", "feasible"):
        values = rows[column].to_numpy()
        array = np.empty(shape, dtype=values.dtype)
        array[place] = values
        arrays.append(array)
    return tuple(arrays)


def _require(good: np.ndarray, rows: pd.DataFrame, tasks: tuple[str, ...], fault: str) -> None:
    if not good.all():
        _, k, t = np.argwhere(~good)[0]
        method = rows["method"].iloc[0]
        raise DataError(
            f"online table: method={method}, task={tasks[k]}, iteration {t + 1} {fault}; delete the file and run again"
        )


def online_curves(runs: OnlineRuns) -> pd.DataFrame:
    """Return task, metric, method, iteration, median, low, high, with_value, repetitions: best value against iteration.

    Median, 20th and 80th percentile over runs (linear interpolation), a run without a feasible query being the worst;
    of fewer than `FEWEST` runs, `low` and `high` are the least and the greatest.
    `with_value` is the share of runs that have one. The median is NaN while this is below one half (at exactly one half
    it is the highest value there is); low is NaN with it; `high` is +inf while that percentile has no value.
    """
    frames = []
    for k, task in enumerate(runs.tasks):
        for method, best in runs.best.items():
            values = np.sort(best[:, k], axis=0)
            share = np.isfinite(values).mean(axis=0)
            low, high = (LOW, HIGH) if len(values) >= FEWEST else (0.0, 100.0)
            columns = {"median": _median(values), "low": _percentile(values, low), "high": _percentile(values, high)}
            columns = {name: np.where(share >= 0.5, column, np.nan) for name, column in columns.items()}
            frame = pd.DataFrame({"task": task, "metric": runs.metric[k], "method": method, **columns})
            frame.insert(3, "iteration", np.arange(1, runs.last + 1))
            frames.append(frame.assign(with_value=share, repetitions=len(values)))
    return pd.concat(frames, ignore_index=True)


def _percentile(ordered: np.ndarray, q: float) -> np.ndarray:
    """Percentile along axis 0 of sorted values that may end in +inf, to which the interpolation stays faithful."""
    place = q / 100 * (len(ordered) - 1)
    low = int(np.floor(place))
    share = place - low
    # Without the branch, 0 * inf would make NaN of an exact order statistic.
    return ordered[low] if share < 1e-12 else (1 - share) * ordered[low] + share * ordered[low + 1]


def _median(ordered: np.ndarray) -> np.ndarray:
    """Median along axis 0 of a line that is drawn, like `_percentile`; where exactly half of the values are finite, the
    highest of those, so that the line starts there."""
    half = ordered[max(0, len(ordered) // 2 - 1)]
    return np.where(2 * np.isfinite(ordered).sum(axis=0) == len(ordered), half, _percentile(ordered, 50))


def online_final(runs: OnlineRuns) -> pd.DataFrame:
    """Return task, metric, method, mean, std, median, least, greatest, with_value, repetitions of the best value after
    all iterations.

    Mean and standard deviation (ddof 0) are over the `with_value` runs that found a feasible point (NaN if none did);
    the median counts the others as worst: it is +inf unless more than half of the runs have a value. So do `least` and
    `greatest`.
    """
    rows = []
    for k, task in enumerate(runs.tasks):
        for method, best in runs.best.items():
            final = np.sort(best[:, k, -1])
            found = final[np.isfinite(final)]
            mean, std = (found.mean(), found.std()) if len(found) else (np.nan, np.nan)
            row = {"task": task, "metric": runs.metric[k], "method": method, "mean": mean, "std": std}
            row |= {"median": float(_percentile(final, 50)), "least": final[0], "greatest": final[-1]}
            row |= {"with_value": len(found), "repetitions": len(final)}
            rows.append(row)
    return pd.DataFrame(rows)


def infeasible_queries(runs: OnlineRuns) -> pd.DataFrame:
    """Return task, method, queries, infeasible, share: queries without a value, over all runs and iterations."""
    rows = []
    for k, task in enumerate(runs.tasks):
        for method, feasible in runs.feasible.items():
            bad = int((~feasible[:, k]).sum())
            size = feasible[:, k].size
            rows.append({"task": task, "method": method, "queries": size, "infeasible": bad, "share": bad / size})
    return pd.DataFrame(rows)


def online_comparison(runs: OnlineRuns, methods: list[str], reference: str) -> pd.DataFrame:
    """Return task, method, reference, median, reference_median, better, equal, runs, reference_runs: who ends lower
    (claim C54).

    By the median of `online_final` over the two methods' `runs` and `reference_runs`: it is +inf where half of the runs
    or more find no feasible point, and two such methods are equal. Methods (or a reference) without runs are left out.
    """
    final = online_final(runs).set_index(["task", "method"])["median"]
    columns = ["task", "method", "reference", "median", "reference_median", "better", "equal", "runs", "reference_runs"]
    rows = []
    for method in [m for m in methods if m in runs.methods and reference in runs.methods]:
        for task in runs.tasks:
            ours, theirs = final[task, method], final[task, reference]
            row = {"task": task, "method": method, "reference": reference, "median": ours, "reference_median": theirs}
            row |= {"better": bool(ours < theirs), "equal": bool(ours == theirs)}
            rows.append({**row, "runs": len(runs.best[method]), "reference_runs": len(runs.best[reference])})
    return pd.DataFrame(rows, columns=columns)


def by_data_set(table: pd.DataFrame) -> pd.DataFrame:
    """Return online queries as those of BO on tables: tasks on one data set are a fold, and a seed is a repetition,
    since every run trains its prior again."""
    data_set = [tasknames.parts(task).dataset or task for task in table["task"]]
    return table.assign(space="", fold=data_set, prior_seed=table["seed"], seed=0)
