"""Online tuning: curves with runs that have no value, infeasible queries, comparison; worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from metabo.errors import ConfigError, DataError
from metabo.papers.hyperbo.metrics import online as online_metrics

NONE = np.nan


def table(runs: dict[str, dict[str, list[list[float]]]], metric_name: str = "error_rate") -> pd.DataFrame:
    """Spell out {method: {task: metric per run and iteration}} (NaN: infeasible) as a table, rows scrambled."""
    rows = []
    for method, tasks in runs.items():
        for task, values in tasks.items():
            for run, metric in enumerate(values):
                best = np.fmin.accumulate(metric)
                for t, value in enumerate(metric):
                    rows.append(
                        {"method": method, "task": task, "prior_seed": run // 2, "seed": run, "iteration": t + 1,
                         "metric": value, "best_metric": best[t], "metric_name": metric_name,
                         "feasible": bool(np.isfinite(value))}
                    )  # fmt: skip
    made = pd.DataFrame(rows)
    order = made.groupby(["method", "task"], sort=False).ngroup()
    return made.sample(frac=1, random_state=0).assign(o=order).sort_values("o", kind="stable").drop(columns="o")


THREE = table({"a": {"t": [[NONE, NONE, 0.5], [NONE, 0.4, 0.6], [0.2, 0.3, NONE]]}})


def test_collect_restores_the_runs_in_percent_and_marks_what_is_infeasible():
    runs = online_metrics.collect_online(THREE)
    inf = np.inf
    np.testing.assert_allclose(runs.best["a"][:, 0], [[inf, inf, 50], [inf, 40, 40], [20, 20, 20]])
    np.testing.assert_array_equal(runs.feasible["a"][:, 0], [[0, 0, 1], [0, 1, 1], [1, 1, 0]])
    assert runs.metric == ("validation error rate (%)",) and runs.last == 3 and runs.methods == ("a",)
    nats = online_metrics.collect_online(THREE.assign(metric_name="ce_loss"))
    assert nats.metric == ("validation cross entropy (nats)",)
    np.testing.assert_allclose(nats.best["a"], runs.best["a"] / 100)


def test_curves_count_a_run_without_value_as_worst():
    """Three runs, whose band is all of them. Iteration 1: one has a value, no line. 2: (20, 40, none): median 40, low
    20, high none. 3: (20, 40, 50)."""
    curve = online_metrics.online_curves(online_metrics.collect_online(THREE))
    assert curve["with_value"].tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert curve["median"].tolist() == pytest.approx([NONE, 40, 40], nan_ok=True)
    assert curve["low"].tolist() == pytest.approx([NONE, 20, 20], nan_ok=True)
    assert curve["high"].tolist() == pytest.approx([NONE, np.inf, 50], nan_ok=True)
    assert curve["iteration"].tolist() == [1, 2, 3] and set(curve["repetitions"]) == {3}


def test_a_line_starts_where_exactly_half_of_the_runs_have_a_value():
    four = {"a": {"t": [[0.1, 0.1], [0.3, 0.3], [NONE, NONE], [NONE, 0.5]]}}
    curve = online_metrics.online_curves(online_metrics.collect_online(table(four)))
    assert curve["median"].tolist() == pytest.approx([30, 40])  # (10, 30, -, -): the highest value; (10, 30, 50, -): 40
    one = online_metrics.online_curves(online_metrics.collect_online(table({"a": {"t": [[0.1, 0.05]]}})))
    assert one[["median", "low", "high"]].to_numpy().tolist() == [[10] * 3, [5] * 3]


def test_percentiles_without_missing_values_are_numpys():
    rng = np.random.default_rng(0)
    values = rng.random((7, 5))
    curve = online_metrics.online_curves(online_metrics.collect_online(table({"a": {"t": values.tolist()}})))
    best = 100 * np.minimum.accumulate(values, axis=1)
    for name, q in (("low", 20), ("median", 50), ("high", 80)):
        np.testing.assert_allclose(curve[name], np.percentile(best, q, axis=0))


def test_percentiles_begin_with_five_runs():
    values = np.random.default_rng(1).random((5, 4))
    for runs, ends in ((5, (20, 80)), (4, (0, 100))):
        curve = online_metrics.online_curves(online_metrics.collect_online(table({"a": {"t": values[:runs].tolist()}})))
        best = 100 * np.minimum.accumulate(values[:runs], axis=1)
        np.testing.assert_allclose(curve[["low", "high"]].T, np.percentile(best, ends, axis=0))


def test_final_values_and_infeasible_shares():
    runs = online_metrics.collect_online(
        table(
            {"a": {"t": [[NONE, 0.3], [0.1, 0.2], [NONE, NONE]], "u": [[0.5, 0.5]] * 3},
             "b": {"t": [[NONE, NONE]], "u": [[NONE, 0.7]]}}
        )
    )  # fmt: skip
    final = online_metrics.online_final(runs).set_index(["task", "method"])
    assert final.loc[("t", "a"), ["mean", "std", "median"]].tolist() == pytest.approx([20, 10, 30])
    assert final.loc[("t", "a"), ["with_value", "repetitions"]].tolist() == [2, 3]
    assert final.loc[("t", "a"), ["least", "greatest"]].tolist() == pytest.approx([10, np.inf])
    assert final.loc[("t", "b"), ["mean", "std", "median"]].tolist() == pytest.approx([NONE, NONE, np.inf], nan_ok=True)
    shares = online_metrics.infeasible_queries(runs).set_index(["task", "method"])
    assert shares["infeasible"].to_dict() == {("t", "a"): 3, ("t", "b"): 2, ("u", "a"): 0, ("u", "b"): 1}
    assert shares["queries"].to_dict() == {("t", "a"): 6, ("t", "b"): 2, ("u", "a"): 6, ("u", "b"): 2}
    assert shares.loc[("u", "b"), "share"] == 0.5
    found = online_metrics.online_comparison(runs, ["a", "absent"], "b")
    assert found[["task", "method", "better", "equal"]].to_numpy().tolist() == [["t", "a", 1, 0], ["u", "a", 1, 0]]
    assert online_metrics.online_comparison(runs, ["a"], "absent").empty


def test_the_comparison_takes_no_run_without_a_value_for_the_median():
    """Of two runs one finds nothing: the median is not the other's good value, but lies beyond every value."""
    half = {
        "a": {"t": [[0.1, 0.1], [NONE, NONE]]},
        "b": {"t": [[0.9, 0.9]] * 3},
        "c": {"t": [[NONE, 0.2], [NONE, NONE]]},
    }
    runs = online_metrics.collect_online(table(half))
    against = online_metrics.online_comparison(runs, ["a"], "b").iloc[0]
    assert (against["median"], against["reference_median"], against["better"]) == (np.inf, pytest.approx(90), False)
    assert (against["runs"], against["reference_runs"]) == (2, 3)
    assert online_metrics.online_comparison(runs, ["b"], "a")["better"].all()
    assert online_metrics.online_comparison(runs, ["c"], "a")["equal"].all()
    final = online_metrics.online_final(runs).set_index("method")
    assert final.loc["a", ["mean", "std", "with_value"]].tolist() == pytest.approx([10, 0, 1])  # over runs with a value
    curve = online_metrics.online_curves(runs).set_index(["method", "iteration"])["median"]
    assert curve["a"].tolist() == pytest.approx([10, 10])  # the drawn line starts at one half
    four = {"a": {"t": [[0.1], [0.2], [0.3], [NONE]]}, "b": {"t": [[0.26]] * 4}}
    found = online_metrics.online_comparison(online_metrics.collect_online(table(four)), ["a"], "b").iloc[0]
    assert found["median"] == pytest.approx(25) and found["better"]


