"""The prior of a user's studies is that of the experiments' pre-training; what cannot be learned is refused."""

import jax
import numpy as np
import pytest

from metabo.data.history import past
from metabo.errors import ConfigError
from metabo.plan import config, registry
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task
from metabo.tasks.training_set import prior_keys, training_sets
from metabo.tuner import learning
from tests.tuner.conftest import HEADER, SPACE, rows, write


def tasks_of(space: str, dim: int, count: int = 3, seed: int = 0) -> dict[str, Task]:
    out = {}
    for i in range(count):
        rng = np.random.default_rng([seed, dim, i])
        n = 6 + i
        x = rng.random((n, dim))
        y = np.sin(3 * x).sum(axis=1) + 0.1 * rng.normal(size=n)
        name = f"{space}: {i}"
        out[name] = Task(name, space, name, x, y, y, np.arange(n), np.zeros((0, dim)))
    return out


def space_of(name: str, dim: int) -> SearchSpace:
    return SearchSpace(name, tuple(Parameter(f"p{i}", "linear", 0.0, 1.0) for i in range(dim)))


class Described:
    """What learning reads of a description."""

    def __init__(self, name, dim):
        self.name, self.space, self.study = name, space_of(name, dim), "study"


def past_of(name: str, dim: int, **sizes) -> past.PastStudies:
    return past.PastStudies(Described(name, dim), tasks_of(name, dim, **sizes), past.Scale(0.0, 1.0, -2.0), [], [])


def test_sizes_are_those_of_the_default_scale():
    good = config.load().sizes
    for section, values in learning.SIZES.items():
        assert {key: good[section][key] for key in values} == values


@pytest.mark.parametrize("method", learning.METHODS)
def test_every_size_that_a_method_refers_to_is_there(method):
    specified = learning.specification(method, 0)
    assert specified["method"] == method and "@" not in str(specified)


def test_a_method_suggests_if_it_is_made_for_it_and_stands_for_itself():
    assert {"h_nll", "mphd", "mphd_non_nn", "hgp_hand", "stboh", "rand"} < set(learning.METHODS)
    others = {"h_ekl", "hgp_truth", "mphd_squashed", "h_nll_zero_4", "hyperbo", "maf", "rgpe", "h_nll_online"}
    assert others <= set(registry.methods()) and not others & set(learning.METHODS)
    assert {"stboh", "hgp_flat", "rand"} == {"stboh", "hgp_flat", "rand", "mphd"} - set(learning.LEARNS)


def test_every_method_that_suggests_is_registered_for_it():
    for name in learning.METHODS:
        entry = registry.method(name)
        assert name in registry.methods("policy") and not entry.needs_matched and not registry.made_of(name).uses_past
    assert set(learning.LEARNS) == {m for m in learning.METHODS if registry.method(m).pretrain} | {"mphd_non_nn"}


def test_the_prior_is_the_one_that_the_experiments_train(tmp_path):
    """A benchmark whose only fold trains on the same studies, and tests another, gives the same parameters."""
    one = past_of("s", 2)
    spec = learning.specification("h_nll", 3, steps=12)
    own, _ = learning.learn(spec, space_of("s", 2), [one])
    other = Task("new", "s", "new", np.ones((1, 2)), np.ones(1), np.ones(1), np.arange(1), np.zeros((0, 2)))
    fold = Fold(learning.ALL, "s", tuple(one.tasks), ("new",))
    tasks = {**one.tasks, "new": other}
    benchmark = Benchmark("b", {"s": space_of("s", 2)}, tasks, (), {"held_out": (fold,)})
    (training,) = training_sets(benchmark, "held_out", seed=3)
    params, log = registry.training_module("h_nll").pretrain(spec, training, prior_keys(training, 3, 1), False)
    for mine, theirs in zip(jax.tree.leaves(own.params), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert own.stopped.tolist() == [-1] and own.loss[0, -1] < own.loss[0, 0]
    np.testing.assert_allclose(own.loss, log.loss)


@pytest.mark.parametrize("method", ["mphd", "mphd_non_nn"])
def test_a_space_without_any_data_gets_a_prior_from_other_spaces(method):
    known = [past_of("a", 2), past_of("b", 2, seed=5)]  # of one shape: one program
    new, _ = learning.learn(learning.specification(method, 0, steps=15), space_of("new", 4), known)
    prior = jax.tree.map(lambda leaf: leaf[0], new.params).prior
    assert (new.space, new.dim) == ("new", 4) and prior.lengthscale.shape == (4, 2)
    assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(prior)])).all()
    again, _ = learning.learn(learning.specification(method, 0, steps=15), known[0].description.space, known)
    np.testing.assert_array_equal(again.of(0, 0).prior.variance, prior.variance)  # one Gamma for all spaces
    assert again.tasks == 3


def test_what_cannot_be_learned_is_refused_with_a_way_out():
    for method, target, known, parts in [
        ("h_nll", "s", [past_of("s", 2, count=1)], ["one usable past study, 's: 0'", "two at least", "stboh"]),
        ("h_nll", "t", [past_of("s", 2)], ["there is none of 't'", "--method mphd"]),
        ("mphd", "s", [past_of("s", 2)], ["histories of two at least", "--method h_nll"]),
    ]:
        with pytest.raises(ConfigError) as error:
            learning.learn(learning.specification(method, 0, 5), space_of(target, 2), known)
        for part in parts:
            assert part in str(error.value)
    with pytest.raises(ConfigError, match=r"unknown method 'h_nl'. Did you mean 'h_nll'?"):
        learning.specification("h_nl", 0)


def test_methods_that_learn_nothing_need_no_past():
    for method in set(learning.METHODS) - set(learning.LEARNS):
        prior, _ = learning.learn(learning.specification(method, 0), space_of("new", 2), [])
        assert prior.tasks == 1 and prior.loss.shape[1] == 0


def test_a_history_with_faults_in_two_files_stops_at_the_first(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    good = write(tmp_path / "good.csv", HEADER, rows())
    assert len(past.read_all([good], [tmp_path / "space.yaml"])[0].tasks) == 4


@pytest.mark.parametrize("steps", [10**18, 10**15])
def test_steps_without_end_are_refused_with_their_cost(steps):
    few = [past_of("a", 2)]
    learning.require_affordable(100_000, few)
    with pytest.raises(
        ConfigError, match=rf"steps is {steps}: on these past studies they would take about \S+ "
    ) as error:
        learning.require_affordable(steps, few)
    assert "years; give fewer, or leave it out (2,000)" in str(error.value)
