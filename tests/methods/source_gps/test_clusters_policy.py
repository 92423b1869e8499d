"""Prototypes and adaptive weights of cm-BO against a plain NumPy version of Algorithm 1."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from metabo.bo.loop import run
from metabo.bo.policy import Candidates
from metabo.bo.priors import SpacePrior
from metabo.bo.soundness import unsound
from metabo.bo.trajectories import Entry, Priors, remarks
from metabo.errors import ConfigError, NumericsError
from metabo.gaussians import distances
from metabo.gaussians.barycenter import STEPS, barycenter
from metabo.methods.source_gps import clusters_policy
from metabo.methods.source_gps.clusters import Clustered, Odd
from metabo.methods.source_gps.sources import make, posteriors_at, repeated, taken
from metabo.plan import registry
from metabo.records import results
from metabo.tasks.folds import Fold
from metabo.tasks.rows import Rows
from tests.gaussians.test_kmeans import slow_wasserstein
from tests.references import gaussian_kl, score
from tests.stepping import observe

TASKS, ROWS, POOL, PADDING, DIM = 5, 6, 12, 3, 2
ASSIGNMENT = [[0, 0, 0, 0, 0], [0, 1, 0, 1, 1], [2, 1, 0, 1, 2]]
SETTINGS = {
    "prototypes": "clusters", "clusters": 3, "weights": "jeffreys", "centre": "geometric", "proto_kernel": "plain",
    "grid": 300, "initial": 2, "tolerance": 1e-9, "pi_threshold": 0.1,
}  # fmt: skip
OTHERS = {
    "prototypes": "tasks", "clusters": 2, "weights": "wasserstein", "centre": "barycenter", "proto_kernel": "product",
    "grid": 5, "initial": 4, "pi_threshold": 0.0,
}  # fmt: skip
"""Another value of every setting but the tolerance, which has a test of its own."""


def world(seed=0):
    """Five source tasks with rows, their GPs, a pool with padding, and the target's outputs."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(TASKS, ROWS, DIM))
    y = np.sin(4 * x[..., 0] + np.arange(TASKS)[:, None]) - x[..., 1]
    mask = np.arange(ROWS) < np.array([6, 5, 6, 4, 6])[:, None]
    rows = Rows(*map(jnp.asarray, (x, y, mask)))
    kernels = [repeated(make(shapes, DIM), TASKS) for shapes in (("matern32",), ("matern32", "matern12"))]
    move = lambda leaf: leaf + jnp.asarray(0.3 * rng.normal(size=leaf.shape))  # noqa: E731
    plain, product = (jax.tree.map(move, gps) for gps in kernels)
    none = jnp.asarray(0)
    numbers = jnp.zeros((3, 2)), jnp.zeros(3), jnp.zeros(3, int), none + 1, Odd(none, none, none, jnp.zeros(3, int))
    params = Clustered(plain, product, jnp.asarray(ASSIGNMENT), *numbers)
    inputs = np.concatenate([rng.uniform(size=(POOL, DIM)), np.full((PADDING, DIM), 0.5)])
    pool = Candidates(jnp.asarray(inputs), jnp.arange(POOL + PADDING) < POOL)
    outputs = jnp.asarray(np.concatenate([np.sin(4 * inputs[:POOL, 0]) - inputs[:POOL, 1], np.full(PADDING, 99.0)]))
    return params, rows, pool, outputs


def made(budget=10, acquisition="ucb3", seed=0, **settings):
    params, rows, pool, outputs = world(seed)
    return clusters_policy.policy(params, SETTINGS | settings, acquisition, budget, rows), pool, outputs


INITIAL = np.array([4, 7])


once = eqx.filter_jit(run)
begun = eqx.filter_jit(lambda policy, pool: policy.init(pool, jax.random.key(0)))


@cache
def trajectory(acquisition="ucb3", iterations=7, **settings):
    policy, pool, outputs = made(len(INITIAL) + iterations, acquisition, **settings)
    return jax.tree.map(np.asarray, once(policy, pool, outputs, jnp.asarray(INITIAL), jax.random.key(1), iterations))


