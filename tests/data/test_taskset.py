"""TaskSet's loader against a direct reading of its files, small ones in the exact format and the real ones."""

import json
import math
import tarfile

import numpy as np
import pytest

from metabo.data import taskset
from metabo.data.counts import counts
from metabo.errors import ConfigError, DataError
from tests.data import real_tables

PREFIX = "FixedTextRNNClassification_"


@pytest.fixture(scope="module", params=["small", "real"])
def archive(request, tmp_path_factory):
    return real_tables.archive("taskset", request.param, tmp_path_factory.mktemp("taskset"))


@pytest.fixture(scope="module")
def files(archive):
    with tarfile.open(archive) as tar:
        return {m.name: json.loads(tar.extractfile(m).read()) for m in tar.getmembers()}


def expected_rows(rows, loss, rule):
    """(row, loss) of the curves to use, one at a time."""
    start = sorted(r["valid"]["loss"][0] for r in rows if math.isfinite(r["valid"]["loss"][0]))
    middle = len(start) // 2
    limit = 10 * (start[middle] if len(start) % 2 else (start[middle - 1] + start[middle]) / 2)
    for i, row in enumerate(rows):
        curve = row["valid"]["loss"]
        value = curve[-1] if loss == "final" else min((v for v in curve if not math.isnan(v)), default=math.inf)
        sound = math.isfinite(value)
        if rule == "status":
            sound = all(math.isfinite(v) and v <= limit for v in curve)
        if sound:
            yield i, value


@pytest.mark.parametrize("loss", ["final", "best"])
@pytest.mark.parametrize("rule", ["nan", "status"])
def test_outputs_by_both_settings(archive, files, loss, rule):
    benchmark = taskset.load("taskset", {"loss": loss, "divergence": rule}, archive)
    assert benchmark.facts.divergence == rule and len(benchmark.tasks) == len(files) == 12
    lost = 0
    for file, rows in files.items():
        task = benchmark.tasks[file.removesuffix(".json").removeprefix(PREFIX)]
        expected = list(expected_rows(rows, loss, rule))
        assert task.rows.tolist() == [i for i, _ in expected]
        np.testing.assert_array_equal(task.metric, [v for _, v in expected])
        np.testing.assert_allclose(task.y, [-math.log(v) for _, v in expected], rtol=1e-12)
        assert len(task.y) + len(task.diverged) == len(rows)
        lost += len(task.diverged)
    assert (lost > 0) != (loss == "best" and rule == "nan")  # no curve is without any finite loss


def test_status_drops_more_than_nan(archive):
    kept = {r: taskset.load("taskset", {"divergence": r}, archive) for r in ("nan", "status")}
    assert all(len(kept["status"].tasks[t].y) <= len(task.y) for t, task in kept["nan"].tasks.items())
    assert any(len(kept["status"].tasks[t].y) < len(task.y) for t, task in kept["nan"].tasks.items())
    assert all(task.y.min() > -math.log(10) for task in kept["status"].tasks.values())  # nothing blows up


def test_inputs_are_log_scaled_and_betas_by_their_distance_from_one(archive, files):
    benchmark = taskset.load("taskset", {}, archive)
    rows = next(iter(files.values()))
    low = [1e-8, 1e-4, 1e-6, 1e-10, 1e-8, 1e-8, 1e-7, 1e-6]
    high = [10.0, 1.0, 1.0, 1e3, 10.0, 10.0, 1e-4, 1e-3]
    raw = np.array([list(row["hp"].values()) for row in rows])
    raw[:, 1:3] = 1 - raw[:, 1:3]
    unit = np.log(raw / low) / np.log(np.array(high) / low)
    for task in benchmark.tasks.values():
        np.testing.assert_allclose(task.x, unit[task.rows], atol=1e-12)


def test_folds_group_cells_and_tasks_are_one_data_set(archive):
    benchmark = taskset.load("taskset", {}, archive)
    assert {task.group for task in benchmark.tasks.values()} == {"imdb"}
    folds = {fold.name: fold for fold in benchmark.split("held_out")}
    assert {name: len(fold.test) for name, fold in folds.items()} == {
        "without LSTM": 5, "without GRU": 2, "without IRNN": 2, "without VRNN": 3,
    }  # fmt: skip
    for name, fold in folds.items():
        cell = name.split()[1]
        assert all(cell in task for task in fold.test) and not any(f"_{cell}" in task for task in fold.train)
        assert len(fold.train) + len(fold.test) == 12
    assert [fold.test for fold in benchmark.split("others")] == [(task,) for task in benchmark.tasks]


def test_matched_blocks_hold_every_value_once(archive):
    benchmark = taskset.load("taskset", {}, archive)
    for task in benchmark.tasks.values():
        own = [(b.x, b.y[:, b.tasks.index(task.name)]) for b in benchmark.matched if task.name in b.tasks]
        x, y = np.concatenate([x for x, _ in own]), np.concatenate([y for _, y in own])
        assert sorted(map(tuple, np.column_stack([x, y]).tolist())) == sorted(
            map(tuple, np.column_stack([task.x, task.y]).tolist())
        )


