"""PPO against plain NumPy: advantages, clipped surrogate, loss, episodes of BO, and what a step of training does."""

import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from metabo.methods.maf import network as maf_network
from metabo.methods.maf import ppo
from metabo.methods.maf.network import AcquisitionNetwork
from metabo.methods.maf.settings import MafSettings
from tests import tiny
from tests.references import DenseGP

SETTINGS = MafSettings(
    steps=1, learning_rate=1e-2, episodes=1, horizon=4, candidates=0, minibatches=2, epochs=3, clip=0.15,
    value_weight=0.7, entropy_weight=0.02, discount=0.9, smoothing=0.8, min_regret=1e-5, evaluate_every=1, points=0,
    gp_points=0, gp_steps=1,
)  # fmt: skip


loss, collect, improve, play = (eqx.filter_jit(f) for f in (ppo.loss, ppo.collect, ppo.improve, ppo.play))
loss_and_gradient = eqx.filter_jit(jax.value_and_grad(ppo.loss))


def random_network(rng, inputs, hidden=(5, 3)):
    widths = (inputs, *hidden, 1)
    pairs = list(itertools.pairwise(widths))
    weights = tuple(jnp.asarray(rng.normal(size=pair) * pair[0] ** -0.5) for pair in pairs)
    return AcquisitionNetwork(weights, tuple(jnp.asarray(0.3 * rng.normal(size=out)) for _, out in pairs))


def agent(rng, dim=2):
    return ppo.Agent(random_network(rng, dim + maf_network.EXTRA), random_network(rng, maf_network.CLOCK))


def dense(network, x):
    """Forward pass of a network, layer by layer."""
    layers = list(zip(map(np.asarray, network.weights), map(np.asarray, network.biases), strict=True))
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0.0)
    return (x @ layers[-1][0] + layers[-1][1])[..., 0]


def game(rng, count=9, padding=0, dim=2):
    gp = tiny.random_gp(rng, dim, mean="zero", kernel="squared_exponential", sizes=())
    x, y = rng.uniform(size=(count, dim)), rng.normal(size=count)
    x, y = np.concatenate([x, np.full((padding, dim), 0.5)]), np.concatenate([y, np.full(padding, 99.0)])
    return ppo.Game(gp, jnp.asarray(x), jnp.asarray(y), jnp.asarray(np.arange(count + padding) < count))


def test_advantages_are_discounted_sums_of_temporal_differences():
    rng = np.random.default_rng(0)
    r, v = rng.normal(size=7), rng.normal(size=7)
    delta = r + 0.9 * np.append(v[1:], 0.0) - v
    expected = [sum((0.9 * 0.8) ** j * delta[t + j] for j in range(7 - t)) for t in range(7)]
    np.testing.assert_allclose(ppo.advantages(jnp.asarray(r), jnp.asarray(v), 0.9, 0.8), expected, rtol=1e-12)
    np.testing.assert_allclose(ppo.advantages(jnp.asarray(r), jnp.asarray(v), 0.9, 0.0), delta, rtol=1e-12)
    returns = [sum(0.9**j * r[t + j] for j in range(7 - t)) for t in range(7)]
    np.testing.assert_allclose(ppo.advantages(jnp.asarray(r), jnp.asarray(v), 0.9, 1.0), returns - v, rtol=1e-12)


def test_rewards_by_hand():
    np.testing.assert_allclose(ppo.rewards(jnp.asarray([0.0, 0.99999, 9.99999]), 1e-5), [5.0, 0.0, -1.0], atol=1e-12)
    assert float(ppo.rewards(jnp.asarray(0.0), 1e-3)) == pytest.approx(3.0)


def test_normalised_advantages():
    a = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(ppo.normalised(jnp.asarray(a)), (a - 3.0) / np.sqrt(14 / 3), rtol=1e-12)
    np.testing.assert_array_equal(ppo.normalised(jnp.full(4, 2.5)), np.full(4, 2.5))


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.0, 2.0, 2.0, 2.0),  # inside the range: the plain surrogate
        (1.1, -1.0, -1.1, -1.0),
        (1.5, 2.0, 2.3, 0.0),  # it has gained enough: no more pull
        (0.5, -2.0, -1.7, 0.0),
        (1.5, -2.0, -3.0, -2.0),  # it went the wrong way: pull it back
        (0.5, 2.0, 1.0, 2.0),
    ],
)
def test_clipped_objective_by_hand(ratio, advantage, value, slope):
    given = jnp.asarray([advantage])
    found, gradient = jax.value_and_grad(lambda r: ppo.clipped_objective(r, given, 0.15))(jnp.asarray([ratio]))
    assert float(found) == pytest.approx(value) and float(gradient[0]) == pytest.approx(slope)


