"""Initial points of BO on a table, for benchmarks that publish none, and the share of tasks that is tested."""

import jax
import numpy as np

from metabo.compute.keys import stream
from metabo.errors import DataError
from metabo.tasks.task import Task

SEEDS, POINTS = 5, 5
"""Sets of initial points of each test task (one per BO seed) and points in each: those of HPO-B (mphd §4, E.3)."""


def initial_points(task: Task, seed: int) -> np.ndarray:
    """Draw (SEEDS, POINTS) row numbers without replacement, keyed by space, task and number of the set.

    Every method starts from the same ones (mphd E.3; the authors' code draws others for each method). Raises DataError
    if the task has fewer points.
    """
    rows = len(task.y)
    if rows < POINTS:
        raise DataError(
            f"task '{task.name}' of space '{task.space}' has {rows} points; BO starts from {POINTS} different ones: "
            "load more points of it, or leave its space out"
        )
    keys = [stream(seed, "initial", task.space, task.name, number) for number in range(SEEDS)]
    return np.stack([np.asarray(jax.random.permutation(key, rows)[:POINTS], dtype=np.int64) for key in keys])


def fifth(count: int) -> int:
    """Return how many of `count` tasks of a space are test tasks: a fifth, rounded down, at least one.

    mphd E.1 and E.2: 4 of 20 (Super-dataset L), 4 of 23 (PD1).
    """
    return max(1, count // 5)
