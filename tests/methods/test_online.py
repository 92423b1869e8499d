"""Online methods: mapped training data, the joint loss, re-training at every iteration, and the stages end to end."""

import json
import sys
from argparse import Namespace
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import priors
from metabo.bo.ask_tell import ask, begin, tell
from metabo.bo.evaluation import evaluate
from metabo.collect import pd1_mini
from metabo.data.pd1 import WARPS
from metabo.errors import ConfigError, DataError
from metabo.gp.fit import adam
from metabo.methods.pretrained.settings import read_objective
from metabo.methods.pretrained.train import joint_data, joint_loss
from metabo.plan import codegraph, config, registry
from metabo.plan.entries import BenchmarkEntry
from metabo.plan.specs import OnlineSpec, PretrainSpec
from metabo.plan.typed import read
from metabo.plots import look as looks
from metabo.records import results
from metabo.stages import online as online_stage
from metabo.stages import pretrain as pretrain_stage
from metabo.tasks.outputs import rescale
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import moments, prior_keys, sample_rows, training_sets
from tests import tiny_online
from tests.references import DenseGP, maximum_likelihood

METHODS, LEARNERS, GP_METHODS = tiny_online.METHODS, tiny_online.LEARNERS, tiny_online.GP_METHODS
BUDGET = 7
pytestmark = pytest.mark.usefixtures("lab")  # its compilation cache: equal programs are compiled once


# --- registration -----------------------------------------------------------------------------------------------------


def test_methods_and_settings_of_the_paper():
    assert set(METHODS) == {*GP_METHODS, "rand", "mimo_online", "rfgp_online"} and "h_nll_online" in GP_METHODS
    entries = {name: registry.method(name) for name in METHODS}
    assert all(entry.acquisition == "ucb18" for name, entry in entries.items() if name != "rand")
    for name in LEARNERS:
        assert entries[name].model == {"mean": "linear_mlp", "kernel": "matern32", "features": [8]}
        assert entries[name].pretrain["outputs"] == "mapped"
    assert entries["h_ekl_online"].pretrain["nll_weight"] == 0.1
    assert entries["stbo_online"].model == registry.method("stbo").model
    for name in GP_METHODS:
        assert looks.of(name) == looks.of(name.removesuffix("_online"))


@pytest.mark.parametrize("method", METHODS)
def test_registered_entry_is_complete(method):
    assert callable(registry.online_module(method).online)
    if method != "rand":
        with pytest.raises(ConfigError, match=f"method '{method}' has no policy; methods that have one: ablr"):
            registry.policy_module(method)


def test_a_job_depends_on_its_own_method_and_benchmark_only():
    def names(method):
        spec = {"method": method, "benchmark": "pd1_mini"}
        sources = codegraph.files(codegraph.stage_roots("online", spec))
        return {path.relative_to(codegraph.PACKAGE_ROOT).as_posix() for path in sources}

    shared = {"bo/ask_tell.py", "bo/online_runs.py", "tasks/outputs.py", "collect/pd1_mini.py", "data/pd1.py"}
    learned, single, random = names("h_nll_online"), names("stboh_online"), names("rand")
    assert all(shared <= listed for listed in (learned, single, random))
    assert {"methods/pretrained/online.py", "methods/pretrained/train.py"} <= learned - single - random
    assert {"methods/single_task/online.py", "methods/single_task/policy.py"} <= single - learned - random
    assert not {"bo/loop.py", "bo/fixed_prior.py", "bo/trajectories.py"} & (learned | random)
    with pytest.raises(ConfigError, match=r"benchmark 'tables' is a table: it cannot evaluate new points.*pd1_mini"):
        codegraph.stage_roots("online", {"method": "rand", "benchmark": "tables"})


