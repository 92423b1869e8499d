"""Tables of tasks and search spaces, by hand; task names."""

from dataclasses import replace

import numpy as np
import pytest

from metabo import metrics
from metabo.data.pd1 import SPACE
from metabo.errors import DataError
from metabo.papers.engine.printed import tasknames
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count, Facts, Inputs
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

RAW = np.array([[0.01, 1e-5, 0.1, 1e-3], [0.99, 10.0, 2.0, 1.0], [0.5, 1e-2, 1.05, 0.1]])


def pd1(x: np.ndarray, inputs: Inputs, counts: tuple[Count, ...] | None = None) -> Benchmark:
    """Three tasks: "a" has the first two rows and lost the third, "b" all three, "c" (training only) the last one."""
    none, y = np.zeros((0, 4)), np.array([1.0, 2.0, 3.0])
    tasks = {
        "a": Task("a", "pd1", "g", x[:2], y[:2], y[:2], np.arange(2), x[2:]),
        "b": Task("b", "pd1", "g", x, y, y, np.arange(3), none),
        "c": Task("c", "pd1", "h", x[2:], y[2:], y[2:], np.arange(1), none),
    }
    splits = {"held_out": (Fold("f", "pd1", ("c",), ("a", "b")),), "others": (Fold("o", "pd1", ("a", "c"), ("b",)),)}
    return Benchmark("pd1", {"pd1": SPACE}, tasks, (), splits, facts=Facts(inputs=inputs, counts=counts))


def unit() -> np.ndarray:
    return SPACE.encode(dict(zip([p.name for p in SPACE.parameters], RAW.T, strict=True)))


def warped() -> np.ndarray:
    return np.stack([RAW[:, 0], np.log(RAW[:, 1]), RAW[:, 2], np.log(RAW[:, 3])], axis=1)


def test_task_table():
    table = metrics.task_table(pd1(unit(), "unit")).set_index("task")
    assert table["points"].to_dict() == {"a": 3, "b": 3, "c": 1} and table["finite"].to_dict() == {
        "a": 2,
        "b": 3,
        "c": 1,
    }
    assert table["diverged_share"].tolist() == pytest.approx([1 / 3, 0, 0])
    assert table["role"].to_dict() == {"a": "test", "b": "test, online", "c": "training only"}
    assert table["group"].to_dict() == {"a": "g", "b": "g", "c": "h"}
    made = pd1(unit(), "unit")
    everywhere = replace(made, splits={name: made.split("held_out") for name in ("held_out", "others")})
    assert metrics.task_table(everywhere)["role"].tolist() == ["test", "test", "training only"], "a table: none online"


@pytest.mark.parametrize(("inputs", "x"), [("unit", unit()), ("warped", warped())])
def test_ranges_found_in_the_data_are_in_the_parameters_own_units(inputs, x):
    table = metrics.space_table(pd1(x, inputs)).set_index("parameter")
    assert table.index.tolist() == ["decay_steps_factor", "initial_value", "power", "one_minus_momentum"]
    np.testing.assert_allclose(table[["low", "high"]], [[0.01, 0.99], [1e-5, 10], [0.1, 2], [1e-3, 1]])
    np.testing.assert_allclose(table["found_low"], RAW.min(axis=0), rtol=1e-12)
    np.testing.assert_allclose(table["found_high"], RAW.max(axis=0), rtol=1e-12)
    assert table["scale"].tolist() == ["linear", "log", "linear", "log"]
    assert set(table["points"]) == {7} and table["outside"].sum() == 0, "the diverged point counts"


def test_points_outside_the_range_are_counted():
    x = warped()
    x[2, 1] = np.log(11.0)  # in all three tasks, in one of them diverged
    table = metrics.space_table(pd1(x, "warped")).set_index("parameter")
    assert table["outside"].to_dict() == {
        "decay_steps_factor": 0, "initial_value": 3, "power": 0, "one_minus_momentum": 0,
    }  # fmt: skip
    assert table.loc["initial_value", "found_high"] == pytest.approx(11)


def test_a_space_with_levels_has_no_ranges():
    space = SearchSpace("s", (Parameter("layers", "ordinal", levels=(1, 2)), Parameter("rate", "linear", 0.0, 1.0)))
    t = Task("t", "s", "g", np.zeros((2, 2)), np.arange(2.0), np.arange(2.0), np.arange(2), np.zeros((0, 2)))
    made = Benchmark("b", {"s": space}, {"t": t}, (), {})
    with pytest.raises(DataError, match=r"space 's': \['layers'\] have levels"):
        metrics.space_table(made)


def test_loader_counts():
    lines = (Count("tasks", 24, 23, True), Count("rows", None, 7, False))
    table = metrics.loader_counts(pd1(unit(), "unit", counts=lines))
    assert table["count"].tolist() == ["tasks", "rows"] and table["differs"].tolist() == [True, False]
    assert table["stated"].tolist() == pytest.approx([24, np.nan], nan_ok=True) and table["found"].tolist() == [23, 7]
    assert metrics.loader_counts(pd1(unit(), "unit", counts=())).empty
    with pytest.raises(DataError, match=r"benchmark 'pd1': its facts have no field 'counts'; have its loader give"):
        metrics.loader_counts(pd1(unit(), "unit"))


@pytest.mark.parametrize(
    ("task", "label", "model", "parts"),
    [
        ("svhn_noextra_wrn,svhn_no_extra,wide_resnet,wrn,256", "SVHN WRN 256", "Wide ResNet", ("svhn_no_extra", "256")),
        ("d,digits,cnn,max_pool_relu,32", "digits CNNPoolReLU 32", "Max pool CNN ReLU", ("digits", "32")),
        ("a,set,family,new_model,8", "set new_model 8", "new_model", ("set", "8")),
        ("rpart_3/segment", "rpart_3/segment", "", ("", "")),
    ],
)  # fmt: skip
def test_task_names(task, label, model, parts):
    assert tasknames.label(task) == label and tasknames.model(task) == model
    assert (tasknames.parts(task).dataset, tasknames.parts(task).batch) == parts
