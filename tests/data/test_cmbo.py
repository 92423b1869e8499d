"""The spaces of cm-BO from an archive in HPO-B's format: pooled tasks, standardised outputs, disjoint targets."""

import json
import zipfile

import numpy as np
import pytest

from metabo.data import cmbo
from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from tests import stage_runs

DIMS = {"rpart_3": 3, "rpart_6": 6, "svm_8": 8, "ranger_10": 10}
COUNTS = {"train": 8, "validation": 3, "test": 3}


def content(dims=None, counts=None, points=40, seed=0):
    """Members by name: tasks t0, t1, ... of each part, outputs a random plane."""
    rng, members = np.random.default_rng(seed), {}
    for part, count in (counts or COUNTS).items():
        meta = {}
        for space, dim in (dims or DIMS).items():
            meta[space] = {}
            for i in range(count):
                x = rng.uniform(size=(points, dim))
                meta[space][f"{part}{i}"] = {"X": x.tolist(), "y": (3 + x @ rng.normal(size=dim))[:, None].tolist()}
        members[f"meta-{part}-dataset.json"] = meta
    return members | {"bo-initializations.json": {}}


def write(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(f"data/{name}", json.dumps(value))
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return write(tmp_path_factory.mktemp("cmbo") / "mini.zip", content())


@pytest.fixture(scope="module")
def benchmark(archive):
    return cmbo.load("cmbo_mini", {"seed": 3}, archive)


def load(tmp_path, members, name="cmbo_mini", **settings):
    return cmbo.load(name, {"spaces": ["rpart.preproc"], **settings}, write(tmp_path / "a.zip", members))


def test_tasks_of_all_parts_are_pooled_and_standardised(benchmark):
    stored = content()
    for space, dim in DIMS.items():
        own = [task for task in benchmark.tasks.values() if task.space == space]
        assert len(own) == sum(COUNTS.values()) and benchmark.spaces[space].dim == dim
        for part, count in COUNTS.items():
            for i in range(count):
                table = stored[f"meta-{part}-dataset.json"][space][f"{part}{i}"]
                raw, task = np.ravel(table["y"]), benchmark.tasks[f"{space}/{part}{i}"]
                np.testing.assert_array_equal(task.x, table["X"])
                np.testing.assert_array_equal(task.metric, raw)
                np.testing.assert_allclose(task.y, (raw - raw.mean()) / raw.std(), rtol=1e-12)
    assert benchmark.facts.labels == dict(zip(DIMS, cmbo.STATED, strict=True))


def test_targets_are_fifteen_percent_and_never_the_same(benchmark):
    """14 tasks: 2.1, so 2 of each of five splits; by hand 44: 6.6 to 7, 3: 0.45 to the least, 1."""
    for space in DIMS:
        folds = [fold for fold in benchmark.split("held_out") if fold.space == space]
        assert len(folds) == 5
        targets = [name for fold in folds for name in fold.test]
        assert len(targets) == len(set(targets)) == 10
        for fold in folds:
            assert len(fold.test) == 2 and len(fold.train) == 12 and not set(fold.train) & set(fold.test)
    assert benchmark.split("first") == benchmark.split("held_out")[:1]
    several = [[str(i) for i in range(n)] for n in (3, 10, 44, 69, 63, 74)]
    sizes = [len(cmbo.draws("s", names, 1, 0, names)[0].test) for names in several]
    assert sizes == [1, 2, 7, 10, 9, 11]


def test_splits_and_initial_points_follow_the_seed_and_names_alone(archive, benchmark):
    again, other = (cmbo.load("cmbo_mini", {"seed": seed}, archive) for seed in (3, 4))
    alone = cmbo.load("cmbo_mini", {"seed": 3, "spaces": ["svm"], "folds": 2}, archive)
    assert again.splits == benchmark.splits != other.splits
    assert alone.split("held_out") == tuple(f for f in benchmark.split("held_out") if f.space == "svm_8")[:2]
    for name, rows in benchmark.initial.items():
        assert rows.shape == (8, 5) and all(len(set(row)) == 5 for row in rows.tolist())
        np.testing.assert_array_equal(rows, again.initial[name])
    assert set(benchmark.initial) == set(benchmark.tasks)
    assert any((rows != other.initial[name]).any() for name, rows in benchmark.initial.items())
    assert len({row.tobytes() for row in benchmark.initial["svm_8/test0"]}) == 8


def test_constant_tasks_are_counted_named_and_left_out(tmp_path):
    members = content({"rpart_3": 3})
    members["meta-train-dataset.json"]["rpart_3"]["train0"]["y"] = [0.5] * 40
    made = load(tmp_path, members)
    assert "rpart_3/train0" not in made.tasks and len(made.tasks) == 13
    assert "space rpart_3: constant outputs, left out: rpart_3/train0" in made.facts.flags
    found = {line.name: line.found for line in made.counts}
    assert found["rpart.preproc: tasks"] == 14 and found["rpart.preproc: tasks with constant outputs"] == 1
    assert any("fewer than 100 evaluations" in flag for flag in made.facts.flags)


def test_tied_tasks_are_sources_unless_the_settings_say_otherwise(tmp_path):
    """Eleven of fourteen tasks are tied: three are left, enough for one draw of two, not for two draws."""
    members, level = content({"rpart_3": 3}), []
    for part, count in COUNTS.items():
        for i in range(count):
            if (part, i) not in (("train", 1), ("validation", 0), ("test", 2)):
                members[f"meta-{part}-dataset.json"]["rpart_3"][f"{part}{i}"]["y"] = [0.9] * 20 + [0.5] * 20
                level.append(f"rpart_3/{part}{i}")
    made = load(tmp_path, members, folds=1)
    (fold,) = made.split("held_out")
    assert len(fold.test) == 2 and not set(fold.test) & set(level) and set(level) < set(fold.train)
    told = "space rpart_3: half of the rows tie at the best, never tested: "
    (flag,) = [flag for flag in made.facts.flags if flag.startswith(told)]
    assert set(flag.removeprefix(told).split(", ")) == set(level)
    with pytest.raises(DataError, match="has 3 tasks that may be targets: too few for 2 draws of 2"):
        load(tmp_path, members, folds=2)
    drawn = load(tmp_path, members, folds=5, tied="targets")
    assert set(level) & {name for fold in drawn.split("held_out") for name in fold.test}
    assert not any(flag.startswith(told) for flag in drawn.facts.flags)


def test_the_id_with_the_stated_number_of_tasks_is_taken(tmp_path):
    """Of two ids the one with 69 tasks; if neither has them, the first, and the count says so."""
    members = content({"5859": 6, "5636": 6}, {"train": 60, "validation": 4, "test": 6}, points=6)
    del members["meta-train-dataset.json"]["5636"]["train0"]
    made = load(tmp_path, members, "cmbo_hpob", spaces=["rpart"])
    assert list(made.spaces) == ["5636"] and not any(line.differs for line in made.counts)
    members["meta-test-dataset.json"]["5636"].pop("test0")
    other = load(tmp_path, members, "cmbo_hpob", spaces=["rpart"])
    assert list(other.spaces) == ["5859"]
    assert [line.name for line in other.counts if line.differs] == ["rpart: tasks"]


FAULTS = {
    "too few tasks": (
        content({"rpart_3": 3}, {"train": 2, "validation": 1, "test": 1}),
        "has 4 tasks that may be targets: too few for 5",
    ),
    "no such space": (content({"svm_8": 8}), "space 'rpart_3' has no task"),
    "few evaluations": (content({"rpart_3": 3}, points=4), "has 4 evaluations; BO starts from 5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_named(tmp_path, fault):
    members, message = FAULTS[fault]
    with pytest.raises(DataError, match=message):
        load(tmp_path, members)


def test_a_task_in_two_parts_a_missing_archive_and_bad_settings_are_refused(tmp_path):
    members = content({"rpart_3": 3})
    members["meta-test-dataset.json"]["rpart_3"]["train0"] = members["meta-train-dataset.json"]["rpart_3"]["train0"]
    with pytest.raises(DataError, match="task rpart_3/train0 is in two of its parts"):
        load(tmp_path, members)
    with pytest.raises(DataError, match="'cmbo_mini' needs its archive"):
        cmbo.load("cmbo_mini", {}, None)
    for settings, message in (
        ({"spaces": ["rpar"]}, r"unknown benchmarks.cmbo_mini.spaces 'rpar'. Did you mean 'rpart'"),
        ({"spaces": []}, "benchmarks.cmbo_mini.spaces is empty"),
        ({"folds": 0}, "benchmarks.cmbo_mini.folds: 0 must be a whole number of at least 1"),
        ({"fold": 1}, "unknown setting of benchmark 'cmbo_mini' 'fold'"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(tmp_path, content({"rpart_3": 3}), **settings)


def test_the_stage_reads_the_archive(archive, tmp_path, benchmark):
    spec = {"benchmark": "cmbo_mini", "settings": {"seed": 3, "spaces": list(cmbo.STATED), "folds": 5}}
    out = stage_runs.run("data", spec, tmp_path / "cmbo_mini.npz", "--in-archive", str(archive))
    assert Benchmark.load(out).splits == benchmark.splits
