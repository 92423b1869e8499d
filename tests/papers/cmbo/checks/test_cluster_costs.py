"""Checks of cm-BO's study of times, where a tie or another kernel could be mistaken for a result."""

import numpy as np
import pytest
import scipy.stats

from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.ranges import ranged
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, UNTESTABLE
from tests.papers.engine.claims.cases_clusters import changed, costs, fits, queries, times
from tests.papers.engine.claims.made import numbers


def test_distances_that_rounding_changes_alike_are_no_advantage():
    arguments = {"kernels": ["plain", "product"]}
    assert checks.run("cmbo", "more_stable", changed(True, less=12), arguments).verdict == UNDECIDED
    found = checks.run("cmbo", "more_stable", changed(True), arguments)
    assert "plain, 100 locations" in found.said and "(medians W2 1e-08, Jeffreys 1e-06) in: 20 of 20" in found.said
    assert checks.run("cmbo", "more_stable", changed(True), {"kernels": ["plain", "other"]}).verdict == UNTESTABLE
    assert checks.run("cmbo", "more_stable", changed(True, ratio=0.2), arguments).verdict == CONTRADICTED
    few = checks.run("cmbo", "more_stable", changed(True, pairs=8), arguments)
    assert few.verdict == UNDECIDED and not few.decidable  # four draws


def test_typical_is_more_than_half_of_the_fits():
    found = checks.run("cmbo", "few_iterations", fits(True), {"fewer": 9})
    assert found.verdict == CONTRADICTED and "fits with fewer than 9 iterations: 0 of 20" in found.said
    assert checks.run("cmbo", "few_iterations", fits(True, of=4), {"fewer": 10}).verdict == UNDECIDED


def test_a_time_that_grows_from_a_fixed_part_grows():
    arguments = {"flat": ["cm_jef_jef"], "growing": ["rgpe"]}
    assert checks.run("cmbo", "grows_with_tasks", queries(0.02, 0.6), arguments).verdict == HOLDS
    assert checks.run("cmbo", "grows_with_tasks", queries(0.02, 1.5), arguments).verdict == HOLDS
    assert checks.run("cmbo", "grows_with_tasks", queries(0.5, 1.0), arguments).verdict == CONTRADICTED
    assert checks.run("cmbo", "grows_with_tasks", queries(-0.3, 1.0), arguments).verdict == HOLDS  # it does not grow
    assert checks.run("cmbo", "grows_with_tasks", queries(0.02, 1.0, rounds=1), arguments).verdict == UNDECIDED


def test_p_values_of_a_ratio_are_those_of_its_logarithm():
    """A factor of 2 above the range with an interval of a factor of 1.5 is as clear as one of 2 below it."""
    above, below = (ranged("", (v, v / 1.5, v * 1.5), 1.0, 4.0, clusters=5, ratio=True) for v in (8.0, 0.5))
    assert above.verdict == below.verdict == CONTRADICTED
    assert above.against == pytest.approx(below.against) and above.against < 0.01
    t = np.log(2.0) / (np.log(1.5) / scipy.stats.t.ppf(0.975, 4))
    assert above.against == pytest.approx(scipy.stats.t.sf(t, 4))
    open_below = ranged("", (0.5, 0.4, 0.6), 0.0, 1.0, clusters=5, ratio=True)
    assert open_below.verdict == HOLDS and "accepted at most 1" in open_below.said


def test_what_was_measured_once_decides_nothing():
    found = checks.run("cmbo", "as_ranged", costs(True, least=np.nan), {"claim": "B13"})
    assert found.verdict == UNDECIDED and "one number, no interval" in found.said


def test_growth_is_that_of_a_straight_line_with_its_interval():
    limits = {"kind": "query_distance", "most": {"wasserstein": 1.25}}
    found = checks.run("cmbo", "weak_growth", times(False), limits)
    assert found.value == pytest.approx(2.0) and found.verdict == CONTRADICTED
    assert found.said == "wasserstein: time with 6 clusters over that with 2, 3 times: 2 [2, 2], accepted at most 1.25"
    noisy = checks.run("cmbo", "weak_growth", times(False, middle=1.5), limits)
    assert noisy.verdict == UNDECIDED and noisy.low < 1.25 < noisy.high
    missing = checks.run("cmbo", "weak_growth", times(True), {"kind": "query", "most": {"jeffreys": 2.5}})
    assert missing.verdict == UNTESTABLE


def test_a_limit_far_above_a_time_tests_nothing():
    row = {"claim": "B12", "comparison": "iteration, seconds", "low": 0.0, "high": 3.0, "units": 5, "holds": 1.0}
    for value, verdict in ((0.001, UNTESTABLE), (0.1, HOLDS), (9.0, CONTRADICTED)):
        times = numbers(claim=[{**row, "value": value, "least": value / 1.1, "most": value * 1.1}])
        found = checks.run("cmbo", "as_ranged", times, {"claim": "B12"})
        assert found.verdict == verdict and ("not informative" in found.said) == (verdict == UNTESTABLE)
