"""Splits with less data: what the registered names mean, and which rows and tasks a prior is trained on."""

import itertools

import numpy as np
import pytest

from metabo import public
from metabo.bo import priors
from metabo.bo.trajectories import optimise
from metabo.errors import ConfigError, DataError
from metabo.plan import registry, splits
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.subsets import Past, candidates
from metabo.tasks.task import MatchedBlock
from metabo.tasks.training_set import moments, prior_keys, training_sets, training_sets_of
from tests import tiny


@pytest.fixture(scope="module")
def base():
    """Four tasks; `b` is of the data set of `a`, which is tested on all others."""
    made = tiny.benchmark()
    tasks = made.tasks | {"b": tiny.task("b", made.tasks["b"].x, made.tasks["b"].y, group="a")}
    folds = (Fold("without a", "plane", ("b", "flat", "point"), ("a",)),)
    return Benchmark("tiny", made.spaces, tasks, made.matched, {"others": folds, "held_out": made.splits["held_out"]})


def one(base, seeds=4, **less):
    (training,) = training_sets(base, Past("others", **less), seed=1, seeds=seeds)
    return training


def rows_of(training, fold, seed):
    """{task: (x, y)} of what a seed is trained on."""
    x, y, mask = (np.asarray(part) for part in training.past(fold, seed))
    names = training.trained[fold][seed]
    assert not mask[len(names) :].any()
    return {name: (x[i][mask[i]], y[i][mask[i]]) for i, name in enumerate(names)}


def test_everything_is_kept_unless_something_is_asked_for(base):
    training = one(base)
    for seed in range(4):
        for name, (x, y) in rows_of(training, 0, seed).items():
            np.testing.assert_array_equal(x, base.tasks[name].x)
            np.testing.assert_array_equal(y, base.tasks[name].y)
        assert [b.x.shape for b in training.matched[0][seed]] == [(tiny.SHARED, 2)]
    assert training.tasks == 3 and len(training.counts) == 3


def test_fewer_points_are_distinct_rows_drawn_per_seed_and_small_tasks_stay_whole(base):
    training = one(base, points=5)
    drawn = [rows_of(training, 0, seed) for seed in range(4)]
    for rows in drawn:
        assert {name: len(y) for name, (_, y) in rows.items()} == {"b": 5, "flat": 5, "point": 1}
        x, y = rows["flat"]
        places = [int(np.flatnonzero((base.tasks["flat"].x == point).all(axis=1))[0]) for point in x]
        assert len(set(places)) == 5
        np.testing.assert_array_equal(y, base.tasks["flat"].y[places])
    assert len({rows["flat"][0].tobytes() for rows in drawn}) > 1
    assert max(training.counts) == 5  # nothing is padded to the size of the whole task
    for blocks in training.matched[0]:
        assert sum(len(block.x) for block in blocks) == 5
    assert len({blocks[0].x.tobytes() for blocks in training.matched[0]}) > 1


def test_draws_do_not_depend_on_other_tasks_or_on_how_many_seeds_there_are(base):
    few, many = one(base, seeds=2, points=3), one(base, seeds=4, points=3)
    fewer_tasks = Benchmark(
        "tiny", base.spaces, base.tasks, base.matched, {"others": (Fold("without a", "plane", ("flat",), ("a",)),)}
    )
    alone = one(fewer_tasks, seeds=2, points=3)
    for seed in range(2):
        np.testing.assert_array_equal(rows_of(few, 0, seed)["flat"][0], rows_of(many, 0, seed)["flat"][0])
        np.testing.assert_array_equal(rows_of(few, 0, seed)["flat"][0], rows_of(alone, 0, seed)["flat"][0])


def test_tasks_of_the_test_tasks_data_set_go_first_then_random_ones(base):
    two = one(base, seeds=8, tasks=2)
    assert {names for names in two.trained[0]} == {("flat", "point")}
    single = one(base, seeds=8, tasks=1)
    assert {names for names in single.trained[0]} == {("flat",), ("point",)}
    assert single.tasks == 1
    for seed, names in enumerate(single.trained[0]):
        assert list(rows_of(single, 0, seed)) == list(names)
    assert one(base, tasks=9).trained[0][0] == ("b", "flat", "point")


def pieces(base, **less):
    """Three folds of tasks a to e, whose shared inputs are in four pieces: of all, without b, without a, of d and e."""
    x = np.random.default_rng(7).uniform(size=(9, 2))
    y = {name: np.random.default_rng(i).normal(size=9) for i, name in enumerate("abcde")}
    blocks = [
        ("m", "abcde", slice(0, 4)),
        ("m", "acde", slice(4, 7)),
        ("m", "bcde", slice(7, 8)),
        ("m", "de", slice(8, 9)),
    ]
    matched = tuple(
        MatchedBlock(name, "plane", tuple(tasks), x[rows], np.stack([y[t][rows] for t in tasks], axis=1))
        for name, tasks, rows in blocks
    )
    have = {t: np.concatenate([np.arange(9)[rows] for _, tasks, rows in blocks if t in tasks]) for t in y}
    own = np.random.default_rng(8).uniform(size=(5, 2))
    tasks = {
        t: tiny.task(t, np.concatenate([x[rows], own]), np.concatenate([y[t][rows], y[t][:5]]))
        for t, rows in have.items()
    }
    folds = tuple(Fold(f"without {t}", "plane", tuple(n for n in "abcde" if n != t), (t,)) for t in "abe")
    benchmark = Benchmark("pieces", base.spaces, tasks, matched, {"others": folds})
    return training_sets(benchmark, Past("others", rows="matched", **less), seed=1, seeds=3)[0], benchmark


