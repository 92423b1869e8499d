"""A user's histories as benchmarks: folds of studies, several spaces, and what cannot be compared."""

import numpy as np
import pytest

from metabo.data import counts
from metabo.data.history import benchmark as own
from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from tests.tuner.conftest import HEADER, SPACE, rows, write


@pytest.fixture
def make(tmp_path):
    """Return a function that writes histories (one list of rows per space) and loads them."""

    def call(*tables, name="own", **settings):
        files = []
        for i, table in enumerate(tables):
            (tmp_path / f"s{i}.yaml").write_text(SPACE)
            files.append((str(write(tmp_path / f"h{i}.csv", HEADER, table)), str(tmp_path / f"s{i}.yaml")))
        history, space = [one for one, _ in files], [one for _, one in files]
        return own.load(name, {"history": history, "space": space, "seed": 0, **settings})

    return call


def test_studies_are_dealt_into_folds_and_each_is_tested_once(make):
    for folds, sizes in ((2, [4, 3]), (5, [2, 2, 1, 1, 1]), (20, [1] * 7)):
        found = make(rows(studies=7), folds=folds)
        dealt = found.split("held_out")
        assert [len(fold.test) for fold in dealt] == sizes
        assert sorted(name for fold in dealt for name in fold.test) == sorted(found.tasks)
        for fold in dealt:
            assert set(fold.train) == set(found.tasks) - set(fold.test)
    assert make(rows(studies=7)).splits == make(rows(studies=7)).splits
    assert make(rows(studies=7), seed=1).splits != make(rows(studies=7)).splits


def test_it_is_stored_and_says_what_was_done(make, tmp_path):
    found = make(rows())
    found.save(tmp_path / "own.npz")
    again = Benchmark.load(tmp_path / "own.npz")
    assert again.splits == found.splits and again.spaces == found.spaces
    shown = counts.counts(again)
    assert "s0: studies" in shown and "count as failed trials" in shown and "the tested ones too" in shown
    for name, task in again.tasks.items():
        assert task.x.min() >= 0 and task.x.max() <= 1 and np.isfinite(task.metric).all()
        np.testing.assert_array_equal(task.y, found.tasks[name].y)


def test_several_spaces_have_one_fold_each_and_initial_points(make):
    found = make(rows(studies=6), rows(studies=3), rows(studies=2), name="own_spaces")
    dealt = found.split("held_out")
    assert [(fold.space, len(fold.test), len(fold.train)) for fold in dealt] == [
        ("s0", 1, 5),
        ("s1", 1, 2),
        ("s2", 1, 1),
    ]
    assert all(name.startswith(f"{fold.space}: ") for fold in dealt for name in fold.test)
    assert set(found.initial) == {name for fold in dealt for name in fold.test}
    within = make(rows(studies=6), rows(studies=3))
    assert [fold.space for fold in within.split("held_out")] == ["s0"] * 5 + ["s1"] * 3 and not within.initial


def test_a_study_with_few_trials_is_trained_on_only(make):
    found = make([*rows(), *(["few", *row[1:]] for row in rows()[:3])])
    assert "few" in found.tasks
    for fold in found.split("held_out"):
        assert "few" in fold.train


def test_two_spaces_are_too_few_for_mphd(make):
    """A space is tested on a prior of the others, and one space gives no hyperprior."""
    with pytest.raises(DataError, match=r"2 search spaces \('s0' and 's1'\): MPHD .* name the histories of 3 spaces"):
        make(rows(studies=6), rows(studies=3), name="own_spaces")


def test_what_cannot_be_compared_is_refused(make):
    with pytest.raises(ConfigError, match=r"'benchmarks\.own\.history' is empty.*metabo compare"):
        make()
    with pytest.raises(DataError, match="space 's0': 1 usable studies, 1 of them with 5 trials"):
        make(rows(studies=1))
    with pytest.raises(DataError, match="0 of them with 5 trials"):
        make(rows(studies=2, fewest=3))
    with pytest.raises(ConfigError, match=r"benchmarks\.own\.folds: 1 must be a whole number of at least 2"):
        make(rows(), folds=1)
    bad = [[*rows()[0][:-1], "x"], *rows()[1:]]
    with pytest.raises(DataError, match="row 2, field 'error'"):
        make(bad)
    assert sum(len(task.y) for task in make(bad, skip_bad_rows=True).tasks.values()) == 37
