import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo.acquisition import make
from metabo.bo.fixed_prior import FixedPrior
from metabo.bo.policy import Candidates, argmax, tie_breakers
from metabo.bo.refit import Refit
from tests import tiny
from tests.references import DenseGP, score
from tests.stepping import begin, observe, select

DIM, POOL = 2, 12
CHOSEN = [4, 0, 4, 4, 7, 11, 0]  # candidate 4 observed three times, candidate 0 twice


def pool(rng):
    x = rng.uniform(size=(POOL, DIM))
    x[9] = x[4]  # a duplicated input: another candidate, the same covariances
    return Candidates(jnp.asarray(x), jnp.ones(POOL, dtype=bool))


@pytest.mark.parametrize("noise", [-3.0, -12.0])
@pytest.mark.parametrize(
    ("mean", "kernel", "sizes"),
    [
        ("linear", "matern52", (4, 3)),
        ("constant", "matern12", ()),
        ("zero", "dot_product", (4,)),
        ("zero", "squared_exponential", ()),
    ],
)
def test_incremental_posterior_is_the_dense_one_after_every_observation(mean, kernel, sizes, noise):
    rng = np.random.default_rng(0)
    gp, candidates, ys = tiny.random_gp(rng, DIM, mean, kernel, sizes, noise), pool(rng), rng.normal(size=len(CHOSEN))
    policy = FixedPrior(gp, make("pi"), len(CHOSEN))
    state, dense, x = begin(policy, candidates, jax.random.key(0)), DenseGP(gp), np.asarray(candidates.x)
    for t in range(len(CHOSEN) + 1):
        expected_mean, expected_variance = dense.posterior(x[CHOSEN[:t]], ys[:t], x)
        np.testing.assert_allclose(state.mean, expected_mean, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(state.variance, expected_variance, rtol=1e-5, atol=1e-8)
        assert int(state.observed) == t and bool(state.ok)
        assert float(state.best) == (ys[:t].max() if t else -np.inf)
        index, info = select(policy, state, candidates.mask, jax.random.key(1))
        std = np.sqrt(np.maximum(expected_variance, 0) + dense.noise)
        values = score("pi", expected_mean, std, ys[:t].max() if t else None, t)
        assert values[int(index)] == pytest.approx(values.max(), rel=1e-6, abs=1e-6)
        assert float(info.mean) == pytest.approx(expected_mean[int(index)], rel=1e-5, abs=1e-7)
        assert float(info.std) == pytest.approx(std[int(index)], rel=1e-5)
        if t < len(CHOSEN):
            state = observe(policy, state, jnp.asarray(CHOSEN[t]), jnp.asarray(ys[t]))
    np.testing.assert_allclose(state.mean[9], state.mean[4], rtol=1e-9)  # equal inputs, equal posterior


def test_rows_are_those_of_the_inverse_factor_times_the_covariances():
    rng = np.random.default_rng(1)
    gp, candidates = tiny.random_gp(rng, DIM), pool(rng)
    policy, dense, x = FixedPrior(gp, make("ei"), 5), DenseGP(gp), np.asarray(candidates.x)
    state = begin(policy, candidates, jax.random.key(0))
    for index in CHOSEN[:4]:
        state = observe(policy, state, jnp.asarray(index), jnp.asarray(0.3))
    factor = np.linalg.cholesky(dense.covariance(x[CHOSEN[:4]]))
    expected = np.linalg.solve(factor, dense.kernel(x[CHOSEN[:4]], x))
    np.testing.assert_allclose(state.rows[:4], expected, rtol=1e-8, atol=1e-10)
    assert not np.asarray(state.rows[4]).any()


def test_a_pivot_that_is_not_positive_is_flagged_and_stays_flagged():
    rng = np.random.default_rng(2)
    candidates = pool(rng)
    gp = eqx.tree_at(lambda g: g.raw_noise, tiny.random_gp(rng, DIM), jnp.asarray(jnp.nan))
    policy = FixedPrior(gp, make("ucb3"), 2)
    state = observe(policy, begin(policy, candidates, jax.random.key(0)), jnp.asarray(0), jnp.asarray(1.0))
    assert not bool(state.ok)
    assert not bool(select(policy, state, candidates.mask, jax.random.key(0))[1].ok)


@pytest.mark.parametrize(("value", "sound"), [(jnp.nan, False), (jnp.inf, False), (-jnp.inf, True), (0.0, True)])
def test_a_step_whose_score_is_no_number_or_inf_is_unsound(value, sound):
    rng = np.random.default_rng(2)
    gp, candidates = tiny.random_gp(rng, DIM, "constant", "matern32", ()), pool(rng)

    def constant(mean, std, best, count):
        return jnp.full_like(mean, value)

    for policy in (FixedPrior(gp, constant, 2), Refit(gp, tiny.same, tiny.shift_constant, constant, 2)):
        state = begin(policy, candidates, jax.random.key(0))
        assert bool(select(policy, state, candidates.mask, jax.random.key(0))[1].ok) == sound


def test_refit_posterior_against_dense():
    rng = np.random.default_rng(3)
    gp, candidates, ys = tiny.random_gp(rng, DIM, "constant", "matern32", ()), pool(rng), rng.normal(size=len(CHOSEN))
    policy = Refit(gp, tiny.same, tiny.shift_constant, make("ucb18"), len(CHOSEN))
    state, x = begin(policy, candidates, jax.random.key(0)), np.asarray(candidates.x)
    for t in range(len(CHOSEN) + 1):
        fitted = eqx.tree_at(lambda g: g.mean.value, gp, jnp.asarray(ys[:t].mean())) if t else gp
        dense = DenseGP(fitted)
        expected_mean, expected_variance = dense.posterior(x[CHOSEN[:t]], ys[:t], x)
        std = np.sqrt(np.maximum(expected_variance, 0) + dense.noise)
        values = score("ucb18", expected_mean, std, None, 0)
        index, info = select(policy, state, candidates.mask, jax.random.key(1))
        assert values[int(index)] == pytest.approx(values.max(), rel=1e-7)
        assert float(info.mean) == pytest.approx(expected_mean[int(index)], rel=1e-6)
        assert float(info.std) == pytest.approx(std[int(index)], rel=1e-6)
        assert bool(info.ok)
        if t < len(CHOSEN):
            state = observe(policy, state, jnp.asarray(CHOSEN[t]), jnp.asarray(ys[t]))
    np.testing.assert_array_equal(state.x, x[CHOSEN])
    np.testing.assert_array_equal(state.y, ys)
    state = observe(policy, state._replace(observed=jnp.asarray(0)), jnp.asarray(0), jnp.asarray(99.0))
    assert not bool(select(policy, state, candidates.mask, jax.random.key(0))[1].ok)  # the fit reported failure


def test_argmax_ignores_padding_and_breaks_ties_by_priority():
    scores, mask = jnp.asarray([1.0, 3.0, 3.0, 9.0, 3.0]), jnp.asarray([True, True, True, False, True])
    for favourite in (1, 2, 4):
        priority = jnp.full(5, 0.3).at[favourite].set(0.8).at[3].set(1.0).at[0].set(0.9)
        assert int(argmax(scores, mask, priority)) == favourite
    priority = jnp.asarray([0.1, 0.2, 0.3, 0.9, 0.0])
    assert int(argmax(jnp.full(5, -jnp.inf), mask, priority)) == 2
    # A score that is not a number never wins; if all are, the choice is by priority, and never padding.
    assert int(argmax(scores.at[jnp.asarray([1, 2])].set(jnp.nan), mask, priority)) == 4
    assert int(argmax(jnp.full(5, jnp.nan), mask, priority)) == 2


def test_tie_breakers_are_uniform_and_follow_the_key():
    first, second = (np.asarray(tie_breakers(jax.random.key(i), 2000)) for i in (0, 1))
    assert (first >= 0).all() and (first < 1).all() and len(np.unique(first)) == 2000
    assert abs(first.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 2000)
    assert (first != second).all()
