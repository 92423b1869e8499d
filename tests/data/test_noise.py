"""Noise of rows where repetitions are stored: against the package's own objects, and unknown elsewhere."""

import importlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metabo.data import tables
from metabo.data.noise import row_noise
from metabo.errors import DataError
from metabo.tasks.benchmark import Benchmark


@pytest.fixture(scope="module")
def benchmark():
    return tables.load("tables", {"spaces": ["hpobench", "nasbench201"], "pool": 60})


def test_against_the_stored_repetitions(benchmark):
    """Error 1 - accuracy, y = -log(error + 1e-10): slope 1 / (error + 1e-10); nasbench201 has percent."""
    noise = row_noise(benchmark)
    assert list(noise) == list(benchmark.tasks)
    root = Path(importlib.import_module(tables.PACKAGE).__file__).parent
    for name, unit in (("phoneme", 1), ("cifar10", 100)):
        task = benchmark.tasks[name]
        table = tables._unpickle(root / "datasets" / task.space / f"{name}.pkl", tables.SHA256[f"{task.space}/{name}"])
        digits = tables.table_digits(benchmark.spaces[task.space])[task.rows]
        assert noise[name].shape == task.y.shape
        for i in (0, 17, 59):
            errors = [1 - a / unit for a in table["".join(str(d) for d in digits[i])]["val_acc"]]
            mean = sum(errors) / len(errors)
            spread = math.sqrt(sum((e - mean) ** 2 for e in errors) / (len(errors) - 1))
            expected = spread / math.sqrt(len(errors)) / (mean + 1e-10)
            assert noise[name][i] == pytest.approx(expected, rel=1e-9)


def test_the_slope_agrees_with_draws():
    """An output of a mean of five errors of known spread, drawn many times."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.2, 0.01, size=(20_000, 5))
    slope = drawn.std(axis=1, ddof=1) / math.sqrt(5) / drawn.mean(axis=1)
    assert math.sqrt((slope**2).mean()) == pytest.approx(np.std(-np.log(drawn.mean(axis=1))), rel=0.03)


def test_no_noise_is_made_up(benchmark):
    task = next(iter(benchmark.tasks.values()))
    assert row_noise(replace(benchmark, name="pd1_mini")) == {}
    other = replace(task, name="task 0")
    of_others = Benchmark("tables", {task.space: benchmark.spaces[task.space]}, {"task 0": other}, (), {})
    assert row_noise(of_others) == {}


def test_other_values_than_the_package_has_are_refused(benchmark):
    task = next(iter(benchmark.tasks.values()))
    changed = replace(task, metric=task.metric + 1e-3)
    with pytest.raises(DataError, match=f"task '{task.name}': its metric is not that of the package's table"):
        row_noise(replace(benchmark, tasks=benchmark.tasks | {task.name: changed}))
