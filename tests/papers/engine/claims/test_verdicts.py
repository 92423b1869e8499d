"""The decision rules: orders, shares, trends, power, and what several parts of a claim come to."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t, ttest_1samp

from metabo.papers.engine.claims.conjunctions import any_of, tally, together
from metabo.papers.engine.claims.power import clusters_needed, power_of
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    about_equal,
    equivalent,
    fact,
    no_worse,
    order,
    ordered,
    share,
    similar,
    trend,
    untestable,
)

NONE = math.nan


@pytest.mark.parametrize(
    ("estimate", "below", "verdict"),
    [
        ((-1.0, -2.0, -0.1), True, HOLDS),
        ((-1.0, -2.0, 0.0), True, UNDECIDED),  # 0 belongs to the interval
        ((-1.0, -2.0, 0.5), True, UNDECIDED),
        ((-1.0, NONE, NONE), True, UNDECIDED),
        ((0.0, 0.0, 0.0), True, UNDECIDED),
        ((0.1, -2.0, 0.5), True, UNDECIDED),  # the other sign is no contradiction
        ((1.0, 0.1, 2.0), True, CONTRADICTED),
        ((1.0, 0.1, 2.0), False, HOLDS),
        ((1.0, -0.1, 2.0), False, UNDECIDED),
        ((-1.0, -2.0, -0.1), False, CONTRADICTED),
        ((NONE, NONE, NONE), True, UNDECIDED),
    ],
)
def test_an_order_is_decided_by_its_interval(estimate, below, verdict):
    assert ordered(*estimate[1:], below) == verdict
    found = order("a minus b", estimate, below, "regret")
    assert found.verdict == verdict and found.unit == "regret"
    assert (found.low is None) == math.isnan(estimate[1])


def test_the_p_values_of_an_order_are_those_of_the_t_test():
    values = np.random.default_rng(0).normal(0.3, 1.0, 8)
    test = ttest_1samp(values, 0.2)
    interval = test.confidence_interval(0.95)
    found = order("a", (values.mean(), interval.low, interval.high), True, bound=0.2, clusters=8)
    low, high = (ttest_1samp(values, 0.2, alternative=side).pvalue for side in ("less", "greater"))
    assert found.support == pytest.approx(low) and found.against == pytest.approx(high)
    above = order("a", (values.mean(), interval.low, interval.high), False, bound=0.2, clusters=8)
    assert above.support == pytest.approx(high) and above.against == pytest.approx(low)


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        ((0.02, -0.05, 0.09), HOLDS),
        ((0.05, 0.02, 0.08), HOLDS),  # a difference, but a small one
        ((0.0, -0.1, 0.1), HOLDS),
        ((0.02, -0.2, 0.24), UNDECIDED),  # too few runs to see anything
        ((0.02, NONE, NONE), UNDECIDED),
        ((0.2, -0.1, 0.5), UNDECIDED),
        ((-0.2, -0.3, -0.05), UNDECIDED),
        ((-0.2, -0.3, -0.11), CONTRADICTED),
        ((0.2, 0.15, 0.25), CONTRADICTED),
    ],
)
def test_about_equal_needs_an_interval_within_the_margin(estimate, verdict):
    assert equivalent(*estimate[1:], 0.1) == verdict
    found = about_equal("a", estimate, 0.1, clusters=9)
    assert found.verdict == verdict
    if math.isfinite(estimate[1]):
        assert (found.against <= 0.025) == (verdict == CONTRADICTED)
        assert (found.support <= 0.025 + 1e-12) == (verdict == HOLDS)


@pytest.mark.parametrize(
    ("estimate", "below", "verdict"),
    [
        ((-1.0, -2.0, 0.1), True, HOLDS),
        ((0.0, -0.2, 0.2), True, UNDECIDED),
        ((0.3, 0.2, 0.4), True, CONTRADICTED),
        ((0.3, 0.2, 0.4), False, HOLDS),
        ((-0.3, -0.4, -0.2), False, CONTRADICTED),
        ((0.0, NONE, NONE), True, UNDECIDED),
    ],
)
def test_similar_or_better_is_not_worse_by_more_than_the_margin(estimate, below, verdict):
    assert no_worse(*estimate[1:], 0.1, below) == verdict
    found = similar("a", estimate, 0.1, below, clusters=5)
    assert found.verdict == verdict
    if math.isfinite(estimate[1]):
        assert (found.against <= 0.025) == (verdict == CONTRADICTED)


def test_facts_and_trends():
    assert fact("x", True).verdict == HOLDS and fact("x", False).verdict == CONTRADICTED
    assert trend("x", -0.5, 0.01).verdict == HOLDS and trend("x", -0.5, 0.2).verdict == UNDECIDED
    assert trend("x", 0.5, 0.01).verdict == CONTRADICTED and trend("x", 0.5, 0.2).verdict == UNDECIDED
    assert trend("x", 0.5, 0.01, rises=True).verdict == HOLDS
    assert trend("x", NONE, NONE).verdict == UNTESTABLE


def test_a_share_of_draws_has_the_exact_interval():
    found = share("seeds", 9, 10, 0.5)
    assert (found.verdict, found.value, found.count, found.of) == (HOLDS, 0.9, 9, 10)
    assert found.low == pytest.approx(0.5550, abs=1e-4) and found.high == pytest.approx(0.9975, abs=1e-4)
    assert found.support == pytest.approx(binomtest(9, 10, 0.5, "greater").pvalue)
    assert found.against == pytest.approx(binomtest(9, 10, 0.5, "less").pvalue)
    assert share("seeds", 8, 10, 0.5).verdict == UNDECIDED and share("seeds", 1, 10, 0.5).verdict == CONTRADICTED
    assert share("seeds", 0, 50, 0.1, above=False).verdict == HOLDS
    assert share("seeds", 0, 20, 0.1, above=False).verdict == UNDECIDED  # 0 of 20 may be 0.16
    assert share("seeds", 0, 0, 0.5).verdict == UNTESTABLE


def part(verdict, value=None, against=None, support=None):
    return Finding(verdict, f"{verdict} {value}", value, against=against, support=support)


GOOD, CONTRARY, OPEN = part(HOLDS, 1.0, 1.0, 1e-3), part(CONTRADICTED, 2.0, 1e-3, 1.0), part(UNDECIDED, 3.0, 0.3, 0.6)


def test_a_conjunction_needs_all_its_parts():
    assert together([GOOD, GOOD]).verdict == HOLDS
    assert together([GOOD, OPEN, GOOD]).verdict == UNDECIDED  # 57 of 58
    assert together([GOOD, CONTRARY, OPEN]).verdict == CONTRADICTED
    assert together([GOOD, CONTRARY]).value == 2.0
    assert together([part(UNTESTABLE), part(UNTESTABLE)]).verdict == UNTESTABLE
    assert together([]).verdict == UNTESTABLE
    assert together([OPEN]) is OPEN


def test_a_conjunction_that_cannot_be_tested_in_full_does_not_hold():
    found = together([GOOD, untestable("MAF was not run")])
    assert (found.verdict, found.said) == (UNTESTABLE, "holds 1.0; not testable: MAF was not run")
    assert together([OPEN, untestable("x")]).verdict == UNDECIDED
    assert together([CONTRARY, untestable("x")]).verdict == CONTRADICTED
    lost = [untestable(f"{name} was not run") for name in ("MAF", "MIMO", "FSBO")]
    assert together([OPEN, *lost]).said == "undecided 3.0; not testable: MAF was not run; MIMO was not run; and 1 more"


def test_a_reason_that_several_parts_share_is_said_once():
    gate, absent = untestable("the gate fails"), untestable("MAF was not run")
    assert together([gate, gate, absent, gate]).said == "the gate fails; MAF was not run"
    assert any_of([gate, gate]).said == "the gate fails"
    assert together([OPEN, gate, gate, absent]).said == "undecided 3.0; not testable: the gate fails; MAF was not run"


def test_a_contradicted_conjunction_is_corrected_for_its_parts():
    """Of forty parts one beyond its 97.5 % bound is what chance gives: Holm compares 40 p with 0.025."""
    barely = part(CONTRADICTED, 2.0, 0.02, 1.0)
    assert together([barely, OPEN]).verdict == UNDECIDED
    assert "not after Holm's correction over 40" in together([barely, *[OPEN] * 39]).said
    assert together([part(CONTRADICTED, 2.0, 6e-4)] + [OPEN] * 39).verdict == CONTRADICTED
    assert together([fact("a count", False)] + [OPEN] * 39).verdict == CONTRADICTED


def test_a_part_that_cannot_be_tested_makes_the_others_no_louder():
    barely = part(CONTRADICTED, 2.0, 0.02, 1.0)
    found = together([barely, untestable("a gate fails")])
    assert together([barely, OPEN]).verdict == found.verdict == UNDECIDED
    assert found.against == 0.04 and "correction over 2" in found.said


def test_the_support_of_a_conjunction_is_its_weakest():
    assert together([GOOD, part(HOLDS, 1.0, 1.0, 0.02)]).support == 0.02


def test_existence_needs_one_part():
    assert any_of([OPEN, GOOD, CONTRARY]).verdict == HOLDS and any_of([OPEN, GOOD]).value == 1.0
    assert any_of([OPEN, CONTRARY]).verdict == UNDECIDED
    assert any_of([CONTRARY, CONTRARY]).verdict == CONTRADICTED
    lost = any_of([CONTRARY, untestable("x")])  # which might be the one
    assert lost.verdict == UNTESTABLE and lost.against == 1.0 and lost.said.endswith("not testable: x")
    assert any_of([GOOD, untestable("x"), untestable("y")]).support == pytest.approx(3e-3)
    assert any_of([GOOD, untestable("x")]).verdict == HOLDS and any_of([OPEN, untestable("x")]).verdict == UNDECIDED
    assert any_of([]).verdict == UNTESTABLE and any_of([untestable("x")]).verdict == UNTESTABLE


def test_many_parts_are_counted():
    said = together([GOOD] * 5 + [OPEN], "tasks").said
    assert said.startswith("5 hold, 1 undecided of 6 tasks: undecided 3.0; ") and said.endswith("and 3 more")
    assert tally([GOOD, OPEN, OPEN, untestable("x")]) == "1 holds, 2 undecided, 1 not testable"


@pytest.mark.parametrize("clusters", [3, 5, 7, 20, None])
def test_power_is_how_often_a_simulated_study_finds_the_effect(clusters):
    rng, effect = np.random.default_rng(1), 0.8
    count = clusters or 400
    samples = rng.normal(effect, 1.0, (20_000, count))
    test = ttest_1samp(samples, 0.0, axis=1)
    found = np.mean((test.pvalue < 0.05) & (samples.mean(axis=1) > 0))
    crit = norm.ppf(0.975) if clusters is None else t.ppf(0.975, clusters - 1)
    assert power_of(crit / math.sqrt(count), effect, clusters) == pytest.approx(found, abs=0.015)


def test_an_interval_of_another_level_has_the_p_value_of_its_data_and_less_power():
    """An existence claim tests each problem at its share of the level; its p value must not be that of the share."""
    sample = np.random.default_rng(2).normal(-0.5, 1.0, 12)
    error, expected = sample.std(ddof=1) / math.sqrt(12), ttest_1samp(sample, 0.0, alternative="less").pvalue
    found = {}
    for level in (0.95, 0.9875):
        half = t.ppf(0.5 + level / 2, 11) * error
        found[level] = order("a", (sample.mean(), sample.mean() - half, sample.mean() + half), clusters=12, level=level)
        assert found[level].support == pytest.approx(expected)
        assert found[level].against == pytest.approx(1 - expected)
    half, wide = (t.ppf(0.5 + level / 2, 11) * error for level in found)
    assert power_of(wide, error, 12, 0.9875) < power_of(half, error, 12)
    assert clusters_needed(wide, error, 12, level=0.9875) > clusters_needed(half, error, 12)


def test_the_clusters_needed_have_the_power():
    half = t.ppf(0.975, 6) / math.sqrt(7)  # seven units of spread 1
    needed = clusters_needed(half, 0.8, 7)
    reach = [power_of(t.ppf(0.975, n - 1) / math.sqrt(n), 0.8, n) for n in (needed - 1, needed)]
    assert reach[0] < 0.8 <= reach[1]
    assert clusters_needed(half, 1e-4, 7) is None
    found = order("a", (-0.1, -0.1 - half, -0.1 + half), effect=0.8, clusters=7)
    assert found.needed == needed and f"80 % needs {needed} units in place of 7" in found.said
    assert order("a", (-1.0, -1.1, -0.9), effect=0.8, clusters=7).power is None  # decided
