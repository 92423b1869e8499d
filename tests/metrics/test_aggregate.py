"""Curves, profiles, ranks, best metric and speed-ups against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from metabo import metrics
from metabo.errors import ConfigError, DataError
from metabo.metrics import Runs


def make(values: dict[str, list], single_task=()) -> Runs:
    """Runs from nested lists (P, S, K, T)."""
    arrays = {m: np.array(v, dtype=float) for m, v in values.items()}
    k, t = next(iter(arrays.values())).shape[2:]
    seeds = {m: tuple(range(len(v))) for m, v in arrays.items()}
    return Runs(arrays, seeds, tuple(f"t{i}" for i in range(k)), np.arange(1, t + 1), frozenset(single_task))


# Two priors x two BO seeds, two tasks, two iterations.
#            prior 0: seed 0            seed 1                prior 1: seed 0             seed 1
SMALL = [[[[4, 2], [2, 0]], [[6, 2], [2, 0]]], [[[8, 4], [0, 0]], [[10, 2], [6, 2]]]]


def one(frame: pd.DataFrame, **keys) -> pd.Series:
    found = frame[np.logical_and.reduce([frame[k] == v for k, v in keys.items()])]
    assert len(found) == 1
    return found.iloc[0]


def test_regret_curve_by_hand():
    """Means over tasks per run: iteration 1: 3, 4, 4, 8; iteration 2: 1, 1, 2, 2."""
    curves = metrics.regret_curves(make({"a": SMALL}), "run")
    first, second = one(curves, iteration=1), one(curves, iteration=2)
    # Linear percentile of 4 values: position 0.2 * 3 = 0.6 -> 3.6, position 2.4 -> 4 + 0.4 * 4 = 5.6.
    assert first[["median", "low", "high", "mean", "repetitions"]].tolist() == pytest.approx([4, 3.6, 5.6, 4.75, 4])
    assert second[["median", "low", "high", "mean"]].tolist() == pytest.approx([1.5, 1, 2, 1.5])


def test_regret_curve_with_the_prior_as_unit():
    """Priors: iteration 1: 3.5, 6; iteration 2: 1, 2. The same data as a single-task method has four repetitions."""
    curves = metrics.regret_curves(make({"a": SMALL, "b": SMALL}, single_task={"b"}), "prior")
    a, b = one(curves, method="a", iteration=1), one(curves, method="b", iteration=1)
    assert a[["median", "low", "high", "repetitions"]].tolist() == pytest.approx([4.75, 4.0, 5.5, 2])
    assert b[["median", "low", "high", "repetitions"]].tolist() == pytest.approx([4, 3.6, 5.6, 4])


def test_percentiles_agree_with_numpy_on_random_regrets():
    values = np.sort(np.random.default_rng(0).random((5, 3, 4, 6)))[..., ::-1]
    curves = metrics.regret_curves(make({"a": values}), "run")
    low, median, high = np.percentile(values.mean(axis=2).reshape(15, 6), [20, 50, 80], axis=0, method="linear")
    for column, expected in (("low", low), ("median", median), ("high", high)):
        np.testing.assert_allclose(curves[column], expected, rtol=1e-12)


def test_slices_hold_each_repetition():
    slices = metrics.regret_slices(make({"a": SMALL}), [2, 1], "run")
    assert slices["iteration"].tolist() == [2] * 4 + [1] * 4
    assert slices["regret"].tolist() == pytest.approx([1, 1, 2, 2, 3, 4, 4, 8])
    assert slices["repetition"].tolist() == [0, 1, 2, 3] * 2


def test_regret_by_task_by_hand():
    """Iteration 1, runs: task 0: 4, 6, 8, 10; task 1: 2, 2, 0, 6."""
    table = metrics.regret_by_task(make({"a": SMALL}), 1, "run")
    assert table["task"].tolist() == ["t0", "t1"] and table["iteration"].tolist() == [1, 1]
    assert table["median"].tolist() == [7, 2] and table["mean"].tolist() == [7, 2.5]


def test_profile_is_strict_and_counts_task_run_pairs():
    """Regrets at iteration 2: (2, 0), (2, 0), (4, 0), (2, 2). Below 2: 3 of 8 pairs; exactly 2 is not solved."""
    profiles = metrics.performance_profiles(make({"a": SMALL}), [2.0, 2.5, 0.0], "run")
    assert one(profiles, iteration=2, threshold=2.0)["fraction"] == pytest.approx(3 / 8)
    assert one(profiles, iteration=2, threshold=2.5)["fraction"] == pytest.approx(7 / 8)
    assert one(profiles, iteration=2, threshold=0.0)["fraction"] == 0
    assert one(profiles, iteration=1, threshold=2.0)["fraction"] == pytest.approx(1 / 8)


def test_profile_averages_indicators_not_regrets():
    """Prior 0 solves 1 of 2 tasks in both runs; prior 1 solves 1/2 and 0/2: shares 0.5 and 0.25."""
    profile = one(metrics.performance_profiles(make({"a": SMALL}), [2.0], "prior"), iteration=2)
    assert profile[["fraction", "low", "high", "repetitions"]].tolist() == pytest.approx([0.375, 0.3, 0.45, 2])


def test_ranks_with_ties_by_hand():
    """Repetition 0: regrets 1, 1, 2 -> 1.5, 1.5, 3. Repetition 1: 2, 1, 1 -> 3, 1.5, 1.5."""
    runs = make({"a": [[[[1]], [[2]]]], "b": [[[[1]], [[1]]]], "c": [[[[2]], [[1]]]]})
    ranks = metrics.ranks(runs, "run").set_index("method")
    assert ranks["mean"].tolist() == pytest.approx([2.25, 1.5, 2.25])
    assert ranks["std"].tolist() == pytest.approx([0.75, 0, 0.75])
    by_prior = metrics.ranks(runs, "prior").set_index("method")
    assert by_prior["mean"].tolist() == pytest.approx([2.5, 1, 2.5]) and by_prior["std"].tolist() == [0, 0, 0]


def test_ranks_use_the_mean_over_tasks():
    """Per task a wins once and loses once; its mean regret (5) is larger than b's (3)."""
    ranks = metrics.ranks(make({"a": [[[[1], [9]]]], "b": [[[[2], [4]]]]}), "run").set_index("method")
    assert ranks.loc["a", "mean"] == 2 and ranks.loc["b", "mean"] == 1


