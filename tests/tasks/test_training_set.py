from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.compute import memory
from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.subsets import Past
from metabo.tasks.task import MatchedBlock, Task
from metabo.tasks.training_set import mapped_blocks, moments, pair_indices, training_sets
from tests import tiny
from tests.references import maximum_likelihood


@pytest.fixture(scope="module")
def training():
    (only,) = training_sets(tiny.benchmark(), "held_out")
    return only


def keys(folds, seeds, root=0):
    return jax.random.split(jax.random.key(root), (folds, seeds))


def test_rows_and_members_lead_back_to_the_tasks(training):
    benchmark = tiny.benchmark()
    assert (training.space, training.dim) == ("plane", 2)
    for f, fold in enumerate(benchmark.splits["held_out"]):
        assert training.folds[f] == fold
        members = training.members[f, 0][training.present[f, 0]]
        assert len(members) == len(fold.train)
        for member, name in zip(members, fold.train, strict=True):
            task, mask = benchmark.tasks[name], training.rows.mask[member]
            np.testing.assert_array_equal(training.rows.x[member][mask], task.x)
            np.testing.assert_array_equal(training.rows.y[member][mask], task.y)
            assert training.counts[member] == len(task.y) == mask.sum()
    assert training.present[:, 0].tolist() == [[True, True, True], [True, True, False]]


def test_spaces_are_kept_apart():
    base = tiny.benchmark()
    wide = {}
    for name in ("p", "q"):
        twin = tiny.task(name, np.random.default_rng(0).uniform(size=(3, 5)), [1.0, 2.0, 3.0])
        wide[name] = type(twin)(**{**twin.__dict__, "space": "wide"})
    folds = (*base.splits["held_out"], Fold("without q", "wide", ("p",), ("q",)))
    spaces = base.spaces | {"wide": SearchSpace("wide", tuple(Parameter(n, "linear", 0.0, 1.0) for n in "vwxyz"))}
    benchmark = Benchmark("two", spaces, base.tasks | wide, base.matched, {"held_out": folds})
    first, second = training_sets(benchmark, "held_out")
    assert (first.dim, second.dim) == (2, 5) and second.rows.x.shape == (1, 3, 5)
    assert second.matched == (((),),)


def test_a_training_set_tells_of_its_space():
    """The space itself, whether it may feed what is learned across spaces, and the truth, if it is known."""
    base = tiny.benchmark()
    (plain,) = training_sets(base, "held_out")
    assert plain.described is base.spaces["plane"] and plain.unseen is False and plain.truth is None
    truth = {"plane": {"parameters": {"lengthscale": [0.1, 0.2]}}}
    told = replace(base, facts=Facts(unseen=("plane",), truth=truth))
    (known,) = training_sets(told, "held_out")
    assert known.unseen is True and known.truth == truth["plane"]


def test_which_spaces_feed_a_prior_changes_no_training_set():
    base = tiny.benchmark()
    (one,), (other,) = (training_sets(base, Past("held_out", spaces=s), seeds=2) for s in ("all", "others"))
    for a, b in zip(jax.tree.leaves(one.rows), jax.tree.leaves(other.rows), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one.folds, one.trained, one.counts) == (other.folds, other.trained, other.counts)
    assert Past("held_out").spaces == "all"
    with pytest.raises(ConfigError, match=r"unknown split spaces 'other'\. Did you mean 'others'"):
        training_sets(base, Past("held_out", spaces="other"))


def test_moments_are_those_of_the_folds_training_tasks():
    benchmark = tiny.benchmark()
    (training,) = training_sets(benchmark, "held_out", seeds=3)
    data = moments(training, keys(2, 3), 0)
    assert data.x.shape == (6, 1, tiny.SHARED, 2) and data.mask.all()
    for f, columns in enumerate(([1, 2], [0, 1])):  # b and flat; a and b
        block = benchmark.matched[0]
        mean, covariance = maximum_likelihood(block.y[:, columns])
        for seed in range(3):
            pair = 3 * f + seed
            np.testing.assert_array_equal(data.x[pair, 0], block.x)
            np.testing.assert_allclose(data.mean[pair, 0], mean, rtol=1e-14)
            np.testing.assert_allclose(data.root[pair, 0] @ data.root[pair, 0].T, covariance, atol=1e-15)


