"""Decision rules against hand numbers and SciPy's own tests; records and their controls."""

import math

import numpy as np
import pytest
from scipy import stats

from metabo.errors import NumericsError
from metabo.papers.engine.theory import tables, verdicts
from metabo.papers.engine.theory.records import cell, control, describe, part, statement, vague_cells
from metabo.papers.engine.theory.verdicts import INCONCLUSIVE, REFUTED, SUPPORTED


def test_clopper_pearson_by_hand():
    """With k = 0 the upper bound solves (1 - p)^R = α, with k = R the lower one p^R = α."""
    low, high = verdicts.clopper_pearson(0, 100)
    assert low == 0 and high == pytest.approx(1 - 1e-3 ** (1 / 100), rel=1e-12)
    low, high = verdicts.clopper_pearson(100, 100)
    assert high == 1 and low == pytest.approx(1e-3 ** (1 / 100), rel=1e-12)
    for k, runs in ((1, 20), (37, 400), (399, 400)):
        low, high = verdicts.clopper_pearson(k, runs)
        assert stats.binom.sf(k - 1, runs, low) == pytest.approx(1e-3, rel=1e-9)
        assert stats.binom.cdf(k, runs, high) == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.parametrize(
    ("bad", "runs", "verdict"),
    [
        (0, 4000, SUPPORTED),
        (150, 4000, SUPPORTED),
        (200, 4000, INCONCLUSIVE),
        (260, 4000, REFUTED),
        (4, 40, INCONCLUSIVE),
    ],
)
def test_a_probability_needs_its_interval_on_one_side(bad, runs, verdict):
    found = verdicts.probability(bad, runs, 0.05)
    assert found.verdict == verdict
    assert found.numbers["low"] < bad / runs + 1e-15 and found.numbers["high"] > bad / runs
    assert (found.numbers["low"] > 0.05, found.numbers["high"] < 0.05) == (verdict == REFUTED, verdict == SUPPORTED)


def test_an_exact_probability_has_no_middle():
    assert verdicts.exact_probability(0.05, 0.05).verdict == SUPPORTED
    assert verdicts.exact_probability(0.0501, 0.05).verdict == REFUTED


def test_expectation_by_hand():
    """Values ±1 in equal number, 20,000 of them: standard error 1/√19,999, so 0.03 is 4.24 of them away, 0.028 3.96."""
    values = np.tile([1.0, -1.0], 10_000)
    assert verdicts.expectation(values, 0.03).verdict == REFUTED
    found = verdicts.expectation(values, 0.028, unit=2.0)
    assert found.verdict == SUPPORTED and found.numbers["z"] == pytest.approx(-0.028 * math.sqrt(19_999), rel=1e-12)
    assert found.numbers["effect"] == pytest.approx(-0.014)
    assert verdicts.expectation(values[:-2], 0.0).verdict == INCONCLUSIVE
    assert verdicts.expectation(np.ones(20_000), 1.0).verdict == SUPPORTED
    assert verdicts.expectation(np.ones(20_000), 1.1).verdict == REFUTED


def test_correlation_is_judged_by_its_z():
    assert verdicts.correlation(0.041, 10_000).verdict == REFUTED
    assert verdicts.correlation(0.039, 10_000).verdict == INCONCLUSIVE
    assert verdicts.correlation(0.028, 20_000).verdict == SUPPORTED


def test_distribution_against_scipy():
    values = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert verdicts.distribution(values, stats.norm()).verdict == SUPPORTED
    shifted = verdicts.distribution(values + 0.05, stats.norm())
    assert shifted.verdict == REFUTED
    assert shifted.numbers["p"] == pytest.approx(stats.kstest(values + 0.05, "norm").pvalue)
    assert verdicts.distribution(values[::2], stats.norm()).verdict == INCONCLUSIVE


def test_identity_and_inequality_tolerances():
    assert verdicts.identity(np.array([1e6]), 1e6 * (1 + 9e-9)).verdict == SUPPORTED
    found = verdicts.identity(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 4e-8]))
    assert found.verdict == REFUTED and found.numbers["right"] == 2.0 + 4e-8 and found.numbers["cases"] == 2
    assert verdicts.identity(np.array([np.nan]), 0.0).verdict == REFUTED
    assert verdicts.inequality(1.0 + 1e-12, 1.0).verdict == SUPPORTED
    found = verdicts.inequality(np.array([0.0, 2.0, 1.0]), np.array([1.0, 1.0, 1.0]), x=np.array([7.0, 8.0, 9.0]))
    assert found.verdict == REFUTED and found.numbers["violations"] == 1 and found.numbers["x"] == 8.0
    assert verdicts.inequality(np.array([np.nan]), 1.0).numbers["violations"] == 1


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ([SUPPORTED, REFUTED], REFUTED),
        ([SUPPORTED], SUPPORTED),
        ([SUPPORTED, INCONCLUSIVE], INCONCLUSIVE),
        ([], INCONCLUSIVE),
    ],
)
def test_combination(given, whole):
    assert verdicts.combine(given) == whole


