"""MIMO and RFGP online: trained at every iteration on past tasks and the mapped observations."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo.ask_tell import ask, begin, tell
from metabo.bo.priors import of_training
from metabo.errors import ConfigError
from metabo.methods.embedding import online as online_networks
from metabo.plan import registry
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import prior_keys, training_sets
from tests import tiny_online
from tests.methods.embedding import cases as networks

BOTH = ["mimo_online", "rfgp_online"]
BUDGET = 5
SETTINGS = {"learning_rate": 0.02, "batch": 8, "epochs": 10.0, "steps": 12}
SEARCH = {"warm_start": True, "starts": 16, "polish": 2, "polish_steps": 4}


@cache
def trained(name):
    """Training set, specification and prior of one method."""
    model = networks.MODELS[name.removesuffix("_online")]
    spec = {"method": name, "model": model, "pretrain": {**SETTINGS, "outputs": "mapped"}}
    (training,) = training_sets(tiny_online.benchmark(), "others", "mapped", seeds=1)
    params, log = registry.training_module(name).pretrain(spec, training, prior_keys(training, 0, 1), False)
    return training, spec, of_training(training, params, log)


@cache
def method(name, **change):
    training, spec, prior = trained(name)
    return online_networks.online(spec, prior, training, SETTINGS | SEARCH | change, "ucb18", BUDGET)


def observations(count=3):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(size=(BUDGET, 2)), rng.uniform(-2, 2, size=BUDGET)
    return Rows(jnp.asarray(x), jnp.asarray(y), jnp.arange(BUDGET) < count)


@cache
def program(refit):
    return jax.jit(refit)


def refitted(tuner, data, params=None, context=None):
    begun, rows = tuner.begin(0, 0)
    params, context = begun if params is None else params, rows if context is None else context
    new, ok = program(tuner.refit)(params, context, data, jax.random.key(0))
    assert ok
    return networks.vector(new.network.learned)


def test_registration():
    for name in BOTH:
        entry, offline = registry.method(name), registry.method(name.removesuffix("_online"))
        assert entry.pretrain == {**offline.pretrain, "outputs": "mapped"}
        assert entry.acquisition == "ucb18" and entry.model == offline.model
        assert {key: entry.online[key] for key in [*SETTINGS, "warm_start"]} == offline.policy
        assert set(entry.online) == set(SETTINGS) | set(SEARCH)
        assert registry.online_module(name) is online_networks


@pytest.mark.parametrize("name", BOTH)
def test_every_observation_and_the_past_rows_count_and_padding_does_not(name):
    tuner, data = method(name), observations()
    run, past = tuner.begin(0, 0)
    base = refitted(tuner, data)
    assert np.abs(base - networks.vector(run.network.learned)).max() > 1e-3
    for place in range(3):
        assert np.abs(base - refitted(tuner, data._replace(y=data.y.at[place].add(-0.5)))).max() > 1e-6
    padded = data._replace(x=data.x.at[4].set(0.1), y=data.y.at[4].set(9.0))
    np.testing.assert_array_equal(refitted(tuner, padded), base)
    assert np.abs(base - refitted(tuner, data, context=past._replace(y=0.9 * past.y))).max() > 1e-4
    assert past.mask.any(axis=1).sum() == 2  # all tasks but the tuned one


@pytest.mark.parametrize("name", BOTH)
def test_the_surrogate_is_the_networks_prediction(name):
    tuner, data = method(name), observations()
    run, past = tuner.begin(1, 0)
    posterior, x = tuner.to_model(run).posterior(*data), data.x[3:]
    expected = run.network.posterior(run.network.prepare(past), data).predict(x)
    for a, b in zip(posterior.predict(x), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert tuner.to_model(run).noise == 0.0 and bool(posterior.ok)


@pytest.mark.parametrize("name", BOTH)
def test_a_run_asks_inside_the_cube_and_repeats_itself(name):
    def points():
        state, found = begin(method(name)), []
        for number, y in enumerate((0.5, np.nan, 1.5)):
            state, suggestion = ask(method(name), state, jax.random.key(number))
            assert suggestion.ok and np.isfinite([suggestion.mean, suggestion.std]).all() and suggestion.std > 0
            assert ((suggestion.x >= 0) & (suggestion.x <= 1)).all()
            state, found = tell(state, suggestion.x, y), [*found, suggestion.x]
        return np.array(found)

    np.testing.assert_array_equal(points(), points())


@pytest.mark.parametrize("change", [{"steps": 3}, {"learning_rate": 0.05}, {"epochs": 0.5}, {"batch": 4}])
def test_settings_are_alive(change):
    base, other = (refitted(method("rfgp_online", **c), observations()) for c in ({}, change))
    assert np.abs(base - other).max() > 1e-4


def test_a_fresh_start_ignores_the_last_parameters():
    for warm, same in ((True, False), (False, True)):
        tuner = method("rfgp_online", warm_start=warm)
        run, _ = tuner.begin(0, 0)
        moved = run._replace(network=run.network.fresh(jax.random.key(3)))
        one, other = (refitted(tuner, observations(), params=p) for p in (run, moved))
        assert np.array_equal(one, other) == same


def test_priors_on_raw_outputs_are_refused():
    training, spec, prior = trained("rfgp_online")
    raw = {**spec, "pretrain": {**spec["pretrain"], "outputs": "raw"}}
    with pytest.raises(ConfigError, match=r"'rfgp_online': .* outputs 'mapped'; got 'raw'"):
        online_networks.online(raw, prior, training, SETTINGS | SEARCH, "ucb18", BUDGET)
