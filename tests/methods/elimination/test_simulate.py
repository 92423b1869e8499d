"""Elimination against a NumPy version of the algorithms, each setting alive, and input that makes no sense."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import ConfigError, DataError
from metabo.methods.elimination.competing import beta_of
from metabo.methods.elimination.confidence import beta_bayes_infinite
from metabo.methods.elimination.problem import EliminationSettings, Problem, check
from metabo.methods.elimination.rules import RULES, nearest_scale, without
from metabo.methods.elimination.simulate import run, run_all, traced
from metabo.papers.hegpucb import problems
from tests.methods.elimination import reference

SCALES = (0.1, 0.3, 0.9)


def problem(seed=0, with_means=False, noise_std=0.1, initial=2, **changes):
    """A path of the first candidate on 17 uneven points; candidates: three length-scales, perhaps with means."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=17))[:, None]
    kernels = np.stack([problems.rbf(x, scale) for scale in SCALES])
    prior = rng.normal(size=(3, 17)) if with_means else np.zeros((3, 17))
    f = prior[0] + np.linalg.cholesky(kernels[0] + 1e-9 * np.eye(17)) @ rng.normal(size=17)
    arrays = (jnp.asarray(a) for a in (x, kernels, prior, f))
    near = jnp.asarray(problems.within(x, 0.08))
    return Problem(*arrays, initial, noise_std, 0, jnp.asarray(SCALES), near)._replace(**changes)


SETTINGS = EliminationSettings(8, delta=0.2, B=0.3, R=0.05)


def same(trace, records):
    for name in ("point", "centre", "u", "v", "rejected", "alive"):
        np.testing.assert_array_equal(np.asarray(getattr(trace, name)), [r[name] for r in records], err_msg=name)
    for name in ("y", "mean", "sigma", "beta", "error", "regret", "evidence", "gain"):
        expected = [r[name] for r in records]
        np.testing.assert_allclose(getattr(trace, name), expected, rtol=1e-6, atol=1e-8, err_msg=name)


@eqx.filter_jit
def one_run(own, rule, settings, key):
    """One program for all problems and numbers of one form."""
    return run(own, rule, settings, key)


KEYS = jax.random.split(jax.random.key(3), 4)
TRUTHS = (2, 0, 1, 0)


@pytest.fixture(scope="module")
def traces():
    """Every rule from one program, with four keys, each with its own function and truth."""
    f = jnp.stack([problem(seed).f for seed in range(len(KEYS))])
    return run_all(problem(), RULES, traced(SETTINGS), KEYS, f, jnp.array(TRUTHS))


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_agrees_with_the_reference(rule, traces):
    for place, key in enumerate(KEYS):
        trace = jax.tree.map(lambda leaf, p=place: leaf[RULES.index(rule), p], traces)
        own = problem(f=problem(place).f, truth=TRUTHS[place])
        assert trace.ok.all()
        same(trace, reference.run(own, rule, SETTINGS, key))


def test_the_runs_eliminate_and_differ_between_rules(traces):
    """Otherwise the agreement above would say little."""
    alive = np.asarray(traces.alive[:, :, -1].sum(axis=-1))
    for rule in ("he_gp_ucb", "he_stable_opt"):
        assert (alive[RULES.index(rule)] < 3).any()
    others = [i for i, rule in enumerate(RULES) if not rule.startswith("he_")]
    assert (alive[others] == 3).all()
    assert len({np.asarray(traces.point[i]).tobytes() for i in range(len(RULES))}) == len(RULES)


@pytest.mark.parametrize(
    "form",
    [
        {}, {"beta": "bayes_finite", "xi": "corrected"}, {"beta": "bayes_successor", "sigma": "after"},
        {"beta": "frequentist_printed", "xi": "printed"},
    ],
)  # fmt: skip
def test_settings_agree_with_the_reference(form):
    for place, (numbers, with_means) in enumerate(
        [({}, True), ({"standardise": True}, False), ({"standardise": True, "predictive": True, "noise": 0.2}, True)]
    ):
        settings, own = SETTINGS._replace(**form, **numbers), problem(1, with_means)
        key = jax.random.fold_in(jax.random.key(5), place)
        same(one_run(own, "he_gp_ucb", traced(settings), key), reference.run(own, "he_gp_ucb", settings, key))