@pytest.mark.parametrize("less", [{}, {"points": 3}, {"tasks": 3}, {"tasks": 3, "points": 3}])
def test_matched_rows_are_the_points_of_the_blocks_of_their_fold_and_seed(base, less):
    training, _ = pieces(base, **less)
    for f, seed in itertools.product(range(3), range(3)):
        rows = rows_of(training, f, seed)
        seen = sorted((n, *x, v) for n, (xs, ys) in rows.items() for x, v in zip(xs.tolist(), ys.tolist(), strict=True))
        blocks = [
            (name, *x, v)
            for block in training.matched[f][seed]
            for name, column in zip(block.tasks, block.y.T.tolist(), strict=True)
            for x, v in zip(block.x.tolist(), column, strict=True)
        ]
        assert seen == sorted(blocks)
        if not less:  # by hand: not what is shared with the fold's test task alone (d in the last one)
            counts = [
                {"b": 5, "c": 8, "d": 9, "e": 9},
                {"a": 7, "c": 8, "d": 9, "e": 9},
                {"a": 7, "b": 5, "c": 8, "d": 8},
            ]
            assert {name: len(y) for name, (_, y) in rows.items()} == counts[f]
    # Stored once where seeds see the same rows.
    stored = {(f, s if less else 0, n) for f in range(3) for s in range(3) for n in training.trained[f][s]}
    assert len(training.counts) == len(stored)


def test_matched_rows_of_all_learners_are_the_points_of_the_moments(base):
    """What EKL reads without a cap, and what NLL reads on a split with matched rows, are the same points."""
    training, benchmark = pieces(base)
    (plain,) = training_sets(benchmark, "others", seed=1, seeds=3)
    data = moments(plain, prior_keys(plain, 1, 3), 0)
    for f, seed in itertools.product(range(3), range(3)):
        read = {tuple(x) for x in np.asarray(data.x[3 * f + seed])[np.asarray(data.mask[3 * f + seed])].tolist()}
        assert read == {tuple(x) for xs, _ in rows_of(training, f, seed).values() for x in xs.tolist()}


def test_matched_rows_need_a_matched_point_of_every_training_task(base):
    with pytest.raises(DataError, match=r"fold 'without a' of space 'plane': task 'point' has no matched points"):
        one(base, rows="matched")
    with pytest.raises(ConfigError, match="split rows 'some'"):
        one(base, rows="some")


def test_bo_on_matched_candidates_queries_those_and_measures_regret_among_them(base):
    spec = tiny.spec("h_nll", iterations=30) | {"past": {"base": "others"}, "candidates": "matched"}
    (training,) = training_sets_of(base, spec)
    params, log = registry.training_module("h_nll").pretrain(spec, training, prior_keys(training, 0, 2), False)
    table = optimise(base, priors.of_training(training, params, log), *tiny.job(spec), 1)
    task, shared = base.tasks["a"], np.arange(tiny.SHARED)
    assert set(table["candidate"]) <= set(shared)
    np.testing.assert_array_equal(table["y"], task.y[table["candidate"]])
    np.testing.assert_allclose(table["simple_regret"], task.y[shared].max() - table["best_y"], atol=1e-15)
    assert task.y.max() > task.y[shared].max()  # else the pool would not show
    everything = optimise(base, priors.of_training(training, params, log), *tiny.job(spec | {"candidates": "all"}), 1)
    assert not set(everything["candidate"]) <= set(shared)


def test_candidates_by_name(base):
    task = base.tasks["a"]
    np.testing.assert_array_equal(candidates(base, task, "all"), np.arange(14))
    np.testing.assert_array_equal(candidates(base, task, "matched"), np.arange(tiny.SHARED))
    with pytest.raises(ConfigError, match="split candidates 'match'"):
        candidates(base, task, "match")
    given = tiny.benchmark(initial=True)
    with pytest.raises(ConfigError, match=r"task 'a' has given initial points"):
        candidates(given, given.tasks["a"], "matched")


def test_every_registered_split_says_what_its_name_says():
    for name in splits.names():
        past, entry = splits.past(name), splits.entry(name)
        assert past.base in ("held_out", "others", "one_out", "first")
        for key in ("points", "tasks"):
            if f"_{key}_" in name:
                assert getattr(past, key) == int(name.rpartition("_")[2])
        assert (entry.candidates == "matched") == name.endswith("candidates")
    assert (
        splits.past("crossed_matched_candidates") == splits.past("crossed_matched") == Past("held_out", rows="matched")
    )
    assert splits.past("new_space") == Past("held_out", spaces="others")
    assert splits.prior_split("crossed_candidates") == "crossed" and splits.prior_split("held_out") == "held_out"


@pytest.mark.parametrize("name", ["pd1_mini", "tables"])
def test_matched_candidates_are_a_choice_only_where_some_points_are_not_matched(name):
    """Where all are, a run on them is the run on all candidates again, shown as another setting."""
    loaded = public.load_benchmark(name)
    fewer = [task for task in loaded.tasks.values() if len(candidates(loaded, task, "matched")) < len(task.y)]
    offered = [split for split in splits.of(name) if splits.entry(split).candidates == "matched"]
    assert bool(offered) == bool(fewer)


def test_a_benchmark_has_the_splits_made_of_its_own():
    assert "others_points_4" in splits.of("pd1_mini") and "others_points_4" not in splits.of("hpob_mini")
    assert "held_out_points_1000" in splits.of("hpob") and "held_out_points_1000" not in splits.of("hpob_mini")
    assert {"held_out", "held_out_points_100"} <= set(splits.of("hpob_mini"))
    assert "new_space" in splits.of("super_mini") and "new_space" not in splits.of("hpob_mini")
    with pytest.raises(ConfigError, match=r"unknown split 'helt_out'. Did you mean 'held_out'?"):
        splits.entry("helt_out")
