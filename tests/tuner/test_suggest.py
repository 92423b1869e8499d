"""Suggestions come from the experiments' policy; batches spread, running trials are avoided, failures repel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metabo.bo import loop
from metabo.bo.policy import Candidates
from metabo.data.history import description
from metabo.data.history.past import Scale
from metabo.errors import ConfigError, NumericsWarning
from metabo.plan import registry, runs
from metabo.records.files import canonical
from metabo.tuner import learning, pool
from metabo.tuner import suggest as suggestion
from metabo.tuner.asking import Range, projected
from metabo.tuner.blend import choose as blend
from metabo.tuner.study import Study
from metabo.tuner.suggest import Prior, Told, suggest

NOTHING = Told([], [], [])


@pytest.fixture(scope="module")
def prior(trained):
    return Study(trained).prior


def key(configuration):
    return tuple(configuration.items())


@pytest.mark.parametrize("seen", [0, 3])
def test_the_choice_is_that_of_the_experiments_loop(prior, seen):
    """The same pool, the same observations: `choose` selects what `metabo.bo.loop.run` selects next."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((40, prior.description.space.dim)))
    outputs = jnp.asarray(rng.normal(size=40))
    everything = Candidates(x, jnp.ones(40, dtype=bool))
    program = (prior.spec["method"], canonical(prior.spec["policy"]), prior.spec["acquisition"])
    policy = registry.policy_module("h_nll").policy(prior.params, prior.spec["policy"], "pi", seen + 1)
    steps = loop.run(policy, everything, outputs, jnp.arange(seen), jax.random.key(0), 1)
    counts = jnp.asarray(seen), jnp.asarray(seen), jnp.asarray(1)
    found = suggestion.choose(prior.params, everything, outputs, *counts, jax.random.key(0), *program, 16)
    assert int(found.candidate[seen]) == int(steps.candidate[seen])
    np.testing.assert_allclose(found.info.mean[seen], steps.info.mean[seen], rtol=1e-9)


def test_equal_calls_give_equal_answers_and_another_seed_another_pool(prior):
    first = suggest(prior, NOTHING, 2)
    assert first == suggest(prior, NOTHING, 2)
    assert first != suggest(prior, NOTHING, 2, seed=1)


def test_suggestions_are_valid_distinct_and_new(prior):
    space = prior.description
    told = suggest(prior, NOTHING, 3)
    done = [one.configuration for one in told]
    found = suggest(prior, Told(done[:2], [0.3, float("nan")], done[2:]), 4)
    shown = [key(one.configuration) for one in found]
    assert len(set(shown)) == 4 and not set(shown) & {key(one) for one in done}
    for one in found:
        assert space.read(one.configuration) == one.configuration
        assert one.low < one.median < one.high


def test_the_prior_knows_where_past_studies_were_good(prior):
    """The best learning rates of all past studies are near 0.01, and the largest failed."""
    for one in suggest(prior, NOTHING, 3):
        assert 1e-3 < one.configuration["learning_rate"] < 1e-1


def test_observations_move_the_prediction(prior):
    (one,) = suggest(prior, NOTHING)
    (bad,) = suggest(prior, Told([one.configuration], [10.0 * one.median], []))
    (good,) = suggest(prior, Told([one.configuration], [0.5 * one.median], []))
    assert bad.median > good.median
    (failed,) = suggest(prior, Told([one.configuration], [float("nan")], []))
    assert failed.configuration != one.configuration


def finite(most: int = 4):
    parameters = {"a": {"type": "categorical", "choices": ["x", "y"]}, "b": {"type": "int", "low": 1, "high": most}}
    outcome = {"column": "e", "goal": "maximise"}
    return description.of_mapping({"name": "f", "study": "s", "outcome": outcome, "parameters": parameters}, "f")


def test_an_unsound_posterior_is_told_and_predicts_nothing(prior):
    """A mean that is not finite: the configurations are valid and new all the same. A sound prior warns of nothing, or
    every other test here would fail."""
    broken = prior._replace(params=eqx.tree_at(lambda gp: gp.mean.bias, prior.params, jnp.asarray(jnp.nan)))
    told = Told([suggest(prior, NOTHING)[0].configuration], [0.2], [])
    with pytest.warns(
        NumericsWarning, match="2 of 2 suggestions are guesses: the posterior of h_nll is not .* 1 outcomes"
    ):
        found = suggest(broken, told, 2)
    assert len({key(one.configuration) for one in found} - {key(told.done[0])}) == 2
    for one in found:
        assert prior.description.read(one.configuration) == one.configuration
        assert np.isnan([one.median, one.low, one.high]).all()


def test_a_covariance_that_needed_more_on_its_diagonal_is_told_of(prior, monkeypatch):
    chosen = suggestion.choose

    def lifted(*arguments):
        steps = chosen(*arguments)
        return steps._replace(info=steps.info._replace(jitter=jnp.full(steps.y.shape, 2e-5)))

    monkeypatch.setattr(suggestion, "choose", lifted)
    with pytest.warns(NumericsWarning, match="covariance of 0 outcomes needed 2e-05 more on its diagonal"):
        assert np.isfinite(suggest(prior, NOTHING)[0].median)