def test_no_initial_points_and_given_information_gains_agree_with_the_reference():
    gains = jnp.arange(3.0)[:, None] + 0.1 * jnp.arange(20.0)
    own, key = problem(2, initial=0, gains=gains), jax.random.key(1)
    for settings in (SETTINGS, SETTINGS._replace(standardise=True)):
        trace = one_run(own, "he_gp_ucb", traced(settings), key)
        same(trace, reference.run(own, "he_gp_ucb", settings, key))
        by_hand = 0.3 + np.sqrt(2 * (np.asarray(trace.u) + 0.1 * np.arange(8) + 1 + np.log(10)))
        np.testing.assert_allclose(trace.beta, by_hand)


@pytest.mark.parametrize("name", ["delta", "B", "R", "noise", "standardise", "predictive"])
def test_every_number_changes_the_test_or_the_bounds(name):
    other = {"delta": 0.9, "B": 3.0, "R": 0.5, "noise": 0.5, "standardise": True, "predictive": True}[name]
    changed = SETTINGS._replace(**{name: other})
    traces = [one_run(problem(), "he_gp_ucb", traced(s), jax.random.key(0)) for s in (SETTINGS, changed)]
    first = [np.asarray([t.beta[0], t.sigma[0], t.threshold[0], t.mean[0]]) for t in traces]
    assert not np.array_equal(*first)


def test_every_constant_of_an_infinite_domain_is_used():
    base = SETTINGS._replace(beta="bayes_infinite", d=2, a=2.0, b=2.0, r=2.0)
    values = [
        float(beta_of(problem(), settings, jnp.asarray(3), jnp.zeros(3))[0])
        for settings in (base, *(base._replace(**{name: 3}) for name in "dabr"))
    ]
    np.testing.assert_allclose(values[0], beta_bayes_infinite(3, 2, 2.0, 2.0, 2.0, 0.2))
    assert values[0] not in values[1:]


def test_one_key_gives_all_rules_the_same_start_and_noise(traces):
    assert (np.asarray(traces.initial) == np.asarray(traces.initial)[:1]).all()
    noise = np.asarray(traces.y - traces.f_at)
    np.testing.assert_allclose(noise, np.broadcast_to(noise[:1], noise.shape), atol=1e-12)
    assert np.ptp(noise[0], axis=0).min() > 0, "keys differ"


def test_keys_side_by_side_give_the_same(traces):
    f = jnp.stack([problem(seed).f for seed in range(len(KEYS))])
    side = run_all(problem(), ("gp_ucb",), traced(SETTINGS), KEYS, f, jnp.array(TRUTHS), together=True)
    np.testing.assert_array_equal(side.point[0], traces.point[RULES.index("gp_ucb")])
    assert (np.asarray(side.u[0]) == np.array(TRUTHS)[:, None]).all()


def test_other_numbers_do_not_compile_again(traces, caplog):
    f = jnp.stack([problem(seed + 1).f for seed in range(len(KEYS))])
    settings = SETTINGS._replace(B=2.0, delta=0.3, standardise=True, beta="bayes_finite")
    with jax.log_compiles():
        caplog.clear()
        run_all(problem(), RULES, traced(settings), KEYS, f, jnp.array(TRUTHS))
        assert not [r for r in caplog.records if r.getMessage().startswith("Compiling jit(_run_rule)")]
        run_all(problem(), ("uniform",), traced(settings._replace(T=1)), KEYS)
        assert [r for r in caplog.records if r.getMessage().startswith("Compiling jit(_run_rule)")]