def test_two_methods_without_any_value_are_equal_and_worse_than_any_other():
    runs = online_metrics.collect_online(table({m: {"t": [[v, v]]} for m, v in (("a", NONE), ("b", NONE), ("c", 0.9))}))
    against = online_metrics.online_comparison(runs, ["a", "c"], "b").set_index("method")
    assert against["better"].to_dict() == {"a": False, "c": True}
    assert against["equal"].to_dict() == {"a": True, "c": False}


def test_faulty_tables_are_refused():
    def refused(change, message: str, error: type = DataError):
        bad = THREE.copy()
        with pytest.raises(error, match=message):
            online_metrics.collect_online(change(bad))

    refused(lambda t: t.drop(t.index[t["iteration"] == 2][:1]), "iteration 2 of 3 is missing")
    refused(lambda t: pd.concat([t, t[t["iteration"] == 1].head(1)]), "iteration 1 of 3 occurs more than once")
    refused(lambda t: t.assign(iteration=t["iteration"] - 1), "below 1")
    refused(lambda t: t.assign(feasible=True), "is feasible but has no finite metric")
    refused(lambda t: t.assign(best_metric=0.1), "not the lowest feasible metric so far")
    refused(lambda t: t.assign(best_metric=t["metric"].max()), "not the lowest feasible metric so far")
    refused(lambda t: t.assign(metric_name="accuracy"), "unknown metric of an online table 'accuracy'", ConfigError)
    refused(lambda t: t.assign(metric_name=["ce_loss"] + ["error_rate"] * 8), "has several metrics")
    refused(lambda t: t.iloc[:0], "no row")
