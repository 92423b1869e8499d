"""HPO-B v3: accuracies of classic learners over 16 search spaces (hyperbo §7.6), from the archive hpob-data.zip.

Outputs are the accuracies as published (maximised, neither warped nor rescaled). Pre-training uses the meta-train
tasks of a space, BO runs on its meta-test tasks from five published sets of five initial points; the validation tasks
are counted and not used, as in the authors' code. Constant training tasks are kept and flagged.
`hpob_mini` is this project's own small collection over such spaces (`metabo.collect.hpob_mini`), in the same format.
"""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from metabo.data import counts, hpob_counts
from metabo.data.hpob_counts import STATED, report
from metabo.data.hpob_format import FILES, INITIAL, SPLITS, Meta, Starts, Table, read_archive
from metabo.errors import ConfigError, DataError
from metabo.tasks import ties
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

BENCHMARKS = {
    "hpob": {
        "dataset": "hpob",
        "matched": False,
        "once": True,
        "default_split": "held_out",
        "package": None,
        "settings": ["spaces", "max_points", "seed"],
        "memory_mb": 12000,  # six million evaluations
        "model": {"features": [128, 128]},  # hyperbo §7.6: in place of (32, 32)
    },
    "hpob_mini": {
        "dataset": None,
        "collector": "collect.hpob_mini",
        "writer": "collect.hpob_archive",
        "archive": "hpob_mini.zip",
        "versions": 2,
        "matched": False,
        "once": True,
        "default_split": "held_out",
        "package": None,
        "settings": ["version", "spaces", "max_points", "seed"],
        "sizes": "hpob",
    },
}
MINI = ("glmnet_2", "rpart_3", "rpart_6", "svm_8", "ranger_10", "xgboost_16")
SPACES = {"hpob": tuple(STATED), "hpob_mini": MINI}

SEEDS = tuple(f"test{i}" for i in range(5))


def load(name: str, settings: Mapping[str, object], archive: Path | None) -> Benchmark:
    """Parse the archive. Settings: `spaces` (search space ids), `max_points` (null, or the size of a uniform sample of
    each *training* task) and `seed` of that sample; of hpob_mini also `version`: in version 2 a test task whose outputs
    tie at the best trains only (`metabo.tasks.ties`).

    Task names are "space/dataset", groups the data set ids. Raises DataError for a damaged archive, a missing member
    or field, arrays that do not fit, a task without any finite row, or an initial point that does not exist.
    """
    valid = SPACES[name]
    mini = name == "hpob_mini"
    defaults = {"spaces": list(valid), "max_points": None, "seed": 0}
    chosen = counts.take(name, settings, defaults | ({"version": 1} if mini else {}))
    refuses_ties = mini and counts.version(name, chosen["version"], 2) == 2
    most = chosen["max_points"]
    size = None if most is None else counts.whole_number(name, "max_points", most, least=1)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    ids = list(
        dict.fromkeys(counts.one_of(name, "spaces", s, valid) for s in counts.listed(name, "spaces", chosen["spaces"]))
    )
    if not ids:
        raise ConfigError(f"benchmarks.{name}.spaces is empty; choose from {', '.join(valid)}")
    if archive is None:
        raise DataError(f"benchmark '{name}' needs its archive in HPO-B's format; run its download or collection first")
    parsed = read_archive(archive, (*FILES.values(), INITIAL))
    meta = {split: parsed[FILES[split]].tables for split in SPLITS}
    starts = parsed[INITIAL].starts
    spaces, tasks, initial, folds, tied = {}, {}, {}, [], []
    for space in ids:
        spaces[space] = _search_space(archive, meta, space)
        train = {f"{space}/{t}": as_task(space, t, table) for t, table in meta["train"][space].items()}
        test = {f"{space}/{t}": as_task(space, t, table) for t, table in meta["test"][space].items()}
        if both := sorted(train.keys() & test.keys()):
            raise DataError(f"{archive}: tasks {both} are in meta-train and in meta-test")
        if refuses_ties and (level := ties.tied_tasks(test)):
            if len(level) == len(test):
                raise DataError(f"{archive}: every test task of space '{space}' ties at the best; leave the space out")
            train |= {t: test.pop(t) for t in level}
            tied += level
        tasks |= {t: _subsample(task, size, seed) for t, task in train.items()} | test
        initial |= {t: _initial(starts, task) for t, task in test.items()}
        folds.append(Fold(space, space, tuple(train), tuple(test)))
    lines, flags = report(meta, ids, published=name == "hpob")
    if name == "hpob":
        of_members, flagged = hpob_counts.members(parsed)
        lines += [*of_members, *hpob_counts.initial(tasks, initial)]
        flags += flagged
    lines.append(counts.count("repeated inputs (loaded tasks)", counts.repeated_inputs(tasks)))
    facts = Facts(counts=tuple(lines), flags=(*flags, *ties.said(tied), *counts.flat_tasks(tasks)))
    return Benchmark(name, spaces, tasks, (), {"held_out": tuple(folds)}, initial, facts)


