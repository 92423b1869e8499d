"""The online loop: ask, evaluate, tell, whatever the evaluation does; and the table of a run."""

import importlib
import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from metabo.bo.acquisition import make
from metabo.bo.ask_tell import Proposal, Target, Tuner, ask, begin, measure, run, tell
from metabo.bo.continuous import halton
from metabo.bo.online_runs import require_failures_apart, require_sound, require_unit_cube, tune
from metabo.bo.priors import SpacePrior
from metabo.data.pd1 import WARPS, warp_error
from metabo.errors import ConfigError, DataError, NumericsError
from metabo.plan import collectors, registry
from metabo.plan.specs import OnlineSpec
from metabo.plan.typed import read
from metabo.records import results
from metabo.tasks.facts import Facts
from metabo.tasks.outputs import rescale_all
from metabo.tasks.spaces import Parameter, SearchSpace
from tests import tiny, tiny_online
from tests.references import DenseGP

DIM, BUDGET, STARTS = 2, 7, 24
KEY = jax.random.key(5)


def typed(spec: dict) -> OnlineSpec:
    """The spec as `tune` takes it, of one that has more."""
    return read(OnlineSpec, {key: value for key, value in spec.items() if key != "past"}, "online")


def trial(error_rate=0.1, ce_loss=0.3, status="done"):
    return SimpleNamespace(error_rate=error_rate, ce_loss=ce_loss, status=status)


def goal(evaluate, metric="error_rate"):
    return Target(evaluate, metric, WARPS[metric])


class Spy:
    """A method that suggests a fixed list of points and remembers what it was given."""

    dim, budget = DIM, 4

    def __init__(self):
        self.seen = []

    def begin(self, fold, prior_seed):
        return (fold, prior_seed), "context"

    def suggest(self, params, context, data, key):
        self.seen.append((params, context, jax.tree.map(np.asarray, data), key))
        count = len(self.seen)
        return Proposal(("trained", count), np.full(DIM, 0.1 * count), 0.0, 1.0, True)


# --- ask and tell -----------------------------------------------------------------------------------------------------


def test_ask_pads_and_maps_and_tell_appends():
    spy = Spy()
    state = begin(spy, 2, 1)
    for y in (1.0, np.nan, 3.0):
        state, suggestion = ask(spy, state, KEY)
        state = tell(state, suggestion.x, y)
    state, _ = ask(spy, state, KEY)
    assert [params for params, *_ in spy.seen] == [(2, 1), ("trained", 1), ("trained", 2), ("trained", 3)]
    assert all(context == "context" for _, context, *_ in spy.seen)
    assert [data.mask.tolist() for _, _, data, _ in spy.seen] == [[i < n for i in range(4)] for n in range(4)]
    _, _, data, _ = spy.seen[3]
    np.testing.assert_allclose(data.x, [[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.0, 0.0]])
    np.testing.assert_array_equal(data.y[:3], rescale_all(np.array([1.0, np.nan, 3.0])))  # all mapped anew
    assert spy.seen[1][2].y[0] == 2.0 != spy.seen[3][2].y[0]
    state = tell(state, np.zeros(DIM), np.inf)
    assert np.isnan(state.y[3])  # not a value: infeasible
    with pytest.raises(ConfigError, match="all 4 evaluations are made"):
        ask(spy, state, KEY)