def slow(acquisition, distance, iterations, seed=0, row=2):
    """Algorithm 1, lines 10 to 22, on the valid candidates: dense NumPy, geometric centres."""
    params, rows, pool, outputs = world(seed)
    x, y = np.asarray(pool.x)[:POOL], np.asarray(outputs)[:POOL]
    means, covs, _ = map(np.asarray, posteriors_at(params.sources, rows, jnp.asarray(x)))
    groups = np.array(ASSIGNMENT[row])
    numbers = range(groups.max() + 1)
    mu = [means[groups == c].mean(0) for c in numbers]
    k = [covs[groups == c].mean(0) for c in numbers]
    jitter = lambda s: s + 1e-6 * np.trace(s) / len(s) * np.eye(len(s))  # noqa: E731
    w, seen, chosen, moments = np.full(len(mu), 1 / len(mu)), INITIAL.tolist(), [], []
    for _ in range(iterations):
        mean0, cov0 = sum(a * m for a, m in zip(w, mu, strict=True)), sum(a**2 * s for a, s in zip(w, k, strict=True))
        gap, inner = y[seen] - mean0[seen], cov0[np.ix_(seen, seen)]
        trials = np.geomspace(1e-6, 10.0, 57)
        losses = []
        for noise in trials:
            full = inner + noise * np.eye(len(seen))
            losses.append(gap @ np.linalg.solve(full, gap) + np.linalg.slogdet(full)[1])
        noise = trials[int(np.argmin(losses))]
        gain = np.linalg.solve(inner + noise * np.eye(len(seen)), cov0[seen]).T
        mean, cov = mean0 + gain @ gap, cov0 - gain @ cov0[seen]
        values = score(acquisition, mean, np.sqrt(np.diag(cov)), y[seen].max(), len(seen))
        values[seen] = -np.inf
        chosen.append(int(np.argmax(values)))
        moments.append((mean[chosen[-1]], np.sqrt(cov[chosen[-1], chosen[-1]] + noise)))
        target = mean, jitter(cov)
        if distance == "jeffreys":
            d = [
                gaussian_kl(*target, m, jitter(s)) + gaussian_kl(m, jitter(s), *target)
                for m, s in zip(mu, k, strict=True)
            ]
        else:
            d = [slow_wasserstein(m, jitter(s), *target) for m, s in zip(mu, k, strict=True)]
        w = np.exp(1 - np.array(d) / max(d))
        w /= w.sum()
        seen.append(chosen[-1])
    return chosen, np.array(moments)


