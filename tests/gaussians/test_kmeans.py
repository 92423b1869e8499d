"""Distances of Gaussians, k-means on them, its indices and the weights, against NumPy, SciPy and numbers by hand."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import sqrtm

from metabo.errors import ConfigError
from metabo.gaussians import distances, kmeans
from metabo.methods.source_gps import clusters_indices
from tests.references import gaussian_kl


def gaussians(count, size, seed=0, spread=1.0):
    """Random means and well-conditioned covariances."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, size, size))
    return spread * rng.normal(size=(count, size)), root @ root.swapaxes(1, 2) / size + 0.1 * np.eye(size)


def pair(size=5, seed=0):
    means, covs = gaussians(2, size, seed)
    return means[0], covs[0], means[1], covs[1]


def slow_wasserstein(m0, s0, m1, s1):
    root = np.real(sqrtm(s1))
    cross = np.trace(np.real(sqrtm(root @ s0 @ root)))
    return np.sqrt(max(0.0, np.sum((m0 - m1) ** 2) + np.trace(s0 + s1) - 2 * cross))  # rounding


def test_distances_of_two_gaussians():
    m0, s0, m1, s1 = pair()
    forth, back = gaussian_kl(m0, s0, m1, s1), gaussian_kl(m1, s1, m0, s0)
    given = tuple(map(jnp.asarray, (m0, s0, m1, s1)))
    assert float(distances.kl(*given)) == pytest.approx(forth, rel=1e-10)
    assert float(distances.jeffreys(*given)) == pytest.approx(forth + back, rel=1e-10)
    assert float(distances.wasserstein(*given)) == pytest.approx(slow_wasserstein(m0, s0, m1, s1), rel=1e-9)


def test_distances_by_hand_in_one_dimension():
    """N(0, 4) and N(3, 1): KL = (4 + 9 - 1 - ln 4) / 2; W2² = 9 + (2 - 1)²."""
    zero, four, three, one = jnp.zeros(1), 4 * jnp.eye(1), jnp.full(1, 3.0), jnp.eye(1)
    assert float(distances.kl(zero, four, three, one)) == pytest.approx((12 - np.log(4)) / 2)
    back = (1 / 4 + 9 / 4 - 1 + np.log(4)) / 2
    assert float(distances.jeffreys(zero, four, three, one)) == pytest.approx((12 - np.log(4)) / 2 + back)
    assert float(distances.wasserstein(zero, four, three, one)) == pytest.approx(np.sqrt(10))


def test_wasserstein_of_singular_covariances_is_finite_and_right_where_they_commute():
    """Diagonal covariances: W2² = Σ (√λ - √λ')²; Jeffreys has no finite value there."""
    a, b = np.array([1.0, 0.0, 4.0]), np.array([0.0, 9.0, 1.0])
    given = jnp.zeros(3), jnp.diag(jnp.asarray(a)), jnp.zeros(3), jnp.diag(jnp.asarray(b))
    assert float(distances.wasserstein(*given)) == pytest.approx(np.sqrt(np.sum((np.sqrt(a) - np.sqrt(b)) ** 2)))
    assert not np.isfinite(distances.jeffreys(*given))


def test_an_indefinite_matrix_counts_as_the_nearest_covariance():
    cov = jnp.diag(jnp.asarray([1.0, -1e-9]))
    np.testing.assert_allclose(distances.root(cov) @ distances.root(cov).T, np.diag([1.0, 0.0]), atol=1e-12)


