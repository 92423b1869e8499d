"""HE-GP-UCB's checks: verdicts that few replicates decide, controls, and what the paper's inconsistencies show."""

import importlib
import json

import numpy as np
import pytest

from metabo.compute import keys
from metabo.papers.engine.theory import tables
from metabo.plan import codegraph, registry

SHARE = 0.02
YES, NO = ("SUPPORTED", "ok"), ("REFUTED", "ok")


def statements(name: str, share: float = SHARE) -> dict[tuple[str, str], dict]:
    module = importlib.import_module(registry.check_module("hegpucb", name))
    made = getattr(module, name)(keys.stream(0, "theory", "hegpucb", name), share)
    found = {(s["id"], s["version"]): s for s in made}
    assert len(found) == len(made), "two statements with one name"
    assert all(p["cells"] and p["control"] and p["control"]["cells"] for s in made for p in s["parts"])
    json.dumps(made, allow_nan=False)
    record = {"paper": "hegpucb", "check": name, "share": share, "statements": made}
    assert len(tables.verdicts([record])) == len(made) and len(tables.parts([record])), "the tables can show it"
    tables.numbers([record])
    return found


@pytest.fixture
def shorter(monkeypatch):
    """Set constants of a module of checks: fewer settings and iterations, the same rules."""

    def change(module: str, **values: object) -> None:
        for name, value in values.items():
            monkeypatch.setattr(importlib.import_module(f"metabo.papers.hegpucb.theory.{module}"), name, value)

    return change


def parts(statement: dict) -> dict[str, str]:
    return {p["part"]: p["verdict"] for p in statement["parts"]}


def controls(found: dict) -> set[str]:
    return {p["control"]["verdict"] for s in found.values() for p in s["parts"]}


def cells(statement: dict, part: str) -> list[dict]:
    return next(p for p in statement["parts"] if p["part"] == part)["cells"]


def numbers(statement: dict, part: str, place: int = 0) -> dict:
    return cells(statement, part)[place]["numbers"]


