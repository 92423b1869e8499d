"""BO runs as dense arrays, and the definition of one repetition.

`collect` reads the trajectory table into one array per method, (priors P, BO seeds S, tasks K, iterations T), and
rejects incomplete grids, because a missing run would silently shift a mean.

The unit of analysis. One pre-trained prior reused by S BO runs is one sample of the prior, not S. Hence

- ``unit="prior"`` (default in the figures): a repetition of a pre-trained method is one pre-training seed, its BO
  seeds averaged first; a method without pre-training has no prior to share, so each of its runs is a repetition;
- ``unit="run"``: a repetition is one (prior_seed, seed) pair, the random seed q of hyperbo §7.3.

With one BO seed, or for methods whose runs ignore it, the two agree.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import pandas as pd

from metabo.errors import DataError, unknown

UNITS = ("prior", "run")
_REGRETS = ("simple_regret", "normalised_regret")
_ROUNDING = 1e-12


class ClusterLabels(TypedDict):
    """One fold and one data set per task; None: not known."""

    folds: tuple[int, ...] | None
    data_sets: tuple[str, ...] | None


@dataclass(frozen=True)
class Runs:
    """`values[method]`: (P, S, K, T) float64; `prior_seeds[method]`: P labels; `tasks`: K labels; `iterations`: (T,).

    `single_task` names the methods without pre-training. P and S may differ between methods. `folds` has the number of
    each task's fold (tasks of one fold share their priors), and is empty if unknown. `drawn` is what intervals
    generalise to, one of `metabo.metrics.inference.TREATMENTS`: "nested" for a new data set, or "fixed" for this suite
    of tasks (the only choice if all tasks are variants of one data set). `overlap` is the share by which training tasks
    that folds have in common increase the variance of a mean over folds (`shared_training`). `data_sets` has the name
    of each task's data set, which tasks of several folds may share, and is empty if unknown.
    """

    values: dict[str, np.ndarray]
    prior_seeds: dict[str, tuple[int, ...]]
    tasks: tuple[str, ...]
    iterations: np.ndarray
    single_task: frozenset[str]
    folds: tuple[int, ...] = ()
    drawn: str = "nested"
    overlap: float = 0.0
    data_sets: tuple[str, ...] = ()

    @property
    def clusters(self) -> ClusterLabels:
        """What `metabo.metrics.inference.paired_difference` is told of the tasks: their folds and data sets."""
        return {"folds": self.folds or None, "data_sets": self.data_sets or None}

    def overlap_of(self, methods: Collection[str]) -> float:
        """Return the `overlap` of a difference between these methods: 0 if none of them learns from training tasks."""
        return 0.0 if self.single_task.issuperset(methods) else self.overlap

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the table."""
        return tuple(self.values)

    @property
    def last(self) -> int:
        """The last iteration, T."""
        return int(self.iterations[-1])

    def at(self, iteration: int) -> "Runs":
        """Keep one iteration, as arrays (P, S, K, 1). Raises DataError if the runs lack it."""
        i = int(np.searchsorted(self.iterations, iteration))
        if i == len(self.iterations) or self.iterations[i] != iteration:
            held = f"{self.iterations[0]} to {self.last}"
            raise DataError(f"iteration {iteration} is not in the runs ({held}); choose one of those")
        values = {m: v[..., i : i + 1] for m, v in self.values.items()}
        return replace(self, values=values, iterations=self.iterations[i : i + 1])

    def select(self, methods: Collection[str]) -> "Runs":
        """Keep the given methods, in the given order. Raises ConfigError for one that has no runs."""
        for method in methods:
            if method not in self.values:
                raise unknown("method in these runs", method, self.values)
        return replace(self, values={m: self.values[m] for m in methods}, single_task=self.single_task & set(methods))