@pytest.mark.parametrize("singular", [False, True])
def test_w2_from_prepared_roots_agrees_with_scipy_also_beside_a_singular_covariance(singular):
    means, covs = gaussians(5, 6, seed=11)
    if singular:
        covs[1] = np.diag([2.0, 1.0, 0.5, 0.25, 0.0, 0.0])
    factors = distances.roots(jnp.asarray(covs))
    np.testing.assert_allclose(factors @ factors.swapaxes(1, 2), covs, atol=1e-12)
    a, b = (distances.prepared(jnp.asarray(means[p]), jnp.asarray(covs[p]), "wasserstein") for p in ([0, 1], [2, 3, 4]))
    found = distances.distances(a, b, "wasserstein")
    expected = [[slow_wasserstein(means[i], covs[i], means[j], covs[j]) for j in (2, 3, 4)] for i in (0, 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_jitter_is_relative_and_repairs_a_singular_covariance():
    cov = jnp.asarray([[2.0, 2.0], [2.0, 2.0]])
    np.testing.assert_allclose(distances.regularised(cov) - cov, 2e-6 * np.eye(2), rtol=1e-6)
    assert np.isfinite(distances.precision(distances.regularised(cov))).all()
    batch = jnp.stack([cov, 3 * cov])
    np.testing.assert_allclose(distances.regularised(batch)[1], 3 * distances.regularised(cov), rtol=1e-12)


@pytest.mark.parametrize("distance", distances.DISTANCES)
def test_batched_distances_are_those_of_each_pair(distance):
    means, covs = map(jnp.asarray, gaussians(7, 4))
    one = getattr(distances, distance)
    a, b = (distances.prepared(means[p], covs[p], distance) for p in (slice(0, 4), slice(4, 7)))
    found = np.asarray(distances.distances(a, b, distance))
    for i, j in itertools.product(range(4), range(3)):
        assert found[i, j] == pytest.approx(float(one(means[i], covs[i], means[4 + j], covs[4 + j])), rel=1e-9)
    square = np.asarray(distances.pairwise(means, covs, distance))
    np.testing.assert_array_equal(square, square.T)
    assert not square.diagonal().any()
    assert square[0, 4] == pytest.approx(found[0, 0], rel=1e-9)


def test_an_unknown_distance_is_refused():
    means, covs = map(jnp.asarray, gaussians(3, 2))
    with pytest.raises(ConfigError, match=r"unknown distance 'wassersten'. Did you mean 'wasserstein'\?"):
        distances.prepared(means, covs, "wassersten")


def separated(size=3):
    """Three tight groups of 4, 3 and 2 Gaussians, far apart."""
    labels = np.repeat([0, 1, 2], [4, 3, 2])
    means, covs = gaussians(9, size, seed=1, spread=0.01)
    return jnp.asarray(means + 20.0 * labels[:, None]), jnp.asarray(0.01 * covs + np.eye(size)), labels


def partition(assignment):
    return {
        frozenset(np.flatnonzero(np.asarray(assignment) == c).tolist()) for c in set(np.asarray(assignment).tolist())
    }


@pytest.mark.parametrize("distance", distances.DISTANCES)
def test_k_means_finds_separated_groups(distance):
    means, covs, labels = separated()
    found = kmeans.kmeans(means, covs, 3, distance, jax.random.key(0), restarts=4)
    assert partition(found.assignment) == partition(labels)
    for cluster in range(3):
        own = np.asarray(found.assignment) == cluster
        np.testing.assert_allclose(found.means[cluster], np.asarray(means)[own].mean(0), rtol=1e-10)
        np.testing.assert_allclose(found.covs[cluster], np.asarray(covs)[own].mean(0), rtol=1e-10)
    one = getattr(distances, distance)
    own = [
        float(one(m, s, found.means[c], found.covs[c])) for m, s, c in zip(means, covs, found.assignment, strict=True)
    ]
    assert float(found.objective) == pytest.approx(sum(own), rel=1e-6)
    assert int(found.iterations) <= 5 and int(found.reseeded) == 0
    trace = np.asarray(found.trace)
    assert trace.shape == (50,) and (trace[int(found.iterations) - 1 :] == float(found.objective)).all()


def slow_lloyd(means, covs, centre_means, centre_covs, steps):
    """Assign by W2 and average, in plain NumPy."""
    previous = None
    for _ in range(steps):
        gaps = np.array([
            [slow_wasserstein(m, s, a, b) for a, b in zip(centre_means, centre_covs, strict=True)]
            for m, s in zip(means, covs, strict=True)
        ])  # fmt: skip
        assignment = gaps.argmin(axis=1)
        if previous is not None and (assignment == previous).all():
            break
        previous = assignment
        centre_means = np.array([means[assignment == c].mean(0) for c in range(len(centre_means))])
        centre_covs = np.array([covs[assignment == c].mean(0) for c in range(len(centre_covs))])
    return assignment


def test_lloyd_equals_a_plain_version_from_the_same_centres():
    means, covs = gaussians(14, 3, seed=5)
    first = np.array([0, 1, 2])
    tasks = distances.prepared(jnp.asarray(means), jnp.asarray(covs), "wasserstein")
    between = distances.pairwise(tasks.means, tasks.covs, "wasserstein")
    found = kmeans.lloyd(tasks, between[:, first], 3, "wasserstein", 50)
    slow = slow_lloyd(means, covs, means[first], covs[first], 50)
    assert len(set(slow.tolist())) == 3  # otherwise the plain version would have failed on an empty cluster
    np.testing.assert_array_equal(found.assignment, slow)


def test_more_restarts_never_end_with_a_larger_objective_and_keys_matter():
    means, covs = map(jnp.asarray, gaussians(20, 3, seed=2))
    few, many = (kmeans.kmeans(means, covs, 4, "jeffreys", jax.random.key(3), restarts=r) for r in (1, 12))
    assert float(many.objective) <= float(few.objective) + 1e-12
    starts = [partition(kmeans.kmeans(means, covs, 4, "jeffreys", jax.random.key(k), 1).assignment) for k in range(6)]
    assert any(one != starts[0] for one in starts)


def test_k_means_stops_at_its_limit():
    means, covs = map(jnp.asarray, gaussians(30, 3, seed=4))
    found = kmeans.kmeans(means, covs, 6, "jeffreys", jax.random.key(0), restarts=1, steps=1)
    assert int(found.iterations) == 1 and found.trace.shape == (1,)


@pytest.mark.parametrize("clusters", [0, 4])
def test_more_clusters_than_tasks_or_none_are_refused(clusters):
    means, covs = map(jnp.asarray, gaussians(3, 2))
    with pytest.raises(ConfigError, match=rf"k-means: {clusters} clusters of 3 tasks; ask for 1 to 3"):
        kmeans.kmeans(means, covs, clusters, "jeffreys", jax.random.key(0))


@pytest.mark.parametrize("distance", distances.DISTANCES)
def test_identical_tasks_fill_every_cluster(distance):
    """No distance tells them apart: seeds are drawn uniformly, empty clusters are repaired and counted."""
    means, covs = (jnp.repeat(part[:1], 5, axis=0) for part in map(jnp.asarray, gaussians(1, 3)))
    found = kmeans.kmeans(means, covs, 3, distance, jax.random.key(0))
    assert sorted(set(found.assignment.tolist())) == [0, 1, 2]
    assert float(found.objective) == pytest.approx(0.0, abs=1e-6)
    assert int(found.reseeded) > 0
    np.testing.assert_allclose(found.covs, jnp.repeat(covs[:1], 3, axis=0), rtol=1e-10)


def test_an_empty_cluster_takes_the_farthest_task_of_a_cluster_that_can_spare_one():
    to_own = jnp.asarray([1.0, 5.0, 9.0, 2.0])
    assignment = jnp.asarray([0, 0, 2, 0])  # task 2 is farthest of all, but alone in its cluster
    found, moved = kmeans.repaired(assignment, to_own, 3)
    assert found.tolist() == [0, 1, 2, 0] and int(moved) == 1
    found, moved = kmeans.repaired(jnp.asarray([0, 1, 2, 0]), to_own, 3)
    assert found.tolist() == [0, 1, 2, 0] and int(moved) == 0


def test_seeds_are_different_gaussians_and_prefer_distant_ones():
    means, covs, labels = separated()
    spread = distances.pairwise(means, covs, "wasserstein") ** 2
    keys = jax.random.split(jax.random.key(0), 40)
    every = np.asarray(jax.vmap(lambda key: kmeans.seeds(spread, 3, key, 5))(keys))
    assert (every[:, 3:] == every[:, :1]).all()  # places beyond the clusters repeat the first
    assert all(len(set(drawn.tolist())) == 3 for drawn in every[:, :3])
    assert sum(len({int(labels[i]) for i in drawn}) == 3 for drawn in every[:, :3]) > 35


def test_indices_by_hand():
    """Clusters {0, 1}, {2}: intraCE is the mean of d01 and 0; interCS the mean of d02 and d12."""
    between = jnp.asarray([[0.0, 2.0, 5.0], [2.0, 0.0, 7.0], [5.0, 7.0, 0.0]])
    assignment = jnp.asarray([0, 0, 1])
    assert float(clusters_indices.compactness(between, assignment, 2)) == pytest.approx(1.0)
    assert float(clusters_indices.separation(between, assignment, 2)) == pytest.approx(6.0)
    assert float(clusters_indices.compactness(between, jnp.zeros(3, int), 1)) == pytest.approx((2 + 5 + 7) / 3)
    assert float(clusters_indices.separation(between, jnp.zeros(3, int), 1)) == 0.0


def test_weights_by_hand():
    """d = (0, 1, 2): e, e^½, 1 over their sum."""
    found = np.asarray(kmeans.weights(jnp.asarray([0.0, 1.0, 2.0])))
    odds = np.exp([1.0, 0.5, 0.0])
    np.testing.assert_allclose(found, odds / odds.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.max() / found.min(), np.e, rtol=1e-12)
    np.testing.assert_array_equal(kmeans.weights(jnp.zeros(4)), np.full(4, 0.25))
    present = jnp.asarray([True, False, True])
    partial = np.asarray(kmeans.weights(jnp.asarray([0.0, 9.0, 2.0]), present))
    np.testing.assert_allclose(partial, np.array([np.e, 0.0, 1.0]) / (np.e + 1.0), rtol=1e-12)
