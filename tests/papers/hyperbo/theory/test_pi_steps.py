"""The chain of Theorem 17's proof and its long runs: what they decide, and planted violations."""

import jax
import numpy as np
import pytest

from metabo.papers.hyperbo.theory import bounds, pi_steps, regret
from tests.papers.hyperbo.theory.test_checks import decided


def test_a_negative_numerator_breaks_the_chain_and_a_positive_one_does_not():
    """By hand: s = 1.1, a = 0.2, f̂* - μ*(x*) = -0.7λ, so n = -0.5; μ̂ as large an error as it may have, λ̂ = λ.

    Then f̂* - μ*(x_τ) = -0.5 + 0.2 > -0.55 + 0.2.
    """
    k = bounds.printed(4, 10_000, 0.1)._replace(s=1.1, a=0.2)
    n, reach, ratio = np.array([-0.5, 0.5]), np.ones(2), np.array([1 / 1.1, 1 / 1.1])
    left, right = pi_steps.chain(n, reach, ratio, k)
    assert left == pytest.approx([-0.3, 0.7]) and right == pytest.approx([-0.35, 0.75])


def test_the_sign_is_a_gap_in_the_algebra_and_the_frequency_is_judged_by_itself():
    found = {(s["id"], s["version"]): s for s in pi_steps.sign(jax.random.key(2), 0.1)}
    yes, no = ("SUPPORTED", "ok"), ("REFUTED", "ok")
    verdicts = decided(found)
    assert verdicts["Theorem 17, sign", "proof step"] == no and verdicts["Theorem 17, sign", "repaired"] == yes
    assert verdicts["Theorem 17, chain", "proof step"] == yes, "a negative numerator is no violation"
    (frequency,) = found["Theorem 17, chain", "proof step"]["parts"]
    numbers = frequency["cells"][0]["numbers"]
    assert 0.0 < numbers["negative_unqueried"] <= numbers["negative"] < 1.0 / 30.0
    assert 0.0 < numbers["unqueried"] < 1.0


def test_a_chain_that_fails_too_often_is_refuted(monkeypatch):
    """Planted: in a tenth of the runs x_τ scores far above x*."""

    def simulate(*given, **setting):
        got = regret.simulate(*given, **setting)
        return got | {"lead": np.where(np.arange(len(got["lead"])) % 10 == 0, 50.0, got["lead"])}

    monkeypatch.setattr(pi_steps, "simulate", simulate)
    found = {(s["id"], s["version"]): s for s in pi_steps.sign(jax.random.key(2), 0.1)}
    assert decided(found)["Theorem 17, chain", "proof step"] == ("REFUTED", "ok")


def test_scores_of_a_path_by_hand():
    """τ is the second query (variance 0.2); x* = input 1, f̂* = 2.1; scores at x* and x_τ = 2."""
    path = regret.Path(
        np.array([0, 2]), np.zeros(2), np.array([[0.0, 0.0, 0.0], [0.1, 0.5, 0.9]]),
        np.array([[1.0, 1.0, 1.0], [0.1, 0.6, 0.2]]),
    )  # fmt: skip
    got = regret._scores(jax.tree.map(jax.numpy.asarray, path), jax.numpy.array([0.0, 2.0, 1.0]), jax.numpy.array(0.3))
    assert got["gap"] == pytest.approx(1.6 / np.sqrt(0.9)) and got["lead"] == pytest.approx(1.2 / np.sqrt(0.5))
    assert not got["found"]


def test_long_runs_refute_a_bound_that_is_too_small(monkeypatch):
    """The true case is supported and sees a factor below 100; a bound of ζσ*/20 is refuted."""
    found = pi_steps.long_runs(jax.random.key(4), 0.1)
    assert (found["verdict"], found["control"]["verdict"]) == ("SUPPORTED", "REFUTED")
    assert all(1.0 < c["numbers"]["sees"] < 100.0 for c in found["cells"])
    monkeypatch.setattr(bounds, "theorem17", lambda k, *_: np.full(100, k.zeta / 20))
    assert pi_steps.long_runs(jax.random.key(4), 0.1)["verdict"] == "REFUTED"
