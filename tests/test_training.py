import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo import memory
from metabo.errors import ConfigError, DataError
from metabo.spaces import Parameter, SearchSpace
from metabo.tasks import Benchmark, Fold, MatchedBlock
from metabo.training import moments, pair_indices, training_sets
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
        members = training.members[f][training.present[f]]
        assert len(members) == len(fold.train)
        for member, name in zip(members, fold.train, strict=True):
            task, mask = benchmark.tasks[name], training.rows.mask[member]
            np.testing.assert_array_equal(training.rows.x[member][mask], task.x)
            np.testing.assert_array_equal(training.rows.y[member][mask], task.y)
            assert training.counts[member] == len(task.y) == mask.sum()
    assert training.present.tolist() == [[True, True, True], [True, True, False]]


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
    assert second.matched == ((),)


def test_moments_are_those_of_the_folds_training_tasks(training):
    benchmark = tiny.benchmark()
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
    data = moments(training, keys(2, 40), 4)
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
    again = moments(training, keys(2, 40), 4)
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


def test_moments_beyond_the_memory_are_refused_by_the_bytes_they_take(training, monkeypatch):
    # 2 folds x 3 seeds, 1 block, 6 points; 3 tasks in the table, of which a fold trains on 2; 2 inputs
    need = 6 * 1 * 6 * (2 + 2 + 2) * 8
    monkeypatch.setattr(memory, "available", lambda: (int(need / memory.SHARE) + 2, "the machine"))
    assert moments(training, keys(2, 3), 0).x.shape == (6, 1, 6, 2)
    monkeypatch.setattr(memory, "available", lambda: (int(need / memory.SHARE) - 2, "the machine"))
    with pytest.raises(
        ConfigError, match=r"space 'plane': .* 6 trainings on 6 matched .*lower pretrain.matched_points"
    ):
        moments(training, keys(2, 3), 0)
    assert moments(training, keys(2, 3), 4).x.shape == (6, 1, 4, 2)


def test_pairs_are_fold_major():
    fold, seed = pair_indices(2, 3)
    assert fold.tolist() == [0, 0, 0, 1, 1, 1] and seed.tolist() == [0, 1, 2, 0, 1, 2]
    assert jnp.issubdtype(fold.dtype, jnp.integer)
