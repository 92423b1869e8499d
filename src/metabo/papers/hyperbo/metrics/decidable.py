"""What the tables of a benchmark can decide (beyond the paper): how close the best rows of each test task are, how far
random search gets, how much of a row is noise, and what another task or the task's own other rows say of it.

Regrets, gaps and noise are in the unit of the outputs. Columns that end in `share` are shares of the task's `scale`,
its best output minus its median, or, for numbers of rows, of all rows.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.metrics import pools
from metabo.metrics.ceiling import ceiling
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.task import Task
from metabo.tasks.ties import tied, tying

SPLIT = "held_out"
NEAR = 0.01
"""Rows are near the best within this share of the task's scale."""
QUERIES = (10, 100)
LOW = 5
"""The low end of correlations is this percentile."""
ALL = "all"
"""The place of `space` in the summary of the whole benchmark."""
COUNTED = ("near", "best", "tying", "better")
MEASURED = ("gap", "noise", *(f"random_{q}" for q in QUERIES), "ceiling")


def task_facts(benchmark: Benchmark, noise: Mapping[str, np.ndarray], pairs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per test task of the split `held_out`, tasks of a space next to each other.

    `noise`: (n,) standard deviations of the outputs of the tasks where they are known (NaN in rows of which they are
    not); `pairs`: correlations of every
    two tasks (`relatedness.task_correlations`). Columns: space, task, group; `rows` of the pool; `scale`; the number of
    rows that are `near` the best, equal the `best`, tie with it (`tying`), or are `better` than the median of Random at
    100; whether the task is `tied`; `gap` to the second-best distinct output; `noise` of a row among the best tenth;
    median regret of Random after 10 and 100 distinct rows; `ceiling`, the regret of the row that a model of the other
    rows ranks first, and its `r2`; median and 5th percentile of the rank `correlation` with other tasks. What is not
    known or not defined is NaN.
    """
    order = list(benchmark.spaces)
    tested = {name for fold in benchmark.split(SPLIT) for name in fold.test}
    tests = sorted((t for t in benchmark.tasks.values() if t.name in tested), key=lambda task: order.index(task.space))
    rows = []
    for task in tests:
        own = (pairs["space"] == task.space) & ((pairs["task"] == task.name) | (pairs["other"] == task.name))
        rows.append({**_facts(task, noise.get(task.name)), **_correlation(pairs, own)})
    return pd.DataFrame(rows)


def _facts(task: Task, noise: np.ndarray | None) -> dict[str, object]:
    y, size = task.y, len(task.y)
    if noise is not None and noise.shape != y.shape:
        raise DataError(f"task '{task.name}': noise {noise.shape} of outputs {y.shape}; give one number for each row")
    best = np.argsort(-y, kind="stable")[: max(1, round(pools.TOP * size))]
    model = ceiling(task.x, y)
    random = {f"random_{q}": pools.random_regret(y, q) for q in QUERIES}
    better = int(np.count_nonzero(y.max() - y < random[f"random_{QUERIES[-1]}"]))
    counts = {"near": pools.near_best(y, NEAR), "best": pools.at_best(y), "tying": tying(y), "better": better}
    known = {
        "gap": pools.gap(y),
        "noise": np.nan if noise is None else _median(noise[best]),
        **random,
        "ceiling": model.regret,
    }
    scale = pools.scale(y)
    shares = {f"{name}_share": counts[name] / size for name in COUNTED}
    shares |= {f"{name}_share": known[name] / scale if scale > 0 else np.nan for name in MEASURED}
    named = {"space": task.space, "task": task.name, "group": task.group, "tied": tied(y)}
    return {**named, "rows": size, **counts, "scale": scale, **known, **shares, "r2": model.r2}


def _correlation(pairs: pd.DataFrame, chosen: pd.Series) -> dict[str, float]:
    """Return median and low end of the correlations of the chosen pairs, NaN if none has one."""
    r = pairs.loc[chosen, "correlation"].to_numpy(dtype=np.float64)
    low, median = np.percentile(r[np.isfinite(r)], (LOW, 50)) if np.isfinite(r).any() else (np.nan, np.nan)
    return {"correlation": float(median), "correlation_low": float(low)}


def summary(tasks: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per search space, and one for `ALL` of the benchmark: medians over the test tasks that are not
    tied.

    `tasks` from `task_facts`. Columns: space; number of `tasks`, and of those that are `tied`; medians of the columns
    of `tasks` over the other tasks where they are known, NaN if they are nowhere; `gap_mean`; `correlation` and its low
    end over all `pairs` of the space, also those of training tasks.
    """
    return pd.DataFrame(list(_summaries(tasks, pairs)))


def _summaries(tasks: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[dict[str, object]]:
    numbers = [c for c in tasks if c not in ("space", "task", "group", "tied", "correlation", "correlation_low")]
    for space in (*dict.fromkeys(tasks["space"]), ALL):
        own = tasks.loc[(tasks["space"] == space) | (space == ALL)]
        apart = own[~own["tied"]]  # a tie says nothing of what the other tasks can decide
        counts = {"tasks": len(own), "tied": int(own["tied"].sum()), "gap_mean": float(apart["gap"].mean())}
        medians = {name: _median(apart[name].to_numpy(dtype=np.float64)) for name in numbers}
        yield {"space": space, **counts, **medians, **_correlation(pairs, (pairs["space"] == space) | (space == ALL))}


def _median(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else np.nan


def tied_tasks(benchmark: Benchmark) -> pd.DataFrame:
    """Return the tasks that the rule of `metabo.tasks.ties` excludes from tests: space, task, role, rows, tying, range.

    Role: "tested" where the benchmark tests them all the same, else "training only". `range` is that of the outputs.
    """
    tested = {name for fold in benchmark.split(SPLIT) for name in fold.test}
    columns = ("space", "task", "role", "rows", "tying", "range")
    rows = [
        (t.space, t.name, "tested" if t.name in tested else "training only", len(t.y), tying(t.y), float(np.ptp(t.y)))
        for t in benchmark.tasks.values()
        if tied(t.y)
    ]
    return pd.DataFrame(rows, columns=pd.Index(columns))


HEADINGS = {
    "near": f"within {100 * NEAR:g} %",
    "best": "at the best",
    "tying": "tying",
    "better": "above Random",
    "gap": "gap",
    "noise": "noise",
    **{f"random_{q}": f"Random at {q}" for q in QUERIES},
    "ceiling": "ceiling",
}
"""Columns that `readable` shows with their share, and what it calls them."""


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `task_facts` or `summary` as texts, shares in brackets; what is not known says so."""
    texts = pd.DataFrame({"rows": table["rows"].map("{:,.0f}".format).replace("nan", "–")})
    for name, heading in HEADINGS.items():
        absent = "not known" if name == "noise" else "–"
        pairs = zip(table[name], table[f"{name}_share"], strict=True)
        texts[heading] = [absent if np.isnan(value) else _number(value) + _bracketed(share) for value, share in pairs]
    for name, heading in (("r2", "R²"), ("correlation", "correlation"), ("correlation_low", f"its {LOW} %")):
        texts[heading] = table[name].map("{:.2f}".format).replace("nan", "–")
    return texts


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _bracketed(share: float) -> str:
    return "" if np.isnan(share) else f" ({share:.1%})"
