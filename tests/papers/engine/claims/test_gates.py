"""Gates: each passes on runs made to pass it, fails on runs made to fail it, and stops the claims that rest on it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from metabo.artefacts import api as artefacts
from metabo.papers.cmbo import gates as clusters
from metabo.papers.engine.claims import checks, gates, judge, settling, sheet
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import ASKING, DIFFERING, LEARNABLE, Gate
from metabo.papers.engine.claims.sheet import ClaimTest
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNTESTABLE, Finding
from metabo.papers.hegpucb import gates as elimination
from metabo.papers.hyperbo import gates as learning
from metabo.papers.mphd import gates as hierarchical
from metabo.plan import catalogue, config, registry
from metabo.plan.runs import RunId
from tests.papers.engine.claims import made
from tests.papers.engine.claims.test_judge import ROOT, claim, told

LENGTH = 20


def evidence(asked, **levels) -> Evidence:
    """BO runs with chosen regrets; `asked`: candidates of each query by method (the same in all runs)."""
    table = made.runs(LENGTH, **levels)
    candidates = {m: np.broadcast_to(asked.get(m, np.arange(LENGTH)), LENGTH) for m in table["method"].unique()}
    picked = [candidates[m][t - 1] for m, t in zip(table["method"], table["iteration"], strict=True)]
    table = table.assign(candidate=picked)
    return Evidence("pd1_mini", {"trajectories": lambda: table})


def by_name(found, name):
    return {gate.subjects: gate for gate in found if gate.name == name}


def test_some_method_must_beat_random():
    good = by_name(gates.of_runs(evidence({}, rand=1.0, h_nll=0.5, stbo=1.2)), LEARNABLE)[()]
    assert good.passed and good.value < 0 and "H-NLL minus Random, area: -0.5" in good.said
    bad = by_name(gates.of_runs(evidence({}, rand=1.0, h_nll=1.0, stbo=1.2)), LEARNABLE)[()]
    assert not bad.passed and bad.value >= 0
    assert LEARNABLE not in {g.name for g in gates.of_runs(evidence({}, h_nll=0.5, stbo=1.0))}
    assert LEARNABLE not in {g.name for g in gates.of_runs(evidence({}, rand=0.5))}
    few = made.runs(LENGTH, tasks=4, rand=1.0, h_nll=0.5).assign(candidate=0)
    assert gates.of_runs(Evidence("pd1_mini", {"trajectories": lambda: few}))[0].name != LEARNABLE


def test_the_true_prior_must_beat_random_whatever_other_methods_do():
    for level, passes in ((0.5, True), (1.0, False)):
        found = by_name(hierarchical.gates(evidence({}, rand=1.0, gp_truth=level, mphd=0.1)), hierarchical.ORACLE)
        assert found[()].passed == passes and "minus Random, area" in found[()].said
    assert hierarchical.gates(evidence({}, rand=1.0, mphd=0.1)) == []  # a table of real tasks has no true prior
    assert hierarchical.gates(evidence({}, gp_truth=0.5)) == []


def test_what_mphd_learns_must_beat_random_where_its_model_is_true():
    """Each candidate once, with the acquisition that is its own; a method without past tasks answers for nothing."""
    order = np.arange(LENGTH)
    levels = {"rand": 1.0, "gp_truth": 0.5, "mphd": 0.6, "base_gp": 1.1, "hgp_flat": 1.2, "mphd_x_ei": 1.3}
    levels |= {"mphd_non_nn": 0.9}  # it has no training of its own, but the priors of MPHD's first step
    shown = {name.replace("_x_", "-"): order for name in levels}
    found = by_name(hierarchical.gates(evidence(shown, **levels)), hierarchical.WORKS)
    assert {subjects[0]: gate.passed for subjects, gate in found.items()} == {
        "mphd": True, "base_gp": False, "mphd_non_nn": True,
    }  # fmt: skip
    assert not any(gate.everywhere for gate in found.values())
    again = {**shown, "rand": 7}  # where candidates may be queried again, sticking to one is another gate's matter
    assert not by_name(hierarchical.gates(evidence(again, **levels)), hierarchical.WORKS)
    levels.pop("gp_truth")
    assert not hierarchical.gates(evidence(shown, **levels))


def test_three_priors_that_differ_do_not_hide_a_clear_advantage():
    table = made.runs(LENGTH, tasks=12, rand=1.0, h_nll=0.5).assign(candidate=0)
    spread = table["prior_seed"].map({0: 0.6, 1: 1.0, 2: 1.5}).where(table["method"] == "h_nll", 1.0)
    table["simple_regret"] *= spread
    (gate,) = gates.learnable(artefacts.runs(table))
    assert gate.passed


def test_noise_alone_rarely_passes_as_better_than_random():
    """Nine methods that are Random: the best of them must not pass more often than an interval errs."""
    passed = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = made.runs(2, tasks=8, priors=3, **{f"m{i}": 1.0 for i in range(8)}, rand=1.0)
        noise = {key: 1 + 0.1 * rng.random() for key, _ in table.groupby(["method", "task", "prior_seed"])}
        keys = zip(table["method"], table["task"], table["prior_seed"], strict=True)
        table["simple_regret"] = [noise[key] for key in keys]
        names = {
            f"m{i}": name for i, name in enumerate(("h_nll", "h_ekl", "stbo", "stboh", "fsbo", "ablr", "mimo", "maf"))
        }
        table = table.replace({"method": names}).assign(candidate=0)
        (gate,) = gates.learnable(artefacts.runs(table))
        passed.append(gate.passed)
    assert np.mean(passed) < 0.08


def test_a_policy_that_asks_for_one_point_is_found():
    found = by_name(
        gates.of_runs(evidence({"h_nll": 7, "stbo": [*range(4), *[5] * 16]}, rand=1.0, h_nll=0.5, stbo=0.5)), ASKING
    )
    assert not found["h_nll",].passed and found["h_nll",].value == 1.0
    assert found["stbo",].passed and found["rand",].passed
    # the best point may be asked for again and again
    assert by_name(gates.of_runs(evidence({"h_nll": 7}, rand=1.0, h_nll=0.0)), ASKING)["h_nll",].passed


def test_two_acquisitions_with_the_same_queries_are_found():
    same = {"h_nll": np.arange(LENGTH), "h_nll-ei": np.arange(LENGTH), "h_nll-ucb3": np.arange(LENGTH)[::-1]}
    found = by_name(gates.of_runs(evidence(same, h_nll=1.0, h_nll_x_ei=1.0, h_nll_x_ucb3=1.0, stbo=1.0)), DIFFERING)
    assert {pair: gate.passed for pair, gate in found.items()} == {
        ("h_nll", "h_nll-ei"): False, ("h_nll", "h_nll-ucb3"): True, ("h_nll-ei", "h_nll-ucb3"): True,
    }  # fmt: skip


WHOLE = Gate(LEARNABLE, (), False, 0.1, 0.0, "w")
OF_STBO = Gate(ASKING, ("stbo",), False, 1.0, 0.5, "s")
PAIR = Gate(DIFFERING, ("h_nll", "h_nll-ei"), False, 1.0, 0.5, "p", unless_named=False)
ELSEWHERE = Gate(ASKING, ("stbo@held_out",), False, 1.0, 0.5, "e")
PROBLEM = Gate(elimination.DROPPING, ("period", "he_gp_ucb"), False, 0.0, 0.5, "d", False, ("seeds_order",))
KEPT = Gate(elimination.DROPPING, (), False, 0.0, 0.5, "k", False, ("kept",))


@pytest.mark.parametrize(
    ("paper", "check", "arguments", "expected"),
    [
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["stbo"]}, [WHOLE, OF_STBO, ELSEWHERE]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["rand"]}, [WHOLE]),
        (
            "hyperbo",
            "lower_regret",
            {"lower": ["h_nll"], "than": ["stbo"], "at": [1]},
            [WHOLE],
        ),  # one query: no repeats
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["stbo"], "at": [1, 5]}, [WHOLE, OF_STBO, ELSEWHERE]),
        ("hyperbo", "place", {"method": "stbo", "at": 1, "first": 3}, [WHOLE]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["stbo@held_out"]}, [WHOLE, ELSEWHERE]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": "others"}, [WHOLE, OF_STBO, ELSEWHERE]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["h_nll-ei"]}, [WHOLE, PAIR]),
        ("hyperbo", "no_difference", {}, [WHOLE, OF_STBO, ELSEWHERE]),  # that acquisitions are alike: not PAIR
        ("hegpucb", "seeds_order", {"problem": "period", "lower": ["he_gp_ucb"], "than": ["mle"]}, [PROBLEM]),
        ("hegpucb", "seeds_order", {"problem": "period", "lower": ["expected_ucb"], "than": ["mle"]}, []),
        ("hegpucb", "seeds_order", {"problem": "mean", "lower": ["he_gp_ucb"], "than": ["mle"]}, []),
        ("hegpucb", "kept", {"delta": 0.1}, [KEPT]),
        ("hegpucb", "nearly_equal", {}, []),
    ],
)
def test_a_test_rests_on_the_gates_of_what_it_names(paper, check, arguments, expected):
    given = [PROBLEM, KEPT] if paper == "hegpucb" else [WHOLE, OF_STBO, PAIR, ELSEWHERE]
    runs = [] if paper == "hegpucb" else ["rand", "h_nll", "h_nll-ei", "stbo", "stbo@held_out"]
    assert [gate for gate in given if gates.rests(gate, paper, ClaimTest("x", check, arguments), runs)] == expected


MPHD_RUNS = [
    "rand", "hgp_hand", "hgp_truth", "base_gp@held_out", "base_gp-ei@held_out", "h_nll@held_out", "mphd@held_out",
    "mphd@new_space", "mphd_squashed@new_space", "mphd_non_nn@held_out", "mphd_non_nn@new_space", "mphd-ei@held_out",
]  # fmt: skip
"""Runs of a figure of MPHD, as `artefacts.by_split` names them; `ending` has them as `metrics.by_setting` does."""


def test_runs_across_spaces_are_named_as_the_engine_names_them():
    """Each on both splits, and the names without a split on the first alone."""
    given = [(RunId.parse(run), split) for run in MPHD_RUNS for split in ("held_out", "new_space")]
    rows = [
        {"method": str(RunId(run.method, run.acquisition)), "split": split}
        for run, split in given if (run.split or "held_out") == split
    ]  # fmt: skip
    assert artefacts.by_split(pd.DataFrame(rows))["method"].tolist() == MPHD_RUNS


def mphd_figure():
    """Return the tables of a figure of MPHD with two panels and two acquisitions."""
    panels = {
        ("default", "pi"): ["rand", "hgp_hand", "hgp_truth", "base_gp", "h_nll", "mphd", "mphd_non_nn"],
        ("ntot", "pi"): [
            "rand", "hgp_hand", "hgp_truth", "mphd@new_space", "mphd_squashed@new_space", "mphd_non_nn@new_space"
        ],
        ("default", "ei"): ["rand", "base_gp-ei", "mphd-ei"],
    }  # fmt: skip
    rows = [{"panel": p, "acquisition": a, "method": m, "last": 1.0} for (p, a), own in panels.items() for m in own]
    return made.numbers("mphd_l", ending=rows)


@pytest.mark.parametrize(
    ("check", "arguments", "groups"),
    [
        ("beats", {"method": "mphd", "panel": "ntot", "but": ["hgp_truth"]},
         [{"rand", "hgp_hand", "mphd@new_space", "mphd_non_nn@new_space"}]),
        ("beats", {"method": "mphd", "others": ["mphd_non_nn"]}, [{"mphd@held_out", "mphd_non_nn@held_out"}]),
        ("beats", {"method": "mphd", "but": ["h_nll"], "acquisitions": ["pi", "ei"]},
         [{"rand", "base_gp-ei@held_out", "mphd-ei@held_out"},
          {"rand", "hgp_hand", "hgp_truth", "base_gp@held_out", "mphd@held_out", "mphd_non_nn@held_out"}]),
        ("costs_little", {"method": "mphd"}, [{"mphd@held_out", "mphd@new_space"}]),
        ("fewer_queries", {"method": "mphd", "panel": "ntot", "but": ["mphd_non_nn", "hgp_truth"]},
         [{"rand", "hgp_hand", "mphd@new_space"}]),
        ("falls_less", {"methods": ["h_nll"], "reference": "mphd", "start": 50}, [{"h_nll@held_out", "mphd@held_out"}]),
        ("best_acquisition", {"method": "base_gp"}, [{"base_gp@held_out", "base_gp-ei@held_out"}]),
        ("matches", {"method": "mphd", "reference": "hgp_truth"}, [{"mphd@held_out", "hgp_truth"}]),
    ],
)  # fmt: skip
def test_a_test_across_spaces_compares_its_panel_and_acquisitions(check, arguments, groups):
    """`but`, our own variants, the other panel and the other acquisition are no part of it."""
    found = gates.compared("mphd", ClaimTest("x", check, arguments), MPHD_RUNS, mphd_figure())
    assert found == groups


def test_a_stuck_method_of_another_panel_stops_no_claim():
    given = [Gate(ASKING, (run,), False, 1.0, 0.5, "s") for run in MPHD_RUNS]
    test = ClaimTest("x", "beats", {"method": "mphd", "panel": "ntot", "but": ["hgp_truth"]})
    assert [g.subjects[0] for g in given if gates.rests(g, "mphd", test, MPHD_RUNS, mphd_figure())] == [
        "rand", "hgp_hand", "mphd@new_space", "mphd_non_nn@new_space",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        ("lowest_rank", {"method": "h_nll", "within": [1, 4]}), ("always_first", {"method": "h_nll"}),
        ("place", {"method": "h_nll", "at": 4}), ("reaches_place", {"method": "h_nll", "best": 1, "within": [1, 4]}),
        ("rank_within", {"method": "h_nll", "at": 4, "last": 2}),
        ("rank_improves", {"method": "h_nll", "early": [1, 2], "late": 4}),
        ("speedup", {"methods": ["h_nll"], "factor": 3}),
    ],
)  # fmt: skip
def test_a_place_among_methods_rests_on_all_of_them(check, arguments):
    runs = ["rand", "h_nll", "stbo"]
    assert gates.rests(OF_STBO, "hyperbo", ClaimTest("x", check, arguments), runs)
    over_random = ClaimTest("x", "speedup", {"methods": ["h_nll"], "factor": 3, "over": "rand"})
    assert not gates.rests(OF_STBO, "hyperbo", over_random, runs)


def test_a_test_of_structures_rests_on_its_panel():
    rows = [{"panel": p, "method": m, "last": 1.0} for p, m in (
        ("H-NLL", "h_nll_zero_4"), ("H-NLL", "h_nll_linear_8"), ("H-EKL", "h_ekl_linear_8"))]  # fmt: skip
    figure, runs = made.numbers(ending=rows), [row["method"] for row in rows]
    of = lambda check, **given: gates.compared("hyperbo", ClaimTest("x", check, given), runs, figure)  # noqa: E731
    assert of("worst_is", panel="H-NLL", metric="mean", method="h_nll_zero_4") == [set(runs[:2])]
    assert of("falls_with_size", panel="H-NLL", metric="last", mean="linear_mlp") == [{"h_nll_linear_8"}]


def test_sweeps_rest_on_the_sizes_and_the_reference_that_they_compare():
    rows = [
        {"method": m, "split": s, "size": n, "reference": "stboh", "difference": 0.0, "ratio": 1.0}
        for m in ("h_nll", "mimo") for n, s in ((1, "others_points_1"), (2, "others_sweep"))
    ]  # fmt: skip
    figure = made.numbers(keys=["size"], difference=rows, curve=rows)
    runs = ["stboh", "stbo", *(f"{row['method']}@{row['split']}" for row in rows)]
    of = lambda check, **given: gates.compared("hyperbo", ClaimTest("x", check, given), runs, figure)  # noqa: E731
    assert of("beside_reference", methods=["h_nll"], sizes=[1, 2]) == [{"stboh", *runs[2:4]}]
    assert of("fewest_needed", method="h_nll") == [{"stboh", *runs[2:]}]
    gain = of("larger_gain", methods=["h_nll"], others=["mimo"], fewer="others_points_1", more="others_sweep")
    assert gain == [set(runs[2:])]


def test_a_correlation_of_losses_rests_on_no_run():
    figure = SimpleNamespace(evaluations=pd.DataFrame({"method": ["ablr", "h_nll"], "metric": "ekl"}))
    gate = Gate(ASKING, ("ablr",), False, 1.0, 0.5, "t")
    runs = ["rand", "ablr", "h_nll"]
    for comparison, stopped in (("regret against test_nll", True), ("test_nll against ekl", False)):
        test = ClaimTest("x", "correlation", {"comparison": comparison, "printed": 0.8})
        assert gates.rests(gate, "hyperbo", test, runs, figure) is stopped


def test_panels_of_cm_bo_are_compared_with_every_acquisition():
    runs = ["rand_once", "cm_jef_jef", "cm_jef_jef-ei", "cm_wss_wss", "cm_wss_wss-ei", "cm_tasks"]
    of = lambda check, **given: gates.compared("cmbo", ClaimTest("x", check, given), runs)  # noqa: E731
    found = of("behind_most", methods=["cm_wss_wss"], than=["cm_jef_jef"])
    assert found == [{"cm_wss_wss", "cm_jef_jef"}, {"cm_wss_wss-ei", "cm_jef_jef-ei"}]
    pooled = of("best_in_band", table="rank", group="a", methods=["cm_jef_jef"], within=[1, 2])
    assert pooled == [set(runs) - {"cm_tasks"}]  # which was run with one acquisition


def test_words_of_a_sheet_are_found_on_every_split_and_with_the_acquisitions_that_are_listed():
    runs = ["mphd@held_out", "mphd-ucb3@held_out", "mphd-ei@new_space", "base_gp@new_space", "rand"]
    assert gates.named_runs(["mphd"], None, runs) == {"mphd@held_out"}
    assert gates.named_runs(["mphd", "base_gp"], ["ucb3", "ei"], runs) == set(runs) - {"rand"}
    assert gates.named_runs(["mphd-ei", "default"], None, runs) == {"mphd-ei@new_space"}
    gate = Gate(ASKING, ("hgp_truth@held_out",), False, 1.0, 0.5, "t")
    test = ClaimTest("x", "no_difference", {})
    assert "hgp_truth" not in gates.strings(
        {key: v for key, v in {"but": ["hgp_truth"]}.items() if key not in gates.ASIDE}
    )
    assert gates.rests(gate, "hyperbo", test, ["hgp_truth@held_out"])


def test_a_run_that_fails_takes_its_comparisons_and_the_others_can_still_contradict():
    """A conjunction of two orders: the one with the failing run is not testable, the other one decides."""
    given = evidence({}, rand=1.0, h_nll=0.5, stbo=0.1, rfgp=1.0)
    check = lambda failing: checks.run(  # noqa: E731
        "hyperbo", "lower_regret", given.about("suite", failing), {"lower": ["h_nll"], "than": ["rfgp", "stbo"]}
    )
    assert check({}).verdict == CONTRADICTED and check({"rfgp": "gate fails"}).verdict == CONTRADICTED
    lost = check({"stbo": "gate fails"})
    assert lost.verdict == UNTESTABLE and "gate fails" in lost.said
    control = Gate(learning.LEARNS, ("rfgp",), False, 1.0, 0.0, "c", everywhere=True)
    assert gates.failing([control, OF_STBO], ["h_nll", "rfgp", "rfgp-ei", "stbo", "stbo-ei"]).keys() == {
        "rfgp",
        "rfgp-ei",
        "stbo",
    }
    assert gates.apart(control, ClaimTest("x", "lower_regret", {})) and not gates.apart(
        PAIR, ClaimTest("x", "lower_regret", {})
    )
    assert not gates.apart(control, ClaimTest("x", "place", {}))


def test_runs_without_a_prior_on_two_splits_are_kept_apart():
    """`by_split` renames methods that learn; Random has one name, and would occur more than once."""
    parts = [made.runs(LENGTH, rand=1.0, **{f"h_nll__{s}": 0.5}).assign(split=s, candidate=3)
             for s in ("held_out", "new_rows")]  # fmt: skip
    table = pd.concat(parts, ignore_index=True)
    found = gates.of_runs(Evidence("pd1_mini", {"trajectories": lambda: table}))
    assert [gate.name for gate in found].count(LEARNABLE) == 2
    assert {gate.subjects for gate in found if gate.name == ASKING} == {
        ("rand",),
        ("h_nll@held_out",),
        ("h_nll@new_rows",),
    }


def test_a_claim_on_a_failed_gate_is_not_testable_but_another_part_can_contradict_it():
    lost = replace(told(UNTESTABLE), finding=Finding(UNTESTABLE, WHOLE.failure), gates=(WHOLE,))
    for other in ([], [told(HOLDS)], [told("undecided")]):
        found, cause = settling.settled(claim(ClaimTest("a", "b"), on=["pd1_mini"]), [lost, *other], [])
        assert (found.verdict, cause, found.said) == (UNTESTABLE, "gate", WHOLE.failure)
    found, cause = settling.settled(
        claim(ClaimTest("a", "b"), on=["pd1_mini"]), [lost, told(CONTRADICTED, against=1e-9)], []
    )
    assert (found.verdict, cause) == (CONTRADICTED, "unresolved")


def test_a_gate_that_takes_one_comparison_is_named_as_the_cause_too():
    """`lower_regret` loses the comparison with the stuck run alone; what is left does not contradict."""
    given = evidence({}, rand=1.0, h_nll=0.5, stbo=1.0)
    cell = told("undecided").cell
    cell = replace(cell, test=ClaimTest("x", "lower_regret", {"lower": ["h_nll"], "than": ["rand", "stbo"]}))
    about = given.about("suite", gates.failing([OF_STBO], ["stbo"]))
    part = judge._judged("hyperbo", cell, about, [OF_STBO], whole=False)
    assert part.gates == (OF_STBO,)
    found, cause = settling.settled(claim(cell.test, on=["pd1_mini"]), [part], [])
    assert (found.verdict, cause, found.said) == (UNTESTABLE, "gate", OF_STBO.failure)


def elimination_runs(dropped, truth=2, candidate=0):
    rows = [
        {"problem": problem, "profile": profile, "method": method, "seed": seed, "iteration": t, "u": candidate,
         "simple": 1.0, "truth": truth if problem == "period" else -1,
         "rejected": method == "he_gp_ucb" and seed < dropped and t == 2}
        for problem in ("lengthscale", "period") for profile in ("figure", "plain") for method in ("mle", "he_gp_ucb")
        for seed in range(4) for t in (1, 2, 3)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table.loc[table["profile"] == "plain", "rejected"] = False
    return table


@pytest.mark.parametrize(
    ("dropped", "profile", "candidate", "passed"),
    [(2, "figure", 0, True), (1, "figure", 0, False), (4, "plain", 0, False), (4, "figure", 2, False)],
)
def test_elimination_must_drop_a_wrong_candidate(dropped, profile, candidate, passed):
    table = elimination_runs(dropped, candidate=candidate)
    own = Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": table}}}, {"profile": profile})
    found = [gate for gate in gates.of("hegpucb", own) if gate.name == elimination.DROPPING]
    assert {gate.passed for gate in found} == {passed} and {gate.checks for gate in found} == {
        ("fewer_wrong", "settles_sooner"), ("seeds_order",), ("kept",)
    }  # fmt: skip
    assert {gate.subjects for gate in found} == {("period",), ("period", "he_gp_ucb"), ()}
    assert gates.of("hegpucb", Evidence("synthetic", {"studies": dict})) == []


@pytest.mark.parametrize(("wrong", "passed"), [(0, False), (1, False), (2, True), (12, True)])
def test_mle_must_err_often_where_a_claim_says_that_it_does(wrong, passed):
    """It makes 12 queries on the problem: one of them is fewer than a tenth, two are more."""
    table = elimination_runs(2)
    own = table.index[(table["problem"] == "period") & (table["method"] == "mle") & (table["profile"] == "figure")]
    table.loc[own, "u"] = [0] * wrong + [2] * (12 - wrong)
    made = Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": table}}}, {"profile": "figure"})
    (gate,) = [gate for gate in gates.of("hegpucb", made) if gate.name == elimination.ERRING]
    assert gate.passed == passed and gate.value == pytest.approx(wrong / 12)
    resting = [
        (claim.id, test.check)
        for claim in sheet.load("hegpucb", ROOT)
        for test in claim.tests
        if test.artefact == "hegpucb_fig02" and gates.rests(gate, "hegpucb", test, [])
    ]
    assert resting == [("G6", "fewer_wrong"), ("G6", "seeds_order")]


def regret_runs(problem, uniform, **levels):
    """The gates on simple regret of HE-GP-UCB's study on one problem. A method's regrets by iteration, from the first,
    each a number or one for each of six seeds."""
    table = pd.DataFrame([
        {"problem": problem, "profile": "figure", "method": method, "seed": seed, "iteration": t, "u": 0, "truth": -1,
         "rejected": False, "simple": np.broadcast_to(regret, 6)[seed] + 0.01 * ((seed + place) % 3)}
        for place, (method, regrets) in enumerate({"uniform": uniform, **levels}.items())
        for t, regret in enumerate(regrets, start=1) for seed in range(6)
    ])  # fmt: skip
    own = Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": table}}})
    return {gate.subjects or gate.checks: gate for gate in gates.of("hegpucb", own) if gate.name == LEARNABLE}


@pytest.mark.parametrize(
    ("levels", "passed"),
    [
        ({"he_gp_ucb": 1.0, "mle": 2.0, "gp_ucb": 0.1}, True),  # the method that knows the candidate counts
        ({"he_gp_ucb": 0.1, "mle": 2.0}, True),
        ({"he_gp_ucb": 1.0, "mle": 2.0}, False),
        ({"he_gp_ucb": 3.0, "mle": 2.0, "gp_ucb": 1.0}, False),
        ({"he_gp_ucb": [-9.0, 9.0, -9.0, 9.0, -9.0, 3.0], "mle": 0.9}, True),  # surer, though its gain is smaller
    ],
)
def test_simple_regrets_are_compared_where_some_method_is_below_random_points(levels, passed):
    (gate,) = regret_runs("period", [1.0], **{method: [level] for method, level in levels.items()}).values()
    assert gate.passed == passed and (gate.value < 0) == passed


def test_the_best_of_several_methods_is_no_evidence_at_the_level_of_one():
    """The gain is 2.85 standard errors: beyond Student's 97.5 % quantile of six seeds, 2.57, and within 3.16, that of
    two methods."""
    gains = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]) + 2.85 / np.sqrt(5)
    spread = 0.01 * (np.arange(6) % 3)
    one = [2.0 - gains - 0.01 * ((np.arange(6) + 1) % 3) + spread]
    assert regret_runs("period", [2.0], mle=one)["period", "simple", "last"].passed
    assert not regret_runs("period", [2.0], mle=one, he_gp_ucb=[9.0])["period", "simple", "last"].passed


def test_random_points_are_looked_at_when_the_methods_are_compared():
    early, late, last = [0.1] * 15, [3.0] * 34 + [0.1], [3.0]
    found = regret_runs("decomposition", [1.0] * 51, mle=early + late + last)
    assert {key: gate.passed for key, gate in found.items()} == {
        ("decomposition", "simple", "last"): False, ("decomposition", "simple", "early"): True, ("catch_up",): True
    }  # fmt: skip
    behind = regret_runs("decomposition", [1.0] * 51, mle=[0.1] * 14 + [3.0] * 36 + [0.1])
    assert [gate.passed for gate in behind.values()] == [True, False, False]


def test_tests_of_simple_regret_rest_on_random_points_and_no_others():
    """The claims as they are, on the figure that they are judged by."""
    problems = ("lengthscale", "period", "decomposition", "mean")
    found = [gate for problem in problems for gate in regret_runs(problem, [1.0], mle=[2.0]).values()]
    assert len(found) == 7 and not any(gate.passed for gate in found)
    resting = [
        (claim.id, test.check, gate.subjects)
        for claim in sheet.load("hegpucb", ROOT)
        for test in claim.tests if test.artefact == "hegpucb_fig02"
        for gate in found if gates.rests(gate, "hegpucb", test, [])
    ]  # fmt: skip
    assert resting == [
        ("G3", "nearly_equal", ("simple",)),
        ("G3", "seeds_order", ("lengthscale", "simple", "last")),
        ("G8", "seeds_order", ("decomposition", "simple", "early")),
        ("G8", "catch_up", ()),
        ("G11", "seeds_order", ("mean", "simple", "last")),
    ]


def test_without_random_points_no_gate_speaks_of_them():
    runs = elimination_runs(2)
    own = Evidence("synthetic", {"studies": lambda: {"hegpucb_runs": {"run": runs}}})
    assert LEARNABLE not in {gate.name for gate in gates.of("hegpucb", own)}


def control_runs(**levels):
    """Runs on `control`: a level per space, (alike, unlike), for each method."""
    tables = []
    for place, space in enumerate(("alike", "unlike")):
        table = made.runs(LENGTH, tasks=8, **{method: both[place] for method, both in levels.items()})
        tables.append(table.assign(task=space + "/" + table["task"], fold=space, candidate=0))
    return pd.concat(tables, ignore_index=True)


def test_a_method_must_work_where_tasks_are_alike_and_not_where_nothing_can_be_learned():
    late = [1.0, *[0.1] * (LENGTH - 1)]  # no better than Random at first: it has learned nothing from the tasks
    table = control_runs(
        rand=(1.0, 1.0),
        h_nll=(0.2, 1.0),
        rfgp=(late, 1.0),
        fsbo=(late, 0.2),
        ablr=(1.0, 1.0),
        stbo=(late, 1.0),
        stboh=(1.0, 1.0),
    )
    found = gates.of("hyperbo", Evidence("control", {"trajectories": lambda: table}))
    passed = {(gate.name, gate.subjects[0]): gate.passed for gate in found if gate.everywhere}
    learns, works, abstains = learning.LEARNS, learning.WORKS, learning.ABSTAINS
    assert passed == {
        (learns, "h_nll"): True, (learns, "rfgp"): False, (works, "fsbo"): True, (works, "ablr"): False,
        (works, "stbo"): True, (works, "stboh"): False,
        (abstains, "h_nll"): True, (abstains, "rfgp"): True, (abstains, "fsbo"): False,
        (abstains, "ablr"): True,
        (abstains, "stbo"): True, (abstains, "stboh"): True,
    }  # fmt: skip
    other = gates.of("hyperbo", Evidence("pd1_mini", {"trajectories": lambda: table}))
    assert not [gate for gate in other if gate.everywhere]


def cmbo_runs(**levels):
    """Runs on `cmbo_control`: a level per space, (mirrored, alike), for each method."""
    tables = []
    for place, space in enumerate(("mirrored", "alike")):
        own = {method: both[place] for method, both in levels.items()}
        table = made.runs(LENGTH, tasks=16, column="normalised_regret", **own)
        fold = space + "/" + table["task"].map({task: f"draw{i // 2}" for i, task in enumerate(table["task"].unique())})
        tables.append(table.assign(space=space, task=fold + "/" + table["task"], fold=fold, candidate=0))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(simple_regret=table["normalised_regret"])


def everywhere(benchmark, table):
    """Which gates of cm-BO that count everywhere pass: {(gate, run): passed}."""
    found = gates.of("cmbo", Evidence(benchmark, {"trajectories": lambda: table}))
    return {(gate.name, gate.subjects[0]): gate.passed for gate in found if gate.everywhere}


def test_clusters_must_beat_the_average_of_all_tasks_under_their_own_reading_of_the_noise():
    table = cmbo_runs(
        rand_once=(1.0, 0.1), gp32=(0.6, 1.0), cm_global=(0.5, 1.0), cm_wss_wss=(0.4, 1.0), cm_jef_jef=(0.5, 1.0),
        cm_tasks=(1.0, 0.01), cm_global_fixed=(0.2, 1.0), cm_wss_wss_fixed=(0.3, 0.01),
    )  # fmt: skip
    works, chooses = clusters.WORKS, clusters.CHOOSES
    passed = {key: one for key, one in everywhere("cmbo_control", table).items() if key[0] in (works, chooses)}
    assert passed == {
        (works, "gp32"): True, (works, "cm_wss_wss"): True, (works, "cm_jef_jef"): True, (works, "cm_tasks"): False,
        (works, "cm_wss_wss_fixed"): True,
        (chooses, "cm_wss_wss"): True, (chooses, "cm_jef_jef"): False, (chooses, "cm_wss_wss_fixed"): False,
    }  # fmt: skip
    assert not everywhere("cmbo_mini", table)


def test_a_gate_on_two_mirrored_families_resamples_draws_and_not_targets():
    """Of two draws one is far ahead and one a little: sixteen targets would decide that, two draws do not."""
    table = cmbo_runs(rand_once=(1.0, 1.0), cm_wss_wss=(0.0, 0.0))
    for draws, passed in (((0.0, 0.8), False), ((0.0,) * 8, True)):
        space, number = "mirrored/draw", table["task"].str.extract(r"draw(\d+)")[0].astype(int) % len(draws)
        fold = space + number.astype(str)
        level = number.map(dict(enumerate(draws))).where(table["method"] == "cm_wss_wss", table["normalised_regret"])
        moved = table.assign(fold=fold, normalised_regret=level, simple_regret=level)
        moved["task"] = fold + "/" + moved["task"].str.rpartition("/")[2]
        gate = everywhere("cmbo_control", moved[moved["space"] == "mirrored"])
        assert gate[clusters.WORKS, "cm_wss_wss"] == passed


GLOBALS = ("cm_global", "cm_global_fixed", "cm_global_scaled")
"""The average of all tasks, under each reading of the noise."""


@pytest.mark.parametrize(("level", "passed"), [(0.5, True), (1.0, False), (1.5, False)])
def test_what_learns_from_tasks_must_beat_random_where_they_are_alike(level, passed):
    """Whatever it does on two mirrored families; a method that learns from no task is not asked."""
    learning = [*GLOBALS, "cm_wss_wss", "cm_tasks_scaled", "rgpe", "rm_gp_ucb", "hyperbo"]
    table = cmbo_runs(rand_once=(0.5, 1.0), gp32=(0.4, 2.0), **{method: (0.2, level) for method in learning})
    found = {run: one for (gate, run), one in everywhere("cmbo_control", table).items() if gate == clusters.TRANSFERS}
    assert found == dict.fromkeys(learning, passed)


def test_a_given_number_of_clusters_is_asked_itself_beside_one_cluster():
    """Figure 3's methods do not use the index that chooses a number, so they do not answer for it. One cluster is
    GlobalCen, which is asked only where all tasks are alike."""
    table = cmbo_runs(
        rand_once=(1.0, 1.0), cm_wss_1=(0.5, 0.2), cm_wss_2=(0.3, 0.2), cm_wss_6=(0.7, 1.5), cm_bary_1=(0.5, 0.2),
        cm_bary_2=(1.2, 0.2), cm_bary_3=(0.4, 0.2),
    )  # fmt: skip
    works, chooses, transfers = clusters.WORKS, clusters.CHOOSES, clusters.TRANSFERS
    assert everywhere("cmbo_control", table) == {
        (works, "cm_wss_2"): True, (chooses, "cm_wss_2"): True, (works, "cm_wss_6"): True, (chooses, "cm_wss_6"): False,
        (works, "cm_bary_2"): False, (chooses, "cm_bary_2"): False,
        (works, "cm_bary_3"): True, (chooses, "cm_bary_3"): True,
        **{(transfers, f"cm_wss_{n}"): n < 6 for n in (1, 2, 6)},
        **{(transfers, f"cm_bary_{n}"): True for n in (1, 2, 3)},
    }  # fmt: skip
    alone = everywhere("cmbo_control", table[~table["method"].isin(["cm_wss_1", "cm_bary_1"])])
    assert not any(gate == chooses for gate, _ in alone)


def test_a_gate_on_the_control_counts_for_a_run_with_another_acquisition_than_the_methods_own():
    """HyperBO is run with UCB there, and with PI, its own, elsewhere."""
    table = cmbo_runs(**{"rand_once": (0.5, 1.0), "hyperbo-ucb3": (0.2, 1.5), "cm_global": (0.2, 0.1)})
    found = gates.of("cmbo", Evidence("cmbo_control", {"trajectories": lambda: table}))
    failed = [gate for gate in found if gate.everywhere and not gate.passed]
    runs = ["rand_once", "hyperbo", "hyperbo-ei", "hyperbo-ucb3", "cm_global", "gp32"]
    assert {gate.subjects for gate in failed} == {("hyperbo",)}
    assert set(gates.failing(failed, runs)) == {"hyperbo", "hyperbo-ei", "hyperbo-ucb3"}
    test = ClaimTest("cmbo_fig01", "behind_most", {"methods": ["gp32"], "than": ["hyperbo"]})
    assert all(gates.rests(gate, "cmbo", test, runs) for gate in failed)


def test_the_average_of_all_tasks_fails_no_gate_for_two_mirrored_families():
    """The case is not one that it can win; what it is compared with there are clusters, which must beat it."""
    table = cmbo_runs(rand_once=(0.1, 1.0), cm_wss_wss=(0.05, 0.2), **dict.fromkeys(GLOBALS, (1.0, 0.2)))
    passed = everywhere("cmbo_control", table)
    assert all(passed.values()) and {key for key in passed if key[1] in GLOBALS} == {
        (clusters.TRANSFERS, method) for method in GLOBALS
    }
    test = ClaimTest("cmbo_fig01", "behind_most", {"methods": ["rand_once"], "than": ["cm_global"]})
    found = gates.of("cmbo", Evidence("cmbo_control", {"trajectories": lambda: table}))
    resting = [
        gate for gate in found if gate.everywhere and gates.rests(gate, "cmbo", test, ["rand_once", "cm_global"])
    ]
    assert {gate.name for gate in resting} == {clusters.TRANSFERS}


@pytest.mark.parametrize(("first", "passed"), [(0.4, True), (1.0, False)])
def test_priors_of_a_sweep_must_have_learned_a_mean(first, passed):
    late = [first, *[0.1] * (LENGTH - 1)]
    table = made.runs(LENGTH, tasks=9, rand=1.0, h_nll=late, fsbo=1.0).assign(candidate=0, split="others_sweep")
    gate = by_name(gates.of("hyperbo", Evidence("pd1_mini", {"trajectories": lambda: table})), learning.TRAINED)
    assert [one.passed for one in gate.values()] == [passed] and set(gate) == {()}
    several = made.runs(LENGTH, tasks=9, rand=1.0, h_nll__others_sweep=late, h_nll__others_points_4=1.0)
    several = several.assign(candidate=0, split="others_sweep")
    found = gates.of("hyperbo", Evidence("pd1_mini", {"trajectories": lambda: several}))
    assert [one.passed for one in found if one.name == learning.TRAINED] == [passed]
    plain = table.assign(split="held_out")
    assert not by_name(gates.of("hyperbo", Evidence("pd1_mini", {"trajectories": lambda: plain})), learning.TRAINED)


@pytest.mark.parametrize("random", ["rand", "h_nll_zero_8"])
@pytest.mark.parametrize(("first", "passed"), [(0.4, True), (1.0, False)])
def test_a_structure_with_a_network_as_mean_must_have_learned_it(first, passed, random):
    """A zero mean has nothing to learn, and begins like Random, which figures of structures do not show."""
    late = [first, *[0.1] * (LENGTH - 1)]
    levels = {random: 1.0, "h_nll_linear_32": [0.4, *[0.1] * (LENGTH - 1)], "h_nll_linear_4": late, "h_nll_zero_4": 1.0}
    table = made.runs(LENGTH, tasks=9, **levels).assign(candidate=0, split="held_out_sweep")
    gate = by_name(gates.of("hyperbo", Evidence("pd1_mini", {"trajectories": lambda: table})), learning.TRAINED)
    told = {subjects: one.passed for subjects, one in gate.items()}
    assert told == {("h_nll_linear_32",): True, ("h_nll_linear_4",): passed}
    begun = pd.concat([table[table["iteration"] == 1].assign(iteration=0), table])  # a point is given
    found = gates.of("hyperbo", Evidence("hpob_mini", {"trajectories": lambda: begun}))
    assert bool(by_name(found, learning.TRAINED)) == (random == "rand")


def tuning(first, tasks=9, seeds=3, length=16):
    """Online runs: Random draws from [0, 1), and H-NLL's first query has the value `first` (None: infeasible)."""
    rng, rows = np.random.default_rng(0), []
    for task in range(tasks):
        for seed in range(seeds):
            for method in ("rand", "h_nll_online"):
                values = rng.uniform(size=length)
                values[0] = values[0] if method == "rand" or first is None else first
                for t, y in enumerate(values, start=1):
                    known = not (first is None and t == 1 and method != "rand")
                    row = {"benchmark": "pd1_mini", "split": "others", "task": f"d{task}, MLP, 32", "method": method}
                    row |= {"acquisition": "ucb18", "seed": seed, "iteration": t, "y": y if known else np.nan}
                    rows.append(row | {"feasible": known, "prior_seed": seed, "ok": True, "data": "0"})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("first", "share", "passed"), [(0.9, 0.1, True), (0.5, 0.5, False), (None, 1.0, False)])
