"""One new Cholesky row: against SciPy, and where rounding has left a variance below 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from metabo.bo.acquisition import make
from metabo.bo.fixed_prior import FixedPrior
from metabo.bo.policy import Candidates
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.linalg import JITTER, RAISED
from metabo.gp.means import Zero
from metabo.gp.model import GP
from metabo.gp.update import MARGIN, new_row
from tests.stepping import observe


def made(variance=1.0, lengthscale=0.3, noise=-20.0):
    raw = [jnp.asarray(np.log(np.expm1(v)) if v < 30 else v) for v in (lengthscale, variance)]
    return GP(Identity(), Zero(), Stationary(jnp.full(2, raw[0]), raw[1], "matern52"), jnp.asarray(noise))


@pytest.fixture
def pool():
    return jnp.asarray(np.random.default_rng(0).uniform(size=(12, 2)))


def row_after(gp, pool, variance):
    """The row of candidate 0 with nothing observed, where its posterior variance is `variance`."""
    variances = gp.kernel.diagonal(pool).at[0].set(variance)
    return new_row(gp, gp.kernel.prepare(pool), jnp.zeros((3, 12)), variances, jnp.asarray(0))


def test_rows_are_those_of_the_factor(pool):
    gp = made(noise=-3.0)
    k = np.asarray(gp.kernel.gram(pool))
    lower = scipy.linalg.cholesky(k[:3, :3] + (float(gp.noise) + JITTER) * np.eye(3), lower=True)
    expected = scipy.linalg.solve_triangular(lower, k[:3], lower=True)
    rows, variance, prepared = jnp.zeros((3, 12)), gp.kernel.diagonal(pool), gp.kernel.prepare(pool)
    for i in range(3):
        row = new_row(gp, prepared, rows, variance, jnp.asarray(i))
        assert bool(row.ok) and float(row.raised) == 0.0 and float(row.pivot) == pytest.approx(lower[i, i] ** 2)
        rows, variance = rows.at[i].set(row.values), variance - row.values**2
    np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("prior", [1.0, 1e6])
def test_a_pivot_below_zero_is_raised_beyond_the_rounding_error(pool, prior):
    gp = made(prior)
    lost = 0.05 * RAISED[-1] * prior
    usual = float(gp.noise) + max(JITTER, 1e-10 * prior)
    row = row_after(gp, pool, -lost)
    assert float(row.pivot) == pytest.approx(usual + MARGIN * lost, rel=1e-9) and bool(row.ok)
    assert (
        float(row.raised) == pytest.approx((1 + MARGIN) * lost, rel=1e-9) and np.isfinite(np.asarray(row.values)).all()
    )


def test_one_that_is_further_below_is_unsound(pool):
    assert not bool(row_after(made(), pool, -0.2 * RAISED[-1]).ok)
    assert not bool(row_after(made(), pool, jnp.nan).ok)


def test_a_pivot_of_noise_alone_is_not_raised(pool):
    row = row_after(made(noise=-3.0), pool, -0.01)  # the noise is 0.049
    assert float(row.raised) == 0.0 and bool(row.ok)


def test_a_run_that_loses_its_digits_stays_finite_and_says_so():
    """Points 500 from the origin, as near to each other as the length-scale of 0.01: distances lose eight digits."""
    rng = np.random.default_rng(0)
    gp, x = made(lengthscale=0.01), 500.0 + 0.01 * rng.uniform(size=(60, 2))
    policy = FixedPrior(gp, make("ei"), 60)
    state = policy.init(Candidates(jnp.asarray(x), jnp.ones(60, dtype=bool)), jax.random.key(0))
    for i in range(60):
        state = observe(policy, state, jnp.asarray(i), jnp.asarray(np.sin(100 * x[i, 0])))
    said = policy.select(state, jnp.ones(60, dtype=bool), jax.random.key(1))[1]
    assert float(said.jitter) == float(state.raised) > RAISED[-1] and not bool(said.ok)
    assert np.isfinite(np.asarray(state.mean)).all() and np.isfinite(float(said.mean))
