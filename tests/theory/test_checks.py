"""The checks themselves: quickly decided verdicts, planted faults, the stage, and the tables made of its results."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import papermill
import pytest

from metabo import codegraph, config, keys, registry
from metabo.errors import ConfigError, DataError
from metabo.plots import theory as drawings
from metabo.theory import tables
from metabo.theory.hyperbo import algorithm, memory, regret

ROOT = Path(__file__).parents[2]
SHARE = 0.02


def statements(name: str, share: float = SHARE) -> dict[tuple[str, str], dict]:
    module = importlib.import_module(registry.check_module("hyperbo", name))
    made = getattr(module, name)(keys.stream(0, "theory", "hyperbo", name), share)
    found = {(s["id"], s["version"]): s for s in made}
    assert len(found) == len(made), "two statements with one name"
    json.dumps(made, allow_nan=False)
    return found


def parts(statement: dict) -> dict[str, str]:
    return {p["part"]: p["verdict"] for p in statement["parts"]}


def decided(found: dict) -> dict[tuple[str, str], tuple[str, str]]:
    return {name: (s["verdict"], s["status"]) for name, s in found.items()}


YES, NO = ("SUPPORTED", "ok"), ("REFUTED", "ok")

DETERMINISTIC = {
    "identities": {
        ("K1", "printed"): YES, ("K1 wording", "printed"): NO, ("K2", "ours"): YES, ("K3", "printed"): YES,
        ("K3 converse", "printed"): NO,
    },
    "proposition4": {("Proposition 4", "printed"): YES},
    "tail_bounds": {
        ("Lemma 9", "printed"): YES, ("Corollary 14", "printed"): NO, ("Corollary 14", "repaired"): YES,
        ("Corollary 14, exponent", "proof step"): NO, ("Corollary 14, exponent", "repaired"): YES,
    },
    "inequalities": {("Corollary 11", "printed"): YES, ("Lemma 12", "printed"): YES},
    "lemma13": {("Lemma 13", "printed"): YES},
}  # fmt: skip


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_deterministic_statements_are_decided_at_every_scale(name):
    assert decided(statements(name)) == DETERMINISTIC[name]


def test_lemma9_control_counts_as_an_independent_trial_did():
    """Without 2b, 73 of 240 cells violate the bound (a trial in NumPy)."""
    (tails,) = statements("tail_bounds")["Lemma 9", "printed"]["parts"]
    assert tails["control"]["cells"][0]["numbers"]["violations"] == 73


def test_lemma8_needs_all_replicates():
    found = statements("lemma8")["Lemma 8", "printed"]
    assert set(parts(found).values()) == {"INCONCLUSIVE"}, "400 replicates support nothing"


def test_lemma10_fails_as_stated_and_holds_as_proved():
    found = statements("lemma10")
    assert decided(found)["Lemma 10", "printed"][0] in ("REFUTED", "INCONCLUSIVE")
    assert parts(found["Lemma 10", "printed"])["mean"] == "REFUTED"
    assert parts(found["Lemma 10", "repaired"])["mean"] == "SUPPORTED"
    small = [c for c in found["Lemma 10", "printed"]["parts"][0]["cells"] if c["setting"]["scale"] == 1e-4]
    assert all(c["verdict"] == "REFUTED" and c["numbers"]["share"] > 0.8 for c in small)
    assert set(parts(found["Lemma 10", "printed"]).values()) <= {"REFUTED", "SUPPORTED", "INCONCLUSIVE"}


def test_lemma15_fails_for_long_runs_and_its_sound_version_does_not():
    found = statements("lemma15", share=0.01)
    assert parts(found["Lemma 15", "printed"]) == {"simulated": "REFUTED", "exact": "REFUTED"}
    assert parts(found["Lemma 15", "repaired"])["exact"] == "SUPPORTED"
    assert decided(found)["Lemma 15, use", "proof step"] == NO
    cells = found["Lemma 15", "printed"]["parts"][1]["cells"]
    refuted = {c["setting"]["length"] for c in cells if c["verdict"] == "REFUTED" and c["setting"]["delta"] == 0.1}
    assert min(refuted) >= cells[0]["setting"]["first_failing_length"] > 300


@pytest.mark.parametrize(
    ("theorem", "expected"),
    [(16, "REFUTED"), (17, "SUPPORTED"), pytest.param(18, "REFUTED", marks=pytest.mark.slow)],
)
def test_regret_bounds(theorem, expected):
    """100 replicates decide coverage up to δ = 0.1, and quadrature decides the many arms of Theorems 16 and 18."""
    found = statements(f"theorem{theorem}")
    name = f"Theorem {theorem}"
    assert parts(found[name, "printed"]) == {"coverage": "SUPPORTED", "many arms": expected}
    assert set(parts(found[name, "repaired"]).values()) == {"SUPPORTED"}
    refuted = {n for n, s in found.items() if "REFUTED" in parts(s).values()}
    steps = {
        16: {("Theorems 16-17, h", "proof step"), ("Theorems 16-18, ρ_T", "proof step")},
        17: {("Theorem 17, sign", "proof step")},
        18: {("Theorem 18, last step", "proof step")},
    }
    assert steps[theorem] <= refuted <= steps[theorem] | {(name, "printed"), ("Theorems 16-17, h chosen", "proof step")}


def test_theorem5_with_fixed_inputs_is_not_refuted():
    found = statements("theorem5_fixed")
    for name in (("Theorem 5, fixed inputs", "repaired"), ("Rescaled variance", "printed")):
        assert "REFUTED" not in parts(found[name]).values()
    assert parts(found["Theorem 5, fixed inputs", "repaired"])["coverage"] == "SUPPORTED"
    assert parts(found["Theorem 5, fixed inputs", "repaired"])["monotone"] == "SUPPORTED"


@pytest.mark.slow
def test_theorem5_under_algorithm_1_is_biased():
    found = statements("theorem5_adaptive", share=0.1)
    assert parts(found["Theorem 5, expectations", "printed"]) == {"bias": "REFUTED", "ratio": "REFUTED"}
    assert parts(found["Theorem 5, probability", "printed"])["coverage"] == "SUPPORTED"
    assert "REFUTED" not in parts(found["Theorem 5, random inputs", "repaired"]).values()


@pytest.mark.slow
def test_theorem6_has_the_shape_but_no_constant():
    found = statements("theorem6")
    assert parts(found["Theorem 6", "printed"]).items() >= {("explicit", "SUPPORTED"), ("in N", "SUPPORTED")}
    assert decided(found)["Theorem 6, all δ", "reading"] == NO
    slope = found["Theorem 6, all δ", "reading"]["parts"][0]["cells"][0]["numbers"]["slope"]
    assert slope == pytest.approx(0.5, abs=0.01), "a grows like δ^{-1/2}"
    assert decided(found)["Theorem 6, all domains", "reading"] == NO


def test_algorithm_1_against_numpy():
    """GP-UCB on tables, replayed with textbook posteriors: same queries and true posteriors."""
    rng = np.random.default_rng(3)
    mean, f, noise = np.zeros(6), rng.normal(size=6), 0.1 * rng.normal(size=7)
    root = rng.normal(size=(6, 9))
    own, true = root @ root.T / 9 + 0.1 * np.eye(6), np.exp(-0.5 * np.subtract.outer(range(6), range(6)) ** 2.0)
    prior, truth = (
        memory.model(jnp.array(mean), jnp.array(own), 0.05),
        memory.model(jnp.array(mean), jnp.array(true + 0.2 * np.eye(6)), 0.2),
    )
    path = algorithm.run(prior, truth, algorithm.noisy_ucb(1.5), jnp.array(f), jnp.array(noise), jax.random.key(0))

    def posterior(gram, sigma, index, y):
        gain = gram[:, index] @ np.linalg.inv(gram[np.ix_(index, index)] + sigma * np.eye(len(index)))
        return gain @ y, np.diag(gram - gain @ gram[index])

    index: list[int] = []
    for t in range(7):
        y = np.array([f[i] + e for i, e in zip(index, noise, strict=False)])
        moments = posterior(own - 0.05 * np.eye(6), 0.05, index, y) if index else (mean, np.diag(own) - 0.05)
        best = int(np.argmax(moments[0] + 1.5 * np.sqrt(moments[1] + 0.05)))
        assert best == path.index[t]
        trues = posterior(true, 0.2, index, y) if index else (mean, np.diag(true))
        np.testing.assert_allclose(path.mean[t], trues[0], atol=1e-6)
        np.testing.assert_allclose(path.variance[t], trues[1], atol=1e-5)
        index.append(best)
    assert len(set(index)) < 7, "the run repeats no input: choose another seed"
    distinct = algorithm.run(
        prior, truth, algorithm.noisy_ucb(1.5), jnp.array(f), jnp.array(noise[:6]), jax.random.key(0), repeats=False
    )
    assert sorted(distinct.index.tolist()) == list(range(6))


def test_acquisitions_of_the_theory():
    prior = memory.model(jnp.zeros(2), jnp.eye(2), 0.36)
    mean, std, empty = jnp.array([0.1, 0.2]), jnp.array([1.0, 0.8]), jnp.asarray(True)
    scores = algorithm.noiseless_ucb(2.0, prior)(mean, std, jnp.asarray(9.0), empty)
    np.testing.assert_allclose(scores, [0.1 + 2 * 0.8, 0.2 + 2 * np.sqrt(0.28)], rtol=1e-5)
    scores = algorithm.target_pi(jnp.asarray(1.0))(mean, std, jnp.asarray(9.0), empty)
    np.testing.assert_allclose(scores, [-0.9, -1.0])


def test_regret_is_that_of_the_best_observation():
    """Without noise the regret of ten distinct queries of ten points is zero; PI's gap is positive and finite."""
    key = jax.random.key(1)
    setting = {"iterations": 10, "functions": 50, "noise": 1e-8, "beta": 1.0}
    got = regret.simulate(regret.simulation("ucb", 10, repeats=False), key, 20, **setting)
    np.testing.assert_allclose(got["regret"], 0.0, atol=1e-9)
    noisy = regret.simulate(regret.simulation("pi", 2), key, 50, **setting | {"iterations": 2, "noise": 1.0})
    assert (noisy["regret"] >= 0).all() and (noisy["regret"] > 0.1).any() and np.isfinite(noisy["gap"]).all()


