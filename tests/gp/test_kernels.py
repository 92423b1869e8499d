import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from metabo.gp.kernels import RADIAL, Stationary, self_squared_distances, squared_distances
from tests import tiny
from tests.references import DenseGP, central_difference

DIM = 3
STRUCTURES = [(kernel, sizes) for kernel in tiny.KERNELS for sizes in ((), (4, 3))]


@eqx.filter_jit
def covariances(gp, a, b):
    left, right = gp.features(a), gp.features(b)
    return gp.kernel(left, right), gp.kernel.gram(left), gp.kernel.diagonal(left)


@eqx.filter_jit
def rows(gp, a):
    """Every row of the Gram matrix, from features prepared once."""
    pool = gp.kernel.prepare(gp.features(a))
    return jnp.stack([gp.kernel.row(pool, jnp.asarray(i)) for i in range(len(a))])


@eqx.filter_jit
def weighted_gradient(gp, x, weights):
    """Gradient of sum(weights * gram) for every leaf and for the inputs."""
    return jax.grad(lambda pair: jnp.sum(weights * pair[0].kernel.gram(pair[0].features(pair[1]))))((gp, x))


def points(rng, n=7):
    """n points, the last two repeating the first two."""
    x = rng.normal(size=(n - 2, DIM))
    return np.concatenate([x, x[:2]])


@pytest.mark.parametrize(("kernel", "sizes"), STRUCTURES)
def test_values_against_numpy(kernel, sizes):
    rng = np.random.default_rng(1)
    gp, a = tiny.random_gp(rng, DIM, kernel=kernel, sizes=sizes), points(rng)
    b = np.concatenate([a[2:4], rng.normal(size=(3, DIM))])
    cross, gram, diagonal = map(np.asarray, covariances(gp, a, b))
    dense = DenseGP(gp)
    np.testing.assert_allclose(cross, dense.kernel(a, b), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gram, dense.kernel(a, a), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diag(dense.kernel(a, a)), rtol=1e-12)
    np.testing.assert_allclose(rows(gp, a), dense.kernel(a, a), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sizes", [(), (4, 3)])
@pytest.mark.parametrize("kernel", list(RADIAL))
def test_repeated_points_coincide_exactly(kernel, sizes):
    rng = np.random.default_rng(2)
    gp, a = tiny.random_gp(rng, DIM, kernel=kernel, sizes=sizes), points(rng)
    cross, gram, diagonal = map(np.asarray, covariances(gp, a, a[:5]))
    one_by_one = np.asarray(rows(gp, a))
    for i, j in ((0, 5), (1, 6)):
        assert gram[i, j] == gram[i, i] == diagonal[i] == cross[j, i] == one_by_one[i, j] == one_by_one[j, i]


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
def test_wide_features_still_coincide(scale):
    # Rounding in one product of 128 terms must not make equal points look different.
    a = scale * np.random.default_rng(3).normal(size=(40, 128))
    both = jnp.asarray(np.concatenate([a, a]))
    squared = np.asarray(squared_distances(both, both))
    assert (squared[np.arange(40), np.arange(40) + 40] == 0).all() and (np.diag(squared) == 0).all()
    apart = squared[~np.eye(40, dtype=bool)[np.arange(80) % 40][:, np.arange(80) % 40]]
    assert (apart > 0).all()


def test_close_but_distinct_points_are_kept_apart():
    a = np.array([[0.3, 0.4, 0.5]])
    squared = squared_distances(jnp.asarray(a), jnp.asarray(a + 1e-5))
    np.testing.assert_allclose(squared, [[3e-10]], rtol=1e-4)


EXACT = {
    "matern12": lambda r: np.exp(-r),
    "matern32": lambda r: (1 + np.sqrt(np.longdouble(3)) * r) * np.exp(-np.sqrt(np.longdouble(3)) * r),
    "matern52": lambda r: (1 + (s := np.sqrt(np.longdouble(5)) * r) + s**2 / 3) * np.exp(-s),
    "squared_exponential": lambda r: np.exp(-(r**2) / 2),
}


@pytest.mark.parametrize("kernel", list(EXACT))
def test_near_points_have_their_covariance_to_eleven_digits(kernel):
    """Against long double; distances of 1e-12 to 0.1 at a lengthscale of 0.1; Matérn 1/2 to twelve digits. The control:
    with distances by one matrix product it is off by more than 1e-9."""
    steps = np.concatenate([[0.0], np.logspace(-12, -1, 34)])
    a = np.array([0.3, 0.7, 0.9]) + steps[:, None] * np.array([1.0, -2.0, 0.5])
    unconstrained = np.log(np.expm1(0.1))
    model = Stationary(jnp.full(3, unconstrained), jnp.asarray(np.log(np.expm1(1.0))), kernel)
    wide = a.astype(np.longdouble) / np.asarray(model.lengthscale).astype(np.longdouble)
    expected = float(model.variance) * EXACT[kernel](np.sqrt(np.sum((wide[:, None] - wide[None]) ** 2, axis=2))).astype(
        np.float64
    )
    x, pool = jnp.asarray(a), model.prepare(jnp.asarray(a))
    each = jnp.stack([model.row(pool, jnp.asarray(i)) for i in range(len(a))])
    for found in (model(x, x), model.gram(x), each):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 if kernel == "matern12" else 1e-11)
    if kernel == "matern12":
        expanded = RADIAL[kernel](squared_distances(x / model.lengthscale, x / model.lengthscale))
        assert np.abs(expanded - expected).max() > 1e-9
    gradient = jax.grad(lambda points: model.gram(points).sum())(x)
    assert np.isfinite(gradient).all()


