import numpy as np
import pytest

from metabo.errors import ConfigError, DataError
from metabo.tasks import Benchmark, Fold, MatchedBlock, Task, leave_group_out, pad, restrict, stack
from tests import tiny


def test_padding_by_hand():
    x = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])]
    y = [np.array([9.0]), np.array([1.0, 2.0, 3.0])]
    batch = stack(x, y)
    assert batch.x.tolist() == [[[1, 2], [0, 0], [0, 0]], [[3, 4], [5, 6], [7, 8]]]
    assert batch.y.tolist() == [[9, 0, 0], [1, 2, 3]]
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]
    assert stack(x, y, 5).x.shape == (2, 5, 2) and not stack(x, y, 5).mask[:, 3:].any()
    assert pad([np.array([1, 2]), np.array([3])]).dtype == np.int64


def one(name="t", **changes):
    values = {
        "name": name, "space": "s", "group": name, "x": np.zeros((2, 1)), "y": np.zeros(2), "metric": np.zeros(2),
        "rows": np.arange(2), "diverged": np.zeros((0, 1)),
    }  # fmt: skip
    return Task(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.zeros(0), "x": np.zeros((0, 1))}, "no finite evaluation"),
        ({"y": np.zeros(3)}, "differ in length"),
        ({"x": np.zeros(2)}, "differ in length"),
        ({"y": np.array([0.0, np.nan])}, "y is not finite in row 1"),
        ({"x": np.array([[np.inf], [0.0]])}, "x is not finite in row 0"),
    ],
)
def test_bad_tasks_name_the_task(changes, message):
    with pytest.raises(DataError, match=f"task 't': .*{message}"):
        one(**changes)


def test_flat_tasks_are_known():
    assert one().flat and not one(y=np.array([0.0, 1e-12])).flat


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        (Fold("f", "s", ("a",), ("c",)), r"unknown tasks \['c'\]"),
        (Fold("f", "s", ("a",), ()), "no test task"),
        (Fold("f", "s", (), ("a",)), "no training task is left"),
        (Fold("f", "s", ("a", "b"), ("b",)), r"\['b'\] are in train and test"),
    ],
)
def test_bad_folds_name_benchmark_split_and_fold(fold, message):
    tasks = {name: one(name) for name in "ab"}
    with pytest.raises(DataError, match=f"benchmark 'n', split 'p', fold 'f': .*{message}"):
        Benchmark("n", {}, tasks, (), {"p": (fold,)})


def test_unknown_split_lists_the_valid_ones():
    with pytest.raises(ConfigError, match=r"unknown split of benchmark 'tiny' 'heldout'\. Did you mean 'held_out'"):
        tiny.benchmark().split("heldout")


def test_matched_block_shape():
    with pytest.raises(DataError, match="matched block 'm': y"):
        MatchedBlock("m", "s", ("a", "b"), np.zeros((3, 1)), np.zeros((3, 3)))


def test_leave_group_out_by_hand():
    groups = {"a1": "mnist", "a2": "mnist", "b": "fashion_mnist", "c": "c"}
    tasks = {name: one(name, group=group) for name, group in groups.items()}
    folds = leave_group_out(tasks, never_test=frozenset({"c"}))
    assert folds == (
        Fold("without mnist", "s", ("b", "c"), ("a1", "a2")),
        Fold("without fashion_mnist", "s", ("a1", "a2", "c"), ("b",)),
    )


def test_restrict_keeps_the_columns_of_the_named_tasks():
    block = tiny.benchmark().matched[0]
    (kept,) = restrict((block,), ("flat", "a", "unheard"))
    assert kept.tasks == ("a", "flat")
    np.testing.assert_array_equal(kept.y, block.y[:, [0, 2]])
    assert restrict((block,), ("a",)) == ()  # one task matches nothing