def test_priors_of_online_tuning_must_know_a_good_first_query(first, share, passed):
    table = tuning(first)
    (gate,) = gates.of("hyperbo", Evidence("pd1_mini", {"online": lambda: table}))
    assert (gate.name, gate.subjects, gate.passed) == (learning.TUNED, ("h_nll_online",), passed)
    assert float(gate.said.split(": ")[1].split()[0]) == pytest.approx(share, abs=0.05) and gate.everywhere
    test = ClaimTest("hyperbo_fig22", "ends_lower", {"methods": ["h_nll_online"], "reference": "stbo_online"})
    assert gates.rests(gate, "hyperbo", test, ["rand", "h_nll_online", "stbo_online"])
    without = table[table["method"] != "rand"]
    assert not gates.of("hyperbo", Evidence("pd1_mini", {"online": lambda: without}))


def test_claims_on_a_figure_without_random_rest_on_the_gate_of_online_tuning(monkeypatch):
    """Random is shown in hyperbo_fig22 alone; C54 is judged on hyperbo_fig14."""
    table = tuning(0.5)
    shown = {"hyperbo_fig14": table[table["method"] != "rand"], "hyperbo_fig22": table}
    gathered = {id: Evidence("pd1_mini", {"online": lambda own=own: own}) for id, own in shown.items()}
    monkeypatch.setattr(judge, "gather", lambda artefact, root: (gathered[artefact.id], {}))
    entries = catalogue.load(ROOT)
    made_here = [catalogue.Artefact(id, id, "pd1_mini", entries[id]) for id in shown]
    (c54,) = [one for one in sheet.load("hyperbo", ROOT) if one.id == "C54"]
    rows, controls, _ = judge.judge([c54], made_here, ROOT / "results" / "laptop", entries)
    verdict = rows[rows["role"] == "claim"].iloc[0]
    assert (verdict["verdict"], verdict["cause"]) == (UNTESTABLE, "gate")
    assert controls["claims"].tolist() == ["C54"] and controls["artefact"].tolist() == ["hyperbo_fig22"]