def collect(table: pd.DataFrame, column: str = "simple_regret", single_task: Collection[str] = frozenset()) -> Runs:
    """Build the arrays of one column from a trajectory table (`metabo.records.results`), iterations >= 1 only.

    Every method must have run every task with every one of its prior seeds and BO seeds for the same iterations 1..T.
    A method in `single_task` whose runs are identical for all prior seeds keeps one copy of them. A column `data_set`
    names the data set of each task.
    Raises DataError naming the first missing or repeated run, a task that one method lacks, or an increasing regret.
    """
    if "acquisition" in table and (table.groupby("method")["acquisition"].nunique() > 1).any():
        raise DataError("a method appears with several acquisitions; give each its own name in column 'method'")
    queries = table[table["iteration"] >= 1]
    if queries.empty:
        raise DataError("trajectory table: no BO iteration (iteration >= 1); run the `bo` stage first")
    queries = queries.assign(task=task_labels(queries))
    tasks, last = tuple(dict.fromkeys(queries["task"])), int(queries["iteration"].max())
    values, prior_seeds = {}, {}
    for method in dict.fromkeys(queries["method"]):
        rows = queries[queries["method"] == method]
        array = _dense(rows, column, method, tasks, last)
        if column in _REGRETS:
            _check_regret(array, rows, method, tasks)
        repeated = method in single_task and (array == array[:1]).all()
        values[method] = array[:1] if repeated else array
        prior_seeds[method] = tuple(int(p) for p in np.unique(rows["prior_seed"])[: len(values[method])])
    folds = fold_numbers(queries, tasks) if "fold" in queries else ()
    overlap = shared_training(queries) if folds else 0.0
    single = frozenset(single_task) & set(values)
    names = dict(zip(queries["task"], queries["data_set"], strict=True)) if "data_set" in queries else {}
    data_sets = tuple(names[task] for task in tasks) if names else ()
    made = Runs(values, prior_seeds, tasks, np.arange(1, last + 1), single, folds, overlap=overlap)
    return replace(made, data_sets=data_sets)


def task_labels(table: pd.DataFrame) -> pd.Series:
    """Return task names, prefixed by the space if a name occurs in more than one space (as in HPO-B)."""
    shared = table.groupby("task")["space"].nunique()
    shared = set(shared[shared > 1].index)
    if not shared:
        return table["task"]
    return table["task"].where(~table["task"].isin(shared), table["space"] + ":" + table["task"])


def fold_numbers(table: pd.DataFrame, tasks: Sequence[str]) -> tuple[int, ...]:
    """Return the number of each task's fold, from the columns space, fold and task. `tasks` has labels (`task_labels`).

    Folds of different spaces are different, whatever their names.
    """
    of_task = dict(zip(task_labels(table), table["space"] + "\0" + table["fold"], strict=True))
    numbers = {fold: number for number, fold in enumerate(dict.fromkeys(of_task[task] for task in tasks))}
    return tuple(numbers[of_task[task]] for task in tasks)


def shared_training(table: pd.DataFrame) -> float:
    """Return the share by which training tasks that the folds of a space have in common increase the variance over
    folds.

    Each fold leaves out its own tasks and trains on all others, so the results of folds are correlated. With G folds,
    each tests 1/(G - 1) as much as it trains on. By Nadeau and Bengio (2003), the variance of the mean is (1/G + 1/(G -
    1)) times the variance over folds instead of 1/G times, which is larger by the share G/(G - 1). The share is 0 for a
    space with one fold. The result is the mean over spaces.
    """
    counts = table.groupby("space")["fold"].nunique()
    return float(np.mean([count / (count - 1) if count > 1 else 0.0 for count in counts]))


