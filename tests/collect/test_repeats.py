"""pd1_mini 2: points and names, the sums over repeats against NumPy, a real collection of two points, its archive."""

import json
import tarfile

import numpy as np
import pandas as pd
import pytest

from metabo.collect import pd1_archive, pd1_mini, repeats, shipped
from metabo.collect.journal import Journal
from metabo.data import pd1, pd1_repeats
from metabo.data.noise import row_noise
from metabo.errors import ConfigError, DataError

UNIT = "phoneme-mlp-128"
SIZES = {"matched": 2, "repeats": 2}
INPUTS = list(pd1.INPUTS)
ERROR = "best_valid/error_rate"


def test_points_are_those_of_version_1_and_more():
    """Also of the shipped table; there are no other trials."""
    planned = pd1_mini.plan(UNIT, {"matched": 1000, "repeats": 3})
    assert len(planned) == 1000 and all(t.matched and t.phase == 1 for t in planned)
    before = pd1_mini.plan(UNIT, {"pilot": 32, "matched": 256, "unmatched": 256})
    matched = [t for t in before if t.phase == 1 and t.matched]
    assert [t.name for t in matched] == [t.name for t in planned[:256]]
    table = shipped.read("pd1_mini")
    table = table[table["matched"] & (table["phase"] == 1) & (table["study_group"] == pd1_mini.study_group(UNIT))]
    table = table.set_index("trial_id").loc[[t.name for t in planned[:256]]]
    # Rounded in version 2; and another processor than the one that made the table computes powers to a last bit.
    np.testing.assert_allclose(table[INPUTS].to_numpy(), [t.point for t in planned[:256]], rtol=1e-11)
    assert len(np.unique([t.point for t in planned], axis=0)) == 1000


def test_points_are_the_same_on_processors_that_differ_in_a_last_bit():
    points = np.array([t.point for t in pd1_mini.plan(UNIT, {"matched": 1000, "repeats": 3})])
    for nudged in (np.nextafter(points, np.inf), np.nextafter(points, -np.inf)):
        assert (nudged != points).all()
        np.testing.assert_array_equal([pd1_mini.portable(point) for point in nudged], points)
    np.testing.assert_array_equal([pd1_mini.portable(point) for point in points], points)


def test_repeats_have_names_of_their_own():
    named = [name for t in pd1_mini.plan(UNIT, SIZES | {"matched": 40}) for name in repeats.names(t.name, 3)]
    assert len(set(named)) == 120
    assert repeats.names("phase1-matched-00007", 3) == [
        "phase1-matched-00007", "phase1-matched-00007-repeat1", "phase1-matched-00007-repeat2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("diverged", "status"),
    [
        ([False, False, False], "done"),
        ([False, True, False], "done"),
        ([True, False, True], "diverged"),
        ([True, True, True], "diverged"),
        ([True, False], "done"),
        ([True], "diverged"),
    ],
)
def test_means_and_deviations_are_over_the_sound_trainings(diverged, status):
    """A diverged training may have had a value before; it does not count."""
    rng = np.random.default_rng(len(diverged))
    errors, losses = rng.uniform(size=(2, len(diverged)))
    found = repeats.summary(errors, losses, diverged)
    assert (found["status"], found["repeats"], found["diverged"]) == (status, len(diverged), sum(diverged))
    kept = [i for i, lost in enumerate(diverged) if not lost]
    for name, values in ((ERROR, errors), ("best_valid/ce_loss", losses)):
        mean = np.mean(values[kept]) if kept else np.nan
        spread = np.std(values[kept], ddof=1) if len(kept) > 1 else np.nan
        np.testing.assert_allclose([found[name], found[f"{name}_std"]], [mean, spread], rtol=1e-15)
    stored = found[f"{ERROR}_repeats"]
    assert stored.dtype == np.float32 and list(np.isnan(stored)) == diverged
    np.testing.assert_array_equal(stored[kept], errors[kept].astype(np.float32))


def test_guessing_is_wrong_but_for_the_most_frequent_label():
    assert repeats.guessing(np.array([0, 3, 3, 1, 3], np.int32)) == pytest.approx(2 / 5)
    assert repeats.guessing(np.array([[0, 1], [1, 1]], np.int32)) == 1 / 4


