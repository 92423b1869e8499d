"""The split `new_rows`: no prior sees a configuration that BO may query, in any task, whatever the method reads."""

import dataclasses

import numpy as np
import pytest

from metabo.bo.priors import of_training
from metabo.bo.trajectories import optimise, refuse_seen
from metabo.errors import ConfigError, DataError
from metabo.methods.random import policy as random_policy
from metabo.plan import config, registry, splits
from metabo.plan.past import Past
from metabo.plan.trainings import prior_of
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.subsets import candidates, held_back, pools_of, training_half
from metabo.tasks.task import MatchedBlock
from metabo.tasks.training_set import OUTPUTS, moments, prior_keys, sample_rows, training_sets, training_sets_of
from tests import tiny
from tests.plan.test_specs import ROOT

SHARED, OWN, LOST = 12, 5, 3
NAMES = ("a", "b", "c", "d")


def benchmark(given=False, spaces=("plane",)):
    """Four tasks a space with shared and own configurations; of the shared ones each task has lost others (diverged),
    and a repeats one."""
    made, tasks, blocks, folds, initial = tiny.benchmark(), {}, [], [], {}
    for number, space in enumerate(spaces):
        rng = np.random.default_rng([3, number])
        shared = np.append(rng.uniform(size=(SHARED - 1, 2)), [[0.0, -0.0]], axis=0)
        lost = {name: np.arange(LOST) + LOST * i for i, name in enumerate(NAMES)}
        for name in NAMES:
            x = np.concatenate([np.delete(shared, lost[name], axis=0), rng.uniform(size=(OWN, 2))])
            x = np.concatenate([x, x[:1]]) if name == "a" else x
            task = tiny.task(f"{space} {name}", x, rng.normal(size=len(x)), group=name)
            tasks[task.name] = dataclasses.replace(task, space=space, diverged=shared[lost[name]])
        for name in NAMES:  # the configurations that this task alone lost
            others = tuple(f"{space} {n}" for n in NAMES if n != name)
            x = shared[lost[name]]
            places = [[int(np.flatnonzero((tasks[o].x == p).all(axis=1))[0]) for p in x] for o in others]
            y = np.stack([tasks[o].y[at] for o, at in zip(others, places, strict=True)], axis=1)
            blocks.append(MatchedBlock("m", space, others, x, y))
        names = [f"{space} {name}" for name in NAMES]
        folds += [Fold(f"without {n}", space, tuple(o for o in names if o != n), (n,)) for n in names]
        initial |= {n: np.array([[0, 1, 2], [2, 9, 4]]) for n in names} if given else {}
    described = {space: dataclasses.replace(made.spaces["plane"], name=space) for space in spaces}
    return Benchmark("halves", described, tasks, tuple(blocks), {"held_out": tuple(folds)}, initial)


def points(*arrays):
    return {tuple(point) for x in arrays for point in np.asarray(x).reshape(-1, np.shape(x)[-1]).tolist()}


def seen(training, seeds):
    """Every input that a method can read of a training set."""
    keys = prior_keys(training, 0, seeds)
    drawn, read = sample_rows(training, keys, 7), moments(training, keys, 0)
    blocks = [block.x for of_fold in training.matched for of_seed in of_fold for block in of_seed]
    of_rows = [np.asarray(rows.x)[np.asarray(rows.mask)] for rows in (training.rows, training.test_rows, drawn)]
    past = [training.past(f, s) for f in range(len(training.folds)) for s in range(seeds)]
    of_rows += [np.asarray(rows.x)[np.asarray(rows.mask)] for rows in past]
    return points(*of_rows, *blocks, np.asarray(read.x)[np.asarray(read.mask)])


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_no_candidate_is_among_what_any_method_sees(outputs, given):
    base = benchmark(given, ("plane", "other"))
    for number in range(4):
        halves = training_sets(base, Past("held_out", rows="half"), outputs, number, seeds=2)
        wholes = training_sets(base, Past("held_out"), outputs, number, seeds=2)
        for half, whole in zip(halves, wholes, strict=True):
            tests = [name for fold in half.folds for name in fold.test]
            pool = points(*(base.tasks[n].x[rows] for n, rows in pools_of(base, tests, "rest", number).items()))
            assert pool and not pool & seen(half, 2)
            assert pool & seen(whole, 2)  # else the line above could not fail
            everything = points(*(part for n in tests for part in (base.tasks[n].x, base.tasks[n].diverged)))
            assert seen(whole, 2) <= everything and seen(half, 2) <= everything - pool
            if outputs == "mapped":  # the diverged ones, which only mapped outputs read, are cut too
                lost = points(*(base.tasks[name].diverged for name in tests))
                assert lost & seen(half, 2) and not lost & held_back(base, half.space, number) & seen(half, 2)


