from dataclasses import replace
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import fixed_prior, trajectories
from metabo.bo.loop import Steps
from metabo.bo.policy import Candidates, Info
from metabo.bo.priors import SpacePrior
from metabo.bo.trajectories import Entry, Priors, entries, optimise, policy_of, run_bytes, table
from metabo.compute import memory
from metabo.errors import ConfigError
from metabo.methods.random.policy import Nothing, Uniform
from metabo.plan import registry
from metabo.records import results
from tests import tiny


def prior(benchmark, seeds=2):
    folds = benchmark.splits["held_out"]
    pairs = len(folds) * seeds
    return SpacePrior("plane", 2, 3, folds, Nothing(jnp.zeros(pairs)), np.zeros((pairs, 0)), 1, np.full(pairs, -1))


def steps_of(benchmark, task, index):
    index = np.asarray(index)
    nothing = np.full(index.shape, np.nan)
    return Steps(
        index, benchmark.tasks[task].y[index], Info(nothing, nothing, nothing, np.ones(index.shape, dtype=bool))
    )


def lay_out(benchmark, task, index, iterations):
    spec = tiny.spec("rand", iterations=iterations)
    listed = [Entry(0, task, 1, s) for s in range(len(index))]
    pools = {task: np.arange(len(benchmark.tasks[task].y))}
    return results.check(
        table(benchmark, prior(benchmark), *tiny.job(spec), listed, pools, steps_of(benchmark, task, index))
    )


def test_regret_by_hand():
    benchmark = tiny.benchmark()
    a = benchmark.tasks["a"]
    top, low = a.y.max(), a.y.min()
    worst, best, middle = int(a.y.argmin()), int(a.y.argmax()), 4
    rows = lay_out(benchmark, "a", [[worst, middle, worst, best]], 4)
    assert rows["iteration"].tolist() == [1, 2, 3, 4]
    assert rows["candidate"].tolist() == [worst, middle, worst, best]
    assert rows["best_y"].tolist() == [low, a.y[middle], a.y[middle], top]
    np.testing.assert_allclose(
        rows["simple_regret"], [top - low, top - a.y[middle], top - a.y[middle], 0.0], atol=1e-15
    )
    share = (top - a.y[middle]) / (top - low)
    np.testing.assert_allclose(rows["normalised_regret"], [1.0, share, share, 0.0], atol=1e-15)
    np.testing.assert_array_equal(rows["metric"], a.metric[[worst, middle, worst, best]])
    assert rows["feasible"].all() and rows["ok"].all()
    first = rows.iloc[0]
    named = {"benchmark": "tiny", "space": "plane", "split": "held_out", "fold": "without a", "task": "a"}
    named |= {"method": "rand", "acquisition": "uniform", "prior_seed": 1, "seed": 0, "data": "0" * 12}
    assert {key: first[key] for key in named} == named


def test_given_points_come_before_iteration_one():
    rows = lay_out(tiny.benchmark(), "a", [[3, 1, 0, 2, 5], [0, 5, 2, 2, 1]], 3)
    assert rows["iteration"].tolist() == [-1, 0, 1, 2, 3] * 2
    assert rows["seed"].tolist() == [0] * 5 + [1] * 5


def test_constant_task_has_no_regret():
    rows = lay_out(tiny.benchmark(), "flat", [[0, 3, 1]], 3)
    assert (rows[["simple_regret", "normalised_regret"]] == 0).all(axis=None)


def test_entries_are_every_task_prior_and_seed():
    benchmark = tiny.benchmark()
    listed = entries(benchmark, prior(benchmark), 3)
    expected = [
        Entry(f, task, p, s) for f, task in ((0, "a"), (1, "flat"), (1, "point")) for p in range(2) for s in range(3)
    ]
    assert listed == expected


def test_more_seeds_than_initialisations_are_refused():
    benchmark = tiny.benchmark(initial=True)
    assert len(entries(benchmark, prior(benchmark, 1), 2)) == 6
    with pytest.raises(ConfigError, match=r"'bo.seeds' is 3, but task 'a' of benchmark 'tiny' has only 2 .*at most 2"):
        entries(benchmark, prior(benchmark, 1), 3)


def test_random_search_may_have_more_runs_than_initialisations():
    """They begin with the sets in turn, and differ."""
    benchmark = given("tiny", tiny.benchmark(initial=True))
    spec = tiny.spec("rand", iterations=4) | {"seeds": 5}
    frame = optimise(benchmark, prior(benchmark, 1), *tiny.job(spec), 3)
    sets = benchmark.initial["a"]
    runs = [run["candidate"].tolist() for _, run in frame.groupby("seed")]
    assert [run[:2] for run in runs] == [sets[seed % 2].tolist() for seed in range(5)]
    assert len({tuple(run) for run in runs}) == 5


