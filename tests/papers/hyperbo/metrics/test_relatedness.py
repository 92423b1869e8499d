"""Correlations between tasks against SciPy's pairwise routine and by hand; groups, repeats, gaps, constants."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from metabo.errors import DataError
from metabo.papers.hyperbo.metrics import relatedness
from metabo.papers.hyperbo.metrics.relatedness import shared_outputs, spearman
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task


def task(name: str, x: np.ndarray, y: np.ndarray, group: str = "", space: str = "s") -> Task:
    none = np.zeros((0, x.shape[1]))
    return Task(name, space, group or name, x, np.asarray(y, float), np.asarray(y, float), np.arange(len(y)), none)


def benchmark(tasks: list[Task], dim: int = 2) -> Benchmark:
    spaces = {t.space: None for t in tasks}
    box = tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(dim))
    return Benchmark("b", {s: SearchSpace(s, box) for s in spaces}, {t.name: t for t in tasks}, (), {})


def test_against_scipy_on_gaps_and_ties():
    rng = np.random.default_rng(0)
    values = np.round(rng.random((60, 5)) + rng.random((60, 1)), 1)  # one decimal: many ties
    values[rng.random(values.shape) < 0.3] = np.nan
    r, shared = spearman(values)
    for i in range(5):
        for j in range(5):
            both = np.isfinite(values[:, i]) & np.isfinite(values[:, j])
            assert shared[i, j] == both.sum()
            assert r[i, j] == pytest.approx(spearmanr(values[both, i], values[both, j]).statistic, abs=1e-12)


def test_few_shared_rows_and_constant_columns_have_none():
    values = np.tile(np.arange(12.0)[:, None], 4)
    values[:, 1] *= -1
    values[:3, 2] = np.nan  # nine rows left
    values[:, 3] = 7.0
    r, shared = spearman(values, least=10)
    expected = np.full((4, 4), np.nan)
    expected[:2, :2] = [[1, -1], [-1, 1]]
    np.testing.assert_array_equal(r, expected)
    assert shared[2].tolist() == [9, 9, 9, 9]
    assert spearman(values, least=9)[0][0, 2] == 1
    assert np.isnan(spearman(np.full((5, 2), np.nan))[0]).all()


def test_shared_inputs_are_the_identical_points_and_repeats_are_averaged():
    x = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    a = task("a", x[[0, 1, 1]], [1, 2, 4])
    b = task("b", x[[2, 1]], [5, 6])
    c = task("c", np.array([[0.3, 0.4 + 1e-15], [-0.0, 0.0]]), [7, 8])
    d = task("d", np.array([[0.0, -0.0]]), [9])
    nan = np.nan
    assert shared_outputs([a, b]) == pytest.approx(np.array([[3.0, 6.0]]))
    found = shared_outputs([a, b, c, d])
    expected = [[nan, nan, 8, 9], [3, 6, nan, nan]]  # 0.4 + 1e-15 is another point, -0.0 is not
    np.testing.assert_array_equal(found[np.argsort(np.nansum(found, axis=1))[::-1]], expected)


def test_pairs_are_within_spaces_with_groups_together():
    rng = np.random.default_rng(1)
    x = rng.random((20, 2))
    y = rng.random(20)
    noise = rng.random((4, 20))
    tasks = [
        task("a1", x, y, "a"), task("b1", x, noise[0], "b"), task("a2", x[::-1], np.exp(3 * y[::-1]), "a"),
        task("other", x, noise[1], "a", "t"), task("another", x, -noise[1], "c", "t"), task("alone", x, y, "z", "u"),
    ]  # fmt: skip
    pairs = relatedness.task_correlations(benchmark(tasks))
    keys = pairs[["space", "task", "other", "group", "other_group"]].to_numpy().tolist()
    assert keys == [
        ["s", "a1", "a2", "a", "a"], ["s", "a1", "b1", "a", "b"], ["s", "a2", "b1", "a", "b"],
        ["t", "other", "another", "a", "c"],
    ]  # fmt: skip
    r = pairs["correlation"]
    assert r[0] == 1, "the row order and a monotone warp do not matter"
    assert r[1] == pytest.approx(spearmanr(y, noise[0]).statistic) and r[2] == r[1] and r[3] == -1
    assert set(pairs["shared"]) == {20}
    with pytest.raises(DataError, match="no space has two tasks"):
        relatedness.task_correlations(benchmark(tasks[-1:]))


def test_tasks_with_nothing_in_common():
    rng = np.random.default_rng(2)
    pairs = relatedness.task_correlations(benchmark([task(n, rng.random((30, 2)), rng.random(30)) for n in "ab"]))
    assert pairs["shared"].tolist() == [0] and pairs["correlation"].isna().all()
    (row,) = relatedness.correlation_summary(pairs).query("kind == 'all'").to_dict("records")
    assert (row["pairs"], row["without"]) == (1, 1) and np.isnan(row["median"]) and np.isnan(row["positive"])


def test_summary_by_hand():
    pairs = pd.DataFrame(
        {"space": "s", "group": ["a", "a", "a", "b", "b"], "other_group": ["a", "b", "b", "b", "c"],
         "correlation": [0.9, 0.1, -0.1, np.nan, 0.3]}
    )  # fmt: skip
    rows = relatedness.correlation_summary(pairs).set_index("kind")
    assert rows["pairs"].to_dict() == {"all": 5, "within a group": 2, "between groups": 3}
    assert rows["without"].to_dict() == {"all": 1, "within a group": 1, "between groups": 0}
    assert rows.loc["between groups", ["low", "median", "high"]].tolist() == pytest.approx([-0.08, 0.1, 0.28])
    assert rows.loc["all", "median"] == pytest.approx(0.2) and rows.loc["all", "positive"] == 0.75
    assert relatedness.correlation_summary(pairs.iloc[1:3])["kind"].tolist() == ["all"], (
        "there is nothing to compare with"
    )
