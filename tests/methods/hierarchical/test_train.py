"""Priors of hierarchical GPs: what is learned across spaces and from which of them, and what is known beforehand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from metabo.bo import priors
from metabo.compute.keys import stream
from metabo.errors import ConfigError, DataError, NumericsError
from metabo.gp import fit as pretrain
from metabo.gp.model import GP, build
from metabo.gp.objectives import nll
from metabo.methods.hierarchical import estimates as step1
from metabo.methods.hierarchical import network as prior_network
from metabo.methods.hierarchical import train as hierarchical
from metabo.methods.hierarchical.contexts import of_space
from metabo.methods.hierarchical.hyperprior import Parameters, fit_gamma, of_gp
from metabo.plan import registry
from metabo.plan.typed import plain
from metabo.tasks import rows as rows_
from metabo.tasks.spaces import SearchSpace
from tests.methods.hierarchical import cases as domains
from tests.methods.hierarchical.cases import HIERARCHICAL, KNOWN, LEARNED, SEEDS, across, fits_of, known, spec


@pytest.fixture(scope="module")
def data():
    return domains.benchmark()


@pytest.fixture(scope="module")
def sets(data):
    return domains.training_sets(data)


def numbers(params, seed=0):
    return [np.asarray(leaf[seed]) for leaf in params.prior.numbers]


def changed(fits, space, amount=0.7):
    """The fits with other parameters in one space."""
    moved = jax.tree.map(lambda leaf: leaf + amount, fits[space].params)
    return [replace(fit, params=moved) if i == space else fit for i, fit in enumerate(fits)]


def test_every_method_of_the_paper_is_registered():
    readings = ("_log", "_bounded")
    assert {m for m in HIERARCHICAL if not m.endswith(readings)} == {*LEARNED, *KNOWN}
    labels = {
        "mphd": "MPHD Standard", "mphd_non_nn": "MPHD Non-NN HGP", "hgp_hand": "Hand-specified HGP",
        "hgp_flat": "Non-informative HGP", "hgp_truth": "Ground-truth HGP", "gp_truth": "Ground-truth GP",
        "base_gp": "Base GP",
    }  # fmt: skip
    for name, label in labels.items():
        entry = registry.method(name)
        assert entry.label == label and entry.acquisition == "pi" and entry.policy["pi_threshold"] == 0.1
        model = entry.model
        assert (model["mean"], model["kernel"], model["features"]) == ("constant", "matern52", ())
        assert entry.fits == ("base_gp" if name in LEARNED else None)
        assert registry.made_of(name).across_spaces == (name in LEARNED)
        assert entry.needs_truth == (name in ("hgp_truth", "gp_truth"))
        assert ("refit_steps" in entry.policy) == (name not in ("base_gp", "gp_truth"))
    assert registry.method("mphd_squashed").variant_of == "mphd"


# Step 2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spaces", [None, "others"])
def test_shared_priors_are_scipys_fits_of_the_pooled_estimates(sets, spaces):
    fits = fits_of(sets)
    found = across("mphd_non_nn", sets, fits, spaces)
    assert len(found) == len(sets)
    for i, (params, log) in enumerate(found):
        pool = [fit.params for j, fit in enumerate(fits) if spaces is None or j != i]
        assert log is None
        for seed in range(SEEDS):
            each = [Parameters(*(np.asarray(v[seed]) for v in jax.vmap(of_gp)(gps))) for gps in pool]
            constant, lengthscale, variance, noise = numbers(params, seed)
            np.testing.assert_allclose(constant, scipy.stats.norm.fit([e.constant for e in each]), rtol=1e-9)
            pooled = np.concatenate([e.lengthscale for e in each])  # wide domains weigh more
            for fitted, values in ((lengthscale[0], pooled), (variance, [e.variance for e in each]),
                                  (noise, [e.noise for e in each])):  # fmt: skip
                a, _, scale = scipy.stats.gamma.fit(values, floc=0)
                np.testing.assert_allclose(fitted, [a, 1 / scale], rtol=1e-5)
            assert lengthscale.shape == (sets[i].dim, 2) and (lengthscale == lengthscale[0]).all()
            # the first fit in BO starts where Step 1 does (sheet §2.4)
            begin = Parameters(*(np.asarray(v[seed]) for v in jax.vmap(of_gp)(params.gp)))
            assert begin.constant == 1.0
            np.testing.assert_allclose(begin.lengthscale, np.full(sets[i].dim, 1.3132617), rtol=1e-6)
            assert (begin.variance, begin.noise) == pytest.approx((0.6931472, 0.0181499), rel=1e-5)


@pytest.mark.parametrize("method", ["mphd", "mphd_squashed"])
@pytest.mark.parametrize("spaces", [None, "others"])
def test_a_network_is_trained_on_the_pool_and_nothing_else(sets, method, spaces):
    fits = fits_of(sets)
    found = across(method, sets, fits, spaces)
    shared = across("mphd_non_nn", sets, fits, spaces)
    target, seed = 1, 1
    params, log = found[target]
    chosen = [j for j in range(len(sets)) if spaces is None or j != target]
    context = np.concatenate([of_space(sets[j].described) for j in chosen])
    values = np.concatenate([np.asarray(jax.vmap(of_gp)(fits[j].params).lengthscale[seed]) for j in chosen])
    settings = spec(method)["pretrain"]
    network = prior_network.make(stream(0, "lengthscale prior", seed), tuple(settings["hidden"]), settings["output"])
    sizes = {"steps": settings["steps"], "learning_rate": settings["learning_rate"]}
    every = jnp.ones(len(values), bool)
    trained, expected = prior_network.train(network, jnp.asarray(context), jnp.asarray(values), every, **sizes)
    own = trained(jnp.asarray(of_space(sets[target].described)))
    np.testing.assert_allclose(numbers(params, seed)[1], own, rtol=1e-6)
    np.testing.assert_allclose(log.loss[seed], expected.loss, rtol=1e-9)
    assert log.loss.shape == (SEEDS, settings["steps"]) and (np.asarray(log.stopped) == -1).all()
    # constants and variances are as without a network
    for i in (0, 2, 3):
        np.testing.assert_array_equal(numbers(params, seed)[i], numbers(shared[target][0], seed)[i])
    # the discrete input of this space has another prior than its others, which are alike
    rows = numbers(params, seed)[1]
    assert not np.allclose(rows[0], rows[1]) and np.allclose(rows[1], rows[-1])


@pytest.mark.parametrize("method", ["mphd", "mphd_non_nn"])
def test_a_new_space_does_not_learn_from_itself(sets, method):
    fits = fits_of(sets)
    for spaces in (None, "others"):
        before, after = (across(method, sets, f, spaces) for f in (fits, changed(fits, 2)))
        for i, ((a, _), (b, _)) in enumerate(zip(before, after, strict=True)):
            same = all(np.array_equal(x, y) for x, y in zip(numbers(a), numbers(b), strict=True))
            assert same == (spaces == "others" and i == 2)


@pytest.mark.parametrize("spaces", [None, "others"])
@pytest.mark.parametrize("method", ["mphd", "mphd_non_nn"])
def test_an_unseen_space_feeds_no_prior_but_has_one(sets, method, spaces):
    sets, fits = [replace(one, unseen=i == 3) for i, one in enumerate(sets)], fits_of(sets)
    before, after = (across(method, sets, f, spaces) for f in (fits, changed(fits, 3)))
    for (a, _), (b, _) in zip(before, after, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(numbers(a), numbers(b), strict=True))
    # it is as if the space were new (§2.5)
    unseen = across(method, [replace(one, unseen=False) for one in sets], fits, "others")[3][0]
    for x, y in zip(numbers(before[3][0], 1), numbers(unseen, 1), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_spaces_with_the_same_context_have_the_same_prior(sets):
    twin = [replace(sets[0], described=SearchSpace("twin", sets[2].described.parameters), dim=sets[2].dim), *sets[1:]]
    fits = fits_of(twin)
    (one, _), _, (other, _), _ = across("mphd", twin, fits)
    for a, b in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_array_equal(a, b)


SETTINGS = {"steps": 7, "learning_rate": 3e-3, "hidden": [5], "output": "squashed"}


def test_every_setting_of_the_network_has_a_case():
    assert set(registry.method("mphd").pretrain) == set(SETTINGS)


@pytest.mark.parametrize("key", SETTINGS)
def test_settings_of_the_network_change_lengthscales_only(sets, key):
    fits = fits_of(sets)
    one, other = (across("mphd", sets, fits, pretrain=p)[0] for p in ({}, {key: SETTINGS[key]}))
    assert [np.array_equal(a, b) for a, b in zip(numbers(one[0]), numbers(other[0]), strict=True)] == [
        True, False, True, True,
    ]  # fmt: skip
    if key == "steps":
        np.testing.assert_allclose(other[1].loss, one[1].loss[:, :7], rtol=1e-9)


def test_initial_values_and_kernel_reach_the_fits_of_bo(sets):
    model = {"initial": {"constant": -0.5}, "kernel": "matern32"}
    (params, _), *_ = across("mphd_non_nn", sets, fits_of(sets), model=model)
    assert params.gp.mean.value.tolist() == [-0.5, -0.5] and params.gp.kernel.shape == "matern32"


# Step 1 -----------------------------------------------------------------------------------------------------------


def test_permuting_rows_leaves_the_likelihood_of_step_1(sets):
    # Claim M31: MPHD reads unordered evaluations.
    rng = np.random.default_rng(0)
    for one, fit in zip(sets[:2], fits_of(sets), strict=False):
        gp = jax.tree.map(lambda leaf: leaf[0], fit.params)
        rows = [jnp.asarray(part) for part in one.rows]
        order = np.stack([rng.permutation(rows[1].shape[1]) for _ in rows[1]])
        mixed = [part[np.arange(len(order))[:, None], order] for part in rows]
        assert (mixed[1] != rows[1]).any()
        assert float(nll(gp, *mixed)) == pytest.approx(float(nll(gp, *rows)), rel=0, abs=1e-9)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (lambda g: g.mean.value, "constant mean"),
        (lambda g: g.kernel.raw_lengthscale, "lengthscale"),
        (lambda g: g.kernel.raw_variance, "signal variance"),
        (lambda g: g.raw_noise, "noise variance"),
    ],
)
def test_an_estimate_that_is_not_finite_ends_the_job(sets, place, name):
    fits = fits_of(sets)
    leaf = place(fits[1].params)
    broken = eqx.tree_at(place, fits[1].params, leaf.at[(1,) + (0,) * (leaf.ndim - 1)].set(jnp.nan))
    with pytest.raises(NumericsError, match=f"Step 1 of space '{sets[1].space}': the {name} is nan"):
        across("mphd_non_nn", sets, [fits[0], replace(fits[1], params=broken), *fits[2:]])


def test_an_estimate_beyond_its_limits_counts_and_is_named(sets):
    fits = fits_of(sets)
    plain = across("mphd_non_nn", sets, fits)
    assert step1.remarks(sets, fits) == []
    low = eqx.tree_at(lambda g: g.raw_noise, fits[2].params, jnp.asarray([-40.0, -3.0]))
    stopped = np.array([-1, 5])
    changed = [*fits[:2], replace(fits[2], params=low, stopped=stopped), fits[3]]
    found = across("mphd_non_nn", sets, changed)
    alone = replace(sets[1], present=np.arange(sets[1].present.shape[-1]) < np.ones_like(sets[1].present[..., :1]))
    assert step1.remarks([sets[0], alone, *sets[2:]], changed) == [
        f"step 1, space '{sets[1].space}': one training task, its GP is that of one function",
        f"step 1, space '{sets[2].space}': 1 of 2 estimates of the noise variance below 1e-06",
        f"step 1, space '{sets[2].space}', seed 1: training stopped at step 5, which was not finite",
    ]
    noises = [float(jax.vmap(of_gp)(fit.params).noise[0]) for fit in fits]
    assert numbers(found[0][0])[3] == pytest.approx(fit_gamma(np.array([*noises[:2], 1e-10, noises[3]])), rel=1e-6)
    assert numbers(plain[0][0])[3][0] > 5 * numbers(found[0][0])[3][0]


def test_training_on_functions_without_noise_gives_estimates_that_are_named(sets):
    # Step 1's own settings at the default scale; the second input changes nothing, so no length-scale is too long.
    x = np.random.default_rng(0).random((2, 40, 2))
    rows = rows_.Rows(jnp.asarray(x), jnp.sin(3.0 * x[..., 0] + jnp.arange(2.0)[:, None]), jnp.ones((2, 40), bool))
    start = build(plain(registry.method("base_gp").model), 2, stream(0))
    sizes = {"steps": 2000, "learning_rate": 1e-2, "batch": 40, "per_shuffle": 1}
    gp, _ = jax.jit(lambda key: pretrain.adam(start, rows, jnp.arange(2), jnp.ones(2, bool), key, **sizes))(stream(1))
    fit = replace(fits_of(sets)[0], space="smooth", params=jax.tree.map(lambda leaf: leaf[None], gp))
    said = "step 1, space 'smooth': 1 of 1 estimates of the noise variance below 1e-06"
    assert step1.remarks([], [fit]) == [said]
    long = eqx.tree_at(lambda g: g.kernel.raw_lengthscale, fit.params, jnp.asarray([[31.0, 1.0]]))
    assert "1 of 2 estimates of the lengthscale above 30" in step1.remarks([], [replace(fit, params=long)])[0]


def test_fits_that_do_not_belong_to_the_sets_are_refused(sets):
    fits = fits_of(sets)
    two_folds = replace(fits[0], folds=fits[0].folds * 2, stopped=np.full(4, -1))
    cases = [
        (None, r"needs a fit of each space .*; got \[\]"),
        (fits[:3], "needs a fit of each space"),
        ([fits[1], fits[0], *fits[2:]], "needs a fit of each space"),
        ([replace(fits[0], dim=99), *fits[1:]], "99"),
        ([two_folds, *fits[1:]], f"space '{sets[0].space}': 2 folds, 2 seeds; needs one fold"),
        ([replace(fits[0], stopped=np.full(3, -1)), *fits[1:]], "1 folds, 3 seeds; needs one fold .* and 2 seeds"),
    ]
    for given, message in cases:
        with pytest.raises(DataError, match=message):
            across("mphd", sets, given)


@pytest.mark.parametrize("method", ["mphd", "mphd_non_nn"])
def test_too_few_spaces_say_how_many_there_are(sets, method):
    fits = fits_of(sets)
    with pytest.raises(DataError, match="among 1 from 1 space; pre-train on two spaces"):
        across(method, sets[:2], fits[:2], "others")
    unseen = [replace(one, unseen=True) for one in sets]
    with pytest.raises(DataError, match="fewer than two different estimates among 0"):
        across(method, unseen, fits)


# Known priors -----------------------------------------------------------------------------------------------------


def test_hand_specified_and_flat_priors_are_the_papers(sets):
    # mphd App. E.2, by hand
    hand, flat = known("hgp_hand", sets[0]), known("hgp_flat", sets[0])
    assert [n.tolist() for n in numbers(hand, 1)] == [
        [0.5, 0.5], [[1.0, 0.1]] * sets[0].dim, [1.0, 5.0], [1.0, 100.0],
    ]  # fmt: skip
    assert [n.tolist() for n in numbers(flat, 1)] == [
        [0.0, 1.0], [[1e-5, 30.0]] * sets[0].dim, [1e-5, 1.0], [1e-5, 0.1],
    ]  # fmt: skip
    assert (hand.prior.kind, flat.prior.kind) == ("gamma", "uniform")
    assert hand.gp.mean.value.tolist() == [1.0, 1.0] and flat.gp.mean.value.tolist() == [0.5, 0.5]
    for params in (hand, flat):
        first = jax.tree.map(lambda leaf: leaf[0], params)
        assert np.isfinite(float(first.prior.log_density(first.gp)))


def test_the_truth_is_the_benchmarks(sets, data):
    for one in sets:
        truth = data.facts.truth[one.space]
        constant, lengthscale, variance, noise = numbers(known("hgp_truth", one), 1)
        assert constant.tolist() == truth["prior"]["constant"] and noise.tolist() == truth["prior"]["noise"]
        assert variance.tolist() == truth["prior"]["variance"]
        assert lengthscale.tolist() == [truth["prior"]["lengthscale"]] * one.dim
        gp = known("gp_truth", one)
        assert isinstance(gp, GP) and gp.kernel.shape == "matern52"
        for value, name in zip(jax.vmap(of_gp)(gp), Parameters._fields, strict=True):
            np.testing.assert_allclose(value[1], truth["parameters"][name], rtol=1e-6)


@pytest.mark.parametrize("method", ["hgp_truth", "gp_truth"])
def test_without_a_truth_the_space_is_named(sets, method):
    with pytest.raises(DataError, match=f"space '{sets[0].space}': method '{method}' needs the parameters"):
        known(method, replace(sets[0], truth=None))


def test_a_fit_cannot_start_outside_the_support(sets):
    with pytest.raises(ConfigError, match=r"outside the support .*'methods\.hgp_flat\.model\.initial'"):
        known("hgp_flat", sets[0], model={"initial": {"constant": 1.2}})


RANGES = plain(registry.method("hgp_flat").model["hyperparameters"])


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("mphd", {"prior": "networks"}, "unknown prior 'networks'. Did you mean 'network'"),
        ("mphd", {"mean": "zero"}, "got mean 'zero'"),
        ("hgp_hand", {"kernel": "dot_product"}, "kernel 'dot_product'"),
        ("gp_truth", {"features": [4]}, r"features \[4\]"),
        ("mphd", {"hyperparameters": RANGES}, "prior 'network' reads hyperparameters of nothing; got constant, length"),
        ("hgp_flat", {"hyperparameters": {"constant": [0, 1]}}, "reads .* constant, lengthscale, noise, variance; got"),
        ("hgp_flat", {"hyperparameters": RANGES | {"noise": [0.1, 0.1]}}, r"of the noise has .*\[0.1, 0.1\]"),
        ("hgp_flat", {"hyperparameters": RANGES | {"variance": [0.0, 1.0]}}, "'uniform': no .* of the variance"),
        ("hgp_hand", {"hyperparameters": RANGES | {"variance": [0.0, 1.0]}}, r"of the variance has .*\[0.0, 1.0\]"),
        ("hgp_hand", {"hyperparameters": RANGES | {"constant": [0.0, 0.0]}}, "of the constant has"),
        ("hgp_hand", {"hyperparameters": RANGES | {"lengthscale": [1.0]}}, "of the lengthscale has"),
    ],
)
def test_models_that_make_no_sense_are_refused(method, change, message):
    model = plain(registry.method(method).model) | change
    with pytest.raises(ConfigError, match=message):
        hierarchical.start(model, 2, 3, jax.random.key(0))


def test_a_known_prior_is_not_learned(sets):
    with pytest.raises(ConfigError, match="prior 'gamma' is not learned across spaces"):
        across("hgp_hand", sets, fits_of(sets))


def test_numbers_of_a_given_prior_reach_it(sets):
    other = {"constant": [0.1, 0.2], "lengthscale": [3.0, 4.0], "variance": [5.0, 6.0], "noise": [7.0, 8.0]}
    found = numbers(known("hgp_hand", sets[0], model={"hyperparameters": other}))
    assert [found[0].tolist(), found[1][0].tolist(), *(n.tolist() for n in found[2:])] == list(other.values())


@pytest.mark.parametrize("method", HIERARCHICAL)
def test_priors_survive_saving(sets, method, tmp_path):
    given = spec(method, "others" if method in LEARNED else None)
    if method in LEARNED:
        trained = across(method, sets, fits_of(sets), "others")
    else:
        trained = [(known(method, one), None) for one in sets]
    stored = [priors.of_training(one, *result) for one, result in zip(sets, trained, strict=True)]
    priors.save(tmp_path / "p.npz", given, stored)
    again_spec, again = priors.load(tmp_path / "p.npz")
    assert again_spec == given
    for one, other in zip(stored, again, strict=True):
        assert jax.tree.structure(one.params) == jax.tree.structure(other.params)
        for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True):
            np.testing.assert_array_equal(a, b)
        assert other.seeds == SEEDS