def test_noise_that_is_all_of_the_variance_takes_a_method_of_cm_bo_out():
    levels = {"rand_once": 1.0, "gp32": 0.4, "cm_wss_wss": 0.5, "cm_wss_3": 0.5, "cm_jef_jef": 0.5, "cm_tasks": 0.5}
    table = made.runs(LENGTH, tasks=6, **levels)
    high, inside, low = (np.sqrt(variance) for variance in (1.0, 0.9, 1e-6))
    first_half = table["task"].isin(["t0", "t1", "t2"])
    noise = {"cm_wss_wss": np.where(first_half, high, inside), "cm_jef_jef": high, "cm_tasks": low, "gp32": high}
    noise["cm_wss_3"] = high  # another number of clusters: a variant of the method
    table = table.assign(candidate=np.arange(len(table)), noise=np.nan)
    for method, values in noise.items():
        table.loc[table["method"] == method, "noise"] = np.broadcast_to(values, len(table))[table["method"] == method]
    found = by_name(gates.of("cmbo", Evidence("cmbo_mini", {"trajectories": lambda: table})), clusters.FREE)
    assert {subjects: gate.passed for subjects, gate in found.items()} == {
        ("cm_wss_wss",): True, ("cm_jef_jef",): False, ("cm_tasks",): True, ("cm_wss_3",): False
    }  # fmt: skip
    assert "in 100% of its runs" in found[("cm_jef_jef",)].said and found[("cm_wss_wss",)].value == 0.5


