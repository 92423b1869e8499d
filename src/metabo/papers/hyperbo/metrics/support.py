"""Where the matched points that H-EKL trains on lie, and how far beyond them a method's first queries are.

EKL needs inputs that tasks share and at which they have a value. Where trials diverge in some task, the points that are
left end early: a GP trained on them extrapolates beyond.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.task import restrict

SPLIT = "held_out"


def support(benchmark: Benchmark) -> pd.DataFrame:
    """Return fold, space, input, points, low, high, share: for each input the range of the matched points of a fold's
    training tasks (`restrict`), and its share of the range of all points of the space. Inputs are as methods see them.

    Raises DataError for a benchmark without matched points.
    """
    rows = list(_ranges(benchmark))
    if not rows:
        raise DataError(f"benchmark '{benchmark.name}' has no points that training tasks share; choose another one")
    return pd.DataFrame(rows)


def _ranges(benchmark: Benchmark) -> Iterator[dict[str, object]]:
    for fold in benchmark.split(SPLIT):
        blocks = restrict(benchmark.matched, fold.train)
        if not blocks:
            continue
        x = np.concatenate([block.x for block in blocks])
        every = np.concatenate([benchmark.tasks[name].x for name in (*fold.train, *fold.test)])
        for i, parameter in enumerate(benchmark.spaces[fold.space].parameters):
            low, high, width = x[:, i].min(), x[:, i].max(), np.ptp(every[:, i])
            share = (high - low) / width if width > 0 else 1.0
            named = {"fold": fold.name, "space": fold.space, "input": parameter.name}
            yield {**named, "points": len(x), "low": low, "high": high, "share": share}


def first_queries(benchmark: Benchmark, runs: pd.DataFrame, ranges: pd.DataFrame) -> pd.DataFrame:
    """Return method, fold, task, prior_seed, seed, input, value, beyond: each run's first query, and whether it lies
    beyond the support of its fold in that input. `runs`: trajectories; `ranges` from `support`."""
    first = runs[runs["iteration"] == 1]
    limits = {
        (fold, name): (low, high) for fold, name, low, high in ranges[["fold", "input", "low", "high"]].to_numpy()
    }
    rows = []
    for row in first.to_dict("records"):
        task = benchmark.tasks[row["task"]]
        x = task.x[int(row["candidate"])]
        own = {key: row[key] for key in ("method", "fold", "task", "prior_seed", "seed")}
        for parameter, value in zip(benchmark.spaces[task.space].parameters, x, strict=True):
            low, high = limits.get((row["fold"], parameter.name), (np.nan, np.nan))
            rows.append({**own, "input": parameter.name, "value": value, "beyond": bool(value < low or value > high)})
    return pd.DataFrame(rows)


def beyond(queries: pd.DataFrame) -> pd.DataFrame:
    """Return method, input, runs, share: how many first queries lie beyond the support in an input; input "any": in at
    least one. `queries` from `first_queries`."""
    run = ["method", "fold", "task", "prior_seed", "seed"]
    outside = queries.pivot(index=run, columns="input", values="beyond")
    outside = outside.assign(any=outside.any(axis=1)).melt(ignore_index=False, var_name="input", value_name="beyond")
    shares = outside.groupby(["method", "input"], sort=False)["beyond"].agg(runs="size", share="mean")
    return shares.reset_index()
