"""Candidates that are dropped and fitted: which runs count."""

import pandas as pd
import pytest

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, UNTESTABLE
from metabo.papers.hegpucb import gates
from metabo.papers.hegpucb.checks import candidates, regret
from metabo.papers.hegpucb.paired import by_seed, effect_of
from tests.papers.engine.claims.cases_elimination import dropped, ends, followed, queries, regrets


def test_a_candidate_counts_only_if_it_is_the_likeliest_after_the_observation_that_drops_it_too():
    found = candidates.likeliest_dropped(dropped(True))
    assert found.verdict == HOLDS and found.count == 1
    assert "before and after the observation (decomposition 1 of 100; just before it, 1 of 100)" in found.said
    before = candidates.likeliest_dropped(dropped(True, last=2, seeds=9))
    assert before.verdict == UNDECIDED and before.count == 0 and "just before it, 1 of 9" in before.said


def test_where_no_candidate_is_true_no_dropped_one_is_wrong():
    assert candidates.likeliest_dropped(dropped(True, problem="lengthscale")).verdict == UNTESTABLE


@pytest.mark.parametrize(("by_share", "verdict"), [(False, UNDECIDED), (True, HOLDS)])
def test_one_fit_at_the_end_of_the_search_moves_a_mean_but_no_share(by_share, verdict):
    rows = [{"piece": piece, "seed": seed, "period": period} for piece, seed, period in FITTED]
    evidence = Evidence("synthetic", {"studies": lambda: {"hegpucb_fits": {"fit": pd.DataFrame(rows)}}})
    assert candidates.fitted_periods(evidence, 1.0, [0.25], by_share=by_share).verdict == verdict


FITTED = [
    *((0, seed, 0.25 + 1e-4 * seed) for seed in range(19)),
    (0, 19, 2.0),
    *((1, seed, 1.0 + 1e-4 * seed) for seed in range(20)),
]
"""Twenty fits of one piece, the last at the end of the search, and of the whole."""


def test_power_is_for_a_tenth_of_the_others_cumulative_regret_and_of_random_points_simple_one():
    """Random points never stop exploring: a tenth of their cumulative regret can be nearly all of a method's."""
    runs = regrets(1.0, half=0.0).studies["hegpucb_runs"]["run"]
    wide = {measure: by_seed(runs[runs["iteration"] == 50], measure) for measure in ("simple", "cumulative")}
    assert effect_of(wide["simple"], "mle", "simple") == pytest.approx(0.3)  # random points have 3
    assert effect_of(wide["cumulative"], "mle", "cumulative") == pytest.approx(0.2)  # MLE has 2
    assert effect_of(
        by_seed(queries(["mle"], iterations=(1,), simple=2.0), "simple"), "mle", "simple"
    ) == pytest.approx(0.2)


def test_runs_that_begin_with_a_short_length_scale_do_not_count_as_stuck_or_not():
    """Five runs begin long and end at the right end; five that begin short and find the peak are left out."""
    whole = candidates.stuck(ends(5, short=range(5, 10)), "mle", long=0.7)
    assert "in the end: 5 of 5" in whole.said
    assert candidates.stuck(ends(5), "mle", long=0.7).verdict == UNDECIDED
    none = candidates.stuck(ends(5, short=range(10)), "mle", long=0.7)
    assert none.verdict == UNTESTABLE and "begins with a length-scale of at least 0.7" in none.said


def test_a_piece_of_another_period_than_ours_says_nothing_about_the_papers_sentence():
    rows = [
        {"piece": piece, "seed": seed, "period": 0.4 if piece == 0 else 1.0} for piece in (0, 1) for seed in range(20)
    ]
    evidence = Evidence("synthetic", {"studies": lambda: {"hegpucb_fits": {"fit": pd.DataFrame(rows)}}})
    assert candidates.fitted_periods(evidence, 1.0).verdict == HOLDS
    assert candidates.fitted_periods(evidence, 1.0, [0.25]).verdict == CONTRADICTED
    found = candidates.fitted_periods(
        Evidence("synthetic", {"studies": lambda: {"hegpucb_fits": {"fit": pd.DataFrame(rows).assign(period=1.0)}}}),
        1.0,
    )
    assert found.verdict == CONTRADICTED and "20 of 20 fits of a piece find period 1" in found.said
    alone = pd.DataFrame([row for row in rows if row["piece"] == 1])
    lone = candidates.fitted_periods(Evidence("synthetic", {"studies": lambda: {"hegpucb_fits": {"fit": alone}}}), 1.0)
    assert lone.verdict == UNTESTABLE


@pytest.mark.parametrize(("given", "good"), [({}, True), ({"lengthscale": 0.144}, True), ({"lengthscale": 2.0}, False)])
def test_where_candidates_share_a_length_scale_the_artefact_says_which(given, good):
    """HE-GP-UCB is ahead with 0.144 here, which is that of the true candidate and the default, and MLE with 2."""
    parts = {0.144: followed(True), 2.0: followed(False)}
    runs = [one.studies["hegpucb_runs"]["run"].assign(lengthscale=scale) for scale, one in parts.items()]
    table = pd.concat(runs, ignore_index=True)
    table["cumulative"] = (table["u"] != table["truth"]) * 1.0 + 0.01 * table["seed"]
    table["cumulative"] = table.groupby(["lengthscale", "method", "seed"])["cumulative"].cumsum()
    evidence = Evidence("synthetic", {"studies": lambda: {"hegpucb_common": {"run": table}}}, given)
    verdict = HOLDS if good else CONTRADICTED
    assert candidates.fewer_wrong(evidence, "period", "mle").verdict == verdict
    assert regret.seeds_order(evidence, "period", ["he_gp_ucb"], ["mle"]).verdict == verdict
    (gate,) = [gate for gate in gates.gates(evidence_with_drops(evidence, table)) if gate.name == gates.ERRING]
    assert gate.value == pytest.approx(runs[0 if good else 1].query("method == 'mle'")["u"].mean())


def evidence_with_drops(evidence, table):
    """The same with the columns that only gates read."""
    made = table.assign(rejected=False, simple=1.0)
    return Evidence("synthetic", {"studies": lambda: {"hegpucb_common": {"run": made}}}, evidence.parameters)
