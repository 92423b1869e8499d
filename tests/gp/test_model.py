import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from metabo.errors import ConfigError
from metabo.gp.model import build
from tests import tiny
from tests.references import DenseGP, central_difference

DIM = 2
COMBINATIONS = [
    ("zero", "matern12", ()),
    ("constant", "matern32", ()),
    ("constant", "matern52", ()),
    ("linear", "matern52", (4, 3)),
    ("zero", "squared_exponential", (5,)),
    ("zero", "dot_product", (4, 3)),
]


def data(rng, n=8):
    """n rows; row 3 repeats row 0 and row 5 repeats row 1, with other outputs."""
    x = rng.uniform(size=(n, DIM))
    x[3], x[5] = x[0], x[1]
    return x, rng.normal(size=n)


@eqx.filter_jit
def log_prob(gp, x, y, mask):
    return gp.log_prob(x, y, mask)


@eqx.filter_jit
def value_and_gradient(gp, x, y, mask):
    return jax.value_and_grad(lambda g: g.log_prob(x, y, mask))(gp)


@eqx.filter_jit
def predict(gp, x, y, mask, new):
    posterior = gp.posterior(x, y, mask)
    return (*posterior.predict(new), posterior.ok)


def every(n):
    return np.ones(n, dtype=bool)


@pytest.mark.parametrize(("mean", "kernel", "sizes"), COMBINATIONS)
def test_log_prob_against_scipy(mean, kernel, sizes):
    rng = np.random.default_rng(0)
    gp, (x, y) = tiny.random_gp(rng, DIM, mean, kernel, sizes), data(rng)
    assert float(log_prob(gp, x, y, every(8))) == pytest.approx(-DenseGP(gp).nll(x, y), rel=1e-10)


def test_log_prob_by_hand():
    # One row, zero mean, k(x, x) = softplus(0) = ln 2 (+ floors), noise softplus(-3) + jitter.
    gp = tiny.random_gp(np.random.default_rng(0), 1, "zero", "matern52", ())
    gp = eqx.tree_at(lambda g: (g.kernel.raw_variance, g.raw_noise), gp, (jnp.asarray(0.0), jnp.asarray(-3.0)))
    variance = np.log(2) + 1e-10 + np.log1p(np.exp(-3)) + 1e-10 + 1e-6
    expected = -0.5 * (1.7**2 / variance + np.log(variance) + np.log(2 * np.pi))
    assert float(log_prob(gp, np.array([[0.4]]), np.array([1.7]), every(1))) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("mean", "kernel", "sizes"), [COMBINATIONS[i] for i in (2, 3, 5)])
def test_gradient_against_finite_differences(mean, kernel, sizes):
    rng = np.random.default_rng(1)
    gp, (x, y) = tiny.random_gp(rng, DIM, mean, kernel, sizes), data(rng, 7)
    flat, unravel = ravel_pytree(gp)
    numeric = central_difference(lambda v: -DenseGP(unravel(jnp.asarray(v))).nll(x, y), flat, 1e-5)
    gradient = ravel_pytree(value_and_gradient(gp, x, y, every(7))[1])[0]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def padded(x, y, order, filler_x, filler_y):
    """Put the rows at the places `order` of a longer table whose other rows hold the fillers."""
    n = len(order)
    wide_x, wide_y, mask = np.array(filler_x).reshape(n, DIM), np.array(filler_y), np.zeros(n, dtype=bool)
    places = np.argsort(order)[: len(y)]
    wide_x[places], wide_y[places], mask[places] = x, y, True
    return wide_x, wide_y, mask


finite = st.one_of(st.floats(-3, 3), st.floats(-1e140, 1e140), st.just(0.0))


