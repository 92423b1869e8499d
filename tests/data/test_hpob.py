"""The HPO-B loader: archives in the published format, good and bad."""

import stat
import zipfile

import numpy as np
import pytest

from metabo.data import hpob
from metabo.data.counts import counts
from metabo.data.published import initial_maxima
from metabo.errors import ConfigError, DataError
from tests.data.archives_fixture import HPOB_SPACES, hpob_content, write_hpob

SPACES = {"spaces": list(HPOB_SPACES)}
TRAIN, TEST = "meta-train-dataset.json", "meta-test-dataset.json"
INITIAL = "bo-initializations.json"


def load(path, edit=None, settings=None, **variations):
    return hpob.load("hpob", SPACES | (settings or {}), write_hpob(path / "hpob-data.zip", edit=edit, **variations))


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return load(tmp_path_factory.mktemp("hpob"))


def found(benchmark, name):
    return next(line for line in benchmark.counts if line.name == name)


def test_arrays_agree_with_the_archive(benchmark):
    content = hpob_content()
    seen = 0
    for member in (TRAIN, TEST):
        for space, tasks in content[member].items():
            for name, stored in tasks.items():
                task = benchmark.tasks[f"{space}/{name}"]
                np.testing.assert_array_equal(task.x, stored["X"])
                np.testing.assert_array_equal(task.y, np.ravel(stored["y"]))
                np.testing.assert_array_equal(task.metric, task.y)
                assert (task.space, task.group) == (space, name)
                seen += 1
    assert seen == len(benchmark.tasks) == 12
    assert {name: space.dim for name, space in benchmark.spaces.items()} == HPOB_SPACES
    assert not benchmark.matched


def test_folds_and_initial_points(benchmark):
    content = hpob_content()
    folds = {fold.name: fold for fold in benchmark.split("held_out")}
    assert set(folds) == set(HPOB_SPACES)
    for space, fold in folds.items():
        assert fold.train == tuple(f"{space}/{t}" for t in content[TRAIN][space])
        assert fold.test == tuple(f"{space}/{t}" for t in content[TEST][space])
        for name in content[TEST][space]:
            stored = content[INITIAL][space][name]
            np.testing.assert_array_equal(benchmark.initial[f"{space}/{name}"], [stored[f"test{i}"] for i in range(5)])
    assert set(benchmark.initial) == {t for fold in folds.values() for t in fold.test}


def test_flat_y_is_read_like_nested_y(tmp_path, benchmark):
    def edit(content):
        task = content[TRAIN]["4796"]["1000"]
        task["y"] = [value for (value,) in task["y"]]

    np.testing.assert_array_equal(load(tmp_path, edit).tasks["4796/1000"].y, benchmark.tasks["4796/1000"].y)


def test_max_points_samples_training_tasks_only_and_by_seed(tmp_path, benchmark):
    small = load(tmp_path, settings={"max_points": 10})
    again = load(tmp_path, settings={"max_points": 10, "spaces": ["5860"]})
    other = load(tmp_path, settings={"max_points": 10, "seed": 1})
    for fold in small.split("held_out"):
        for name in fold.train:
            rows = small.tasks[name].rows
            assert len(rows) == len(set(rows.tolist())) == 10
            np.testing.assert_array_equal(small.tasks[name].x, benchmark.tasks[name].x[rows])
            np.testing.assert_array_equal(small.tasks[name].y, benchmark.tasks[name].y[rows])
            assert not np.array_equal(rows, other.tasks[name].rows)
        for name in fold.test:
            np.testing.assert_array_equal(small.tasks[name].y, benchmark.tasks[name].y)
    np.testing.assert_array_equal(again.tasks["5860/1000"].rows, small.tasks["5860/1000"].rows)
    np.testing.assert_array_equal(
        load(tmp_path, settings={"max_points": 60}).tasks["4796/1000"].y, benchmark.tasks["4796/1000"].y
    )