def test_every_check_is_a_function_of_its_module():
    names = registry.checks("hyperbo")
    assert len(names) == 14 and registry.papers_with_checks() == ["hyperbo"]
    for name in names:
        path = codegraph.source(registry.check_module("hyperbo", name))
        functions = {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}
        assert name in functions and registry.check("hyperbo", name)
    with pytest.raises(ConfigError, match=r"unknown theory check of hyperbo 'lema10'.*Did you mean 'lemma10'"):
        registry.check_module("hyperbo", "lema10")
    with pytest.raises(ConfigError, match="unknown paper with theory checks 'hyprbo'"):
        registry.checks("hyprbo")


def test_a_check_depends_on_its_own_module_and_the_package_code_it_tests():
    def listed(name):
        roots = codegraph.stage_roots("theory", {"paper": "hyperbo", "check": name})
        return {p.relative_to(codegraph.PACKAGE_ROOT).as_posix() for p in codegraph.files(roots)}

    assert {"theory/hyperbo/theorems.py", "bo/fixed_prior.py", "acquisition.py"} <= listed("theorem16")
    assert "gp/objectives.py" in listed("identities") and "bo/fixed_prior.py" not in listed("identities")
    assert not [n for n in listed("theorem18") if n.startswith(("plots/", "methods/", "data/"))]


