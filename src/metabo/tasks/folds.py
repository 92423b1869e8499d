"""Folds: which tasks a prior is trained on, and which it is tested on."""

from collections.abc import Mapping
from typing import NamedTuple

from metabo.tasks.task import Task


class Fold(NamedTuple):
    """Pre-train on the tasks `train`, run BO on the tasks `test`; all in one search space."""

    name: str
    space: str
    train: tuple[str, ...]
    test: tuple[str, ...]


def leave_group_out(tasks: Mapping[str, Task], never_test: frozenset[str] = frozenset()) -> tuple[Fold, ...]:
    """Build one fold per test task: train on the tasks of the same space whose group differs (exact match).

    Tasks in `never_test` are used for training only. Source: hyperbo §7.4.1. The group is compared as a whole field,
    never as a substring ("mnist" is not "fashion_mnist"). Folds with the same training set share one name and are
    merged.
    """
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for task in tasks.values():
        if task.name in never_test:
            continue
        train = tuple(t.name for t in tasks.values() if t.space == task.space and t.group != task.group)
        merged.setdefault((task.space, train), []).append(task.name)
    return tuple(
        Fold(f"without {tasks[test[0]].group}", space, train, tuple(test)) for (space, train), test in merged.items()
    )


def leave_one_out(tasks: Mapping[str, Task], tested: list[str]) -> tuple[Fold, ...]:
    """Build one fold per task of `tested`: train on every other task of the same space (hyperbo §7.5)."""
    return tuple(
        Fold(
            f"without {name}",
            tasks[name].space,
            tuple(t.name for t in tasks.values() if t.space == tasks[name].space and t.name != name),
            (name,),
        )
        for name in tested
    )


def dealt_out(tasks: Mapping[str, Task], tested: list[str], folds: int) -> tuple[Fold, ...]:
    """Build at most `folds` folds of one search space by dealing `tested` out to them in turn: fold i tests tasks i, i
    + folds, ... and trains on all others. There are fewer folds if there are fewer tested tasks."""
    made = []
    for number in range(min(folds, len(tested))):
        test = tuple(tested[number::folds])
        space = tasks[test[0]].space
        train = tuple(t.name for t in tasks.values() if t.space == space and t.name not in test)
        made.append(Fold(f"fold {number + 1} of {folds}", space, train, test))
    return tuple(made)
