"""A number of candidates: which points of a task BO may query, and that runs start from the right ones."""

import dataclasses

import numpy as np
import pytest

from metabo.bo import priors
from metabo.bo.trajectories import optimise
from metabo.errors import ConfigError
from metabo.plan import registry, splits
from metabo.plan.entries import Split
from metabo.plan.past import Past
from metabo.tasks.subsets import candidates
from metabo.tasks.training_set import prior_keys, training_sets
from tests import tiny


@pytest.fixture(scope="module")
def base():
    return tiny.benchmark(initial=True)


def test_registered_splits_of_cm_bo():
    assert splits.entry("clustered") == Split(
        base="held_out",
        points=50,
        candidates=300,
        sizes=("cmbo",),
        benchmarks=("cmbo_mini", "cmbo_hpob", "cmbo_lcbench", "cmbo_taskset"),
    )
    assert splits.past("clustered_2000") == splits.past("clustered") == Past("held_out", points=50)
    assert splits.past("clustered_first") == Past("first", points=50)
    assert {"clustered", "clustered_2000", "clustered_first"} <= set(splits.of("cmbo_mini"))
    assert "clustered" not in splits.of("hpob_mini")


def test_the_best_point_and_the_initial_ones_are_always_kept(base):
    task = base.tasks["a"]
    kept = {*base.initial["a"].ravel().tolist(), int(task.y.argmax())}
    for number in (len(kept), 9, 13):
        chosen = candidates(base, task, number, seed=1)
        assert len(chosen) == number and kept <= set(chosen.tolist())
        assert (np.diff(chosen) > 0).all() and chosen.max() < len(task.y)
    np.testing.assert_array_equal(candidates(base, task, 99, seed=1), np.arange(len(task.y)))


def test_draws_depend_on_seed_and_task_alone(base):
    bare = dataclasses.replace(base, initial={})
    drawn = {(n, s): candidates(bare, base.tasks[n], 6, s).tolist() for n in ("a", "b") for s in range(4)}
    assert drawn["a", 0] == candidates(bare, base.tasks["a"], 6, 0).tolist()
    assert len({tuple(drawn["a", s]) for s in range(4)}) > 1
    twin = dataclasses.replace(base.tasks["a"], name="other")
    assert any(candidates(bare, twin, 6, s).tolist() != drawn["a", s] for s in range(4))


def test_fewer_candidates_than_must_be_kept_are_refused(base):
    with pytest.raises(ConfigError, match=r"split candidates 2: task 'a' has a best point and initial points"):
        candidates(base, base.tasks["a"], 2)
    with pytest.raises(ConfigError, match="split candidates 'some': must be one of all, matched"):
        candidates(base, base.tasks["a"], "some")


def test_runs_on_fewer_candidates_start_from_the_given_points(base):
    spec = tiny.spec("rand", seeds=2, iterations=5) | {"candidates": 9}
    training = training_sets(base, "held_out", seeds=2)[0]
    params, log = registry.training_module("rand").pretrain(spec, training, prior_keys(training, 0, 2), False)
    table = optimise(base, priors.of_training(training, params, log), *tiny.job(spec), 1)
    for (name, seed), run in table.groupby(["task", "seed"]):
        task = base.tasks[name]
        pool = set(candidates(base, task, 9, spec["seed"]).tolist())
        assert run["candidate"].iloc[:2].tolist() == base.initial[name][seed].tolist()
        assert set(run["candidate"]) <= pool
        np.testing.assert_array_equal(run["y"], task.y[run["candidate"]])
        np.testing.assert_allclose(run["simple_regret"], task.y.max() - run["best_y"], atol=1e-15)
