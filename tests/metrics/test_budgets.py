"""Areas, distinct queries and solved runs against values worked out by hand."""

import numpy as np
import pytest

from metabo import metrics
from metabo.errors import DataError
from tests.metrics.test_aggregate import SMALL, make, one

# The candidates of the runs of SMALL: a (prior, seed, task) asks one or two different ones.
ASKED = [[[[4, 2], [2, 2]], [[6, 6], [2, 0]]], [[[8, 4], [1, 0]], [[10, 2], [6, 2]]]]


def test_by_hand():
    both = make({"a": SMALL, "b": SMALL}, single_task={"b"})
    found = metrics.budgets(both, make({"a": ASKED, "b": ASKED}), 2)
    a, b = one(found, method="a"), one(found, method="b")
    assert a[["area", "distinct", "solved", "repetitions"]].tolist() == pytest.approx([3.125, 14 / 8, 3 / 8, 2])
    assert b[["area", "distinct", "solved", "repetitions"]].tolist() == pytest.approx([3.125, 14 / 8, 3 / 8, 4])
    first = one(metrics.budgets(both, make({"a": ASKED, "b": ASKED}), 1), method="a")
    assert first[["area", "distinct", "solved"]].tolist() == pytest.approx([4.75, 1, 1 / 8])


def test_area_is_the_mean_of_the_curve_and_regrets_are_its_points():
    runs = make({"a": np.sort(np.random.default_rng(0).random((3, 2, 4, 9)))[..., ::-1]})
    curve = metrics.regret_curves(runs)
    (found,) = metrics.budgets(runs, runs, 9).itertuples()
    assert found.area == pytest.approx(curve["mean"].mean()) and found.distinct == 9 and found.solved == 0
    points = metrics.regret_at(runs, [1, 5, 9])
    np.testing.assert_allclose(points["mean"], curve["mean"].iloc[[0, 4, 8]])
    spread = runs.values["a"].mean(axis=1).mean(axis=1)[:, [0, 4, 8]].std(axis=0)
    np.testing.assert_allclose(points["std"], spread)
    with pytest.raises(DataError, match="iteration 10 is not in the runs"):
        metrics.regret_at(runs, [10])