def test_priors_that_are_all_the_same_make_different_runs():
    """A method that learns nothing and draws nothing would make one run for each of them from the same points."""
    benchmark = given("tiny", tiny.benchmark(initial=True))
    learned = gp_prior(benchmark, 2)
    same = replace(learned, params=jax.tree.map(lambda leaf: jnp.stack([leaf[0], leaf[0]]), learned.params))
    spec = tiny.spec("fsbo", iterations=2) | {"seeds": 1}
    frame = optimise(benchmark, same, *tiny.job(spec), 3)
    runs = [run["candidate"].tolist() for _, run in frame.groupby("prior_seed")]
    assert [run[:2] for run in runs] == benchmark.initial["a"].tolist()
    assert runs[0] != runs[1]


def test_a_method_that_draws_nothing_has_as_many_runs_as_initialisations():
    benchmark = given("tiny", tiny.benchmark(initial=True))
    spec = tiny.spec("gp32", iterations=4) | {"seeds": 3}
    with pytest.raises(ConfigError, match="only 2 initialisations"):
        optimise(benchmark, prior(benchmark, 1), *tiny.job(spec), 3)


class First(Uniform):
    """Asks for the first candidate, whatever the mask says."""

    def select(self, state, mask, key):
        return jnp.asarray(0), super().select(state, mask, key)[1]


@pytest.mark.parametrize("repeats", [True, False])
def test_a_policy_that_asks_for_what_it_may_not_is_refused(monkeypatch, repeats):
    """Its own word that it does not repeat counts too, where the split allows repeats."""
    bad = ModuleType("metabo.methods.mine.policy")
    bad.policy = lambda params, *others: First(params, repeats)
    monkeypatch.setattr(registry, "policy_module", lambda name: bad)
    benchmark, spec = tiny.benchmark(), tiny.spec("rand", iterations=3)
    run = lambda: optimise(benchmark, prior(benchmark, 1), *tiny.job(spec), 1)  # noqa: E731
    if repeats:
        assert set(run()["candidate"]) == {0}
        return
    with pytest.raises(
        ConfigError, match=r"^src/metabo/methods/mine/policy.py: .*'rand' chooses candidate 0 at step 2"
    ):
        run()


def given(name, benchmark):
    """The tiny benchmark with the task `a` alone under test."""
    folds = (benchmark.splits["held_out"][0],)
    return replace(benchmark, name=name, splits={"held_out": folds})


def test_optimise_writes_a_valid_table_with_given_points():
    benchmark = given("tiny", tiny.benchmark(initial=True))
    spec = tiny.spec("rand", iterations=4) | {"seeds": 2}
    frame = results.check(optimise(benchmark, prior(benchmark), *tiny.job(spec), 3))
    assert len(frame) == 2 * 2 * 6
    for (_, seed), run in frame.groupby(["prior_seed", "seed"]):
        assert run["iteration"].tolist() == [-1, 0, 1, 2, 3, 4]
        assert run["candidate"].tolist()[:2] == benchmark.initial["a"][seed].tolist()
        np.testing.assert_array_equal(run["y"], benchmark.tasks["a"].y[run["candidate"]])
        np.testing.assert_array_equal(run["best_y"], run["y"].cummax())
    runs = [tuple(run["candidate"]) for _, run in frame.groupby(["prior_seed", "seed"])]
    assert len(set(runs)) == 4  # every prior seed and BO seed draws its own


def gp_prior(benchmark, seeds=2):
    """Random priors of the structure that `fsbo` trains: two folds."""
    rng = np.random.default_rng(0)
    folds = benchmark.splits["held_out"]
    gps = [tiny.random_gp(rng, 2) for _ in range(len(folds) * seeds)]
    return SpacePrior("plane", 2, 3, folds, tiny.stacked(gps), np.zeros((len(gps), 0)), 1, np.full(len(gps), -1))


def needed(method, params, budget, pool):
    """Bytes of one run."""
    make = policy_of(registry.policy_module(method), tiny.job(tiny.spec(method))[0], budget)
    return run_bytes(make, Priors(params, None), pool)


def test_a_budget_that_cannot_fit_names_benchmark_and_method():
    benchmark = tiny.benchmark()
    message = r"benchmark 'tiny', method 'fsbo', BO with 14 candidates: .*GiB.*lower bo.iterations"
    with pytest.raises(ConfigError, match=message):
        optimise(benchmark, gp_prior(benchmark), *tiny.job(tiny.spec("fsbo", iterations=10**12)), None)