@pytest.mark.parametrize("name", list(pd1_repeats.GUESSING))
def test_the_error_of_guessing_that_the_loader_knows_is_that_of_the_data(name):
    assert pd1_mini.chance(name) == pytest.approx(pd1_repeats.GUESSING[name], rel=1e-12)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    return pd1_mini.collect(UNIT, SIZES, 0, Journal(tmp_path_factory.mktemp("two") / "a.jsonl", "k"))


def test_a_real_collection(collected):
    """The first training of a point is that of version 1, bit for bit; the others are not."""
    assert tuple(collected) == repeats.COLUMNS and len(collected) == 2
    once = {"pilot": 0, "matched": 2, "unmatched": 0}
    first = pd1_mini.retrain(
        pd.DataFrame(
            [
                {"study_group": pd1_mini.study_group(UNIT), "trial_id": t.name, "phase": 1, "matched": True}
                | dict(zip(INPUTS, t.point, strict=True))
                for t in pd1_mini.plan(UNIT, once)
            ]
        ),
        once,
        0,
    )
    each = np.stack(collected[f"{ERROR}_repeats"])
    done = (first["status"] == "done").to_numpy()
    assert done.any() and each.shape == (2, 2)
    np.testing.assert_array_equal(each[done, 0], first[ERROR].to_numpy()[done])
    assert not np.array_equal(each[:, 0], each[:, 1], equal_nan=True)
    for row, errors in zip(collected.to_dict("records"), each, strict=True):
        sound = errors[np.isfinite(errors)]
        assert row["diverged"] == 2 - len(sound)
        np.testing.assert_allclose(row[ERROR], sound.mean() if len(sound) else np.nan, rtol=1e-6)
    np.testing.assert_allclose(collected["chance_error_rate"], 1 - 1060 / 1500, rtol=1e-6)
    assert collected[ERROR].dtype == collected[f"{ERROR}_std"].dtype == np.float32
    pd.testing.assert_frame_equal(collected[INPUTS], first[INPUTS])


def test_a_second_collection_takes_what_the_journal_has(collected, tmp_path, monkeypatch):
    journal = Journal(tmp_path / "a.jsonl", "k")
    whole = pd1_mini.collect(UNIT, SIZES, 0, journal)
    monkeypatch.setattr(pd1_mini, "train_points", lambda *_: pytest.fail("all trainings are in the journal"))
    again = pd1_mini.collect(UNIT, SIZES, 0, Journal(tmp_path / "a.jsonl", "k"))
    pd.testing.assert_frame_equal(again, whole)
    pd.testing.assert_frame_equal(again, collected)


def test_training_rows_again_gives_the_rows(collected, tmp_path):
    shipped.write_table(collected, tmp_path / "t.parquet")
    stored = shipped.read_table(tmp_path / "t.parquet")
    again = pd1_mini.retrain(stored.iloc[[1]].reset_index(drop=True), {}, 0)
    pd.testing.assert_frame_equal(again, collected.iloc[[1]].reset_index(drop=True))
    found = pd1_mini.agreement(again, stored)
    assert (found["rows"], found["equal"], found["status_equal"]) == (1, 1, 1)


def table(points: int = 40) -> pd.DataFrame:
    """Version 2 of two units with drawn errors: the first points lose one, two and three trainings."""
    rng = np.random.default_rng(0)
    rows = []
    for unit in (UNIT, "satimage-mlp-128"):
        for i, trial in enumerate(pd1_mini.plan(unit, {"matched": points, "repeats": 3})):
            point = dict(zip(INPUTS, trial.point, strict=True))
            errors = rng.uniform(0.1, 0.2, size=3)
            task = pd1_mini.study_group(unit)
            _, dataset, model, _, batch = task.split(",")
            named = {"study_group": task, "dataset": dataset, "model": model, "trial_id": trial.name, "phase": 1}
            more = {"matched": True, "hps.batch_size": int(batch), **point, "chance_error_rate": 0.6}
            rows.append(named | more | repeats.summary(errors, errors, [r < i < 4 for r in range(3)]))
    return repeats.frame(rows)