@pytest.mark.parametrize(("mean", "kernel", "sizes"), [COMBINATIONS[i] for i in (0, 2, 3, 5)])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    order=st.permutations(range(11)),
    filler_x=st.lists(finite, min_size=22, max_size=22),
    filler_y=st.lists(finite, min_size=11, max_size=11),
)
def test_padding_and_order_change_nothing(mean, kernel, sizes, order, filler_x, filler_y):
    # With the dot-product kernel the padded entries of the Gram matrix overflow beyond 1e150; all below is exact.
    rng = np.random.default_rng(2)
    gp, (x, y) = tiny.random_gp(rng, DIM, mean, kernel, sizes), data(rng)
    wide = padded(x, y, order, filler_x, filler_y)
    value, gradient = value_and_gradient(gp, *wide)
    assert float(value) == pytest.approx(-DenseGP(gp).nll(x, y), rel=1e-10)
    bare = value_and_gradient(gp, x, y, every(8))[1]
    np.testing.assert_allclose(ravel_pytree(gradient)[0], ravel_pytree(bare)[0], rtol=1e-8, atol=1e-8)
    new = np.array([[0.2, 0.7], x[0]])
    expected = DenseGP(gp).posterior(x, y, new)
    for mine, reference in zip(predict(gp, *wide, new)[:2], expected, strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-8, atol=1e-9)


def test_all_rows_masked_is_the_prior():
    rng = np.random.default_rng(3)
    gp, (x, y) = tiny.random_gp(rng, DIM), data(rng)
    value, gradient = value_and_gradient(gp, x, y, ~every(8))
    assert float(value) == 0.0
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(gradient))
    mean, variance, ok = predict(gp, x, y, ~every(8), x)
    np.testing.assert_allclose(mean, DenseGP(gp).mean(x), rtol=1e-12)
    np.testing.assert_allclose(variance, np.diag(DenseGP(gp).kernel(x, x)), rtol=1e-12)
    assert bool(ok)


@pytest.mark.parametrize("noise", [-3.0, -14.0])
@pytest.mark.parametrize(("mean", "kernel", "sizes"), COMBINATIONS)
def test_posterior_against_dense(mean, kernel, sizes, noise):
    rng = np.random.default_rng(4)
    gp, (x, y) = tiny.random_gp(rng, DIM, mean, kernel, sizes, noise), data(rng)
    new = np.concatenate([rng.uniform(size=(4, DIM)), x[:3]])  # new inputs, and observed ones (two observed twice)
    expected_mean, expected_variance = DenseGP(gp).posterior(x, y, new)
    mean, variance, ok = predict(gp, x, y, every(8), new)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variance, np.maximum(expected_variance, 0), rtol=1e-6, atol=1e-9)
    assert (np.asarray(variance) >= 0).all() and bool(ok)


def test_repeated_observations_average():
    # n observations of one input: posterior variance k σ² / (n k + σ²), mean k Σy / (n k + σ²). By hand.
    gp = tiny.random_gp(np.random.default_rng(5), 1, "zero", "matern32", ())
    k, noise = float(gp.kernel.variance), float(gp.noise) + 1e-6
    x, y = np.full((4, 1), 0.3), np.array([1.0, 2.0, 0.5, -0.5])
    mean, variance, _ = predict(gp, x, y, every(4), x[:1])
    assert float(mean[0]) == pytest.approx(k * y.sum() / (4 * k + noise), rel=1e-10)
    assert float(variance[0]) == pytest.approx(k * noise / (4 * k + noise), rel=1e-8)


def test_dot_product_posterior_is_bayesian_linear_regression():
    # f(x) = b u + wᵀφ/s with u, w ~ N(0, 1): the p x p solve in the space of weights gives the same posterior (ABLR).
    rng = np.random.default_rng(7)
    gp, (x, y) = tiny.random_gp(rng, DIM, "zero", "dot_product", (4, 3)), data(rng)
    dense, new = DenseGP(gp), rng.uniform(size=(5, DIM))

    def design(inputs):
        phi = dense.features(inputs) / np.log1p(np.exp(float(gp.kernel.raw_scale)))
        return np.column_stack([np.full(len(phi), float(gp.kernel.bias)), phi])

    noise = np.log1p(np.exp(-3.0)) + 1e-6
    precision = design(x).T @ design(x) / noise + np.eye(4)
    weights = np.linalg.solve(precision, design(x).T @ y / noise)
    mean, variance, _ = predict(gp, x, y, every(8), new)
    np.testing.assert_allclose(mean, design(new) @ weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        variance, np.sum(design(new) * np.linalg.solve(precision, design(new).T).T, 1), rtol=1e-5
    )


