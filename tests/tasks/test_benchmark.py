from dataclasses import replace

import numpy as np
import pytest

from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold, leave_group_out
from metabo.tasks.rows import pad, stack
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task, restrict
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


LINE = SearchSpace("s", (Parameter("u", "linear", 0.0, 1.0),))


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
        ({"metric": np.array([0.0, np.inf])}, "metric is not finite in row 1"),
        ({"diverged": np.array([[0.5], [np.nan]])}, "diverged is not finite in row 1"),
        ({"diverged": np.zeros((3, 2))}, r"diverged \(3, 2\) must be inputs as x \(2, 1\), one in each row"),
        ({"diverged": np.zeros(1)}, r"diverged \(1,\) must be inputs as x \(2, 1\)"),
    ],
)
def test_bad_tasks_name_the_task(changes, message):
    with pytest.raises(DataError, match=f"task 't': .*{message}"):
        one(**changes)


def test_rows_and_diverged_inputs_may_be_left_out():
    task = Task("t", "s", "g", np.zeros((3, 2)), np.arange(3.0), np.zeros(3))
    assert task.rows.tolist() == [0, 1, 2] and task.diverged.shape == (0, 2)


def test_a_benchmark_without_tasks_is_refused():
    with pytest.raises(DataError, match=r"benchmark 'n', tasks: none; check that its files have rows"):
        Benchmark("n", {"s": LINE}, {}, (), {})


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
        Benchmark("n", {"s": LINE}, tasks, (), {"p": (fold,)})


def other_space(base):
    """The tiny benchmark's parts with a second space, "line", and its task `c`."""
    c = replace(one("c"), space="line")
    return {"spaces": base.spaces | {"line": replace(LINE, name="line")}, "tasks": base.tasks | {"c": c}}


FOLD = tiny.benchmark().splits["held_out"][0]
BLOCK = tiny.benchmark().matched[0]
INCONSISTENT = {
    "task of an unknown space": (
        lambda b: {"tasks": b.tasks | {"c": one("c")}}, r"task 'c': unknown space 's'; add it .*\(plane\)",
    ),
    "task width": (
        lambda b: {"tasks": b.tasks | {"c": replace(one("c"), space="plane")}},
        "task 'c': x has 1 columns, its space 'plane' has 2; encode",
    ),
    "block of an unknown space": (
        lambda b: {"matched": (replace(BLOCK, space="plain"),)}, "matched block 'm': unknown space 'plain'; add it",
    ),
    "block of an unknown task": (
        lambda b: {"matched": (replace(BLOCK, tasks=("a", "z", "flat")),)},
        r"matched block 'm': unknown tasks \['z'\]; drop",
    ),
    "block across spaces": (
        lambda b: other_space(b) | {"matched": (replace(BLOCK, tasks=("a", "c", "flat")),)},
        r"matched block 'm': tasks \['c'\] are not in its space 'plane'; make one block per space",
    ),
    "block width": (
        lambda b: {"matched": (replace(BLOCK, x=BLOCK.x[:, :1]),)}, "matched block 'm': x has 1 columns, .* has 2",
    ),
    "fold across spaces": (
        lambda b: other_space(b) | {"splits": {"p": (FOLD._replace(train=("b", "c")),)}},
        r"split 'p', fold 'without a': tasks \['c'\] are not in its space 'plane'; make one fold per space",
    ),
    "initial points of an unknown task": (
        lambda b: {"initial": {"z": np.zeros((2, 2), int)}}, "initial points of task 'z': unknown task",
    ),
    "initial points that are no row numbers": (
        lambda b: {"initial": {"b": np.zeros((2, 2))}},
        r"initial points of task 'b': float64 \(2, 2\); must be row numbers",
    ),
    "initial points in one list": (
        lambda b: {"initial": {"b": np.zeros(2, int)}}, r"initial points of task 'b': int64 \(2,\); must be",
    ),
    "initial points beyond the rows": (
        lambda b: {"initial": {"b": np.array([[3, 11]])}}, "initial points of task 'b': row 11 .* rows 0 to 10",
    ),
    "negative initial points": (
        lambda b: {"initial": {"b": np.array([[3, -1]])}}, "initial points of task 'b': row -1 does not exist",
    ),
    "initial points for some test tasks": (
        lambda b: {"initial": {"a": np.zeros((2, 3), int)}},
        "split 'held_out', space 'plane': test task 'flat' has 0 initial points, 'a' has 3; give all .*, or none",
    ),
    "a task by another name": (
        lambda b: {"tasks": b.tasks | {"b again": b.tasks["b"]}}, "task 'b' is listed as 'b again'; list each task by",
    ),
    "an unseen space that is unknown": (
        lambda b: {"facts": Facts(unseen=("plain",))}, r"fact 'unseen': unknown space 'plain'; add it .*\(plane\)",
    ),
    "a space without truth": (
        lambda b: {"facts": Facts(truth={"line": {"parameters": {"lengthscale": [1.0]}}})},
        "fact 'truth': 0 length-scales of space 'plane', which has 2 .*; describe",
    ),
    "truth of another space": (
        lambda b: {"facts": Facts(truth={"plane": {"parameters": {"lengthscale": [1.0, 2.0, 3.0]}}})},
        "fact 'truth': 3 length-scales of space 'plane', which has 2 inputs",
    ),
    "an unknown scale of inputs": (
        lambda b: {"facts": Facts(inputs="cube")}, "fact 'inputs': unknown scale 'cube'; take one of unit, warped",
    ),
    "an unknown rule for failures": (
        lambda b: {"facts": Facts(divergence="none")},
        "fact 'divergence': unknown rule 'none'; take one of nan, status, chance, or none",
    ),
}  # fmt: skip


def test_counts_that_a_loader_forgot_are_asked_for():
    assert replace(tiny.benchmark(), facts=Facts(counts=())).counts == ()
    with pytest.raises(DataError, match=r"'tiny': its facts have no field 'counts'; .*loader.*make its file again"):
        _ = tiny.benchmark().counts


@pytest.mark.parametrize("case", INCONSISTENT)
def test_parts_that_do_not_fit_together_are_named(case):
    changes, message = INCONSISTENT[case]
    base = tiny.benchmark()
    with pytest.raises(DataError, match=f"benchmark 'tiny', {message}"):
        replace(base, **changes(base))


def test_initial_points_may_differ_between_spaces_and_train_tasks_need_none():
    base = tiny.benchmark(initial=True)
    twin = {name: replace(one(name), space="line") for name in "cd"}
    folds = (*base.splits["held_out"], Fold("without d", "line", ("c",), ("d",)))
    parts = other_space(base) | {"tasks": base.tasks | twin, "splits": {"held_out": folds}}
    assert set(replace(base, **parts).initial) == {"a", "flat", "point"}


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