@pytest.fixture
def archive(tmp_path):
    shipped.write_table(table().iloc[::-1], tmp_path / "t.parquet")
    pd1_archive.write_archive(shipped.read_table(tmp_path / "t.parquet"), tmp_path / "b.tar.gz")
    pd1_archive.write_archive(table(), tmp_path / "a.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    return tmp_path / "a.tar.gz"


def load(archive, **settings):
    return pd1.load("pd1_mini", {"version": 2, "divergence": "status"} | settings, archive)


def test_the_archive_is_the_one_file_of_matched_trials(archive):
    with tarfile.open(archive) as members:
        assert members.getnames() == ["pd1/pd1_matched_phase1_results.jsonl.gz"]
    benchmark = load(archive)
    drawn = table()
    done = (drawn["status"] == "done").to_numpy()
    assert list(benchmark.tasks) == [pd1_mini.study_group(UNIT), pd1_mini.study_group("satimage-mlp-128")]
    for name, task in benchmark.tasks.items():
        mine = drawn[done & (drawn["study_group"] == name)]
        mean, std = (mine[c].to_numpy(np.float64) for c in (ERROR, f"{ERROR}_std"))
        np.testing.assert_allclose(task.y, -np.log(mean + 1e-10), rtol=1e-6)
        expected = std / np.sqrt(3.0 - mine["diverged"]) / (mean + 1e-10)
        np.testing.assert_allclose(task.noise, expected, rtol=1e-5)
        assert len(task.y) == 38 and len(task.diverged) == 2
    (block,) = benchmark.matched
    assert block.name == "phase1" and block.y.shape == (38, 2)
    lost = {line.name: line.found for line in benchmark.counts}
    assert lost["rows dropped by divergence rule 'nan'"] == 2
    assert lost["rows dropped by divergence rule 'status'"] == 4
    assert any("more than half of its trainings have: 4 of 80 rows" in flag for flag in benchmark.facts.flags)


def test_a_task_that_is_tied_trains_only(tmp_path):
    level, drawn = pd1_mini.study_group(UNIT), table()
    drawn.loc[(drawn["study_group"] == level) & (drawn["status"] == "done"), ERROR] = np.float32(0.15)
    pd1_archive.write_archive(drawn, tmp_path / "a.tar.gz")
    benchmark = load(tmp_path / "a.tar.gz")
    (fold,) = benchmark.split("held_out")
    assert fold.train == (level,) and fold.test == (pd1_mini.study_group("satimage-mlp-128"),)
    assert f"half of the rows tie at the best, never tested: {level}" in benchmark.facts.flags
    found = {line.name: line.found for line in benchmark.counts}
    assert found["test tasks"] == 1 and found["points of ImageNet ResNet50 1024 (training only)"] == 0


def test_noise_reaches_what_asks_for_it_and_the_file(archive, tmp_path):
    benchmark = load(archive, divergence="nan")
    benchmark.save(tmp_path / "b.npz")
    again = type(benchmark).load(tmp_path / "b.npz")
    for name, noise in row_noise(again).items():
        np.testing.assert_array_equal(noise, benchmark.tasks[name].noise)
        assert np.isnan(noise).sum() == 1  # of one sound training nothing is known
    assert len(row_noise(again)) == 2


def test_the_noise_is_that_of_draws():
    """Means of three errors of known spread, drawn many times."""
    drawn = np.random.default_rng(0).normal(0.2, 0.01, size=(20_000, 3))
    columns = np.stack([np.full(20_000, 3), np.zeros(20_000), drawn.std(axis=1, ddof=1), np.ones(20_000)], axis=1)
    noise = pd1_repeats.Repeats.of(columns).noise(drawn.mean(axis=1))
    assert np.sqrt((noise**2).mean()) == pytest.approx(np.std(-np.log(drawn.mean(axis=1))), rel=0.03)


def test_points_that_diverged_may_have_the_error_of_guessing(archive):
    benchmark = load(archive, divergence="chance")
    for task in benchmark.tasks.values():
        assert len(task.y) == 40 and len(task.diverged) == 0
        np.testing.assert_allclose(task.y[2:4], -np.log(0.6), rtol=1e-6)
        assert list(np.flatnonzero(np.isnan(task.noise))) == [2, 3]
    assert benchmark.facts.divergence == "chance" and len(benchmark.matched[0].x) == 40
    assert any("error of guessing the most frequent class: 4 of 80" in flag for flag in benchmark.facts.flags)


def test_version_1_may_have_it_too(tmp_path):
    shipped_table = shipped.read("pd1_mini")
    task = pd1_mini.study_group(UNIT)
    pd1_archive.write_archive(shipped_table[shipped_table["dataset"].isin(["phoneme", "satimage"])], tmp_path / "a.gz")
    guessed, dropped = (pd1.load("pd1_mini", {"divergence": d}, tmp_path / "a.gz") for d in ("chance", "status"))
    assert len(dropped.tasks[task].y) == 436 and len(guessed.tasks[task].y) == 576  # 140 of 576 diverged
    assert np.isclose(guessed.tasks[task].metric, 1 - 1060 / 1500).sum() >= 140
    assert dropped.tasks[task].noise is None and row_noise(dropped) == {}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("pd1_mini", {"version": 3}, r"benchmarks.pd1_mini.version: there is no version 3; the newest is 2"),
        ("pd1_mini", {"version": "2"}, r"benchmarks.pd1_mini.version: '2' must be a whole number"),
        ("pd1", {"version": 2}, r"unknown setting of benchmark 'pd1' 'version'"),
        ("pd1", {"divergence": "chance"}, r"unknown benchmarks.pd1.divergence 'chance'"),
    ],
)
def test_settings_that_there_are_not(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        pd1.load(name, settings, None)


def test_an_archive_of_the_other_version_is_refused(archive, tmp_path):
    with pytest.raises(DataError, match=r"lacks pd1_matched_phase0_results\.jsonl, "):
        load(archive, version=1)
    one = shipped.read("pd1_mini").groupby(["study_group", "phase", "matched"]).head(2)
    pd1_archive.write_archive(one, tmp_path / "one.tar.gz")
    with pytest.raises(DataError, match="has no column 'best_valid/error_rate_std' in 48 rows"):
        load(tmp_path / "one.tar.gz")


def test_what_has_no_known_error_of_guessing_is_told(tmp_path):
    one = shipped.read("pd1_mini").groupby(["study_group", "phase", "matched"]).head(2)
    one["study_group"] = one["study_group"].str.replace("phoneme", "phonemes")
    pd1_archive.write_archive(one, tmp_path / "one.tar.gz")
    with pytest.raises(DataError, match="data set 'phonemes': its error of guessing is not known; set divergence"):
        pd1.load("pd1_mini", {"divergence": "chance"}, tmp_path / "one.tar.gz")


@pytest.mark.skipif(shipped.newest("pd1_mini") < 2, reason="the package has no version 2")
class TestShipped:
    """The table in the package: whole, begun by version 1, and trained again in part."""

    def test_it_is_whole_and_begins_with_version_1(self):
        now, before = shipped.read("pd1_mini", version=2), shipped.read("pd1_mini")
        assert len(now) == 24_000 and (now["repeats"] == 3).all()
        both = now.merge(before, on=["study_group", "trial_id"], suffixes=("", "_before"))
        assert len(both) == 24 * 256
        # to twelve digits: the last ones of 10**x depend on the processor
        np.testing.assert_allclose(both[INPUTS], both[[f"{name}_before" for name in INPUTS]], rtol=1e-11)
        first = np.stack(both[f"{ERROR}_repeats"])[:, 0]
        done = np.isfinite(first)
        assert (done == (both["status_before"] == "done")).mean() > 0.98
        assert np.median(np.abs(first[done] - both[f"{ERROR}_before"][done])) < 0.005
        record = json.loads(shipped.table_path("pd1_mini", 2).with_suffix(".json").read_text())
        assert record["spec"]["sizes"] == {"matched": 1000, "repeats": 3}

    def test_rows_are_trained_again(self):
        """Small differences are those of another processor's arithmetic; a wild run amplifies them."""
        now = shipped.read("pd1_mini", version=2)
        tasks = [pd1_mini.study_group(unit) for unit in (UNIT, "digits-simple_cnn-64", "letter-mlp-128")]
        rows = now[now["study_group"].isin(tasks)].sample(18, random_state=0)
        found = pd1_mini.agreement(pd1_mini.retrain(rows, {}, 0), rows)
        assert found["rows"] == 18 and found["status_equal"] >= 0.9
        assert found["median_difference"] < 0.005 and found["spearman"] > 0.9