def test_the_last_candidate_stays_and_the_run_says_so():
    """Outputs with errors of 50 against candidates that believe in errors of 0.01: their tests fire at once."""
    x = jnp.linspace(0, 1, 10)[:, None]
    own = Problem(x, jnp.ones((2, 10, 10)), jnp.zeros((2, 10)), jnp.zeros(10), 1, 50.0)
    trace = one_run(own, "he_gp_ucb", EliminationSettings(5, R=0.01), jax.random.key(0))
    np.testing.assert_array_equal(trace.alive, [[False, True]] * 5)
    np.testing.assert_array_equal(trace.rejected, True)
    np.testing.assert_array_equal(trace.exhausted, [False, True, True, True, True])


def test_nobody_is_never_left():
    alive = jnp.array([False, True, False])
    np.testing.assert_array_equal(without(alive, jnp.asarray(1), jnp.asarray(True)), alive)
    both = jnp.array([True, True, False])
    np.testing.assert_array_equal(without(both, jnp.asarray(1), jnp.asarray(True)), [True, False, False])
    np.testing.assert_array_equal(without(both, jnp.asarray(1), jnp.asarray(False)), both)


def test_scales_of_a_gp_ucb_by_hand():
    """From 1.0: t = 1 stays, t = 2 divides by 1.866 (0.536), t = 4 by 3.482 (0.287)."""
    scales = jnp.array([0.3, 0.4, 0.5, 0.7, 1.0])
    assert [int(nearest_scale(scales, jnp.asarray(4), jnp.asarray(t))) for t in (1, 2, 3, 4, 50)] == [4, 2, 1, 0, 0]


def test_unknown_names_are_told():
    key, traced_only = jax.random.key(0), partial(eqx.filter_eval_shape, run)
    with pytest.raises(ConfigError, match=r"unknown rule 'he_gp_ubc'. Did you mean 'he_gp_ucb'\?"):
        traced_only(problem(), "he_gp_ubc", SETTINGS, key)
    for name, value, message in (
        ("beta", "bayes", "unknown form of beta 'bayes'"), ("xi", "pi3", "unknown form of xi"),
        ("sigma", "later", "unknown deviation in the test 'later'"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            traced_only(problem(), "he_gp_ucb", SETTINGS._replace(**{name: value}), key)
    with pytest.raises(ConfigError, match="needs the length-scales of the candidates"):
        traced_only(problem(scales=None), "a_gp_ucb", SETTINGS, key)


def large_kernel():
    own = problem()
    return own._replace(kernels=own.kernels.at[1].multiply(1.5))


@pytest.mark.parametrize(
    ("own", "changes", "error", "message"),
    [
        (problem(kernels=jnp.zeros((0, 17, 17)), means=jnp.zeros((0, 17))), {}, DataError, "candidate set is empty"),
        (large_kernel(), {}, DataError, r"candidate 1 has k\(x, x\) = 1.5 at point 0"),
        (problem(kernels=jnp.full((3, 17, 17), jnp.nan)), {}, DataError, r"k\(x, x\) = nan"),
        (problem(f=jnp.full(17, jnp.inf)), {}, DataError, "a function value is not finite"),
        (problem(means=jnp.zeros((3, 16))), {}, DataError, r"means \(3, 16\)"),
        (problem(truth=3), {}, DataError, "true candidate is 3 of 3"),
        (problem(), {"R": 0.0}, ConfigError, "noise level 'R' is 0; it must be positive"),
        (problem(), {"R": -0.1}, ConfigError, "noise level 'R' is -0.1"),
        (problem(), {"noise": 0.0}, ConfigError, "noise level 'noise' is 0"),
        (problem(noise_std=-1.0), {}, ConfigError, "outputs' noise is -1"),
        (problem(), {"delta": 1.0}, ConfigError, "delta 1, 8 iterations"),
        (problem(), {"T": 0}, ConfigError, "0 iterations"),
    ],
)
def test_senseless_input_is_refused(own, changes, error, message):
    with pytest.raises(error, match=message):
        check(own, SETTINGS._replace(**changes))


def test_sensible_input_is_not_refused():
    check(problem(), SETTINGS)
    check(problem(truth=-1, initial=0, noise_std=0.0), SETTINGS._replace(noise=0.3))
