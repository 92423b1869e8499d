"""Every check on a made result that must pass and one that must fail; some also on one that it cannot test."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma, ttest_1samp
from scipy.stats import t as student

from metabo.errors import ConfigError, DataError
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import BY_COMPARISON
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, UNTESTABLE, order
from metabo.papers.hyperbo.checks.correlations import _order_of_r
from metabo.papers.mphd.checks.priors import _mass
from metabo.plan.runs import method_of
from tests.papers.engine.claims.cases_across import ACROSS, priors, spaces, suited
from tests.papers.engine.claims.cases_bo import BO
from tests.papers.engine.claims.cases_clusters import CLUSTERS, changed, costs, queries
from tests.papers.engine.claims.cases_elimination import (
    APART,
    ELIMINATION,
    PROBLEMS,
    dropped,
    ends,
    fits,
    late,
    recovered,
    regrets,
    rejecting,
    study,
    with_runs,
)
from tests.papers.engine.claims.cases_studies import STUDIES, infeasible, theory
from tests.papers.engine.claims.cases_sweeps import EQUAL, SWEEPS, endings, gaps, line, structures
from tests.papers.engine.claims.cases_tables import TABLES, correlated, pearsons, ranks, speedups
from tests.papers.engine.claims.made import CHECKS, bo, numbers, run, runs

CASES = BO | TABLES | SWEEPS | STUDIES | ACROSS | CLUSTERS | ELIMINATION


def test_every_check_has_a_case():
    assert set(CASES) == {name for name in CHECKS if not name.startswith("own_")}  # test_own_tables.py has these


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_good_result_holds_and_a_bad_one_is_contradicted(name):
    good, bad = (run(name, *CASES[name](which)) for which in (True, False))
    assert good.verdict == HOLDS, good.said
    assert bad.verdict == CONTRADICTED, bad.said
    assert good.said and bad.said and good.said != bad.said
    for found in (good, bad):
        assert found.low is None or found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("name", "evidence", "arguments"),
    [
        # the right sign on a difference that varies more between tasks than it is large
        ("lower_regret", bo(rand=0.5, h_nll=0.4, benchmark="tables"), {"lower": [["rand", "h_nll"]], "than": ["rand"]}),
        # one fold that turns the sign; one fold alone
        ("correlation", correlated([1, 1, 1, 1, 1, -10]), {"comparison": "regret against test_nll", "printed": 0.9}),
        ("correlation", correlated([1]), {"comparison": "regret against test_nll", "printed": 0.9}),
        ("trend_down", line("ablr@s200", 0.2, ablr__s4=0.4, ablr__s100=0.4, ablr__s200=0.35), {"methods": ["ablr"]}),
        ("trend_flat", line("rfgp@s200", 0.2, rfgp__s4=0.4, rfgp__s100=0.4, rfgp__s200=0.35), {"method": "rfgp"}),
        ("about_equal", gaps(0.05, noise=0.6), EQUAL),
        ("no_difference", gaps(0.05, noise=0.6), {}),
        ("no_difference", gaps(0.25, noise=0.6), {}),
        ("bands_meet", gaps(0.05, noise=0.6), {}),
        # all repetitions agree, all folds do: too few of them, or of spaces that share training tasks
        ("lowest_rank", bo(h_ekl=0.1, rand=0.3), {"method": "h_ekl", "within": [1, 100]}),
        ("lowest_rank", bo(tasks=5, h_ekl=0.1, rand=0.3).about("suite"), {"method": "h_ekl", "within": [1, 100]}),
        ("rank_improves", bo(mimo=[0.5, 0.1, 0.1, 0.1], rand=0.3), {"method": "mimo", "early": [1, 1], "late": 100}),
        ("rank_within", ranks(True, priors=1), {"method": "h_nll", "at": 100, "last": 2}),
        ("rank_within", ranks(False, priors=1), {"method": "h_nll", "at": 100, "last": 2}),
        ("rank_within", ranks(False, priors=3), {"method": "h_nll", "at": 100, "last": 2}),
        ("only_infeasible", infeasible(True, seeds=3), {"method": "mimo_online", "tasks": ["WMT"]}),
        ("catch_up", late(0.1, half=0.5), {"others": ["mle"]}),
        ("catch_up", late(0.4, half=0.5), {"others": ["mle"]}),
        ("nearly_equal", regrets(0.5, APART, "lengthscale"), {}),
        ("stuck", ends(7), {"method": "mle", "long": 0.7}),
        ("likeliest_dropped", dropped(False, seeds=9), {}),
        ("fitted_periods", fits(True, step=0.0), {"pieces": [0.25], "whole": 1.0}),  # five draws, all at one point
        ("recovers_less", recovered(mle=9, uniform=10), {"problems": PROBLEMS}),  # one run
        ("recovers_less", recovered(mle=4, uniform=10), {"problems": PROBLEMS}),  # p = 0.031, of two problems
        ("statements", theory(True, "INCONCLUSIVE"), {"names": ["Theorem 5, probability, printed"]}),
        ("matches", spaces(True), {"method": "mphd", "reference": "hgp_truth", "margin": 0.01}),
        ("by_margin", spaces(True), {"method": "mphd", "other": "mphd_non_nn", "panel": "default", "deviations": 5}),
        ("as_ranged", costs(True, least=float("nan")), {"claim": "B13"}),
        ("as_ranged", costs(True, least=4.0), {"claim": "B13"}),
        ("grows_with_tasks", queries(0.1, 1.0, noise=0.3), {"flat": ["cm_jef_jef"], "growing": ["rgpe"]}),
        ("more_stable", changed(True, less=12), {"kernels": ["plain", "product"]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_result_between_is_undecided(name, evidence, arguments):
    if name == "lower_regret":
        table = evidence.trajectories
        spread = table["task"].isin(["t0", "t1"]) & (table["method"] == "h_nll")
        table.loc[spread, "simple_regret"] *= 1.5  # above Rand's there, below it elsewhere
    assert run(name, evidence, arguments).verdict == UNDECIDED


@pytest.mark.parametrize(
    ("name", "evidence", "arguments"),
    [
        ("lower_regret", bo(rand=0.5), {"lower": ["h_nll"]}),
        ("not_beaten", bo(rand=0.5), {"methods": ["h_nll"], "by": ["rand"]}),
        ("more_solved", bo(rand=0.5), {"more": ["rand"], "than": ["h_nll"], "thresholds": [0.1]}),
        ("trend_down", line(ablr__s4=0.4, ablr__s100=0.3), {"methods": ["h_nll"]}),
        ("statements", theory(True, "SUPPORTED", no_power=1), {"names": ["Theorem 5, probability, printed"]}),
        ("recovers_less", recovered(mle=1), {"problems": PROBLEMS}),
        ("beats_somewhere", study(True), {"other": "expected_ucb"}),
        ("counts_at_most", numbers(count=[{"count": "a", "stated": 1, "found": 1}]), {"ending": "tasks", "most": 1}),
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
            {"table": "best_metric", "metric": "", "printed": "tab05 error_percent"},
        ),
        ("only_infeasible", infeasible(True), {"method": "mimo_online", "tasks": ["ImageNet"]}),
        ("negative_in", pearsons(rpart_6=1), {"spaces": ["5636"]}),
        ("rank_within", ranks(True), {"method": "h_nll", "at": 100, "last": 2, "spaces": ["5636"]}),
        ("overtaken_at", spaces(True), {"method": "rand", "reference": "mphd", "at": 300}),
        ("settles", priors(True, apart=1e-12), {"parameters": ["lengthscale"]}),  # seeds that differ by rounding
        (
            "best_are",
            numbers(ending=endings(["h_nll_zero_8"])),
            {"panel": "H-EKL", "metric": "last", "methods": ["h_ekl_linear_32"]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_there_is_not_testable(name, evidence, arguments):
    found = run(name, evidence, arguments)
    assert found.verdict == UNTESTABLE and found.said and found.value is None


def test_the_numbers_of_an_order_are_those_of_the_data():
    found = run("lower_regret", bo(h_nll=0.1, rand=0.5), {"lower": ["h_nll"], "than": ["rand"]})
    assert found.value == pytest.approx(-0.4 * (1 + 0.025 + 0.001))
    assert "H-NLL minus Rand at iteration 4: -0.41 [" in found.said and found.unit == "simple regret"


@pytest.mark.parametrize(
    ("name", "evidence", "arguments", "lost_method"),
    [
        ("lower_regret", bo(h_nll=0.1, rand=0.5), {"lower": ["h_nll"], "than": ["rand", "maf"]}, "MAF was not run"),
        ("lower_regret", bo(h_nll=0.1, rand=0.5), {"lower": ["h_nll", "fsbo"], "than": ["rand"]}, "FSBO was not run"),
        (
            "more_solved",
            bo(h_nll=0.001, rand=0.5),
            {"more": ["h_nll", ["fsbo", "maf", "rfgp"]], "thresholds": [0.1]},
            "and 1 more",
        ),
        ("not_beaten", bo(h_nll=0.1, rand=0.5), {"methods": ["h_nll"], "by": ["rand", "maf"]}, "MAF was not run"),
        (
            "seeds_order",
            study(True),
            {"problem": "mean", "lower": ["he_gp_ucb"], "than": ["mle", "gp_ucb"]},
            "GP-UCB was",
        ),
        ("catch_up", late(0.0), {"others": ["mle", "expected_ucb"]}, "ExpectedUCB was not run"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_methods_that_were_not_run_are_named(name, evidence, arguments, lost_method):
    found = run(name, evidence, arguments)
    assert found.verdict == UNTESTABLE and "; not testable: " in found.said and lost_method in found.said


def test_a_method_that_was_not_run_wins_none_of_its_comparisons():
    rivals = ["rand", "stbo", "maf", "rfgp"]
    lost = run(
        "mostly_ahead", bo(h_nll=0.1, **dict.fromkeys(rivals, 0.5)), {"methods": ["h_nll", "h_ekl"], "than": rivals}
    )
    assert lost.verdict != HOLDS and "4 of 8" in lost.said and "5 wanted" in lost.said
    there = run("mostly_ahead", bo(h_nll=0.1, **dict.fromkeys(rivals, 0.5)), {"methods": ["h_nll"], "than": rivals})
    assert there.verdict == HOLDS and "4 of 4" in there.said
    worse = run("mostly_ahead", bo(h_nll=0.5, **dict.fromkeys(rivals, 0.1)), {"methods": ["h_nll"], "than": rivals})
    assert worse.verdict == CONTRADICTED and "0 of 4" in worse.said


def test_one_problem_needs_no_correction():
    # t = 2.9 with five degrees of freedom: clear in one problem alone, not as one of two; the sign alone is nothing
    both = study(True, ("lengthscale", "mean"), noise=0.63)
    assert run("beats_somewhere", both, {"other": "mle"}).verdict == UNDECIDED
    assert run("beats_somewhere", study(True, noise=0.63), {"other": "mle"}).verdict == HOLDS
    alone = run("recovers_less", recovered(mle=4, uniform=10), {"problems": PROBLEMS[:1]})
    assert alone.verdict == HOLDS and "p = 0.031" in alone.said


def test_a_problem_can_be_taken_under_the_beta_of_the_theorem():
    runs = study(False, ("lengthscale", "mean")).studies["hegpucb_runs"]["run"]
    better = study(True).studies["hegpucb_runs"]["run"].assign(profile="plain")
    both = with_runs(pd.concat([runs, better]))
    given = {"other": "mle"}
    assert run("beats_somewhere", both, given).verdict == CONTRADICTED
    found = run("beats_somewhere", both, given | {"of_theorem": ["mean"]})
    assert found.verdict == HOLDS and "mean" in found.said


def test_the_wrong_candidates_of_the_figures_own_settings_count():
    found = run("rejects_most", rejecting(True), {"problem": "mean"})
    assert found.value == pytest.approx(0.5 - 0.7) and "of 4 wrong" in found.said
    assert run("rejects_most", rejecting(True), {"problem": "period"}).verdict == UNTESTABLE


def test_the_margin_is_of_random_where_the_figure_has_it():
    found = run("about_equal", gaps(0.15), EQUAL)
    assert found.verdict == CONTRADICTED and "margin 0.0975" in found.said
    found = run("about_equal", gaps(0.15, rand=3.0), EQUAL)
    assert found.verdict == HOLDS and "margin 0.308" in found.said


def drawn(few, many, truth=10.0):
    """Shapes of the length-scale prior with 2 and with 16 domains, one per seed."""
    rows = [
        {"parameter": "lengthscale", "train": train, "seed": seed, "first": first, "second": 3 * first}
        for train, values in ((2, few), (16, many)) for seed, first in enumerate(values)
    ]  # fmt: skip
    truth = [{"parameter": "lengthscale", "first": truth, "second": 3 * truth}]
    return numbers(keys=["train", "seed"], prior=rows, truth=truth)


STEPS = np.linspace(-1.0, 1.0, 8)


@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [
        (30 + 20 * STEPS, 10.5 + STEPS, HOLDS),
        (30 + STEPS, 10.5 + 20 * STEPS, CONTRADICTED),  # nearer, but they vary more
        (10.5 + 8 * STEPS, 30 + STEPS, CONTRADICTED),  # they vary less, but not near the truth
        (10.5 + STEPS, 10.6 + STEPS[::-1], UNDECIDED),
        (30 + 20 * STEPS, np.full(8, 10.5), UNTESTABLE),  # eight copies of one draw: no spread is known
    ],
)
def test_that_priors_settle_can_fail(few, many, verdict):
    assert run("settles", drawn(few, many), {"parameters": ["lengthscale"]}).verdict == verdict


def falling(table, key="kl"):
    """Rows of a divergence (or NLL) by size, with the seeds in their order."""
    return [{"train": n, "seed": seed, key: value, "method": "mphd_non_nn"}
            for n, values in table.items() for seed, value in enumerate(values)]  # fmt: skip


@pytest.mark.parametrize(("slope", "verdict"), [(-0.5, HOLDS), (0.5, CONTRADICTED), (0.0, UNDECIDED)])
def test_that_a_divergence_falls_can_fail(slope, verdict):
    rng = np.random.default_rng(3)
    rows = falling({n: 5 + slope * np.log2(n) + 0.1 * rng.normal(size=5) for n in (1, 2, 4, 8, 16)})
    found = run("divergence_falls", numbers(keys=["train", "seed"], divergence=rows), {"methods": ["mphd_non_nn"]})
    assert found.verdict == verdict and found.clusters == 5


def test_copies_of_one_draw_count_once():
    """Five seeds that share their domains are one: with the most of them, or at every size."""
    rng = np.random.default_rng(0)
    free = {n: 5 + rng.normal(size=5) for n in (1, 2, 4, 8)}
    of = lambda table: run("divergence_falls", numbers(keys=["train", "seed"], divergence=falling(table)),  # noqa: E731
                           {"methods": ["mphd_non_nn"]})  # fmt: skip
    copies, once = of(free | {16: np.full(5, 0.1)}), of(free | {16: np.full(1, 0.1)})
    assert (copies.value, copies.low, copies.high) == (once.value, once.low, once.high)
    same = of({n: np.full(5, 5.0 - n) for n in (1, 2, 3)})
    assert same.verdict == UNDECIDED and same.low is None and same.clusters == 1


@pytest.mark.parametrize(("spread", "verdict"), [(-1.0, HOLDS), (1.0, CONTRADICTED), (0.0, UNDECIDED)])
def test_that_the_spread_of_losses_falls_can_fail(spread, verdict):
    rng = np.random.default_rng(5)
    table = {n: 100 - 8 * np.log2(n) + n**spread * rng.normal(size=10) for n in (2, 4, 8, 16)}
    found = run("nll_falls", numbers(keys=["train", "seed"], nll=falling(table, "value")), {})
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("ei", "verdict"),
    [(-0.01, HOLDS), (-0.1, CONTRADICTED), (-0.05, UNDECIDED)],
)
def test_no_worse_allows_a_tenth_of_random(ei, verdict):
    """EI minus PI: PI ends higher by 0.01, 0.1 or 0.05; Random ends at 0.5."""
    rows = [
        suited({"method": "gp_truth-ei", "reference": "gp_truth", "panel": "default", "acquisition": "pi",
                "difference": ei, "low": ei - 0.02, "high": ei + 0.02, "iteration": 100, "units": 16}),
    ]  # fmt: skip
    ends = [{"panel": "default", "acquisition": "pi", "method": "rand", "last": 0.5}]
    found = run("best_acquisition", numbers(keys=["iteration"], difference=rows, ending=ends), {"method": "gp_truth"})
    assert found.verdict == verdict and "margin 0.05" in found.said


def test_the_estimand_says_which_interval_of_spaces_decides():
    """Sure on these spaces, of 40 seeds; not on a new one, of nine."""
    row = {"method": "mphd_non_nn", "reference": "mphd", "panel": "default", "acquisition": "pi", "iteration": 100,
           "difference": 0.05, "low": -0.02, "high": 0.12, "units": 9, "freedom": 6.5,
           "suite_low": 0.04, "suite_high": 0.06, "suite_units": 40}  # fmt: skip
    ends = [{"panel": "default", "acquisition": "pi", "method": "rand", "last": 0.5}]
    given = numbers("mphd_l", keys=["iteration"], difference=[row], ending=ends)
    arguments = {"method": "mphd", "others": ["mphd_non_nn"]}
    suite, new = (run("beats", given.about(estimand), arguments) for estimand in ("suite", "new"))
    assert (suite.verdict, suite.clusters) == (HOLDS, 40) and (new.verdict, new.clusters) == (UNDECIDED, 9)
    assert suite.suite == new.suite == (-0.06, -0.04) and new.new == (-0.12, 0.02)


def test_a_small_cost_on_these_spaces_need_not_be_small_on_a_new_one():
    """The rise is 0.001 with a deviation of 0.01 over seeds; from space to space it varies by more."""
    given = spaces(True)
    rows = given.data.copy()
    cost = (rows["table"] == "difference") & (rows["panel"] == "cost")
    rows.loc[cost & (rows["quantity"] == "low"), "value"] = -0.05
    rows.loc[cost & (rows["quantity"] == "high"), "value"] = 0.05
    wide = Evidence("mphd_l", {"data": lambda: rows})
    assert run("costs_little", wide.about("suite"), {"method": "mphd"}).verdict == HOLDS
    assert run("costs_little", wide.about("new"), {"method": "mphd"}).verdict == UNDECIDED


@pytest.mark.parametrize("name", ["recovers_less", "beats_somewhere"])
def test_noise_alone_rarely_shows_something_in_some_problem(name):
    """Both methods draw from the same; of 60 studies, the level allows one or two on the stated side."""
    rng = np.random.default_rng(0)
    if name == "recovers_less":
        evidence, arguments = recovered(mle=0, uniform=0), {"problems": PROBLEMS}
    else:
        evidence, arguments = study(True, ("lengthscale", "period", "decomposition", "mean")), {"other": "mle"}
    runs = evidence.studies["hegpucb_runs"]["run"]
    shown = 0
    for _ in range(60):
        runs["mle"], runs["cumulative"] = rng.integers(2, size=len(runs)), rng.normal(size=len(runs))
        shown += run(name, evidence, arguments).verdict == HOLDS
    assert shown <= 4


def test_a_median_of_speedups_is_tested_as_a_share_of_tasks():
    found = run("speedup", speedups(True), {"methods": ["h_nll"], "factor": 3, "over": "rand", "by": "median"})
    assert found.verdict == HOLDS and "(median 8)" in found.said
    assert (found.value, found.count, found.of, found.clusters) == (31 / 32, 31, 32, 16)


def test_a_rank_that_one_repetition_shows_is_said_to_be_too_little():
    found = run("rank_within", ranks(True, priors=1), {"method": "h_nll", "at": 100, "last": 2})
    assert (found.value, found.low, found.high) == (2, 1, 3) and found.against == found.support == 1.0
    assert found.said.endswith("in s; 1 draws could not decide even if all agreed")


def test_ranks_of_one_panel_are_paired():
    """Two methods change places in some repetitions: their ranks are negatively correlated."""
    table = runs(priors=12, h_nll=0.2, rand=0.3, fsbo=0.1)
    swapped = (table["prior_seed"] % 4 == 0) & table["method"].isin(["h_nll", "rand"])
    table.loc[swapped, "simple_regret"] = 0.5 - table.loc[swapped, "simple_regret"]
    found = run("rank_within", numbers(trajectories=table), {"method": "h_nll", "at": 100, "last": 2})
    assert found.verdict == UNDECIDED and (found.value, found.low, found.high) == (2, 2, 3)


def test_ranks_have_the_intervals_of_both_estimands():
    evidence, arguments = bo(tasks=12, priors=7, h_ekl=0.1, rand=0.3), {"method": "h_ekl", "within": [1, 100]}
    new, suite = (run("lowest_rank", evidence.about(estimand), arguments) for estimand in ("new", "suite"))
    assert (new.clusters, suite.clusters) == (12, 7) and new.verdict == suite.verdict == HOLDS
    assert (new.suite, new.new) == (suite.suite, suite.new) and (suite.low, suite.high) == suite.suite
    assert suite.high - suite.low > 0.5 and suite.support >= 2**-7


def test_spaces_that_test_on_the_same_data_sets_are_few_draws_of_a_correlation():
    """Twelve spaces decide a share of them; not if all of them test on two data sets."""
    apart = pearsons(**dict.fromkeys("abcdefghijk", 1), last=-1)
    tasks = {kind: getattr(apart, kind)["task"].str.replace("_", "/") for kind in ("trajectories", "evaluations")}
    own = {kind: {"task": task, "benchmark": "hpob_mini"} for kind, task in tasks.items()}
    shared = {kind: partial(getattr(apart, kind).assign, **columns) for kind, columns in own.items()}
    found = [run("mostly_positive", evidence, {}) for evidence in (apart, Evidence("hpob", shared))]
    assert [one.verdict for one in found] == [HOLDS, UNDECIDED]
    assert "draws could not decide even if all agreed" in found[1].said and found[1].value == found[0].value


def test_ranks_take_data_sets_for_units_where_tasks_repeat_them():
    """Twelve folds decide; not if their tasks are of two data sets alone, one in each fold or both in all."""
    evidence = bo(tasks=24, h_ekl=0.1, rand=0.3)
    folds = tuple(task // 2 for task in range(24))
    usual = replace(evidence.runs, folds=folds)
    repeated = replace(usual, data_sets=tuple(f"d{fold % 2}" for fold in folds))
    crossed = replace(usual, data_sets=tuple(f"d{task % 2}" for task in range(24)))
    found = []
    for own in (usual, repeated, crossed):
        evidence._runs["simple_regret"] = own
        found.append(run("lowest_rank", evidence, {"method": "h_ekl", "within": [1, 100]}))
    assert [one.verdict for one in found] == [HOLDS, UNDECIDED, UNDECIDED]
    assert [one.clusters for one in found] == [12, 2, 2] and [one.decidable for one in found] == [True, False, False]


def test_crossed_ranks_are_decided_by_folds_and_data_sets_both():
    """H-EKL is ahead in every fold of 24, thanks to nine data sets of ten: on the tenth it is behind."""
    evidence = bo(tasks=240, priors=1, h_ekl=0.1, rand=0.3)
    lost = np.arange(240) % 10 == 9
    values = {m: np.where(lost[:, None], 0.6, 0.0) * (m == "h_ekl") + v for m, v in evidence.runs.values.items()}
    own = {"folds": tuple(task // 10 for task in range(240)), "data_sets": tuple(f"d{t % 10}" for t in range(240))}
    found = []
    for shown in (values, evidence.runs.values):
        evidence._runs["simple_regret"] = replace(evidence.runs, values=shown, **own)
        found.append(run("lowest_rank", evidence, {"method": "h_ekl", "within": [1, 100]}))
    assert [one.decidable for one in found] == [True, True] and found[1].verdict == HOLDS
    assert found[0].high > found[1].high and found[0].support > found[1].support


@pytest.mark.parametrize("name", [name for name in BY_COMPARISON if name in CASES])
def test_checks_of_pairs_leave_out_what_a_failed_gate_is_about(name):
    evidence, arguments = CASES[name](True)
    methods = evidence.runs.methods
    assert run(name, evidence, arguments).verdict == HOLDS
    without = run(name, evidence.about("new", dict.fromkeys(methods, "the gate")), arguments)
    assert without.verdict == UNTESTABLE and "the gate" in without.said
    of_method = {method_of(one): [r for r in methods if method_of(r) == method_of(one)] for one in methods}
    partly = [run(name, evidence.about("new", dict.fromkeys(r, "the gate")), arguments) for r in of_method.values()]
    told = ["the gate" in one.said for one in partly]
    assert any(one.verdict != HOLDS for one, said in zip(partly, told, strict=True) if said)
    apart = name == "falls_with_size"  # it compares the networks of one mean function alone
    assert all(told[-2:] if apart else told), dict(zip(of_method, told, strict=True))


@pytest.mark.parametrize(("axis", "verdict"), [("M", HOLDS), ("N", CONTRADICTED)])
def test_a_printed_order_of_cost_is_an_upper_bound_but_for_the_nll_in_functions(axis, verdict):
    row = {"row": "loss", "axis": axis, "resource": "time", "objective": "nll", "slope": 0.1, "low": 0.0, "high": 0.2}
    ends = {"sizes": 6, "lowest": 0.8, "highest": 1.2, "agrees": 0.0}
    assert run("exponents", numbers(exponent=[row | ends]), {}).verdict == verdict


@pytest.mark.parametrize(("arguments", "verdict"), [({"first": 3}, CONTRADICTED), ({"first": 2, "last": 3}, HOLDS)])
def test_the_p_values_of_a_place_are_of_the_data(arguments, verdict):
    place = 0.1 if verdict == CONTRADICTED else 0.35
    evidence = bo(tasks=12, ablr=place, rand=0.2, maf=0.3, mimo=0.4, fsbo=0.5)
    found = run("place", evidence, {"method": "ablr", "at": 100, **arguments})
    assert found.verdict == verdict and found.low == found.high
    small, large = sorted([found.against, found.support])
    assert small < 1e-4 and large > 0.5 and (small == found.against) == (verdict == CONTRADICTED)
    held = order("another part", (-1.0, -1.2, -0.8), clusters=9)
    assert together([found, held]).verdict == verdict  # Holm's correction over two


def test_the_p_value_of_a_place_agrees_with_its_interval():
    rng = np.random.default_rng(0)
    for _ in range(40):
        table = runs(tasks=8, last=1, ablr=0.3, rand=0.3, maf=0.3, mimo=0.3)
        table["simple_regret"] = rng.normal(1.0 + 0.2 * table["method"].isin(["ablr", "rand"]), 0.3).clip(0.01)
        evidence = numbers(trajectories=table)
        for first, last in ((1, 2), (3, 4), (2, 3)):
            found = run("place", evidence, {"method": "ablr", "at": 100, "first": first, "last": last})
            assert (found.against <= 0.025) == (found.verdict == CONTRADICTED), found
            assert (found.support <= 0.025) == (found.verdict == HOLDS), found


def test_a_share_of_cases_has_the_interval_of_its_folds():
    """All cases agree, in twelve folds and in three repetitions."""
    evidence, arguments = structures(True), {"better": "linear_mlp", "worse": "zero"}
    found = run("mean_wins", evidence, arguments)
    draws = 12 / (1 + 11 / 12)  # they share training tasks
    assert found.clusters == 12 and found.low == pytest.approx(0.025 ** (1 / draws))
    assert found.support == pytest.approx(0.5**draws)
    suite = run("mean_wins", evidence.about("suite"), arguments)
    assert suite.verdict == UNDECIDED and suite.low == pytest.approx(0.025 ** (1 / 3)) and suite.clusters == 3


def test_a_correlation_has_the_p_value_of_fishers_z():
    """The interval of r is not symmetric: half its width says something else."""
    weights = [1, 0.4, -0.2, 0.8, -0.3, 0.1]
    found = run("correlation", correlated(weights), {"comparison": "regret against test_nll", "printed": 0.8})
    value, low, high = np.arctanh([found.value, found.low, found.high])
    assert value - low == pytest.approx(high - value)
    freedom = found.clusters - 1
    tail = student.sf(value / ((high - low) / 2 / student.ppf(0.975, freedom)), freedom)
    assert found.support == pytest.approx(tail) and found.against == pytest.approx(1 - tail)


def test_the_power_of_a_correlation_is_that_of_fishers_z():
    z, size = (0.3, -0.4, 1.0), np.arctanh(0.8)
    found, on_z = _order_of_r("r =", z, False, 6, effect=0.8), order("", z, False, effect=size, clusters=6)
    on_r = order("", np.tanh(z), False, effect=0.8, clusters=6)
    assert (
        found.verdict == UNDECIDED and found.effect == 0.8 and (found.power, found.needed) == (on_z.power, on_z.needed)
    )
    assert (
        abs(found.power - on_r.power) > 0.01
        and found.said == f"r = 0.291 [-0.38, 0.762]; power {on_z.power:.2f} for 0.8"
    )


def test_a_correlation_that_never_changes_has_no_interval():
    found = _order_of_r("r =", (2.0, 2.0, 2.0), False, 6)
    assert found.verdict == UNDECIDED and found.low is None and found.value == pytest.approx(np.tanh(2.0))


def test_a_mass_at_its_end_has_the_p_value_of_its_whole_interval():
    """Its end is cut at 1 for the reader, not for the p value."""
    first, second = np.array([0.5, 0.5, 0.5, 0.5]), np.array([1e5, 1e5, 1e5, 1.0])
    found = _mass(numbers(), first, second, 0.2)
    masses = gamma.cdf(2e-4, first, scale=1 / second)
    assert found.high == 1.0 and found.support == pytest.approx(ttest_1samp(masses, 0.2, alternative="greater").pvalue)
    same = _mass(numbers(), first[:3], second[:3], 0.2)
    assert same.verdict == UNDECIDED and same.low is None and "the same for all seeds" in same.said


def test_an_unknown_statement_or_table_is_told():
    with pytest.raises(ConfigError, match="no statement 'Theorem 6, printed' among"):
        run("statements", theory(True), {"names": ["Theorem 6, printed"]})
    with pytest.raises(DataError, match="no table 'differ'; it holds verdict"):
        run("minima_differ", theory(True), {})
    with pytest.raises(DataError, match="the artefact has no trajectories, only data"):
        run("place", theory(True), {"method": "ablr", "at": 1})


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"lower": "h_nll"}, "argument 'lower' is 'h_nll', must be Sequence[str | Sequence[str]]"),
        ({"lower": ["h_nll"], "at": 100}, "argument 'at' is 100, must be Sequence[int | str | Sequence[int]]"),
        ({"lower": [7]}, "argument 'lower' is [7], must be Sequence[str | Sequence[str]]"),
        ({"lower": [["h_nll", "h_ekl"], "fsbo"], "at": [1, "area", [1, 20]]}, ""),
    ],
)
def test_an_argument_of_another_type_is_told_before_anything_is_run(arguments, fault):
    found = checks.faults("hyperbo", "lower_regret", arguments)
    assert found == ([f"check 'lower_regret': {fault}"] if fault else [])
