"""Outcomes without a unit."""

import numpy as np
import pytest
from scipy.stats import norm

from metabo.tuner.blend import outcomes

Y = np.array([3.0, 1.0, np.nan, 2.0, -50.0])


@pytest.mark.parametrize("change", [lambda y: 1000.0 * y - 7.0, lambda y: 1e-6 * y])
def test_units_do_not_matter(change):
    np.testing.assert_allclose(outcomes.normal_scores(change(Y)), outcomes.normal_scores(Y))
    np.testing.assert_allclose(outcomes.scale_of(change(Y)).z(change(Y)), outcomes.scale_of(Y).z(Y), rtol=1e-6)


def test_normal_scores_are_those_of_ranks_and_a_failure_is_the_worst():
    found = outcomes.normal_scores(Y)
    ranks = np.array([5.0, 3.0, 1.5, 4.0, 1.5])  # the failure ties with the worst
    np.testing.assert_allclose(found, norm.ppf((ranks - 0.5) / 5))


def test_the_scale_of_a_new_study_is_that_of_its_gaps():
    scale = outcomes.scale_of(Y)
    assert scale.best == 3.0 and scale.gap == 2.0  # the gaps are 2, 1, 53
    good = np.isfinite(Y)
    np.testing.assert_allclose(scale.z(Y)[good], -np.log([1.0, 1 + 2 / 2, 1 + 1 / 2, 1 + 53 / 2]))
    for value in (3.5, 2.0, -50.0):
        z = -np.log1p((3.0 - value) / 2.0)
        assert scale.y(float(z)) == pytest.approx(value)


def test_no_prediction_is_worse_than_a_failure():
    """The scale is an exponential: three deviations below a failure would be an outcome of thousands of gaps."""
    y = np.array([3.0, 1.0, 2.0])
    scale, (*_, failed) = outcomes.scale_of(y), outcomes.scale_of(y).z(np.array([*y, np.nan]))
    assert scale.y(failed) == pytest.approx(3.0 - 1.5 * (2 * (1 + 2.0 / 1.5) - 1))  # the gaps are 2 and 1
    assert scale.y(failed - 3.0) == scale.y(failed) < scale.y(failed + 0.1)


@pytest.mark.parametrize("good", [[1.0], [1.0, 1.0], [3.0, 1.0, 2.0], [1e300, -1e300], [-5.0, -5.000001]])
@pytest.mark.parametrize("failures", [1, 4])
def test_a_failure_is_as_far_below_the_worst_success_as_the_median_is_below_the_best(good, failures):
    y = np.array([*[np.nan] * failures, *good])
    scale = outcomes.scale_of(y)
    z = scale.z(y)
    assert scale == outcomes.scale_of(np.array(good))  # failures have no part in it
    np.testing.assert_allclose(z[:failures], z[failures:].min() - np.log(2.0))
    assert np.isfinite(z).all() and z.max() == 0.0


@pytest.mark.parametrize("y", [np.zeros(0), np.array([np.nan, np.nan]), np.array([2.0, 2.0])])
def test_without_two_different_outcomes_there_is_no_scale(y):
    scale = outcomes.scale_of(y)
    assert scale.gap == 0.0
    np.testing.assert_array_equal(scale.z(y), np.zeros(len(y)))


def test_a_score_is_a_quantile_of_each_study():
    past = np.stack([np.quantile(at + np.arange(1001.0), outcomes.LEVELS) for at in (0.0, 5000.0)])
    found = outcomes.of_scores(past, np.array([0.0, 1.0, 9.0]))
    first = np.array([500.0, 1000 * norm.cdf(1.0), 1000.0])
    np.testing.assert_allclose(found, [first, 5000.0 + first])