def test_nan_rows_are_dropped_and_initial_points_still_point_at_the_same_rows(tmp_path, benchmark):
    used = set(hpob_content()[INITIAL]["4796"]["3549"]["test0"]) | set(benchmark.initial["4796/3549"].ravel().tolist())
    free = next(i for i in range(60) if i not in used)

    def edit(content):
        content[TEST]["4796"]["3549"]["y"][free] = [None]
        content[TRAIN]["4796"]["1001"]["y"][3] = [float("nan")]

    edited = load(tmp_path, edit)
    task, whole = edited.tasks["4796/3549"], benchmark.tasks["4796/3549"]
    assert len(task.y) == 59 and len(edited.tasks["4796/1001"].y) == 59
    np.testing.assert_array_equal(task.diverged, whole.x[[free]])
    positions = edited.initial["4796/3549"]
    np.testing.assert_array_equal(task.y[positions], whole.y[benchmark.initial["4796/3549"]])
    assert found(edited, "4796: rows without a finite value, dropped").found == 2

    first = int(benchmark.initial["4796/3549"][0, 0])

    def edit_initial(content):
        content[TEST]["4796"]["3549"]["y"][first] = [None]

    with pytest.raises(DataError, match=rf"{INITIAL}, task 4796/3549: row {first} is not one of the task's 59 finite"):
        load(tmp_path, edit_initial)


def test_task_without_a_finite_row(tmp_path):
    def edit(content):
        content[TRAIN]["5860"]["1002"]["y"] = [[None]] * 60

    with pytest.raises(DataError, match=r"meta-train-dataset.json, task 5860/1002: none of its 60 rows is finite"):
        load(tmp_path, edit)


def test_flat_training_task_is_kept_and_flagged(tmp_path):
    def edit(content):
        content[TRAIN]["5860"]["1002"]["y"] = [[0.5]] * 60

    benchmark = load(tmp_path, edit)
    assert benchmark.tasks["5860/1002"].flat and "5860/1002" in benchmark.split("held_out")[1].train
    line = found(benchmark, "5860: flat training tasks")
    assert line.found == 1 and line.differs
    assert "constant outputs in 1 task(s), kept: 5860/1002" in counts(benchmark)


def test_inputs_outside_the_cube_and_repeated_are_reported_not_changed(tmp_path):
    def edit(content):
        content[TRAIN]["5860"]["1000"]["X"][0] = [1.25, 0.5]
        content[TEST]["5860"]["9976"]["X"][1] = content[TEST]["5860"]["9976"]["X"][2]

    benchmark = load(tmp_path, edit)
    assert benchmark.tasks["5860/1000"].x[0, 0] == 1.25
    line = found(benchmark, "5860: rows with an input outside [0, 1], kept as published")
    assert (line.found, line.differs) == (1, True)
    assert found(benchmark, "repeated inputs (loaded tasks)").found == 1


def test_wrong_dimension_is_flagged_and_a_mixed_one_refused(tmp_path):
    def narrow(content):
        for member in (TRAIN, TEST):
            for task in content[member]["4796"].values():
                task["X"] = [row[:2] for row in task["X"]]

    line = found(load(tmp_path, narrow), "4796: inputs")
    assert (line.expected, line.found, line.differs) == (3, 2, True)

    def mix(content):
        content[TEST]["4796"]["3549"]["X"] = [row[:2] for row in content[TEST]["4796"]["3549"]["X"]]

    with pytest.raises(DataError, match=r"task 4796/3549: 2 inputs; .* task 4796/1000 has 3"):
        load(tmp_path, mix)


def replace_y(value):
    def edit(content):
        content[TRAIN]["4796"]["1000"]["y"] = value

    return edit


def drop_field(content):
    del content[TRAIN]["4796"]["1000"]["y"]


def ragged(content):
    content[TRAIN]["4796"]["1000"]["X"][5] = [0.1]


def drop_seed(content):
    del content[INITIAL]["4796"]["3549"]["test4"]


def far_row(content):
    content[INITIAL]["4796"]["3549"]["test4"][2] = 60


def drop_space(content):
    del content[TRAIN]["5860"]


def in_both(content):
    content[TRAIN]["4796"]["3549"] = content[TRAIN]["4796"]["1000"]


def not_nested(content):
    content[TRAIN]["4796"] = [1, 2]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (drop_field, r"task 4796/1000: no field 'y'; found \['X'\]"),
        (ragged, "not a rectangular array"),
        (replace_y([[0.5]] * 59), r"X \(60, 3\) and y \(59, 1\) do not fit"),
        (replace_y([[0.5, 0.6]] * 60), r"y \(60, 2\) do not fit"),
        (drop_seed, r"bo-initializations.json, task 4796/3549: needs lists .* \(KeyError\('test4'\)\)"),
        (far_row, r"task 4796/3549: row 60 is not one of the task's 60 finite rows"),
        (drop_space, r"space '5860' has no task in meta-train-dataset.json; it holds 4796"),
        (in_both, r"tasks \['4796/3549'\] are in meta-train and in meta-test"),
        (not_nested, r"meta-train-dataset.json is not \{space"),
    ],
)
def test_malformed_archives(tmp_path, edit, message):
    with pytest.raises(DataError, match=message):
        load(tmp_path, edit)


