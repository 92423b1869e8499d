"""BFGS fits of GPs with few parameters: likelihood, gradient and information by dense NumPy, ends by SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree

from metabo.gp import bfgs
from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.fit import lbfgs
from metabo.gp.kernels import RADIAL, Product, Stationary
from metabo.gp.linalg import JITTER
from metabo.gp.means import Constant, Zero
from metabo.gp.model import GP, build
from metabo.tasks.rows import Rows

ROWS, VALID, DIM = 11, 8, 3
LENGTHS = np.array([[0.4, 0.9, 1.7], [0.8, 0.5, 1.1]])
VARIANCE, NOISE, MEAN = 1.3, 0.04, 0.25


def gp_of(shapes, constant=True):
    """A GP with a stationary kernel, or a product if there are two shapes."""
    mean = Constant(jnp.asarray(MEAN)) if constant else Zero()
    variance = inverse_positive(jnp.asarray(VARIANCE))
    if len(shapes) == 1:
        kernel = Stationary(inverse_positive(jnp.asarray(LENGTHS[0])), variance, shapes[0])
    else:
        kernel = Product(inverse_positive(jnp.asarray(LENGTHS) - 0.01), variance, shapes)
    return GP(Identity(), mean, kernel, inverse_positive(jnp.asarray(NOISE)))


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(ROWS, DIM))
    x[3] = x[1]  # a repeated input
    return Rows(x, rng.normal(size=ROWS), np.arange(ROWS) < VALID)


MODELS = [*(((shape,), True) for shape in RADIAL), (("matern32", "matern12"), False), (("matern52",), False)]


def covariance(theta, shapes, x):
    """Σ of constrained parameters (lengthscales, signal variance, noise) by NumPy."""
    scales = theta[: len(shapes) * DIM].reshape(len(shapes), DIM)
    values = np.full((len(x), len(x)), theta[-2])
    for shape, scale in zip(shapes, scales, strict=True):
        r = np.sqrt((((x[:, None] - x[None]) / scale) ** 2).sum(-1))
        values *= {
            "matern12": lambda r: np.exp(-r),
            "matern32": lambda r: (1 + 3**0.5 * r) * np.exp(-(3**0.5) * r),
            "matern52": lambda r: (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r),
            "squared_exponential": lambda r: np.exp(-0.5 * r**2),
        }[shape](r)
    return values + (theta[-1] + JITTER) * np.eye(len(x))


@pytest.mark.parametrize(("shapes", "constant"), MODELS)
def test_value_gradient_and_information_are_those_of_dense_algebra(data, shapes, constant):
    gp = gp_of(shapes, constant)
    found = bfgs.nll_information(gp, data)
    x, y = data.x[:VALID], data.y[:VALID]
    theta = np.asarray(bfgs.constrained(gp))
    own = theta[1:] if constant else theta

    def dense(theta):
        mean, rest = (theta[0], theta[1:]) if constant else (0.0, theta)
        sigma = covariance(rest, shapes, x)
        residual = y - mean
        return 0.5 * (
            residual @ np.linalg.solve(sigma, residual) + np.linalg.slogdet(sigma)[1] + VALID * np.log(2 * np.pi)
        )

    assert found.value == pytest.approx(dense(theta), rel=1e-12)
    assert found.value == pytest.approx(float(-gp.log_prob(*data)), rel=1e-12)
    numeric = scipy.optimize.approx_fprime(theta, dense, 1e-7)
    np.testing.assert_allclose(found.gradient, numeric, atol=2e-5)

    sigma = covariance(own, shapes, x)
    alpha = np.linalg.solve(sigma, y - (MEAN if constant else 0.0))
    steps = 1e-6 * np.eye(len(own))
    columns = np.stack(
        [(covariance(own + s, shapes, x) - covariance(own - s, shapes, x)) @ alpha / 2e-6 for s in steps], axis=1
    )
    information = 0.5 * columns.T @ np.linalg.solve(sigma, columns)
    if constant:
        ones = np.ones(VALID)
        information = scipy.linalg.block_diag(ones @ np.linalg.solve(sigma, ones), information)
    np.testing.assert_allclose(found.curvature, information, atol=1e-6 * np.abs(information).max())


@pytest.mark.parametrize(("shapes", "constant"), MODELS)
def test_gradient_is_that_of_automatic_differentiation(data, shapes, constant):
    gp = gp_of(shapes, constant)
    flat, unravel = ravel_pytree(gp)
    slope = jax.grad(lambda at: jnp.sum(bfgs.constrained(unravel(at))))(flat)
    automatic = jax.grad(lambda at: -unravel(at).log_prob(*data))(flat)
    np.testing.assert_allclose(slope * bfgs.nll_information(gp, data).gradient, automatic, atol=1e-11)


def test_expected_information_is_the_mean_of_the_average_information():
    """Over outputs from the model: what makes it a stand-in for the Hessian at the optimum."""
    gp, rng = gp_of(("matern52",)), np.random.default_rng(0)
    x = rng.uniform(size=(6, DIM))
    theta = np.asarray(bfgs.constrained(gp))[1:]
    sigma = covariance(theta, ("matern52",), x)
    y = MEAN + rng.normal(size=(20_000, 6)) @ np.linalg.cholesky(sigma).T
    every = jnp.ones(6, bool)
    found = jax.jit(jax.vmap(lambda y: bfgs.nll_information(gp, Rows(x, y, every)).curvature))(y).mean(axis=0)
    slopes = [
        (covariance(theta + s, ("matern52",), x) - covariance(theta - s, ("matern52",), x)) / 2e-6
        for s in 1e-6 * np.eye(len(theta))
    ]
    scaled = [np.linalg.solve(sigma, slope) for slope in slopes]
    expected = 0.5 * np.array([[np.sum(a * b.T) for b in scaled] for a in scaled])
    np.testing.assert_allclose(found[1:, 1:], expected, atol=0.03 * expected.max())


def penalty(gp):
    """A wide Normal prior on the coordinates: without one a likelihood of few rows has no best point."""
    return 0.5 * jnp.sum(ravel_pytree(gp)[0] ** 2) / 9


def loss(gp, data):
    return penalty(gp) - gp.log_prob(*data)


def same(gp):
    return gp


@pytest.fixture(scope="module")
def fit():
    """The fit, compiled once for each kind of GP."""
    return jax.jit(lambda gp, data: bfgs.fit(same, penalty, gp, data, steps=100, tolerance=1e-7))


def sampled(seed, count=30, length=0.5, noise=0.05):
    """A function drawn from a Matérn-5/2 GP."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, DIM))
    sigma = covariance(np.array([length, 2 * length, 4 * length, 1.0, noise**2]), ("matern52",), x)
    return Rows(x, np.linalg.cholesky(sigma) @ rng.normal(size=count), np.ones(count, bool))


