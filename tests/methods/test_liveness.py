"""Every registered setting is alive: changing it changes what it should, and nothing that must ignore it."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import ConfigError
from metabo.plan import registry
from tests import tiny

LEARNERS = ["ablr", "fsbo", "h_nll", "h_ekl"]

# Setting -> another value; settings that must be refused are in REFUSED instead.
MODEL = {
    "mean": ["linear_mlp", "zero"],  # an untrained constant mean is zero, too
    "kernel": ["matern32", "matern52"],
    "features": [[5]],
    "initial": [{"constant": 1.0, "lengthscale": 0.3}],
}
"""Values, the first of which that a method does not have is tried."""
PRETRAIN = {"learning_rate": 3e-3, "decay": 0.1, "steps": 7, "batch": 3, "matched_points": 4}
POLICY = {"pi_threshold": 1.5, "refit_steps": 2, "use_prior": False}
REFUSED = {
    "pretrain": {"objective": ["ekl", "nlll"]},
    "model": {"mean": ["linear", "zero"], "kernel": ["matern", "squared_exponential"]},
}
HERE = ("pretrained", "single_task")


def registered(section):
    """All (method, setting) pairs of one section, of GPs that are trained by a likelihood or a divergence, or at each
    query; other families have their cases in a folder of their own."""
    methods = {method: getattr(registry.method(method), section) for method in tiny.METHODS if family(method) in HERE}
    return [(method, key) for method, settings in methods.items() for key in settings]


def family(method):
    """The package below `methods` that a method's training is in."""
    return registry.made_of(method).pretrain.split(".")[1]


def quick(cases, fast):
    """Mark the cases slow that are not `fast`: the same code under another method's name."""
    return [
        case if case in fast else pytest.param(*np.atleast_1d(case).tolist(), marks=pytest.mark.slow) for case in cases
    ]


@pytest.mark.parametrize("method", tiny.METHODS)
def test_a_family_with_settings_has_tests_of_its_own(method):
    entry, package = registry.method(method), registry.method(method).method.split(".")[1]
    settings = {**(entry.model or {}), **(entry.pretrain or {}), **(entry.policy or {})}
    own = Path(__file__).parent / package
    assert package in HERE or not settings or any(own.glob("test_*.py")), (
        f"settings of '{method}' have no case; write tests/methods/{package}/test_policy.py"
    )


def test_every_registered_setting_has_a_case():
    assert {key for _, key in registered("model")} == set(MODEL)
    assert {key for _, key in registered("pretrain")} == set(PRETRAIN) | set(REFUSED["pretrain"])
    assert {key for _, key in registered("policy")} == set(POLICY)


def prior_moments(method, model):
    """Mean and covariance of the untrained GP at three points."""
    gp = registry.training_module(method).start(model, 2, 3, jax.random.key(0))
    x = jnp.asarray([[0.1, 0.9], [0.4, 0.2], [0.7, 0.6]])
    phi = gp.features(x)
    return np.asarray(gp.mean(phi)), np.asarray(gp.kernel.gram(phi))


FIXED = [("base_gp", "mean"), *(pair for pair in registered("model") if pair[0] == "stboh")]


@pytest.mark.parametrize(("method", "key"), [pair for pair in registered("model") if pair not in FIXED])
def test_model_settings(method, key):
    model = tiny.spec(method)["model"]
    value = next(value for value in MODEL[key] if value != model[key])
    (mean, covariance), (other_mean, other_covariance) = (
        prior_moments(method, m) for m in (model, model | {key: value})
    )
    assert (mean != other_mean).any() == (key == "mean" or (key == "features" and model["mean"] == "linear_mlp"))
    assert (covariance != other_covariance).any() == (key != "mean")


@pytest.mark.parametrize("key", ["mean", "kernel"])
def test_model_settings_of_stboh_are_fixed_and_say_so(key):
    for value in REFUSED["model"][key]:
        model = tiny.spec("stboh")["model"] | {key: value}
        with pytest.raises(ConfigError, match=f"{key} '{value}'"):
            registry.training_module("stboh").start(model, 2, 3, jax.random.key(0))


def test_another_mean_than_base_gps_has_no_initial_constant_and_says_so():
    model = tiny.spec("base_gp")["model"] | {"mean": "zero"}
    with pytest.raises(ConfigError, match=r"unknown initial value of this mean and kernel 'constant'"):
        registry.training_module("base_gp").start(model, 2, 3, jax.random.key(0))


@pytest.mark.slow
def test_model_reaches_training_and_bo(lab):
    base, other = tiny.spec("fsbo"), tiny.spec("fsbo", model={"kernel": "matern32"})
    assert not np.allclose(lab.prior(base).loss, lab.prior(other).loss)
    assert not np.allclose(lab.table(base)["std"], lab.table(other)["std"])


def flat(prior):
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(prior.params)])


SETTINGS = [pair for pair in registered("pretrain") if pair[1] in PRETRAIN]


