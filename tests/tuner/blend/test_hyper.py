"""The GP of several studies, against the same computation in plain NumPy and SciPy."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from metabo.tuner.blend import hyper, kernel

OWNER = np.array([0, 1, 2, 2, 2])
"""Two numbers and a categorical parameter with three choices."""


def data(n=14, seed=0):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.random((n, 2)), np.eye(3)[rng.integers(3, size=n)]], axis=1)
    return x, rng.normal(size=n), np.arange(n) % 3


def slow_kernel(a, b, scales):
    """Matérn-5/2, pair by pair; different choices have distance 1 before the length-scale."""
    k = np.zeros((len(a), len(b)))
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            other = 0.0 if (p[2:] == q[2:]).all() else 1.0
            r = np.sqrt(
                (p[0] - q[0]) ** 2 / scales[0] ** 2 + (p[1] - q[1]) ** 2 / scales[1] ** 2 + other / scales[2] ** 2
            )
            k[i, j] = (1 + 5**0.5 * r + 5 * r**2 / 3) * np.exp(-(5**0.5) * r)
    return k


def dense(h, x, study):
    k = slow_kernel(x, x, h.scales)
    n = len(x)
    return np.array([
        [h.variance * (1.0 if study[i] == study[j] else h.correlation) * k[i, j] + 25.0 * (study[i] == study[j])
         + h.noise * (i == j) for j in range(n)] for i in range(n)
    ])  # fmt: skip


def test_the_kernel_is_matern_on_each_parameter():
    x, _, _ = data()
    scales = np.array([0.3, 0.7, 1.4])
    found = kernel.matern52(kernel.squared(x, x[:5], hyper.columns_of(scales, OWNER)))
    np.testing.assert_allclose(found, slow_kernel(x, x[:5], scales), atol=1e-9)


def test_the_loss_is_the_negative_log_posterior_and_its_gradient_is_right():
    x, z, study = data()
    mean, deviation = hyper.prior_of(3)
    same = study[:, None] == study

    def slow(t):
        h = hyper.unpacked(t, 3)
        density = multivariate_normal(np.zeros(len(z)), dense(h, x, study)).logpdf(z)
        return -density - norm(mean, deviation).logpdf(t).sum()

    rng = np.random.default_rng(2)
    one, other = mean + 0.4 * rng.normal(size=6), mean + 0.4 * rng.normal(size=6)
    fast = [hyper.loss(t, x, z, same, OWNER, mean, deviation) for t in (one, other)]
    assert fast[0][0] - fast[1][0] == pytest.approx(slow(one) - slow(other), rel=1e-9)

    def value(t):
        return hyper.loss(t, x, z, same, OWNER, mean, deviation)[0]

    step = 1e-5 * np.eye(6)  # to both sides: an error of step squared, where rounding of the loss counts little
    slopes = [(value(one + move) - value(one - move)) / 2e-5 for move in step]
    assert fast[0][1] == pytest.approx(np.array(slopes), rel=1e-6, abs=1e-6)


def test_the_studies_tell_their_correlation():
    rng = np.random.default_rng(3)
    x, study = rng.random((120, 2)), np.repeat(np.arange(6), 20)
    common = np.sin(6 * x[:, 0]) + x[:, 1]
    own = np.sin(6 * x[:, 0] + study) + np.cos(5 * x[:, 1] + 2.5 * study)
    owner = np.array([0, 1])
    related, unrelated = (hyper.fit(x, z / z.std(), study, owner, 60).correlation for z in (common, own))
    assert related > 0.8 and unrelated < 0.5
    assert hyper.fit(x, common, study, owner, 1).scales[0] != hyper.fit(x, common, study, owner, 60).scales[0]
