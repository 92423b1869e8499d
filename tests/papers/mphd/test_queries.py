"""Queries that methods need to reach an end, and late falls of regret, across spaces: by hand."""

import numpy as np
import pytest

from metabo.metrics import Runs
from metabo.papers.mphd import queries


def space(fast: list[float], slow: list[float], tasks: int = 2, seeds: int = 3) -> Runs:
    """Runs of two methods with the same curve for every task and seed."""
    at = np.arange(1, len(fast) + 1)
    values = {
        name: np.broadcast_to(np.asarray(curve), (1, seeds, tasks, len(at))).copy()
        for name, curve in (("fast", fast), ("slow", slow))
    }
    return Runs(values, dict.fromkeys(values, (0,)), tuple(map(str, range(tasks))), at, frozenset())


def test_savings_are_doublings_of_queries_to_the_worse_end():
    # both reach 0.2, what the slow one ends with: it after 4 and 8 queries, the fast one after 1 and 2
    parts = {
        "a": space([0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.9, 0.8, 0.7, 0.2, 0.2, 0.2, 0.2, 0.2]),
        "b": space([0.9, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.9] * 7 + [0.2], tasks=3),
    }
    (row,) = queries.query_savings(parts, ["slow", "fast"], "fast", 0).itertuples()
    assert (row.method, row.reference, row.reached) == ("slow", "fast", 1.0)
    assert row.difference == pytest.approx(2.0) and row.low == pytest.approx(2.0) == row.suite_high
    (turned,) = queries.query_savings(parts, ["fast", "slow"], "slow", 0).itertuples()
    assert turned.difference == pytest.approx(-2.0), "whichever is the reference"


def test_runs_that_do_not_get_there_count_as_twice_all_queries():
    curves = np.ones((1, 3, 1, 4))
    curves[0, :2, 0, 3] = 0.1  # the median ends at 0.1, the third seed stays at 1
    runs = Runs(
        {"slow": curves, "fast": np.full((1, 3, 1, 4), 0.05)},
        {"slow": (0,), "fast": (0,)},
        ("t",),
        np.arange(1, 5),
        frozenset(),
    )
    (row,) = queries.query_savings({"a": runs}, ["slow", "fast"], "fast", 0).itertuples()
    assert row.difference == pytest.approx((2 + 2 + 3) / 3)


def test_neither_of_two_equal_methods_is_favoured():
    """The method's own median as the target would favour it by 0.3 doublings with five seeds."""
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(40):
        draws = np.minimum.accumulate(rng.random((2, 1, 5, 4, 60)), axis=-1)
        runs = Runs(
            dict(zip("ab", draws, strict=True)), {"a": (0,), "b": (0,)}, tuple("wxyz"), np.arange(1, 61), frozenset()
        )
        gaps.append(float(queries.query_savings({"s": runs}, ["a", "b"], "b", 0)["difference"].iloc[0]))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(len(gaps)) < 0.5


def test_late_falls_are_shares_of_the_regret_that_are_kept():
    parts = {"a": space([0.9, 0.5, 0.5, 0.1], [0.9, 0.3, 0.3, 0.2]), "b": space([0.9, 0.5, 0.5, 0.3], [0.8] * 4)}
    rows = queries.late_falls(parts, ["slow", "fast"], "fast", 2, 0).set_index("against")
    slow, fast = (0.2 + 0.8) / (0.3 + 0.8), (0.1 + 0.3) / (0.5 + 0.5)
    assert rows.loc["reference", "difference"] == pytest.approx(slow - fast)
    assert rows.loc["limit", "difference"] == pytest.approx(slow - 0.9)
    assert rows["fall"].tolist() == pytest.approx([1 - slow] * 2) and set(rows["since"]) == {2}
    assert queries.late_falls(parts, ["slow", "fast"], "fast", 4, 0).empty, "runs that end there fall no further"


def test_intervals_of_shares_are_those_of_a_ratio_by_jackknife():
    rng = np.random.default_rng(1)
    before = rng.uniform(0.5, 1.0, (1, 200, 1, 1))
    after = before * rng.uniform(0.2, 0.6, before.shape)
    values = {"m": np.concatenate([before, after], axis=-1), "r": np.ones((1, 200, 1, 2))}
    runs = Runs(values, {"m": (0,), "r": (0,)}, ("t",), np.arange(1, 3), frozenset())
    row = queries.late_falls({"s": runs}, ["m", "r"], "r", 1, 0).set_index("against").loc["reference"]
    kept, (b, a) = after.mean() / before.mean(), (part.ravel() for part in (before, after))
    left = np.array([np.delete(a, i).mean() / np.delete(b, i).mean() for i in range(200)])
    deviation = np.sqrt(199 / 200 * np.sum((left - left.mean()) ** 2))
    assert row["difference"] == pytest.approx(kept - 1)
    assert row["suite_high"] - row["difference"] == pytest.approx(1.97 * deviation, rel=0.05)
