"""Losses of the priors (evaluation tables): averages per repetition, per task, and as `Runs` (hyperbo §7.4.2)."""

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.metrics.runs import Runs, task_labels

_KEYS = ["method", "prior_seed", "task", "metric"]


def loss_table(evaluations: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return task, method, mean, std, repetitions of one metric over prior seeds (ddof 0), as in Table 6.

    A task without a value for a method has no row. Raises DataError if a value occurs twice or the metric never.
    """
    tidy = _tidy(evaluations)
    tidy = tidy[tidy["metric"] == metric]
    if tidy.empty:
        raise DataError(f"evaluations: no value of metric '{metric}'; found {sorted(set(evaluations['metric']))}")
    grouped = tidy.groupby(["task", "method"], sort=False)["value"]
    return grouped.agg(mean="mean", std=lambda v: v.std(ddof=0), repetitions="count").reset_index()


def loss_runs(evaluations: pd.DataFrame, metric: str) -> tuple[Runs, list[str]]:
    """Return one metric as `Runs` (P priors, one BO seed, K tasks, one iteration), and the tasks left out.

    A task is left out if a method or prior seed lacks it. Raises DataError if methods differ in their prior seeds.
    """
    wide = _tidy(evaluations).set_index(_KEYS)["value"].unstack("metric")
    if metric not in wide:
        raise DataError(f"evaluations: no value of metric '{metric}'; found {sorted(wide)}")
    tasks, methods = list(dict.fromkeys(task_labels(evaluations))), list(dict.fromkeys(evaluations["method"]))
    seeds = {m: sorted(wide.loc[m].index.unique("prior_seed")) for m in methods}
    table = {
        m: wide[metric]
        .reindex(pd.MultiIndex.from_product([[m], seeds[m], tasks]))
        .to_numpy()
        .reshape(-1, 1, len(tasks), 1)
        for m in methods
    }
    complete = np.all([np.isfinite(v).all(axis=(0, 1, 3)) for v in table.values()], axis=0)
    if not complete.any():
        raise DataError(f"evaluations: no test task has '{metric}' for every method and prior seed")
    kept = tuple(t for t, c in zip(tasks, complete, strict=True) if c)
    values = {m: v[:, :, complete] for m, v in table.items()}
    labels = {m: tuple(int(s) for s in seeds[m]) for m in methods}
    return Runs(values, labels, kept, np.array([1]), frozenset()), [t for t in tasks if t not in kept]


def means_per_repeat(evaluations: pd.DataFrame, regret: Runs) -> tuple[pd.DataFrame, list[str]]:
    """Return (one row per method and prior seed, tasks left out): metrics averaged over test tasks (Figure 10).

    `evaluations`: tidy table (space, task, method, prior_seed, metric, value); `regret`: runs of the same methods, of
    which the last iteration is used, BO seeds averaged. A task that lacks one metric for one method or prior seed is
    left out for all, so that every mean is over the same tasks. Raises DataError if no task remains, if a value
    occurs twice, or if runs and evaluations have different prior seeds.
    """
    final = regret.at(regret.last)
    tidy = _tidy(evaluations)
    wide = tidy.set_index(_KEYS)["value"].unstack("metric")
    rows = []
    for method, v in final.values.items():
        evaluated = sorted(tidy.loc[tidy["method"] == method, "prior_seed"].unique())
        if evaluated != list(final.prior_seeds[method]):
            raise DataError(
                f"method '{method}': prior seeds {[int(e) for e in evaluated]} were evaluated but "
                f"{list(final.prior_seeds[method])} used in BO; delete both files and run again"
            )
        index = pd.MultiIndex.from_product([[method], evaluated, regret.tasks], names=wide.index.names)
        rows.append(wide.reindex(index).assign(regret=v[..., 0].mean(axis=1).ravel()))
    table = pd.concat(rows)
    complete = table.notna().all(axis=1).groupby("task").all()
    left_out = [task for task in regret.tasks if not complete[task]]
    kept = table[~table.index.get_level_values("task").isin(left_out)]
    if kept.empty:
        raise DataError(f"no test task has all of {', '.join(map(str, table.columns))} for every method and prior seed")
    means = kept.groupby(["method", "prior_seed"], sort=False).mean()
    return means.rename_axis(columns=None).reset_index(), left_out


def _tidy(evaluations: pd.DataFrame) -> pd.DataFrame:
    tidy = evaluations.assign(task=task_labels(evaluations))
    repeated = tidy.duplicated(_KEYS)
    if repeated.any():
        first = tidy.loc[repeated, _KEYS].iloc[0].to_dict()
        raise DataError(f"evaluations: {first} occurs twice; delete the file and run again")
    return tidy
