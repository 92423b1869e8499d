"""The output map of hyperbo §7.5 against a plain reading of its formula."""

import math
import statistics

import numpy as np
import pytest

from metabo.tasks.outputs import rescale, rescale_all


def reference(values):
    """One value at a time; None: infeasible."""
    good = [v for v in values if v is not None]
    if not good:
        return [-2.0] * len(values)
    middle, top = statistics.median(good), max(good)
    plus = lambda v: math.log1p(math.exp(v)) if v < 30 else v + math.log1p(math.exp(-v))  # noqa: E731
    return [-2.0 if v is None else 4 * plus(v - middle) / plus(top - middle) - 2 for v in values]


def with_nan(values):
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def test_by_hand():
    """Median 1, largest 2: softplus(-1), softplus(0), softplus(1) are 0.31326, 0.69315, 1.31326."""
    np.testing.assert_allclose(rescale(np.array([0.0, 1.0, 2.0])), [-1.045851, 0.111223, 2.0], atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 30])
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_the_map_is_the_printed_formula(count, share):
    rng = np.random.default_rng(count)
    values = [None if rng.uniform() < share else float(v) for v in rng.normal(0, 3, count)]
    np.testing.assert_allclose(rescale_all(with_nan(values)), reference(values), rtol=1e-12)


def test_range_and_order():
    y = np.random.default_rng(0).normal(0, 2, 50)
    mapped = rescale(y)
    assert mapped.max() == 2.0 and mapped.min() > -2.0
    assert np.argsort(mapped).tolist() == np.argsort(y).tolist()
    shifted = rescale(y + 17.0)
    np.testing.assert_allclose(shifted, mapped, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([None], [-2.0]),
        ([None, None, None], [-2.0] * 3),
        ([3.7], [2.0]),
        ([None, -4.0, None], [-2.0, 2.0, -2.0]),
        ([0.7, 0.7, 0.7], [2.0] * 3),
    ],
)
def test_edge_cases(values, expected):
    assert rescale_all(with_nan(values)).tolist() == expected


@pytest.mark.parametrize("values", [[-1e300, 0.0, 1e300], [-1e4, 0.0, 1.0], [0.0, 1e-300], [-745.2, 0.0, 709.9, 800.0]])
def test_a_huge_spread_stays_finite_and_in_range(values):
    with np.errstate(over="raise", invalid="raise"):
        mapped = rescale(np.array(values))
    assert np.isfinite(mapped).all() and (mapped >= -2).all() and mapped.max() == 2.0


def test_infeasible_outputs_do_not_move_the_others():
    y = np.random.default_rng(1).normal(size=9)
    mixed = np.insert(y, [0, 4, 9], np.nan)
    kept = ~np.isnan(mixed)
    np.testing.assert_array_equal(rescale_all(mixed)[kept], rescale(y))
    assert (rescale_all(mixed)[~kept] == -2).all()


def test_a_piece_of_a_task_takes_the_tasks_own_median_and_maximum():
    y = np.random.default_rng(2).normal(size=11)
    np.testing.assert_array_equal(rescale(y[[3, 8, 1]], y), rescale(y)[[3, 8, 1]])
