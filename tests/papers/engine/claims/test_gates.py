"""Gates: each passes on runs made to pass it, fails on runs made to fail it, and stops the claims that rest on it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from metabo.papers.engine.claims import gates, judge
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.gates import ASKING, DIFFERING, LEARNABLE, Gate
from metabo.papers.engine.claims.sheet import ClaimTest
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, UNTESTABLE, Finding
from metabo.papers.hegpucb import gates as elimination
from metabo.papers.hyperbo import gates as learning
from tests.papers.engine.claims import made
from tests.papers.engine.claims.test_judge import claim, told

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


def test_three_priors_that_differ_do_not_hide_a_clear_advantage():
    table = made.runs(LENGTH, tasks=12, rand=1.0, h_nll=0.5).assign(candidate=0)
    spread = table["prior_seed"].map({0: 0.6, 1: 1.0, 2: 1.5}).where(table["method"] == "h_nll", 1.0)
    table["simple_regret"] *= spread
    (gate,) = gates.learnable(Evidence("pd1_mini", {"trajectories": lambda: table}))
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
        (gate,) = gates.learnable(Evidence("pd1_mini", {"trajectories": lambda table=table: table}))
        passed.append(gate.passed)
    assert np.mean(passed) < 0.15


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
PAIR = Gate(DIFFERING, ("h_nll", "h_nll-ei"), False, 1.0, 0.5, "p")
PROBLEM = Gate(elimination.DROPPING, ("period",), False, 0.0, 0.5, "d", unless_named=False)


@pytest.mark.parametrize(
    ("paper", "check", "arguments", "expected"),
    [
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["stbo"]}, [WHOLE, OF_STBO]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["rand"]}, [WHOLE]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": "others"}, [WHOLE, OF_STBO, PAIR]),
        ("hyperbo", "lower_regret", {"lower": ["h_nll"], "than": ["h_nll-ei"]}, [WHOLE, PAIR]),
        ("hegpucb", "seeds_order", {"problem": "period", "lower": ["he_gp_ucb"], "than": ["mle"]}, [PROBLEM]),
        ("hegpucb", "seeds_order", {"problem": "mean", "lower": ["he_gp_ucb"], "than": ["mle"]}, []),
        ("hegpucb", "nearly_equal", {}, []),
    ],
)
def test_a_test_rests_on_the_gates_of_what_it_names(paper, check, arguments, expected):
    given = [PROBLEM] if paper == "hegpucb" else [WHOLE, OF_STBO, PAIR]
    runs = [] if paper == "hegpucb" else ["rand", "h_nll", "h_nll-ei", "stbo"]
    assert [gate for gate in given if gates.rests(gate, paper, ClaimTest("x", check, arguments), runs)] == expected


def test_a_claim_on_a_failed_gate_is_not_testable_but_another_part_can_contradict_it():
    lost = replace(told(UNTESTABLE), finding=Finding(UNTESTABLE, "gate 'x' fails: y"), gates=(WHOLE,))
    for other in ([], [told(HOLDS)], [told("undecided")]):
        found, cause = judge.settled(claim(ClaimTest("a", "b"), on=["pd1_mini"]), [lost, *other], [])
        assert (found.verdict, cause, found.said) == (UNTESTABLE, "gate", "gate 'x' fails: y")
    found, cause = judge.settled(
        claim(ClaimTest("a", "b"), on=["pd1_mini"]), [lost, told(CONTRADICTED, against=1e-9)], []
    )
    assert (found.verdict, cause) == (CONTRADICTED, "unresolved")


def elimination_runs(dropped, truth=2, candidate=0):
    rows = [
        {"problem": problem, "profile": profile, "method": method, "seed": seed, "iteration": t, "u": candidate,
         "truth": truth if problem == "period" else -1, "rejected": method == "he_gp_ucb" and seed < dropped and t == 2}
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
    (gate,) = gates.of("hegpucb", own)
    assert gate.subjects == ("period",) and gate.passed == passed
    assert gates.of("hegpucb", Evidence("synthetic", {"studies": dict})) == []


def control_runs(**levels):
    """Runs on `control`: a level per space, (alike, unlike), for each method."""
    tables = []
    for place, space in enumerate(("alike", "unlike")):
        table = made.runs(LENGTH, tasks=8, **{method: both[place] for method, both in levels.items()})
        tables.append(table.assign(task=space + "/" + table["task"], fold=space, candidate=0))
    return pd.concat(tables, ignore_index=True)


def test_a_method_must_work_where_tasks_are_alike_and_not_where_nothing_can_be_learned():
    table = control_runs(rand=(1.0, 1.0), h_nll=(0.2, 1.0), rfgp=(1.0, 1.0), fsbo=(0.2, 0.2))
    found = gates.of("hyperbo", Evidence("control", {"trajectories": lambda: table}))
    passed = {(gate.name, gate.subjects[0]): gate.passed for gate in found if gate.everywhere}
    works, abstains = learning.WORKS, learning.ABSTAINS
    assert passed == {
        (works, "h_nll"): True, (works, "rfgp"): False, (works, "fsbo"): True,
        (abstains, "h_nll"): True, (abstains, "rfgp"): True, (abstains, "fsbo"): False,
    }  # fmt: skip
    assert not [
        gate for gate in gates.of("hyperbo", Evidence("pd1_mini", {"trajectories": lambda: table})) if gate.everywhere
    ]


def test_a_gate_on_control_counts_for_the_method_on_all_benchmarks():
    gate = Gate(learning.WORKS, ("rfgp",), False, 0.1, 0.0, "r", everywhere=True)
    order = lambda *names: ClaimTest("x", "lower_regret", {"lower": ["h_nll"], "than": [*names]})  # noqa: E731
    runs = ["rand", "h_nll", "rfgp", "rfgp-ei"]
    assert gates.rests(gate, "hyperbo", order("rfgp"), runs) and gates.rests(gate, "hyperbo", order("rfgp-ei"), runs)
    assert not gates.rests(gate, "hyperbo", order("rand"), runs) and gates.rests(
        gate, "hyperbo", ClaimTest("x", "lower_regret", {"lower": [], "than": "others"}), runs
    )
