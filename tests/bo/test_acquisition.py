import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from metabo.bo.acquisition import SCORED, make
from metabo.errors import ConfigError
from tests import references


def scores(slug, mean, std, best, count=3, settings=None):
    mean, std = np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    acquisition = jax.jit(make(slug, **(settings or {})))
    return np.asarray(acquisition(mean, std, jnp.asarray(float(best)), jnp.asarray(count)))


def test_by_hand():
    mean, std = [1.0, 0.0, 2.0], [0.5, 1.0, 2.0]
    # (1 - 1.1)/0.5, (0 - 1.1)/1, (2 - 1.1)/2
    np.testing.assert_allclose(scores("pi", mean, std, 1.0), [-0.2, -1.1, 0.45], rtol=1e-14)
    np.testing.assert_allclose(
        scores("pi", mean, std, 1.0, settings={"pi_threshold": 0.5}), [-1.0, -1.5, 0.25], rtol=1e-14
    )
    np.testing.assert_allclose(scores("ucb18", mean, std, 1.0), [1.9, 1.8, 5.6], rtol=1e-14)
    np.testing.assert_allclose(scores("ucb3", mean, std, 1.0), [2.5, 3.0, 8.0], rtol=1e-14)
    # At mean = best: EI = s φ(0) = s 0.39894228; one standard deviation below: φ(1) - (1 - Φ(1)) = 0.08331547
    np.testing.assert_allclose(scores("ei", [1.0, 0.0], [0.5, 1.0], 1.0), [0.19947114, 0.08331547], rtol=1e-7)


def test_without_observations_the_target_is_zero():
    mean, std = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    np.testing.assert_allclose(scores("pi", mean, std, -np.inf, 0), mean / std, rtol=1e-14)  # no margin either
    expected = mean * norm.cdf(mean / std) + std * norm.pdf(mean / std)
    np.testing.assert_allclose(scores("ei", mean, std, -np.inf, 0), expected, rtol=1e-13)
    np.testing.assert_allclose(scores("ucb3", mean, std, -np.inf, 0), mean + 3 * std, rtol=1e-14)


@pytest.mark.parametrize("slug", SCORED)
def test_against_scipy(slug):
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=200), rng.uniform(0.05, 3, size=200)
    expected = references.score(slug, mean, std, 0.4, 3)
    np.testing.assert_allclose(scores(slug, mean, std, 0.4, 3), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("slug", SCORED)
def test_before_the_first_observation_every_score_is_a_number(slug):
    """`best` is then -inf: a formula that reads it gives NaN, and the first query would be random."""
    mean, std = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    found = scores(slug, mean, std, -np.inf, 0)
    np.testing.assert_allclose(found, references.score(slug, mean, std, None, 0), rtol=1e-13)


def test_improvement_is_a_probability_and_an_expectation():
    rng = np.random.default_rng(1)
    draws = 0.3 + 0.7 * rng.normal(size=200_000)
    z = scores("pi", [0.3], [0.7], 0.5)[0]
    assert norm.cdf(z) == pytest.approx(np.mean(draws > 0.6), abs=4e-3)
    gain = np.maximum(draws - 0.5, 0)
    assert scores("ei", [0.3], [0.7], 0.5)[0] == pytest.approx(gain.mean(), abs=5 * gain.std() / 447)


def test_expected_improvement_far_from_the_best_is_finite_and_not_negative():
    values = scores("ei", [-40.0, -8.0, 0.0, 40.0], [1.0, 1.0, 1e-8, 1.0], 0.0)
    assert np.isfinite(values).all() and (values >= 0).all()
    assert values[-1] == pytest.approx(40.0)


@pytest.mark.parametrize("slug", ["uniform", "poi"])
def test_unknown_names_list_the_valid_ones(slug):
    with pytest.raises(ConfigError, match=f"unknown acquisition '{slug}'.*Valid: {', '.join(sorted(SCORED))}"):
        make(slug)
