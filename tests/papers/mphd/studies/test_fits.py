"""Step 1 of the studies: the likelihood against SciPy, padding, subsampling, and both optimisers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from metabo.gp.constraints import inverse_positive
from metabo.methods.hierarchical.hyperprior import Parameters, of_gp, to_gp
from metabo.papers.mphd.studies import fits
from metabo.tasks.rows import Rows

JITTER = 1e-6
FUNCTIONS, N = 6, 20
TRUTH = Parameters(0.4, np.array([0.25, 0.6]), 1.5, 0.01)


def covariance(x, lengthscale, variance, noise):
    r = np.sqrt(3.0) * np.linalg.norm((x[:, None] - x) / lengthscale, axis=2)
    return variance * (1 + r) * np.exp(-r) + (noise + JITTER) * np.eye(len(x))


def nll(rows, constant, lengthscale, variance, noise):
    return -sum(
        multivariate_normal.logpdf(y, np.full(len(y), constant), covariance(x, lengthscale, variance, noise))
        for x, y in zip(np.asarray(rows.x), np.asarray(rows.y), strict=True)
    )


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.random((FUNCTIONS, N, 2))
    y = [rng.multivariate_normal(np.full(N, TRUTH.constant), covariance(part, *TRUTH[1:])) for part in x]
    return Rows(jnp.asarray(x), jnp.asarray(np.array(y)), jnp.ones((FUNCTIONS, N), bool))


def padded(rows, width):
    return rows._replace(x=jnp.pad(rows.x, ((0, 0), (0, 0), (0, width - rows.x.shape[2]))))


def test_the_loss_is_the_sum_of_negative_log_likelihoods(rows):
    found = float(fits.total_nll(to_gp(TRUTH, "matern32"), rows))
    assert found == pytest.approx(nll(rows, *TRUTH), rel=1e-9)
    half = rows.mask & (jnp.arange(FUNCTIONS) < 3)[:, None]
    some = Rows(rows.x[:3], rows.y[:3], rows.mask[:3])
    assert float(fits.total_nll(to_gp(TRUTH, "matern32"), rows._replace(mask=half))) == pytest.approx(nll(some, *TRUTH))


def test_step_1_begins_where_the_authors_do():
    start = of_gp(fits.start("matern52", 3))
    assert float(start.constant) == 1.0 and start.lengthscale.shape == (3,)
    assert [*map(float, start.lengthscale)] == pytest.approx([1.3133] * 3, abs=1e-4)
    assert (float(start.variance), float(start.noise)) == pytest.approx((0.6931, 0.01815), abs=1e-4)


def test_lbfgs_finds_the_minimum_that_scipy_finds(rows):
    found = jax.tree.map(np.asarray, fits.by_lbfgs(rows, "matern32", 200))

    def loss(q):
        return nll(rows, q[0], np.log1p(np.exp(q[1:3])), *np.log1p(np.exp(q[3:])))

    start = np.array([1.0, 1.0, 1.0, 0.0, -4.0])
    best = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 6000, "xatol": 1e-7, "fatol": 1e-9})
    assert nll(rows, *found) == pytest.approx(best.fun, abs=1e-4)
    assert float(found.constant) == pytest.approx(best.x[0], abs=2e-3)
    raw = np.asarray(inverse_positive(jnp.asarray([*found.lengthscale, found.variance, found.noise])))
    np.testing.assert_allclose(raw, best.x[1:], atol=5e-3)


def test_a_column_of_zeros_changes_nothing_and_its_lengthscale_stays(rows):
    own, wide = (fits.by_lbfgs(part, "matern32", 40) for part in (rows, padded(rows, 4)))
    np.testing.assert_allclose(wide.lengthscale[:2], own.lengthscale, rtol=1e-5)
    np.testing.assert_allclose(
        [wide.constant, wide.variance, wide.noise], [own.constant, own.variance, own.noise], rtol=1e-5
    )
    assert wide.lengthscale[2:].tolist() == pytest.approx([np.log1p(np.e)] * 2)


def test_adam_goes_to_the_same_place():
    """Sub-datasets are smaller than a batch, so every step sees all of their rows."""
    rng = np.random.default_rng(0)
    x = rng.random((3, 12, 2))
    y = [rng.multivariate_normal(np.full(12, 0.4), covariance(part, *TRUTH[1:3], 0.05)) for part in x]
    few = Rows(jnp.asarray(x), jnp.asarray(np.array(y)), jnp.ones((3, 12), bool))
    key, best = jax.random.key(0), fits.by_lbfgs(few, "matern32", 200)
    early, late = (fits.by_adam(few, "matern32", steps, 1e-3, key) for steps in (3000, 10_000))
    for name, near, far, expected in zip(Parameters._fields, late, early, best, strict=True):
        np.testing.assert_allclose(near, expected, rtol=0.02, err_msg=name)
        assert np.abs(far - expected).max() > np.abs(near - expected).max()


def test_a_subsample_has_distinct_rows_of_each_function(rows):
    chosen = fits.subsample(rows, 8, jax.random.key(1))
    assert chosen.x.shape == (FUNCTIONS, 8, 2) and chosen.mask.all()
    index = []
    for x, y, own, outputs in zip(chosen.x, chosen.y, rows.x, rows.y, strict=True):
        found = [int(np.flatnonzero((np.asarray(own) == row).all(axis=1))[0]) for row in np.asarray(x)]
        assert len(set(found)) == 8 and np.array_equal(outputs[np.array(found)], y)
        index.append(tuple(found))
    assert len(set(index)) == FUNCTIONS, "each function has a draw of its own"
    everything = fits.subsample(rows, 50, jax.random.key(1))
    assert sorted(everything.y[0].tolist()) == sorted(rows.y[0].tolist())


def test_domains_are_stacked_to_the_widest():
    sizes = {"seed": 0, "domains": 3, "functions": 3, "points": 12, "seeds": 1}
    benchmark = fits.super_dataset("mphd_s", sizes)
    (names,) = fits.pools(benchmark, sizes)
    assert names == list(benchmark.spaces)[:2] and fits.tested(benchmark, sizes) == list(benchmark.spaces)[2:]
    chosen = {space: [t.name for t in benchmark.tasks.values() if t.space == space] for space in names}
    stacked = fits.domains(benchmark, chosen)
    assert stacked.names == tuple(names) and stacked.dims.tolist() == [benchmark.spaces[n].dim for n in names]
    assert stacked.rows.x.shape == (2, 3, 12, stacked.dims.max()) and bool(stacked.rows.mask.all())
    for i, space in enumerate(names):
        for j, task in enumerate(chosen[space]):
            x, y = stacked.rows.x[i, j], stacked.rows.y[i, j]
            np.testing.assert_array_equal(x[:, : stacked.dims[i]], benchmark.tasks[task].x)
            np.testing.assert_array_equal(y, benchmark.tasks[task].y)
            assert not x[:, stacked.dims[i] :].any()


def test_every_seed_has_training_domains_of_its_own():
    """Drawn from the super-dataset's distribution one by one; the first seed's are those of a study of one seed, and
    what is tested is the same for all."""
    one = {"seed": 0, "domains": 5, "functions": 2, "points": 12, "seeds": 1}
    three = one | {"seeds": 3}
    few, many = (fits.super_dataset("mphd_s", sizes) for sizes in (one, three))
    own = fits.pools(many, three)
    assert [len(names) for names in own] == [4, 4, 4] and len({name for names in own for name in names}) == 12
    assert own[0] == fits.pools(few, one)[0] and fits.tested(many, three) == fits.tested(few, one)
    assert not {name for names in own for name in names} & set(fits.tested(many, three))
    drawn = {name: many.facts.truth[name]["parameters"]["constant"] for names in own for name in names}
    assert len(set(drawn.values())) == 12
    for name in own[0]:
        assert many.facts.truth[name] == few.facts.truth[name]
