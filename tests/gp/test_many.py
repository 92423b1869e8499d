"""Several posteriors at once against conditioning by matrix inversion, and the likelihood of scipy."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metabo.gp import many as beliefs
from metabo.papers.hegpucb.problems import rbf

X = np.random.default_rng(0).uniform(size=(9, 1))
GRAMS = np.stack([rbf(X, 0.2), 0.5 * rbf(X, 0.7)])
MEANS = np.random.default_rng(1).normal(size=(2, 9))
NOISE = np.array([0.1, 0.03])
POINTS, Y = [4, 1, 4, 7], np.array([0.3, -1.0, 0.5, 2.0])


def conditioned(means=MEANS):
    belief = beliefs.start(jnp.asarray(np.diagonal(GRAMS, axis1=1, axis2=2)), 6)
    for point, y in zip(POINTS, Y, strict=True):
        rows, residual = jnp.asarray(GRAMS[:, :, point]), jnp.asarray(y - means[:, point])
        belief = beliefs.condition(belief, rows, jnp.asarray(point), jnp.asarray(y), residual, jnp.asarray(NOISE))
    return belief


@pytest.mark.parametrize("standardise", [False, True])
def test_moments_and_likelihood(standardise):
    """Zero prior means, outputs raw or standardised; point 4 twice."""
    belief = conditioned(np.zeros((2, 9)))
    on = beliefs.scale(belief, standardise, True)
    mean, std = beliefs.moments(belief, jnp.zeros((2, 9)), on, jnp.asarray(NOISE))
    shift, spread = (Y.mean(), Y.std(ddof=1)) if standardise else (0.0, 1.0)
    z = (Y - shift) / spread
    for u in range(2):
        covariance = GRAMS[u][np.ix_(POINTS, POINTS)] + NOISE[u] * np.eye(4)
        cross = GRAMS[u][:, POINTS]
        variance = np.diagonal(GRAMS[u]) - np.einsum("ij,jk,ik->i", cross, np.linalg.inv(covariance), cross) + NOISE[u]
        np.testing.assert_allclose(mean[u], shift + spread * cross @ np.linalg.solve(covariance, z))
        np.testing.assert_allclose(std[u], spread * np.sqrt(variance))
        expected = multivariate_normal(np.zeros(4), covariance).logpdf(z)
        assert float(beliefs.log_evidence(belief, on)[u]) == pytest.approx(expected)
        gain = 0.5 * np.linalg.slogdet(covariance / NOISE[u])[1]
        assert float(beliefs.information_gain(belief, jnp.asarray(NOISE))[u]) == pytest.approx(gain)


def test_prior_means_move_with_the_scale_of_the_outputs():
    """A prior mean is on the scale of y: standardising y leaves the posterior mean, and changes the deviation."""
    belief = conditioned()
    raw, other = beliefs.raw_scale(), beliefs.scale(belief, True, False)
    (mean, std), (same, wider) = (beliefs.moments(belief, jnp.asarray(MEANS), on) for on in (raw, other))
    np.testing.assert_allclose(mean, same)
    np.testing.assert_allclose(wider, std * Y.std(ddof=1))
    covariance = GRAMS[0][np.ix_(POINTS, POINTS)] + NOISE[0] * np.eye(4)
    expected = multivariate_normal(MEANS[0][POINTS], covariance).logpdf(Y)
    assert float(beliefs.log_evidence(belief, raw)[0]) == pytest.approx(expected)


def test_one_output_and_equal_outputs_have_spread_one():
    belief = beliefs.start(jnp.ones((1, 3)), 3)
    assert float(beliefs.scale(belief, True, True).spread) == 1 and float(beliefs.scale(belief, True, True).shift) == 0
    for _ in range(2):
        given = (jnp.ones((1, 3)), jnp.asarray(0), jnp.asarray(5.0), jnp.asarray([5.0]), jnp.asarray([0.1]))
        belief = beliefs.condition(belief, *given)
        on = beliefs.scale(belief, True, True)
        assert (float(on.shift), float(on.spread)) == (5.0, 1.0)


def test_a_pivot_that_is_not_positive_is_unsound():
    belief = beliefs.start(jnp.full((1, 3), -1.0), 3)
    given = (jnp.ones((1, 3)), jnp.asarray(0), jnp.asarray(5.0), jnp.asarray([5.0]), jnp.asarray([0.1]))
    assert not beliefs.condition(belief, *given).ok
