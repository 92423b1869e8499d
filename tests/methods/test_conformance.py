"""Every registered method keeps the protocol, on tasks with one point, one value, and repeated inputs."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import priors
from metabo.compute import mapping
from metabo.errors import DataError
from metabo.methods.random.policy import Nothing
from metabo.plan import config, registry, runs
from metabo.plan.runs import SCORED
from metabo.records import results
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.training_set import training_sets
from tests import tiny

EVERY = tiny.METHODS  # variants of a method differ from it in settings only
# Methods that learn from several spaces, or from the truth, are tested in hierarchical/test_policy.py.
METHODS = [m for m in EVERY if not (registry.made_of(m).across_spaces or registry.method(m).needs_truth)]
LEARNERS = [method for method in METHODS if registry.method(method).pretrain]
CLUSTERED = [m for m in METHODS if registry.made_of(m).pretrain == "methods.source_gps.clusters"]
FITTED = [
    m for m in METHODS if registry.made_of(m).pretrain == "methods.source_gps.rgpe"
]  # GPs of the sources, without weights
# These begin where their prior is best. What is random is the start of k-means, which two tasks do not need, and the
# order of candidates that past tasks rank alike, of which there are none.
WITHOUT_CHANCE = [*CLUSTERED, "rm_gp_ucb", "portfolio", "mean_rank", "mean_z"]
NOTHING = ("methods.random.policy", "methods.random.once")  # trainings that give no parameters
UNTRAINED = [name for name in EVERY if registry.made_of(name).pretrain in NOTHING]
PAPER = ["rand", "stbo", "stboh", "ablr", "fsbo", "h_nll", "h_ekl"]  # hyperbo §7.2
QUICK = ["rand", "h_nll", "h_ekl"]  # in the fast set where a test compiles a lot
QUICK_OR_SLOW = [
    name if name in (*QUICK, "stboh", "portfolio") else pytest.param(name, marks=pytest.mark.slow) for name in METHODS
]
TESTED = {"a": 14, "flat": 8, "point": 1}  # the test tasks and their candidates


@pytest.mark.parametrize("method", EVERY)
def test_registered_entry_is_complete(method):
    entry = registry.method(method)
    assert entry.acquisition in runs.ACQUISITIONS
    training = "pretrain_across" if registry.made_of(method).across_spaces else "pretrain"
    assert all(callable(getattr(registry.training_module(method), name)) for name in ("start", training))
    assert entry.fits in (None, *LEARNERS)
    assert callable(registry.policy_module(method).policy)


def test_labels_and_settings_of_the_paper():
    entries = {name: registry.method(name) for name in PAPER}
    assert [entries[name].label for name in PAPER] == ["Rand", "STBO", "STBOH", "ABLR", "FSBO", "H-NLL", "H-EKL"]
    assert len({registry.method(name).colour for name in EVERY}) == len(EVERY)
    assert [name for name in PAPER if entries[name].needs_matched] == ["h_ekl"]
    models = {name: tuple(entries[name].model.get(k) for k in ("mean", "kernel", "features")) for name in PAPER}
    assert models == {
        "rand": (None, None, None),
        "stbo": ("linear_mlp", "matern52", (32, 32)),
        "stboh": ("constant", "matern52", ()),
        "ablr": ("zero", "dot_product", (32, 32)),
        "fsbo": ("zero", "matern52", (32, 32)),
        "h_nll": ("linear_mlp", "matern52", (32, 32)),
        "h_ekl": ("linear_mlp", "matern52", (32, 32)),
    }
    default = config.load(Path(__file__).parents[2])
    for name, rate in (("ablr", 1e-2), ("fsbo", 3e-3), ("h_nll", 3e-3)):
        settings = config.pretrain_spec(default, "tables", "held_out", name).pretrain
        assert (settings["objective"], settings["learning_rate"], settings["batch"]) == ("nll", rate, 50)
    assert entries["h_ekl"].pretrain["objective"] == "ekl"
    assert all(entries[name].policy["pi_threshold"] == 0.1 for name in PAPER[3:])
    assert entries["stbo"].policy["pi_threshold"] == 0.1
    assert [entries[name].acquisition for name in PAPER] == ["uniform", "pi", "ucb18", "pi", "pi", "pi", "pi"]


def test_programs_are_counted_once_and_those_of_other_shapes_apart(programs):
    for length, count in ((3, 1), (3, 1), (4, 2)):
        mapping.one_by_one(_doubled, jnp.arange(length), (), "numbers")
        assert len(programs) == count


def _doubled(entry):
    return 2 * entry


@pytest.mark.parametrize("method", QUICK_OR_SLOW)
def test_protocol(method, lab, programs):
    spec = tiny.spec(method, seed=1)  # the other seed of a test below
    lab.prior(spec)
    programs.clear()
    table = results.check(lab.table_anew(spec))
    assert len(programs) == 1, "all tasks, priors and seeds are one compiled program"
    assert len(table) == len(TESTED) * 2 * 2 * spec["iterations"]
    assert table["ok"].all()
    for (task, _, _), run in table.groupby(["task", "prior_seed", "seed"]):
        assert run["iteration"].tolist() == [1, 2, 3, 4, 5, 6]
        assert run["candidate"].between(0, TESTED[task] - 1).all()  # padding is never selected
        data = lab.benchmark.tasks[task]
        np.testing.assert_array_equal(run["y"], data.y[run["candidate"]])
        np.testing.assert_array_equal(run["metric"], data.metric[run["candidate"]])
        assert (np.diff(run["simple_regret"]) <= 0).all() and (run["simple_regret"] >= 0).all()
    own = method in UNTRAINED and registry.method(method).acquisition not in SCORED  # what is scored is predicted
    if not own or table[["mean", "std"]].notna().any(axis=None):
        assert np.isfinite(table[["mean", "std"]]).all(axis=None) and (table["std"] > 0).all()
    assert (table.loc[table["task"].isin(["flat", "point"]), "normalised_regret"] == 0).all()


@pytest.mark.parametrize("method", QUICK_OR_SLOW)
def test_prior_survives_saving(method, lab, tmp_path):
    spec = tiny.spec(method)
    prior = lab.prior(spec)
    assert prior.params is not None and prior.folds == lab.benchmark.splits["held_out"]
    pairs = 4
    leaves = jax.tree.leaves(prior.params)
    assert leaves and all(leaf.shape[0] == pairs and np.isfinite(leaf).all() for leaf in leaves)
    assert isinstance(prior.params, Nothing) == (method in UNTRAINED)
    priors.save(tmp_path / "p.npz", spec, [prior])
    again_spec, (again,) = priors.load(tmp_path / "p.npz")
    assert again_spec == spec
    for a, b in zip(leaves, jax.tree.leaves(again.params), strict=True):
        np.testing.assert_array_equal(a, b)
    if method in CLUSTERED:  # their loss is the trace of k-means
        assert prior.loss.shape == (pairs, 50) and np.isfinite(prior.loss).all()
    elif method in LEARNERS:
        steps = spec["pretrain"].get("em_steps", spec["pretrain"]["steps"])
        assert prior.loss.shape == (pairs, steps) and np.isfinite(prior.loss).all()
        if method == "h_ekl":  # the same loss at every step, so it must fall
            assert (prior.loss[:, -1] < prior.loss[:, 0]).all()
        if method not in FITTED:
            assert len(np.unique(prior.loss[:, 0])) == pairs  # every fold and seed starts from its own weights
    else:
        assert prior.loss.shape == (pairs, 0)
    assert (prior.stopped == -1).all()


@pytest.mark.parametrize(
    "method", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_same_seed_same_results_other_seed_other_results(method, lab):
    spec, other = tiny.spec(method), tiny.spec(method, seed=1)
    first, again = lab.prior(spec), lab.train(spec)
    for a, b in zip(jax.tree.leaves(first.params), jax.tree.leaves(again.params), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(first.loss, again.loss)
    assert lab.run(spec).equals(lab.table(spec))
    if method not in (*UNTRAINED, "stboh", "hgp_hand", "hgp_flat", "gp32", *CLUSTERED, *FITTED):
        # the others have no random parameters, or random clusters only
        apart = [
            np.abs(a - b).max()
            for a, b in zip(jax.tree.leaves(first.params), jax.tree.leaves(lab.prior(other).params), strict=True)
        ]
        assert max(apart) > (1e-3 if method != "base_gp" else 0)  # base_gp: mini-batches only are random
    runs, others = lab.table(spec), lab.table(other)
    on_a = runs["task"] == "a"
    apart = (runs.loc[on_a, "candidate"] != others.loc[on_a, "candidate"]).any()
    assert apart != (method in WITHOUT_CHANCE)


@pytest.mark.parametrize("method", [m for m in METHODS if registry.made_of(m).pads_inputs])
def test_bo_with_wider_inputs_selects_the_same(method, lab):
    """As where another space of the benchmark has more inputs."""
    spec = tiny.spec(method)
    own, wide = lab.table(spec), lab.run(spec, width=4)
    np.testing.assert_array_equal(own["candidate"], wide["candidate"])
    np.testing.assert_allclose(own["mean"], wide["mean"], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", ["rand", "h_nll"])
def test_a_longer_run_begins_like_a_shorter_one(method, lab):
    short, long = lab.table(tiny.spec(method)), lab.table(tiny.spec(method, iterations=9))
    begin = long[long["iteration"] <= 6].reset_index(drop=True)
    assert begin["candidate"].tolist() == short["candidate"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["h_nll", "h_ekl"])
def test_priors_side_by_side_equal_priors_one_by_one(method, lab):
    spec = tiny.spec(method)
    one, wide = lab.prior(spec), lab.train(spec, accelerator=True)
    np.testing.assert_allclose(wide.loss, one.loss, rtol=1e-5)
    for a, b in zip(jax.tree.leaves(wide.params), jax.tree.leaves(one.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_h_ekl_without_matched_data_names_the_fold(lab):
    base = lab.benchmark
    bare = Benchmark("bare", base.spaces, base.tasks, (), base.splits)
    (training,) = training_sets(bare, "held_out", seeds=2)
    module = registry.training_module("h_ekl")
    keys = jax.random.split(jax.random.key(0), (2, 2))
    with pytest.raises(DataError, match=r"fold 'without a' of space 'plane': no matched inputs"):
        module.pretrain(tiny.spec("h_ekl"), training, keys, False)