@pytest.mark.parametrize(("method", "key"), quick(SETTINGS, [p for p in SETTINGS if p[0] in ("h_nll", "h_ekl")]))
def test_pretrain_settings(method, key, lab):
    base = tiny.spec(method)
    prior = lab.prior(base)
    value = PRETRAIN[key] if (method, key) != ("h_ekl", "steps") else 3
    other = lab.prior(tiny.spec(method, pretrain={key: value}))
    assert (flat(prior) != flat(other)).any()
    if key == "steps":  # a shorter training is the beginning of a longer one
        assert other.loss.shape[1] == value
        np.testing.assert_allclose(other.loss, prior.loss[:, :value], rtol=1e-9)
    elif key == "learning_rate":
        np.testing.assert_allclose(other.loss[:, 0], prior.loss[:, 0], rtol=1e-12)
        assert (other.loss[:, 1:] != prior.loss[:, 1:]).all()
    elif key == "decay":  # the first step has the whole rate
        np.testing.assert_allclose(other.loss[:, :2], prior.loss[:, :2], rtol=1e-12)
        assert (other.loss[:, 2:] != prior.loss[:, 2:]).all()
    else:
        assert (other.loss[:, 0] != prior.loss[:, 0]).all()  # other data from the first step on


@pytest.mark.parametrize("method", LEARNERS)
def test_objectives_that_do_not_belong_to_the_settings_are_refused(method, lab):
    for value in REFUSED["pretrain"]["objective"]:
        value = "nll" if (method, value) == ("h_ekl", "ekl") else value
        with pytest.raises(ConfigError, match=f"objective '{value}'"):
            lab.train(tiny.spec(method, pretrain={"objective": value}))


@pytest.mark.parametrize(
    ("method", "foreign"), [("h_nll", {"matched_points": 4}), ("h_ekl", {"learning_rate": 3e-3, "batch": 3})]
)
def test_settings_of_other_methods_are_refused(method, foreign, lab):
    with pytest.raises(ConfigError, match=f"'methods.{method}.pretrain'.*reads.*got .*{next(iter(foreign))}"):
        lab.train(tiny.spec(method, pretrain=foreign))


@pytest.mark.slow
def test_more_prior_seeds_leave_the_first_ones_alone(lab):
    two, three = lab.prior(tiny.spec("h_nll")), lab.prior(tiny.spec("h_nll", seeds=3))
    assert three.loss.shape[0] == 6
    np.testing.assert_array_equal(three.loss[[0, 1, 3, 4]], two.loss)
    for a, b in zip(jax.tree.leaves(three.params), jax.tree.leaves(two.params), strict=True):
        np.testing.assert_array_equal(a[jnp.asarray([0, 1, 3, 4])], b)


def columns(table):
    return table[["task", "prior_seed", "seed", "iteration", "candidate", "y", "mean", "std"]]


@pytest.mark.parametrize("method", quick([m for m, key in registered("policy") if key == "pi_threshold"], ["h_nll"]))
def test_margin_changes_pi(method, lab):
    base, other = lab.table(tiny.spec(method)), lab.table(tiny.spec(method, policy={"pi_threshold": 1.5}))
    first = base["iteration"] == 1
    assert columns(base)[first].equals(columns(other)[first])  # nothing observed yet: no margin
    assert (base.loc[~first, "candidate"] != other.loc[~first, "candidate"]).any()


@pytest.mark.parametrize("acquisition", quick(["ei", "ucb18", "ucb3"], ["ucb18"]))
def test_margin_leaves_other_acquisitions_alone(acquisition, lab):
    base = lab.table(tiny.spec("h_nll", acquisition=acquisition))
    other = lab.table(tiny.spec("h_nll", acquisition=acquisition, policy={"pi_threshold": 1.5}))
    assert base.equals(other)
    assert (base["acquisition"] == acquisition).all()
    for slug in {"pi", "ucb18"} - {acquisition}:
        rest = lab.table(tiny.spec("h_nll", acquisition=slug))
        assert (base["candidate"] != rest["candidate"]).any()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "key"), [("stbo", "refit_steps"), ("stboh", "refit_steps"), ("stboh", "use_prior")])
def test_refit_settings(method, key, lab):
    base, other = lab.table(tiny.spec(method)), lab.table(tiny.spec(method, policy={key: POLICY[key]}))
    first = base["iteration"] == 1
    assert columns(base)[first].equals(columns(other)[first])  # nothing fitted yet
    assert (base.loc[~first, "std"] != other.loc[~first, "std"]).all()


def test_policy_settings_do_not_touch_the_priors(lab):
    before = len(lab.trained)
    lab.table(tiny.spec("h_nll"))
    trained = len(lab.trained)
    lab.table(tiny.spec("h_nll", policy={"pi_threshold": 1.5}))
    assert len(lab.trained) == trained and trained <= before + 1
