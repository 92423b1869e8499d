"""The four spaces of cm-BO (§4.1, Table 1) from an archive in HPO-B's format: HPO-B v2, which pools the training,
validation and test tasks of v3 (`cmbo_hpob`), or this project's collection over spaces like these (`cmbo_mini`).

A space of the paper is named there by its learner and number of inputs; where two ids of HPO-B fit, the one with the
stated number of tasks is taken. Outputs are standardised over all evaluations of a task; `metric` stays. Tasks with
constant outputs have no normalised regret: they are counted, named in the flags and left out.

Split `held_out`: 15 % of the tasks of a space are targets, the others sources, in `folds` draws. Open in the paper and
chosen here: the draws have no target in common (five of them hold three quarters of the tasks), so that every run is on
another task; 15 % are rounded to the nearest whole number, at least one. Tasks in which half of the evaluations tie at
the best (`metabo.tasks.ties`) are sources only, unless the setting `tied` says that they may be targets. Split `first`:
the first draw of the first space. Eight sets of five initial points of each task (§4.1), drawn by the names of space
and task.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from metabo.compute.keys import stream
from metabo.data import counts
from metabo.data.hpob import as_task
from metabo.data.hpob_format import FILES, Meta, Table, read_archive
from metabo.errors import ConfigError, DataError
from metabo.tasks import ties
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count, Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

BENCHMARKS = {
    "cmbo_hpob": {
        "dataset": "hpob",
        "matched": False,
        "once": True,
        "default_split": "held_out",
        "splits": ["held_out", "first"],
        "package": None,
        "settings": ["spaces", "folds", "tied", "seed"],
        "sizes": "cmbo",
        "memory_mb": 12000,  # hpob's
        "model": {"features": [128, 128]},  # as HyperBO has them on HPO-B
    },
    "cmbo_mini": {
        "dataset": None,
        "archive_of": "hpob_mini",  # the collection whose archive it is read from
        "matched": False,
        "once": True,
        "default_split": "held_out",
        "splits": ["held_out", "first"],
        "package": None,
        "settings": ["spaces", "folds", "tied", "seed"],
        "sizes": "cmbo",
    },
}

STATED = {
    "rpart.preproc": (3, 44),
    "rpart": (6, 69),
    "svm": (8, 63),
    "ranger": (10, 74),
}
"""Inputs and tasks of each space (Table 1)."""
IDS = {
    "cmbo_hpob": {
        "rpart.preproc": ("4796",),
        "rpart": ("5859", "5636"),
        "svm": ("5527", "5891"),
        "ranger": ("5965", "6794"),
    },
    "cmbo_mini": {
        "rpart.preproc": ("rpart_3",),
        "rpart": ("rpart_6",),
        "svm": ("svm_8",),
        "ranger": ("ranger_10",),
    },
}
"""Ids in the archive that a space may have."""
SHARE, SETS, POINTS = 0.15, 8, 5
"""Share of the tasks that are targets, sets of initial points of a task (one per repetition), and points in each."""
ROLES = ("sources", "targets")
"""What tasks that tie at the best may be: sources alone, or targets too, as the paper's draws have it."""
FEWEST = 100
"""Evaluations that the paper requires of every task."""


def load(name: str, settings: Mapping[str, object], archive: Path | None) -> Benchmark:
    """Read the four spaces. Settings: `spaces` (names of Table 1), `folds` (draws of targets), `tied` (what tied tasks
    are: "sources" or also "targets"), `seed` of all draws.

    Fact `labels`: name of each space in the paper. Raises ConfigError for an unknown space, DataError for a missing
    archive or space, a task in two of its parts or with too few evaluations to start from, and a space with too few
    tasks for that number of draws.
    """
    chosen = counts.take(name, settings, {"spaces": list(STATED), "folds": 5, "tied": "sources", "seed": 0})
    folds = counts.whole_number(name, "folds", chosen["folds"], least=1)
    role = counts.one_of(name, "tied", chosen["tied"], ROLES)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    wanted = list(
        dict.fromkeys(
            counts.one_of(name, "spaces", s, tuple(STATED)) for s in counts.listed(name, "spaces", chosen["spaces"])
        )
    )
    if not wanted:
        raise ConfigError(f"benchmarks.{name}.spaces is empty; choose from {', '.join(STATED)}")
    if archive is None:
        raise DataError(f"benchmark '{name}' needs its archive in HPO-B's format; run its download or collection first")
    parts = [member.tables for member in read_archive(archive, tuple(FILES.values())).values()]
    spaces, tasks, held_out, lines, flags, labels = {}, {}, [], [], [], {}
    for label in wanted:
        space, tables = pooled(archive, parts, IDS[name][label], STATED[label][1])
        own = {f"{space}/{task}": as_task(space, task, table) for task, table in tables.items()}
        spaces[space] = _space(space, own)
        labels[space] = label
        lines += _counts(label, spaces[space], own, published=name == "cmbo_hpob")
        flags += _flags(space, own)
        usable = {task: standardised(one) for task, one in own.items() if not one.flat}
        level = [task for task in ties.tied_tasks(own) if task in usable] if role == "sources" else []
        flags += [f"space {space}: {flag}" for flag in ties.said(level)]
        held_out += draws(space, list(usable), folds, seed, [task for task in usable if task not in level])
        tasks |= usable
    initial = {task: initial_points(one, seed) for task, one in tasks.items()}
    facts = Facts(counts=tuple(lines), flags=tuple(flags), labels=labels)
    splits = {"held_out": tuple(held_out), "first": tuple(held_out[:1])}
    return Benchmark(name, spaces, tasks, (), splits, initial, facts)


