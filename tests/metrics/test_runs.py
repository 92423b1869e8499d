"""Trajectory table to arrays: completeness checks, repetitions, pairing, direction of the metric."""

import numpy as np
import pandas as pd
import pytest

from metabo import metrics
from metabo.errors import ConfigError, DataError


def long_table(values: dict[str, np.ndarray], column: str = "simple_regret", first: int = 1) -> pd.DataFrame:
    """Spell out (P, S, K, T) arrays as a table, in scrambled row order."""
    rows = [
        {"method": m, "acquisition": "pi", "space": "s", "task": f"t{k}", "prior_seed": 10 + p, "seed": 20 + s,
         "iteration": first + t, column: v[p, s, k, t]}
        for m, v in values.items() for p, s, k, t in np.ndindex(v.shape)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    order = table.groupby(["method", "task"], sort=False).ngroup()
    return table.sample(frac=1, random_state=0).assign(o=order).sort_values("o", kind="stable").drop(columns="o")


A = np.arange(1.0, 1 + 2 * 2 * 3 * 4)[::-1].reshape(2, 2, 3, 4)
B = A[:1] / 100


def test_collect_restores_arrays_whatever_the_row_order():
    runs = metrics.collect(long_table({"a": A, "b": B}))
    assert runs.methods == ("a", "b") and runs.tasks == ("t0", "t1", "t2") and runs.last == 4
    np.testing.assert_array_equal(runs.values["a"], A)
    np.testing.assert_array_equal(runs.values["b"], B)
    assert runs.prior_seeds == {"a": (10, 11), "b": (10,)}


def test_folds_are_told_apart_by_space():
    table = long_table({"a": A})
    assert metrics.collect(table).folds == ()  # a table without folds
    shared = table.assign(fold=table["task"].map({"t0": "f", "t1": "g", "t2": "f"}))
    assert metrics.collect(shared).folds == (0, 1, 0)
    apart = shared.assign(space=shared["task"].map({"t0": "r", "t1": "s", "t2": "s"}))
    assert metrics.collect(apart).folds == (0, 1, 2) and metrics.collect(apart).select(["a"]).at(2).folds == (0, 1, 2)


def test_initial_points_are_left_out():
    """Iterations -1 and 0 are observations given before BO starts (HPO-B)."""
    table = long_table({"a": A}, first=-1)
    np.testing.assert_array_equal(metrics.collect(table).values["a"], A[..., 2:])
    with pytest.raises(DataError, match="no BO iteration"):
        metrics.collect(table[table["iteration"] <= 0])


def test_missing_run_is_named():
    table = long_table({"a": A, "b": A})
    gone = (table["method"] == "b") & (table["task"] == "t1") & (table["prior_seed"] == 11) & (table["seed"] == 20)
    message = r"method=b, task=t1, prior_seed=11, seed=20, iteration 1 of 4 is missing \(4 such rows\)"
    with pytest.raises(DataError, match=message):
        metrics.collect(table[~gone])


def test_missing_last_iteration_task_and_duplicates_are_named():
    table = long_table({"a": A, "b": A})
    short = table[~((table["method"] == "a") & (table["iteration"] == 4))]
    with pytest.raises(DataError, match="method=a, task=t0, prior_seed=10, seed=20, iteration 4 of 4 is missing"):
        metrics.collect(short)
    with pytest.raises(DataError, match="method=b, task=t2, prior_seed=10, seed=20, iteration 1 of 4 is missing"):
        metrics.collect(table[~((table["method"] == "b") & (table["task"] == "t2"))])
    with pytest.raises(DataError, match="occurs more than once"):
        metrics.collect(pd.concat([table, table.iloc[[5]]]))


def test_impossible_regrets_are_refused():
    rising = A.copy()
    rising[1, 0, 2, 3] = 99
    with pytest.raises(DataError, match="task=t2, prior_seed=11, seed=20: the regret rises after iteration 3"):
        metrics.collect(long_table({"a": rising}))
    with pytest.raises(DataError, match="is negative at iteration 4"):
        metrics.collect(long_table({"a": A - 1.5}))
    np.testing.assert_array_equal(metrics.collect(long_table({"a": rising}, "y"), "y").values["a"], rising)


def test_two_acquisitions_under_one_name_are_refused():
    table = long_table({"a": A})
    with pytest.raises(DataError, match="several acquisitions"):
        metrics.collect(table.assign(acquisition=np.where(table["seed"] == 20, "pi", "ei")))


def test_a_task_name_in_two_spaces_stays_two_tasks():
    table = pd.concat([long_table({"a": A}), long_table({"a": A / 2}).assign(space="r")])
    runs = metrics.collect(table)
    assert runs.tasks == ("s:t0", "s:t1", "s:t2", "r:t0", "r:t1", "r:t2")
    np.testing.assert_array_equal(runs.values["a"][:, :, 3:], A / 2)


def test_copies_over_prior_seeds_collapse_for_single_task_methods_only():
    copies = np.repeat(A[:1], 3, axis=0)
    table = long_table({"single": copies, "trained": copies})
    runs = metrics.collect(table, single_task={"single", "absent"})
    assert runs.values["single"].shape[0] == 1 and runs.values["trained"].shape[0] == 3
    assert runs.single_task == {"single"}


def test_repetitions_average_bo_seeds_within_a_prior():
    runs = metrics.collect(long_table({"trained": A, "single": A}), single_task={"single"})
    by_prior, by_run = metrics.repetitions(runs, "prior"), metrics.repetitions(runs, "run")
    np.testing.assert_array_equal(by_prior["trained"], (A[:, 0] + A[:, 1]) / 2)
    np.testing.assert_array_equal(by_run["trained"], [A[0, 0], A[0, 1], A[1, 0], A[1, 1]])
    np.testing.assert_array_equal(by_prior["single"], by_run["trained"])
    with pytest.raises(ConfigError, match=r"unknown unit of analysis 'runs'\. Did you mean 'run'"):
        metrics.repetitions(runs, "runs")


def test_pairing_repeats_what_has_one_seed_and_refuses_what_does_not_fit():
    runs = metrics.collect(long_table({"a": A, "b": B}))
    q = metrics.paired(runs, "run")
    assert q.shape == (2, 4, 3, 4)
    np.testing.assert_array_equal(q[0], [A[0, 0], A[0, 1], A[1, 0], A[1, 1]])
    np.testing.assert_array_equal(q[1], [B[0, 0], B[0, 1], B[0, 0], B[0, 1]])
    np.testing.assert_allclose(metrics.paired(runs, "prior")[1], [B[0].mean(axis=0)] * 2)
    three = np.concatenate([A, A[:1]])
    with pytest.raises(DataError, match="'a' has 2 prior seeds, another method has 3"):
        metrics.paired(metrics.collect(long_table({"a": A, "c": three})), "prior")


def test_selecting_iterations_and_methods():
    runs = metrics.collect(long_table({"a": A, "b": B}), single_task={"b"})
    np.testing.assert_array_equal(runs.at(3).values["a"], A[..., 2:3])
    assert runs.at(3).iterations.tolist() == [3]
    np.testing.assert_array_equal(runs.at(3).at(3).values["a"], A[..., 2:3])
    for absent in (1, 4):
        with pytest.raises(DataError, match=rf"iteration {absent} is not in the runs \(3 to 3\)"):
            runs.at(3).at(absent)
    with pytest.raises(DataError, match=r"iteration 0 is not in the runs \(1 to 4\)"):
        runs.at(0)
    assert runs.select(["b"]).methods == ("b",) and runs.select(["a"]).single_task == frozenset()
    with pytest.raises(DataError, match=r"iteration 5 is not in the runs \(1 to 4\)"):
        runs.at(5)
    with pytest.raises(ConfigError, match="unknown method in these runs 'c'"):
        runs.select(["c"])


def test_metric_sign():
    table = pd.DataFrame({"space": "s", "task": ["t", "t", "u", "u"], "y": [1.0, 2.0, 3.0, 3.0]})
    assert metrics.metric_sign(table.assign(metric=[0.5, 0.2, 0.1, 0.1])) == -1
    assert metrics.metric_sign(table.assign(metric=[0.2, 0.5, 0.1, 0.1])) == 1
    with pytest.raises(DataError, match="disagree"):
        metrics.metric_sign(table.assign(metric=1.0))
    with pytest.raises(DataError, match="disagree"):
        metrics.metric_sign(table.assign(y=[1.0, 2.0, 1.0, 2.0], metric=[1.0, 2.0, 2.0, 1.0]))
