import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import multivariate_normal, ortho_group

from metabo.gp.objectives import degenerate_ekl, ekl_training, gaussian_kl, nll
from metabo.tasks.rows import Moments, pad, sample_moments
from tests import references, tiny
from tests.references import DenseGP, central_difference

DIM = 2
LOG_2PI = np.log(2 * np.pi)


@eqx.filter_jit
def nll_and_gradient(gp, x, y, mask):
    return jax.value_and_grad(lambda g: nll(g, x, y, mask))(gp)


@eqx.filter_jit
def ekl_and_gradient(gp, data):
    return jax.value_and_grad(lambda g: ekl_training(g, data))(gp)


def spd(rng, m):
    root = rng.normal(size=(m, m + 2))
    return root @ root.T / m


def matched(rng, m, n):
    """m shared inputs and correlated outputs of n functions."""
    return rng.uniform(size=(m, DIM)), rng.normal(size=(m, m)) @ rng.normal(size=(m, n)) + rng.normal(size=(m, 1))


def moments(*blocks, points=None, tasks=None):
    """Stack blocks (x, Y) into padded sample moments."""
    points = points or max(len(x) for x, _ in blocks)
    tasks = tasks or max(y.shape[1] for _, y in blocks)
    means, roots = zip(*(sample_moments(y) for _, y in blocks), strict=True)
    roots = [np.pad(r, ((0, 0), (0, tasks - r.shape[1]))) for r in roots]
    mask = pad([np.ones(len(x), dtype=bool) for x, _ in blocks], points)
    return Moments(
        *map(jnp.asarray, (pad([x for x, _ in blocks], points), pad(means, points), pad(roots, points), mask))
    )


def test_sample_moments_by_hand():
    mean, root = sample_moments(np.array([[1.0, 3.0], [0.0, 4.0], [5.0, 5.0]]))
    np.testing.assert_allclose(mean, [2.0, 2.0, 5.0])
    np.testing.assert_allclose(root @ root.T, [[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]], atol=1e-15)


def test_nll_is_the_mean_over_tasks_that_have_rows():
    rng = np.random.default_rng(0)
    gp = tiny.random_gp(rng, DIM)
    sizes = (7, 3, 1)
    tasks = [(rng.uniform(size=(n, DIM)), rng.normal(size=n)) for n in sizes]
    tasks[0][0][4] = tasks[0][0][1]
    x = np.concatenate([pad([t[0] for t in tasks]), rng.normal(size=(2, 7, DIM))])
    y = np.concatenate([pad([t[1] for t in tasks]), rng.normal(size=(2, 7))])
    mask = np.concatenate([pad([np.ones(n, dtype=bool) for n in sizes]), np.zeros((2, 7), dtype=bool)])
    expected = np.mean([DenseGP(gp).nll(*task) for task in tasks])
    value, gradient = nll_and_gradient(gp, x, y, mask)
    assert float(value) == pytest.approx(expected, rel=1e-11)
    flat, unravel = ravel_pytree(gp)
    numeric = central_difference(
        lambda v: np.mean([DenseGP(unravel(jnp.asarray(v))).nll(*t) for t in tasks]), flat, 1e-5
    )
    np.testing.assert_allclose(ravel_pytree(gradient)[0], numeric, rtol=1e-5, atol=1e-7)


def training_reference(gp, *blocks):
    """Mean over blocks of ½[tr(Σ⁻¹Σ̃) + Mahalanobis + ln|Σ|], by dense algebra."""
    dense, values = DenseGP(gp), []
    for x, y in blocks:
        mean, covariance = references.maximum_likelihood(y)
        inverse = np.linalg.inv(dense.covariance(x))
        shift = dense.mean(x) - mean
        trace = np.trace(inverse @ covariance)
        values.append(0.5 * (trace + shift @ inverse @ shift + np.linalg.slogdet(dense.covariance(x))[1]))
    return np.mean(values)


@pytest.mark.parametrize(("m", "n"), [(6, 20), (10, 3), (5, 2)])
def test_ekl_training_against_dense(m, n):
    rng = np.random.default_rng(1)
    gp, block = tiny.random_gp(rng, DIM), matched(rng, m, n)
    value, gradient = ekl_and_gradient(gp, moments(block))
    assert float(value) == pytest.approx(training_reference(gp, block), rel=1e-10)
    flat, unravel = ravel_pytree(gp)
    numeric = central_difference(lambda v: training_reference(unravel(jnp.asarray(v)), block), flat, 1e-5)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], numeric, rtol=1e-4, atol=1e-6)