@pytest.mark.parametrize("method", ["rand", "stboh", "hgp_hand"])
def test_a_finite_space_is_searched_to_its_end_without_a_past(method):
    space = finite()
    spec = learning.specification(method, 0)
    spec["policy"] = spec["policy"] | ({"refit_steps": 3} if "refit_steps" in spec["policy"] else {})
    stored, _ = learning.learn(spec, space.space, [])
    own = Prior(space, None, spec, stored.of(0, 0))
    done = [one.configuration for one in suggest(own, NOTHING, 6)]
    rest = suggest(own, Told(done[:5], [float(one["b"]) for one in done[:5]], done[5:]), 2)
    assert len({key(c) for c in [*done, *(one.configuration for one in rest)]}) == 8
    with pytest.raises(ConfigError, match=r"2 configurations are left .*, 3 are asked for"):
        suggest(own, Told(done, [float(one["b"]) for one in done], []), 3)


def test_without_past_studies_the_scale_is_that_of_the_told_outcomes():
    own = Prior(finite(), None, {}, None)
    for outcomes, known in (([], False), ([5.0], False), ([5.0, 5.0], False), ([5.0, 7.0], True)):
        scale, y = suggestion.scaled(own, Told([], outcomes, []))
        assert (scale is not None) == known and np.isfinite(y).all()
    _, y = suggestion.scaled(own, Told([], [1e9, 2e9, float("nan")], []))
    assert y[0] < y[1] and y[2] <= y[0] and np.abs(y).max() < 5
    fixed = own._replace(scale=Scale(1.0, 2.0, -3.0))
    _, y = suggestion.scaled(fixed, Told([], [5.0, float("nan")], []))
    assert y.tolist() == [2.0, -3.0]


def test_an_outcome_without_a_logarithm_never_reaches_the_model_as_infinite():
    space = finite()
    outcome = {"column": "e", "goal": "minimise", "scale": "log"}
    space = description.of_mapping(space.source | {"outcome": outcome}, "f")
    _, y = suggestion.scaled(Prior(space, Scale(0.0, 1.0, -3.0), {}, None), Told([], [0.0, -1.0, 1.0], []))
    assert y.tolist() == [-3.0, -3.0, 0.0]


def test_the_pool_has_one_shape_no_repeats_and_neighbours():
    space = description.of_mapping({"name": "f", "study": "s", "outcome": {"column": "e", "goal": "maximise"},
                                    "parameters": {"a": {"type": "float", "low": 0, "high": 1},
                                                   "b": {"type": "int", "low": 1, "high": 2}}}, "f")  # fmt: skip
    centre = {"a": 0.3, "b": 2}
    one = pool.make(space, [centre], 16, [centre], [0])
    assert one.x.shape == (16 + pool.SPREAD + pool.NEAR, 2) and not one.mask[:16].any()
    valid = one.x[one.mask].round(pool.DIGITS)
    assert len(np.unique(valid, axis=0)) == len(valid)
    near = np.abs(valid[:, 0] - 0.3) < 0.02
    assert near.sum() > 200 and not (valid == space.encode([centre]).round(pool.DIGITS)).all(axis=1).any()
    assert pool.make(finite(), [], 16, [], [0]).mask.sum() == 8


def test_an_acquisition_is_chosen_by_name(prior, blended):
    """Each asks for something else once there is an outcome; the method's own needs no name."""
    told = [one.configuration for one in suggest(prior, NOTHING, 5)]
    for known, own in ((prior, "pi"), (Study(blended).prior, "ei")):
        seen = Told(told, [0.3, 0.2, 0.5, 0.4, 0.25], [])
        found = {name: key(suggest(known, seen, acquisition=name)[0].configuration) for name in runs.SCORED}
        assert found[own] == key(suggest(known, seen)[0].configuration)
        assert len(set(found.values())) >= 3


def test_an_acquisition_that_is_not_there_is_told(prior, plain):
    there = ", ".join(sorted(runs.SCORED))
    with pytest.raises(ConfigError, match=rf"^unknown acquisition 'eii'. Did you mean 'ei'\? Valid: {there}$"):
        suggest(prior, NOTHING, acquisition="eii")
    with pytest.raises(ConfigError, match="method 'rand' has no use for acquisition 'ei': it predicts nothing"):
        suggestion.acquisition_of("rand", "uniform", "ei")
    with pytest.raises(ConfigError, match="unknown acquisition 'uniform'"):
        suggestion.acquisition_of("blend", "ei", "uniform")


ONLY = {"optimiser": ("adam",), "batch": (16, 64)}


