"""The Wasserstein barycenter: fixed point, closed forms, what it minimises, and what happens where there is none."""

import re

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import sqrtm

from metabo.gaussians import barycenter as module
from metabo.gaussians.barycenter import barycenter, barycenters, unconverged
from metabo.gaussians.distances import wasserstein


def covariances(count, size, seed=0):
    root = np.random.default_rng(seed).normal(size=(count, size, size))
    return jnp.asarray(root @ root.swapaxes(1, 2) / size + 0.1 * np.eye(size))


def slow(covs, weights, steps=200):
    """The other iteration, Σ ← Σ_j ξ_j (Σ^½ Σ_j Σ^½)^½, with SciPy's roots."""
    current = np.einsum("n,nij->ij", weights, covs)
    for _ in range(steps):
        root = np.real(sqrtm(current))
        current = sum(w * np.real(sqrtm(root @ s @ root)) for w, s in zip(weights, covs, strict=True))
    return current


def test_the_fixed_point_equals_that_of_the_slower_iteration():
    covs, weights = covariances(4, 6), np.array([0.1, 0.2, 0.3, 0.4])
    found = barycenter(covs, jnp.asarray(weights))
    assert float(found.residual) <= module.TOLERANCE and 1 < int(found.iterations) < 50
    np.testing.assert_allclose(found.cov, slow(np.asarray(covs), weights), rtol=1e-7)


def test_commuting_covariances_average_their_roots():
    """In one basis: √Σ̄ = Σ ξ_j √Σ_j."""
    values = np.array([[1.0, 4.0, 0.25], [9.0, 1.0, 0.25]])
    covs = jnp.asarray([np.diag(v) for v in values])
    found = barycenter(covs, jnp.asarray([0.25, 0.75]))
    np.testing.assert_allclose(found.cov, np.diag((np.array([0.25, 0.75]) @ np.sqrt(values)) ** 2), atol=1e-9)


def test_it_does_not_depend_on_where_it_starts():
    covs, weights = covariances(3, 5, seed=1), jnp.full(3, 1 / 3)
    usual = barycenter(covs, weights)
    for number in range(3):
        other = barycenter(covs, weights, start=10.0**number * covariances(1, 5, seed=20 + number)[0])
        np.testing.assert_allclose(other.cov, usual.cov, rtol=1e-6, atol=1e-9)


def test_it_minimises_the_mean_squared_distance():
    covs, weights = covariances(4, 4, seed=2), jnp.full(4, 0.25)
    best, zero = barycenter(covs, weights).cov, jnp.zeros(4)

    def value(cov):
        return float(jnp.mean(jax.vmap(lambda s: wasserstein(zero, s, zero, cov) ** 2)(covs)))

    rng, least = np.random.default_rng(0), value(best)
    assert least < value(jnp.mean(covs, axis=0))
    for _ in range(20):
        noise = 0.05 * rng.normal(size=(4, 4))
        assert least <= value(best + noise @ noise.T) + 1e-12
        assert least <= value((jnp.eye(4) + noise) @ best @ (jnp.eye(4) + noise).T) + 1e-12
    assert float(jnp.trace(best)) <= float(jnp.trace(jnp.mean(covs, axis=0)))


def test_one_covariance_is_its_own_barycenter_at_once():
    covs = covariances(1, 4)
    found = barycenter(covs, jnp.ones(1))
    assert int(found.iterations) == 0
    np.testing.assert_allclose(found.cov, covs[0], rtol=1e-12)


def test_several_clusters_together_equal_each_alone():
    covs = covariances(6, 4, seed=3)
    share = jnp.asarray([[0.5, 0.5, 0, 0, 0, 0], [0.0] * 6, [0, 0, 1 / 3, 1 / 3, 1 / 3, 0], [0, 0, 0, 0, 0, 1.0]])
    found = barycenters(covs, share)
    for cluster, members in ((0, slice(0, 2)), (2, slice(2, 5))):
        alone = barycenter(covs[members], share[cluster, members])
        np.testing.assert_allclose(found.cov[cluster], alone.cov, rtol=1e-8)
        assert int(found.iterations[cluster]) == int(alone.iterations) > 0
    np.testing.assert_array_equal(found.cov[1], np.eye(4))  # no member
    np.testing.assert_array_equal(found.cov[3], covs[5])
    assert found.iterations[1] == found.iterations[3] == 0
    assert (np.asarray(found.residual) <= module.TOLERANCE).all()


def test_those_that_have_not_converged_are_named():
    covs = covariances(4, 6)
    share = jnp.asarray([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    found = barycenters(covs, share, steps=1)
    (said,) = unconverged(found)  # that of one covariance is known at once
    assert re.match(r"cluster 2: .*did not converge: residual 0\.\d+ after 1 iterations, needs 1e-10; allow more", said)
    assert unconverged(barycenters(covs, share)) == []


def test_a_singular_covariance_has_no_barycenter_and_says_so():
    covs = jnp.zeros((2, 3, 3))
    found = barycenters(covs, jnp.full((1, 2), 0.5))
    assert not np.isfinite(found.residual).any() and found.iterations.tolist() == [0]
    assert "cluster 1" in unconverged(found)[0] and unconverged(found)[0].endswith("add jitter (`regularised`)")
