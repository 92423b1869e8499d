"""Priors of GP parameters: densities, fits and divergence against SciPy; MAP loss and coordinates of a support."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from jax.flatten_util import ravel_pytree
from scipy.integrate import quad

from metabo.errors import ConfigError, DataError
from metabo.gp.fit import lbfgs
from metabo.gp.model import build
from metabo.methods.hierarchical.hyperprior import (
    NAMES,
    Hyperprior,
    Parameters,
    Support,
    fit_gamma,
    fit_normal,
    kl_gamma,
    map_loss,
    of_gp,
    to_gp,
)
from tests import tiny
from tests.references import DenseGP, central_difference

DIM = 3
NUMBERS = Parameters(
    np.array([0.4, 0.7]), np.array([[2.0, 3.0], [0.6, 1.5], [10.0, 30.0]]), np.array([1.2, 5.0]), np.array([0.8, 90.0])
)
RANGES = Parameters(
    np.array([0.0, 1.0]), np.tile([1e-5, 30.0], (DIM, 1)), np.array([1e-5, 1.0]), np.array([1e-5, 0.1])
)  # mphd App. E.2
THETA = Parameters(0.3, np.array([0.5, 1.7, 0.2]), 0.6, 0.02)


def prior(kind="gamma", numbers=None):
    numbers = numbers or (NUMBERS if kind == "gamma" else RANGES)
    return Hyperprior(*map(jnp.asarray, numbers), kind)


def scipys(kind="gamma"):
    """The same priors as frozen distributions of SciPy, one for each number in θ."""
    if kind == "uniform":
        low, high = np.concatenate([np.atleast_2d(pair) for pair in RANGES]).T
        return [scipy.stats.uniform(a, b - a) for a, b in zip(low, high, strict=True)]
    pairs = np.concatenate([np.atleast_2d(pair) for pair in NUMBERS[1:]])
    return [scipy.stats.norm(*NUMBERS.constant), *(scipy.stats.gamma(a, scale=1 / b) for a, b in pairs)]


def log_density(theta, kind="gamma"):
    values = np.concatenate([np.atleast_1d(value) for value in theta])
    return sum(one.logpdf(value) for one, value in zip(scipys(kind), values, strict=True))


def test_gp_and_parameters_are_inverse():
    gp = to_gp(THETA, "matern32")
    for value, expected in zip(of_gp(gp), THETA, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert gp.kernel.shape == "matern32"
    x = np.random.default_rng(0).uniform(size=(2, DIM))
    np.testing.assert_allclose(gp.mean(gp.features(jnp.asarray(x))), [0.3, 0.3])


@pytest.mark.parametrize(
    ("mean", "kernel", "found"), [("zero", "matern52", "mean Zero"), ("constant", "dot_product", "kernel DotProduct")]
)
def test_a_gp_of_another_kind_has_no_such_parameters(mean, kernel, found):
    gp = build({"mean": mean, "kernel": kernel, "features": []}, DIM, jax.random.key(0))
    with pytest.raises(ConfigError, match=f"a constant mean and a stationary kernel; got .*{found}"):
        of_gp(gp)


@pytest.mark.parametrize("kind", ["gamma", "uniform"])
def test_density_is_scipys_on_the_constrained_values(kind):
    rng = np.random.default_rng(1)
    for _ in range(5):
        theta = Parameters(rng.uniform(), rng.uniform(0.05, 3.0, DIM), rng.uniform(0.1, 0.9), rng.uniform(1e-4, 0.09))
        found = float(prior(kind).log_density(to_gp(theta, "matern52")))
        assert found == pytest.approx(log_density(theta, kind), rel=1e-9)


@pytest.mark.parametrize("name", Parameters._fields)
def test_outside_a_uniform_support_the_density_is_zero(name):
    high = getattr(RANGES, name).max()
    for value, inside in ((high * 1.01, False), (high * 0.99, True)):
        theta = THETA._replace(**{name: np.full(np.shape(getattr(THETA, name)), value)})
        assert np.isfinite(float(prior("uniform").log_density(to_gp(theta, "matern52")))) == inside


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 10.0, 900.0])
def test_gamma_fit_is_scipys(shape):
    samples = np.random.default_rng(2).gamma(shape, 1 / 7.0, size=400)
    a, b = fit_gamma(samples)
    expected, _, scale = scipy.stats.gamma.fit(samples, floc=0)
    assert a == pytest.approx(expected, rel=1e-6) and b == pytest.approx(1 / scale, rel=1e-6)
    # the equation that it solves, and no better likelihood beside it
    assert np.log(a) - scipy.special.digamma(a) == pytest.approx(np.log(samples.mean()) - np.log(samples).mean())
    likelihood = lambda p, q: scipy.stats.gamma(p, scale=1 / q).logpdf(samples).sum()  # noqa: E731
    assert all(
        likelihood(a, b) > likelihood(a * p, b * q) for p in (0.99, 1, 1.01) for q in (0.99, 1, 1.01) if p * q != 1
    )


def test_gamma_fit_of_two_samples_that_are_close_or_far_apart():
    # log a - ψ(a) = 1/(2a) + O(a⁻²), and the gap of m (1 ± e) is e²/2 + e⁴/4: a = 1/e² for small e.
    for e in (1e-3, 1e-5, 1e-9):
        assert fit_gamma(np.array([2.0 * (1 - e), 2.0 * (1 + e)]))[0] == pytest.approx(1 / e**2, rel=max(e, 1e-6))
    # ψ(a) = -1/a - γ + O(a): for small a the gap is 1/a + log a + γ; the smaller of two samples decides it.
    far = np.array([1e-300, 1.0])
    a, b = fit_gamma(far)
    assert 1 / a + np.log(a) + np.euler_gamma == pytest.approx(np.log(0.5) + 150 * np.log(10), rel=1e-4)
    assert b == pytest.approx(a / 0.5)


def test_fits_of_batches_are_those_of_their_rows():
    samples = np.random.default_rng(3).gamma(2.0, size=(2, 3, 30))
    for fit in (fit_gamma, fit_normal):
        first, second = fit(samples)
        assert first.shape == second.shape == (2, 3)
        assert (first[1, 2], second[1, 2]) == pytest.approx(fit(samples[1, 2]), rel=1e-12)


def test_normal_fit_is_scipys():
    samples = np.random.default_rng(4).normal(1.0, 2.0, size=50)
    assert fit_normal(samples) == pytest.approx(scipy.stats.norm.fit(samples))
    assert fit_normal(np.array([1.0, 3.0])) == (2.0, 1.0)  # the population's deviation, not the sample's


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.0, 1.0], r"noise variance: the estimate of space 'two' is 0\.0, not positive and finite"),
        ([0.5, 1.0, np.inf], r"noise variance: the estimate of space 'three' is inf, not positive"),
        ([-0.5, 1.0, 2.0], r"of space 'one' is -0\.5"),
        ([0.5, np.nan, 1.0], r"of space 'two' is nan"),
        ([0.5, 0.5, 0.5], r"fewer than two different estimates among 3 from 3 spaces; pre-train on two"),
    ],
)
def test_samples_without_a_gamma_fit_name_space_and_parameter(values, message):
    with pytest.raises(DataError, match=message):
        fit_gamma(np.array(values), NAMES.noise, ("one", "two", "three"))


def test_one_sample_has_no_fit_and_says_how_many_spaces_there_are():
    for fit in (fit_gamma, fit_normal):
        with pytest.raises(DataError, match=r"prior of the signal variance: .* among 1 from 1 space; pre-train"):
            fit(np.array([0.3]), NAMES.variance, ("only",))
        with pytest.raises(DataError, match="among 0"):
            fit(np.zeros(0))
    with pytest.raises(DataError, match=r"constant mean: the estimate of space 'b' is nan, not finite"):
        fit_normal(np.array([0.3, np.nan]), NAMES.constant, ("a", "b"))
    with pytest.raises(DataError, match=r"lengthscale: the estimate \(sample 1\) is -1\.0"):
        fit_gamma(np.array([[0.3, 0.2], [1.0, -1.0]]))


@pytest.mark.parametrize(
    ("one", "two"), [((1.0, 5.0), (0.953, 0.917)), ((1.9231, 0.7531), (1.3, 1.1)), ((10.0, 30.0), (2.0, 6.0))]
)
def test_divergence_is_the_integral(one, two):
    p, q = (scipy.stats.gamma(a, scale=1 / b) for a, b in (one, two))
    reference, _ = quad(lambda v: p.pdf(v) * (p.logpdf(v) - q.logpdf(v)), *p.ppf([1e-13, 1 - 1e-13]), limit=200)
    assert kl_gamma(*one, *two) == pytest.approx(reference, rel=1e-6)
    assert kl_gamma(*one, *one) == pytest.approx(0.0, abs=1e-12)


def data(rng, n, length=9):
    x, y = rng.uniform(size=(length, DIM)), rng.normal(size=length)
    return jnp.asarray(x), jnp.asarray(y), jnp.arange(length) < n


def test_map_loss_is_likelihood_and_prior_and_padding_does_not_count():
    x, y, mask = data(np.random.default_rng(5), 6)
    gp = to_gp(THETA, "matern52")
    expected = DenseGP(gp).nll(x[:6], y[:6]) - log_density(THETA)
    assert float(map_loss(gp, prior(), x, y, mask)) == pytest.approx(expected, rel=1e-9)
    assert float(map_loss(gp, prior(), x[:6], y[:6], mask[:6])) == pytest.approx(expected, rel=1e-9)
    moved = map_loss(gp, prior(), x.at[6:].add(5.0), y.at[6:].set(-70.0), mask)
    assert float(moved) == pytest.approx(expected, rel=1e-9)


def test_gradient_of_the_map_loss_against_finite_differences():
    # Eq. 6, on the unconstrained leaves that L-BFGS moves; the reference is dense NumPy and SciPy's densities.
    x, y, mask = data(np.random.default_rng(6), 9)
    flat, unravel = ravel_pytree(to_gp(THETA, "matern52"))

    def reference(vector):
        gp = unravel(jnp.asarray(vector))
        return DenseGP(gp).nll(x, y) - log_density(Parameters(*map(np.asarray, of_gp(gp))))

    gradient = ravel_pytree(eqx.filter_jit(jax.grad(map_loss))(unravel(flat), prior(), x, y, mask))[0]
    np.testing.assert_allclose(gradient, central_difference(reference, flat, 1e-5), rtol=1e-5, atol=1e-5)


def test_map_tends_to_maximum_likelihood_as_data_grow():
    # One parameter, the constant, of a GP that is white noise: with v its variance at a point, MLE is the mean of y,
    # MAP (Σy/v + c/d²)/(n/v + 1/d²) (conjugate normal); the difference falls like 1/n.
    rng = np.random.default_rng(7)
    theta = Parameters(0.0, np.full(DIM, 1e-4), 0.5, 0.5)
    apart = []
    for n in (8, 32, 128):
        x, y = rng.uniform(size=(n, DIM)), rng.normal(2.0, 1.0, size=n)

        rows = (jnp.asarray(x), jnp.asarray(y), jnp.ones(n, bool))

        def loss(c, rows=rows):
            return map_loss(to_gp(theta._replace(constant=c), "matern52"), prior(), *rows)

        fitted = float(lbfgs(loss, jnp.asarray(0.0), steps=30, tolerance=1e-9)[0])
        (c, d), v = NUMBERS.constant, 0.5 + 0.5 + 1e-6
        assert fitted == pytest.approx((y.sum() / v + c / d**2) / (n / v + 1 / d**2), rel=1e-6)
        apart.append(abs(fitted - float(y.mean())) * n)
    assert apart[2] == pytest.approx((v / d**2) * abs(fitted - c), rel=1e-5) and max(apart) / min(apart) < 2


@pytest.mark.parametrize("value", [0.0, 1e-12, 0.5, 1.0, 1.7])
def test_coordinates_begin_inside_the_support(value):
    support = Support(prior("uniform"))
    shares = Parameters(value, np.full(DIM, value), value, value)
    begin = Parameters(*(r[..., 0] + s * (r[..., 1] - r[..., 0]) for r, s in zip(RANGES, shares, strict=True)))
    gp = support.to_gp(support.begin(to_gp(jax.tree.map(lambda v: v + 1e-9, begin), "matern52")), "matern52")
    inside = np.clip(value, support.inner, 1 - support.inner)
    for found, range_ in zip(of_gp(gp), RANGES, strict=True):
        share = (found - range_[..., 0]) / (range_[..., 1] - range_[..., 0])
        np.testing.assert_allclose(share, inside, rtol=1e-4)
    assert np.isfinite(float(prior("uniform").log_density(gp)))


@pytest.mark.parametrize("far", [-1e6, -40.0, 40.0, 1e6])
def test_no_coordinate_is_outside_the_support(far):
    raw = Parameters(*(jnp.full(np.shape(value), far) for value in THETA))
    gp = Support(prior("uniform")).to_gp(raw, "matern52")
    assert float(prior("uniform").log_density(gp)) == pytest.approx(log_density(THETA, "uniform"))
    for value, range_ in zip(of_gp(gp), RANGES, strict=True):
        edge = range_[..., 0] if far < 0 else range_[..., 1]
        np.testing.assert_allclose(value, edge, atol=2e-6 * (range_[..., 1] - range_[..., 0]).max(), rtol=0)


def test_a_prior_is_a_stack_of_arrays():
    stack = tiny.stacked([prior(), prior()])
    assert [leaf.shape for leaf in jax.tree.leaves(stack)] == [(2, 2), (2, DIM, 2), (2, 2), (2, 2)]
    gp = build({"mean": "constant", "kernel": "matern52", "features": []}, DIM, jax.random.key(0))
    both = jax.vmap(lambda p: p.log_density(gp))(stack)
    np.testing.assert_allclose(both, float(prior().log_density(gp)))
    assert dataclasses.fields(stack)[-1].name == "kind" and stack.kind == "gamma"
