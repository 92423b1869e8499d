"""pd1_mini: its tasks and points, collection with interruption, PD1's format, and shipped rows trained again."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metabo.collect import pd1_archive, pd1_mini, shipped
from metabo.collect.journal import Journal
from metabo.data import pd1
from metabo.errors import ConfigError, DataError

UNIT, OTHER = "phoneme-mlp-128", "satimage-mlp-128"
SIZES = {"pilot": 2, "matched": 4, "unmatched": 3}
NUMBER = 2 * 2 + 4 + 3
INPUTS = list(pd1.INPUTS)
BATCHES = {"phoneme-mlp": (32, 128), "digits-simple_cnn": (16, 64), "mnist1d-max_pool_relu": (32, 128)}


def test_the_tasks_are_those_that_were_asked_for():
    groups = [pd1_mini.study_group(unit).split(",") for unit in pd1_mini.UNITS]
    assert len(set(map(tuple, groups))) == 24
    assert all(len(group) == 5 for group in groups)
    assert len({dataset for _, dataset, *_ in groups}) >= 6
    assert len({variant for *_, variant, _ in groups}) >= 4
    batches = {}
    for *kind, batch in groups:
        batches.setdefault(tuple(kind), set()).add(int(batch))
    assert {len(sizes) for sizes in batches.values()} == {2}


def test_online_tasks_are_tasks_with_the_metric_of_their_kind():
    assert len(pd1_mini.ONLINE) == 9 and set(pd1_mini.ONLINE) <= {pd1_mini.study_group(u) for u in pd1_mini.UNITS}
    assert {metric for task, metric in pd1_mini.ONLINE.items() if "transformer" in task} == {"ce_loss"}
    assert {metric for task, metric in pd1_mini.ONLINE.items() if "transformer" not in task} == {"error_rate"}
    assert len({task.split(",")[1] for task in pd1_mini.ONLINE}) >= 5


def test_matched_points_are_shared_and_sizes_only_add():
    few, many = (pd1_mini.plan(UNIT, s) for s in (SIZES, {"pilot": 5, "matched": 6, "unmatched": 9}))
    other = {t.name: t for t in pd1_mini.plan(OTHER, SIZES)}
    assert len({t.name for t in few}) == len(few) == NUMBER
    longer = {t.name: t for t in many}
    for trial in few:
        np.testing.assert_array_equal(trial.point, longer[trial.name].point)
        assert np.array_equal(trial.point, other[trial.name].point) == trial.matched == ("unmatched" not in trial.name)
    points = np.array([t.point for t in many])
    assert len(np.unique(points, axis=0)) == len(points)


def test_points_fill_the_box_of_table_4():
    points = pd1_mini.points(512, 3)
    low, high = np.array([[0.01, 1e-5, 0.1, 1 - 1.0], [0.99, 10.0, 2.0, 1 - 1e-3]])
    assert ((points >= low) & (points <= high)).all()
    unit = np.stack([
        (points[:, 0] - 0.01) / 0.98, (np.log10(points[:, 1]) + 5) / 6, (points[:, 2] - 0.1) / 1.9,
        (np.log10(1 - points[:, 3]) + 3) / 3,
    ])  # fmt: skip
    for column in unit:
        assert np.abs(np.histogram(column, 8, (0, 1))[0] - 64).max() <= 6  # evenly, on the scale of each parameter


class Interrupted(Exception):
    pass


class Killed(Journal):
    """A journal whose process dies at its second chunk, in the middle of a line."""

    calls = 0

    def add(self, results):
        self.calls += 1
        if self.calls == 2:
            with open(self.path, "a") as stream:
                stream.write('{"trial": "phase1-mat')
            raise Interrupted
        super().add(results)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    journal = Journal(tmp_path_factory.mktemp("whole") / "a.jsonl", "k")
    return pd1_mini.collect(UNIT, SIZES, 0, journal)


@pytest.fixture(scope="module")
def both(collected, tmp_path_factory):
    journal = Journal(tmp_path_factory.mktemp("other") / "a.jsonl", "k")
    return pd.concat([collected, pd1_mini.collect(OTHER, SIZES, 0, journal)], ignore_index=True)


def test_an_interrupted_collection_goes_on_to_the_same_table(collected, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pd1_mini, "CHUNK", 4)
    path = tmp_path / "a.jsonl"
    with pytest.raises(Interrupted):
        pd1_mini.collect(UNIT, SIZES, 0, Killed(path, "k"))
    journal = Journal(path, "k")
    first = set(journal.records)
    assert len(first) == 4
    capsys.readouterr()
    trained = []
    train = pd1_mini.train_points
    monkeypatch.setattr(pd1_mini, "train_points", lambda u, names, *a: trained.extend(names) or train(u, names, *a))
    again = pd1_mini.collect(UNIT, SIZES, 0, journal)
    pd.testing.assert_frame_equal(again, collected)
    assert len(trained) == NUMBER - 4 and not first & set(trained)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" trials")[0] for line in lines] == [f"{UNIT}: 8 of {NUMBER}", f"{UNIT}: {NUMBER} of {NUMBER}"]


def test_rows_say_what_the_curves_say(collected):
    assert len(collected) == NUMBER and set(collected["status"]) <= {"done", "diverged"}
    for _, row in collected.iterrows():
        assert [len(row[c]) for c in pd1_archive.CURVES] == [8] * 4
        assert list(row["global_step"]) == [23 * (i + 1) for i in range(8)]  # 8 epochs of 3,000 rows
        for curve in pd1_archive.CURVES:
            best = f"best_{curve}"
            assert row[best] == np.nanmin(row[curve]) if np.isfinite(row[curve]).any() else np.isnan(row[best])
            if np.isfinite(row[best]):
                assert row[curve][int(row[f"{best}_index"])] == row[best]
                assert row["global_step"][int(row[f"{best}_index"])] == row[f"{best}_step"]
    done = collected[collected["status"] == "done"]
    assert done["best_valid/error_rate"].between(0.05, 0.8).all()
    kinds = collected.dtypes
    assert (kinds[INPUTS] == np.float64).all() and kinds["best_valid/error_rate"] == np.float32


def test_diverged_rows_keep_the_best_values_they_had():
    curves = np.full((4, 8), np.nan, np.float32)
    early = pd1_archive.record(curves, True, 3, 80)
    curves[:, :3] = [[2, 1, 3], [0.5, 0.25, 0.75], [4, 5, 6], [0.75, 0.5, 0.5]]
    late = pd1_archive.record(curves, True, 34, 80)
    assert json.loads(json.dumps(late, allow_nan=False)) == late
    point = np.array([0.5, 10.0, 1.0, 0.99])
    task = pd1_mini.study_group(UNIT)
    table = pd1_archive.frame([pd1_archive.row(task, n, 1, True, point, f) for n, f in (("a", early), ("b", late))])
    assert list(table["status"]) == ["diverged"] * 2
    best = table[["best_valid/error_rate", "best_valid/error_rate_index", "best_valid/error_rate_step"]].to_numpy()
    np.testing.assert_array_equal(best, [[np.nan] * 3, [0.5, 1, 20]])
    assert table["best_train/ce_loss"][1] == 1 and table["best_valid/ce_loss_index"][1] == 0


def test_the_pd1_loader_reads_the_archive(both, tmp_path):
    path = tmp_path / "pd1.tar.gz"
    pd1_archive.write_archive(both, path)
    trials = pd1.read(path)
    expected = both.sort_values(["study_group", "trial_id"])
    for flag, phase in ((True, 0), (False, 0), (True, 1), (False, 1)):
        mine = (trials.matched == flag) & (trials.phase == phase)
        rows = expected[(expected["matched"] == flag) & (expected["phase"] == phase)]
        np.testing.assert_array_equal(trials.raw[mine], rows[INPUTS].to_numpy())  # exact: they are joined by value
        np.testing.assert_allclose(trials.error[mine], rows["best_valid/error_rate"], rtol=1e-6)
        assert list(trials.status[mine]) == list(rows["status"]) and list(trials.task[mine]) == list(
            rows["study_group"]
        )

    benchmark = pd1.load("pd1", {}, path)
    names = [pd1_mini.study_group(unit) for unit in (UNIT, OTHER)]
    assert list(benchmark.tasks) == names and [t.group for t in benchmark.tasks.values()] == ["phoneme", "satimage"]
    done = both["best_valid/error_rate"].notna()
    for name in names:
        values = both[done & (both["study_group"] == name)]["best_valid/error_rate"].to_numpy(np.float64)
        found = benchmark.tasks[name]
        np.testing.assert_allclose(np.sort(found.y), np.sort(-np.log(values + 1e-10)), rtol=1e-6)
        assert found.x.min() >= 0 and found.x.max() <= 1
    whole = [block for block in benchmark.matched if len(block.tasks) == 2]
    pivot = both[done & both["matched"]].groupby([*INPUTS]).size()
    assert sum(len(block.x) for block in whole) == (pivot == 2).sum() > 0


def test_archive_bytes_depend_on_the_rows_alone(both, tmp_path):
    pd1_archive.write_archive(both, tmp_path / "a.tar.gz")
    shipped.write_table(both.iloc[::-1], tmp_path / "t.parquet")
    pd1_archive.write_archive(shipped.read_table(tmp_path / "t.parquet"), tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert [Path(m.name).name for m in archive] == [
            "pd1_matched_phase0_results.jsonl", "pd1_unmatched_phase0_results.jsonl",
            "pd1_matched_phase1_results.jsonl.gz", "pd1_unmatched_phase1_results.jsonl.gz",
        ]  # fmt: skip
        lines = archive.extractfile("pd1/pd1_matched_phase0_results.jsonl").read().splitlines()
    assert len(lines) == 4
    row = json.loads(lines[0], parse_constant=pytest.fail)  # NaN is not JSON
    assert row["trial_dir"] == f"{row['study_group']}/{row['trial_id']}" and len(row["valid/error_rate"]) == 8


def test_training_a_row_again_gives_the_row(both):
    rows = both.iloc[[NUMBER + 2, 1, 5]].reset_index(drop=True)
    again = pd1_mini.retrain(rows, SIZES, 0)
    pd.testing.assert_frame_equal(again, rows)
    found = pd1_mini.agreement(again, both)
    assert (found["rows"], found["only_theirs"], found["equal"], found["status_equal"]) == (3, 2 * NUMBER - 3, 1, 1)
    other_seed = pd1_mini.retrain(rows, SIZES, 1)
    assert not np.array_equal(other_seed["valid/ce_loss"][1], rows["valid/ce_loss"][1])
    with pytest.raises(DataError, match="'x,y,z,v,8', which is no task"):
        pd1_mini.retrain(rows.assign(study_group="x,y,z,v,8"), SIZES, 0)


def test_evaluator_trains_the_network_it_is_asked_for():
    evaluate = pd1_mini.evaluator(pd1_mini.study_group(UNIT), 0)
    good, bad = np.array([0.9, 0.05, 1.0, 0.9]), np.array([0.99, 10.0, 0.1, 0.999])
    first, second, diverged = evaluate(good), evaluate(good), evaluate(bad)
    assert first == second and first.status == "done"
    assert 0.1 < first.error_rate < 0.2 and 0.2 < first.ce_loss < 0.5
    assert diverged.status == "diverged" and np.isnan(diverged.error_rate)
    assert pd1_mini.evaluator(pd1_mini.study_group(UNIT), 1)(good) != first


def test_unknown_names():
    with pytest.raises(
        ConfigError, match=r"unknown task of pd1_mini 'phoneme-mlp-12'\. Did you mean 'phoneme-mlp-128'"
    ):
        pd1_mini.plan("phoneme-mlp-12", SIZES)
    with pytest.raises(ConfigError, match=r"unknown task of pd1_mini 'phoneme-mlp-128'"):
        pd1_mini.evaluator("phoneme-mlp-128", 0)


def test_shipped_rows_trained_again():
    """Small differences are those of another processor's arithmetic; a wild run amplifies them."""
    table = shipped.read("pd1_mini")
    rng = np.random.default_rng(0)
    parts = []
    for kind, batches in BATCHES.items():
        mine = table[table["study_group"] == pd1_mini.study_group(f"{kind}-{rng.choice(batches)}")]
        parts.append(mine.iloc[np.sort(rng.choice(len(mine), 12, replace=False))])
    rows = pd.concat(parts)
    found = pd1_mini.agreement(pd1_mini.retrain(rows, {}, 0), rows)
    assert found["rows"] == 36 and found["status_equal"] >= 0.9
    assert found["median_difference"] < 0.005 and found["spearman"] > 0.9
