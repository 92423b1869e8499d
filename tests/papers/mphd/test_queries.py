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


def test_savings_are_doublings_of_queries_to_the_other_ones_end():
    # the slow one reaches its own end, 0.2, after 4 and 8 queries, the fast one after 1 and 2: two doublings
    parts = {
        "a": space([0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.9, 0.8, 0.7, 0.2, 0.2, 0.2, 0.2, 0.2]),
        "b": space([0.9, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.9] * 7 + [0.2], tasks=3),
    }
    (row,) = queries.query_savings(parts, ["slow", "fast"], "fast", 0).itertuples()
    assert (row.method, row.reference, row.reached) == ("slow", "fast", 1.0)
    assert row.difference == pytest.approx(2.0) and row.low == pytest.approx(2.0) == row.suite_high
    # the fast one's end is never reached by the slow one: 16 queries are counted, over 2 and 3
    (row,) = queries.query_savings(parts, ["fast", "slow"], "slow", 0).itertuples()
    assert row.reached == 0.0 and row.difference == pytest.approx((np.log2(2 / 16) + np.log2(3 / 16)) / 2)


def test_a_method_needs_as_many_queries_as_itself():
    curve = [0.5, 0.4, 0.3, 0.2]
    (row,) = queries.query_savings({"a": space(curve, curve)}, ["slow", "fast"], "fast", 0).itertuples()
    assert row.difference == 0.0 and row.reached == 1.0


def test_late_falls_are_differences_of_what_regret_loses():
    parts = {"a": space([0.9, 0.5, 0.5, 0.1], [0.9, 0.3, 0.3, 0.2]), "b": space([0.9, 0.5, 0.5, 0.3], [0.8] * 4)}
    (row,) = queries.late_falls(parts, ["slow", "fast"], "fast", 2, 0).itertuples()
    assert row.since == 2 and row.difference == pytest.approx(((0.1 - 0.4) + (0.0 - 0.2)) / 2)
    assert queries.late_falls(parts, ["slow", "fast"], "fast", 4, 0).empty, "runs that end there fall no further"