# --- evaluations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "metric", "expected"),
    [
        (trial(), "error_rate", (0.1, -np.log(0.1 + 1e-10), "")),
        (trial(), "ce_loss", (0.3, -np.log(0.3), "")),
        (trial(error_rate=0.0), "error_rate", (0.0, -np.log(1e-10), "")),
        (trial(error_rate=np.nan), "error_rate", "not finite"),
        (trial(error_rate=np.inf), "error_rate", "not finite"),
        (trial(error_rate=-np.inf), "error_rate", "not finite"),
        (trial(error_rate=-0.5), "error_rate", "not finite"),
        (trial(ce_loss=0.0), "ce_loss", "not finite"),  # an infinite output
        (trial(status="diverged"), "error_rate", "diverged"),  # whatever value it carries
        (ValueError("no\nsecond line"), "error_rate", "raised: ValueError: no"),
        (ValueError("x" * 999), "error_rate", "raised: ValueError: " + "x" * 180),
        # no trial at all
        (0.25, "error_rate", (0.25, -np.log(0.25 + 1e-10), "")),
        (1, "ce_loss", (1.0, 0.0, "")),
        (np.float32(0.25), "ce_loss", (0.25, -np.log(0.25), "")),
        (jnp.asarray(0.25), "ce_loss", (0.25, -np.log(0.25), "")),
        (np.nan, "error_rate", "not finite"),
        (np.inf, "error_rate", "not finite"),
        (np.float64(-np.inf), "error_rate", "not finite"),
        (None, "error_rate", "raised: AttributeError: 'NoneType' object has no attribute 'status'"),
        (True, "error_rate", "raised: AttributeError: 'bool' object has no attribute 'status'"),
        ("0.5", "error_rate", "raised: AttributeError: 'str' object has no attribute 'status'"),
        (np.zeros(2), "error_rate", "raised: AttributeError: 'numpy.ndarray' object has no attribute 'status'"),
        (SimpleNamespace(error_rate=0.1), "error_rate", "raised: AttributeError: "),
        (SimpleNamespace(status="done"), "error_rate", "raised: AttributeError: "),
        (trial(error_rate=None), "error_rate", "raised: TypeError: "),
        (trial(error_rate="low"), "error_rate", "raised: ValueError: "),
        (trial(status=""), "error_rate", "status is empty"),
        (trial(status=None), "error_rate", "None"),
    ],
)
def test_what_an_evaluation_may_give(result, metric, expected):
    def evaluate(point):
        assert point.tolist() == [1.0, 2.0]
        if isinstance(result, BaseException):
            raise result
        return result

    outcome = measure(goal(evaluate, metric), np.array([1.0, 2.0]))
    if isinstance(expected, str):
        assert outcome.reason.startswith(expected) if expected.endswith(": ") else outcome.reason == expected
        assert np.isnan([outcome.metric, outcome.y]).all()
    else:
        np.testing.assert_allclose(outcome[:2], expected[:2], rtol=1e-12)
        assert outcome.reason == ""


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, MemoryError, DataError, ConfigError, NumericsError])
def test_a_person_or_trouble_of_the_machine_stops_it(stop):
    def evaluate(point):
        raise stop

    with pytest.raises(stop):
        measure(goal(evaluate), np.zeros(2))


def test_a_trial_whose_fields_raise():
    class Broken:
        status = "done"

        @property
        def error_rate(self):
            raise OSError("disk")

    assert measure(goal(lambda point: Broken()), np.zeros(2)).reason == "raised: OSError: disk"


def test_every_metric_that_is_tuned_has_its_output():
    assert WARPS["error_rate"] is warp_error
    for name in registry.benchmarks():
        if "online" in registry.benchmark(name).settings:
            tuned = registry.literal(collectors.evaluator(name).removeprefix("metabo."), "ONLINE")
            assert set(tuned.values()) <= set(importlib.import_module(registry.loader(name)).WARPS)


def test_failures_are_logged_with_their_point_and_the_run_goes_on():
    answers = iter([trial(), ValueError("broken"), trial(error_rate=np.nan), trial(error_rate=0.05)])

    def evaluate(point):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    spy, lines = Spy(), []
    steps = run(spy, begin(spy), goal(evaluate), lambda x: 10 * x, 4, KEY, lines.append)
    assert [step.outcome.reason for step in steps] == ["", "raised: ValueError: broken", "not finite", ""]
    assert lines == [
        "iteration 2: infeasible (raised: ValueError: broken) at [2.0, 2.0]",
        "iteration 3: infeasible (not finite) at [3.0, 3.0]",
    ]
    assert len({tuple(jax.random.key_data(key).tolist()) for *_, key in spy.seen}) == 4  # a key of its own each time


# --- a GP method ------------------------------------------------------------------------------------------------------


def gp(mean="linear"):
    return tiny.random_gp(np.random.default_rng(0), DIM, mean, "matern32", (3,) if mean == "linear" else ())


def same(params, context, data, key):
    """No training, to compare with the dense GP."""
    return params, jnp.asarray(True)


def tuner(prior, refit=same, acquisition="ucb18", **search):
    given = lambda fold, seed: (prior, ())  # noqa: E731
    search = {"starts": STARTS, "polish": 3, "polish_steps": 10} | search
    return Tuner(lambda g: g, refit, given, make(acquisition), DIM, BUDGET, **search)


@pytest.fixture(scope="module")
def plain():
    return tuner(gp())


@pytest.fixture(scope="module")
def flat():
    return tuner(gp("constant"))


def observed(method, x, y):
    state = begin(method)
    for point, value in zip(x, y, strict=True):
        state = tell(state, point, value)
    return state


