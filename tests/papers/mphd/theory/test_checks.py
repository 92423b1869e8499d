"""MPHD's checks: verdicts that few replicates decide, controls, and what the paper's inconsistencies show."""

import importlib
import json

import numpy as np
import pytest

from metabo.compute import keys
from metabo.papers.engine.theory import estimated, tables
from metabo.papers.mphd.theory import consistency, families, lengthscales, mode, regularisation, uneven
from metabo.plan import codegraph, registry

SHARE = 0.02
YES, NO = ("SUPPORTED", "ok"), ("REFUTED", "ok")


def statements(name: str, share: float = SHARE) -> dict[tuple[str, str], dict]:
    module = importlib.import_module(registry.check_module("mphd", name))
    made = getattr(module, name)(keys.stream(0, "theory", "mphd", name), share)
    found = {(s["id"], s["version"]): s for s in made}
    assert len(found) == len(made), "two statements with one name"
    assert all(p["cells"] and p["control"] and p["control"]["cells"] for s in made for p in s["parts"])
    json.dumps(made, allow_nan=False)
    record = {"paper": "mphd", "check": name, "share": share, "statements": made}
    assert len(tables.verdicts([record])) == len(made) and len(tables.parts([record])), "the tables can show it"
    tables.numbers([record])
    return found


def parts(statement: dict) -> dict[str, str]:
    return {p["part"]: p["verdict"] for p in statement["parts"]}


def controls(statement: dict) -> set[str]:
    return {p["control"]["verdict"] for p in statement["parts"]}


def cell(statement: dict, part: str, place: int = 0) -> dict:
    return next(p for p in statement["parts"] if p["part"] == part)["cells"][place]["numbers"]


