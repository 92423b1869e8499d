"""LCBench's loader against a direct reading of its files, small ones in the exact format and the real ones."""

import io
import tracemalloc

import numpy as np
import pytest

from metabo.data import lcbench
from metabo.data.counts import counts
from metabo.errors import ConfigError, DataError
from tests.data import real_tables


@pytest.fixture(scope="module", params=["small", "real"])
def archive(request, tmp_path_factory):
    return real_tables.archive("lcbench", request.param, tmp_path_factory.mktemp("lcbench"))


@pytest.fixture(scope="module")
def files(archive):
    import tarfile

    with tarfile.open(archive) as tar:
        return {m.name: dict(np.load(io.BytesIO(tar.extractfile(m).read()))) for m in tar.getmembers()}


@pytest.fixture(scope="module")
def benchmark(archive):
    return lcbench.load("lcbench", {}, archive)


def test_outputs_are_the_last_losses(benchmark, files):
    assert len(benchmark.tasks) == len(files) == 35
    for file, arrays in files.items():
        task = benchmark.tasks[file.removesuffix(".npz")]
        np.testing.assert_array_equal(task.metric, arrays["Y"][:, 51])
        np.testing.assert_allclose(np.exp(-task.y), arrays["Y"][:, 51], rtol=1e-12)
        assert task.group == task.name and len(task.diverged) == 0


def test_inputs_have_the_published_ranges_and_scales(benchmark, files):
    raw = next(iter(files.values()))["X"]
    low = np.array([16, 1e-4, 0.1, 1e-5, 1, 64, 0.0])
    high = np.array([512, 1e-1, 0.99, 1e-1, 4, 1024, 1.0])
    unit = (raw - low) / (high - low)
    for log in (0, 1, 5):
        unit[:, log] = np.log(raw[:, log] / low[log]) / np.log(high[log] / low[log])
    for task in benchmark.tasks.values():
        np.testing.assert_allclose(task.x, unit, atol=1e-12)
    decoded = lcbench.SPACE.decode(unit)
    np.testing.assert_allclose(np.stack(list(decoded.values()), axis=1), raw, rtol=1e-9, atol=1e-12)


def test_every_data_set_but_the_level_one_is_tested_once(benchmark):
    folds = benchmark.split("held_out")
    tested = [task for fold in folds for task in fold.test]
    assert sorted(tested) == sorted(set(benchmark.tasks) - {real_tables.LEVEL})
    assert [len(fold.test) for fold in folds] == [7, 7, 7, 7, 6]
    for fold in folds:
        assert set(fold.train) == set(benchmark.tasks) - set(fold.test)
        assert real_tables.LEVEL in fold.train
    assert benchmark.split("others") == folds
    others = benchmark.split("one_out")
    assert [fold.test for fold in others] == [(task,) for task in benchmark.tasks if task != real_tables.LEVEL]
    assert all(len(fold.train) == 34 for fold in others)
    assert any(real_tables.LEVEL in flag for flag in benchmark.facts.flags)


def test_all_rows_are_matched(benchmark):
    (block,) = benchmark.matched
    assert block.tasks == tuple(benchmark.tasks)
    for column, task in zip(block.y.T, benchmark.tasks.values(), strict=True):
        np.testing.assert_array_equal(column, task.y)


def test_counts_stand_beside_the_expected_ones(benchmark, archive):
    text = counts(benchmark)
    small = archive.stat().st_size < 10_000_000
    assert f"{1 if small else 0} of 6 counts differ" in text
    assert ("DIFFERS" in text) == small


def test_real_files_load_in_little_memory(tmp_path):
    """`make benchmark` has the time."""
    archive = real_tables.archive("lcbench", "real", tmp_path)
    tracemalloc.start()
    lcbench.load("lcbench", {}, archive)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6


def without(name):
    return lambda files: files.pop(name)


def put(name, **arrays):
    return lambda files: files.__setitem__(name, files[name] | {k: f(files[name][k].copy()) for k, f in arrays.items()})


def value(at, what):
    def change(array):
        array[at] = what
        return array

    return change


def squeezed(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("kc1.npz"), r"lacks kc1.npz"),
        (put("kc1.npz", X=value((3, 1), 2e-3)), r"configurations \(X\) in kc1.npz are not those in"),
        (put("kc1.npz", X=lambda x: x[:, :6]), r"kc1.npz: X has shape \(60, 6\)"),
        (put("kc1.npz", Y=lambda y: y[:50]), r"kc1.npz: Y has shape \(50, 52\)"),
        (put("kc1.npz", Y=value((7, 51), np.nan)), r"kc1.npz: Y\[7, 51\] is nan"),
        (put("kc1.npz", Y=value((7, 51), 0.0)), r"kc1.npz: Y\[7, 51\] is 0.0"),
        (put("kc1.npz", Y=value((7, 51), np.inf)), r"kc1.npz: Y\[7, 51\] is inf"),
        (put("kc1.npz", Y=value((7, 51), 1e34)), r"kc1.npz: Y\[7, 51\] is 1e\+34; .* up to 1000"),
        (put("kc1.npz", Y=lambda y: y.astype(str)), r"kc1.npz: Y holds <U\d+, not numbers"),
        (put("kc1.npz", X=lambda x: x.astype(str)), r"kc1.npz: X holds <U\d+, not numbers"),
        (lambda files: files.__setitem__("kc1.npz", b"<!doctype html>"), r"kc1.npz: not the arrays X and Y"),
        (
            lambda files: files.__setitem__("kc1.npz", real_tables._npz(files["kc1.npz"])[:900]),
            r"kc1.npz: not the arrays",
        ),
        (lambda files: files.__setitem__("kc1.npz", real_tables._npz({"A": np.zeros(2)})), r"kc1.npz: not the arrays"),
        (
            lambda files: files.__setitem__("kc1.npz", squeezed(X=np.zeros((2**21, 7)))),
            r"kc1.npz: not the arrays X and Y \(its arrays have more than 67108864 bytes",
        ),
    ],
)
def test_a_bad_file_is_named(tmp_path, change, message):
    archive = real_tables.write("lcbench", tmp_path / "lcbench.tar", change)
    with pytest.raises(DataError, match=message) as error:
        lcbench.load("lcbench", {}, archive)
    assert "\n" not in str(error.value)


def test_inputs_outside_their_range_are_refused(tmp_path):
    def change(files):
        for arrays in files.values():
            arrays["X"] = arrays["X"].copy()
            arrays["X"][4, 0] = 1024

    said = r"a.tar: .*: parameter 'batch_size', row 4: value 1024.0 is outside \[16, 512\].*; get the published file"
    with pytest.raises(DataError, match=said):
        lcbench.load("lcbench", {}, real_tables.write("lcbench", tmp_path / "a.tar", change))


def test_unknown_settings_and_a_missing_archive_are_told(tmp_path):
    with pytest.raises(ConfigError, match="setting of benchmark 'lcbench'"):
        lcbench.load("lcbench", {"pool": 3}, tmp_path)
    with pytest.raises(DataError, match="download_lcbench"):
        lcbench.load("lcbench", {})
    with pytest.raises(DataError, match="no such archive"):
        lcbench.load("lcbench", {}, tmp_path / "none.tar")