def test_counts(archive):
    text = counts(taskset.load("taskset", {}, archive))
    small = archive.stat().st_size < 10_000_000
    assert ("1 of 31 counts differ" if small else "0 of 31 counts differ") in text


def first_row(change):
    def changed(files):
        change(files["FixedTextRNNClassification_imdb_patch32_GRU128_bs128.json"][0])

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop(next(iter(f))), r"lacks FixedTextRNN"),
        (
            first_row(lambda row: row["hp"].update(l1=0.5)),
            r"configurations \(hp\) in .*GRU128_bs128.json are not those",
        ),
        (
            lambda f: [rows[0]["hp"].update(l1=50.0) for rows in f.values()],
            r"taskset.tar: FixedText.*: parameter 'l1', row 0: value 50.0 is outside .*; get the published file",
        ),
        (first_row(lambda row: row["hp"].pop("l1")), r"GRU128_bs128.json: not a list .*'l1'"),
        (first_row(lambda row: row["valid"]["loss"].pop()), r"GRU128_bs128.json: curves of \[50, 51\] losses"),
        (first_row(lambda row: row["valid"]["loss"].__setitem__(3, -0.1)), r"loss 3 of row 0 is -0.1"),
        (first_row(lambda row: row["hp"].update(l1=float("nan"))), r"hp.l1 of row 0 is nan"),
        (lambda f: f.__setitem__(next(iter(f)), b"<html>moved</html>"), r"not a list of"),
        (lambda f: f.__setitem__(next(iter(f)), b"[]"), r"curves of no losses"),
    ],
)
def test_a_bad_file_is_named(tmp_path, change, message):
    archive = real_tables.write("taskset", tmp_path / "taskset.tar", change)
    with pytest.raises(DataError, match=message) as error:
        taskset.load("taskset", {}, archive)
    assert "\n" not in str(error.value)


def test_a_task_that_is_tied_trains_only(tmp_path):
    level = "imdb_patch32_GRU128_bs128"

    def change(files):
        for row in files[f"{PREFIX}{level}.json"]:
            row["valid"]["loss"] = [0.7] * len(row["valid"]["loss"])

    made = taskset.load("taskset", {}, real_tables.write("taskset", tmp_path / "taskset.tar", change))
    for split in ("held_out", "others"):
        folds = made.split(split)
        assert level not in {name for fold in folds for name in fold.test}
        assert len({name for fold in folds for name in fold.test}) == 11
        assert level in folds[0].train or "GRU" in folds[0].name
    assert {line.name: line.found for line in made.counts}["tasks that are tested"] == 11


def test_every_task_tied_is_told(tmp_path):
    def change(files):
        for row in (row for rows in files.values() for row in rows):
            row["valid"]["loss"] = [0.7] * len(row["valid"]["loss"])

    with pytest.raises(DataError, match="every task ties at the best"):
        taskset.load("taskset", {}, real_tables.write("taskset", tmp_path / "taskset.tar", change))


def test_finite_losses_that_blew_up_are_flagged_where_they_are_kept(tmp_path):
    def change(files):
        files["FixedTextRNNClassification_imdb_patch32_GRU128_bs128.json"][0]["valid"]["loss"][-1] = 1e18

    archive = real_tables.write("taskset", tmp_path / "taskset.tar", change)
    kept, dropped = (taskset.load("taskset", {"divergence": rule}, archive) for rule in ("nan", "status"))
    (flag,) = kept.facts.flags
    assert flag.endswith("kept by rule nan: imdb_patch32_GRU128_bs128 1") and not dropped.facts.flags
    assert (
        0 in kept.tasks["imdb_patch32_GRU128_bs128"].rows and 0 not in dropped.tasks["imdb_patch32_GRU128_bs128"].rows
    )


def test_a_task_without_any_finite_curve_is_told(tmp_path):
    def change(files):
        for row in files["FixedTextRNNClassification_imdb_patch32_GRU128_bs128.json"]:
            row["valid"]["loss"] = [float("nan")] * 51

    with pytest.raises(DataError, match=r"GRU128_bs128.*none of its 60 curves"):
        taskset.load("taskset", {}, real_tables.write("taskset", tmp_path / "a.tar", change))


def test_settings_are_checked(tmp_path):
    for settings, message in [
        ({"loss": "last"}, "best, final"),
        ({"divergence": "drop"}, "nan, status"),
        ({"x": 1}, "'x'"),
    ]:
        with pytest.raises(ConfigError, match=message):
            taskset.load("taskset", settings, tmp_path)
    with pytest.raises(DataError, match="download_taskset"):
        taskset.load("taskset", {})
