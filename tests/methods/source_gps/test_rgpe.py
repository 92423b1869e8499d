"""RGPE, RM-GP-UCB, the standard GP and random search of cm-BO against plain versions and numbers by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo.loop import run
from metabo.bo.policy import Candidates
from metabo.errors import ConfigError
from metabo.methods.random import once
from metabo.methods.random.policy import Nothing
from metabo.methods.source_gps import rgpe, rgpe_policy, rm_gp_ucb, target
from metabo.methods.source_gps.rgpe import Sources
from metabo.methods.source_gps.sources import make, repeated
from metabo.plan import registry
from metabo.plan.typed import plain
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import prior_keys, training_sets_of
from tests import tiny
from tests.methods.source_gps.test_sources import dense, random_gp
from tests.references import JITTER, softplus
from tests.stepping import observe

TASKS, ROWS, POOL, DIM = 4, 6, 10, 2
RANKED = {"samples": 200, "refit_steps": 3, "pi_threshold": 0.1}
BOUNDS = {"beta": 3.0, "tau": 2.0, "eta": 0.1, "epsilon": 0.5, "r": 0.7, "initial": 2, "refit_steps": 3}


def world(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(TASKS, ROWS, DIM))
    y = np.sin(4 * x[..., 0] + np.arange(TASKS)[:, None]) - x[..., 1]
    mask = np.arange(ROWS) < np.array([6, 5, 0, 4])[:, None]  # the third task is padding
    gp = random_gp(("matern52",), DIM)
    inputs = np.concatenate([rng.uniform(size=(POOL, DIM)), np.zeros((2, DIM))])
    pool = Candidates(jnp.asarray(inputs), jnp.arange(POOL + 2) < POOL)
    outputs = jnp.asarray(np.sin(4 * inputs[:, 0]) - inputs[:, 1])
    return Sources(repeated(gp, TASKS), make(("matern52",), DIM)), Rows(*map(jnp.asarray, (x, y, mask))), pool, outputs


def observed(policy, pool, outputs, rows):
    state = policy.init(pool, jax.random.key(0))
    for row in rows:
        state = observe(policy, state, jnp.asarray(row), outputs[row])
    return state


def test_ranking_loss_by_hand():
    """y rises: f = (1, 3, 2) has the pairs (2, 3) and (3, 2) wrong; ties in f with y apart are wrong once."""
    y, seen = jnp.asarray([1.0, 2.0, 3.0, -9.0]), jnp.asarray([True, True, True, False])
    f = jnp.asarray([[1.0, 2.0, 3.0, 7.0], [1.0, 3.0, 2.0, 7.0], [3.0, 2.0, 1.0, 7.0], [5.0, 5.0, 5.0, 7.0]])
    np.testing.assert_array_equal(rgpe_policy.ranking_loss(f, y, seen), [0, 2, 6, 3])


def test_weights_by_hand():
    """Four samples; the third source is dropped: its median 5 is above every loss of the target."""
    losses = jnp.asarray([[0.0, 2.0, 2.0, 2.0], [2.0, 0.0, 2.0, 9.0], [5.0, 5.0, 5.0, 0.0]])
    own = jnp.asarray([3.0, 3.0, 2.0, 3.0])
    present = jnp.asarray([True, True, True])
    found = rgpe_policy.rank_weights(losses, own, present)
    # samples: source 1; source 2; all three tie; source 1 (the dropped source has 0 there)
    np.testing.assert_allclose(found, [(1 + 1 / 3 + 1) / 4, (1 + 1 / 3) / 4, 0, (1 / 3) / 4], rtol=1e-12)
    absent = rgpe_policy.rank_weights(losses, own, jnp.asarray([False, True, True]))
    assert float(absent[0]) == 0.0 and float(absent.sum()) == pytest.approx(1.0)


def test_leaving_one_out_equals_conditioning_on_the_others():
    gp, rng = random_gp(("matern52",), DIM), np.random.default_rng(1)
    x, y = rng.uniform(size=(6, DIM)), rng.normal(size=6)
    padded = np.concatenate([x, np.zeros((2, DIM))]), np.concatenate([y, [5.0, 5.0]])
    means, root, rise = rgpe_policy.leave_one_out(gp, *map(jnp.asarray, padded), jnp.arange(8) < 6)
    noise = softplus(float(gp.raw_noise)) + JITTER
    for j in range(6):
        kept = np.delete(np.arange(6), j)
        cross = dense(gp, x[kept], x)
        gain = np.linalg.solve(dense(gp, x[kept], x[kept]) + noise * np.eye(5), cross).T
        np.testing.assert_allclose(means[j, :6], gain @ y[kept], rtol=1e-7, atol=1e-9)
        cov = np.asarray(root @ root.T + jnp.outer(rise[j], rise[j]))[:6, :6]
        np.testing.assert_allclose(cov, dense(gp, x, x) - gain @ cross, atol=3e-6)


def test_samples_have_the_moments_of_the_posterior():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    mean, cov = rng.normal(size=4), root @ root.T
    drawn = rgpe_policy.samples(*map(jnp.asarray, (mean, cov)), jnp.ones(4, bool), 20_000, jax.random.key(0))
    error = 5 * np.sqrt(np.diag(cov).max() / 20_000)
    np.testing.assert_allclose(drawn.mean(0), mean, atol=error)
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.05 * np.diag(cov).max())


def test_rgpe_is_the_weighted_sum_and_begins_with_equal_sources():
    params, past, pool, outputs = world()
    policy = rgpe_policy.policy(params, RANKED, "ucb3", 8, past)
    key = jax.random.key(5)
    few = observed(policy, pool, outputs, [1, 2])
    np.testing.assert_allclose(policy.weights(few, key), [1 / 3, 1 / 3, 0, 1 / 3, 0], rtol=1e-12)
    state = observed(policy, pool, outputs, [1, 2, 3, 4, 5])
    share = np.asarray(policy.weights(state, key))
    assert share.sum() == pytest.approx(1.0) and share[2] == 0.0 and share.shape == (TASKS + 1,)
    own_mean, own_variance = state.target.posterior().predict(pool.x)
    mean = share[:-1] @ np.asarray(state.means) + share[-1] * np.asarray(own_mean)
    variance = share[:-1] ** 2 @ np.asarray(state.variances) + share[-1] ** 2 * np.asarray(own_variance)
    scores = np.where(np.isin(np.arange(POOL + 2), [1, 2, 3, 4, 5, 10, 11]), -np.inf, mean + 3 * np.sqrt(variance))
    index, info = policy.select(state, pool.mask.at[jnp.arange(1, 6)].set(False), key)
    assert int(index) == int(np.argmax(scores)) and bool(info.ok)
    np.testing.assert_allclose(info.mean, mean[int(index)], rtol=1e-9)


def test_source_moments_are_those_of_a_dense_gp():
    params, past, pool, _ = world()
    means, variances, rows = rgpe_policy.source_moments(params.sources, past, pool.x)
    gp = jax.tree.map(lambda leaf: leaf[1], params.sources)
    x, y, new = np.asarray(past.x[1][:5]), np.asarray(past.y[1][:5]), np.asarray(pool.x)
    gain = np.linalg.solve(dense(gp, x, x) + (softplus(float(gp.raw_noise)) + JITTER) * np.eye(5), dense(gp, x, new)).T
    np.testing.assert_allclose(means[1], gain @ y, rtol=1e-8, atol=1e-10)
    cov = dense(gp, new, new) - gain @ dense(gp, x, new)
    np.testing.assert_allclose(variances[1], np.diag(cov), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(gp.kernel.gram(pool.x) - rows[1].T @ rows[1], cov, atol=1e-9)


def test_rm_gp_ucb_follows_its_rule():
    """Gaps, weights, ν and scores of one iteration, by their formulas."""
    params, past, pool, outputs = world()
    policy = rm_gp_ucb.policy(params, BOUNDS, "ucb3", 8, past)
    state = observed(policy, pool, outputs, [1, 2])
    assert float(state.nu) == 1.0 and not np.asarray(state.gaps).any()  # the initial points move nothing
    posterior = state.target.posterior()
    gaps = []
    for x, y, mask in zip(*past, strict=True):
        mean, variance = map(np.asarray, posterior.predict(x))
        reach = 3.0 * np.sqrt(variance)
        widest = np.maximum(np.abs(mean + reach - y), np.abs(mean - reach - y))
        gaps.append(widest[np.asarray(mask)].mean() if mask.any() else 0.0)
    gaps = np.array(gaps)
    odds = np.where(np.arange(TASKS) == 2, 0.0, np.exp(-0.1 * gaps))
    share = odds / odds.sum()
    found, d = policy.weights(state, posterior)
    np.testing.assert_allclose(found, share, rtol=1e-9)
    np.testing.assert_allclose(d, gaps, rtol=1e-9)
    index, _ = policy.select(state, pool.mask.at[jnp.asarray([1, 2])].set(False), jax.random.key(0))
    scores = share @ np.asarray(state.bounds)  # ν = 1
    scores[[1, 2, 10, 11]] = -np.inf
    assert int(index) == int(np.argmax(scores))
    after = observe(policy, state, index, outputs[index])
    factor = min(0.7, (share @ gaps) ** -0.5)
    assert float(after.nu) == pytest.approx(factor, rel=1e-9)
    np.testing.assert_allclose(after.gaps, gaps, rtol=1e-9)
    later = observe(policy, after, jnp.asarray(6), outputs[6])
    assert float(later.nu) < float(after.nu)


@pytest.mark.parametrize("key", BOUNDS)
def test_settings_of_rm_gp_ucb_are_alive(key):
    params, past, pool, outputs = world()
    other = {"beta": 1.0, "tau": 0.1, "eta": 5.0, "epsilon": 4.0, "r": 0.1, "initial": 5, "refit_steps": 1}[key]
    found = []
    for settings in (BOUNDS, BOUNDS | {key: other}):
        policy = rm_gp_ucb.policy(params, settings, "ucb3", 8, past)
        state = observed(policy, pool, outputs, [1, 2, 3, 4])
        share, gaps = policy.weights(state, state.target.posterior())
        found.append(np.concatenate([share, gaps, state.bounds.ravel(), state.nu[None]]))
    assert (found[0] != found[1]).any()


@pytest.mark.parametrize(("key", "value"), [("samples", 3), ("refit_steps", 1), ("pi_threshold", 2.0)])
def test_settings_of_rgpe_are_alive(key, value):
    params, past, pool, outputs = world()
    found = []
    for settings in (RANKED, RANKED | {key: value}):
        policy = rgpe_policy.policy(params, settings, "pi", 9, past)
        found.append(run(policy, pool, outputs, jnp.arange(3), jax.random.key(0), 6))
    assert (np.asarray(found[0].info.mean[3:]) != np.asarray(found[1].info.mean[3:])).any()
    assert set(registry.method("rgpe").policy) == set(RANKED)


def test_every_setting_of_rm_gp_ucb_has_a_case():
    assert set(registry.method("rm_gp_ucb").policy) == set(BOUNDS)


def test_what_cannot_be_run_is_refused():
    params, past, _, _ = world()
    with pytest.raises(ConfigError, match="its acquisition is 'ucb3', not 'ei'"):
        rm_gp_ucb.policy(params, BOUNDS, "ei", 5, past)
    for module, settings in ((rm_gp_ucb, BOUNDS), (rgpe_policy, RANKED)):
        with pytest.raises(ConfigError, match="uses_past=True"):
            module.policy(params, settings, "ucb3", 5, None)


def test_source_gps_are_fitted_once_and_their_settings_are_alive():
    spec = tiny.spec("rgpe")
    (training,) = training_sets_of(tiny.benchmark(), spec)

    def trained(**overrides):
        own = tiny.spec("rgpe", **overrides)
        return rgpe.pretrain(own, training, prior_keys(training, 0, 2), False)

    params, log = trained()
    assert params.sources.kernel.raw_lengthscale.shape == (
        4,
        3,
        1,
        2,
    ) and params.target.kernel.raw_lengthscale.shape == (4, 1, 2)
    assert log.loss.shape == (4, 12) and (np.asarray(log.stopped) == -1).all()
    places = [training.trained[f][0].index("b") for f in range(2)]
    np.testing.assert_array_equal(
        params.sources.kernel.raw_variance[0, places[0]], params.sources.kernel.raw_variance[2, places[1]]
    )  # fmt: skip
    for overrides in ({"pretrain": {"steps": 3}}, {"model": {"kernel": "matern12"}}):
        other = trained(**overrides)[0]
        assert (other.sources.kernel.raw_variance != params.sources.kernel.raw_variance).any()
    assert set(registry.method("rgpe").model) == {"kernel"} and set(registry.method("rgpe").pretrain) == {"steps"}


def test_the_standard_gp_is_fitted_to_the_target_alone():
    """Its mean and deviation are those of the GP that L-BFGS finds, and its settings are alive."""
    _, _, pool, outputs = world()
    settings = {"pi_threshold": 0.1, "refit_steps": 8}
    model = plain(registry.method("gp32").model)
    gp = target.start(model, DIM, 1, jax.random.key(0))
    policy = target.policy(gp, settings, "ucb3", 8)
    state = observed(policy, pool, outputs, [1, 2, 3])
    x, y = np.asarray(pool.x)[[1, 2, 3]], np.asarray(outputs)[[1, 2, 3]]
    before, after = (float(g.log_prob(*map(jnp.asarray, (x, y, np.ones(3, bool))))) for g in (gp, state.gp))
    assert after > before + 0.1 and state.gp.kernel.shapes == ("matern32",)
    index, _ = policy.select(state, pool.mask.at[jnp.arange(1, 4)].set(False), jax.random.key(0))
    mean, variance = state.gp.posterior(*map(jnp.asarray, (x, y, np.ones(3, bool)))).predict(pool.x)
    bound = np.array(mean + 3 * jnp.sqrt(variance))[:POOL]
    bound[[1, 2, 3]] = -np.inf  # queried before
    assert int(index) == int(np.argmax(bound))
    every = run(target.policy(gp, settings, "ucb3", POOL), pool, outputs, jnp.arange(3), jax.random.key(0), POOL - 3)
    assert sorted(every.candidate.tolist()) == list(range(POOL))
    found = []
    for other in ({}, {"refit_steps": 1}, {"pi_threshold": 3.0}):
        pi = target.policy(gp, settings | other, "pi", 9)
        found.append(np.asarray(run(pi, pool, outputs, jnp.arange(3), jax.random.key(0), 6).info.mean[3:]))
    assert (found[0] != found[1]).any() and (found[0] != found[2]).any()
    assert set(registry.method("gp32").policy) == set(settings)


def test_random_search_takes_every_candidate_once():
    _, _, pool, outputs = world()
    policy = once.policy(Nothing(jnp.zeros(())), {}, "uniform", POOL + 4)
    runs = [run(policy, pool, outputs, jnp.asarray([3, 5]), jax.random.key(k), POOL + 2).candidate for k in range(30)]
    for index in runs:
        assert sorted(index[:POOL].tolist()) == list(range(POOL)) and max(index.tolist()) < POOL
    first = [int(index[2]) for index in runs]
    assert set(first) <= set(range(POOL)) - {3, 5} and len(set(first)) > 4