TRUE, FALSE = verdicts.identity(1.0, 1.0), verdicts.identity(1.0, 2.0)


def built(claim, against):
    whole = part("a", "claim", "identity", [cell(claim, n=3)], against)
    return statement("S", "title", "§1", [whole])


def test_a_control_that_is_not_refuted_takes_the_power():
    assert built(TRUE, control("false", [cell(FALSE)]))["verdict"] == SUPPORTED
    planted = built(TRUE, control("planted: true", [cell(TRUE)]))
    assert (planted["status"], planted["verdict"]) == ("no power", INCONCLUSIVE)
    partly = built(TRUE, control("in one of two cells", [cell(FALSE), cell(TRUE)]))
    assert partly["status"] == "no power", "a control must be refuted in every cell"
    assert built(TRUE, None)["status"] == "no power", "a statement without a control is not decided"
    assert built(FALSE, control("planted: true", [cell(TRUE)]))["verdict"] == INCONCLUSIVE


def test_every_part_needs_its_own_control():
    against = control("false", [cell(FALSE)])
    with_control, without = (
        part(name, "claim", "identity", [cell(TRUE)], c) for name, c in (("a", against), ("b", None))
    )
    assert statement("S", "title", "§1", [with_control, with_control])["verdict"] == SUPPORTED
    record = statement("S", "title", "§1", [with_control, without])
    assert (record["status"], record["verdict"]) == ("no power", INCONCLUSIVE)
    assert "no control" in describe(record)
    powerless = part("b", "claim", "identity", [cell(TRUE)], control("planted: true", [cell(TRUE)]))
    assert statement("S", "title", "§1", [with_control, powerless])["status"] == "no power"
    assert built(TRUE, control("empty", []))["status"] == "no power"


def test_a_control_is_decided_by_the_rule_of_its_part():
    with pytest.raises(
        ValueError, match="part 'a' of kind 'identity': a cell of it or of its control has another kind"
    ):
        built(TRUE, control("a coverage", [cell(verdicts.exact_probability(0.9, 0.1))]))
    with pytest.raises(ValueError, match="has another kind"):
        part("a", "claim", "expectation", [cell(TRUE)])


def test_a_refuted_statement_shows_its_counterexample():
    record = built(FALSE, control("false", [cell(FALSE)]))
    assert record["verdict"] == REFUTED
    assert record["counterexample"] | {"part": "a", "n": 3, "left": 1.0, "right": 2.0} == record["counterexample"]
    assert "counterexample (a)" in describe(record) and "S (printed), §1: REFUTED, ok" in describe(record)
    assert built(TRUE, control("false", [cell(FALSE)]))["counterexample"] is None


def test_records_hold_plain_numbers_only():
    found = verdicts.inequality(np.array([np.inf]), np.array([1.0]))
    record = cell(found, count=np.int64(3), share=np.float64(0.5), pair=np.array([1.0, 2.0]))
    assert record["setting"] == {"count": 3, "share": 0.5, "pair": [1.0, 2.0]}
    assert record["numbers"]["smaller"] == "inf" and type(record["setting"]["count"]) is int


def test_unknown_kinds_and_versions_are_refused():
    with pytest.raises(ValueError, match="kind 'guess' is none of probability"):
        part("a", "b", "guess", [])
    with pytest.raises(ValueError, match="version 'old' is none of printed"):
        statement("a", "b", "c", [], "old")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_is_no_support(value):
    for rule in (
        lambda: verdicts.exact_probability(value, 0.1),
        lambda: verdicts.correlation(value, 20_000),
        lambda: verdicts.distribution(np.array([0.1, value]), stats.norm()),
        lambda: verdicts.expectation(np.array([0.1, value]), 0.0),
    ):
        with pytest.raises(NumericsError, match="the computation of the check is at fault"):
            rule()


