"""Elimination among pre-trained priors: which priors, one alone, NumPy, and settings and input that make no sense."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo.fixed_prior import policy as fixed_policy
from metabo.bo.loop import run
from metabo.bo.policy import Candidates
from metabo.bo.priors import of_training
from metabo.compute.keys import stream
from metabo.errors import ConfigError, DataError
from metabo.methods.elimination import candidates
from metabo.methods.elimination import policy as elimination_policy
from metabo.plan import registry
from metabo.tasks.training_set import training_sets_of
from tests import tiny
from tests.methods.elimination.reference import evidence, posterior

X = jnp.asarray(np.random.default_rng(4).uniform(size=(15, 2)))
MASK = np.arange(15) < 13
KEYS = [jax.random.split(jax.random.key(0), (2, 1))]  # of no use where nothing is trained
SETTINGS = {"rule": "elimination", "delta": 0.1}


def gps(count, noise=-3.0):
    rng = np.random.default_rng(0)
    return tiny.stacked([tiny.random_gp(rng, 2, noise=noise + 0.5 * i) for i in range(count)])


def outputs(gp, scale=1.0):
    gram = np.asarray(gp.kernel.gram(gp.features(X)))
    path = np.linalg.cholesky(gram + 1e-9 * np.eye(15)) @ np.random.default_rng(5).normal(size=15)
    return jnp.asarray(np.asarray(gp.mean(gp.features(X))) + scale * path)


def steps(policy, y, iterations=8, initial=()):
    pool = Candidates(X, jnp.asarray(MASK))
    return run(policy, pool, y, jnp.asarray(initial, int), jax.random.key(1), iterations)


def test_one_candidate_is_the_fixed_prior():
    many = gps(1)
    alone = jax.tree.map(lambda leaf: leaf[0], many)
    y = outputs(alone)
    policy = elimination_policy.policy(many, SETTINGS, "ucb3", 10)
    found, expected = (steps(p, y, initial=[2, 5]) for p in (policy, fixed_policy(alone, {}, "ucb3", 10)))
    np.testing.assert_array_equal(found.candidate, expected.candidate)
    np.testing.assert_allclose(found.info.mean, expected.info.mean, rtol=1e-9)
    np.testing.assert_allclose(found.info.std, expected.info.std, rtol=1e-9)
    assert found.info.ok.all() and (np.asarray(found.candidate) < 13).all()


def textbook(many, y, rule, delta, iterations, priority):
    """Return indices and survivors; `priority` breaks ties of the score."""
    count = many.raw_noise.shape[0]
    each = [jax.tree.map(lambda leaf, u=u: leaf[u], many) for u in range(count)]
    grams = [np.asarray(gp.kernel.gram(gp.features(X))) for gp in each]
    means = [np.asarray(gp.mean(gp.features(X))) for gp in each]
    noise = [float(gp.noise) for gp in each]
    alive, sums, points = set(range(count)), {u: [0.0, 0.0, 0] for u in range(count)}, []
    survivors = []
    for t in range(1, iterations + 1):
        seen = y[points]
        pairs = [posterior(grams[u], means[u], noise[u], points, seen) for u in range(count)]
        mean, std = (
            np.array([m for m, _ in pairs]),
            np.array([np.sqrt(v + n) for (_, v), n in zip(pairs, noise, strict=True)]),
        )
        allowed = alive
        if rule == "likelihood":
            logs = [evidence(grams[u], means[u], noise[u], points, seen) if points else 0.0 for u in range(count)]
            allowed = {int(np.argmax(logs))}
        upper = np.where(np.isin(range(count), sorted(allowed))[:, None], mean + 3 * std, -np.inf)
        score = np.where(MASK, upper.max(axis=0), -np.inf)
        index = max(np.flatnonzero(score >= score.max() - 1e-9), key=lambda i: priority[i])
        u = int(upper[:, index].argmax())
        sums[u] = [sums[u][0] + y[index] - mean[u, index], sums[u][1] + 3 * std[u, index], sums[u][2] + 1]
        xi = 2 * noise[u] * np.log(count * np.pi**2 * t**2 / (3 * delta))
        if rule == "elimination" and abs(sums[u][0]) > np.sqrt(xi * sums[u][2]) + sums[u][1] and len(alive) > 1:
            alive.discard(u)
        points.append(int(index))
        survivors.append([w in alive for w in range(count)])
    return points, survivors


@pytest.mark.parametrize(
    ("rule", "scale"),  # 12: far outside what the candidates expect, so that some are dropped
    [("elimination", 1.0), *((rule, 12.0) for rule in elimination_policy.CHOICES)],
)
def test_runs_agree_with_the_textbook(rule, scale):
    many = gps(3)
    y = outputs(jax.tree.map(lambda leaf: leaf[2], many), scale)
    policy = elimination_policy.policy(many, SETTINGS | {"rule": rule}, "ucb3", 8)
    pool = Candidates(X, jnp.asarray(MASK))
    state = policy.init(pool, jax.random.split(jax.random.key(1))[0])
    points, survivors = textbook(many, np.asarray(y), rule, 0.1, 8, np.asarray(state.priority))
    for index, left in zip(points, survivors, strict=True):
        chosen, _ = policy.select(state, pool.mask, jax.random.key(0))
        assert int(chosen) == index
        state = policy.observe(state, chosen, y[chosen])
        np.testing.assert_array_equal(state.alive, left)
    assert (min(map(sum, survivors)) < 3) == (rule == "elimination" and scale > 1)
    assert np.asarray(steps(policy, y).candidate).tolist() == points


def test_delta_and_coefficient_decide_the_test():
    """One observation beyond the bound by c drops its candidate if and only if c² exceeds ξ_1 = 2R² log(|U|π²/(3δ))."""
    many, pool = gps(3), Candidates(X, jnp.asarray(MASK))
    for acquisition, coefficient in (("ucb3", 3.0), ("ucb18", 1.8)):
        for delta in (1e-6, 0.5):
            policy = elimination_policy.policy(many, SETTINGS | {"delta": delta}, acquisition, 2)
            state = policy.init(pool, jax.random.key(1))
            index, info = policy.select(state, pool.mask, jax.random.key(0))
            u = int(policy.chosen(state, policy.bounds(state)[2], index))
            noise = float(jax.tree.map(lambda leaf, u=u: leaf[u], many).noise)
            edge = np.sqrt(2 * noise * np.log(3 * np.pi**2 / (3 * delta))) + coefficient * float(info.std)
            for factor in (0.999, 1.001):
                after = policy.observe(state, index, info.mean + factor * edge)
                assert bool(after.alive[u]) == (factor < 1) and int(after.alive.sum()) == (3 if factor < 1 else 2)


def test_senseless_settings_are_refused():
    for change, acquisition, message in (
        ({"rule": "best"}, "ucb3", "unknown rule among pre-trained priors 'best'"),
        ({"delta": 0.0}, "ucb3", "delta is 0.0"),
        ({}, "pi", "acquisition 'pi': elimination needs a confidence bound"),
    ):
        with pytest.raises(ConfigError, match=message):
            elimination_policy.policy(gps(2), SETTINGS | change, acquisition, 5)
    with pytest.raises(ConfigError, match=r"needs at least two; raise config key 'elimination\.seeds'"):
        candidates.start(spec(1)["model"], 2, 3, jax.random.key(0))


def spec(seeds):
    model = {"mean": "zero", "kernel": "matern52", "features": []}
    own = tiny.spec("he_pretrained", seeds=seeds)
    return own | {"model": model | {"candidates": seeds}, "fits": "h_nll"}


def fits(training, own):
    """Priors that are known apart: the noise counts folds and seeds."""
    pairs = len(training.folds) * own["seeds"]
    gp = candidates.start(own["model"] | {"candidates": pairs + 1}, training.dim, 3, jax.random.key(0))
    named = eqx.tree_at(lambda own: own.raw_noise, gp, jnp.arange(float(pairs)))
    return of_training(training, named, None)


def test_a_set_of_candidates_leaves_out_its_own_prior():
    own = spec(3)
    (training,) = training_sets_of(tiny.benchmark(), own)
    ((found, log),) = candidates.pretrain_across(own, [training], KEYS, [fits(training, own)], False)
    assert log is None and len(training.folds) == 2
    assert found.raw_noise.tolist() == [[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 4]]
    shape = jax.eval_shape(lambda key: candidates.start(own["model"], training.dim, 3, key), stream(0))
    for leaf, single in zip(jax.tree.leaves(found), jax.tree.leaves(shape), strict=True):
        assert leaf.shape == (6, *single.shape)


def test_candidates_of_a_stopped_training_are_told():
    own = spec(3)
    (training,) = training_sets_of(tiny.benchmark(), own)
    given = fits(training, own)
    assert candidates.remarks([training], [given]) == []
    stopped = np.array([-1, -1, -1, -1, 7, -1])
    (line,) = candidates.remarks([training], [dataclasses.replace(given, stopped=stopped)])
    assert (
        line.startswith(f"space 'plane', fold '{training.folds[1].name}': the candidate of seed 1 is")
        and "step 7" in line
    )


def test_fits_of_other_seeds_are_refused():
    own = spec(3)
    (training,) = training_sets_of(tiny.benchmark(), own)
    with pytest.raises(DataError, match="priors of 3 seeds for 2 candidates"):
        other = own | {"model": own["model"] | {"candidates": 2}, "seeds": 2}
        candidates.pretrain_across(other, [training], KEYS, [fits(training, own)], False)
    with pytest.raises(ConfigError, match="at least two"):
        one = own | {"model": own["model"] | {"candidates": 1}, "seeds": 1}
        candidates.pretrain_across(one, [training], KEYS, [fits(training, own)], False)


def test_registered_methods_differ_in_their_rule_only():
    first, *others = (registry.method(f"{name}_pretrained") for name in ("he", "max", "mle"))
    for other in others:
        differing = {key for key, value in vars(first).items() if value != getattr(other, key)}
        assert differing == {"label", "colour", "marker", "dashes", "policy"}
    assert tuple(one.policy["rule"] for one in (first, *others)) == elimination_policy.CHOICES
    assert first.fits == "h_nll" and first.model["candidates"] == "@pretrain.seeds"
    plain = registry.method("h_nll").model
    assert {key: value for key, value in first.model.items() if key != "candidates"} == plain