def test_bytes_of_a_run_are_those_of_its_state():
    """A fixed GP keeps budget x c rows; random search keeps the mask, however long it runs."""
    pool, benchmark = Candidates(jnp.zeros((14, 2)), jnp.ones(14, dtype=bool)), tiny.benchmark()
    small, large = (needed("fsbo", gp_prior(benchmark).params, b, pool) for b in (10, 110))
    assert large - small == 100 * 14 * 8
    one = fixed_prior.policy(gp_prior(benchmark).of(0, 0), {"pi_threshold": 0.1}, "pi", 10)
    assert small == sum(leaf.nbytes for leaf in jax.tree.leaves(one.init(pool, jax.random.key(0))))
    assert needed("rand", Nothing(jnp.zeros(4)), 10**12, pool) == 0  # it remembers nothing


def test_as_many_runs_go_side_by_side_as_fit(monkeypatch):
    benchmark = tiny.benchmark()
    pool = Candidates(jnp.zeros((14, 2)), jnp.ones(14, dtype=bool))
    need = needed("fsbo", gp_prior(benchmark).params, 3, pool)
    chunks = []

    def watched(*arguments):
        chunks.append(arguments[6])
        return run_all(*arguments)

    run_all = trajectories.run_all
    monkeypatch.setattr(trajectories, "run_all", watched)
    spec, tables = tiny.spec("fsbo", iterations=3), []
    for fit, wanted in ((100, None), (3.5, None), (3.5, 2), (1, None)):
        monkeypatch.setattr(memory, "available", lambda fit=fit: (int(fit * need / memory.SHARE) + 2, "the machine"))
        tables.append(optimise(benchmark, gp_prior(benchmark), *tiny.job(spec), wanted))
    assert chunks == [12, 3, 2, 1]  # of 3 test tasks x 2 prior seeds x 2 BO seeds
    assert all((t["candidate"] == tables[0]["candidate"]).all() for t in tables)
    monkeypatch.setattr(memory, "available", lambda: (int(0.9 * need / memory.SHARE), "the machine"))
    with pytest.raises(ConfigError, match=r"lower bo\.iterations"):
        optimise(benchmark, gp_prior(benchmark), *tiny.job(spec), 1)


def test_runs_do_not_depend_on_what_else_runs():
    whole, part = tiny.benchmark(), given("tiny", tiny.benchmark())
    spec = tiny.spec("rand", iterations=5)
    everything = optimise(whole, prior(whole), *tiny.job(spec), 1)
    alone = optimise(part, prior(part), *tiny.job(spec), 4)
    mine = everything[everything["task"] == "a"].reset_index(drop=True)
    assert mine["candidate"].tolist() == alone["candidate"].tolist()


def test_what_a_posterior_needed_on_its_diagonal_is_a_column_without_gaps():
    """Given points are not predicted, so that the loop has NaN for them."""
    benchmark = tiny.benchmark()
    steps = steps_of(benchmark, "a", [[3, 1, 0]])
    steps = steps._replace(info=steps.info._replace(jitter=np.array([[np.nan, 0.0, 1e-5]])))
    pools = {"a": np.arange(len(benchmark.tasks["a"].y))}
    job = tiny.job(tiny.spec("rand", iterations=2))
    rows = results.check(table(benchmark, prior(benchmark), *job, [Entry(0, "a", 1, 0)], pools, steps))
    assert rows["jitter"].tolist() == [0.0, 0.0, 1e-5]


def test_a_candidate_is_queried_once_where_the_benchmark_says_so():
    """Random search with repeats asks for some candidate twice in as many queries as there are candidates."""
    benchmark = tiny.benchmark()
    count = min(len(task.y) for task in benchmark.tasks.values() if task.name in ("a", "b"))
    again, once = (
        optimise(benchmark, prior(benchmark), *tiny.job(tiny.spec("rand", iterations=count) | {"once": flag}), 1)
        for flag in (False, True)
    )
    runs = [*results.RUN]
    assert (again.groupby(runs)["candidate"].nunique() < count).any()
    distinct = once[once["task"].isin(["a", "b"])].groupby(runs)["candidate"].nunique()
    assert (distinct >= count).all()


def test_exceptions_are_the_other_way_round():
    spec, _ = tiny.job(tiny.spec("rand") | {"once": True, "exceptions": ("plane",)})
    assert spec.repeats("plane") and not spec.repeats("other")
    assert not replace(spec, once=False).repeats("plane") and replace(spec, once=False).repeats("other")
