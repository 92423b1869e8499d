"""BO with MIMO and RFGP: trained again after every observation, on past rows and on what was observed."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo.loop import run
from metabo.bo.policy import Candidates, Policy
from metabo.errors import ConfigError
from metabo.methods.embedding import policy as retrained
from metabo.methods.embedding.networks import Schedule, train
from metabo.plan import registry
from metabo.tasks.rows import Rows
from tests.methods.embedding import cases as networks
from tests.methods.embedding.cases import DIM
from tests.stepping import observe

BOTH = ["mimo", "rfgp"]
BUDGET, POOL = 4, 9
SETTINGS = {"learning_rate": 0.05, "batch": 8, "epochs": 10.0, "steps": 15, "warm_start": True}


def candidates(seed=0):
    rng = np.random.default_rng(seed)
    return Candidates(jnp.asarray(rng.uniform(size=(POOL, DIM))), jnp.arange(POOL) < POOL - 2)


@cache
def make(name, acquisition="ucb18", **settings):
    return retrained.policy(networks.network(name), SETTINGS | settings, acquisition, BUDGET, networks.past())


def with_past(policy, past):
    """The same policy with other rows; its program is compiled already."""
    return eqx.tree_at(lambda p: p.past, policy, past)


start = eqx.filter_jit(lambda policy, key: policy.init(candidates(), key))


def states(policy, ys=(1.0, 2.0), key=0):
    """States before and after the observations `ys` of the first candidates."""
    found = [start(policy, jax.random.key(key))]
    for index, y in enumerate(ys):
        found.append(observe(policy, found[-1], jnp.asarray(index), jnp.asarray(y)))
    return found


def learned(state):
    return networks.vector(state.training.network.learned)


@eqx.filter_jit
def selection(policy, state):
    return policy.select(state, candidates().mask, jax.random.key(0))


@pytest.mark.parametrize("name", BOTH)
def test_selection_maximises_the_acquisition_of_the_prediction(name):
    policy = make(name)
    assert isinstance(policy, Policy)
    _, after, _ = states(policy)
    net, pool = after.training.network, candidates()
    x, y, mask = pool.x[:1], jnp.asarray([1.0]), jnp.asarray([True])
    mean, variance = net.posterior(net.prepare(networks.past()), Rows(x, y, mask)).predict(pool.x)
    scores = np.where(pool.mask, mean + 1.8 * jnp.sqrt(variance), -np.inf)
    index, info = selection(policy, after)
    assert int(index) == int(np.argmax(scores)) and bool(info.ok)
    assert float(info.mean) == pytest.approx(float(mean[index]), rel=1e-9)
    assert float(info.std) == pytest.approx(float(variance[index]) ** 0.5, rel=1e-9)
    improvement, _ = selection(make(name, acquisition="pi"), after)
    target = (np.asarray(mean) - 1.1) / np.sqrt(variance)
    assert int(improvement) == int(np.argmax(np.where(pool.mask, target, -np.inf)))


@pytest.mark.parametrize("name", BOTH)
def test_training_goes_on_after_every_observation_but_the_last(name):
    policy = make(name)
    before, *after = states(policy, (1.0, 2.0, 0.5, 3.0))
    np.testing.assert_array_equal(learned(before), networks.vector(policy.network.learned))
    moved = [np.abs(learned(a) - learned(b)).max() for a, b in zip([before, *after], after, strict=False)]
    assert min(moved[:3]) > 1e-3 and moved[3] == 0.0
    assert after[-1].training.pool.counts.tolist() == [6, 0, 4, 4]
    # The embedding of the test task is the one that learns.
    assert np.abs(after[0].training.network.learned.embedding - before.training.network.learned.embedding)[-1].min() > 0
    # From the parameters and moments before: the same as training directly.
    one, two = after[0].training, after[1].training
    key = jax.random.split(one.key, 3)[0]
    direct = train(one.network, one.moments, two.pool, key, jnp.asarray(15), Schedule(0.05, 8, 10.0, 15))
    np.testing.assert_allclose(networks.vector(direct.network.learned), learned(after[1]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", BOTH)
def test_own_observations_and_past_rows_reach_the_training(name):
    policy = make(name)
    base = learned(states(policy)[-1])
    np.testing.assert_array_equal(learned(states(policy)[-1]), base)
    assert np.abs(learned(states(policy, (1.0, 2.5))[-1]) - base).max() > 1e-4
    assert np.abs(learned(states(policy, key=1)[-1]) - base).max() > 1e-4
    past = networks.past()
    assert np.abs(learned(states(with_past(policy, past._replace(y=past.y + 0.5)))[-1]) - base).max() > 1e-4
    hidden = past._replace(y=jnp.where(past.mask, past.y, 7.0), x=jnp.where(past.mask[..., None], past.x, -3.0))
    np.testing.assert_array_equal(learned(states(with_past(policy, hidden))[-1]), base)


@pytest.mark.parametrize("name", BOTH)
def test_retraining_fits_the_observations(name):
    policy = make(name, steps=100)
    before, _, after = states(policy, (6.0, 6.0))
    x = candidates().x[:2]
    errors = []
    for state in (before, after):
        net = state.training.network
        mean, _ = net.posterior(state.prepared, Rows(x, jnp.zeros(2), jnp.ones(2, bool))).predict(x)
        errors.append(np.abs(np.asarray(mean) - 6.0).mean())
    assert errors[1] < 0.7 * errors[0]


RATHER_SLOW = [{"learning_rate": 0.02}, {"batch": 4}, {"epochs": 1.0}]


@pytest.mark.parametrize(
    "change",
    [{"steps": 3}, {"warm_start": False}, *(pytest.param(c, marks=pytest.mark.slow) for c in RATHER_SLOW)],
)
def test_settings_are_alive(change):
    base, other = (learned(states(make("rfgp", **settings))[-1]) for settings in ({}, change))
    assert np.abs(base - other).max() > 1e-3
    assert set(SETTINGS) == set(registry.method("rfgp").policy) == set(registry.method("mimo").policy)


@pytest.mark.parametrize("name", BOTH)
def test_a_fresh_start_forgets_the_last_parameters(name):
    policy = make(name, warm_start=False)
    other = eqx.tree_at(lambda p: p.network.learned, policy, jax.tree.map(lambda a: a + 1.0, policy.network.learned))
    (first, one, two), (changed, again, _) = states(policy), states(other)
    assert np.abs(learned(first) - learned(changed)).min() > 0.5
    np.testing.assert_array_equal(learned(one), learned(again))
    assert np.abs(learned(one) - learned(two)).max() > 1e-3


def test_a_training_that_is_not_finite_says_so_and_keeps_finite_parameters():
    policy = make("rfgp")
    bad, recovered = states(policy, (jnp.inf, 1.0))[1:]
    assert not bad.training.ok and np.isfinite(learned(bad)).all()
    assert not bool(selection(policy, bad)[1].ok)
    assert np.isfinite(learned(recovered)).all()


def test_one_program_serves_a_whole_run():
    outputs = jnp.asarray(np.random.default_rng(3).normal(size=POOL))

    @eqx.filter_jit
    def go(policy, key):
        return run(policy, candidates(), outputs, jnp.zeros(0, int), key, BUDGET)

    one, again = (go(make("mimo"), jax.random.key(5)) for _ in range(2))
    assert (np.asarray(one.candidate) < POOL - 2).all() and bool(one.info.ok.all())
    assert (np.asarray(one.info.std) > 0).all()
    np.testing.assert_array_equal(one.candidate, again.candidate)


def test_past_rows_are_required():
    with pytest.raises(ConfigError, match="uses_past=True"):
        retrained.policy(networks.network("mimo"), SETTINGS, "ucb18", BUDGET, None)
