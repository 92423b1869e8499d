"""Every check on a made result that must pass and one that must fail; some also on one that it cannot test."""

import pytest

from metabo.claims import checks
from metabo.claims.verdicts import FAILED, REPLICATED, UNTESTABLE, WEAK
from metabo.errors import ConfigError, DataError
from tests.claims.cases_across import ACROSS, spaces
from tests.claims.cases_bo import BO
from tests.claims.cases_clusters import CLUSTERS, ELIMINATION
from tests.claims.cases_studies import STUDIES, infeasible, theory
from tests.claims.cases_sweeps import SWEEPS, endings
from tests.claims.cases_tables import TABLES, pearsons, speedups
from tests.claims.made import bo, numbers, over

CASES = BO | TABLES | SWEEPS | STUDIES | ACROSS | CLUSTERS | ELIMINATION


def test_every_check_has_a_case():
    assert set(CASES) == set(checks.CHECKS)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_good_result_passes_and_a_bad_one_fails(name):
    good, bad = (checks.run(name, *CASES[name](which)) for which in (True, False))
    assert good.verdict == REPLICATED, good.said
    assert bad.verdict == FAILED, bad.said
    assert good.said and bad.said and good.said != bad.said
    for found in (good, bad):
        assert found.low is None or found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("name", "evidence", "arguments"),
    [
        # the right sign on a difference that varies more between tasks than it is large
        ("lower_regret", bo(rand=0.5, h_nll=0.4, benchmark="tables"), {"lower": [["rand", "h_nll"]], "than": ["rand"]}),
        (
            "correlation",
            numbers(pearson=[{"comparison": "a", "r": 0.5, "low": 0.1, "high": 0.7, "n": 9}]),
            {"comparison": "a", "printed": 0.9},
        ),
        (
            "trend_down",
            numbers(trend=over("method", method=["ablr"], spearman=[-0.2], p=[0.6], points=[9])),
            {"methods": ["ablr"]},
        ),
        ("matches", spaces(True), {"method": "mphd", "reference": "hgp_truth", "margin": 0.01}),
        ("by_margin", spaces(True), {"method": "mphd", "other": "mphd_non_nn", "panel": "default", "deviations": 9}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_result_between_is_weak(name, evidence, arguments):
    if name == "lower_regret":
        table = evidence.trajectories
        spread = table["task"].isin(["t0", "t1"]) & (table["method"] == "h_nll")
        table.loc[spread, "simple_regret"] *= 1.5  # above Rand's there, below it elsewhere
    assert checks.run(name, evidence, arguments).verdict == WEAK


@pytest.mark.parametrize(
    ("name", "evidence", "arguments"),
    [
        ("lower_regret", bo(rand=0.5), {"lower": ["h_nll"]}),
        ("place", bo(rand=0.5), {"method": "ablr", "at": 100}),
        ("lower_in_pairs", bo(rand=0.5), {"pairs": [["fsbo@held_out_points_100", "fsbo@held_out_sweep"]]}),
        (
            "as_stated",
            numbers(count=[{"count": "tasks", "stated": float("nan"), "found": 24, "differs": 0}]),
            {"counts": ["tasks"]},
        ),
        (
            "printed_cells",
            numbers(best_metric=[{"task": "digits MLP 8", "method": "ablr", "mean": 1.0, "std": 0.1}]),
            {"table": "best_metric", "metric": "", "printed": "hyperbo_tab05 error_percent"},
        ),
        ("only_infeasible", infeasible(True), {"method": "mimo_online", "tasks": ["ImageNet"]}),
        ("negative_in", pearsons(True, rpart_6=0.3), {"spaces": ["5636"]}),
        ("overtaken_at", spaces(True), {"method": "rand", "reference": "mphd", "at": 300}),
        (
            "best_are",
            numbers(ending=endings(True)),
            {"panel": "H-EKL", "metric": "last", "methods": ["h_ekl_linear_32"]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_there_is_not_testable(name, evidence, arguments):
    found = checks.run(name, evidence, arguments)
    assert found.verdict == UNTESTABLE and found.said and found.value is None


def test_the_numbers_of_an_order_are_those_of_the_data():
    found = checks.run("lower_regret", bo(h_nll=0.1, rand=0.5), {"lower": ["h_nll"], "than": ["rand"]})
    assert found.value == pytest.approx(-0.4 * (1 + 0.025 + 0.001))
    assert "H-NLL minus Rand at iteration 4: -0.41 [" in found.said and found.unit == "simple regret"


def test_medians_of_speedups_have_intervals():
    found = checks.run("speedup", speedups(True), {"methods": ["h_nll"], "factor": 3, "over": "rand", "by": "median"})
    assert found.value == 7.5 and found.low <= 7.5 <= found.high and found.verdict == REPLICATED


def test_an_unknown_statement_or_table_is_told():
    with pytest.raises(ConfigError, match="no statement 'Theorem 6, printed' among"):
        checks.run("statements", theory(True), {"names": ["Theorem 6, printed"]})
    with pytest.raises(DataError, match="no table 'differ'; it holds verdict"):
        checks.run("minima_differ", theory(True), {})
    with pytest.raises(DataError, match="the artefact has no trajectories, only data"):
        checks.run("place", theory(True), {"method": "ablr", "at": 1})
