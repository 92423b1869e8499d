"""Correlation, bootstrap and variance split against SciPy, closed forms and simulations with known answers."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from metabo import metrics
from metabo.errors import ConfigError, DataError
from metabo.metrics import Runs
from metabo.papers.hyperbo.metrics import losses as losses_metrics


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


def half_width(found: metrics.Difference) -> float:
    assert found.high - found.estimate == pytest.approx(found.estimate - found.low)
    return (found.high - found.low) / 2


def test_resampled_repetitions_agree_with_full_enumeration():
    """Three repetitions: the 27 equally likely resamples give the exact bootstrap distribution."""
    a = np.array([[1.0, 2.0], [4.0, 6.0], [0.0, 9.0]])
    b = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    d = (a - b).mean(axis=1)
    exact = np.array([d[list(i)].mean() for i in itertools.product(range(3), repeat=3)])
    found = metrics.paired_difference(a, b, np.random.default_rng(0), tasks="fixed")
    assert found.estimate == pytest.approx((a - b).mean())
    assert half_width(found) == pytest.approx(4.302653 * exact.std() * np.sqrt(3 / 2), rel=0.02)
    # and that is Student's t interval of the three means
    assert half_width(found) == pytest.approx(4.302653 * d.std(ddof=1) / np.sqrt(3), rel=0.02)


def test_standard_error_of_each_treatment_of_tasks():
    """Half width over t against the standard error that each scheme implies, computed directly.

    Fixed: means of repetitions; nested with one task per fold: means of tasks; crossed: row part + column part +
    remainder, each with its own number of draws.
    """
    rng = np.random.default_rng(3)
    q, k = 30, 20
    d = rng.normal(size=(q, 1)) + 2 * rng.normal(size=(1, k)) + 0.5 * rng.normal(size=(q, k))
    rows, columns = d.mean(axis=1), d.mean(axis=0)
    rest = d - rows[:, None] - columns + d.mean()
    both = rows.var() / q + columns.var() / k + rest.var() / (q * k)
    variance = {"fixed": (rows.var() / q, q), "nested": (columns.var() / k, k), "crossed": (both, k)}
    for tasks, (v, n) in variance.items():
        found = metrics.paired_difference(d, np.zeros_like(d), np.random.default_rng(4), tasks=tasks)
        expected = stats.t.ppf(0.975, n - 1) * np.sqrt(v * n / (n - 1))
        assert half_width(found) == pytest.approx(expected, rel=0.03), tasks
    together = metrics.paired_difference(d, 0 * d, np.random.default_rng(4), "nested", folds=np.zeros(k))
    assert together == metrics.paired_difference(d, 0 * d, np.random.default_rng(4), "crossed")  # one fold


SUITE = (2, 6, 2, 4, 6, 2, 2)
"""Test tasks of the folds of pd1_mini."""


def drawn(rng, sizes, sd, q=5):
    """Draw d_qk = A_fold + a_k + B_{q,fold} + c_qk with the given standard deviations; the true mean is 0."""
    fold = np.repeat(np.arange(len(sizes)), sizes)
    shared = sd[0] * rng.normal(size=len(sizes)) + sd[2] * rng.normal(size=(q, len(sizes)))
    own = sd[1] * rng.normal(size=len(fold)) + sd[3] * rng.normal(size=(q, len(fold)))
    return shared[:, fold] + own, fold


@pytest.mark.parametrize("sd", [(1.0, 0.5, 0.5, 0.5), (0.0, 1.0, 0.3, 0.3), (0.0, 0.0, 1.0, 0.3)])
@pytest.mark.parametrize("sizes", [SUITE, (1, 1, 1), (4, 4), (9,) * 25])
def test_folds_cover_a_new_data_set(sizes, sd):
    """400 simulated studies, true difference 0: a nominal 95 % interval covers it in 91 to 98.5 % of them."""
    rng, covered, alone = np.random.default_rng(5), 0, 0
    for _ in range(400):
        d, fold = drawn(rng, sizes, sd)
        found = metrics.paired_difference(d, 0 * d, rng, resamples=300, folds=fold)
        covered += found.low <= 0 <= found.high
        apart = metrics.paired_difference(d, 0 * d, rng, resamples=300)
        alone += apart.low <= 0 <= apart.high
    assert 0.91 <= covered / 400 <= 0.985
    if len(fold) > len(sizes) and sd[1] < 1:  # tasks that share a lot, taken for independent ones
        assert alone / 400 < 0.87


def test_one_fold_covers_new_tasks_that_share_priors():
    """d_qk = a_k + b_q + c_qk: tasks and priors both vary; conservative, since both are drawn."""
    for q, k, sd in ((5, 19, (0.5, 1.0, 0.3)), (5, 19, (1.0, 0.2, 0.3)), (3, 4, (1.0, 1.0, 0.5))):
        rng, covered = np.random.default_rng(6), 0
        for _ in range(400):
            d = sd[0] * rng.normal(size=k) + sd[1] * rng.normal(size=(q, 1)) + sd[2] * rng.normal(size=(q, k))
            found = metrics.paired_difference(d, 0 * d, rng, resamples=300, folds=np.zeros(k))
            covered += found.low <= 0 <= found.high
        assert covered / 400 >= 0.91, (q, k, sd)


@pytest.mark.parametrize("q", [3, 5, 25])
def test_repetitions_cover_this_suite_of_tasks(q):
    """400 data sets with true difference 0.3; tasks differ, but are the same in all repetitions."""
    rng, tasks, hits = np.random.default_rng(7), 3 * np.random.default_rng(8).normal(size=6), 0
    for _ in range(400):
        noise = rng.normal(size=(q, 6)) + rng.normal(size=(q, 1)) + tasks - tasks.mean()
        base = rng.normal(size=(q, 6))
        found = metrics.paired_difference(base + 0.3 + noise, base, rng, tasks="fixed", resamples=300)
        hits += found.low <= 0.3 <= found.high
    assert 0.91 <= hits / 400 <= 0.985


@pytest.mark.parametrize("tasks", ["fixed", "crossed"])
def test_bootstrap_is_reproducible_and_the_pairing_matters(tasks):
    rng = np.random.default_rng(6)
    shared = 10 * rng.normal(size=(8, 5))
    a, b = shared + 1 + 0.1 * rng.normal(size=(8, 5)), shared
    first = metrics.paired_difference(a, b, np.random.default_rng([1, 2]), tasks)
    assert first == metrics.paired_difference(a, b, np.random.default_rng([1, 2]), tasks)
    assert first != metrics.paired_difference(a, b, np.random.default_rng([1, 3]), tasks)
    assert half_width(first) < 0.3
    unpaired = metrics.paired_difference(a, b[::-1, ::-1], np.random.default_rng([1, 2]), tasks)
    assert half_width(unpaired) > 5 * half_width(first)


def test_folds_draw_nothing_and_the_pairing_matters():
    rng = np.random.default_rng(6)
    shared = 10 * rng.normal(size=(8, 5))
    a, b = shared + 1 + 0.1 * rng.normal(size=(8, 5)), shared
    first = metrics.paired_difference(a, b, np.random.default_rng([1, 2]))
    assert first == metrics.paired_difference(a, b, np.random.default_rng([1, 3]))
    assert half_width(metrics.paired_difference(a, b[:, ::-1], rng)) > 5 * half_width(first)


def test_bootstrap_edges():
    one = np.ones((1, 4))
    alone = metrics.paired_difference(one, 0 * one, np.random.default_rng(0), tasks="fixed")
    assert alone.estimate == 1 and np.isnan(alone.low)
    three = np.array([[1.0], [2.0], [6.0]])  # a single task: this task, new priors
    for tasks in ("nested", "crossed", "fixed"):
        found = metrics.paired_difference(three, 0 * three, np.random.default_rng(0), tasks=tasks)
        assert half_width(found) == pytest.approx(4.302653 * three.std(ddof=1) / np.sqrt(3), rel=0.03)
    with pytest.raises(DataError, match="2 fold numbers for 4 tasks"):
        metrics.paired_difference(one, one, np.random.default_rng(0), folds=[0, 1])
    with pytest.raises(DataError, match="two equal"):
        metrics.paired_difference(one, one[:, :2], np.random.default_rng(0))
    with pytest.raises(ConfigError, match="unknown treatment of tasks 'fix'"):
        metrics.paired_difference(one, one, np.random.default_rng(0), tasks="fix")


def test_differences_to_a_reference():
    a = np.array([[[[4.0, 1.0]]], [[[6.0, 3.0]]]])
    b = np.array([[[[2.0, 2.0]]], [[[2.0, 2.0]]]])
    table = metrics.differences(make({"a": a, "b": b}), "b", [1, 2], seed=0)
    assert table["method"].tolist() == ["a", "a"] and table["difference"].tolist() == [3, 0]
    # a single task, d = 2, 4 and -1, 1: Student's t with one degree of freedom, standard error 1
    np.testing.assert_allclose(table["high"] - table["difference"], 12.7062, rtol=0.03)
    np.testing.assert_allclose(table["difference"] - table["low"], 12.7062, rtol=0.03)


def test_differences_by_fold():
    values = np.random.default_rng(9).normal(size=(3, 1, 4, 1))
    runs = make({"a": values, "b": 0 * values})
    by_fold = metrics.differences(dataclasses.replace(runs, folds=(0, 0, 1, 1)), "b", [1], seed=0).iloc[0]
    pairs = values.mean(axis=(0, 1, 3)).reshape(2, 2).mean(axis=1)
    assert by_fold["high"] - by_fold["difference"] == pytest.approx(12.7062 * np.ptp(pairs) / 2, rel=0.03)


def test_where_all_tasks_are_of_one_data_set_only_repetitions_are_drawn():
    """Four tasks in two folds that differ by much: their spread is no evidence of other data sets."""
    tasks, repeats = np.array([0.0, 5.0, 10.0, 20.0]), np.array([-1.0, 0.0, 1.0])
    values = (tasks + repeats[:, None])[:, None, :, None]
    runs = dataclasses.replace(make({"a": values, "b": 0 * values}), folds=(0, 0, 1, 1))
    (suite,) = metrics.differences(dataclasses.replace(runs, drawn="fixed"), "b", [1], seed=0).itertuples()
    (new,) = metrics.differences(runs, "b", [1], seed=0).itertuples()
    expected = 4.30265 * repeats.std(ddof=1) / np.sqrt(3)  # Student's t, two degrees of freedom
    assert suite.high - suite.difference == pytest.approx(expected, rel=0.03)
    assert new.high - new.difference > 10 * expected and suite.difference == new.difference


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
    cells = losses_metrics.loss_table(table, "m").set_index(["task", "method"])
    assert cells.loc[("t0", "a"), ["mean", "std", "repetitions"]].tolist() == [2, 1, 2]
    assert cells.loc[("t1", "a"), ["mean", "std", "repetitions"]].tolist() == [10, 0, 1]
    runs, left_out = losses_metrics.loss_runs(table, "m")
    assert left_out == ["t1"] and runs.tasks == ("t0",)
    assert runs.values["a"].ravel().tolist() == [1, 3] and runs.values["b"].ravel().tolist() == [5, 5]
    with pytest.raises(DataError, match="no value of metric 'ekl'"):
        losses_metrics.loss_table(table, "ekl")
    with pytest.raises(DataError, match="occurs twice"):
        losses_metrics.loss_runs(pd.concat([table, table.iloc[:1]]), "m")


def test_means_per_repeat_use_the_same_tasks_for_all():
    """Method b lacks 'n' on task t1 for prior 1, so task t1 leaves all means."""
    runs = make({"a": [[[[9, 1], [9, 3]]], [[[9, 2], [9, 4]]]], "b": [[[[9, 5], [9, 7]]], [[[9, 6], [9, 8]]]]})
    full = np.array([[1.0, 2.0], [3.0, 4.0]])
    gap = np.array([[5.0, 6.0], [7.0, np.nan]])
    table = pd.concat([losses(full, "a", "m"), losses(full, "a", "n"), losses(full, "b", "m"), losses(gap, "b", "n")])
    points, left_out = losses_metrics.means_per_repeat(table, runs)
    assert left_out == ["t1"]
    assert points["method"].tolist() == ["a", "a", "b", "b"] and points["prior_seed"].tolist() == [0, 1, 0, 1]
    assert points["regret"].tolist() == [1, 2, 5, 6]
    assert points["n"].tolist() == [1, 3, 5, 7] and points["m"].tolist() == [1, 3, 1, 3]
    with pytest.raises(DataError, match=r"method 'b': prior seeds \[0\] were evaluated but \[0, 1\] used"):
        losses_metrics.means_per_repeat(table[(table["method"] != "b") | (table["prior_seed"] == 0)], runs)