def test_best_metric_is_the_metric_at_the_best_output():
    """Run 0: best y is 3, twice; the first one's metric counts. Run 1: y = 5 with metric 0.4."""
    y = make({"a": [[[[1, 3, 3]], [[5, 2, 4]]]]})
    metric = make({"a": [[[[0.9, 0.2, 0.7]], [[0.4, 0.1, 0.3]]]]})
    best = metrics.best_metric(y, metric, "run").iloc[0]
    assert best[["task", "method", "repetitions"]].tolist() == ["t0", "a", 2]
    assert best[["mean", "std"]].tolist() == pytest.approx([0.3, 0.1])


def test_best_metric_copes_with_copies_dropped_from_one_of_the_two():
    y = make({"a": [[[[1, 3]]]]}, single_task={"a"})
    metric = make({"a": [[[[0.5, 0.2]]], [[[0.5, 0.4]]]]}, single_task={"a"})
    assert metrics.best_metric(y, metric)["mean"].tolist() == pytest.approx([0.3])


def test_speedup_by_hand():
    """Alternative: final regrets 2 and 4 (rho 3), reached at iterations 4 and 2 (t_a 3). Method: below 3 at 1 and 2."""
    runs = make({"h": [[[[2, 2, 1, 1]], [[5, 2, 2, 2]]]], "r": [[[[9, 9, 9, 2]], [[9, 4, 4, 4]]]]})
    row = metrics.speedups(runs, "h", ["r"]).iloc[0]
    assert row[["target", "t_alternative", "t_method", "speedup"]].tolist() == pytest.approx([3, 3, 1.5, 2])


def test_speedup_picks_the_best_alternative_per_task():
    """Task 0: r ends lower; task 1: both end at 1, s gets there first."""
    runs = make({"h": [[[[0.5, 0.5], [0.5, 0.5]]]], "r": [[[[2, 1], [3, 1]]]], "s": [[[[2, 2], [1, 1]]]]})
    rows = metrics.speedups(runs, "h", ["r", "s"])
    assert rows["alternative"].tolist() == ["r", "s"]
    assert rows["speedup"].tolist() == [2, 1]


def test_speedup_is_zero_when_the_method_never_passes():
    """One of three runs fails: the median is finite. Two of three fail: t_H = inf, speed-up 0, counted in the mean."""
    pass_, fail = [5, 1], [5, 5]
    alternative = [[[[4, 2], [4, 2]], [[4, 2], [4, 2]], [[4, 2], [4, 2]]]]
    runs = make({"h": [[[pass_, pass_], [pass_, fail], [fail, fail]]], "r": alternative})
    rows = metrics.speedups(runs, "h", ["r"])
    assert rows["t_method"].tolist() == [2, np.inf] and rows["speedup"].tolist() == [1, 0]
    summary = metrics.speedup_summary(rows, [1, 3])
    assert summary["mean"] == 0.5 and summary["median"] == 0.5 and summary["share never passed"] == 0.5
    assert summary["share >= 1x"] == 0.5 and summary["share >= 3x"] == 0 and summary["tasks"] == 2


def test_speedup_against_zero_regret_needs_zero_regret():
    """Nothing is below 0, so reaching 0 counts; equal speed gives 1, never reaching it 0."""
    runs = make({"h": [[[[3, 0, 0], [3, 3, 3]]]], "r": [[[[3, 3, 0], [3, 3, 0]]]]})
    rows = metrics.speedups(runs, "h", ["r"])
    assert rows["target"].tolist() == [0, 0] and rows["speedup"].tolist() == [1.5, 0]
    with pytest.raises(ConfigError, match="unknown method in these runs 'x'"):
        metrics.speedups(runs, "h", ["x"])


def test_a_task_is_solved_within_what_its_own_pool_can_tell():
    runs = make({"a": [[[[4.0, 1.0], [4.0, 1.0 + 1e-12]]]], "b": [[[[0.0, 0.0], [1.1, 0.0]]]]})
    share = metrics.profile_of_resolved(runs, {"t0": 0.5, "t1": 1.0}).set_index(["method", "iteration"])["fraction"]
    assert share.to_dict() == {("a", 1): 0.0, ("a", 2): 0.5, ("b", 1): 0.5, ("b", 2): 1.0}
    with pytest.raises(DataError, match="no resolution of task 't1' is given"):
        metrics.profile_of_resolved(runs, {"t0": 0.5})
