"""The posterior, whole and one observation at a time, against long double over a grid of condition numbers.

The bound: a Cholesky solve of n points is off by a small multiple of n eps κ (Higham 2002, Theorem 10.4), and
covariances whose distances come from one matrix product are off by eps ‖x/ℓ‖², which the solve carries on with κ.
(The first bound that was tried left out the second part, and was missed by a third where ℓ is 0.03 and κ is 1.)
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import fixed_prior
from metabo.bo.acquisition import make
from metabo.bo.policy import Candidates
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.linalg import JITTER
from metabo.gp.means import Zero
from metabo.gp.model import GP
from tests.stepping import observe

POINTS, POOL, DIM = 24, 15, 2
FACTOR = 4.0
GRID = list(itertools.product([0.03, 0.3, 3.0, 30.0], [1e-8, 1e-4, 1e-1], [1e-2, 1.0, 1e4], [0, 6]))
"""Lengthscale, noise variance, signal variance, inputs that are repeated."""


def raw(value):
    """Unconstrained value of a positive parameter."""
    return jnp.asarray(value + np.log(-np.expm1(-value)) if value < 30 else value)


def problem(repeated):
    rng = np.random.default_rng(3)
    x, pool = rng.uniform(size=(POINTS, DIM)), rng.uniform(size=(POOL, DIM))
    x[POINTS - repeated :] = x[:repeated]
    return x, np.sin(5 * x[:, 0]) - x[:, 1] + 0.1 * rng.normal(size=POINTS), pool


def cholesky(matrix):
    """Column by column, in the precision of the matrix."""
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        factor[j, j] = np.sqrt(matrix[j, j] - factor[j, :j] @ factor[j, :j])
        factor[j + 1 :, j] = (matrix[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return factor


def forward(factor, right):
    solved = np.zeros_like(right)
    for i in range(len(factor)):
        solved[i] = (right[i] - factor[i, :i] @ solved[:i]) / factor[i, i]
    return solved


def exact(gp, x, y, pool):
    """Return mean and variance on the pool, in long double, and what multiplies eps in the bound."""
    scale, variance = (np.asarray(v).astype(np.longdouble) for v in (gp.kernel.lengthscale, gp.kernel.variance))
    x, y, pool = (v.astype(np.longdouble) for v in (x, y, pool))

    def kernel(a, b):
        s = np.sqrt(np.longdouble(5)) * np.sqrt(np.sum(((a[:, None] - b[None]) / scale) ** 2, axis=2))
        return variance * (1 + s + s**2 / 3) * np.exp(-s)

    covariance = kernel(x, x) + (np.asarray(gp.noise).astype(np.longdouble) + np.longdouble(JITTER)) * np.eye(len(x))
    factor = cholesky(covariance)
    cross, residual = forward(factor, kernel(x, pool)), forward(factor, y)
    eigenvalues = np.linalg.eigvalsh(covariance.astype(np.float64))
    rounding = len(x) + float(np.sum((x / scale) ** 2, axis=1).max())
    condition = eigenvalues[-1] / max(eigenvalues[0], JITTER)
    return cross.T @ residual, variance - np.sum(cross**2, axis=0), rounding * condition


@pytest.mark.parametrize(("lengthscale", "noise", "variance", "repeated"), GRID)
def test_posterior_is_as_good_as_its_condition_number_allows(lengthscale, noise, variance, repeated):
    kernel = Stationary(jnp.full(DIM, raw(lengthscale)), raw(variance), "matern52")
    gp = GP(Identity(), Zero(), kernel, raw(noise))
    x, y, pool = problem(repeated)
    mean, var, carried = exact(gp, x, y, pool)
    bound = FACTOR * np.finfo(np.float64).eps * carried
    posterior = gp.posterior(x, y, np.ones(POINTS, dtype=bool))
    whole = posterior.predict(jnp.asarray(pool))
    one_by_one = observed(gp, x, y, pool)
    for found_mean, found_variance in (whole, one_by_one):
        assert np.abs(np.asarray(found_mean) - mean).max() <= bound * np.abs(y).max()
        assert np.abs(np.asarray(found_variance) - var).max() <= bound * float(gp.kernel.variance)
    assert bool(posterior.ok)


def observed(gp, x, y, pool):
    """Return mean and variance on the pool after the rows were observed one at a time, as BO does."""
    policy = fixed_prior.FixedPrior(gp, make("ei"), POINTS)
    everything = jnp.asarray(np.concatenate([x, pool]))
    state = policy.init(Candidates(everything, jnp.ones(len(everything), dtype=bool)), jax.random.key(0))
    for i in range(POINTS):
        state = observe(policy, state, jnp.asarray(i), jnp.asarray(y[i]))
    assert bool(state.ok)
    return state.mean[POINTS:], state.variance[POINTS:]


def test_the_bound_finds_single_precision():
    """The control: where the covariance is well conditioned, a posterior in float32 is beyond the bound of float64."""
    kernel = Stationary(jnp.full(DIM, raw(0.3)), raw(1.0), "matern52")
    gp = GP(Identity(), Zero(), kernel, raw(1e-1))
    x, y, pool = problem(0)
    mean, _, carried = exact(gp, x, y, pool)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), gp)
    rows = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.ones(POINTS, dtype=bool))
    found, _ = single.posterior(*rows).predict(jnp.asarray(pool, jnp.float32))
    assert found.dtype == jnp.float32
    assert np.abs(np.asarray(found) - mean).max() > FACTOR * np.finfo(np.float64).eps * carried
