"""cm-BO's protocol on LCBench and TaskSet: outputs, initial points and targets, from small files in their format."""

from pathlib import Path

import numpy as np
import pytest

from metabo.data import cmbo_tables, lcbench, taskset
from metabo.errors import DataError
from metabo.plan import catalogue, config
from metabo.tasks.benchmark import Benchmark
from tests.data import real_tables

ROOT = Path(__file__).parents[2]

LOADERS = {"lcbench": lcbench, "taskset": taskset}


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")

    def made(name):
        path = folder / f"{name}.npz"
        if not path.exists():
            LOADERS[name].load(name, {}, real_tables.write(name, folder / f"{name}.tar")).save(path)
        return path

    return made


@pytest.mark.parametrize("name", ["lcbench", "taskset"])
def test_outputs_are_standardised_and_every_task_has_eight_sets_of_five_points(member, name):
    original, made = Benchmark.load(member(name)), cmbo_tables.load(f"cmbo_{name}", {}, [member(name)])
    for key, task in made.tasks.items():
        raw = original.tasks[key]
        np.testing.assert_allclose([task.y.mean(), task.y.std()], [0, 1], atol=1e-12)
        np.testing.assert_allclose(task.y * raw.y.std() + raw.y.mean(), raw.y, rtol=1e-10)
        np.testing.assert_array_equal(task.metric, raw.metric)
        assert made.initial[key].shape == (8, 5) and all(len(set(row)) == 5 for row in made.initial[key].tolist())
    assert made.initial.keys() == made.tasks.keys() == original.tasks.keys()
    assert made.split("first") == made.split("held_out")[:1]


def test_targets_of_lcbench_are_drawn_once_and_a_level_task_is_a_source(member):
    made = [cmbo_tables.load("cmbo_lcbench", {"seed": seed}, [member("lcbench")]) for seed in (0, 0, 1)]
    folds = made[0].split("held_out")
    assert [len(fold.test) for fold in folds] == [5] * 5  # 15 % of the 34 that are tested
    assert len({name for fold in folds for name in fold.test}) == 25
    assert all(len(fold.train) == 30 and real_tables.LEVEL in fold.train for fold in folds)
    assert made[1].split("held_out") == folds != made[2].split("held_out")


def test_targets_of_taskset_are_kinds_of_cells(member):
    original = Benchmark.load(member("taskset"))
    assert cmbo_tables.load("cmbo_taskset", {}, [member("taskset")]).split("held_out") == original.split("held_out")


def test_a_missing_member_and_another_one_are_told(member):
    with pytest.raises(DataError, match=r"member is missing; make data/lcbench\.npz first"):
        cmbo_tables.load("cmbo_lcbench", {}, None)
    with pytest.raises(DataError, match="holds 'taskset', but 'cmbo_lcbench' is made of lcbench alone"):
        cmbo_tables.load("cmbo_lcbench", {}, [member("taskset")])


def test_the_target_of_a_table_makes_its_figures_of_both_papers():
    settings = config.load(ROOT)
    made = catalogue.collections(settings, catalogue.artefacts(settings, catalogue.load(ROOT)))
    for name in LOADERS:
        ids = {artefact.id for artefact in made[name]}
        assert {"hyperbo_fig08", "hyperbo_x05", "cmbo_fig01", "cmbo_fig02", "cmbo_fig03", "cmbo_tab01"} <= ids
        assert ids > {artefact.id for artefact in made[f"cmbo_{name}"]}
