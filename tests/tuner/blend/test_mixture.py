"""The mixture, against one dense Normal in which location and spread are written out."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm

from metabo.bo import acquisition
from metabo.bo.acquisition import SCORED
from metabo.tuner.blend import mixture
from metabo.tuner.blend.mixture import SPREADS, Component

FLAT = 1e6
"""Variance of a location that is nearly flat."""


def component(seed, n=5, m=3, log=0.0, lift=1.0, noise=0.03):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n + m, n + m))
    cov, mean = root @ root.T / 4 + 0.1 * np.eye(n + m), lift * rng.normal(size=n + m)
    return Component(mean[:n], mean[n:], cov[:n, :n], cov[:n, n:], np.diag(cov)[n:], noise, log), mean, cov


def test_weights_means_and_deviations_are_those_of_the_dense_model():
    y = np.array([0.3, -1.0, 0.8, 0.1, -0.4])
    made = [component(1, log=np.log(0.7)), component(2, log=np.log(0.3), lift=2.0)]
    found = mixture.predict([one for one, _, _ in made], y)
    logs, means, stds = [], [], []
    prior = norm(0.0, mixture.LOG_DEVIATION).logpdf(np.log(SPREADS))
    for one, mean, cov in made:
        noisy = cov + np.diag([0.03 + 1e-8] * 5 + [0.0] * 3)
        for s, log in zip(SPREADS, prior, strict=True):
            full = s**2 * noisy + FLAT
            logs.append(one.log_weight + log + multivariate_normal(s * mean[:5], full[:5, :5]).logpdf(y))
            gain = np.linalg.solve(full[:5, :5], full[:5, 5:]).T
            means.append(s * mean[5:] + gain @ (y - s * mean[:5]))
            stds.append(np.sqrt(np.diag(full[5:, 5:] - gain @ full[:5, 5:])))
    weight = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(found.weight, weight / weight.sum(), rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(found.mean, means, atol=2e-3)
    np.testing.assert_allclose(found.std, stds, rtol=3e-3)
    share = weight / weight.sum()
    np.testing.assert_allclose(mixture.mean_of(found), share @ np.array(means), atol=2e-3)


def test_quantiles_are_those_of_an_outcome_with_the_noise_of_each_part():
    """A part's noise has the unit of its spread: s² times its own, as in the evidence."""
    y = np.array([0.3, -1.0, 0.8, 0.1, -0.4])
    made = [component(1, m=1, log=np.log(0.7), noise=0.4), component(2, m=1, log=np.log(0.3), lift=2.0, noise=0.01)]
    parts = []
    prior = norm(0.0, mixture.LOG_DEVIATION).logpdf(np.log(SPREADS))
    for one, mean, cov in made:
        for s, log in zip(SPREADS, prior, strict=True):
            full = s**2 * (cov + one.noise * np.eye(6)) + FLAT
            evidence = multivariate_normal(s * mean[:5], full[:5, :5]).logpdf(y)
            gain = np.linalg.solve(full[:5, :5], full[:5, 5])
            middle = s * mean[5] + gain @ (y - s * mean[:5])
            parts.append((one.log_weight + log + evidence, middle, np.sqrt(full[5, 5] - gain @ full[:5, 5])))
    logs, means, stds = np.array(parts).T
    share = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    found = mixture.predict([one for one, _, _ in made], y)
    for level in (0.05, 0.5, 0.95):
        slow = brentq(lambda z, level=level: share @ norm(means, stds).cdf(z) - level, -100, 100)
        assert mixture.quantile_of(found, level) == pytest.approx(slow, abs=5e-3)


def test_equal_parts_have_the_quantile_of_each():
    one = mixture.Predicted(np.full((3, 1), 2.0), np.full((3, 1), 3.0), np.full(3, 16.0), np.full(3, 1 / 3))
    assert mixture.quantile_of(one, 0.95) == pytest.approx(norm(2.0, 5.0).ppf(0.95))