def test_a_gate_on_control_counts_for_the_method_on_all_benchmarks():
    gate = Gate(learning.LEARNS, ("rfgp",), False, 0.1, 0.0, "r", everywhere=True)
    order = lambda *names: ClaimTest("x", "lower_regret", {"lower": ["h_nll"], "than": [*names]})  # noqa: E731
    runs = ["rand", "h_nll", "rfgp", "rfgp-ei"]
    assert gates.rests(gate, "hyperbo", order("rfgp"), runs) and gates.rests(gate, "hyperbo", order("rfgp-ei"), runs)
    assert not gates.rests(gate, "hyperbo", order("rand"), runs) and gates.rests(
        gate, "hyperbo", ClaimTest("x", "lower_regret", {"lower": [], "than": "others"}), runs
    )


@pytest.mark.parametrize("paper", ["hyperbo", "mphd", "cmbo", "hegpucb"])
def test_every_artefact_with_runs_has_its_gates(paper):
    """Run names are those of the catalogue; every run is made on every split that it is read from."""
    seen = 0
    for artefact in catalogue.artefacts(config.load(ROOT), catalogue.load(ROOT)):
        if artefact.entry.paper != paper or not artefact.trajectories:
            continue
        parts = []
        for run in artefact.trajectories:
            own = registry.method(run.method).acquisition == run.acquisition
            name = str(RunId(run.method, "" if own else run.acquisition))
            table = made.runs(2, tasks=2, priors=1, **{"any": 1.0})
            parts.append(
                table.assign(method=name, split=run.split, candidate=1, normalised_regret=table["simple_regret"])
            )
        table = pd.concat(parts, ignore_index=True)
        several = artefact.inputs.splits is not None
        shown = artefacts.by_split(table) if several else table
        found = gates.of(paper, Evidence(artefact.benchmark, {"trajectories": lambda shown=shown: shown}))
        asked = {gate.subjects[0] for gate in found if gate.name == ASKING}
        assert asked == set(shown["method"]), artefact.name
        seen += 1
    assert seen > 0