def test_the_prediction_is_the_posterior_of_the_mapped_observations(plain):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(size=(5, DIM)), np.array([0.3, np.nan, 2.0, -1.0, 0.5])
    x[4] = x[2]  # observed twice, with two values
    _, suggestion = ask(plain, observed(plain, x, y), KEY)
    dense, mapped = DenseGP(gp()), rescale_all(y)
    mean, variance = dense.posterior(x, mapped, suggestion.x[None])
    np.testing.assert_allclose(suggestion.mean, mean[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(suggestion.std, np.sqrt(variance[0] + dense.noise), rtol=1e-6)
    assert suggestion.ok
    axis = np.linspace(0, 1, 61)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, DIM)
    mean, variance = dense.posterior(x, mapped, grid)
    best = (mean + 1.8 * np.sqrt(variance + dense.noise)).max()
    assert suggestion.mean + 1.8 * suggestion.std >= best - 1e-6


def test_the_first_point_maximises_the_prior(plain):
    _, suggestion = ask(plain, begin(plain), KEY)
    dense = DenseGP(gp())
    axis = np.linspace(0, 1, 61)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, DIM)
    assert suggestion.mean >= dense.mean(grid).max() - 1e-6  # the prior variance is the same everywhere
    np.testing.assert_allclose(suggestion.mean, dense.mean(suggestion.x[None])[0], rtol=1e-9)


def test_a_prior_that_is_the_same_everywhere_starts_at_a_random_halton_point(flat):
    chosen = set()
    for seed in range(6):
        key = jax.random.key(seed)
        _, suggestion = ask(flat, begin(flat), key)
        search = jax.random.split(key, 3)[0]
        points = halton(STARTS, DIM, np.random.default_rng(np.asarray(jax.random.key_data(search))))
        (place,) = np.flatnonzero((points == suggestion.x).all(axis=1))
        chosen.add(int(place))
    assert len(chosen) >= 4


def objective(point):
    value, diverged = tiny_online.error("p", point)
    return trial(error_rate=float(value), status="diverged" if diverged else "done")


def always(error=None, **fields):
    def evaluate(point):
        if error is not None:
            raise error
        return trial(**fields)

    return evaluate


@pytest.mark.parametrize(
    ("evaluate", "reason"),
    [
        (always(RuntimeError("no")), "raised: RuntimeError: no"),
        (always(error_rate=np.nan), "not finite"),
        (always(error_rate=np.inf), "not finite"),
        (always(status="diverged"), "diverged"),
    ],
)
def test_a_task_where_nothing_is_feasible(flat, evaluate, reason):
    steps = run(flat, begin(flat), goal(evaluate), np.asarray, BUDGET, KEY, lambda line: None)
    assert [step.outcome.reason for step in steps] == [reason] * BUDGET
    assert all(step.suggestion.ok and np.isfinite(step.suggestion.mean) for step in steps)
    assert len({tuple(step.suggestion.x) for step in steps}) == BUDGET  # it looks elsewhere


def points(steps):
    return np.stack([step.suggestion.x for step in steps])


def test_same_key_same_run_other_key_other_run(plain):
    go = partial(run, plain, begin(plain), goal(objective), np.asarray, 5)
    first, again, other = go(KEY), go(KEY), go(jax.random.key(6))
    np.testing.assert_array_equal(points(first), points(again))
    assert [s.outcome for s in first] == [s.outcome for s in again]
    assert not np.array_equal(points(first), points(other))
    assert ((points(first) >= 0) & (points(first) <= 1)).all()


def slow(change):
    return pytest.param(change, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "change", [{"acquisition": "ucb3"}, {"polish_steps": 1}, slow({"starts": 3}), slow({"polish": 1})], ids=str
)
def test_settings_of_the_search_are_alive(flat, change):
    other = tuner(gp("constant"), **change)
    base, changed = (run(m, begin(m), goal(objective), np.asarray, 3, KEY) for m in (flat, other))
    assert not np.array_equal(points(base), points(changed))


def test_one_program_serves_all_iterations_and_runs_and_a_failed_fit_is_reported():
    traced = []

    def refit(params, context, data, key):
        traced.append(1)
        return params, jnp.asarray(False)

    method = tuner(gp("constant"), refit)
    for seed in (0, 1):
        steps = run(method, begin(method, 0, seed), goal(objective), np.asarray, 4, jax.random.key(seed))
        assert [step.suggestion.ok for step in steps] == [True, False, False, False]  # at first there is nothing to fit
    assert len(traced) == 1


# --- runs and their table ---------------------------------------------------------------------------------------------


class Walk:
    """A method that draws uniformly, with the keys that it is given."""

    dim, budget = DIM, 6

    def begin(self, fold, prior_seed):
        return (), ()

    def suggest(self, params, context, data, key):
        return Proposal((), np.asarray(jax.random.uniform(key, (DIM,))), float("nan"), float("nan"), True)


