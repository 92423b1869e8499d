"""Intervals of small samples against simulation and by hand; accepted ranges, and counts of parts that hold."""

import math

import numpy as np
import pytest
import scipy.stats

from metabo.papers.engine.claims import intervals
from metabo.papers.engine.claims.ranges import at_least, ranged
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    order,
    untestable,
)

STUDIES = 2000
NEAR = 3 * np.sqrt(0.05 * 0.95 / STUDIES)
"""Three standard errors of a coverage."""


def covered(made, truth):
    held = [low <= truth <= high for _, low, high in made]
    return np.mean(held)


def test_intervals_of_small_samples_cover_the_truth():
    rng = np.random.default_rng(0)
    few, many = rng.normal(2.0, 3.0, (STUDIES, 5)), rng.normal(1.0, 0.5, (STUDIES, 5))
    assert abs(covered(map(intervals.of_mean, few), 2.0) - 0.95) <= NEAR
    assert covered(map(intervals.apart, few, many), 1.0) >= 0.95 - NEAR
    spreads = (intervals.of_deviation(float(np.std(v, ddof=1)), 4) for v in few)
    assert abs(covered(spreads, 3.0) - 0.95) <= NEAR


def test_a_mean_and_two_deviations_are_covered_together():
    """What "by two standard deviations" asks for: the ends of both are combined, not added."""
    rng = np.random.default_rng(1)
    made = []
    for values in rng.normal(2.0, 1.0, (STUDIES, 8)):
        deviation = intervals.of_deviation(float(np.std(values, ddof=1)), 7)
        made.append(intervals.combined((1.0, intervals.of_mean(values)), (-2.0, deviation)))
    assert 0.95 - NEAR <= covered(made, 0.0) <= 0.98


def test_ranks_that_all_agree_are_not_certain():
    """Student's t has no width there; three draws that agree happen once in eight."""
    three = intervals.of_ranks(np.full(3, -1.0), 4)
    assert (three.value, three.low, three.high, three.decidable) == (-1, -4, 4, False) and three.below == 0.125
    six = intervals.of_ranks(np.full(6, -1.0), 4)
    assert six.decidable and six.high < 0 and six.high - six.low > 0.8 and six.below == 2**-6
    assert not intervals.of_ranks(np.full(6, -1.0), 4, level=0.99).decidable
    assert intervals.of_ranks(np.full(6, -1.0), 4, overlap=1.2).draws == pytest.approx(6 / (1 + 5 / 6))
    one = intervals.of_ranks(np.array([2.0]), 4)
    assert (one.low, one.high, one.decidable) == (-4, 4, False) and min(one.below, one.above) >= 0.5


def test_ranks_have_the_p_values_of_all_signs():
    """Ranks that vary by far more than one, where Student's t is near."""
    gaps = 9 * np.random.default_rng(3).normal(0.4, 1.0, 9)
    found = intervals.of_ranks(gaps, 90)
    exact = scipy.stats.permutation_test(
        (gaps,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    tail = scipy.stats.ttest_1samp(gaps, 0.0, alternative="greater")
    assert found.above == pytest.approx(max(exact.pvalue, tail.pvalue))
    for shift in np.linspace(-20, 20, 81):
        moved = intervals.of_ranks(gaps - shift, 90)
        assert (moved.above <= 0.025) == (found.low > shift) and (moved.below <= 0.025) == (found.high < shift)


def test_estimates_by_hand():
    assert intervals.of_mean(np.array([1.0]))[0] == 1.0 and np.isnan(intervals.of_mean(np.array([1.0]))[1])
    assert np.isnan(intervals.of_deviation(1.0, 0)[2])
    assert intervals.combined((1.0, (3.0, 0.0, 7.0)), (-1.0, (1.0, -2.0, 4.0))) == pytest.approx(
        (2.0, -2.2426, 7.0), 1e-4
    )
    assert intervals.distance((12.0, 9.0, 15.0), 10.0) == (2.0, 0.0, 5.0)
    assert intervals.distance((5.0, 4.0, 6.0), 10.0) == (5.0, 4.0, 6.0)
    x, y = np.arange(5.0), np.array([0.0, 1.1, 1.9, 3.2, 3.9])
    value, low, high = intervals.of_slope(x, y)
    found = scipy.stats.linregress(x, y)
    assert value == pytest.approx(found.slope) and high - low == pytest.approx(2 * 3.1824 * found.stderr, rel=1e-4)
    assert np.isnan(intervals.of_slope(x[:2], y[:2])[1])


def test_p_values_of_few_ranks_are_those_of_all_orders():
    assert intervals.spearman_p(1.0, 4) == pytest.approx(2 / 24)  # Student's t: 0
    assert intervals.spearman_p(-0.9, 5) == pytest.approx(2 * 5 / 120)
    assert np.isnan(intervals.spearman_p(np.nan, 9)) and np.isnan(intervals.spearman_p(1.0, 2))
    x, y = np.arange(20), np.random.default_rng(0).normal(size=20)
    rho, p = scipy.stats.spearmanr(x, y)
    assert intervals.spearman_p(rho, 20) == pytest.approx(p) and intervals.spearman_p(1.0, 20) == 2 / math.factorial(20)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(2.0, 4.0, HOLDS), (0.5, 4.0, UNDECIDED), (4.0, 6.0, UNDECIDED), (6.0, 7.0, CONTRADICTED), (0.0, 9.0, UNDECIDED)],
)
def test_a_number_in_an_accepted_range(low, high, verdict):
    found = ranged("a", ((low + high) / 2, low, high), 1.0, 5.0, clusters=9)
    assert found.verdict == verdict and "accepted 1 to 5" in found.said
    assert (found.support <= 0.025) == (verdict == HOLDS) and (found.against <= 0.025) == (verdict == CONTRADICTED)