def test_unsafe_member_and_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"member '\.\./evil' points outside"):
        load(tmp_path, member=zipfile.ZipInfo("../evil"))
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(DataError, match="'link' is a link"):
        load(tmp_path, member=link)
    with pytest.raises(DataError, match=f"lacks {INITIAL}"):
        load(tmp_path, drop_file=INITIAL)
    with pytest.raises(DataError, match="needs its archive in HPO-B's format"):
        hpob.load("hpob", SPACES, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spaces": ["4797"]}, r"'4797'. Did you mean '4796'\?"),
        ({"spaces": []}, "spaces is empty"),
        ({"max_points": 0}, "max_points: 0 must be a whole number of at least 1"),
        ({"maxpoints": 3}, "Did you mean 'max_points'"),
    ],
)
def test_bad_settings(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, settings=settings)


def test_counts_are_those_of_the_whole_archive(tmp_path):
    benchmark = load(tmp_path, settings={"spaces": ["5860"]})
    lines = {line.name: line for line in benchmark.counts}
    assert {n: lines[n].expected for n in ("train tasks", "validation tasks", "test tasks")} == {
        "train tasks": 758, "validation tasks": 91, "test tasks": 86,
    }  # fmt: skip
    assert [lines[f"{s} evaluations"].found for s in ("train", "validation", "test")] == [480, 120, 240]
    assert lines["train evaluations"].expected == 3_279_050 and lines["train evaluations"].differs
    assert "test tasks differ from the published list in 3493" in counts(benchmark)
    assert not any("4796" in name for name in lines)


def test_stated_tasks_add_up():
    """The table of test tasks has the 86 of the paper, and 16 spaces of 2 to 18 inputs."""
    from metabo.data.hpob_counts import STATED

    assert sum(len(entry[3].split()) for entry in STATED.values()) == 86
    assert len(STATED) == 16 and {entry[0] for entry in STATED.values()} >= {2, 18}


def published(spaces):
    """(space, data set, set) -> best normalised output of the initial points, from the list."""
    assert len(initial_maxima()) == 430
    return {place: best for place, best in initial_maxima().items() if place[0] in spaces}


def test_published_maxima_of_initial_points_are_compared(tmp_path, benchmark):
    """An archive whose initial points have the published maxima passes; one other row is seen."""
    differs = "sets of initial points whose best is not the published one"
    assert found(benchmark, differs).differs  # the fixture's outputs are made up

    def agree(content):
        for (space, data_set, seed), best in published(HPOB_SPACES).items():
            if data_set not in content[TEST][space]:
                continue
            stored = content[TEST][space][data_set]
            rows = content[INITIAL][space][data_set][seed]
            low, high = 0.25, 0.75
            for number, row in enumerate(rows):
                stored["y"][row] = [low + (high - low) * best * (1.0 if number == 0 else 0.5)]
            given = {row for rows in content[INITIAL][space][data_set].values() for row in rows}
            free = sorted(set(range(len(stored["y"]))) - given)
            stored["y"][free[0]], stored["y"][free[1]] = [low], [high]
            for row in free[2:]:
                stored["y"][row] = [0.5]

    def disjoint(content):
        for tasks in content[INITIAL].values():
            for sets in tasks.values():
                for number, seed in enumerate(sorted(sets)):
                    sets[seed] = list(range(5 * number, 5 * number + 5))

    def agreeing(content):
        disjoint(content)
        agree(content)

    def one_off(content):
        agreeing(content)
        space, data_set, seed = next(iter(published(HPOB_SPACES)))
        row = content[INITIAL][space][data_set][seed][0]
        content[TEST][space][data_set]["y"][row][0] -= 1e-3

    assert not found(load(tmp_path, edit=agreeing), differs).differs
    assert found(load(tmp_path, edit=one_off), differs).found == 1


def test_bytes_of_members_are_compared(benchmark):
    assert found(benchmark, "meta-train-dataset.json: bytes").expected == 346_356_822
    assert any("meta-train-dataset.json: its SHA-256 begins with" in flag for flag in benchmark.facts.flags)