@pytest.mark.parametrize("distance", distances.DISTANCES)
@pytest.mark.parametrize("acquisition", ["ucb3", "ei", "pi"])
def test_it_is_algorithm_1(acquisition, distance):
    chosen, moments = slow(acquisition, distance, 7)
    steps = trajectory(acquisition, weights=distance)
    assert steps.candidate.tolist() == [*INITIAL.tolist(), *chosen]
    # The prototypes' jitter is in the covariance of the target's posterior too, so the weights differ by 1e-5.
    np.testing.assert_allclose(steps.info.mean[2:], moments[:, 0], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(steps.info.std[2:], moments[:, 1], rtol=1e-5)
    assert steps.info.ok.all()


def state_after(policy, pool, outputs, rows):
    state = begun(policy, pool)
    for row in rows:
        state = observe(policy, state, jnp.asarray(row), outputs[row])
    return state


def test_prototypes_are_averages_or_barycenters_of_their_tasks():
    params, rows, pool, _ = world()
    means, covs, _ = posteriors_at(params.sources, rows, pool.x[:POOL])
    for centre in clusters_policy.CENTRES:
        policy, _, _ = made(centre=centre)
        mu, k, present, ok = policy.prototypes(pool)
        assert bool(ok) and present.all() and mu.shape == (3, POOL + PADDING)
        for c in range(3):
            own = np.array(ASSIGNMENT[2]) == c
            np.testing.assert_allclose(mu[c, :POOL], np.asarray(means)[own].mean(0), rtol=1e-9)
            members = distances.regularised(covs[own])
            wanted = barycenter(members, jnp.full(own.sum(), 1 / own.sum())).cov
            wanted = wanted if centre == "barycenter" else jnp.mean(covs[own], axis=0)
            np.testing.assert_allclose(k[c, :POOL, :POOL], wanted, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(k[c, POOL:, POOL:], np.eye(PADDING), atol=1e-5)
            np.testing.assert_allclose(k[c, :POOL, POOL:], 0.0, atol=1e-12)


def test_the_chosen_number_of_clusters_is_used_and_absent_ones_have_no_weight():
    policy, pool, outputs = made(clusters=0)
    meta = state_after(policy, pool, outputs, [4, 7, 1, 2]).meta
    assert meta.weights.shape == (3,) and meta.present.tolist() == [True, True, False]
    assert float(meta.weights[2]) == 0.0 and float(meta.weights.sum()) == pytest.approx(1.0)
    fixed = trajectory(clusters=2)
    np.testing.assert_array_equal(trajectory(clusters=0).candidate, fixed.candidate)


def test_weights_stay_equal_until_the_initial_points_are_in_and_within_a_factor_of_e():
    policy, pool, outputs = made(initial=3)
    for count in range(1, 7):
        w = np.asarray(state_after(policy, pool, outputs, range(count)).meta.weights)
        assert w.sum() == pytest.approx(1.0) and w.max() / w.min() <= np.e * (1 + 1e-12)
        assert (np.ptp(w) > 1e-6) == (count > 3)  # moved by the query after the third observation


def test_one_prototype_keeps_its_weight():
    policy, pool, outputs = made(clusters=1)
    np.testing.assert_array_equal(state_after(policy, pool, outputs, range(5)).meta.weights, [1.0])


def test_each_task_may_be_a_prototype():
    policy, pool, outputs = made(prototypes="tasks")
    share = np.asarray(state_after(policy, pool, outputs, range(5)).meta.weights)
    assert share.shape == (TASKS,) and (share > 0).all()
    single = trajectory(prototypes="tasks")
    params, rows, pool, outputs = world()
    alone = params._replace(assignment=jnp.broadcast_to(jnp.arange(TASKS), (5, TASKS)), chosen=jnp.asarray(4))
    same = clusters_policy.policy(alone, SETTINGS | {"clusters": 5}, "ucb3", 9, rows)
    steps = once(same, pool, outputs, jnp.asarray(INITIAL), jax.random.key(1), 7)
    np.testing.assert_array_equal(steps.candidate, single.candidate)


def test_a_candidate_is_queried_once_and_padding_never():
    index = trajectory(iterations=POOL).candidate
    assert sorted(index[:POOL].tolist()) == list(range(POOL))
    assert max(index) < POOL  # none is left: any valid one, again


@pytest.mark.parametrize("key", OTHERS)
def test_settings_are_alive(key):
    found = [trajectory("pi", **settings) for settings in ({}, {key: OTHERS[key]})]
    assert (found[0].info.mean[2:] != found[1].info.mean[2:]).any()


def test_settings_all_have_a_case():
    named = set(registry.method("cm_wss_wss").policy)
    assert named == set(OTHERS) | {"tolerance"} == set(SETTINGS)


def test_a_barycenter_that_does_not_converge_marks_every_step_and_the_job_says_what_to_do():
    steps = trajectory(centre="barycenter", tolerance=1e-30)
    assert not steps.info.ok[2:].any() and trajectory(centre="barycenter").info.ok.all()
    rows = pd.DataFrame({"ok": steps.info.ok, "iteration": range(9)}).assign(**dict.fromkeys(results.RUN, "x"))
    with pytest.raises(NumericsError, match=rf"7 of 9 steps.*not have converged in {STEPS} iter.*, raise 'cmbo"):
        unsound(rows.assign(method="cm_wss_bary"))


def test_a_barycenter_that_does_not_converge_is_named():
    policy, pool, _ = made(centre="barycenter", tolerance=1e-30)
    said = policy.remarks(pool)
    assert [line[:10] for line in said] == ["cluster 2:", "cluster 3:"]  # the first has one member: nothing to iterate
    assert all(f"after {clusters_policy.STEPS} iterations, needs 1e-30" in line for line in said)
    assert made(centre="barycenter")[0].remarks(pool) == made(tolerance=1e-30)[0].remarks(pool) == []


def test_the_job_names_space_fold_and_task_of_unsound_runs_only():
    policy, pool, _ = made(centre="barycenter", tolerance=1e-30, clusters=1)
    fold = Fold("s, split 1", "s", ("t",), ("a", "b"))
    prior = SpacePrior("s", DIM, DIM, (fold,), None, np.zeros((2, 0)), 2, np.zeros(2))
    listed = [Entry(0, task, p, seed) for task in "ab" for p in range(2) for seed in range(2)]
    pools = dict.fromkeys("ab", pool)
    bad = np.array([e.task == "b" and e.prior_seed == 1 for e in listed])
    none = Priors(None, None)
    (said,) = remarks(lambda priors, number: policy, none, prior, listed, pools, bad)
    assert said.startswith("space 's', s, split 1, prior 1, task 'b': cluster 1: the Wasserstein barycenter did not")
    assert remarks(lambda priors, number: policy, none, prior, listed, pools, bad & False) == []
    assert remarks(lambda priors, number: object(), none, prior, listed, pools, bad) == []


def test_a_distance_that_is_not_finite_keeps_the_weights_and_marks_the_step():
    policy, pool, outputs = made(initial=0)
    state = begun(policy, pool)
    broken = state._replace(meta=state.meta._replace(part=state.meta.part.at[0].set(jnp.nan)))
    after, usual = (observe(policy, one, jnp.asarray(3), outputs[3]).meta for one in (broken, state))
    np.testing.assert_array_equal(after.weights, state.meta.weights)
    assert not bool(after.ok) and bool(usual.ok)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clusters": 4}, "cm-BO: 4 clusters of 5 source tasks, clustered into up to 3; ask for 1 to 3, or 0"),
        ({"clusters": -1}, "cm-BO: -1 clusters"),
        ({"weights": "jefreys"}, r"unknown cm-BO setting weights 'jefreys'. Did you mean 'jeffreys'"),
        ({"centre": "mean"}, "unknown cm-BO setting centre 'mean'"),
        ({"prototypes": "task"}, "unknown cm-BO setting prototypes 'task'"),
        ({"proto_kernel": "matern32"}, "unknown cm-BO setting proto_kernel 'matern32'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        made(**settings)


def test_fewer_source_tasks_than_clusters_and_no_past_are_refused():
    params, rows, _, _ = world()
    few = params._replace(
        sources=taken(params.sources, jnp.arange(2)), rough=taken(params.rough, jnp.arange(2)),
        assignment=params.assignment[:, :2],
    )  # fmt: skip
    with pytest.raises(ConfigError, match="3 clusters of 2 source tasks, clustered into up to 3; ask for 1 to 2"):
        clusters_policy.policy(few, SETTINGS, "ucb3", 5, rows)
    with pytest.raises(ConfigError, match="uses_past=True"):
        clusters_policy.policy(params, SETTINGS, "ucb3", 5, None)
