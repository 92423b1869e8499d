import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from metabo.gp.linalg import (
    JITTER,
    RAISED,
    cholesky,
    escalated,
    gram_lower,
    half_quadratic_logdet,
    invert_lower,
    jitter,
    masked_covariance,
)

value_and_gradient = jax.jit(jax.value_and_grad(half_quadratic_logdet, argnums=(0, 1)))
value_only = jax.jit(half_quadratic_logdet)


def spd(rng, n, condition):
    """A covariance with eigenvalues spread over `condition`: matrix, eigenvalues, eigenvectors."""
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.geomspace(1.0, 1.0 / condition, n)
    matrix = vectors * values @ vectors.T
    return (matrix + matrix.T) / 2, values, vectors


@pytest.mark.parametrize(
    ("n", "columns", "condition", "tolerance"), [(5, 1, 10.0, 1e-12), (40, 3, 1e4, 1e-10), (40, 3, 1e10, 2e-4)]
)
def test_value_and_gradient_against_dense(n, columns, condition, tolerance):
    rng = np.random.default_rng(0)
    matrix, values, vectors = spd(rng, n, condition)
    residuals = rng.normal(size=(n, columns))
    # By the spectrum, which needs neither a factorisation nor a solve.
    expected = 0.5 * np.sum((vectors.T @ residuals) ** 2 / values[:, None]) + 0.5 * np.sum(np.log(values))
    value, (by_matrix, by_residuals) = value_and_gradient(matrix, residuals)
    assert float(value) == pytest.approx(expected, rel=tolerance)
    assert float(value_only(matrix, residuals)) == pytest.approx(expected, rel=tolerance)
    inverse = vectors / values @ vectors.T
    np.testing.assert_allclose(by_residuals, inverse @ residuals, rtol=0, atol=tolerance * np.abs(inverse).max() * 10)
    solved = inverse @ residuals
    expected = 0.5 * (inverse - solved @ solved.T)
    np.testing.assert_allclose(by_matrix, expected, rtol=0, atol=tolerance * np.abs(expected).max() * 10)


def test_gradient_against_finite_differences():
    rng = np.random.default_rng(1)
    matrix, _, _ = spd(rng, 6, 50.0)
    residuals = rng.normal(size=(6, 2))

    def dense(m, r):
        return 0.5 * np.trace(r.T @ scipy.linalg.solve(m, r, assume_a="pos")) + 0.5 * np.linalg.slogdet(m)[1]

    _, (by_matrix, by_residuals) = value_and_gradient(matrix, residuals)
    step = 1e-6
    for i in range(6):
        for j in range(6):
            direction = np.zeros((6, 6))
            direction[i, j] += 0.5
            direction[j, i] += 0.5  # covariances move symmetrically
            numeric = (dense(matrix + step * direction, residuals) - dense(matrix - step * direction, residuals)) / (
                2 * step
            )
            assert float(by_matrix[i, j]) == pytest.approx(numeric, rel=1e-5, abs=1e-6)
        for c in range(2):
            direction = np.zeros((6, 2))
            direction[i, c] = step
            numeric = (dense(matrix, residuals + direction) - dense(matrix, residuals - direction)) / (2 * step)
            assert float(by_residuals[i, c]) == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_cotangent_scales_the_gradient():
    matrix, residuals = np.diag([2.0, 5.0]), np.ones((2, 1))
    triple = jax.jit(jax.grad(lambda m, r: -3.0 * half_quadratic_logdet(m, r), argnums=(0, 1)))(matrix, residuals)
    # by hand: ½(1/2 - 1/4) = 0.125, ½(1/5 - 1/25) = 0.08, off-diagonal -½ · ½ · ⅕ = -0.05; Σ⁻¹r = (0.5, 0.2)
    np.testing.assert_allclose(triple[0], [[-0.375, 0.15], [0.15, -0.24]], rtol=1e-12)
    np.testing.assert_allclose(triple[1], [[-1.5], [-0.6]], rtol=1e-12)


@pytest.mark.parametrize("n", [1, 5, 16, 17, 50, 101])
def test_invert_lower_against_scipy(n):
    rng = np.random.default_rng(n)
    factor = np.tril(rng.normal(size=(n, n)), -1) / n**0.5 + np.diag(rng.uniform(0.5, 2.0, n))
    expected = scipy.linalg.solve_triangular(factor, np.eye(n), lower=True)
    inverse = np.asarray(jax.jit(invert_lower)(factor))
    np.testing.assert_allclose(inverse, expected, rtol=1e-10, atol=1e-12)
    assert (np.triu(inverse, 1) == 0).all()


def test_invert_lower_ignores_what_stands_above_the_diagonal():
    factor = np.tril(np.ones((20, 20)))
    dirty = factor + np.triu(np.full((20, 20), 7.0), 1)
    np.testing.assert_allclose(jax.jit(invert_lower)(dirty), np.linalg.inv(factor), atol=1e-12)