def test_offline_specs_know_nothing_of_outputs():
    given = config.load(Path(__file__).parents[2])
    spec, own = config.pretrain_spec(given, "tables", "held_out", "h_nll"), given.pretrain
    assert spec.pretrain == {
        "objective": "nll", "learning_rate": own.learning_rate, "decay": own.decay, "batch": 50,
        "steps": own.adam_steps,
    }  # fmt: skip
    assert spec.seeds == own.seeds
    online = config.pretrain_spec(given, "tables", "held_out", "h_nll_online")
    assert online.seeds == given.online.seeds and online.pretrain["outputs"] == "mapped"


# --- training data ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def training():
    (only,) = training_sets(tiny_online.benchmark(), "others", "mapped", seeds=2)
    return only


def mapped(values):
    """The formula of hyperbo §7.5, plainly."""
    plus = lambda v: np.log1p(np.exp(v))  # noqa: E731
    return 4 * plus(values - np.median(values)) / plus(values.max() - np.median(values)) - 2


def test_training_rows_are_mapped_and_hold_the_diverged_inputs(training):
    benchmark = tiny_online.benchmark()
    names = list(dict.fromkeys(name for fold in training.folds for name in fold.train))
    lost = 0
    for i, name in enumerate(names):
        task, mask = benchmark.tasks[name], training.rows.mask[i]
        good, lost = len(task.y), lost + len(task.diverged)
        assert mask.sum() == training.counts[i] == good + len(task.diverged)
        np.testing.assert_allclose(training.rows.y[i][:good], mapped(task.y), rtol=1e-12)
        np.testing.assert_array_equal(training.rows.y[i][mask][good:], -2)
        np.testing.assert_array_equal(training.rows.x[i][mask], np.concatenate([task.x, task.diverged]))
    assert lost >= 3
    for fold, ((block,), again) in zip(training.folds, training.matched, strict=True):
        assert len(again) == 1 and again[0].tasks == block.tasks
        assert block.tasks == fold.train
        for column, name in zip(block.y.T, block.tasks, strict=True):
            task = benchmark.tasks[name]
            inputs = np.concatenate([task.x, task.diverged])
            outputs = np.concatenate([mapped(task.y), np.full(len(task.diverged), -2.0)])
            rows = [int(np.flatnonzero((inputs == x).all(axis=1))[0]) for x in block.x]
            np.testing.assert_allclose(column, outputs[rows], rtol=1e-12)


def test_raw_outputs_stay_as_they_are_and_other_names_are_refused():
    benchmark = tiny_online.benchmark()
    (raw,) = training_sets(benchmark, "others")
    for i, name in enumerate(("q", "text", "p")):
        np.testing.assert_array_equal(raw.rows.y[i][raw.rows.mask[i]], benchmark.tasks[name].y)
    with pytest.raises(ConfigError, match=r"unknown outputs 'maped'\. Did you mean 'mapped'\?"):
        training_sets(benchmark, "others", "maped")


