"""Confidence constants against numbers worked out by hand, and the greedy information gain against all subsets."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import ConfigError
from metabo.methods.elimination import confidence
from metabo.papers.hegpucb.problems import rbf


def test_frequentist_beta_by_hand():
    """γ = 1, δ = 0.1: √(2(2 + ln 20)) = √9.99146..."""
    root = math.sqrt(2 * (2 + math.log(20)))
    assert root == pytest.approx(3.160927, abs=1e-6)
    assert confidence.beta_frequentist(0.5, 0.1, 1.0, 0.1) == pytest.approx(0.5 + root)
    assert confidence.beta_frequentist(0.5, 0.1, 1.0, 0.1, factor=True) == pytest.approx(0.5 + 0.1 * root)
    many = confidence.beta_frequentist(0.5, 0.1, jnp.array([0.0, 1.0]), 0.1)
    np.testing.assert_allclose(many, [0.5 + math.sqrt(2 * (1 + math.log(20))), 0.5 + root])


def test_bayesian_beta_by_hand():
    assert confidence.beta_bayes_finite(100, 3, 0.1) == pytest.approx(math.sqrt(2 * math.log(900 * math.pi**2 / 0.3)))
    inner = 2 * 5 * 3.0 * 0.5 * math.sqrt(math.log(4 * 2 * 1.5 / 0.1))
    expected = math.sqrt(2 * math.log(2 * math.pi**2 * 25 / 0.3) + 8 * math.log(inner))
    assert confidence.beta_bayes_infinite(5, 2, 1.5, 3.0, 0.5, 0.1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "constant"), [("printed", math.pi), ("pi2", math.pi**2), ("corrected", 2 * math.pi**2)]
)
def test_xi_by_hand(kind, constant):
    expected = 2 * 0.04 * math.log(5 * constant * 49 / 0.3)
    assert confidence.xi(7, 0.2, 5, 0.1, kind) == pytest.approx(expected)


def test_xi_refuses_another_form_and_has_the_correct_one_by_default():
    assert confidence.xi(7, 0.2, 5, 0.1) == confidence.xi(7, 0.2, 5, 0.1, "corrected")
    with pytest.raises(ConfigError, match="unknown form of xi 'pi'"):
        confidence.xi(7, 0.2, 5, 0.1, "pi")


def test_greedy_gain_is_that_of_its_points_and_within_its_guarantee():
    """All multisets of three of six points: the best gain is between the greedy one and that over 1 - 1/e."""
    x = np.array([[0.0], [0.05], [0.3], [0.55], [0.6], [1.0]])
    gram, noise = rbf(x, 0.3), 0.05
    greedy = np.asarray(confidence.greedy_gain(jnp.asarray(gram), noise, 3))
    best = []
    for size in (1, 2, 3):
        gains = [
            0.5 * np.linalg.slogdet(np.eye(size) + gram[np.ix_(points, points)] / noise)[1]
            for points in itertools.combinations_with_replacement(range(6), size)
        ]
        best.append(max(gains))
    assert greedy[0] == pytest.approx(0.5 * math.log(21))
    assert (greedy <= np.array(best) + 1e-12).all() and (np.array(best) <= greedy / (1 - 1 / math.e)).all()
    assert (np.diff(greedy) > 0).all()


def test_greedy_gain_may_repeat_points():
    """One point, observed twice: ½ log(1 + 2/noise)."""
    gains = confidence.greedy_gain(jnp.ones((1, 1)), 0.5, 2)
    np.testing.assert_allclose(gains, [0.5 * math.log(3), 0.5 * math.log(5)])