def test_a_covariance_that_does_not_factorise_is_flagged():
    rng = np.random.default_rng(6)
    gp, (x, y) = tiny.random_gp(rng, DIM), data(rng)
    broken = eqx.tree_at(lambda g: g.raw_noise, gp, jnp.asarray(jnp.nan))
    assert not bool(predict(broken, x, y, every(8), x)[2])


def test_build_starts_where_the_notes_say():
    model = {"mean": "linear_mlp", "kernel": "matern52", "features": [300, 40]}
    gp = build(model, 5, jax.random.key(0))
    assert [w.shape for w in gp.features.weights] == [(5, 300), (300, 40)]
    assert gp.kernel.raw_lengthscale.shape == (40,) and gp.mean.weight.shape == (40,)
    # LeCun-normal: standard deviation 1/sqrt(fan in), cut at two of them
    deviation = float(jnp.std(gp.features.weights[1])) * 300**0.5
    assert deviation == pytest.approx(1.0, abs=0.05)
    assert float(jnp.abs(gp.features.weights[1]).max()) * 300**0.5 < 2.3
    for bias in (*gp.features.biases, gp.mean.bias, gp.kernel.raw_lengthscale, gp.kernel.raw_variance):
        assert not np.asarray(bias).any()
    assert float(gp.noise) == pytest.approx(0.018149927917809739 + 1e-10)
    other = build(model, 5, jax.random.key(1))
    assert not np.allclose(other.features.weights[0], gp.features.weights[0])
    assert not np.allclose(gp.mean.weight, gp.features.weights[1][:40, 0])


def test_build_on_raw_inputs():
    gp = build({"mean": "constant", "kernel": "dot_product", "features": []}, 3, jax.random.key(0))
    x = jnp.asarray([[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]])
    np.testing.assert_allclose(gp.features(x), x)
    # s = softplus(0) = ln 2, b = 0
    np.testing.assert_allclose(gp.kernel(x, x), np.array([[14.0, 3.5], [3.5, 1.25]]) / np.log(2) ** 2, rtol=1e-9)
    assert gp.mean(x).tolist() == [0.0, 0.0]


def test_build_starts_at_the_models_own_values():
    # mphd (sheet §2.2): constant and lengthscales 1 before warping, the rest as everywhere
    model = {"mean": "constant", "kernel": "matern52", "features": []}
    gp = build(model | {"initial": {"constant": 1.0, "lengthscale": 1.0}}, 3, jax.random.key(0))
    assert float(gp.mean.value) == 1.0
    np.testing.assert_allclose(gp.kernel.lengthscale, [1.3132616875182228 + 1e-10] * 3, rtol=1e-14)
    assert float(gp.kernel.variance) == pytest.approx(np.log(2), abs=1e-9)
    assert float(gp.noise) == pytest.approx(0.018149927917809739 + 1e-10)
    gp = build(model | {"initial": {"variance": -2, "noise": 0.5}}, 3, jax.random.key(0))
    assert (float(gp.kernel.raw_variance), float(gp.raw_noise), float(gp.mean.value)) == (-2.0, 0.5, 0.0)
    assert all(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(gp))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": {"lengthscales": 1.0}}, "unknown initial value .*'lengthscales'. Did you mean 'lengthscale'"),
        ({"initial": {"constant": 1.0}}, "'constant'.* Valid: lengthscale, noise, variance"),
        ({"kernel": "dot_product", "initial": {"variance": 1.0}}, "'variance'.* Valid: noise"),
        ({"mean": "linear"}, "unknown mean 'linear'. Did you mean 'linear_mlp'"),
        ({"kernel": "matern25"}, "unknown kernel 'matern25'. Did you mean 'matern"),
        ({"mean": "linear_mlp"}, "needs at least one layer"),
    ],
)
def test_build_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        build({"mean": "zero", "kernel": "matern52", "features": []} | change, 2, jax.random.key(0))
