"""Does a benchmark fit together? Spaces, tasks, matched blocks, folds, initial points and notes, checked when it is
built."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from metabo.tasks.folds import Fold
from metabo.tasks.spaces import SearchSpace


class _Parts(NamedTuple):
    """What a benchmark is made of (`metabo.tasks.benchmark.Benchmark`, which calls this module)."""

    spaces: Mapping[str, SearchSpace]
    tasks: Mapping[str, Any]
    matched: Sequence[Any]
    splits: Mapping[str, Sequence[Fold]]
    initial: Mapping[str, np.ndarray]
    notes: Mapping[str, Any]


def faults(
    spaces: Mapping[str, SearchSpace],
    tasks: Mapping[str, Any],
    matched: Sequence[Any],
    splits: Mapping[str, Sequence[Fold]],
    initial: Mapping[str, np.ndarray],
    notes: Mapping[str, Any],
) -> Iterator[str]:
    """Say where the parts of a benchmark contradict each other and what to do, in the order of the checks.

    `tasks` and `matched`: tasks by name, and matched blocks (`metabo.tasks.benchmark`). Lazy: a check relies on those
    before it, so only the first fault is sure to make sense.
    """
    benchmark = _Parts(spaces, tasks, matched, splits, initial, notes)
    yield from _tasks(benchmark)
    yield from _matched(benchmark)
    for split, folds in benchmark.splits.items():
        for fold in folds:
            for fault in _fold(benchmark, fold):
                yield f"split '{split}', fold '{fold.name}': {fault}"
    yield from _initial(benchmark)
    yield from _notes(benchmark)


def _tasks(benchmark: _Parts) -> Iterator[str]:
    for task in benchmark.tasks.values():
        if task.space not in benchmark.spaces:
            yield f"task '{task.name}': {_unknown_space(benchmark, task.space)}"
        elif task.x.shape[1] != (dim := benchmark.spaces[task.space].dim):
            yield (
                f"task '{task.name}': x has {task.x.shape[1]} columns, its space '{task.space}' has {dim}; "
                "encode the inputs with that space"
            )


def _matched(benchmark: _Parts) -> Iterator[str]:
    for block in benchmark.matched:
        where = f"matched block '{block.name}'"
        strangers = [name for name in block.tasks if name not in benchmark.tasks]
        if block.space not in benchmark.spaces:
            yield f"{where}: {_unknown_space(benchmark, block.space)}"
        elif strangers:
            yield f"{where}: unknown tasks {strangers}; drop their columns or add the tasks"
        elif others := [name for name in block.tasks if benchmark.tasks[name].space != block.space]:
            yield f"{where}: tasks {others} are not in its space '{block.space}'; make one block per space"
        elif block.x.shape[1] != (dim := benchmark.spaces[block.space].dim):
            yield (
                f"{where}: x has {block.x.shape[1]} columns, its space '{block.space}' has {dim}; "
                "encode the inputs with that space"
            )


def _fold(benchmark: _Parts, fold: Fold) -> Iterator[str]:
    names = (*fold.train, *fold.test)
    if strangers := [name for name in names if name not in benchmark.tasks]:
        yield f"unknown tasks {strangers}; name tasks of the benchmark"
    if not fold.test:
        yield "no test task; leave the fold out"
    if not fold.train:
        yield "no training task is left; a hold-out needs tasks of another group"
    if both := sorted(set(fold.train) & set(fold.test)):
        yield f"tasks {both} are in train and test; keep each on one side"
    if others := [name for name in names if benchmark.tasks[name].space != fold.space]:
        yield f"tasks {others} are not in its space '{fold.space}'; make one fold per space"


def _initial(benchmark: _Parts) -> Iterator[str]:
    for name, indices in benchmark.initial.items():
        where = f"initial points of task '{name}'"
        if name not in benchmark.tasks:
            yield f"{where}: unknown task; name a task of the benchmark"
        elif indices.ndim != 2 or not np.issubdtype(indices.dtype, np.integer):
            yield f"{where}: {indices.dtype} {indices.shape}; must be row numbers, (seeds, points)"
        elif ((indices < 0) | (indices >= (rows := len(benchmark.tasks[name].y)))).any():
            bad = indices[(indices < 0) | (indices >= rows)][0]
            yield f"{where}: row {bad} does not exist; the task has rows 0 to {rows - 1}"
    for split, folds in benchmark.splits.items():
        for space in dict.fromkeys(fold.space for fold in folds):
            # One compiled program runs all test tasks of a space, so they start from equally many points.
            tests = dict.fromkeys(name for fold in folds if fold.space == space for name in fold.test)
            points = {t: benchmark.initial[t].shape[1] if t in benchmark.initial else 0 for t in tests}
            if len(set(points.values())) > 1:
                few, many = min(points, key=points.__getitem__), max(points, key=points.__getitem__)
                yield (
                    f"split '{split}', space '{space}': test task '{few}' has {points[few]} initial points, "
                    f"'{many}' has {points[many]}; give all test tasks of a space equally many, or none"
                )


def _notes(benchmark: _Parts) -> Iterator[str]:
    """Check the notes that methods read: `unseen` (names of spaces) and `truth` (one entry for each space)."""
    for space in benchmark.notes.get("unseen", []):
        if space not in benchmark.spaces:
            yield f"notes 'unseen': {_unknown_space(benchmark, space)}"
    if "truth" not in benchmark.notes:
        return
    truth = benchmark.notes["truth"]
    for name, space in benchmark.spaces.items():
        found = len(truth[name]["parameters"]["lengthscale"]) if name in truth else 0
        if found != space.dim:
            yield (
                f"notes 'truth': {found} length-scales of space '{name}', which has {space.dim} inputs; describe the "
                "GP of every space"
            )


def _unknown_space(benchmark: _Parts, space: str) -> str:
    return f"unknown space '{space}'; add it to the benchmark's spaces ({', '.join(benchmark.spaces) or 'none yet'})"
