"""EmpGP: EM against dense NumPy, its extension to all inputs, and cases in which it must and must not help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP
from metabo.methods.empirical import em
from metabo.methods.empirical.train import extended

NOISE, SPAN = 0.04, 1e-6  # the jitter of every covariance


def base(dim=2, lengthscale=0.0):
    raw = jnp.full(dim, lengthscale)
    return GP(Identity(), Constant(jnp.asarray(0.3)), Stationary(raw, jnp.asarray(0.4), "matern52"), jnp.asarray(-3.0))


def table(rng, tasks=7, anchors=5, missing=True):
    y = rng.normal(size=(tasks, anchors))
    seen = rng.random((tasks, anchors)) < (0.7 if missing else 2.0)
    seen[:, 0] = True
    patterns, kind = np.unique(seen, axis=0, return_inverse=True)
    made = em.AnchorTable(*map(jnp.asarray, (np.where(seen, y, 0.0), patterns, kind.reshape(-1), np.ones(tasks))))
    return made, y, seen


def dense_step(mean, covariance, y, seen, kernel, share):
    """One EM iteration, task by task, and the log likelihood before it."""
    means, total, likelihood = [], 0.0, 0.0
    for row, there in zip(y, seen, strict=True):
        sigma = covariance[np.ix_(there, there)] + (NOISE + SPAN) * np.eye(there.sum())
        gain = covariance[:, there] @ np.linalg.inv(sigma)
        means.append(mean + gain @ (row[there] - mean[there]))
        total = total + covariance - gain @ covariance[there]
        likelihood += multivariate_normal.logpdf(row[there], mean[there], sigma)
    new = np.mean(means, axis=0)
    moved = np.array(means) - new
    found = (moved.T @ moved + total) / len(y)
    return new, (1 - share) * found + share * kernel * np.trace(found) / np.trace(kernel), likelihood


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_em_equals_conditioning_task_by_task(share):
    rng = np.random.default_rng(3)
    made, y, seen = table(rng)
    root = rng.normal(size=(5, 5))
    kernel = root @ root.T + np.eye(5)
    mean, covariance, losses = np.full(5, 0.2), kernel, []
    for _ in range(4):
        mean, covariance, likelihood = dense_step(mean, covariance, y, seen, kernel, share)
        losses.append(-likelihood / len(y))
    start = em.AnchorPrior(jnp.full(5, 0.2), jnp.asarray(kernel))
    prior, trace = em.estimate(start, made, jnp.asarray(NOISE), jnp.asarray(share), 4)
    np.testing.assert_allclose(prior.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(prior.covariance, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(trace, losses, rtol=1e-9)


def test_em_never_lowers_the_likelihood_and_ends_at_the_moments_of_complete_tables():
    rng = np.random.default_rng(4)
    made, y, _ = table(rng, tasks=60, anchors=4, missing=False)
    start = em.AnchorPrior(jnp.zeros(4), jnp.eye(4))
    prior, trace = em.estimate(start, made, jnp.asarray(NOISE), jnp.asarray(0.0), 400)
    assert np.diff(trace).max() <= 1e-12
    np.testing.assert_allclose(prior.mean, y.mean(axis=0), atol=1e-6)
    # with noise known, the likelihood is greatest at the sample covariance less the noise
    np.testing.assert_allclose(prior.covariance, np.cov(y.T, bias=True) - (NOISE + SPAN) * np.eye(4), atol=1e-4)


def test_a_task_without_weight_changes_nothing():
    rng = np.random.default_rng(5)
    made, _, _ = table(rng)
    start = em.AnchorPrior(jnp.zeros(5), jnp.eye(5))
    less = made._replace(weight=made.weight.at[2].set(0.0))
    other = less._replace(y=less.y.at[2].add(50.0))
    shown = [em.estimate(start, one, jnp.asarray(NOISE), jnp.asarray(0.1), 5) for one in (less, other, made)]
    for a, b in zip(*map(jax.tree.leaves, shown[:2]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert not np.allclose(shown[0][0].mean, shown[2][0].mean)


def test_left_out_tasks_are_scored_by_the_others_alone():
    rng = np.random.default_rng(6)
    made, y, seen = table(rng, tasks=6)
    start, share = em.AnchorPrior(jnp.zeros(5), jnp.eye(5)), 0.2
    scores = []
    part = (np.arange(6) + 1) % 3
    for number in range(3):
        mean, covariance = np.zeros(5), np.eye(5)
        for _ in range(3):
            rest = part != number
            mean, covariance, _ = dense_step(mean, covariance, y[rest], seen[rest], np.eye(5), share)
        for row, there in zip(y[~rest], seen[~rest], strict=True):
            sigma = covariance[np.ix_(there, there)] + (NOISE + SPAN) * np.eye(there.sum())
            scores.append(multivariate_normal.logpdf(row[there], mean[there], sigma))
    found = em.left_out(start, made, jnp.asarray(NOISE), jnp.asarray(share), 3, 3)
    np.testing.assert_allclose(found, np.mean(scores), rtol=1e-9)


def test_the_prior_at_the_anchors_is_the_given_one_and_padding_changes_nothing():
    rng = np.random.default_rng(7)
    gp, x = base(), rng.random((6, 2))
    root = rng.normal(size=(6, 6))
    mean, covariance = rng.normal(size=6), root @ root.T
    prior = em.AnchorPrior(jnp.asarray(mean), jnp.asarray(covariance))
    made = extended(gp, jnp.asarray(x), jnp.ones(6, bool), prior, jnp.asarray(0.1))
    phi = made.features(jnp.asarray(x))
    np.testing.assert_allclose(made.mean(phi), mean, atol=1e-3)  # but for the jitter of the anchors' own covariance
    np.testing.assert_allclose(made.kernel.gram(phi), covariance, atol=2e-3)

    wide = em.AnchorPrior(jnp.pad(prior.mean, (0, 3)), jnp.pad(prior.covariance, ((0, 3), (0, 3)), constant_values=9.0))
    padded = extended(gp, jnp.pad(x, ((0, 3), (0, 0))), jnp.arange(9) < 6, wide, jnp.asarray(0.1))
    elsewhere = jnp.asarray(rng.random((4, 2)))
    for one in (lambda g: g.mean(g.features(elsewhere)), lambda g: g.kernel.gram(g.features(elsewhere))):
        np.testing.assert_allclose(one(padded), one(made), rtol=1e-9, atol=1e-12)


def test_elsewhere_it_is_the_kernel_given_the_anchors():
    rng = np.random.default_rng(8)
    gp, x, new = base(), rng.random((6, 2)), rng.random((5, 2))
    root = rng.normal(size=(6, 6))
    mean, covariance = rng.normal(size=6), root @ root.T
    kernel = lambda a, b: np.asarray(gp.kernel(jnp.asarray(a), jnp.asarray(b)))  # noqa: E731
    inverse = np.linalg.inv(kernel(x, x) + SPAN * np.eye(6))
    gain = kernel(new, x) @ inverse
    expected = kernel(new, new) - gain @ kernel(x, new) + gain @ covariance @ gain.T
    prior = em.AnchorPrior(jnp.asarray(mean), jnp.asarray(covariance))
    made = extended(gp, jnp.asarray(x), jnp.ones(6, bool), prior, jnp.asarray(0.0))
    phi = made.features(jnp.asarray(new))
    np.testing.assert_allclose(made.mean(phi), 0.3 + gain @ (mean - 0.3), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(made.kernel.gram(phi), expected, atol=1e-8)
    np.testing.assert_allclose(made.kernel(phi, phi), expected, atol=1e-8)
    np.testing.assert_allclose(made.kernel.diagonal(phi), np.diag(expected), atol=1e-8)
    pool = made.kernel.prepare(phi)
    rows = [made.kernel.row(pool, jnp.asarray(i)) for i in range(5)]
    np.testing.assert_allclose(np.stack(rows), expected, atol=1e-8)


def choose(y, kernel, shares=(0.05, 0.2, 0.5, 1.0)):
    seen = jnp.ones((1, y.shape[1]), bool)
    made = em.AnchorTable(jnp.asarray(y), seen, jnp.zeros(len(y), int), jnp.ones(len(y)))
    start = em.AnchorPrior(jnp.zeros(y.shape[1]), jnp.asarray(kernel))
    return em.choose(start, made, jnp.asarray(NOISE), jnp.asarray(shares), 15, 3)


def test_what_all_tasks_share_is_learned_and_what_none_share_is_left_to_the_kernel():
    rng = np.random.default_rng(9)
    x = np.linspace(0, 1, 20)[:, None]
    kernel = np.asarray(base(1).kernel(jnp.asarray(x), jnp.asarray(x)))
    shape = np.sin(9 * x[:, 0]) * (x[:, 0] > 0.5)  # a step that the kernel does not know, up to a factor for each task
    alike = rng.normal(size=(40, 1)) * 3 * shape + 0.2 * rng.normal(size=(40, 20))
    _, _, share = choose(alike, kernel)
    assert share <= 0.2
    drawn = rng.multivariate_normal(np.zeros(20), kernel, size=8) + 0.2 * rng.normal(size=(8, 20))
    _, _, own = choose(drawn, kernel)
    assert own >= 0.5  # eight draws of the kernel itself say nothing that it does not


def test_a_share_without_a_finite_likelihood_is_not_chosen():
    y = np.random.default_rng(10).normal(size=(5, 4))
    prior, _, share = choose(y, np.eye(4), shares=(np.nan, 0.5))
    assert share == 0.5 and np.isfinite(prior.covariance).all()