def prior(benchmark, seeds=2):
    folds = benchmark.splits["others"]
    return SpacePrior("square", DIM, 2, folds, (), np.zeros((0, 0)), 1, np.full(len(folds) * seeds, -1))


@pytest.fixture(scope="module")
def table():
    benchmark, made = tiny_online.benchmark(), []

    def target(task):
        made.append(task)
        return goal(tiny_online.evaluator(task), tiny_online.METRICS[task])

    _, spec = tiny_online.specs("rand", seeds=3, iterations=6)
    frame = tune(benchmark, prior(benchmark), Walk(), typed(spec), "0" * 12, target, tiny_online.raw_inputs)
    assert made == ["p", "q", "text"]  # one evaluator per task: it is compiled once
    return frame


def test_the_table_has_every_task_and_seed_and_tells_the_truth(table):
    results.check_online(table)
    assert len(table) == 3 * 3 * 6
    for (task, seed), rows in table.groupby(["task", "seed"]):
        assert rows["iteration"].tolist() == [1, 2, 3, 4, 5, 6]
        assert (rows["prior_seed"] == seed % 2).all()
        assert (rows["metric_name"] == tiny_online.METRICS[task]).all()
        unit = np.array([json.loads(text) for text in rows["x"]])
        value, diverged = tiny_online.error(task, unit)
        value = 3 * value if task == "text" else value
        assert rows["feasible"].tolist() == (~diverged).tolist()
        assert rows["reason"].tolist() == np.where(diverged, "diverged", "").tolist()
        np.testing.assert_allclose(rows["metric"][rows["feasible"]], value[~diverged], rtol=1e-12)
        np.testing.assert_allclose(rows["y"], np.where(diverged, np.nan, -np.log(value)), rtol=1e-8)
        best = np.minimum.accumulate(np.where(diverged, np.inf, value))
        np.testing.assert_allclose(rows["best_metric"], np.where(np.isinf(best), np.nan, best), rtol=1e-12)
    runs = {tuple(rows["x"]) for _, rows in table.groupby(["task", "seed"])}
    assert len(runs) == 9  # tasks and seeds have keys of their own
    assert not table["feasible"].all()


def test_the_table_survives_writing(table, tmp_path):
    results.write_online(table, tmp_path / "a.parquet")
    results.write_online(table, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    again = results.read_online([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    whole = pd.concat([table, table], ignore_index=True)[list(results.ONLINE_COLUMNS)]
    pd.testing.assert_frame_equal(again, whole, check_exact=True)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("y", np.nan, "column 'y' contradicts 'feasible' in row 0"),
        ("metric", np.nan, "column 'metric' contradicts"),
        ("reason", "raised: X", "column 'reason' contradicts"),
        ("feasible", False, "column 'y' contradicts"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(table, column, value, message):
    bad = table.copy()
    assert bad.loc[0, "feasible"]
    bad.loc[0, column] = value
    with pytest.raises(DataError, match=message):
        results.check_online(bad)


def test_too_many_unsound_steps_fail_with_the_first_one_named(table):
    bad = table.copy()
    bad.loc[[3, 9], "ok"] = False  # 2 of 54
    require_sound(bad)
    bad.loc[20, "ok"] = False
    with pytest.raises(NumericsError, match=r"3 of 54 online steps .*'task': 'p'.*'iteration': (np.int64\()?4"):
        require_sound(bad)


def test_rows_that_count_diverged_evaluations_as_successes_are_refused():
    for rule in (None, "status"):
        require_failures_apart(replace(tiny_online.benchmark(), facts=Facts(divergence=rule)))
    benchmark = replace(tiny_online.benchmark(), facts=Facts(divergence="nan"))
    _, spec = tiny_online.specs("rand")
    with pytest.raises(ConfigError, match=r"rule 'nan'.*set config key 'benchmarks.square.divergence' to status"):
        tune(benchmark, prior(benchmark), Walk(), typed(spec), "0" * 12, pytest.fail, tiny_online.raw_inputs)


def test_only_a_unit_cube_of_numbers_is_searched():
    benchmark = tiny_online.benchmark()
    require_unit_cube(benchmark, "square")
    warped = replace(benchmark, facts=Facts(inputs="warped"))
    with pytest.raises(ConfigError, match=r"inputs are 'warped'; set config key 'benchmarks.square.inputs' to unit"):
        require_unit_cube(warped, "square")
    kinds = SearchSpace("mixed", (Parameter("k", "ordinal", levels=(1, 2)), Parameter("u", "log", 0.1, 1.0)))
    benchmark.spaces["mixed"] = kinds
    with pytest.raises(ConfigError, match=r"\['k'\] are not numeric"):
        require_unit_cube(benchmark, "mixed")