@pytest.mark.parametrize("seed", range(4))
def test_a_fit_ends_where_scipy_ends(fit, seed):
    data, gp = sampled(seed), gp_of(("matern52",))
    fitted, log = fit(gp, data)
    flat, unravel = ravel_pytree(gp)
    slope = jax.jit(jax.value_and_grad(lambda at: loss(unravel(at), data)))
    end = scipy.optimize.minimize(
        lambda at: tuple(map(np.asarray, slope(at))), flat, jac=True, method="L-BFGS-B", options={"gtol": 1e-6}
    )
    assert float(loss(fitted, data)) <= end.fun + 1e-6
    assert log.stopped == -1 and np.all(np.diff(log.loss) <= 0)
    assert log.loss[0] == pytest.approx(float(loss(gp, data)))


@pytest.mark.parametrize("shapes", [("matern52",), ("matern32", "matern12")])
def test_masked_rows_and_columns_of_zeros_change_nothing(fit, shapes):
    data, gp = sampled(1), gp_of(shapes, constant=False)
    alone = fit(gp, Rows(data.x[:20], data.y[:20], data.mask[:20]))[0]
    padded = fit(gp, data._replace(mask=np.arange(30) < 20))[0]
    np.testing.assert_allclose(ravel_pytree(padded)[0], ravel_pytree(alone)[0], rtol=1e-6)


def test_warm_fits_need_fewer_steps_than_lbfgs_for_a_lower_loss():
    """As in BO: each fit starts from the last and has one observation more; ten steps each."""
    data, gp = sampled(7, count=40), gp_of(("matern52",))

    def ends(fitter):
        def step(last, count):
            seen = Rows(data.x, data.y, jnp.arange(40) < count)
            fitted = fitter(last, seen)
            return fitted, loss(fitted, seen)

        return np.asarray(jax.jit(lambda gp: jax.lax.scan(step, gp, jnp.arange(5, 41))[1])(gp))

    ours = ends(lambda gp, seen: bfgs.fit(same, penalty, gp, seen, steps=10)[0])
    theirs = ends(lambda gp, seen: lbfgs(lambda g: loss(g, seen), gp, steps=10)[0])
    assert np.median(ours - theirs) <= 0 and np.mean(ours - theirs) <= 1e-4


def test_a_loss_that_is_not_finite_is_told_and_changes_nothing(fit):
    data, gp = sampled(0), gp_of(("matern52",))
    fitted, log = fit(gp, data._replace(y=np.full(30, np.nan)))
    assert log.stopped == 0
    np.testing.assert_array_equal(ravel_pytree(fitted)[0], ravel_pytree(gp)[0])


def test_a_wall_is_not_crossed():
    """A penalty that ends at a wall: steps beyond it are shortened until they are not."""
    data, gp = sampled(2), gp_of(("matern52",))

    def wall(gp):
        return jnp.where(gp.noise > 0.02, -jnp.log(jnp.maximum(gp.noise - 0.02, 1e-300)), jnp.inf)

    fitted, log = bfgs.fit(same, wall, gp, data, steps=50)
    assert 0.02 < fitted.noise < 0.04 and log.stopped == -1 and np.isfinite(log.loss).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_update_meets_the_secant_equation_and_stays_positive(sign):
    """Where the curvature along a step is negative, Powell's damping keeps the matrix positive definite."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    before, moved = jnp.asarray(root @ root.T + np.eye(4)), jnp.asarray(rng.normal(size=4))
    change = sign * (2.0 * before @ moved)
    after = np.asarray(bfgs._updated(before, moved, change))
    assert np.linalg.eigvalsh(after).min() > 0
    np.testing.assert_allclose(after, after.T, rtol=1e-12)
    if sign > 0:
        np.testing.assert_allclose(after @ moved, change, rtol=1e-10)


def test_which_gps_are_supported():
    """Features that are learned have too many parameters for a dense matrix, and no closed form here."""
    key = jax.random.key(0)
    model = {"mean": "constant", "kernel": "matern52", "features": []}
    assert bfgs.supported(build(model, DIM, key)) and bfgs.supported(gp_of(("matern32", "matern12"), False))
    assert not bfgs.supported(build(model | {"features": [4]}, DIM, key))
    assert not bfgs.supported(build(model | {"kernel": "dot_product"}, DIM, key))
