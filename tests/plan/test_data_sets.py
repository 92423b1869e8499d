"""Data sets by the names of tasks against what the loaders' tasks say, and the folds that share them."""

import numpy as np
import pytest

from metabo import public
from metabo.data import cmbo_control, combined, control, hpob, pd1
from metabo.plan import data_sets, registry
from metabo.tasks.benchmark import Benchmark
from tests.data.archives_fixture import HPOB_SPACES, write_hpob, write_pd1
from tests.papers.engine.claims.layouts import CROSSED


def agrees(benchmark: Benchmark) -> bool:
    found = data_sets.of_tasks(benchmark.name, benchmark.tasks)
    return found == {name: task.group for name, task in benchmark.tasks.items()}


def test_names_say_what_the_loaders_say(tmp_path):
    made = [
        hpob.load("hpob", {"spaces": list(HPOB_SPACES)}, write_hpob(tmp_path / "hpob.zip")),
        pd1.load("pd1", {}, write_pd1(tmp_path / "pd1.tar.gz")),
        control.load("control", {"points": 10}),
        cmbo_control.load("cmbo_control", {"points": 10, "draws": 2}),
    ]
    for benchmark in made:
        assert agrees(benchmark), benchmark.name
    names = data_sets.of_tasks("hpob", made[0].tasks)
    assert len(set(names.values())) < len(names)  # spaces share data sets


def test_names_of_the_members_of_a_joined_benchmark():
    names = ["svm_8/phoneme", "digits_mlp,digits,mlp,mlp,32", "phoneme", "vowel (tables)", "a/b (hpob_mini)", "x,y"]
    assert list(data_sets.of_tasks("super_mini", names).values()) == [
        "phoneme",
        "digits",
        "phoneme",
        "vowel",
        "b",
        "x,y",
    ]
    assert combined.BENCHMARKS["super_mini"]["members"] == ["hpob_mini", "tables", "pd1_mini"]


def test_other_benchmarks_have_a_data_set_per_task_or_one():
    assert data_sets.of_tasks("control", ["alike/test1", "unlike/test1"]) == {
        t: t for t in ("alike/test1", "unlike/test1")
    }
    assert data_sets.of_tasks("lcbench", ["a,b,c,d,e"]) == {"a,b,c,d,e": "a,b,c,d,e"}
    assert set(data_sets.of_tasks("taskset", ["a", "b"]).values()) == {"taskset"}
    assert data_sets.of_tasks("not registered", ["a/b"]) == {"a/b": "a/b"}
    assert set(data_sets.FORMS) <= set(registry.benchmarks())


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSSED)
def test_folds_that_share_data_sets_are_those_of_the_simulations(name):
    benchmark = public.load_benchmark(name, **({"folds": 3} if name == "cmbo_mini" else {}))
    assert agrees(benchmark)
    found = {
        fold.name: tuple(sorted(benchmark.tasks[task].group for task in fold.test))
        for fold in benchmark.split("held_out")
    }
    assert found == CROSSED[name]
    assert np.size(list(found.values())[-1]) > 1