DECIDED = {
    "lemma52": {
        ("Lemma 5.2", "printed"): YES, ("Lemma 5.2, box", "proof step"): NO, ("Lemma 5.2, box", "repaired"): YES,
        ("Theorem 4.2, series", "printed"): NO, ("Theorem 4.2, series", "repaired"): YES,
    },
    "nesting": {
        ("Nesting, length-scale", "printed"): YES, ("Nesting, periods", "printed"): YES,
        ("Nesting, multiples", "reading"): NO, ("Nesting, multiples", "repaired"): YES,
    },
    "table1": {
        ("Table 1, HE-GP-UCB", "printed"): NO, ("Table 1, HE-GP-UCB", "repaired"): YES, ("Table 1, |U|", "ours"): YES,
        ("No regret, limit", "printed"): NO, ("No regret, limit", "repaired"): YES,
    },
    "decompositions": {
        ("Decompositions", "printed"): YES, ("Decompositions", "reading"): NO, ("Decompositions", "repaired"): YES,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_deterministic_statements_are_decided_at_every_scale(name):
    assert {key: (s["verdict"], s["status"]) for key, s in statements(name).items()} == DECIDED[name]


def test_sums_of_the_noise():
    """The printed lemma fails where √ξ_1 < R, in all of 400 runs, which do not refute it elsewhere."""
    found = statements("lemma51")
    printed, repaired = found["Lemma 5.1", "printed"], found["Lemma 5.1", "repaired"]
    exact = {c["setting"]["delta"]: c["verdict"] for c in cells(printed, "first")}
    assert exact == {0.05: "SUPPORTED", 0.5: "SUPPORTED", 0.9: "SUPPORTED", 0.9985: "REFUTED"}
    undecided = [c for c in cells(printed, "simulated") if c["verdict"] != "SUPPORTED"]
    assert [c["setting"]["delta"] for c in undecided if c["numbers"]["share"] > 0.5] == [0.9985]
    assert "REFUTED" not in {c["verdict"] for c in undecided}, "400 runs cannot exclude 0.9985"
    assert "REFUTED" not in parts(repaired).values() and parts(repaired)["first"] == "SUPPORTED"
    assert (found["Lemma 5.1, Theorem 4.1", "printed"]["verdict"], "ok") == NO
    assert found["Lemma 5.1, sum", "proof step"]["verdict"] == "REFUTED"
    assert found["Lemma 5.1, sum", "repaired"]["verdict"] == "SUPPORTED"
    assert controls(found) == {"REFUTED"}


def test_intervals_of_a_sample():
    found = statements("theorem31_bayes")
    own, other = found["Theorem 3.1, Bayesian", "printed"], found["Shorter length-scale, Bayesian", "ours"]
    assert own["verdict"] == "SUPPORTED" and other["verdict"] == "SUPPORTED" and controls(found) == {"REFUTED"}
    needed = found["Shorter length-scale, Bayesian", "reading"]
    assert needed["verdict"] == "REFUTED" and {c["numbers"]["share"] for c in cells(needed, "needed")} == {1.0}


def test_the_printed_frequentist_intervals_miss(shorter):
    shorter("intervals", NORMS=(0.2, 1.0), NOISES=(0.1,))
    found = statements("theorem31_frequentist")
    title = "Theorem 3.1, frequentist"
    printed, repaired = found[title, "printed"], found[title, "repaired"]
    at = {(c["setting"]["B"], c["setting"]["R"]): c["numbers"]["share"] for c in cells(printed, "coverage")}
    assert printed["verdict"] == "REFUTED" and at[1.0, 0.1] > 0.5
    assert repaired["verdict"] == "SUPPORTED" and found[f"{title}, IGP-UCB", "repaired"]["verdict"] == "SUPPORTED"
    assert controls(found) == {"REFUTED"}


def test_the_largest_value():
    found = statements("lemma54")["Lemma 5.4", "printed"]
    assert set(parts(found).values()) == {"SUPPORTED"} and found["status"] == "ok"


def test_intervals_on_an_infinite_domain():
    found = statements("theorem32")
    printed, repaired = found["Theorem 3.2", "printed"], found["Theorem 3.2", "repaired"]
    verdicts = {c["setting"]["case"]: c["verdict"] for c in cells(printed, "queried")}
    assert verdicts == {"b > 1": "SUPPORTED", "b < 1": "REFUTED"}
    assert repaired["verdict"] == "SUPPORTED" and controls(found) == {"REFUTED"}
    assert found["Theorem 3.2, discretisation", "proof step"]["verdict"] == "REFUTED"
    assert found["Theorem 3.2, discretisation", "repaired"]["verdict"] != "REFUTED", "100 runs do not support 0.05"
    assert found["Theorem 4.2(B), β", "printed"]["verdict"] == "REFUTED"
    assert found["Theorem 4.2(B), β", "repaired"]["verdict"] == "SUPPORTED"


def test_the_true_candidate_is_kept_by_the_repaired_test_only(shorter):
    every = importlib.import_module("metabo.papers.hegpucb.theory.preservation").cases()
    shorter("preservation", cases=lambda: {"one candidate, GP": every["one candidate, GP"]})
    found = statements("preservation")
    title = "Preservation of u*"
    printed, repaired = found[title, "printed"], found[title, "repaired"]
    shares = {c["setting"]["case"]: c["numbers"]["share"] for c in cells(printed, "kept")}
    assert printed["verdict"] == "REFUTED" and shares["one candidate, GP"] > 0.5
    assert repaired["verdict"] == "SUPPORTED" and all(c["numbers"]["bad"] == 0 for c in cells(repaired, "kept"))
    assert all(1.0 < c["numbers"]["sees"] < 10.0 for c in cells(repaired, "kept")), (
        "a test that cannot fire shows nothing"
    )
    assert numbers(repaired, "others")["share"] == 0.0, "some wrong candidate is dropped in every run"
    assert controls(found) == {"REFUTED"}


def test_equations_and_critical_iterations():
    found = statements("elimination")
    assert found["Eq. 2", "printed"]["verdict"] == "REFUTED" and found["Eq. 2", "repaired"]["verdict"] == "SUPPORTED"
    assert set(parts(found["Eqs. 4 and 5", "printed"]).values()) == {"SUPPORTED"}
    assert set(parts(found["Critical iterations", "printed"]).values()) == {"SUPPORTED"}
    assert numbers(found["Critical iterations", "printed"], "kept")["smaller"] == 10.0, "all wrong hills are dropped"
    assert controls(found) == {"REFUTED"}


def test_sum_of_widths(shorter):
    shorter("regret", ITERATIONS=50)
    found = statements("lemma53")
    own = found["Lemma 5.3", "printed"]
    assert own["verdict"] == "SUPPORTED" and 0.0 < numbers(own, "sum")["last_share"] < 0.4, "not that of T = 1"
    assert found["Lemma 5.3, X_t", "proof step"]["verdict"] == "REFUTED" and controls(found) == {"REFUTED"}


@pytest.mark.parametrize("name", ["theorem41", "theorem42"])
def test_regret_is_bounded(name, shorter):
    """Where no policy exceeds the bound, the check has no power; where it binds, it could refute the bound."""
    shorter("regret", ITERATIONS=50, BINDING={"norm": 700, "GP": 120})
    found = statements(name)
    binding = [s for (id, _), s in found.items() if id.endswith(", binding")]
    loose = [s for (id, _), s in found.items() if not id.endswith(", binding")]
    assert len(binding) == len(loose) and {s["status"] for s in loose} == {"no power"}
    assert {(s["verdict"], s["status"]) for s in binding} == {YES}
    assert all(1.0 < s["sees"] < 100.0 for s in binding), "bounds that these runs could refute"
    assert all(c["numbers"]["binds"] > 0.1 for s in binding for c in cells(s, "coverage"))


def test_the_printed_test_loses_the_truth_and_then_the_bound(shorter):
    """A universal bound needs one instance to fail: where σ_i drops u* and the other candidates see a constant."""
    shorter("dropping", LENGTHS={"norm": 1000, "GP": 100}, RUNS=100)
    found = statements("dropping", share=1.0)
    printed, repaired = (found["Theorem 4.1, u* at risk", version] for version in ("printed", "repaired"))
    assert (printed["verdict"], printed["status"]) == NO and printed["sees"] < 1.0
    lost, kept = numbers(printed, "coverage"), numbers(repaired, "coverage")
    assert lost["dropped"] > 0.5 and 0.0 < lost["ended"] < lost["dropped"], "the other candidates go less often"
    assert kept["dropped"] == kept["ended"] == kept["bad"] == 0.0
    assert printed["parts"][0]["control"]["verdict"] == "REFUTED"


def test_regret_of_maximum_likelihood():
    own = statements("stuck")["MLE stuck", "printed"]
    assert parts(own)["linear"] != "REFUTED", "these few runs do not bound a share by 0.1"
    assert numbers(own, "linear")["runs"] > 30 and numbers(own, "linear")["share"] < 0.1
    assert numbers(own, "found")["share"] < 0.1


@pytest.mark.parametrize(
    ("name", "module", "values"),
    [
        ("no_regret", "growth", {"LONG": 200, "TIMES": np.array([50, 100, 200])}),
        ("dependence", "growth", {"CANDIDATES": (1, 5, 20), "ROUGH": (0.3, 0.075), "SMOOTH": (0.3, 1.2), "SHORT": 50}),
    ],
)
def test_growth_of_regret(name, module, values, shorter):
    if name == "no_regret":
        every = importlib.import_module("metabo.papers.hegpucb.theory.growth").types()
        values = values | {"types": lambda: {k: every[k] for k in ("rough length-scale, GP", "mean, GP")}}
    shorter(module, **values)
    found = statements(name)
    dropped = found.pop(("Dependence on γ_T", "printed"), None)
    assert dropped is None or dropped["status"] == "no power", "σ_i drops u*, also beside a smoother candidate"
    assert controls(found) == {"REFUTED"} and "REFUTED" not in {s["verdict"] for s in found.values()}
    if name == "no_regret":
        slope = next(p for p in found["No regret", "repaired"]["parts"] if p["part"] == "slope")
        rules = [c["setting"]["rule"] for c in slope["control"]["cells"]]
        assert rules == ["MLE, peak missed", "random", "without the truth", "random"]


def test_robust_regret_as_printed_and_repaired(shorter):
    """Algorithm 2 prints σ_i in both of its tests, which drop u*; the bound binds for a large norm."""
    norm = importlib.import_module("metabo.papers.hegpucb.theory.regret").binding_norm
    shorter("robust", ITERATIONS=80, TIMES=np.array([20, 40, 80]), BINDING={"norm": 500, "GP": 250},
            binding_norm=lambda b: norm(50.0 * b))  # fmt: skip
    found = statements("theorem61")
    assert {version for _, version in found} == {"printed", "repaired"}
    assert found["Theorem 6.1", "repaired"]["status"] == "no power", "length-scales: no policy exceeds the bound"
    assert parts(found["Theorem 6.1, binding", "repaired"]) == {"coverage": "SUPPORTED"}, "the worst policy exceeds it"
    assert parts(found["Theorem 6.1, kept", "printed"])["kept"] == "REFUTED"
    assert parts(found["Theorem 6.1, kept", "repaired"]) == {"kept": "SUPPORTED", "others": "SUPPORTED"}
    assert {c["setting"]["test"] for c in found["Theorem 6.1, kept", "repaired"]["parts"][0]["control"]["cells"]} == {
        "u",
        "v",
    }
    assert found["Theorem 6.1, kept", "printed"]["sees"] < 1.0 < found["Theorem 6.1, kept", "repaired"]["sees"] < 20.0
    loose = {id: s for id, s in found.items() if id[0] != "Theorem 6.1"}
    assert controls(loose) == {"REFUTED"}


def test_a_check_depends_on_the_package_code_that_it_tests():
    def listed(name):
        roots = codegraph.stage_roots("theory", {"paper": "hegpucb", "check": name})
        return {p.relative_to(codegraph.PACKAGE_ROOT).as_posix() for p in codegraph.files(roots)}

    assert {
        "methods/elimination/simulate.py",
        "methods/elimination/rules.py",
        "gp/many.py",
        "methods/elimination/confidence.py",
    } <= listed("preservation")
    assert "methods/elimination/confidence.py" in listed("lemma51") and "methods/elimination/simulate.py" not in listed(
        "lemma51"
    )
    assert not [
        n
        for name in registry.checks("hegpucb")
        for n in listed(name)
        if n.startswith(("plots/", "data/", "papers/hegpucb/studies/", "papers/hyperbo"))
    ]


def test_larger_noise_than_the_lemma_allows_is_refuted(shorter):
    drawn = importlib.import_module("metabo.papers.hegpucb.theory.noise").noises
    shorter("noise", noises=lambda *a: 3.0 * drawn(*a))
    assert parts(statements("lemma51")["Lemma 5.1", "repaired"])["simulated"] == "REFUTED"