def test_moments_of_a_sample_of_the_matched_points(training):
    benchmark = tiny.benchmark()
    (many,) = training_sets(benchmark, "held_out", seeds=40)
    data = moments(many, keys(2, 40), 4)
    assert data.x.shape == (80, 1, 4, 2)
    rows = [
        [np.flatnonzero((benchmark.matched[0].x == point).all(1))[0] for point in pair[0]]
        for pair in np.asarray(data.x)
    ]
    assert all(len(set(row)) == 4 for row in rows)  # without replacement
    assert len({tuple(row) for row in rows}) > 5  # another sample for every (fold, seed)
    counts = np.bincount(np.concatenate(rows), minlength=tiny.SHARED)
    assert (np.abs(counts - 80 * 4 / 6) < 5 * np.sqrt(80 * 4 / 6 * 2 / 6)).all()
    mean, _ = maximum_likelihood(benchmark.matched[0].y[rows[0]][:, [1, 2]])
    np.testing.assert_allclose(data.mean[0, 0], mean, rtol=1e-14)
    again = moments(many, keys(2, 40), 4)
    assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(data, again, strict=True))
    for limit in (tiny.SHARED, 100):
        assert moments(training, keys(2, 1), limit).x.shape[2] == tiny.SHARED


def test_blocks_of_different_sizes_are_padded():
    base = tiny.benchmark()
    small = MatchedBlock("small", "plane", ("a", "b"), base.matched[0].x[:2], base.matched[0].y[:2, :2])
    benchmark = Benchmark("two", base.spaces, base.tasks, (*base.matched, small), base.splits)
    (training,) = training_sets(benchmark, "held_out")
    data = moments(training, keys(2, 1), 0)
    assert np.asarray(data.mask).sum(axis=2).tolist() == [[tiny.SHARED, 0], [tiny.SHARED, 2]]
    assert not np.asarray(data.x)[1, 1, 2:].any() and not np.asarray(data.root)[1, 1, 2:].any()


@pytest.mark.parametrize("tasks", [(), ("a",), ("flat", "a")])
def test_a_fold_without_matched_tasks_is_named(tasks):
    base = tiny.benchmark()
    full = base.matched[0]
    columns = [full.tasks.index(name) for name in tasks]
    blocks = (MatchedBlock("m", "plane", tasks, full.x, full.y[:, columns]),) if tasks else ()
    benchmark = Benchmark("none", base.spaces, base.tasks, blocks, base.splits)
    (training,) = training_sets(benchmark, "held_out")
    with pytest.raises(DataError, match=r"fold 'without a' of space 'plane': no matched inputs .* leave h_ekl out"):
        moments(training, keys(2, 1), 0)


def test_moments_beyond_the_memory_are_refused_by_the_bytes_they_take(monkeypatch):
    # 2 folds x 3 seeds, 1 block, 6 points; 3 tasks in the table, of which a fold trains on 2; 2 inputs
    need = 6 * 1 * 6 * (2 + 2 + 2) * 8
    monkeypatch.setattr(memory, "available", lambda: (int(need / memory.SHARE) + 2, "the machine"))
    (training,) = training_sets(tiny.benchmark(), "held_out", seeds=3)
    assert moments(training, keys(2, 3), 0).x.shape == (6, 1, 6, 2)
    monkeypatch.setattr(memory, "available", lambda: (int(need / memory.SHARE) - 2, "the machine"))
    with pytest.raises(
        ConfigError, match=r"space 'plane': .* 6 trainings on 6 matched .*lower matched_points or seeds in config"
    ):
        moments(training, keys(2, 3), 0)
    assert moments(training, keys(2, 3), 4).x.shape == (6, 1, 4, 2)


# --- matched tables of mapped outputs ---------------------------------------------------------------------------------