def test_what_a_bound_could_be_divided_by_before_it_is_refuted():
    """The number `sees` is where the verdict turns, of shares and of single violations."""
    values = np.random.default_rng(0).gamma(2.0, size=1000)
    large = np.full(1000, 30.0)

    def decided(factor):
        shrunk = large / factor
        return verdicts.probability(int((values > shrunk).sum()), 1000, 0.1, verdicts.least_ratio(shrunk, values))

    sees = decided(1.0).numbers["sees"]
    assert 1.0 < sees < 30.0 and decided(1.0).verdict == SUPPORTED
    assert decided(0.999 * sees).verdict != REFUTED and decided(1.001 * sees).verdict == REFUTED
    assert decided(sees).numbers["sees"] == pytest.approx(1.0)
    once = verdicts.upper_bound(values, large).numbers["sees"]
    assert once == pytest.approx(30.0 / values.max())
    assert verdicts.upper_bound(values, large / (1.001 * once)).verdict == REFUTED
    assert verdicts.upper_bound(values, large / (0.999 * once)).verdict == SUPPORTED


def test_what_is_never_exceeded_says_nothing_and_what_is_no_number_exceeds_all():
    assert verdicts.least_error(np.full(1000, np.inf), 0.1) == np.inf
    assert verdicts.least_error(np.array([2.0, 3.0]), 0.5) == np.inf, "two runs cannot refute a half"
    assert verdicts.least_error(np.full(100, np.nan), 0.1) == 0.0
    assert list(verdicts.least_ratio(np.array([[4.0, 9.0], [1.0, 1.0]]), np.array([[2.0, 3.0], [0.0, -1.0]]))) == [
        2,
        np.inf,
    ]
    assert verdicts.upper_bound(np.zeros(3), np.ones(3)).numbers["sees"] == np.inf


@pytest.mark.parametrize(
    ("sees", "verdict", "status"),
    [
        ([5.0], SUPPORTED, "ok"),
        ([500.0], INCONCLUSIVE, "not informative"),
        ([500.0, 5.0], INCONCLUSIVE, "not informative"),
        ([50.0, 5.0], SUPPORTED, "ok"),
        ([np.inf], INCONCLUSIVE, "not informative"),
        ([], SUPPORTED, "ok"),
    ],
)
def test_a_bound_far_above_all_that_happens_is_not_informative(sees, verdict, status):
    against = control("false", [cell(verdicts.inequality(2.0, 1.0))])
    nothing = verdicts.upper_bound(np.zeros(1), np.ones(1))
    found = [verdicts.upper_bound(np.ones(1), np.array([s])) if np.isfinite(s) else nothing for s in sees]
    found = found or [verdicts.inequality(1.0, 2.0)]
    made = [part(str(n), "claim", "inequality", [cell(ruling)], against) for n, ruling in enumerate(found)]
    record = statement("S", "title", "§1", made)
    assert (record["verdict"], record["status"]) == (verdict, status)
    assert ("would refute the bound divided by" in describe(record)) == bool(sees)
    assert record["sees"] == (None if not sees else max(sees) if np.isfinite(max(sees)) else "inf")
    refuted = part("r", "claim", "inequality", [cell(verdicts.inequality(2.0, 1.0))], against)
    assert statement("S", "title", "§1", [*made, refuted])["verdict"] == REFUTED


def test_one_cell_that_sees_enough_makes_its_part_informative_but_no_other_part():
    """The worst part counts: two parts of two cells each, of which one sees no factor below 120."""
    against = control("false", [cell(verdicts.inequality(2.0, 1.0))])

    def made(name, *sees):
        cells = [cell(verdicts.upper_bound(np.ones(1), np.array([s]))) for s in sees]
        return part(name, "claim", "inequality", cells, against)

    sharp, vague = made("sharp", 500.0, 5.0), made("vague", 500.0, 120.0)
    assert statement("S", "title", "§1", [sharp])["status"] == "ok" and vague_cells(sharp["cells"]) == (1, 2)
    record = statement("S", "title", "§1", [sharp, vague])
    assert (record["status"], record["verdict"], record["sees"]) == ("not informative", INCONCLUSIVE, 120.0)
    assert "sharp: SUPPORTED in 2 cells, 1 of 2 pass the bound/100 too" in describe(record)
    refuted = made("refuted", 0.5)
    assert statement("S", "title", "§1", [vague, refuted])["sees"] == 0.5, "the factor of the cell that refutes it"
    (row,) = tables.parts([{"check": "c", "share": 1.0, "statements": [statement("S", "title", "§1", [sharp])]}])[
        "sees"
    ]
    assert row == "if 5× smaller, 1 of 2 cells above 100"


@pytest.mark.parametrize(
    ("sees", "said"),
    [
        (5.0, "if 5× smaller"),
        (2941.0, "if 2,900× smaller"),
        (1e7, "if 10,000,000× smaller"),
        (0.91, "even if 1.1× larger"),
        (1.04, "if any smaller"),
        (0.999, "even if any larger"),
        (0.0, "at any size"),
        (math.inf, "never"),
    ],
)
def test_the_factor_is_said_in_words(sees, said):
    assert tables._factor(sees) == said