# Values at r = 1 and slopes in r² at r = 0 and r = 0.5, by hand from the formulas.
BY_HAND = {
    "matern12": (0.36787944117144233, 0.0, -0.6065306597126334),  # kink at 0: the symmetric slope is 0
    "matern32": (0.4833577245965077, -1.5, -0.6309300390811722),
    "matern52": (0.5239941088318203, -0.8333333333333334, -0.5770264050179663),
    "squared_exponential": (0.6065306597126334, -0.5, -0.4412484512922977),
}


@pytest.mark.parametrize("kernel", list(BY_HAND))
def test_radial_by_hand(kernel):
    value, at_zero, at_half = BY_HAND[kernel]
    k = RADIAL[kernel]
    assert float(k(jnp.asarray(0.0))) == 1.0
    assert float(k(jnp.asarray(1.0))) == pytest.approx(value, rel=1e-14)
    slope = jax.grad(k)
    assert float(slope(jnp.asarray(0.0))) == pytest.approx(at_zero, rel=1e-14)
    assert float(slope(jnp.asarray(0.25))) == pytest.approx(at_half, rel=1e-14)


@pytest.mark.parametrize(("kernel", "sizes"), STRUCTURES)
def test_gradients_against_finite_differences_with_coincident_points(kernel, sizes):
    rng = np.random.default_rng(4)
    gp, x = tiny.random_gp(rng, DIM, kernel=kernel, sizes=sizes), points(rng, 6)
    weights = rng.normal(size=(6, 6))
    by_gp, by_x = weighted_gradient(gp, jnp.asarray(x), jnp.asarray(weights))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((by_gp, by_x)))
    # Central differences at a pair of equal points see the kink of Matérn 1/2 from both sides: slope 0.
    numeric = central_difference(lambda v: np.sum(weights * DenseGP(gp).kernel(v, v)), x)
    np.testing.assert_allclose(by_x, numeric, rtol=2e-5, atol=2e-6 if kernel != "matern12" else 2e-5)
    flat, unravel = ravel_pytree(gp)
    numeric = central_difference(lambda v: np.sum(weights * DenseGP(unravel(jnp.asarray(v))).kernel(x, x)), flat)
    np.testing.assert_allclose(ravel_pytree(by_gp)[0], numeric, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", list(RADIAL))
def test_gradients_against_plain_automatic_differentiation(kernel):
    rng = np.random.default_rng(5)
    gp = tiny.random_gp(rng, DIM, kernel=kernel, sizes=())
    a, b = jnp.asarray(rng.normal(size=(5, DIM))), jnp.asarray(rng.normal(size=(4, DIM)))
    weights, square = jnp.asarray(rng.normal(size=(5, 4))), jnp.asarray(rng.normal(size=(5, 5)))
    scale, variance = gp.kernel.lengthscale, gp.kernel.variance

    def plain(p, q):
        apart = jnp.sum(((p[:, None] - q[None]) / scale) ** 2, -1)
        r = jnp.where(apart > 0, jnp.sqrt(jnp.where(apart > 0, apart, 1.0)), 0.0)
        return (
            variance
            * {
                "matern12": jnp.exp(-r),
                "matern32": (1 + 3**0.5 * r) * jnp.exp(-(3**0.5) * r),
                "matern52": (1 + 5**0.5 * r + 5 * r * r / 3) * jnp.exp(-(5**0.5) * r),
                "squared_exponential": jnp.exp(-r * r / 2),
            }[kernel]
        )

    @jax.jit
    def both(a, b):
        ours = jax.grad(lambda p, q: jnp.sum(weights * gp.kernel(p, q)) + jnp.sum(square * gp.kernel.gram(p)), (0, 1))
        theirs = jax.grad(lambda p, q: jnp.sum(weights * plain(p, q)) + jnp.sum(square * plain(p, p)), (0, 1))
        return ours(a, b), theirs(a, b)

    for mine, reference in zip(*both(a, b), strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-9, atol=1e-11)


def test_self_distance_gradient_for_any_cotangent():
    rng = np.random.default_rng(6)
    a, cotangent = rng.normal(size=(6, 4)), rng.normal(size=(6, 6))  # not symmetric
    mine = jax.vjp(self_squared_distances, jnp.asarray(a))[1](jnp.asarray(cotangent))[0]
    by_hand = np.zeros_like(a)
    for i in range(6):
        for j in range(6):
            by_hand[i] += 2 * cotangent[i, j] * (a[i] - a[j])
            by_hand[j] -= 2 * cotangent[i, j] * (a[i] - a[j])
    np.testing.assert_allclose(mine, by_hand, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lengthscale", [1e-8, 1e-10])
def test_a_tiny_lengthscale_has_no_gradient_of_rounding_errors(lengthscale):
    """All points are far apart then, so that the kernel is its variance on the diagonal and does not move."""
    a = jnp.asarray(np.random.default_rng(0).uniform(size=(40, 3)))
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(40, 40)))
    # compiled, a product and a difference may be one operation, and equal terms no longer cancel
    gradient = jax.jit(jax.grad(lambda own: jnp.sum(weights * RADIAL["matern52"](self_squared_distances(a / own)))))
    np.testing.assert_array_equal(gradient(jnp.array([lengthscale, lengthscale, lengthscale])), np.zeros(3))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    kernel=st.sampled_from(tiny.KERNELS),
    lengthscale=st.floats(-6, 6),
    variance=st.floats(-6, 6),
    seed=st.integers(0, 2**16),
)
def test_gram_is_symmetric_and_positive_semidefinite(kernel, lengthscale, variance, seed):
    rng = np.random.default_rng(seed)
    gp = tiny.random_gp(rng, DIM, kernel=kernel, sizes=())
    k = gp.kernel
    if kernel != "dot_product":
        k = eqx.tree_at(
            lambda k: (k.raw_lengthscale, k.raw_variance), k, (jnp.full(DIM, lengthscale), jnp.asarray(variance))
        )
    x = points(rng, 8)
    gp = eqx.tree_at(lambda g: g.kernel, gp, k)
    cross, gram, diagonal = map(np.asarray, covariances(gp, x, x))
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-14 * diagonal.max())
    np.testing.assert_allclose(gram, cross, rtol=1e-12)
    np.testing.assert_allclose(np.diag(gram), diagonal, rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() >= -1e-12 * np.trace(gram)