def test_log_softmax_leaves_masked_candidates_out():
    logits, mask = np.array([0.3, -1.0, 2.0, 50.0]), np.array([True, True, True, False])
    weights = np.exp(logits[:3])
    found = ppo.log_softmax(jnp.asarray(logits), jnp.asarray(mask))
    np.testing.assert_allclose(found, [*np.log(weights / weights.sum()), 0.0], rtol=1e-12)
    gradient = jax.grad(lambda v: ppo.log_softmax(v, jnp.asarray(mask))[1])(jnp.asarray(logits))
    assert np.isfinite(gradient).all() and gradient[3] == 0 and gradient[1] > 0 > gradient[0]


def batch(rng, count=8, candidates=5):
    mask = np.ones((count, candidates), dtype=bool)
    mask[::2, -1] = False
    return ppo.Rollout(
        *map(jnp.asarray, (
            rng.normal(size=(count, candidates, 6)), mask, rng.integers(0, candidates - 1, count),
            np.log(rng.uniform(0.1, 0.4, count)), rng.uniform(0, 4, size=(count, 2)), rng.normal(size=count),
            rng.normal(size=count),
        ))
    )  # fmt: skip


def reference_loss(agent, batch, settings):
    """Minus the surrogate, the value error and minus the entropy, one transition after the other."""
    advantage = np.asarray(batch.advantage)
    advantage = (advantage - advantage.mean()) / advantage.std()
    surrogate, error, entropy = [], [], []
    for i in range(len(advantage)):
        logits = dense(agent.policy, np.asarray(batch.features[i]))[np.asarray(batch.mask[i])]
        log_prob = logits - np.log(np.exp(logits).sum())
        ratio = np.exp(log_prob[batch.action[i]] - float(batch.log_prob[i]))
        held = min(max(ratio, 1 - settings.clip), 1 + settings.clip)
        surrogate.append(min(ratio * advantage[i], held * advantage[i]))
        error.append((dense(agent.value, np.asarray(batch.clock[i])) - float(batch.target[i])) ** 2)
        entropy.append(-(np.exp(log_prob) * log_prob).sum())
    weights = settings.value_weight, settings.entropy_weight
    return -np.mean(surrogate) + weights[0] * np.mean(error) - weights[1] * np.mean(entropy)


@pytest.mark.parametrize("change", [{}, {"clip": 0.5}, {"value_weight": 0.0}, {"entropy_weight": 0.5}])
def test_loss_is_the_sum_of_its_parts(change):
    rng, settings = np.random.default_rng(1), replace(SETTINGS, **change)
    player, data = agent(rng), batch(rng)
    found = float(loss(player, data, settings))
    assert found == pytest.approx(reference_loss(player, data, settings), rel=1e-10)
    if change:
        assert abs(found - float(loss(player, data, SETTINGS))) > 1e-3


def test_padding_candidates_change_neither_loss_nor_gradient():
    rng = np.random.default_rng(2)
    player, data = agent(rng), batch(rng)
    wide = data._replace(
        features=jnp.concatenate([data.features, jnp.full((8, 3, 6), 7.0)], axis=1),
        mask=jnp.concatenate([data.mask, jnp.zeros((8, 3), dtype=bool)], axis=1),
    )
    one, other = (ravel_pytree(loss_and_gradient(player, d, SETTINGS))[0] for d in (data, wide))
    np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-13)


def test_an_action_of_positive_advantage_becomes_more_likely():
    rng = np.random.default_rng(3)
    player, data = agent(rng), batch(rng, count=4)
    log_prob = ppo.log_softmax(player.policy(data.features), data.mask)
    taken = jnp.take_along_axis(log_prob, data.action[:, None], axis=1)[:, 0]
    data = data._replace(log_prob=taken, advantage=jnp.asarray([3.0, -1.0, -1.0, -1.0]))
    settings = replace(SETTINGS, learning_rate=1e-3, entropy_weight=0.0, minibatches=1, epochs=1)
    state, unravel = ppo.learner(player, settings.learning_rate)
    better = unravel(improve(state, unravel, data, settings, jax.random.key(0)).params)
    after = ppo.log_softmax(better.policy(data.features), data.mask)
    change = jnp.take_along_axis(after, data.action[:, None], axis=1)[:, 0] - taken
    # the objective's slope is Â per log probability: its first-order change is their sum
    assert change[0] > 0 and float(change @ ppo.normalised(data.advantage)) > 0


def test_one_step_is_adams():
    rng = np.random.default_rng(4)
    player, data = agent(rng), batch(rng)
    settings = replace(SETTINGS, minibatches=1, epochs=1)
    state, unravel = ppo.learner(player, settings.learning_rate)
    gradient = ravel_pytree(loss_and_gradient(player, data, settings)[1])[0]
    found = improve(state, unravel, data, settings, jax.random.key(0)).params
    np.testing.assert_allclose(found, state.params - 1e-2 * gradient / (jnp.abs(gradient) + 1e-8), rtol=1e-8, atol=1e-9)


