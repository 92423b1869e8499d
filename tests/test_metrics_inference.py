"""Correlation, bootstrap and variance split against SciPy, closed forms and simulations with known answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from metabo import metrics
from metabo.errors import ConfigError, DataError
from metabo.metrics import Runs


def make(values: dict[str, np.ndarray], single_task=()) -> Runs:
    arrays = {m: np.asarray(v, dtype=float) for m, v in values.items()}
    k, t = next(iter(arrays.values())).shape[2:]
    seeds = {m: tuple(range(len(v))) for m, v in arrays.items()}
    return Runs(arrays, seeds, tuple(f"t{i}" for i in range(k)), np.arange(1, t + 1), frozenset(single_task))


def test_pearson_and_its_interval_agree_with_scipy():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20) * 1e3 + 1e6
    y = 0.7 * x + rng.normal(size=20) * 800
    ours, theirs = metrics.pearson(x, y), stats.pearsonr(x, y)
    interval = theirs.confidence_interval(0.95)
    assert ours.r == pytest.approx(theirs.statistic, rel=1e-9)
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert ours.n == 20


def test_pearson_where_it_is_undefined():
    constant = metrics.pearson(np.ones(5), np.arange(5.0))
    assert np.isnan(constant.r) and constant.n == 5
    assert np.isnan(metrics.pearson(np.ones(1), np.ones(1)).r)
    three = metrics.pearson(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]))
    assert three.r == pytest.approx(0.5) and np.isnan(three.low)
    assert metrics.pearson(np.arange(6.0), -2 * np.arange(6.0))[:3] == pytest.approx((-1, -1, -1))


def test_bootstrap_with_fixed_tasks_equals_full_enumeration():
    """Three repetitions: the 27 equally likely resamples give the exact bootstrap distribution."""
    a = np.array([[1.0, 2.0], [4.0, 6.0], [0.0, 9.0]])
    b = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    d = (a - b).mean(axis=1)
    exact = np.array([d[list(i)].mean() for i in itertools.product(range(3), repeat=3)])
    found = metrics.paired_difference(a, b, np.random.default_rng(0), tasks="fixed")
    assert found.estimate == pytest.approx((a - b).mean())
    # 2.5 % of 27 resamples is below 1/27, the share of the smallest value, so the bounds are the extremes.
    assert (found.low, found.high) == pytest.approx((exact.min(), exact.max()))


def test_bootstrap_standard_error_of_each_treatment_of_tasks():
    """Width of the interval against the standard error that each scheme implies, computed directly.

    d_qk = u_q + v_k + w_qk. Fixed: var(row means)/Q. Nested: that plus the mean row variance / (Q K).
    Crossed: row part + column part + remainder, each with its own number of draws.
    """
    rng = np.random.default_rng(3)
    q, k = 30, 20
    d = rng.normal(size=(q, 1)) + 2 * rng.normal(size=(1, k)) + 0.5 * rng.normal(size=(q, k))
    rows, columns = d.mean(axis=1), d.mean(axis=0)
    rest = d - rows[:, None] - columns + d.mean()
    variance = {
        "fixed": rows.var() / q,
        "nested": rows.var() / q + d.var(axis=1).mean() / (q * k),
        "crossed": rows.var() / q + columns.var() / k + rest.var() / (q * k),
    }
    for tasks, v in variance.items():
        found = metrics.paired_difference(d, np.zeros_like(d), np.random.default_rng(4), tasks=tasks)
        assert (found.high - found.low) / (2 * 1.959964) == pytest.approx(np.sqrt(v), rel=0.05), tasks


def test_bootstrap_covers_the_truth():
    """200 data sets with true difference 0.3, 25 repetitions: the 95 % interval covers it in 86 to 99 % of them."""
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        noise = rng.normal(size=(25, 6)) + rng.normal(size=(25, 1))
        base = rng.normal(size=(25, 6))
        found = metrics.paired_difference(base + 0.3 + noise, base, rng, tasks="fixed", resamples=1000)
        hits += found.low <= 0.3 <= found.high
    assert 172 <= hits <= 198


def test_bootstrap_is_reproducible_and_the_pairing_matters():
    rng = np.random.default_rng(6)
    shared = 10 * rng.normal(size=(8, 5))
    a, b = shared + 1 + 0.1 * rng.normal(size=(8, 5)), shared
    first = metrics.paired_difference(a, b, np.random.default_rng([1, 2]))
    assert first == metrics.paired_difference(a, b, np.random.default_rng([1, 2]))
    assert first != metrics.paired_difference(a, b, np.random.default_rng([1, 3]))
    assert first.high - first.low < 0.2
    unpaired = metrics.paired_difference(a, b[::-1], np.random.default_rng([1, 2]))
    assert unpaired.high - unpaired.low > 1


def test_bootstrap_edges():
    one = np.ones((1, 4))
    alone = metrics.paired_difference(one, 0 * one, np.random.default_rng(0), tasks="fixed")
    assert alone.estimate == 1 and np.isnan(alone.low)
    with pytest.raises(DataError, match="two equal"):
        metrics.paired_difference(one, one[:, :2], np.random.default_rng(0))
    with pytest.raises(ConfigError, match="unknown treatment of tasks 'fix'"):
        metrics.paired_difference(one, one, np.random.default_rng(0), tasks="fix")


def test_differences_to_a_reference():
    a = np.array([[[[4.0, 1.0]]], [[[6.0, 3.0]]]])
    b = np.array([[[[2.0, 2.0]]], [[[2.0, 2.0]]]])
    table = metrics.differences(make({"a": a, "b": b}), "b", [1, 2], seed=0)
    assert table["method"].tolist() == ["a", "a"] and table["difference"].tolist() == [3, 0]
    assert table.loc[0, ["low", "high"]].tolist() == [2, 4] and table.loc[1, ["low", "high"]].tolist() == [-1, 1]


def test_variance_split_by_hand():
    """Two tasks, two priors, two seeds.

    Task 0: priors {1, 3}, {5, 7}; task 1: {11, 11}, {13, 17}. Prior means 2, 6, 11, 15; task means 4, 13.
    SS_seed = 2 + 2 + 0 + 8 = 12, df 4, MS 3. SS_prior = 2 (4 + 4 + 4 + 4) = 32, df 2, MS 16.
    SS_task = 4 (4.5^2 + 4.5^2) = 162, df 1. Components: 3, (16 - 3)/2 = 6.5, (162 - 16)/4 = 36.5.
    """
    r = np.empty((2, 2, 2, 1))
    r[..., 0, 0] = [[1, 3], [5, 7]]
    r[..., 1, 0] = [[11, 11], [13, 17]]
    row = metrics.variance_split(make({"a": r})).iloc[0]
    assert row["mean"] == pytest.approx(8.5)
    assert row[["sd_seeds", "sd_priors", "sd_tasks"]].tolist() == pytest.approx(np.sqrt([3, 6.5, 36.5]).tolist())
    # Means over tasks and seeds of the two priors: 6.5 and 10.5.
    assert row["sd_repetition"] == pytest.approx(np.std([6.5, 10.5], ddof=1))
    assert row[["priors", "seeds", "tasks"]].tolist() == [2, 2, 2]


def test_variance_split_finds_known_components():
    rng = np.random.default_rng(7)
    p, s, k = 12, 8, 400
    truth = {"sd_tasks": 2.0, "sd_priors": 0.7, "sd_seeds": 0.3}
    r = 10 + 2.0 * rng.normal(size=k) + 0.7 * rng.normal(size=(p, 1, k)) + 0.3 * rng.normal(size=(p, s, k))
    row = metrics.variance_split(make({"a": r[..., None]})).iloc[0]
    for name, value in truth.items():
        assert row[name] == pytest.approx(value, rel=0.1), name


def test_no_spread_is_zero_and_what_cannot_be_told_apart_is_nan():
    rng = np.random.default_rng(8)
    tasks = rng.random(7)
    same_seeds = np.broadcast_to(rng.random((5, 1, 7)), (5, 3, 7))[..., None]
    same_all = np.broadcast_to(tasks, (5, 3, 7))[..., None]
    runs = make({"seeds": same_seeds, "all": same_all, "one": same_seeds[:1, :1], "single": same_seeds}, {"single"})
    split = metrics.variance_split(runs).set_index("method")
    assert split.loc["seeds", "sd_seeds"] == 0 and split.loc["seeds", "sd_priors"] > 0.1
    assert split.loc["all", ["sd_seeds", "sd_priors", "sd_repetition"]].tolist() == [0, 0, 0]
    assert split.loc["all", "sd_tasks"] == pytest.approx(tasks.std(ddof=1))
    assert split.loc["one", ["sd_seeds", "sd_priors", "sd_repetition"]].isna().all()
    assert split.loc["single", "sd_priors"] == 0 and split.loc["single", "sd_seeds"] > 0.1
    assert split.loc["single", ["priors", "seeds"]].tolist() == [0, 15]


def losses(values: np.ndarray, method: str = "a", metric: str = "m") -> pd.DataFrame:
    """Evaluation table of a (P, K) array; NaN cells are not written."""
    rows = [["s", f"t{k}", method, p, metric, v] for (p, k), v in np.ndenumerate(values) if np.isfinite(v)]
    return pd.DataFrame(rows, columns=["space", "task", "method", "prior_seed", "metric", "value"])


def test_loss_table_and_runs():
    table = pd.concat([losses(np.array([[1.0, 10], [3, np.nan]])), losses(np.array([[5.0, 7], [5, 8]]), "b")])
    cells = metrics.loss_table(table, "m").set_index(["task", "method"])
    assert cells.loc[("t0", "a"), ["mean", "std", "repetitions"]].tolist() == [2, 1, 2]
    assert cells.loc[("t1", "a"), ["mean", "std", "repetitions"]].tolist() == [10, 0, 1]
    runs, left_out = metrics.loss_runs(table, "m")
    assert left_out == ["t1"] and runs.tasks == ("t0",)
    assert runs.values["a"].ravel().tolist() == [1, 3] and runs.values["b"].ravel().tolist() == [5, 5]
    with pytest.raises(DataError, match="no value of metric 'ekl'"):
        metrics.loss_table(table, "ekl")
    with pytest.raises(DataError, match="occurs twice"):
        metrics.loss_runs(pd.concat([table, table.iloc[:1]]), "m")


def test_means_per_repeat_use_the_same_tasks_for_all():
    """Method b lacks 'n' on task t1 for prior 1, so task t1 leaves all means."""
    runs = make({"a": [[[[9, 1], [9, 3]]], [[[9, 2], [9, 4]]]], "b": [[[[9, 5], [9, 7]]], [[[9, 6], [9, 8]]]]})
    full = np.array([[1.0, 2.0], [3.0, 4.0]])
    gap = np.array([[5.0, 6.0], [7.0, np.nan]])
    table = pd.concat([losses(full, "a", "m"), losses(full, "a", "n"), losses(full, "b", "m"), losses(gap, "b", "n")])
    points, left_out = metrics.means_per_repeat(table, runs)
    assert left_out == ["t1"]
    assert points["method"].tolist() == ["a", "a", "b", "b"] and points["prior_seed"].tolist() == [0, 1, 0, 1]
    assert points["regret"].tolist() == [1, 2, 5, 6]
    assert points["n"].tolist() == [1, 3, 5, 7] and points["m"].tolist() == [1, 3, 1, 3]
    with pytest.raises(DataError, match=r"method 'b': prior seeds \[0\] were evaluated but \[0, 1\] used"):
        metrics.means_per_repeat(table[(table["method"] != "b") | (table["prior_seed"] == 0)], runs)