TABLE = {"a": [0.0, 1.0, 2.0, None, "x"], "b": [5.0, "x", 7.0, None, 6.0], "c": ["x", "x", 3.0, 3.0, "x"]}
"""Outputs at five points of the square; x: diverged, None: not evaluated."""
MAPPED = {0.0: -1.045851, 1.0: 0.111223, 2.0: 2.0, 5.0: -1.045851, 6.0: 0.111223, 7.0: 2.0, 3.0: 2.0, "x": -2.0}
"""By hand: of (0, 1, 2) see test_rescale; (5, 6, 7) is that plus 5; equal outputs all become 2."""
POINTS = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.5, 0.5]])


def table():
    """Tasks, and one table cut by which of them have a value."""
    tasks, pieces = {}, {}
    for name, values in TABLE.items():
        good = [i for i, v in enumerate(values) if isinstance(v, float)]
        lost = [i for i, v in enumerate(values) if v == "x"]
        y = np.array([values[i] for i in good])
        tasks[name] = Task(name, "square", name, POINTS[good], y, y, np.array(good), POINTS[lost])
    for i, point in enumerate(POINTS):
        have = tuple(name for name, task in tasks.items() if (task.x == point).all(axis=1).any())
        pieces.setdefault(have, []).append(i)
    blocks = [
        MatchedBlock("m", "square", have, POINTS[rows], np.array([[TABLE[n][i] for n in have] for i in rows]))
        for have, rows in pieces.items()
    ]
    return tasks, tuple(blocks)


def test_matched_points_that_diverged_are_present_and_those_not_evaluated_are_missing():
    """Point 3 was evaluated in c alone; the four others have a value or diverged in every task."""
    tasks, blocks = table()
    assert len(blocks) == 5  # every point has another set of tasks with a value
    other = MatchedBlock("n", "square", ("b",), POINTS[:1], np.array([[5.0]]))
    whole, alone, second = mapped_blocks((*blocks, other), tasks)
    assert (whole.name, whole.space, whole.tasks) == ("m", "square", ("a", "b", "c"))
    order = np.argsort(whole.x[:, 0])
    np.testing.assert_array_equal(whole.x[order], POINTS[[0, 1, 2, 4]])
    expected = [[MAPPED[TABLE[name][i]] for name in "abc"] for i in (0, 1, 2, 4)]
    np.testing.assert_allclose(whole.y[order], expected, atol=1e-6)
    assert (alone.name, alone.tasks) == ("m", ("c",))
    np.testing.assert_array_equal(alone.x, POINTS[[3]])
    np.testing.assert_array_equal(alone.y, [[2.0]])
    assert (second.name, second.tasks) == ("n", ("b", "c"))  # a table of its own: a has no value in it
    np.testing.assert_allclose(second.y, [[-1.045851, -2]], atol=1e-6)


def test_raw_matched_blocks_stay_as_they_are():
    tasks, blocks = table()
    space = SearchSpace("square", tuple(Parameter(n, "linear", 0.0, 1.0) for n in "uv"))
    fold = Fold("without c", "square", ("a", "b"), ("c",))
    benchmark = Benchmark("m", {"square": space}, tasks, blocks, {"s": (fold,)})
    (raw,), (mapped,) = (training_sets(benchmark, "s", outputs) for outputs in ("raw", "mapped"))
    (((block,),),) = raw.matched
    np.testing.assert_array_equal(np.c_[block.x, block.y], [[0.1, 0.9, 0, 5], [0.3, 0.7, 2, 7]])
    (((block,),),) = mapped.matched  # point 3 has a value in the test task alone
    assert block.tasks == ("a", "b") and sorted(block.x[:, 0]) == [0.1, 0.2, 0.3, 0.5]


def test_pairs_are_fold_major():
    fold, seed = pair_indices(2, 3)
    assert fold.tolist() == [0, 0, 0, 1, 1, 1] and seed.tolist() == [0, 1, 2, 0, 1, 2]
    assert jnp.issubdtype(fold.dtype, jnp.integer)