def test_epochs_and_minibatches_are_steps():
    rng = np.random.default_rng(5)
    player, data = agent(rng), batch(rng)
    state, unravel = ppo.learner(player, 1e-2)
    for epochs, minibatches in ((1, 1), (2, 1), (1, 3)):
        settings = replace(SETTINGS, epochs=epochs, minibatches=minibatches)
        done = improve(state, unravel, data, settings, jax.random.key(0))
        assert int(done.moments[0].count) == epochs * minibatches


def reference_play(policy, game, horizon):
    """Greedy BO with a dense posterior whose constant mean is the mean of the observations (0 before any)."""
    keep = np.asarray(game.mask)
    gp, x, y = DenseGP(game.gp), np.asarray(game.x)[keep], np.asarray(game.y)[keep]
    rows, actions, regrets = [], [], []
    for t in range(horizon):
        mean, std = np.zeros(len(y)), np.sqrt(np.diag(gp.kernel(x, x)))
        if t:
            seen = y[actions]
            cross = gp.kernel(x, x[actions])
            sides = np.column_stack([seen - seen.mean(), cross.T])
            solved = np.linalg.solve(gp.covariance(x[actions]), sides)
            mean = seen.mean() + cross @ solved[:, 0]
            std = np.sqrt(np.diag(gp.kernel(x, x) - cross @ solved[:, 1:]))
        rows.append(np.column_stack([mean, std, x, np.full(len(y), t), np.full(len(y), horizon)]))
        actions.append(int(np.argmax(dense(policy, rows[-1]))))
        regrets.append(y.max() - y[actions].max())
    return np.array(rows), actions, regrets


def test_an_episode_is_bo_with_a_dense_gp():
    rng = np.random.default_rng(6)
    for _ in range(3):
        pool, policy = game(rng), random_network(rng, 6)
        moves = play(policy, pool, 5, ppo.greedy, jax.random.key(0))
        rows, actions, regrets = reference_play(policy, pool, 5)
        assert moves.action.tolist() == actions
        np.testing.assert_allclose(moves.features, rows, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(moves.regret, regrets, atol=1e-12)


def test_padding_does_not_change_an_episode():
    policy = random_network(np.random.default_rng(7), 6)
    plain, wide = (
        play(policy, game(np.random.default_rng(8), padding=p), 5, ppo.greedy, jax.random.key(0)) for p in (0, 4)
    )
    assert plain.action.tolist() == wide.action.tolist()
    np.testing.assert_allclose(wide.regret, plain.regret, atol=1e-12)
    drawn = play(policy, game(np.random.default_rng(8), count=2, padding=6), 30, ppo.sample, jax.random.key(1))
    assert set(drawn.action.tolist()) == {0, 1}


def test_training_draws_from_the_softmax():
    logits = jnp.log(jnp.asarray([0.5, 0.3, 0.2]))
    drawn = jax.vmap(lambda key: ppo.sample(logits, key))(jax.random.split(jax.random.key(0), 20_000))
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 20_000, [0.5, 0.3, 0.2], atol=0.015)


def test_collect_lays_out_the_transitions():
    rng = np.random.default_rng(9)
    player = agent(rng)
    games = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(game(rng, count, 9 - count) for count in (9, 6, 7)))
    data, reward = collect(player, games, SETTINGS, jax.random.key(0))
    assert data.features.shape == (12, 9, 6)
    np.testing.assert_array_equal(data.clock[:, 0].reshape(3, 4), np.tile(np.arange(4.0), (3, 1)))
    np.testing.assert_array_equal(data.clock[:, 1], 4.0)
    for i in range(12):
        log_prob = dense(player.policy, np.asarray(data.features[i]))[np.asarray(data.mask[i])]
        log_prob -= np.log(np.exp(log_prob).sum())
        assert float(data.log_prob[i]) == pytest.approx(log_prob[data.action[i]], rel=1e-9)
    value = dense(player.value, np.asarray(data.clock))
    np.testing.assert_allclose(data.target, data.advantage + value, rtol=1e-12)
    total = []
    for e, pool in enumerate([3 * [0], 3 * [1], 3 * [2]]):
        y = np.asarray(games.y[pool[0]])
        top = y[np.asarray(games.mask[pool[0]])].max()
        best = np.maximum.accumulate(y[np.asarray(data.action[4 * e : 4 * e + 4])])
        r = -np.log10(top - best + 1e-5)
        delta = r + 0.9 * np.append(value[1:4], 0.0) - value[:4]
        advantage = [sum(0.72**j * delta[t + j] for j in range(4 - t)) for t in range(4)]
        np.testing.assert_allclose(data.advantage[4 * e : 4 * e + 4], advantage, rtol=1e-9)
        total.append(r.mean())
    assert float(reward) == pytest.approx(np.mean(total))