@pytest.mark.parametrize("kind", ["trained", "blended"])
def test_suggestions_keep_to_some_choices(request, kind):
    """From the first trial to batches, whatever the past likes best, and after trials with other choices."""
    known = Study(request.getfixturevalue(kind)).prior
    told = Told([], [], [])
    for _ in range(6):
        (found,) = suggest(known, told, only=ONLY)
        told.done.append(found.configuration | {"optimiser": "sgd", "batch": 32, "momentum": 0.5})
        told.outcomes.append(0.1 + 0.01 * len(told.done))
    for one in suggest(known, told, 6, only=ONLY):
        assert one.configuration["optimiser"] == "adam" and one.configuration["batch"] in (16, 64)
        assert one.configuration["momentum"] is None
    assert any(one.configuration["optimiser"] == "sgd" for one in suggest(known, told, 6))


def test_a_finite_space_with_few_choices_is_used_up():
    parameters = {"a": {"type": "categorical", "choices": list("xyz")}, "b": {"type": "int", "low": 1, "high": 2}}
    outcome = {"column": "e", "goal": "minimise"}
    space = description.of_mapping({"name": "f", "study": "s", "outcome": outcome, "parameters": parameters}, "f")
    spec = learning.specification("rand", 0)
    stored, _ = learning.learn(spec, space.space, [])
    random, two = Prior(space, None, spec, stored.of(0, 0)), {"a": ("x", "z")}
    assert len({key(one.configuration) for one in suggest(random, NOTHING, 4, only=two)}) == 4
    with pytest.raises(ConfigError, match="4 configurations are left"):
        suggest(random, NOTHING, 5, only=two)
    assert len({key(one.configuration) for one in blend.suggest(space, None, NOTHING, 4, only=two)}) == 4
    with pytest.raises(ConfigError, match="4 configurations are left"):
        blend.suggest(space, None, NOTHING, 5, only=two)
    done = [{"a": a, "b": b} for a in "xz" for b in (1, 2)]
    over = "no configuration is left that is neither evaluated nor running: the space has been tried out"
    for told, said in [(done, over), (done[1:], "1 configuration is left that is neither .*, 2 are asked for")]:
        for call in (lambda told: suggest(random, told, 2, only=two),
                     lambda told: blend.suggest(space, None, told, 2, only=two)):  # fmt: skip
            with pytest.raises(ConfigError, match=said):
                call(Told(told, [0.1 * i for i in range(len(told))], []))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.sets(st.integers(0, 6), min_size=1, max_size=7), st.integers(0, 2**32 - 1))
def test_choices_that_are_left_out_become_others_as_often(kept, seed):
    """However few they are: each allowed choice gets its share of even points, those that have it stay as they are, and
    the other parameters too."""
    parameters = {"a": {"type": "ordinal", "choices": list(range(7))}, "b": {"type": "float", "low": 0, "high": 1}}
    outcome = {"column": "e", "goal": "minimise"}
    space = description.of_mapping({"name": "f", "study": "s", "outcome": outcome, "parameters": parameters}, "f")
    units = np.stack([(np.arange(2100) + 0.5) / 2100, np.random.default_rng(seed).random(2100)], axis=1)
    found = projected(space, units, {"a": tuple(kept)})
    counts = np.bincount([one["a"] for one in space.at(found)], minlength=7)
    assert set(np.flatnonzero(counts).tolist()) == kept and np.ptp(counts[sorted(kept)]) <= 7
    np.testing.assert_array_equal(found[:, 1], units[:, 1])
    stays = [one["a"] in kept for one in space.at(units)]
    np.testing.assert_array_equal(found[stays], units[stays])
    np.testing.assert_array_equal(projected(space, units, {}), units)


@settings(max_examples=30, deadline=None, derandomize=True)
@example(-1.0, -0.5, 1, 1, 0)  # a point on the bound, up to rounding
@given(st.floats(-4, 0), st.floats(-4, 0), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_numbers_outside_a_range_become_others_inside(one, other, first, last, seed):
    """Evenly, or the nearest; those inside stay."""
    parameters = {
        "a": {"type": "float", "low": 1e-4, "high": 1.0, "scale": "log"},
        "n": {"type": "int", "low": 1, "high": 9},
    }
    outcome = {"column": "e", "goal": "minimise"}
    space = description.of_mapping({"name": "f", "study": "s", "outcome": outcome, "parameters": parameters}, "f")
    low, high = (10 ** max(-4, min(0, end)) for end in sorted((one, other)))
    first, last = sorted((first, last))
    only = {"a": Range(low, high), "n": Range(first, last, 1)}
    units = np.random.default_rng(seed).permuted(np.tile((np.arange(450) + 0.5) / 450, (2, 1)), axis=1).T
    before = space.at(units)
    for near in (False, True):
        found = space.at(projected(space, units, only, near))
        for old, new in zip(before, found, strict=True):
            assert low * (1 - 1e-9) <= new["a"] <= high * (1 + 1e-9) and first <= new["n"] <= last
            assert new["a"] == old["a"] or not low <= old["a"] <= high
            assert not near or new["n"] == min(max(old["n"], first), last)
        if not near:
            assert np.ptp(np.bincount([one["n"] for one in found])[first:]) <= 2