def test_drawn_rows_are_distinct_rows_of_their_tasks(training):
    keys = prior_keys(training, 0, 2)
    for batch, width in ((5, 5), (99, training.rows.mask.shape[1])):
        drawn = sample_rows(training, keys, batch)
        assert drawn.x.shape == (6, 2, width, 2)
        for pair in range(6):
            for member, task in enumerate(training.members[pair // 2, pair % 2]):
                mask = np.asarray(drawn.mask[pair, member])
                assert mask.sum() == min(batch, training.counts[task])
                pool = training.rows.x[task][training.rows.mask[task]]
                places = [int(np.flatnonzero((pool == x).all(1))[0]) for x in np.asarray(drawn.x[pair, member])[mask]]
                assert len(set(places)) == len(places)
                np.testing.assert_array_equal(drawn.y[pair, member][mask], training.rows.y[task][places])
    small = sample_rows(training, keys, 5)
    assert not np.array_equal(small.x[0], small.x[1])  # every pair draws its own


# --- the joint loss ---------------------------------------------------------------------------------------------------


def dense_joint(gp, training, fold, drawn, weight, own=None):
    """EKL (Eq. 7 less constants) + weight x mean NLL, with dense matrices."""
    dense = DenseGP(gp)
    ekl = []
    for block in training.matched[fold][0]:
        mean, covariance = maximum_likelihood(block.y)
        sigma = dense.covariance(block.x)
        shift = mean - dense.mean(block.x)
        inverse = np.linalg.inv(sigma)
        ekl.append(0.5 * (np.trace(inverse @ covariance) + shift @ inverse @ shift + np.linalg.slogdet(sigma)[1]))
    tasks = [(np.asarray(x)[m], np.asarray(y)[m]) for x, y, m in zip(*map(np.asarray, drawn), strict=True)]
    losses = [dense.nll(x, y) for x, y in [*tasks, *([own] if own else [])]]
    return np.mean(ekl) + weight * np.mean(losses)


def test_the_joint_loss_is_the_sum_of_its_dense_parts(training):
    spec, _ = tiny_online.specs("h_ekl_online")
    gp = registry.training_module("h_ekl_online").start(spec["model"], 2, 3, jax.random.key(3))
    data, drawn = joint_data(training, prior_keys(training, 0, 2), read_objective("h_ekl_online", spec["pretrain"]))
    rng = np.random.default_rng(0)
    x, y, mask = rng.uniform(size=(BUDGET, 2)), rng.normal(size=BUDGET), np.arange(BUDGET) < 4
    own = Rows(*map(jnp.asarray, (x, y, mask)))
    nothing = own._replace(mask=jnp.zeros(BUDGET, dtype=bool))
    alone = jax.jit(lambda pair, weight: joint_loss(gp, *pair, weight))
    loss = jax.jit(lambda pair, weight, own: joint_loss(gp, *pair, weight, own))
    for pair, weight in ((0, 0.1), (3, 0.1), (3, 2.0)):
        here = jax.tree.map(lambda leaf, pair=pair: leaf[pair], (data, drawn))
        expected = dense_joint(gp, training, pair // 2, here[1], weight)
        np.testing.assert_allclose(alone(here, weight), expected, rtol=1e-9)
        np.testing.assert_allclose(loss(here, weight, nothing), expected, rtol=1e-9)  # no observation yet
        expected = dense_joint(gp, training, pair // 2, here[1], weight, (x[mask], y[mask]))
        np.testing.assert_allclose(loss(here, weight, own), expected, rtol=1e-9)


def test_the_matched_points_are_those_of_the_priors_own_draw(training):
    spec, _ = tiny_online.specs("h_ekl_online", pretrain={"matched_points": 3})
    keys = prior_keys(training, 0, 2)
    data, _ = joint_data(training, keys, read_objective("h_ekl_online", spec["pretrain"]))
    draws = jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys.reshape(-1)).reshape(keys.shape)
    np.testing.assert_array_equal(data.x, moments(training, draws, 3).x)
    assert data.mask.sum() == 6 * 3


# --- re-training ------------------------------------------------------------------------------------------------------


class Workshop:
    """Priors and methods on the tiny benchmark, each made once."""

    def __init__(self, training):
        self.training, self.made = training, {}

    def prior(self, method, **overrides):
        spec, _ = tiny_online.specs(method, **overrides)
        key = json.dumps(spec, sort_keys=True)
        if key not in self.made:
            module = registry.training_module(method)
            params, log = module.pretrain(spec, self.training, prior_keys(self.training, 0, 2), False)
            self.made[key] = priors.of_training(self.training, params, log)
        return spec, self.made[key]

    def method(self, method, budget=BUDGET, **overrides):
        pretrain = {key: value for key, value in overrides.items() if key == "pretrain"}
        _, spec = tiny_online.specs(method, **overrides)
        key = json.dumps([spec, overrides, budget], sort_keys=True)
        if key not in self.made:
            trained_from, prior = self.prior(method, **pretrain)
            arguments = (trained_from, prior, self.training, spec["online"], spec["acquisition"], budget)
            self.made[key] = registry.online_module(method).online(*arguments)
        return self.made[key]


@pytest.fixture(scope="module")
def workshop(training):
    return Workshop(training)


def observations(count=5, seed=0, budget=BUDGET):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(budget, 2)), np.zeros(budget)
    y[:count] = rescale(rng.normal(size=count))
    return Rows(*map(jnp.asarray, (x, y, np.arange(budget) < count)))


def vector(params):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


@cache
def program(refit):
    return jax.jit(refit)


def refitted(tuner, data, key=0):
    params, context = tuner.begin(0, 0)
    new, ok = program(tuner.refit)(params, context, data, jax.random.key(key))
    assert ok
    return params, new


@pytest.mark.parametrize("method", GP_METHODS)
def test_retraining_moves_the_parameters_and_lowers_the_loss_of_the_observations(method, workshop):
    tuner, data = workshop.method(method), observations()
    before, after = refitted(tuner, data)
    assert np.abs(vector(before) - vector(after)).max() > 1e-3
    loss = [-float(tuner.to_model(params).log_prob(*data)) for params in (before, after)]
    assert loss[1] < loss[0] - 0.05


@pytest.mark.parametrize("method", GP_METHODS)
def test_every_observation_counts_and_padding_does_not(method, workshop):
    """Seven observations, more than a mini-batch of five: each reaches the re-training."""
    tuner, data = workshop.method(method), observations(BUDGET)
    _, base = refitted(tuner, data)
    for place in (0, 6):
        _, other = refitted(tuner, data._replace(y=data.y.at[place].add(-0.5)))
        assert np.abs(vector(base) - vector(other)).max() > 1e-8
    few = observations(3)
    _, base = refitted(tuner, few)
    _, other = refitted(tuner, few._replace(x=few.x.at[5].set(0.1), y=few.y.at[5].set(9.0)))
    np.testing.assert_allclose(vector(other), vector(base), rtol=1e-9, atol=1e-12)


def test_training_tasks_count_in_the_retraining_of_pre_trained_methods_only(workshop):
    for method, counts in (("h_nll_online", True), ("h_ekl_online", True), ("stboh_online", False)):
        tuner, data = workshop.method(method), observations()
        params, context = tuner.begin(0, 0)
        assert (len(jax.tree.leaves(context)) > 0) == counts
        if counts:
            _, base = refitted(tuner, data)
            changed = jax.tree.map(lambda leaf: leaf * 0.9 if leaf.dtype == jnp.float64 else leaf, context)
            other, _ = program(tuner.refit)(params, changed, data, jax.random.key(0))
            assert np.abs(vector(base) - vector(other)).max() > 1e-6


@pytest.mark.parametrize(("budget", "per_shuffle"), [(BUDGET, 1), (4, 2)])
def test_h_nll_trains_on_the_observations_as_one_more_task(budget, per_shuffle, workshop):
    """With seven observations one shuffle must serve one batch of five only, or the second would hold two rows."""
    tuner, data = workshop.method("h_nll_online", budget), observations(budget, budget=budget)
    params, new = refitted(tuner, data)
    training = workshop.training
    members = training.members[0, 0]
    tasks = [(training.rows.x[m], training.rows.y[m], training.rows.mask[m]) for m in members]
    width = training.rows.mask.shape[1]
    tasks.append(tuple(np.pad(a, [(0, width - budget)] + [(0, 0)] * (a.ndim - 1)) for a in map(np.asarray, data)))
    rows = Rows(*(jnp.asarray(np.stack(parts)) for parts in zip(*tasks, strict=True)))
    everyone, key = jnp.arange(3), jax.random.key(0)
    settings = {"steps": 6, "learning_rate": 1e-3, "batch": 5, "per_shuffle": per_shuffle}
    expected, _ = adam(params, rows, everyone, everyone >= 0, key, **settings)
    np.testing.assert_allclose(vector(new), vector(expected), rtol=1e-9, atol=1e-12)


def test_h_nll_draws_new_batches_and_h_ekl_keeps_its_rows(workshop):
    for method, drawn in (("h_nll_online", True), ("h_ekl_online", False)):
        tuner, data = workshop.method(method), observations()
        (_, one), (_, other) = (refitted(tuner, data, key=key) for key in (0, 1))
        assert (vector(one) != vector(other)).any() == drawn


RETRAIN = [(method, "retrain_steps", 2) for method in LEARNERS]
RETRAIN += [("h_nll_online", "retrain_rate", 2e-3)]
RETRAIN += [("stboh_online", "refit_steps", 1), ("stboh_online", "use_prior", False), ("stbo_online", "refit_steps", 1)]


@pytest.mark.parametrize(("method", "key", "value"), RETRAIN)
def test_settings_of_the_retraining_are_alive(method, key, value, workshop):
    data = observations()
    (_, base), (_, other) = (
        refitted(workshop.method(method, **change), data) for change in ({}, {"online": {key: value}})
    )
    assert np.abs(vector(base) - vector(other)).max() > 1e-6


def test_every_online_setting_has_a_case():
    registered = {key for name in GP_METHODS for key in registry.method(name).online}  # others: test_online_networks
    search = {"starts", "polish", "polish_steps"}  # tests/bo/test_ask_tell.py
    assert registered == {key for _, key, _ in RETRAIN} | search


def test_random_search_ignores_what_it_saw(workshop):
    random = workshop.method("rand")
    state = begin(random)
    blind = [ask(random, state, jax.random.key(number))[1].x for number in range(3)]
    for number in range(3):
        state, suggestion = ask(random, state, jax.random.key(number))
        state = tell(state, suggestion.x, float(number))
        np.testing.assert_array_equal(suggestion.x, blind[number])
    draws = np.stack([ask(random, begin(random), jax.random.key(n))[1].x for n in range(400)])
    assert (draws >= 0).all() and (draws < 1).all()
    np.testing.assert_allclose(draws.mean(axis=0), 0.5, atol=5 * 12**-0.5 / 20)


@pytest.mark.parametrize(("outputs", "objective"), [("raw", "nll"), (None, "nll"), ("mapped", "ekl")])
def test_priors_that_cannot_be_trained_further_are_refused(outputs, objective, workshop):
    spec, prior = workshop.prior("h_nll_online")
    pretrain = {"objective": "ekl", "steps": 4, "matched_points": 0} if objective == "ekl" else dict(spec["pretrain"])
    pretrain.pop("outputs", None)
    pretrain |= {"outputs": outputs} if outputs else {}
    with pytest.raises(ConfigError, match="online tuning needs a prior trained with outputs 'mapped' and objective"):
        registry.online_module("h_nll_online").online(
            spec | {"pretrain": pretrain}, prior, workshop.training, {"retrain_steps": 3}, "ucb18", 5
        )


def test_losses_of_mapped_priors_are_not_compared_with_others(workshop):
    spec, prior = workshop.prior("h_nll_online")
    with pytest.raises(ConfigError, match="'h_nll_online' is trained on outputs 'mapped'"):
        evaluate(tiny_online.benchmark(), spec, [prior], "held_out")


def test_a_missing_package_stops_the_job_before_anything_is_tuned(monkeypatch):
    def absent(name):
        raise DataError(f"{name}: no such package")

    monkeypatch.setattr(pd1_mini, "data_of", absent)
    pd1_mini.runner.cache_clear()
    with pytest.raises(DataError, match="phoneme: no such package"):
        pd1_mini.evaluator(pd1_mini.study_group("phoneme-mlp-128"), 0)


# --- end to end -------------------------------------------------------------------------------------------------------


@pytest.fixture
def square(monkeypatch, tmp_path):
    """Register the tiny benchmark with a loader and an evaluator, whose trainings sometimes fail."""
    calls = []

    def evaluator(task, seed):
        inner = tiny_online.evaluator(task, seed)
        calls.append((task, seed))

        def evaluate(point):
            if point[1] > 0.9:
                raise RuntimeError("out of memory")
            nothing = SimpleNamespace(error_rate=np.inf, ce_loss=np.nan, status="done")
            return inner(point) if point[1] > -0.9 else nothing

        return evaluate

    for name, members in (
        ("metabo.data.square", {"raw_inputs": tiny_online.raw_inputs, "WARPS": WARPS}),
        ("metabo.collect.square", {"ONLINE": tiny_online.METRICS, "evaluator": evaluator}),
    ):
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    entry = BenchmarkEntry(default_split="others", settings=(), matched=True, collector="collect.square")
    known = {**registry._benchmarks(), "square": registry.Registered("metabo.data.square", entry)}
    monkeypatch.setattr(registry, "_benchmarks", lambda: known)
    literal = registry.find_literal  # the collector has no file
    monkeypatch.setattr(
        registry, "find_literal", lambda path, t: tiny_online.METRICS if path.stem == "square" else literal(path, t)
    )
    tiny_online.benchmark().save(tmp_path / "data.npz")

    def tuned(method, name="online.parquet"):
        pretrain, online = tiny_online.specs(method, pretrain={"steps": 8} if method in LEARNERS else {})
        online["seeds"] = 3  # of which two have priors of their own
        data = str(tmp_path / "data.npz")
        if not (tmp_path / f"{method}.npz").exists():
            pretrain_stage.work(
                Namespace(in_data=data, out=str(tmp_path / f"{method}.npz")), read(PretrainSpec, pretrain, "pretrain")
            )
        arguments = Namespace(in_data=data, in_prior=str(tmp_path / f"{method}.npz"), out=str(tmp_path / name))
        return online_stage.work(
            arguments, read(OnlineSpec, {key: value for key, value in online.items() if key != "past"}, "online")
        ), results.read_online([tmp_path / name])

    return SimpleNamespace(tuned=tuned, calls=calls, folder=tmp_path)


FAST = ("h_nll_online", "rand")


@pytest.mark.parametrize("method", [m if m in FAST else pytest.param(m, marks=pytest.mark.slow) for m in METHODS])
def test_stages_end_to_end(method, square, capsys):
    outcome, table = square.tuned(method)
    assert square.calls == [("p", 0), ("q", 0), ("text", 0)]
    assert outcome["seeds"] == [0, 1, 2] and outcome["rows"] == len(table) == 3 * 3 * 4
    assert outcome["infeasible"] == int((~table["feasible"]).sum()) and outcome["unsound_steps"] == 0
    assert (table["prior_seed"] == table["seed"] % 2).all()
    assert set(table["acquisition"]) == {"uniform" if method == "rand" else "ucb18"}
    for (task, _), rows in table.groupby(["task", "seed"]):
        unit = np.array([json.loads(text) for text in rows["x"]])
        assert unit.shape == (4, 2) and (unit >= 0).all() and (unit <= 1).all()
        value, diverged = tiny_online.error(task, unit)
        raw = tiny_online.raw_inputs(unit)[:, 1]
        expected = np.where(raw <= -0.9, "not finite", np.where(diverged, "diverged", ""))
        expected = np.where(raw > 0.9, "raised: RuntimeError: out of memory", expected)
        assert rows["reason"].tolist() == expected.tolist()
        good = rows["feasible"].to_numpy()
        np.testing.assert_allclose(rows["metric"][good], (3 if task == "text" else 1) * value[good], rtol=1e-9)
    assert np.isfinite(table[["mean", "std"]]).all(axis=None) == (method != "rand")
    printed = capsys.readouterr().out
    assert printed.count("after 4 evaluations") == 9 and printed.count("infeasible (") == outcome["infeasible"]
    if method in FAST:
        square.tuned(method, "again.parquet")
        assert (square.folder / "again.parquet").read_bytes() == (square.folder / "online.parquet").read_bytes()
