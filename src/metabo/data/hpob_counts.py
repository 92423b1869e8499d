"""What is stated about HPO-B v3 (hyperbo §7.6; HPO-B's own task lists), compared with what the archive holds."""

from collections.abc import Mapping

import numpy as np

from metabo.data.counts import count
from metabo.data.hpob_format import Member, Meta, Table
from metabo.data.published import initial_maxima
from metabo.tasks.facts import Count
from metabo.tasks.task import Task

# Per space: inputs, family, flat training tasks (hyperbo §7.6.3), test tasks (HPO-B meta-test-tasks-per-space.json).
STATED = {
    "4796": (3, "rpart", 0, "3549 3918 9903 23"),
    "5527": (8, "svm", 0, "146064 146065 9914 145804 31 10101"),
    "5636": (6, "rpart", 2, "146064 145804 9914 146065 10101 31"),
    "5859": (6, "rpart", 4, "9983 31 37 3902 9977 125923"),
    "5860": (2, "glmnet", 0, "14965 9976 3493"),
    "5889": (6, "ranger", 0, "9971 3918"),
    "5891": (8, "svm", 0, "9889 3899 6566 9980 3891 3492"),
    "5906": (16, "xgboost", 0, "9971 3918"),
    "5965": (10, "ranger", 0, "145836 9914 3903 10101 9889 49 9946"),
    "5970": (2, "glmnet", 0, "37 3492 9952 49 34536 14951"),
    "5971": (16, "xgboost", 0, "10093 3954 43 34536 9970 6566"),
    "6766": (2, "glmnet", 0, "3903 146064 145953 145804 31 10101"),
    "6767": (18, "xgboost", 0, "146065 145804 146064 9914 9967 31"),
    "6794": (10, "ranger", 0, "145804 3 146065 10101 9914 31"),
    "7607": (9, "ranger", 0, "14965 145976 3896 3913 3903 9946 9967"),
    "7609": (9, "ranger", 0, "145854 3903 9967 145853 34537 125923 145878"),
}
TASKS = {"train": 758, "validation": 91, "test": 86}
EVALUATIONS = {"train": 3_279_050, "validation": 1_180_786, "test": 1_888_080}
FLAT_OF = {"5636": 54, "5859": 56}  # training tasks of the two spaces with flat ones
SUSPECT = ("5859", "5970")  # spaces whose variable bounds were wrong in past releases

# Bytes of each member and the beginning of its SHA-256.
MEMBERS = {
    "bo-initializations.json": (323_415, "71c5878e"),
    "meta-test-dataset.json": (195_075_429, "92f88c12"),
    "meta-train-dataset.json": (346_356_822, "4a51701c"),
    "meta-validation-dataset.json": (124_236_991, "e0628780"),
}


def report(meta: dict[str, Meta], spaces: list[str], published: bool = True) -> tuple[list[Count], list[str]]:
    """Return the counts and flags. Totals are over the whole archive, the rest over the loaded `spaces`.

    Not `published`: another archive in HPO-B's format, about which nothing is stated.
    """
    lines, flags = _report(meta, spaces)
    return (lines if published else [count(line.name, line.found) for line in lines]), flags


def _report(meta: dict[str, Meta], spaces: list[str]) -> tuple[list[Count], list[str]]:
    lines = [count("search spaces with test tasks", len(meta["test"]), 16)]
    for split, tables in meta.items():
        sizes = [len(table.y) for tasks in tables.values() for table in tasks.values()]
        lines.append(count(f"{split} tasks", len(sizes), TASKS[split]))
        lines.append(count(f"{split} evaluations", sum(sizes), EVALUATIONS[split]))
    largest = [max(len(t.y) for t in tasks.values()) for tasks in meta["train"].values() if tasks]
    lines.append(count("spaces with at most 1000 points in every training task", sum(n <= 1000 for n in largest), 5))
    lines.append(count("points of the largest training task", max(largest, default=0), 102_306))
    flags = []
    for space in spaces:
        more, flagged = _space(meta, space)
        lines += more
        flags += flagged
    return lines, flags


def _space(meta: dict[str, Meta], space: str) -> tuple[list[Count], list[str]]:
    dim, _, flat, published = STATED.get(space, (None, None, None, None))
    train, test = meta["train"][space], meta["test"][space]
    tables = [*train.values(), *test.values()]
    lines = [
        count(f"{space}: inputs", tables[0].x.shape[1], dim),
        count(f"{space}: test tasks", len(test), len(published.split()) if published else None),
        count(f"{space}: flat training tasks", _flat(train), flat),
        count(f"{space}: flat test tasks", _flat(test), 0),
    ]
    if space in FLAT_OF or not published:
        lines.append(count(f"{space}: training tasks", len(train), FLAT_OF.get(space)))
    lost = sum(int((~np.isfinite(t.y) | ~np.isfinite(t.x).all(axis=1)).sum()) for t in tables)
    lines.append(count(f"{space}: rows without a finite value, dropped", lost, 0))
    outside = sum(int(((t.x < 0) | (t.x > 1)).any(axis=1).sum()) for t in tables)
    lines.append(count(f"{space}: rows with an input outside [0, 1], kept as published", outside, 0))
    flags = []
    if outside and space in SUSPECT:
        flags.append(f"space {space}: inputs outside [0, 1]; its variable bounds were wrong in past releases")
    if published and (differing := sorted(set(test) ^ set(published.split()))):
        flags.append(f"space {space}: test tasks differ from the published list in {', '.join(differing)}")
    return lines, flags


def _flat(tables: dict[str, Table]) -> int:
    return sum(bool(np.nanmin(t.y) == np.nanmax(t.y)) for t in tables.values() if np.isfinite(t.y).any())


def members(read: Mapping[str, Member]) -> tuple[list[Count], list[str]]:
    """Compare the bytes of the members that were read with those of the published archive."""
    lines = [count(f"{name}: bytes", read[name].size, size) for name, (size, _) in MEMBERS.items()]
    flags = [
        f"{name}: its SHA-256 begins with {read[name].digest[:8]}, that of the published file with {start}"
        for name, (_, start) in MEMBERS.items()
        if not read[name].digest.startswith(start)
    ]
    return lines, flags


def initial(tasks: Mapping[str, Task], starts: Mapping[str, np.ndarray]) -> list[Count]:
    """Compare the best of each set of initial points, (sets, points) row numbers by task, with the published one.

    Normalised as HPO-B does, by the least and greatest output of the task, and rounded as published.
    """
    compared = differing = 0
    for name, sets in starts.items():
        y = tasks[name].y
        for number, rows in enumerate(sets):
            expected = initial_maxima().get((tasks[name].space, tasks[name].group, f"test{number}"))
            if expected is not None:
                compared += 1
                differing += not abs((y[rows].max() - y.min()) / np.ptp(y) - expected) <= 1.5e-6
    return [
        count("sets of initial points", sum(map(len, starts.values())), compared),
        count("sets of initial points whose best is not the published one", differing, 0),
    ]