@pytest.mark.parametrize("n", [1, 64, 65, 131, 300])
def test_gram_lower_is_the_product(n):
    factor = np.tril(np.random.default_rng(n).normal(size=(n, n)))
    np.testing.assert_allclose(jax.jit(gram_lower)(factor), factor.T @ factor, rtol=1e-12, atol=1e-11)


def test_masked_covariance_by_hand():
    gram = np.array([[2.0, 0.5, 9.0], [0.5, 3.0, 9.0], [9.0, 9.0, np.nan]])
    result = masked_covariance(jnp.asarray(gram), jnp.asarray(0.1), jnp.asarray([True, True, False]))
    expected = [[2.1 + JITTER, 0.5, 0.0], [0.5, 3.1 + JITTER, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(result, expected, rtol=1e-15)
    assert JITTER == 1e-6


def test_cholesky_flags_matrices_that_are_not_positive_definite():
    factor, ok = jax.jit(cholesky)(np.array([[4.0, 2.0], [2.0, 3.0]]))
    np.testing.assert_allclose(factor, [[2.0, 0.0], [1.0, 2.0**0.5]])
    assert bool(ok)
    assert not bool(jax.jit(cholesky)(np.array([[1.0, 2.0], [2.0, 1.0]]))[1])
    assert not bool(jax.jit(cholesky)(np.array([[1.0, np.nan], [np.nan, 1.0]]))[1])


# --- jitter -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variance", "expected"), [(1e-300, 1e-6), (1.0, 1e-6), (1e4, 1e-6), (1e6, 1e-4), (1e10, 1.0)])
def test_jitter_is_the_authors_number_until_it_would_vanish_beside_the_variance(variance, expected):
    assert float(jitter(jnp.asarray(variance))) == pytest.approx(expected, rel=1e-12)
    diagonal = np.diag(masked_covariance(jnp.full((2, 2), variance), jnp.asarray(0.5), jnp.ones(2, bool)))
    np.testing.assert_allclose(diagonal, variance + 0.5 + expected, rtol=1e-12)


@pytest.mark.parametrize("variance", [1e-10, 1.0, 1e10])
def test_a_thousand_equal_rows_of_any_variance_factorise(variance):
    covariance = masked_covariance(jnp.full((1000, 1000), variance), jnp.asarray(1e-10), jnp.ones(1000, bool))
    assert bool(cholesky(covariance)[1])


def test_a_covariance_that_factorises_gets_nothing():
    matrix = spd(np.random.default_rng(0), 30, 1e8)[0]
    factor, added, ok = escalated(jnp.asarray(matrix))
    assert float(added) == 0.0 and bool(ok)
    np.testing.assert_array_equal(factor, cholesky(jnp.asarray(matrix))[0])


@pytest.mark.parametrize(("below", "share"), [(3e-9, 1e-8), (3e-7, 1e-6), (3e-5, 1e-4)])
def test_an_indefinite_one_gets_the_first_share_that_helps(below, share):
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    values = np.append(np.geomspace(1e3, 1.0, 19), -below)
    matrix = jnp.asarray(vectors * values @ vectors.T)
    matrix = (matrix + matrix.T) / 2 / jnp.diagonal(matrix).max()
    matrix = matrix * (below / -np.linalg.eigvalsh(matrix)[0])  # the least eigenvalue is -below again
    largest = float(jnp.diagonal(matrix).max())
    assert below < share * largest  # the case is what it says
    factor, added, ok = escalated(matrix)
    assert bool(ok) and float(added) in [pytest.approx(s * largest) for s in RAISED]
    assert not np.isfinite(np.asarray(cholesky(matrix)[0])).all()
    np.testing.assert_allclose(factor @ factor.T, matrix + added * np.eye(20), rtol=0, atol=1e-10 * largest)
    lower = [s for s in RAISED if s * largest < float(added) * 0.5]
    assert all(not bool(cholesky(matrix + s * largest * jnp.eye(20))[1]) for s in lower)


def test_what_no_share_helps_is_not_sound():
    factor, added, ok = escalated(jnp.asarray([[1.0, 2.0], [2.0, 1.0]]))
    assert not bool(ok) and float(added) == 0.0 and not np.isfinite(np.asarray(factor)).all()
    assert not bool(escalated(jnp.asarray([[1.0, jnp.nan], [jnp.nan, 1.0]]))[2])
    assert not bool(escalated(jnp.full((2, 2), jnp.inf))[2])


def test_in_a_batch_only_those_that_need_it_get_more():
    good, bad, ugly = np.eye(2), np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]]), np.array([[1.0, 2.0], [2.0, 1.0]])
    factors, added, ok = jax.vmap(escalated)(jnp.asarray([good, bad, ugly]))
    assert ok.tolist() == [True, True, False] and added.tolist() == [0.0, 1e-8, 0.0]
    np.testing.assert_array_equal(factors[0], np.eye(2))