def test_ekl_training_is_the_uniform_mean_over_blocks_of_any_size():
    rng = np.random.default_rng(2)
    gp = tiny.random_gp(rng, DIM, "constant", "matern32", ())
    blocks = [matched(rng, 8, 4), matched(rng, 3, 6), matched(rng, 1, 2)]
    expected = training_reference(gp, *blocks)
    value, gradient = ekl_and_gradient(gp, moments(*blocks))
    assert float(value) == pytest.approx(expected, rel=1e-11)
    wider = moments(*blocks, points=12, tasks=9)
    absent = Moments(*(jnp.concatenate([a, jnp.zeros((2, *a.shape[1:]), a.dtype)]) for a in wider))  # two empty blocks
    value, wide_gradient = ekl_and_gradient(gp, absent)
    assert float(value) == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(ravel_pytree(wide_gradient)[0], ravel_pytree(gradient)[0], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("m", "n"), [(10, 3), (6, 20)])
def test_k2_training_ekl_is_nll_less_a_constant_whatever_the_rank(m, n):
    rng = np.random.default_rng(3)
    x, y = matched(rng, m, n)
    mask = np.ones((n, m), dtype=bool)
    for _ in range(5):
        gp = tiny.random_gp(rng, DIM)
        by_tasks, slope = nll_and_gradient(gp, np.broadcast_to(x, (n, m, DIM)), y.T, mask)
        by_moments, same_slope = ekl_and_gradient(gp, moments((x, y)))
        assert float(by_moments) + m / 2 * LOG_2PI == pytest.approx(float(by_tasks), rel=1e-10)
        assert float(by_tasks) == pytest.approx(np.mean([DenseGP(gp).nll(x, c) for c in y.T]), rel=1e-10)
        np.testing.assert_allclose(ravel_pytree(slope)[0], ravel_pytree(same_slope)[0], rtol=1e-7, atol=1e-8)


def test_gaussian_kl_by_hand_and_against_dense():
    # KL(N(0, 1) || N(1, 4)) = ½[1/4 + 1/4 + ln 4 - 1]
    one = gaussian_kl(jnp.zeros(1), jnp.eye(1), jnp.ones(1), 4 * jnp.eye(1))
    assert float(one) == pytest.approx(0.5 * (0.5 + np.log(4) - 1), rel=1e-14)
    rng = np.random.default_rng(4)
    arguments = rng.normal(size=6), spd(rng, 6), rng.normal(size=6), spd(rng, 6)
    assert float(gaussian_kl(*map(jnp.asarray, arguments))) == pytest.approx(
        references.gaussian_kl(*arguments), rel=1e-10
    )
    assert np.isnan(float(gaussian_kl(jnp.zeros(2), jnp.zeros((2, 2)), jnp.zeros(2), jnp.eye(2))))


def test_k1_ekl_of_full_rank_data_is_nll_less_a_constant():
    rng = np.random.default_rng(5)
    _, y = matched(rng, 6, 20)
    mean, covariance = references.maximum_likelihood(y)
    best = np.mean([multivariate_normal(mean, covariance).logpdf(c) for c in y.T])
    kl = jax.jit(gaussian_kl)
    for _ in range(200):
        mu, sigma = rng.normal(size=6), spd(rng, 6)
        right = best - np.mean([multivariate_normal(mu, sigma).logpdf(c) for c in y.T])
        assert degenerate_ekl(mu, sigma, *sample_moments(y)) == pytest.approx(right, rel=1e-8)
        assert float(kl(mean, covariance, mu, sigma)) == pytest.approx(right, rel=1e-8)


def test_k1_control_degenerate_ekl_is_not_nll_less_a_constant():
    rng = np.random.default_rng(6)
    _, y = matched(rng, 6, 4)
    gaps = []
    for _ in range(50):
        mu, sigma = rng.normal(size=6), spd(rng, 6)
        mean_nll = -np.mean([multivariate_normal(mu, sigma).logpdf(c) for c in y.T])
        gaps.append(mean_nll - degenerate_ekl(mu, sigma, *sample_moments(y)))
    assert np.std(gaps) > 1e-2


