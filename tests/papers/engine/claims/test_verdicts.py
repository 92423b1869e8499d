"""The decision rules: orders, counts, trends, and what several parts of a claim come to."""

import math

import pytest

from metabo.papers.engine.claims.verdicts import (
    FAILED,
    REPLICATED,
    UNTESTABLE,
    WEAK,
    Finding,
    counted,
    equivalent,
    order,
    ordered,
    share,
    tally,
    together,
    trend,
    untestable,
    worst,
)


@pytest.mark.parametrize(
    ("estimate", "below", "verdict"),
    [
        ((-1.0, -2.0, -0.1), True, REPLICATED),
        ((-1.0, -2.0, 0.0), True, WEAK),  # 0 belongs to the interval
        ((-1.0, -2.0, 0.5), True, WEAK),
        ((-1.0, math.nan, math.nan), True, WEAK),
        ((0.0, 0.0, 0.0), True, FAILED),
        ((0.1, -2.0, 0.5), True, FAILED),
        ((1.0, 0.1, 2.0), True, FAILED),
        ((1.0, 0.1, 2.0), False, REPLICATED),
        ((1.0, -0.1, 2.0), False, WEAK),
        ((-1.0, -2.0, -0.1), False, FAILED),
        ((math.nan, math.nan, math.nan), True, FAILED),
    ],
)
def test_an_order_is_decided_by_sign_and_interval(estimate, below, verdict):
    assert ordered(*estimate, below) == verdict
    found = order("a minus b", estimate, below, "regret")
    assert found.verdict == verdict and found.unit == "regret"
    assert (found.low is None) == math.isnan(estimate[1])


def test_counts_and_trends():
    assert counted(True) == REPLICATED and counted(False) == FAILED
    assert trend("x", -0.5, 0.01).verdict == REPLICATED and trend("x", -0.5, 0.2).verdict == WEAK
    assert trend("x", 0.5, 0.01).verdict == FAILED and trend("x", 0.5, 0.01, rises=True).verdict == REPLICATED
    assert trend("x", math.nan, math.nan).verdict == UNTESTABLE


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        ((0.02, -0.05, 0.09), REPLICATED),
        ((0.05, 0.02, 0.08), REPLICATED),  # a difference, but a small one
        ((0.0, -0.1, 0.1), REPLICATED),
        ((0.02, -0.2, 0.24), WEAK),  # too few runs to see anything
        ((0.02, math.nan, math.nan), WEAK),
        ((0.2, -0.1, 0.5), FAILED),
        ((-0.2, -0.3, -0.1), FAILED),
        ((0.2, math.nan, math.nan), FAILED),
        ((math.nan, math.nan, math.nan), FAILED),
    ],
)
def test_about_equal_needs_an_interval_within_the_margin(estimate, verdict):
    assert equivalent(*estimate, 0.1) == verdict


def test_only_independent_draws_have_an_interval():
    alone = share(8, 10, "tasks", True)
    assert (alone.value, alone.count, alone.of, alone.low, alone.high) == (0.8, 8, 10, None, None)
    found = share(8, 10, "seeds", True, independent=True)
    assert (found.value, found.count, found.of) == (0.8, 8, 10)
    assert found.low == pytest.approx(0.4439, abs=1e-4) and found.high == pytest.approx(0.9748, abs=1e-4)
    assert share(0, 0, "tasks", True).verdict == UNTESTABLE


def part(verdict, value=None):
    return Finding(verdict, f"{verdict} {value}", value)


def test_parts_are_as_good_as_the_worst():
    found = together([part(REPLICATED, 1.0), part(FAILED, 2.0), part(WEAK, 3.0)])
    assert (found.verdict, found.value) == (FAILED, 2.0) and found.said.startswith("not replicated 2.0")
    assert together([part(REPLICATED, 1.0), part(UNTESTABLE)]).verdict == REPLICATED
    assert together([part(UNTESTABLE), part(UNTESTABLE)]).verdict == UNTESTABLE
    assert together([]).verdict == UNTESTABLE
    alone = part(WEAK, 1.0)
    assert together([alone]) is alone


def test_what_could_not_be_tested_is_named():
    lost = [untestable(f"{name} was not run") for name in ("MAF", "MIMO", "FSBO", "ABLR")]
    found = together([part(REPLICATED, 1.0), lost[0]])
    assert (found.verdict, found.said) == (REPLICATED, "replicated 1.0; not testable: MAF was not run")
    said = together([part(WEAK, 1.0), *lost]).said
    assert said == "weak 1.0; not testable: MAF was not run; MIMO was not run; and 2 more"
    said = together([*(part(REPLICATED, float(n)) for n in range(5)), lost[0]], "tasks").said
    assert said.startswith("5 replicated, 1 not testable of 6 tasks: ")
    assert said.endswith("and 2 more; not testable: MAF was not run")
    assert together(lost[:2]).said == "MAF was not run; MIMO was not run"


def test_the_most_contrary_of_equal_parts_speaks():
    parts = [part(WEAK, -3.0), part(WEAK, -1.0), part(WEAK, -2.0)]
    assert together(parts).value == -3.0  # the first
    assert together(parts, contrary=1).value == -1.0
    assert together(parts, contrary=-1).value == -3.0


def test_many_parts_are_counted():
    said = together([part(REPLICATED, float(n)) for n in range(5)] + [part(WEAK, 9.0)], "tasks").said
    assert said.startswith("5 replicated, 1 weak of 6 tasks: weak 9.0; ") and said.endswith("and 3 more")


def test_worst_and_tally():
    findings = [part(REPLICATED), part(WEAK), part(WEAK), untestable("no data")]
    assert worst(findings) == WEAK and worst([untestable("no data")]) == UNTESTABLE
    assert tally(findings) == "1 replicated, 2 weak, 1 not testable"
