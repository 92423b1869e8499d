"""Does a benchmark fit together? Checks of spaces, tasks, matched blocks, folds, initial points and facts when a
benchmark is built."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from metabo.tasks.facts import RULES, SCALES, Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import SearchSpace
from metabo.tasks.task import MatchedBlock, Task

Spaces = Mapping[str, SearchSpace]
Tasks = Mapping[str, Task]
Splits = Mapping[str, Sequence[Fold]]


def faults(
    spaces: Spaces,
    tasks: Tasks,
    matched: Sequence[MatchedBlock],
    splits: Splits,
    initial: Mapping[str, np.ndarray],
    facts: Facts,
) -> Iterator[str]:
    """Yield where the parts of a benchmark contradict each other and what to do, in the order of the checks.

    The iterator is lazy: each check relies on those before it, so only the first fault is sure to make sense.
    """
    yield from _tasks(spaces, tasks)
    yield from _matched(spaces, tasks, matched)
    for split, folds in splits.items():
        for fold in folds:
            for fault in _fold(tasks, fold):
                yield f"split '{split}', fold '{fold.name}': {fault}"
    yield from _initial(tasks, splits, initial)
    yield from _facts(spaces, facts)


def _tasks(spaces: Spaces, tasks: Tasks) -> Iterator[str]:
    if not tasks:
        yield "tasks: none; check that its files have rows below the header, and that no setting leaves all of them out"
    for name, task in tasks.items():
        if task.name != name:
            yield f"task '{task.name}' is listed as '{name}'; list each task by its own name, or one replaces another"
        elif task.space not in spaces:
            yield f"task '{task.name}': {_unknown_space(spaces, task.space)}"
        elif task.x.shape[1] != (dim := spaces[task.space].dim):
            yield (
                f"task '{task.name}': x has {task.x.shape[1]} columns, its space '{task.space}' has {dim}; "
                "encode the inputs with that space"
            )


def _matched(spaces: Spaces, tasks: Tasks, matched: Sequence[MatchedBlock]) -> Iterator[str]:
    for block in matched:
        where = f"matched block '{block.name}'"
        strangers = [name for name in block.tasks if name not in tasks]
        if block.space not in spaces:
            yield f"{where}: {_unknown_space(spaces, block.space)}"
        elif strangers:
            yield f"{where}: unknown tasks {strangers}; drop their columns or add the tasks"
        elif others := [name for name in block.tasks if tasks[name].space != block.space]:
            yield f"{where}: tasks {others} are not in its space '{block.space}'; make one block per space"
        elif block.x.shape[1] != (dim := spaces[block.space].dim):
            yield (
                f"{where}: x has {block.x.shape[1]} columns, its space '{block.space}' has {dim}; "
                "encode the inputs with that space"
            )


def _fold(tasks: Tasks, fold: Fold) -> Iterator[str]:
    names = (*fold.train, *fold.test)
    if strangers := [name for name in names if name not in tasks]:
        yield f"unknown tasks {strangers}; name tasks of the benchmark"
    if not fold.test:
        yield "no test task; leave the fold out"
    if not fold.train:
        yield "no training task is left; a hold-out needs tasks of another group"
    if both := sorted(set(fold.train) & set(fold.test)):
        yield f"tasks {both} are in train and test; keep each on one side"
    if others := [name for name in names if tasks[name].space != fold.space]:
        yield f"tasks {others} are not in its space '{fold.space}'; make one fold per space"


def _initial(tasks: Tasks, splits: Splits, initial: Mapping[str, np.ndarray]) -> Iterator[str]:
    for name, indices in initial.items():
        where = f"initial points of task '{name}'"
        if name not in tasks:
            yield f"{where}: unknown task; name a task of the benchmark"
        elif indices.ndim != 2 or not np.issubdtype(indices.dtype, np.integer):
            yield f"{where}: {indices.dtype} {indices.shape}; must be row numbers, (seeds, points)"
        elif ((indices < 0) | (indices >= (rows := len(tasks[name].y)))).any():
            bad = indices[(indices < 0) | (indices >= rows)][0]
            yield f"{where}: row {bad} does not exist; the task has rows 0 to {rows - 1}"
    for split, folds in splits.items():
        for space in dict.fromkeys(fold.space for fold in folds):
            # One compiled program runs all test tasks of a space, so they start from equally many points.
            tests = dict.fromkeys(name for fold in folds if fold.space == space for name in fold.test)
            points = {t: initial[t].shape[1] if t in initial else 0 for t in tests}
            if len(set(points.values())) > 1:
                few, many = min(points, key=points.__getitem__), max(points, key=points.__getitem__)
                yield (
                    f"split '{split}', space '{space}': test task '{few}' has {points[few]} initial points, "
                    f"'{many}' has {points[many]}; give all test tasks of a space equally many, or none"
                )


def _facts(spaces: Spaces, facts: Facts) -> Iterator[str]:
    """Check the facts that methods read."""
    if facts.inputs not in SCALES:
        yield f"fact 'inputs': unknown scale '{facts.inputs}'; take one of {', '.join(SCALES)}"
    if facts.divergence not in (None, *RULES):
        yield f"fact 'divergence': unknown rule '{facts.divergence}'; take one of {', '.join(RULES)}, or none"
    for space in facts.unseen:
        if space not in spaces:
            yield f"fact 'unseen': {_unknown_space(spaces, space)}"
    for name, space in spaces.items() if facts.truth else ():
        found = len(facts.truth[name]["parameters"]["lengthscale"]) if name in facts.truth else 0
        if found != space.dim:
            yield (
                f"fact 'truth': {found} length-scales of space '{name}', which has {space.dim} inputs; describe the "
                "GP of every space"
            )


def _unknown_space(spaces: Spaces, space: str) -> str:
    return f"unknown space '{space}'; add it to the benchmark's spaces ({', '.join(spaces) or 'none yet'})"
