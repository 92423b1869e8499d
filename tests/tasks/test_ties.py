"""The rule by which tied tasks are excluded: LCBench's case, the rounding of accuracies, one row, constants."""

import os
from pathlib import Path

import numpy as np
import pytest

from metabo.tasks import ties
from metabo.tasks.task import Task
from metabo.tasks.ties import said, tied, tied_tasks, tying


def test_half_of_the_rows_tie():
    assert tied(np.array([1.0, 0.995, 0.0, -3.0]))
    assert not tied(np.array([1.0, 0.995, 0.0, -3.0, -3.0]))  # two of five
    assert not tied(np.array([1.0, 0.98, 0.98, 0.98]))


def test_the_tolerance_is_in_units_of_the_output_not_a_share_of_the_range():
    crowd = 0.005 * np.arange(3) / 3
    assert tied(np.concatenate([crowd, [-0.02, -0.03]])) and tied(np.concatenate([crowd, [-1000.0, -1000.0]]))
    assert not tied(10 * np.concatenate([crowd, [-0.02, -0.03]]))


def test_a_percentage_point_ties_however_it_is_rounded():
    accuracies = np.array([0.75, 0.74])
    assert accuracies[0] - accuracies[1] > ties.TIE  # by rounding
    assert tying(accuracies) == 2 and tying(np.array([0.75, 0.7399])) == 1


def test_one_row_and_constant_outputs_are_tied():
    assert tied(np.array([3.0])) and tied(np.full(7, -2.0))
    assert tying(np.full(7, -2.0)) == 7


def test_the_rule_names_its_numbers():
    assert "50 %" in ties.RULE and "0.01" in ties.RULE


@pytest.mark.skipif("METABO_DATA" not in os.environ, reason="reads LCBench's files below METABO_DATA")
def test_of_lcbench_numerai_alone_is_tied():
    paths = sorted((Path(os.environ["METABO_DATA"]) / "lcbench").glob("*.npz"))
    if not paths:
        pytest.skip("no lcbench/*.npz below METABO_DATA")
    outputs = {path.stem: -np.log(np.load(path)["Y"][:, -1].astype(np.float64)) for path in paths}
    assert [name for name, y in outputs.items() if tied(y)] == ["numerai28.6"]
    assert tying(outputs["numerai28.6"]) == 1971


def test_the_flag_names_the_tied_tasks_in_order():
    x = np.linspace(0, 1, 4)[:, None]
    outputs = {"b": np.zeros(4), "a": np.arange(4.0), "c": np.array([1.0, 1.0, 0.0, 0.0])}
    tasks = {name: Task(name, "s", name, x, y, y, np.arange(4), np.zeros((0, 1))) for name, y in outputs.items()}
    assert tied_tasks(tasks) == ["b", "c"]
    assert said(["b", "c"]) == ("half of the rows tie at the best, never tested: b, c",) and said([]) == ()