def test_a_number_that_was_measured_once_decides_nothing():
    found = ranged("a", (99.0, np.nan, np.nan), 10.0, np.inf)
    assert found.verdict == UNDECIDED and found.said == "a 99, accepted at least 10; one number, no interval"
    assert ranged("a", (99.0, 90.0, 110.0), 10.0, np.inf).verdict == HOLDS


def parts(*ends):
    return [order("a", ((low + high) / 2, low, high), clusters=30) for low, high in ends]


WON, LOST, OPEN = (-3.0, -2.0), (2.0, 3.0), (-2.0, 1.9)


@pytest.mark.parametrize(
    ("ends", "needed", "verdict", "share"),
    [
        ((WON, WON, OPEN), 2, HOLDS, (2 / 3, 1.0)),
        ((WON, OPEN, OPEN), 2, UNDECIDED, (1 / 3, 1.0)),
        ((WON, LOST, LOST), 2, CONTRADICTED, (1 / 3, 1 / 3)),
        ((WON, WON, LOST), 3, CONTRADICTED, (2 / 3, 2 / 3)),
        ((WON, WON), 3, UNTESTABLE, (None, None)),
    ],
)
def test_a_count_has_the_interval_of_what_is_surely_won_and_lost(ends, needed, verdict, share):
    found = at_least("parts", parts(*ends), [low + high < 0 for low, high in ends], needed)
    assert found.verdict == verdict and (found.low, found.high) == pytest.approx(share)
    assert found.verdict == UNTESTABLE or found.low <= found.value <= found.high


def test_one_clear_part_of_many_needs_a_correction():
    """Of ten parts one that is just decided holds by chance; of two that both must hold, none does."""
    just = Finding(HOLDS, "a", -1.0, -2.0, -0.01, support=0.02, against=0.98)
    rest = parts(*[OPEN] * 9)
    found = at_least("parts", [just, *rest], [True] * 10, 1)
    assert found.verdict == UNDECIDED and found.support == pytest.approx(0.2)
    assert at_least("parts", [just, just], [True, True], 2).verdict == HOLDS
    assert at_least("parts", [just, just], [True, True], 1).verdict == HOLDS


def test_parts_that_cannot_be_tested_are_neither_won_nor_lost():
    lost = untestable("not run")
    found = at_least("parts", [*parts(WON, WON), lost], [True, True, False], 2)
    assert found.verdict == HOLDS and "2 of 3, between 2 and 3 by intervals" in found.said
    assert at_least("parts", [lost, lost], [False, False], 1).verdict == UNTESTABLE


def test_true_nulls_of_several_parts_rarely_count_as_won():
    """Nine parts without a difference, of the same runs: five are surely won or lost in few studies."""
    rng, decided = np.random.default_rng(2), 0
    for _ in range(200):
        common = rng.normal(size=12)
        made = []
        for _ in range(9):
            values = common + 0.3 * rng.normal(size=12)
            made.append(order("a", intervals.of_mean(values), clusters=12))
        decided += at_least("parts", made, [True] * 9, 5).verdict in (HOLDS, CONTRADICTED)
    assert decided / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
