"""The noise of a row, where a source stores repetitions: the standard deviation of the output that a task has for it.

pd1_mini 2 has it in its tasks (`metabo.data.pd1_repeats`); that of `tables` is read from the package here. Where
nothing is stored, the noise is unknown, and no number is made up.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from metabo.data import tables
from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.task import Task


def row_noise(benchmark: Benchmark) -> Mapping[str, np.ndarray]:
    """Return (n,) standard deviations of the outputs of each task whose noise is known, in the order of its rows; NaN
    in rows of which it is not.

    Raises DataError if the source holds other values than the task.
    """
    if benchmark.name != "tables":
        return {task.name: task.noise for task in benchmark.tasks.values() if task.noise is not None}
    known = [task for task in benchmark.tasks.values() if f"{task.space}/{task.name}" in tables.SHA256]
    return {task.name: _of_table(task) for task in known}


def _of_table(task: Task) -> np.ndarray:
    """Return the noise of y = -log(mean + floor) by its slope, 1 / (mean + floor) = exp(y), at the mean.

    A row's mean is over two to five trainings; its deviation is the standard error, from these trainings' own spread.
    """
    root = Path(str(importlib.import_module(tables.PACKAGE).__file__)).parent
    unit = tables.SPACES[task.space]["unit"]
    stored = tables.read_repetitions(task.space, task.name, task.rows, root)
    mean = np.array([np.mean(values) for values in stored])
    if not np.allclose(mean if unit is None else 1.0 - mean / unit, task.metric, rtol=0, atol=1e-12):
        raise DataError(f"task '{task.name}': its metric is not that of the package's table; make its file again")
    error = np.array([np.std(values, ddof=1) / np.sqrt(len(values)) for values in stored])
    return error / (unit or 1.0) * np.exp(task.y)