def test_a_prior_that_predicts_better_gains_weight():
    truth = np.array([-1.0, 1.0, 0.2, -0.5, 0.7])
    cov = 0.2 * np.eye(5)
    parts = [Component(mean, np.zeros(1), cov, np.zeros((5, 1)), np.ones(1), 0.01, 0.0) for mean in (truth, -truth)]
    weight = mixture.predict(parts, 3.0 + 2.0 * truth).weight.reshape(2, -1).sum(axis=1)
    assert weight[0] > 0.95


def test_the_improvement_is_that_of_the_mixture():
    one, _, _ = component(4)
    found = mixture.predict([one], np.array([0.3, -1.0, 0.8, 0.1, -0.4]))
    shown = mixture.expected_improvement(found, 0.8)
    for place in range(3):
        parts = zip(found.weight, found.mean[:, place], found.std[:, place], strict=True)
        slow = sum(w * quad(lambda t, m=m, s=s: (t - 0.8) * norm(m, s).pdf(t), 0.8, m + 12 * s)[0] for w, m, s in parts)
        assert shown[place] == pytest.approx(slow, rel=1e-3)


def test_a_covariance_without_a_factor_gets_more_on_its_diagonal():
    found = mixture.factor(np.ones((4, 4)) - 1e-7 * np.eye(4))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found @ found.T, np.ones((4, 4)), atol=1e-3)


def test_acquisitions_are_those_of_the_weighted_components():
    """Against integrals over the density of the mixture; best 0.4."""
    rng = np.random.default_rng(5)
    weight = np.array([0.4, 0.3, 0.2, 0.1])
    found = mixture.Predicted(rng.normal(size=(4, 2)), rng.uniform(0.2, 1.5, (4, 2)), np.zeros(4), weight)

    def density(place, at):
        return found.weight @ norm(found.mean[:, at], found.std[:, at]).pdf(place)

    for at in range(2):
        above = quad(density, 0.4, 12, (at,))[0]
        mean = quad(lambda z, at=at: z * density(z, at), -12, 12)[0]
        std = np.sqrt(quad(lambda z, at=at, mean=mean: (z - mean) ** 2 * density(z, at), -12, 12)[0])
        gain = quad(lambda z, at=at: (z - 0.4) * density(z, at), 0.4, 12)[0]
        expected = {"pi": above, "ei": gain, "ucb18": mean + 1.8 * std, "ucb3": mean + 3 * std}
        assert set(expected) == set(mixture.ACQUISITIONS) <= set(SCORED)
        for name, value in expected.items():
            assert mixture.ACQUISITIONS[name](found, 0.4)[at] == pytest.approx(value, rel=1e-6)


def test_an_acquisition_that_the_mixture_has_no_form_of_is_taken_at_its_mean_and_deviation(monkeypatch):
    """A method may bring its own acquisition: the tuner's default then has it too."""
    found = mixture.predict([component(seed)[0] for seed in (1, 2)], np.array([0.3, -1.0, 0.8, 0.1, -0.4]))
    seen = {}

    def make(name):
        def score(mean, std, best, count):
            seen.update(name=name, best=float(best), count=int(count), dtype=str(mean.dtype))
            return mean + count * std + best

        return score

    monkeypatch.setattr(acquisition, "make", make)
    mean = found.weight @ found.mean
    std = np.sqrt(found.weight @ (found.mean**2 + found.std**2) - mean**2)
    np.testing.assert_allclose(mixture.scores("mine", found, 0.8, 5), mean + 5 * std + 0.8, rtol=1e-12)
    assert seen == {"name": "mine", "best": 0.8, "count": 5, "dtype": "float64"}
    for name in mixture.ACQUISITIONS:
        assert np.array_equal(mixture.scores(name, found, 0.8, 5), mixture.ACQUISITIONS[name](found, 0.8))
