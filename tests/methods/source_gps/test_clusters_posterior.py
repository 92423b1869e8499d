"""The noise of cm-BO's target GP, and the factor on its prior, against plain NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from metabo.methods.source_gps import clusters_posterior


def test_fitted_noise_is_the_most_likely_of_its_trials():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    inner, gap = root @ root.T, 0.3 * rng.normal(size=6)
    wide = np.zeros((9, 9))
    wide[:6, :6] = inner
    seen = jnp.arange(9) < 6
    args = jnp.asarray(wide), jnp.asarray(np.r_[gap, np.zeros(3)]), seen
    found = float(clusters_posterior.variances(*args)[1])
    trials = np.geomspace(1e-6, 10.0, 57)
    full = [inner + t * np.eye(6) for t in trials]
    losses = [gap @ np.linalg.solve(f, gap) + np.linalg.slogdet(f)[1] for f in full]
    assert found == pytest.approx(trials[int(np.argmin(losses))], rel=1e-9)
    empty = jnp.zeros((4, 4)), jnp.zeros(4), jnp.zeros(4, bool)
    for how in ("fitted", "scaled"):
        factor, nothing = clusters_posterior.variances(*empty, how)
        assert float(nothing) == pytest.approx(1e-6) and float(factor) == 1.0
    assert [float(v) for v in clusters_posterior.variances(*args, "fixed")] == [1.0, 1e-4]
    factor, noise = map(float, clusters_posterior.variances(*args, "scaled"))
    pairs = [(s, t) for s in np.geomspace(0.1, 100.0, 31) for t in trials]
    full = [s * inner + t * np.eye(6) for s, t in pairs]
    losses = [gap @ np.linalg.solve(f, gap) + np.linalg.slogdet(f)[1] for f in full]
    assert (factor, noise) == pytest.approx(pairs[int(np.argmin(losses))], rel=1e-9)


def test_a_prior_that_is_too_narrow_is_scaled():
    """Noiseless values of a GP under 1/9 of its covariance: the factor is about nine, and the noise about 0."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 25)
    cov = np.exp(-0.5 * ((x[:, None] - x) / 0.2) ** 2) + 1e-8 * np.eye(25)
    found = []
    for _ in range(20):
        y = np.linalg.cholesky(cov) @ rng.normal(size=25)
        args = jnp.asarray(cov / 9), jnp.asarray(y), jnp.ones(25, bool)
        found.append([float(v) for v in clusters_posterior.variances(*args, "scaled")])
    factors, noises = np.array(found).T
    assert 4 < np.median(factors) < 20 and np.median(noises) < 1e-4


def test_the_end_of_the_range_holds_no_fit_of_standardised_outputs():
    """Outputs of unit variance under a prior mean that is off by two deviations, and a covariance near 0: the noise is
    their mean square, 5, which an upper end of 0.1 would have cut."""
    rng = np.random.default_rng(1)
    args = 1e-9 * jnp.eye(200), jnp.asarray(2.0 + rng.normal(size=200)), jnp.ones(200, bool)
    noise = float(clusters_posterior.variances(*args)[1])
    assert 4.0 < noise < 6.0 < clusters_posterior.NOISE[1]
