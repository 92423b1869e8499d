"""GPs of source tasks: the product kernel and its posterior against dense NumPy, and the fits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metabo.bo.acquisition import make as acquisitions
from metabo.bo.fixed_prior import FixedPrior
from metabo.bo.policy import Candidates
from metabo.errors import ConfigError
from metabo.methods.source_gps.sources import fit, fit_all, make, posteriors_at, repeated, taken
from metabo.tasks.rows import Rows
from tests.references import JITTER, radial, softplus

SHAPES = {"plain": ("matern32",), "product": ("matern32", "matern12"), "smooth": ("matern52",)}


def random_gp(shapes, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    gp = make(shapes, dim)
    moved = jax.tree.map(lambda leaf: leaf + 0.5 * jnp.asarray(rng.normal(size=leaf.shape)), gp)
    return moved


def dense(gp, a, b):
    """s² times the product of the factors, with distances written out."""
    scales, out = 0.01 + softplus(np.asarray(gp.kernel.raw_lengthscale)), softplus(float(gp.kernel.raw_variance))
    for shape, scale in zip(gp.kernel.shapes, scales, strict=True):
        gap = (a[:, None] - b[None]) / scale
        out = out * radial(shape, np.sqrt((gap**2).sum(-1)))
    return out


def data(n=9, dim=3, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, dim))
    return x, np.sin(4 * x[:, 0]) + x[:, 1]


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_posterior_and_likelihood_equal_a_dense_gp(shapes):
    gp, (x, y), new = random_gp(shapes), data(), data(5, seed=2)[0]
    noise = softplus(float(gp.raw_noise)) + JITTER
    cov = dense(gp, x, x) + noise * np.eye(len(x))
    cross = dense(gp, x, new)
    mean, spread = cross.T @ np.linalg.solve(cov, y), dense(gp, new, new) - cross.T @ np.linalg.solve(cov, cross)
    pad = lambda v: jnp.asarray(np.concatenate([v, np.full((2, *v.shape[1:]), 7.0)]))  # noqa: E731
    mask = jnp.arange(len(x) + 2) < len(x)
    posterior = gp.posterior(pad(x), pad(y), mask)
    found = posterior.joint(jnp.asarray(new))
    np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found[1], spread, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(posterior.predict(jnp.asarray(new))[1], np.diag(spread), rtol=1e-7, atol=1e-10)
    likelihood = multivariate_normal(np.zeros(len(x)), cov).logpdf(y)
    assert float(gp.log_prob(pad(x), pad(y), mask)) == pytest.approx(likelihood, rel=1e-9)


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_rows_of_a_pool_and_the_diagonal_are_those_of_the_gram_matrix(shapes):
    gp, (x, _) = random_gp(shapes), data()
    gram, pool = dense(gp, x, x), gp.kernel.prepare(jnp.asarray(x))
    rows = [gp.kernel.row(pool, jnp.asarray(i)) for i in range(len(x))]
    np.testing.assert_allclose(rows, gram, rtol=1e-12)
    np.testing.assert_allclose(gp.kernel.diagonal(jnp.asarray(x)), np.diag(gram), rtol=1e-12)


def test_equal_inputs_are_at_distance_zero_under_the_shortest_lengthscale():
    gp = make(["matern32", "matern12"], 2)
    gp = eqx.tree_at(lambda g: g.kernel.raw_lengthscale, gp, jnp.full((2, 2), -40.0))
    x = jnp.asarray(np.repeat(np.random.default_rng(0).uniform(size=(4, 2)) + 1e3, 2, axis=0))
    gram = np.asarray(gp.kernel.gram(x)) / float(gp.kernel.variance)
    np.testing.assert_array_equal(gram[::2, 1::2].diagonal(), 1.0)


def test_a_fixed_prior_runs_on_a_product_kernel_and_conditions_as_the_dense_posterior():
    gp, (x, y) = random_gp(SHAPES["product"]), data(8)
    policy = FixedPrior(gp, acquisitions("ei"), 4)
    pool = Candidates(jnp.asarray(x), jnp.ones(8, bool))
    state = policy.init(pool, jax.random.key(0))
    for index in (3, 5):
        state = policy.observe(state, jnp.asarray(index), jnp.asarray(y[index]))
    mean, variance = gp.posterior(jnp.asarray(x[[3, 5]]), jnp.asarray(y[[3, 5]]), jnp.ones(2, bool)).predict(pool.x)
    np.testing.assert_allclose(state.mean, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.variance, variance, rtol=1e-6, atol=1e-8)


def test_a_fit_raises_the_likelihood_and_zero_columns_change_nothing():
    x, y = data(20)
    rows = Rows(np.stack([x, x]), np.stack([y, -2 * y]), np.ones((2, 20), bool))
    narrow, log = fit_all(["matern32", "matern12"], rows, 3, 25, False)
    wide, _ = fit_all(["matern32", "matern12"], rows, 6, 25, False)
    assert narrow.kernel.raw_lengthscale.shape == wide.kernel.raw_lengthscale.shape == (2, 2, 3)
    np.testing.assert_allclose(wide.kernel.raw_lengthscale, narrow.kernel.raw_lengthscale, rtol=1e-4, atol=1e-5)
    assert (np.asarray(log.loss[:, -1]) < np.asarray(log.loss[:, 0]) - 1).all()
    alone, _ = fit(make(["matern32", "matern12"], 3), *map(jnp.asarray, (x, y, np.ones(20, bool))), 25)
    np.testing.assert_allclose(taken(narrow, 0).kernel.raw_variance, alone.kernel.raw_variance, rtol=1e-4)


def test_posteriors_of_narrow_rows_at_wider_inputs():
    gps, (x, y), (new, _) = repeated(random_gp(("matern32",)), 2), data(), data(4, seed=3)
    rows = Rows(np.stack([x, x]), np.stack([y, y + 1]), np.ones((2, len(y)), bool))
    wide = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, 0), (0, 0), (0, 2)]) if leaf.ndim == 3 else leaf, gps)
    narrow, padded = (
        posteriors_at(gps, rows, jnp.asarray(new)),
        posteriors_at(wide, rows, jnp.pad(new, [(0, 0), (0, 2)])),
    )
    for a, b in zip(narrow[:2], padded[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert narrow[2].all()


def test_unknown_or_no_factors_are_refused():
    with pytest.raises(ConfigError, match=r"unknown factor of a source kernel 'matern23'. Did you mean 'matern12'|32"):
        make(["matern23"], 2)
    with pytest.raises(ConfigError, match="at least one factor"):
        make([], 2)