@pytest.mark.parametrize(("m", "n"), [(6, 4), (9, 5), (4, 12), (5, 6)])
def test_degenerate_ekl_is_eq_6_and_invariant_under_rotation(m, n):
    rng = np.random.default_rng(7)
    _, y = matched(rng, m, n)
    sample_mean, root = sample_moments(y)
    rank = min(m, n - 1)  # N functions leave at most N - 1 directions
    mu, sigma = rng.normal(size=m), spd(rng, m)
    value = degenerate_ekl(mu, sigma, sample_mean, root)
    covariance = references.maximum_likelihood(y)[1]
    for rotation in (None, ortho_group(rank, seed=1).rvs() if rank > 1 else None):
        assert value == pytest.approx(
            references.projected_kl(mu, sigma, sample_mean, covariance, rank, rotation), rel=1e-8
        )
    mixed = root @ ortho_group(n, seed=2).rvs()  # another square root of the same Σ̃
    assert degenerate_ekl(mu, sigma, sample_mean, mixed) == pytest.approx(value, abs=1e-8)
    if rank == m:
        assert value == pytest.approx(references.gaussian_kl(sample_mean, covariance, mu, sigma), rel=1e-8)


def test_k3_degenerate_ekl_is_never_negative_and_zero_where_it_must_be():
    rng = np.random.default_rng(8)
    _, y = matched(rng, 6, 4)
    sample_mean, root = sample_moments(y)
    for _ in range(1000):
        assert degenerate_ekl(rng.normal(size=6), spd(rng, 6), sample_mean, root) >= 0
    covariance = root @ root.T
    vectors = np.linalg.eigh(covariance)[1][:, :3]  # null space: 6 - rank 3
    assert degenerate_ekl(sample_mean, covariance + vectors @ vectors.T, sample_mean, root) == pytest.approx(
        0, abs=1e-10
    )


def test_padding_the_sample_covariance_would_inflate_the_ekl():
    # Sheet §2.4: in float64 a pad of 1e-6 turns the null space into signal; the relative cut-off must not.
    rng = np.random.default_rng(9)
    gp = tiny.random_gp(rng, DIM, "constant", "matern52", (), noise=-4.0)
    x = rng.uniform(size=(40, DIM))
    dense = DenseGP(gp)
    y = multivariate_normal(dense.mean(x), dense.covariance(x), seed=1).rvs(7).T
    sample_mean, root = sample_moments(y)
    model = dense.mean(x), dense.covariance(x)
    value = degenerate_ekl(*model, sample_mean, root)
    covariance = root @ root.T
    assert value == pytest.approx(references.projected_kl(*model, sample_mean, covariance, rank=6), rel=1e-7)
    trap = references.projected_kl(*model, sample_mean, covariance + 1e-6 * np.eye(40), rank=40)
    assert 0 < value < 12 < 10 * value < trap


@pytest.mark.parametrize("functions", [50, 500, 5000])
def test_ekl_of_the_generating_gp_vanishes_as_functions_grow(functions):
    # 2 N EKL tends to a chi-square with m + m (m + 1)/2 degrees of freedom: one per entry of mean and covariance.
    rng = np.random.default_rng(11)
    m, freedom = 4, 4 + 10
    mu, sigma = rng.normal(size=m), spd(rng, m)
    values = []
    for _ in range(200):
        y = rng.multivariate_normal(mu, sigma, size=functions).T
        values.append(2 * functions * degenerate_ekl(mu, sigma, *sample_moments(y)))
    assert abs(np.mean(values) - freedom) < 5 * np.sqrt(2 * freedom / 200) + 70 / functions


def test_degenerate_ekl_of_a_bad_model_and_of_tasks_that_agree_is_nan():
    rng = np.random.default_rng(10)
    for functions in (2, 3):  # an odd and an even number of negative eigenvalues: the determinant alone cannot tell
        sample_mean, root = sample_moments(rng.normal(size=(4, functions)))
        assert np.isnan(degenerate_ekl(np.zeros(4), -np.eye(4), sample_mean, root))
        assert np.isnan(degenerate_ekl(np.zeros(4), np.full((4, 4), np.nan), sample_mean, root))
    for level in (0.0, 1.0, 0.1):  # 3 x 0.1 / 3 is not 0.1: the root is then rounding, not zero
        agreed = np.full((4, 3), level)
        agreed[1:] *= [[2.0], [3.0], [-7.0]]
        assert np.isnan(degenerate_ekl(np.zeros(4), np.eye(4), *sample_moments(agreed)))
        agreed[2, 1] += 1e-9  # but the smallest true difference counts
        assert np.isfinite(degenerate_ekl(np.zeros(4), np.eye(4), *sample_moments(agreed)))