def test_a_configuration_is_in_one_half_of_all_tasks_of_its_space():
    base = benchmark()
    kept = training_half(base, 1)
    tested = held_back(base, "plane", 1)
    distinct = points(*(part for task in base.tasks.values() for part in (task.x, task.diverged)))
    assert len(distinct) == SHARED + len(NAMES) * OWN and len(tested) == len(distinct) // 2 and tested < distinct
    for name, task in base.tasks.items():
        rows = candidates(base, task, "rest", 1)
        assert points(task.x[rows]) == points(task.x) & tested
        np.testing.assert_array_equal(task.y[np.setdiff1d(np.arange(len(task.y)), rows)], kept.tasks[name].y)
        assert points(kept.tasks[name].x) == points(task.x) - tested
        assert kept.tasks[name].diverged.tolist() == [x for x in task.diverged.tolist() if tuple(x) not in tested]
    for block in kept.matched:  # the same values for the inputs that are left
        for name in block.tasks:
            task = kept.tasks[name]
            where = [int(np.flatnonzero((task.x == point).all(axis=1))[0]) for point in block.x]
            np.testing.assert_array_equal(task.y[where], block.y[:, block.tasks.index(name)])


def test_the_noise_of_rows_is_cut_with_them():
    base = benchmark()
    noisy = {name: dataclasses.replace(task, noise=np.abs(task.y)) for name, task in base.tasks.items()}
    kept = training_half(dataclasses.replace(base, tasks=noisy), 1)
    for task in kept.tasks.values():
        np.testing.assert_array_equal(task.noise, np.abs(task.y))


def test_halves_depend_on_seed_and_space_only():
    base, both = benchmark(), benchmark(spaces=("plane", "other"))
    assert held_back(base, "plane", 1) == held_back(both, "plane", 1) == held_back(base, "plane", 1)
    assert len({held_back(base, "plane", seed) for seed in range(5)}) == 5
    shuffled = dataclasses.replace(base, tasks=dict(reversed(base.tasks.items())))
    assert held_back(shuffled, "plane", 1) == held_back(base, "plane", 1)
    renamed = dataclasses.replace(both, spaces=both.spaces)
    same_x = {n: dataclasses.replace(t, space="plane") for n, t in renamed.tasks.items() if t.space == "other"}
    alone = Benchmark("other", base.spaces, same_x, (), {})
    assert held_back(alone, "plane", 1) != held_back(both, "other", 1)  # another space, another draw
    for first, second in ((0, 1), (1, 2)):  # a pre-training seed does not change them
        one, two = (
            training_sets(base, Past("held_out", rows="half"), seed=1, seeds=3)[0].past(0, s) for s in (first, second)
        )
        np.testing.assert_array_equal(one.x, two.x)


def test_given_initial_points_are_candidates():
    base = benchmark(given=True)
    for seed in range(5):
        tested = held_back(base, "plane", seed)
        for name, rows in base.initial.items():
            assert points(base.tasks[name].x[rows]) <= tested
            assert set(np.unique(rows)) <= set(candidates(base, base.tasks[name], "rest", seed))
    few = dataclasses.replace(base, initial={n: np.arange(13)[None] for n in base.initial})
    tested = held_back(few, "plane", 0)
    assert len(tested) > (SHARED + len(NAMES) * OWN) // 2  # more than half are given: all of these
    assert tested == points(*(task.x[:13] for task in few.tasks.values()))


def test_fewer_points_and_tasks_are_drawn_from_the_half():
    base = benchmark()
    (training,) = training_sets(base, Past("held_out", points=4, tasks=2, rows="half"), seed=1, seeds=3)
    assert max(training.counts) == 4 and training.tasks == 2
    x = np.asarray(training.rows.x)[np.asarray(training.rows.mask)]
    assert not points(x) & held_back(base, "plane", 1)


