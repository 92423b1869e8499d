"""The contents of a benchmark: its tasks (hyperbo Table 3), its search space (Table 4), and the counts of its
loader."""

import numpy as np
import pandas as pd

from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Inputs
from metabo.tasks.spaces import Parameter, SearchSpace


def task_table(benchmark: Benchmark) -> pd.DataFrame:
    """Return one row per task: task, group, role, points, finite, diverged_share.

    `points` counts the evaluations in the benchmark, with or without a value; `finite` counts those with one, which the
    methods use; `diverged_share` is the rest divided by `points`. The role is "test" if a fold of the split `held_out`
    tests the task, else "training only". "online" is added for the test tasks of the split `others`, unless these are
    the same as those of `held_out`.
    """
    tested = {name: {t for fold in folds for t in fold.test} for name, folds in benchmark.splits.items()}
    online = others if (others := tested.get("others", set())) != tested.get("held_out") else set()
    rows = []
    for task in benchmark.tasks.values():
        finite, lost = len(task.y), len(task.diverged)
        role = "test" if task.name in tested.get("held_out", ()) else "training only"
        role += ", online" if task.name in online else ""
        row = {"task": task.name, "group": task.group, "role": role, "points": finite + lost, "finite": finite}
        rows.append({**row, "diverged_share": lost / (finite + lost)})
    return pd.DataFrame(rows)


def space_table(benchmark: Benchmark) -> pd.DataFrame:
    """Return one row per numeric parameter: space, parameter, scale, low, high, found_low, found_high, points, outside.

    `found_low`, `found_high`: smallest and largest value of all evaluations, including those without an output, in the
    parameter's own unit; `outside`: how many of them lie outside [low, high] (claim C08). A loader that maps inputs to
    the unit cube has clipped points that lie outside by rounding, and says so in its flags. Raises DataError for a
    space with discrete parameters, which has no ranges.
    """
    rows = []
    for space in benchmark.spaces.values():
        tasks = [task for task in benchmark.tasks.values() if task.space == space.name]
        raw = _raw(space, np.concatenate([a for t in tasks for a in (t.x, t.diverged)]), benchmark.facts.inputs)
        for parameter, values in zip(space.parameters, raw.T, strict=True):
            low, high = parameter.bounds
            slack = 1e-9 * (high - low)
            outside = int(((values < low - slack) | (values > high + slack)).sum())
            row = {"space": space.name, "parameter": parameter.name, "scale": parameter.kind}
            row |= {"low": low, "high": high}
            row |= {"found_low": values.min(), "found_high": values.max(), "points": len(values), "outside": outside}
            rows.append(row)
    return pd.DataFrame(rows)


def _raw(space: SearchSpace, x: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Return (n, parameters) values in the parameters' own units, from unit-cube or warped (log, unscaled) inputs."""
    discrete = [p.name for p in space.parameters if p.kind not in ("linear", "log")]
    if discrete:
        raise DataError(f"space '{space.name}': {discrete} have levels, not a range; choose a benchmark without")
    return np.stack(
        [_unwarp(p, column, inputs == "warped") for p, column in zip(space.parameters, x.T, strict=True)], 1
    )


def _unwarp(parameter: Parameter, column: np.ndarray, warped: bool) -> np.ndarray:
    if not warped:
        return parameter.decode(column[:, None])
    return np.exp(column) if parameter.kind == "log" else column


def loader_counts(benchmark: Benchmark) -> pd.DataFrame:
    """Return the counts of the loader next to the stated ones: count, stated (NaN if nothing is stated), found,
    differs.

    Raises DataError for a benchmark without counts.
    """
    columns = {"name": "count", "expected": "stated", "found": "found", "differs": "differs"}
    table = pd.DataFrame(list(benchmark.counts), columns=list(columns)).rename(columns=columns)
    return table.astype({"stated": np.float64, "found": np.float64, "differs": bool})