def _dense(rows: pd.DataFrame, column: str, method: str, tasks: tuple[str, ...], last: int) -> np.ndarray:
    priors, seeds = np.unique(rows["prior_seed"]), np.unique(rows["seed"])
    shape = (len(priors), len(seeds), len(tasks), last)
    cells = np.ravel_multi_index(
        (
            np.searchsorted(priors, rows["prior_seed"]),
            np.searchsorted(seeds, rows["seed"]),
            pd.Categorical(rows["task"], categories=tasks).codes,
            rows["iteration"].to_numpy() - 1,
        ),
        shape,
    )
    counts = np.bincount(cells, minlength=int(np.prod(shape)))
    if (counts != 1).any():
        p, s, k, t = np.unravel_index(int(np.argmax(counts != 1)), shape)
        fault = "is missing" if counts[counts != 1][0] == 0 else "occurs more than once"
        raise DataError(
            f"incomplete grid: run method={method}, task={tasks[k]}, prior_seed={priors[p]}, seed={seeds[s]}, "
            f"iteration {t + 1} of {last} {fault} ({int((counts != 1).sum())} such rows); "
            "delete this method's trajectory file and run again"
        )
    out = np.empty(len(cells))
    out[cells] = rows[column].to_numpy(dtype=np.float64)
    return out.reshape(shape)


def _check_regret(array: np.ndarray, rows: pd.DataFrame, method: str, tasks: tuple[str, ...]) -> None:
    priors, seeds = np.unique(rows["prior_seed"]), np.unique(rows["seed"])
    rising = np.diff(array, axis=-1) > _ROUNDING
    for bad, what in ((rising, "rises after"), (array < -_ROUNDING, "is negative at")):
        if bad.any():
            p, s, k, t = np.argwhere(bad)[0]
            raise DataError(
                f"method={method}, task={tasks[k]}, prior_seed={priors[p]}, seed={seeds[s]}: the regret {what} "
                f"iteration {t + 1}; simple regret is >= 0 and never rises, so the trajectory file is wrong"
            )


def repetitions(runs: Runs, unit: str = "prior") -> dict[str, np.ndarray]:
    """Return, per method, the values of each repetition: (Q, K, T), where Q depends on the method and `unit`.

    BO seeds are averaged on the given values, so for a profile pass indicators, not regrets.
    """
    _check_unit(unit)
    out = {}
    for method, v in runs.values.items():
        if unit == "prior" and method not in runs.single_task:
            out[method] = v.mean(axis=1)
        else:
            out[method] = v.reshape(-1, *v.shape[2:])
    return out


def paired(runs: Runs, unit: str = "prior") -> np.ndarray:
    """Return (methods, Q, K, T) with repetition q paired across methods, as ranks and differences need.

    ``unit="run"``: q = (prior_seed, seed). ``unit="prior"``: q = prior_seed, after averaging every method's BO seeds. A
    method with one prior (or one BO seed) enters every q with the same values. Raises DataError if two methods have
    different numbers (other than one) of priors or BO seeds.
    """
    _check_unit(unit)
    arrays = {m: v.mean(axis=1, keepdims=True) if unit == "prior" else v for m, v in runs.values.items()}
    sizes = [max(v.shape[axis] for v in arrays.values()) for axis in (0, 1)]
    for method, v in arrays.items():
        for axis, name in ((0, "prior seeds"), (1, "BO seeds")):
            if v.shape[axis] not in (1, sizes[axis]):
                raise DataError(
                    f"method '{method}' has {v.shape[axis]} {name}, another method has {sizes[axis]}; "
                    "paired comparisons need the same seeds: run the methods with the same settings"
                )
    full = [np.broadcast_to(v, (*sizes, *v.shape[2:])) for v in arrays.values()]
    return np.stack(full).reshape(len(arrays), -1, *full[0].shape[2:])


def _check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise unknown("unit of analysis", unit, UNITS)


def metric_sign(table: pd.DataFrame) -> int:
    """Return +1 if the original metric grows with the maximised output y, -1 if it falls (an error or a loss).

    Raises DataError if tasks disagree or every output is equal.
    """
    signs = set()
    for _, rows in table.groupby(["space", "task"], sort=False):
        best, worst = rows["y"].idxmax(), rows["y"].idxmin()
        signs.add(int(np.sign(rows.at[best, "metric"] - rows.at[worst, "metric"])))
    signs.discard(0)
    if len(signs) != 1:
        raise DataError("the tasks disagree on whether a larger metric is better (or no metric varies); check the data")
    return signs.pop()