def pooled(archive: Path, parts: list[Meta], ids: tuple[str, ...], tasks: int) -> tuple[str, dict[str, Table]]:
    """Return the id, of those given, that has the stated number of tasks in all parts (else the first), and its tables.

    Raises DataError for an id without tasks, or a task in two parts.
    """
    found: dict[str, dict[str, Table]] = {}
    for id in ids:
        found[id] = {}
        for part in parts:
            if twice := sorted(found[id].keys() & part.get(id, {}).keys()):
                raise DataError(f"{archive}: task {id}/{twice[0]} is in two of its parts; get the published archive")
            found[id] |= part.get(id, {})
    if not found[ids[0]]:
        raise DataError(f"{archive}: space '{ids[0]}' has no task; get the published archive, or leave the space out")
    fitting = [id for id in ids if len(found[id]) == tasks]
    id = fitting[0] if fitting else ids[0]
    return id, found[id]


def standardised(task: Task) -> Task:
    """Return the task with outputs of mean 0 and variance 1 over all its evaluations."""
    return replace(task, y=(task.y - task.y.mean()) / task.y.std())


def draws(space: str, names: list[str], folds: int, seed: int, tested: list[str]) -> list[Fold]:
    """Return `folds` splits of the tasks `names` into sources and targets, no target twice and all of them in `tested`.
    Raises DataError if the tasks are too few."""
    count = max(1, int(SHARE * len(names) + 0.5))
    if folds * count > len(tested) or len(names) < 2:
        raise DataError(
            f"space '{space}' has {len(tested)} tasks that may be targets: too few for {folds} draws of {count}; lower "
            "'folds' of the benchmark in config.yaml, or leave the space out"
        )
    order = np.asarray(jax.random.permutation(stream(seed, "targets", space), len(tested)))
    made = []
    for number in range(folds):
        targets = {tested[i] for i in order[number * count : (number + 1) * count]}
        train, test = (tuple(n for n in names if (n in targets) == tested) for tested in (False, True))
        made.append(Fold(f"{space}, split {number + 1}", space, train, test))
    return made


def initial_points(task: Task, seed: int) -> np.ndarray:
    """Draw (SETS, POINTS) positions without replacement, by seed, space, task and number of the set. Raises DataError
    if the task has fewer points."""
    if len(task.y) < POINTS:
        raise DataError(f"task '{task.name}' has {len(task.y)} evaluations; BO starts from {POINTS} different ones")
    keys = [stream(seed, "initial", task.space, task.name, number) for number in range(SETS)]
    return np.stack([np.asarray(jax.random.permutation(key, len(task.y))[:POINTS], dtype=np.int64) for key in keys])


def _space(name: str, tasks: dict[str, Task]) -> SearchSpace:
    dim = next(iter(tasks.values())).x.shape[1]
    return SearchSpace(name, tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(dim)))


def _counts(label: str, space: SearchSpace, tasks: dict[str, Task], published: bool) -> list[Count]:
    """Compare with Table 1. For another collection, only the numbers of inputs apply, which it was made to match."""
    inputs, stated = STATED[label]
    fewest = min(len(task.y) for task in tasks.values())
    return [
        counts.count(f"{label}: inputs", space.dim, inputs),
        counts.count(f"{label}: tasks", len(tasks), stated if published else None),
        counts.count(f"{label}: tasks with constant outputs", sum(task.flat for task in tasks.values())),
        counts.count(f"{label}: evaluations of the smallest task", fewest),
    ]


def _flags(space: str, tasks: dict[str, Task]) -> list[str]:
    flat = [name for name, task in tasks.items() if task.flat]
    small = [name for name, task in tasks.items() if len(task.y) < FEWEST]
    flags = [f"space {space}: constant outputs, left out: {'; '.join(flat)}"] if flat else []
    return flags + ([f"space {space}: fewer than {FEWEST} evaluations: {'; '.join(small)}"] if small else [])