@pytest.mark.parametrize("method", ["rand", "mean_rank", "mean_z", "portfolio"])
def test_bo_queries_new_rows_and_measures_regret_among_them(method):
    base = benchmark(given=True)
    spec = tiny.spec(method, iterations=6) | {"past": {"base": "held_out", "rows": "half"}, "candidates": "rest"}
    (training,) = training_sets_of(base, spec)
    params, log = random_policy.pretrain(spec, training, prior_keys(training, 0, 2), False)
    past = training if registry.made_of(method).uses_past else None
    table = optimise(base, of_training(training, params, log), *tiny.job(spec), 1, past)
    assert table["iteration"].min() == -2
    for name, runs in table.groupby("task"):
        task, pool = base.tasks[name], candidates(base, base.tasks[name], "rest", spec["seed"])
        assert set(runs["candidate"]) <= set(pool)
        np.testing.assert_array_equal(runs["y"], task.y[runs["candidate"]])
        np.testing.assert_allclose(runs["simple_regret"], task.y[pool].max() - runs["best_y"], atol=1e-15)
        np.testing.assert_allclose(runs["normalised_regret"] * np.ptp(task.y[pool]), runs["simple_regret"], atol=1e-15)


def test_a_task_with_all_points_in_one_half_is_named():
    base = benchmark()
    task = base.tasks["plane a"]
    one = dataclasses.replace(task, x=task.x[:1], y=task.y[:1], metric=task.metric[:1], rows=task.rows[:1])
    blocks = tuple(b for b in base.matched if "plane a" not in b.tasks)
    small = dataclasses.replace(base, tasks=base.tasks | {"plane a": one}, matched=blocks)
    said = set()
    for seed in range(8):
        lost = tuple(one.x[0]) in held_back(small, "plane", seed)
        which = "priors are trained on" if lost else "BO may query"
        with pytest.raises(DataError, match=f"task 'plane a' of space 'plane' has none of its 1 points .* {which}"):
            training_half(small, seed) if lost else candidates(small, one, "rest", seed)
        said.add(which)
    assert len(said) == 2


def test_priors_that_saw_the_candidates_are_refused():
    made = tiny.spec("rand") | {"candidates": "rest"}
    spec, _ = tiny.job(made)
    half = made | {"past": {"base": "held_out", "rows": "half"}}
    refuse_seen(spec, half)
    refuse_seen(tiny.job(tiny.spec("rand"))[0], tiny.spec("rand"))
    for other, said in ((made, "'rows: all', seed 0"), (half | {"seed": 3}, "'rows: half', seed 3")):
        with pytest.raises(ConfigError, match=f"these have {said}"):
            refuse_seen(spec, other)


def test_the_registered_split():
    assert splits.past("new_rows") == Past("held_out", rows="half") and splits.entry("new_rows").candidates == "rest"
    for name in ("pd1_mini", "hpob_mini", "tables", "pd1"):
        assert "new_rows" in splits.of(name)
    given = config.load(ROOT)
    for seed in (0, 5):
        of_seed = config.check(config.merge(config.read(ROOT), {"seed": seed}))
        trained = config.pretrain_spec(of_seed, "tables", "new_rows", "h_nll")
        assert (trained.past.rows, trained.seed) == ("half", seed)
        assert config.bo_spec(of_seed, "tables", "new_rows", "h_nll", "pi").seed == seed
    assert prior_of(given, "tables", "new_rows", "h_nll") == ("new_rows", "h_nll")
    assert prior_of(given, "tables", "new_rows", "portfolio") == ("new_rows", "rand")


def test_a_split_whose_candidates_the_priors_know_is_refused(tmp_path, monkeypatch):
    (tmp_path / "splits.yaml").write_text("held_out: {}\nnew: {base: held_out, candidates: rest}")
    monkeypatch.setattr(splits, "SPLITS", tmp_path / "splits.yaml")
    with pytest.raises(ConfigError, match=r"'candidates: rest' of split 'new' needs priors trained on 'rows: half'"):
        splits._splits.__wrapped__()