DECIDED = {
    "lemma1": {
        ("Lemma 1", "printed"): NO, ("Lemma 1, limit", "repaired"): YES, ("Lemma 1, spacing", "proof step"): YES,
        ("Lemma 1, domain", "reading"): NO,
    },
    "equation2": {("Eq. 2", "repaired"): YES, ("Eq. 2", "printed"): NO},
    "equation3": {
        ("Eq. 3", "printed"): NO, ("Eq. 3", "repaired"): YES, ("Eq. 3, difference", "ours"): YES,
        ("Eq. 3, K", "printed"): NO, ("Order of evaluations", "printed"): YES,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_deterministic_statements_are_decided_at_every_scale(name):
    assert {key: (s["verdict"], s["status"]) for key, s in statements(name).items()} == DECIDED[name]


def test_theorem2_in_one_dimension(monkeypatch):
    """100 replicates show the rate's sign and refute every control; the probability needs more."""
    monkeypatch.setattr(consistency, "INPUTS", 30)
    found = statements("theorem2")
    for name in (("Theorem 2", "printed"), ("Theorem 2, uniform inputs", "ours")):
        own = found[name]
        assert "REFUTED" not in parts(own).values() and parts(own)["monotone"] == "SUPPORTED"
        assert {p["control"]["verdict"] for p in own["parts"] if p["part"] != "efficiency"} == {"REFUTED"}
        assert cell(own, "rate")["mean"] == pytest.approx(-0.5, abs=0.1)
        assert cell(own, "efficiency")["mean"] == pytest.approx(1.0, abs=0.25)
        shares = cell(own, "monotone")["shares"]
        assert shares[0] > 0.5 > 0.05 > shares[-1]
    far = next(p for p in found["Theorem 2", "printed"]["parts"] if p["part"] == "consistent")["control"]["cells"][0]
    assert far["numbers"]["share"] > 0.9, "a flat likelihood has maximisers all over C"
    for name, decided in ((("Assumption (1)", "reading"), NO), (("Assumption (1), designs", "ours"), YES)):
        assert (found[name]["verdict"], found[name]["status"]) == decided


@pytest.mark.slow
def test_theorem2_in_three_dimensions():
    own = statements("theorem2_ard")["Theorem 2, d = 3", "printed"]
    assert parts(own)["monotone"] == "SUPPORTED" and len(own["parts"][0]["cells"]) == 3
    assert {p["control"]["verdict"] for p in own["parts"][:3]} == {"REFUTED"}


def test_the_proof_of_theorem2():
    found = statements("theorem2_steps")
    assert parts(found["Step (9)", "proof step"]) == {"one A for all M": "SUPPORTED"}
    assert 0.0 < min(cell(found["Step (9)", "proof step"], "one A for all M")["ratios"]) < 1.0
    assert {c["setting"]["apart"] for c in found["Step (10)", "proof step"]["parts"][0]["cells"]} == {0.005, 0.02, 0.1}
    assert parts(found["Step (10)", "proof step"]) == {"B": "SUPPORTED"}
    assert all(controls(s) == {"REFUTED"} for s in found.values())
    assert cell(found["Step (8)", "proof step"], "rate")["mean"] == pytest.approx(-0.5, abs=0.1)
    lemma = statements("lemma2_1")["Lemma 2.1", "printed"]
    assert parts(lemma) == {"rate": "SUPPORTED", "formula": "INCONCLUSIVE"}, "400 draws support nothing"
    assert all(abs(c["numbers"]["effect"]) < 0.3 for c in lemma["parts"][1]["cells"])


def test_the_remark():
    """20 replicates of samples estimated from 4 sub-datasets refute the law; 400 of exact ones do not decide it."""
    found = statements("remark")
    gamma, normal = found["Remark (1), exact samples", "reading"], found["Remark (2), exact samples", "reading"]
    assert parts(gamma)["likelihood equations"] == "SUPPORTED"
    for own in (gamma, normal):
        assert "REFUTED" not in parts(own).values()
        against = {p["part"]: p["control"]["verdict"] for p in own["parts"]}
        assert against["covariance"] == "REFUTED"
    for name in ("Remark (1)", "Remark (2)"):
        law = next(p for p in found[name, "reading"]["parts"] if p["part"] == "normality")
        first, last = law["cells"][0], law["cells"][-2]
        assert (first["setting"]["M"], last["setting"]["M"]) == (4, 64)
        assert first["verdict"] == "REFUTED", "estimates from few sub-datasets are biased"
        assert first["numbers"]["mean"] > last["numbers"]["mean"], "the law is nearer with more sub-datasets"


def test_theorem3_needs_both_limits():
    found = statements("theorem3")
    both, alone = found["Theorem 3", "printed"], found["Theorem 3, N alone", "reading"]
    assert "REFUTED" not in parts(both).values()
    assert {c["setting"]["parameter"] for c in both["parts"][0]["cells"]} == set("abcd")
    assert alone["verdict"] == "REFUTED" and alone["status"] == "ok"
    assert cell(alone, "limit")["value"] < 9.5, "errors of step 1 inflate the spread"
    for place in (0, 1):
        lost = cell(both, "bias", place)["lost"]
        assert lost[0] > lost[1] > lost[2] > 0.0


def test_theorem3_needs_domains_that_tell_alike():
    found = statements("theorem3_uneven")
    uneven, even = found["Theorem 3, uneven", "reading"], found["Theorem 3, even", "repaired"]
    assert (uneven["verdict"], uneven["status"]) == ("REFUTED", "ok")
    assert (even["verdict"], even["status"]) == ("SUPPORTED", "ok")
    assert max(cell(uneven, "limit")["values"]) < 2.0, "more data of every domain do not help"
    assert np.abs(np.diff(cell(even, "limit")["values"][-2:])) < 1.0


def test_pairs_are_drawn_and_fitted_as_observations_are():
    """χ² draws and the loss of a pair's sum and difference against observations of a full covariance."""
    rng, pairs, known = np.random.default_rng(4), 200, lengthscales.grid()
    family = families.lengthscale_priors()[0]
    drawn = uneven.learned(np.random.default_rng(5), family, np.full(300, pairs), 8)
    design = np.array([[[0.0], [uneven.APART]]])
    each = []
    for _ in range(8):
        found = []
        for truth in family.law.rvs(300, random_state=rng):
            own = lengthscales.covariances(design, np.array([[truth]]))[0]
            y = rng.standard_normal((pairs, 2)) @ np.linalg.cholesky(own[0]).T
            scatter = (y.T @ y)[None, None]
            table = lengthscales.table(design, known)
            found.append(lengthscales.estimate(table, scatter, np.array([float(pairs)]), rng)[0])
        each.append(np.log(np.array(family.fit(np.array(found))) / np.array(family.truth)))
    error = np.sqrt(np.var(drawn, axis=0, ddof=1) / 8 + np.var(each, axis=0, ddof=1) / 8)
    assert (np.abs(drawn.mean(axis=0) - np.mean(each, axis=0)) < 4.0 * error).all()


def test_laplace():
    found = statements("laplace")
    constant, lengthscale = found["Eq. 1, constant mean", "printed"], found["Eq. 1, lengthscale", "printed"]
    assert parts(constant)["error"] == "SUPPORTED" and parts(constant)["rate"] != "REFUTED"
    assert "REFUTED" not in parts(lengthscale).values()
    linear = found["Eq. 1, linear mean", "printed"]
    assert parts(linear)["error"] == "SUPPORTED" and parts(linear)["rate"] != "REFUTED"
    assert [c["setting"]["wrong"] for c in linear["parts"][0]["control"]["cells"]] == 2 * ["trace", "M", "2π"]
    assert controls(constant) | controls(lengthscale) | controls(linear) == {"REFUTED"}


def test_maximum_a_posteriori(monkeypatch):
    monkeypatch.setattr(mode, "OBSERVATIONS", 20 * 2 ** np.arange(4))
    found = statements("equation6")
    assert parts(found["Eq. 6", "printed"]) == {"loss": "SUPPORTED", "gradient": "SUPPORTED"}
    assert cell(found["Eq. 6, sub-datasets", "ours"], "rate")["mean"] == pytest.approx(-1.0, abs=0.15)
    assert parts(found["Eq. 6, one function", "ours"]) == {"falls": "SUPPORTED"}
    assert all(controls(s) == {"REFUTED"} for s in found.values())


def test_regularisation_by_noise_is_decided():
    own = statements("regularisation", 0.5)["Regularisation by noise", "printed"]
    cells = own["parts"][0]["cells"]
    assert [c["setting"]["function"] for c in cells] == list(regularisation.FUNCTIONS), "noise guarantees it: all count"
    assert all(c["numbers"]["ends"] == [0.0, 0.0] for c in cells), "no fit ends at a bound"
    assert own["verdict"] == "SUPPORTED"
    assert controls(own) == {"REFUTED"}


def test_a_check_depends_on_the_package_code_that_it_tests():
    def listed(name):
        roots = codegraph.stage_roots("theory", {"paper": "mphd", "check": name})
        return {p.relative_to(codegraph.PACKAGE_ROOT).as_posix() for p in codegraph.files(roots)}

    assert {"methods/hierarchical/hyperprior.py", "gp/model.py"} <= listed("equation6")
    assert "gp/kernels.py" in listed("theorem2") and "gp/model.py" in listed("lemma2_1")
    assert not [
        n
        for name in registry.checks("mphd")
        for n in listed(name)
        if n.startswith(("plots/", "data/", "papers/hyperbo"))
    ]


def test_a_planted_fault_is_refuted(monkeypatch):
    """An estimator whose errors do not shrink, or a wrong information, would not pass."""
    honest = consistency.fits
    monkeypatch.setattr(consistency, "INPUTS", 30)

    def stuck(rng, kind, dim, replicates):
        found = honest(rng, kind, dim, replicates)
        return found._replace(found=found.found + 0.1)

    monkeypatch.setattr(consistency, "fits", stuck)
    own = statements("theorem2")["Theorem 2", "printed"]
    assert parts(own)["consistent"] == parts(own)["rate"] == "REFUTED"
    assert (
        estimated.within(estimated.spread(np.random.default_rng(0).normal(size=5000), 0.7), 0.9, 1.1).verdict
        == "REFUTED"
    )