def _search_space(archive: Path, meta: dict[str, Meta], space: str) -> SearchSpace:
    """Describe a space by its number of inputs (the archive has no names). Raises DataError if tasks disagree."""
    for split in ("train", "test"):
        if not meta[split].get(space):
            held = ", ".join(meta[split])
            raise DataError(f"{archive}: space '{space}' has no task in {FILES[split]}; it holds {held}")
    first, *others = [table for split in ("train", "test") for table in meta[split][space].values()]
    for table in others:
        if table.x.shape[1] != first.x.shape[1]:
            raise DataError(f"{table.where}: {table.x.shape[1]} inputs; {first.where} has {first.x.shape[1]}")
    return SearchSpace(space, tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(first.x.shape[1])))


def as_task(space: str, task: str, table: Table) -> Task:
    """Return a stored table as a task of its finite rows. Raises DataError if there are none."""
    rows = np.flatnonzero(np.isfinite(table.y) & np.isfinite(table.x).all(axis=1))
    if not len(rows):
        raise DataError(f"{table.where}: none of its {len(table.y)} rows is finite; repair the archive")
    lost = table.x[~np.isfinite(table.y) & np.isfinite(table.x).all(axis=1)]
    y = table.y[rows]
    return Task(f"{space}/{task}", space, task, table.x[rows], y, y, rows, lost)


def _initial(starts: Starts, task: Task) -> np.ndarray:
    """Return the (5, 5) positions of the published initial points among the task's loaded rows."""
    where = f"{INITIAL}, task {task.name}"
    try:
        stored = np.array([starts[task.space][task.group][seed] for seed in SEEDS])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: needs lists {', '.join(SEEDS)} of equal length ({error!r})") from error
    if stored.ndim != 2 or not np.issubdtype(stored.dtype, np.integer):
        raise DataError(f"{where}: needs lists {', '.join(SEEDS)} of row numbers, got {stored.dtype} {stored.shape}")
    position = {int(row): i for i, row in enumerate(task.rows)}
    absent = [int(row) for row in stored.ravel() if int(row) not in position]
    if absent:
        raise DataError(f"{where}: row {absent[0]} is not one of the task's {len(position)} finite rows")
    return np.array([[position[int(row)] for row in seed] for seed in stored])


def _subsample(task: Task, size: int | None, seed: int) -> Task:
    """Keep a uniform sample of at most `size` rows, in their order; depends on seed and task name only."""
    if size is None or len(task.y) <= size:
        return task
    generator = np.random.default_rng([seed, zlib.crc32(task.name.encode())])
    rows = np.sort(generator.choice(len(task.y), size, replace=False))
    picked = {key: getattr(task, key)[rows] for key in ("x", "y", "metric", "rows")}
    return replace(task, **picked)
