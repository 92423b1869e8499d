"""The stage `pretrain` for methods that train across spaces: what they are given, and priors that do not belong."""

from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import priors
from metabo.errors import DataError
from metabo.gp.fit import Log
from metabo.plan import registry
from metabo.plan.method import Method
from metabo.plan.specs import PretrainSpec
from metabo.plan.typed import read
from metabo.stages import pretrain as stage
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.training_set import prior_keys, training_sets
from tests import tiny
from tests.methods.hierarchical import cases as domains

SEEDS = 2


def typed(spec: dict) -> PretrainSpec:
    """The spec as the stage takes it, of one that has more."""
    fields = ("benchmark", "split", "past", "method", "seed", "seeds", "model", "pretrain", "fits")
    return read(PretrainSpec, {key: spec[key] for key in fields if key in spec}, "pretrain")


def benchmark():
    """Two spaces: the tiny one, and one of three dimensions."""
    base = tiny.benchmark()
    wide = {}
    for name in "pq":
        made = tiny.task(name, np.random.default_rng(ord(name)).uniform(size=(4, 3)), [1.0, 2.0, 3.0, 2.5])
        wide[name] = replace(made, space="wide")
    spaces = base.spaces | {"wide": SearchSpace("wide", tuple(Parameter(n, "linear", 0.0, 1.0) for n in "xyz"))}
    folds = (*base.split("held_out"), Fold("wide", "wide", ("p",), ("q",)))
    return Benchmark("two", spaces, base.tasks | wide, (), {"held_out": folds}, facts=Facts(unseen=("wide",)))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The specification of `h_nll` and the file of its priors on that benchmark."""
    folder = tmp_path_factory.mktemp("first")
    spec = tiny.spec("h_nll", seeds=SEEDS, pretrain={"steps": 3})
    benchmark().save(folder / "data.npz")
    stage.work(Namespace(in_data=str(folder / "data.npz"), out=str(folder / "fits.npz")), typed(spec))
    return spec, str(folder / "fits.npz")


@pytest.fixture
def across(tmp_path, monkeypatch, first):
    """Return a function that trains a method, registered as training across spaces, from the priors of another."""
    data, (spec_of_first, fits) = str(tmp_path / "data.npz"), first
    benchmark().save(data)
    calls = []

    def pretrain_across(spec, sets, keys, stored, accelerator):
        calls.append(SimpleNamespace(spec=spec, sets=sets, keys=keys, fits=stored, accelerator=accelerator))
        pairs = [k.size for k in keys]
        return [
            ({"number": np.full((n, 1), i + 1.0)}, Log(np.full((n, 2), 7.0), np.full(n, -1)) if i else None)
            for i, n in enumerate(pairs)
        ]

    def remarks(sets, stored):
        return [f"{one.space}: {fit.seeds}" for one, fit in zip(sets, stored, strict=True)]

    module = SimpleNamespace(pretrain_across=pretrain_across, start=lambda *_: {"number": jnp.zeros(1)})
    module_of = registry.training_module
    parts = Method("methods.pretrained.train", across_spaces=True, remarks="here")
    monkeypatch.setattr(registry, "made_of", lambda name: parts)
    monkeypatch.setattr(registry, "function", lambda dotted: {"here": remarks}[dotted])
    monkeypatch.setattr(registry, "training_module", lambda name: module if name == "mphd" else module_of(name))

    def train(given: str | None = fits, **changes):
        spec = spec_of_first | {"method": "mphd", "past": {"base": "held_out", "spaces": "others"}} | changes
        outcome = stage.work(Namespace(in_data=data, in_fits=given, out=str(tmp_path / "out.npz")), typed(spec))
        return outcome, calls[-1], priors.load(str(tmp_path / "out.npz"))[1]

    return SimpleNamespace(train=train, data=data)


def test_it_is_given_all_spaces_with_their_keys_and_stored_priors(across):
    outcome, call, stored = across.train(fits="h_nll")
    wanted = training_sets(benchmark(), "held_out", seeds=SEEDS)
    assert [s.space for s in call.sets] == [f.space for f in call.fits] == ["plane", "wide"]
    assert [s.unseen for s in call.sets] == [False, True] and call.accelerator is False
    for fit, training, keys in zip(call.fits, wanted, call.keys, strict=True):
        assert fit.folds == training.folds and fit.dim == training.dim and fit.seeds == SEEDS
        expected = prior_keys(training, 0, SEEDS)
        assert (jax.random.key_data(keys) == jax.random.key_data(expected)).all()
        assert keys.shape == (len(training.folds), SEEDS)
    assert call.spec["past"]["spaces"] == "others"
    assert [p.params["number"].tolist() for p in stored] == [[[1.0]] * 4, [[2.0]] * 2]
    assert [s["loss_last"] for s in outcome["training"]] == [[], [7.0, 7.0]]
    assert outcome["remarks"] == [f"plane: {SEEDS}", f"wide: {SEEDS}"]


def test_without_the_key_it_starts_from_nothing(across):
    outcome, call, _ = across.train(given=None)
    assert call.fits is None and outcome["remarks"] == []


def test_missing_or_strange_priors_are_refused(across):
    with pytest.raises(DataError, match="method 'mphd' starts from the priors of 'h_nll'; give them by --in-fits"):
        across.train(given=None, fits="h_nll")
    with pytest.raises(DataError, match=r"fits\.npz: priors of other folds or seeds .*with as many seeds \(3\)"):
        across.train(fits="h_nll", seeds=3)
    changed = benchmark()
    folds = (*changed.split("held_out")[:2], Fold("wide", "wide", ("q",), ("p",)))
    replace(changed, splits={"held_out": folds}).save(across.data)
    with pytest.raises(DataError, match="priors of other folds or seeds"):
        across.train(fits="h_nll")


def test_step_2_of_mphd_reads_the_file_of_step_1(tmp_path):
    data, path = domains.benchmark(), str(tmp_path / "data.npz")
    data.save(path)
    fits, out = str(tmp_path / "fits.npz"), str(tmp_path / "out.npz")
    stage.work(Namespace(in_data=path, in_fits=None, out=fits), typed(domains.spec("base_gp", pretrain={"steps": 3})))
    second = domains.spec("mphd", "others") | {"fits": "base_gp"}
    stage.work(Namespace(in_data=path, in_fits=fits, out=out), typed(second))
    expected = domains.across("mphd", domains.training_sets(data), priors.load(fits)[1], "others")
    for stored, (params, log) in zip(priors.load(out)[1], expected, strict=True):
        np.testing.assert_allclose(stored.loss, log.loss, rtol=1e-12)
        for a, b in zip(jax.tree.leaves(stored.params), jax.tree.leaves(params), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