def test_the_spec_holds_what_a_check_reads():
    settings = config.load(ROOT)
    spec = config.theory_spec(settings, "hyperbo", "lemma10")
    assert spec == {"paper": "hyperbo", "check": "lemma10", "seed": 0, "share": 1.0}
    assert config.theory_spec(config.load(ROOT, (ROOT / "config/smoke.yaml",)), "hyperbo", "lemma10")["share"] == SHARE
    for bad in (0, -1.0, "full"):
        with pytest.raises(ConfigError, match=r"theory\.share"):
            config.check(settings | {"theory": {"share": bad}}, ROOT)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of the stage for two checks, run once through its command."""
    folder = tmp_path_factory.mktemp("theory")
    for name in ("tail_bounds", "lemma15"):
        spec = json.dumps({"paper": "hyperbo", "check": name, "seed": 0, "share": 0.05})
        command = [sys.executable, "-m", "metabo.stages.theory", "--spec", spec, "--out", f"{folder}/{name}.json"]
        done = subprocess.run(
            [*command, "--sidecar", f"{folder}/{name}.meta.json"], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "counterexample" in done.stdout
    return folder


def test_the_stage_writes_verdicts_and_a_sidecar(results):
    record = json.loads((results / "lemma15.json").read_text())
    assert (record["paper"], record["check"], record["share"], record["status"]) == ("hyperbo", "lemma15", 0.05, "ok")
    assert record["title"] == registry.check("hyperbo", "lemma15")
    sidecar = json.loads((results / "lemma15.meta.json").read_text())
    assert sidecar["stage"] == "theory" and sidecar["verdicts"]["Lemma 15 (printed)"] == ["REFUTED", "ok"]
    assert list(sidecar["outputs"]) == [str(results / "lemma15.json")]


def test_an_unknown_check_ends_with_one_message(tmp_path):
    spec = json.dumps({"paper": "hyperbo", "check": "lemma99", "seed": 0, "share": 1.0})
    command = [sys.executable, "-m", "metabo.stages.theory", "--spec", spec, "--out", str(tmp_path / "x.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 or "unknown theory check" in done.stderr
    assert "lemma15" in done.stderr


def test_tables_of_results(results):
    checks = tables.read([f"{results}/tail_bounds.json", f"{results}/lemma15.json"])
    verdicts, cells = tables.verdicts(checks), tables.cells(checks)
    assert verdicts["statement"].tolist()[:2] == ["Lemma 9", "Corollary 14"] and len(verdicts) == 8
    row = verdicts[(verdicts["statement"] == "Lemma 15") & (verdicts["version"] == "printed")].iloc[0]
    assert row["verdict"] == "REFUTED" and row["decided"].startswith("P = 0.9")
    exact = cells[(cells["statement"] == "Lemma 15") & (cells["part"] == "exact") & (cells["version"] == "printed")]
    assert len(exact) == 50 and exact["share"].between(0, 1).all()
    saved = tables.numbers(checks)
    assert not saved["cell"]["value"].isna().any() and len(saved["verdict"]) == 8
    one = saved["cell"].query("panel == 'control of tails' and metric == 'violations'")
    assert one["value"].tolist() == [73.0] and one["parameter"].tolist() == ["REFUTED"]


def test_a_powerless_check_shows_as_such(results):
    record = json.loads((results / "tail_bounds.json").read_text())
    record["statements"][0]["status"] = "no power"
    assert tables.verdicts([record])["verdict"].iloc[0] == "no power"


def test_missing_and_wrong_results_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such check; make it"):
        tables.read([str(tmp_path / "absent.json")])
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="not the result of a theory check"):
        tables.read([str(tmp_path / "other.json")])
    with pytest.raises(DataError, match="no theory check given"):
        tables.read([])


def test_the_figure_has_every_statement_and_refuses_unknown_panels(results):
    checks = tables.read([f"{results}/lemma15.json"])
    verdicts, cells = tables.verdicts(checks), tables.cells(checks)
    figure = drawings.verdict_figure(verdicts, cells, ["best_observation"], "Theory")
    assert len(figure.axes) == 2
    written = [text.get_text() for text in figure.axes[0].texts]
    for name in verdicts["decided"]:
        assert name in written
    assert len(figure.axes[1].lines) > 4
    powerless = drawings.verdict_figure(verdicts.assign(verdict="no power", status="no power"), cells, [], "Theory")
    assert "no power" in [text.get_text() for text in powerless.axes[0].texts]
    with pytest.raises(ConfigError, match=r"unknown panel 'bais'.*Did you mean 'bias'"):
        drawings.verdict_figure(verdicts, cells, ["bais"], "Theory")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # papermill and the kernel's client warn in this process
def test_the_notebook_shows_two_checks(results, tmp_path):
    parameters = {
        "artefact": "hyperbo_x03", "title": "Theory", "caption": "A caption.", "out": str(tmp_path / "out"),
        "theory": [f"{results}/tail_bounds.json", f"{results}/lemma15.json"], "panels": ["best_observation"],
    }  # fmt: skip
    executed = tmp_path / "executed.ipynb"
    papermill.execute_notebook(
        str(ROOT / "notebooks/shared/theory.ipynb"), str(executed), parameters, kernel_name="python3",
        progress_bar=False, cwd=str(ROOT),
    )  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["data.csv", "figure.pdf", "figure.png"]
    saved = pd.read_csv(tmp_path / "out" / "data.csv")
    assert set(saved["table"]) == {"verdict", "cell"} and saved["value"].notna().all()
    text = executed.read_text()
    assert "negative control was not refuted: none" in text and "Corollary 14 (printed): not P[x - μ" in text
