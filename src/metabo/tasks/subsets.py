"""Less data for pre-training: fewer points per task, fewer tasks, matched points only (hyperbo §7.4.3, 7.4.4, 7.6.2),
or half of the configurations. Also the points that BO may query.

A draw depends only on the names of the space and the task (or fold) and on the pre-training seed. The halves
(`held_back`) are the exception: they depend on the overall seed, the space, and the configurations that exist.
"""

from collections.abc import Iterable
from dataclasses import replace

import jax
import numpy as np

from metabo.compute.keys import stream
from metabo.errors import ConfigError, DataError
from metabo.plan.past import Past
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.task import MatchedBlock, Task


def training_tasks(benchmark: Benchmark, fold: Fold, past: Past, seed: int, number: int) -> tuple[str, ...]:
    """Return the training tasks of a fold for pre-training seed `number`, in the fold's order.

    If there are more than `past.tasks`, tasks that share the data set (group) of a test task are dropped first, then
    random ones (hyperbo §7.4.4).
    """
    if past.tasks is None or len(fold.train) <= past.tasks:
        return fold.train
    tested = {benchmark.tasks[name].group for name in fold.test}
    order = _permutation(stream(seed, "fewer tasks", fold.space, fold.name, number), len(fold.train))
    related = sorted(order, key=lambda i: benchmark.tasks[fold.train[i]].group in tested)  # stable: random within
    return tuple(fold.train[i] for i in sorted(related[: past.tasks]))


def training_points(
    task: Task, data: tuple[np.ndarray, np.ndarray], past: Past, seed: int, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of a task's `data` (x, y) that pre-training seed `number` sees."""
    x, y = data
    if past.points is None or len(y) <= past.points:
        return x, y
    key = stream(seed, "fewer points", task.space, task.name, number)
    keep = np.sort(_permutation(key, len(y))[: past.points])
    return x[keep], y[keep]


def block_points(blocks: tuple[MatchedBlock, ...], fold: Fold, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and outputs of a task in the matched blocks of a fold, in their order (`rows: matched`).

    Raises DataError if the task is in none of these blocks.
    """
    own = [(block.x, block.y[:, block.tasks.index(name)]) for block in blocks if name in block.tasks]
    if not own:
        raise DataError(
            f"fold '{fold.name}' of space '{fold.space}': task '{name}' has no matched points with the other training "
            "tasks; leave out splits that need them"
        )
    return np.concatenate([x for x, _ in own]), np.concatenate([y for _, y in own])


def matched_rows(benchmark: Benchmark, task: Task, x: np.ndarray) -> np.ndarray:
    """Return the positions in `x` of the inputs that the task shares with any other task. Raises DataError if there are
    none."""
    blocks = [block for block in benchmark.matched if task.name in block.tasks]
    shared = {tuple(point) for block in blocks for point in block.x.tolist()}
    chosen = np.array([i for i, point in enumerate(x.tolist()) if tuple(point) in shared], dtype=np.int64)
    if len(chosen) == 0:
        raise DataError(
            f"task '{task.name}' of benchmark '{benchmark.name}' has no matched points; leave out splits that need them"
        )
    return chosen


def fewer_matched(
    blocks: tuple[MatchedBlock, ...], fold: Fold, past: Past, seed: int, number: int
) -> tuple[MatchedBlock, ...]:
    """Keep `past.points` random inputs (None: all) of all matched blocks together, so that no task has more than
    these."""
    total = sum(len(block.x) for block in blocks)
    if past.points is None or total <= past.points:
        return blocks
    key = stream(seed, "fewer matched points", fold.space, fold.name, number)
    keep = np.zeros(total, dtype=bool)
    keep[_permutation(key, total)[: past.points]] = True
    ends = np.cumsum([len(block.x) for block in blocks])
    parts = zip(blocks, np.split(keep, ends[:-1]), strict=True)
    return tuple(MatchedBlock(b.name, b.space, b.tasks, b.x[k], b.y[k]) for b, k in parts if k.any())


Configurations = frozenset[tuple[float, ...]]


def held_back(benchmark: Benchmark, space: str, seed: int) -> Configurations:
    """Return the half of the configurations of a space (distinct inputs of all its tasks, diverged ones too) that BO
    may query and that no prior sees: first those of given initial points, then random ones, drawn by (seed, space).

    A configuration is in the same half for all tasks that evaluated it. If their number is odd, the priors get one
    more.
    """
    tasks = [task for task in benchmark.tasks.values() if task.space == space]
    found = np.unique(np.concatenate([part for task in tasks for part in (task.x, task.diverged)]) + 0.0, axis=0)
    given = _configurations(t.x[np.unique(benchmark.initial[t.name])] for t in tasks if t.name in benchmark.initial)
    first = np.array([point in given for point in map(tuple, found.tolist())])
    order = _permutation(stream(seed, "half of the configurations", space), len(found))
    order = order[np.argsort(~first[order], kind="stable")]
    return _configurations([found[order[: max(len(found) // 2, int(first.sum()))]]])


def training_half(benchmark: Benchmark, seed: int) -> Benchmark:
    """Return the benchmark without the configurations of `held_back`, which are removed from tasks, their diverged
    inputs and matched blocks. It has no given initial points.

    Raises DataError for a task without any configuration left.
    """
    tested = {space: held_back(benchmark, space, seed) for space in benchmark.spaces}
    tasks = {}
    for name, task in benchmark.tasks.items():
        kept, lost = (~_among(x, tested[task.space]) for x in (task.x, task.diverged))
        if not kept.any():
            raise _none_left(task, "priors are trained on")
        columns = {key: getattr(task, key)[kept] for key in ("x", "y", "metric", "rows")}
        noise = None if task.noise is None else task.noise[kept]
        tasks[name] = replace(task, **columns, diverged=task.diverged[lost], noise=noise)
    parts = [(block, ~_among(block.x, tested[block.space])) for block in benchmark.matched]
    matched = tuple(replace(block, x=block.x[kept], y=block.y[kept]) for block, kept in parts if kept.any())
    return replace(benchmark, tasks=tasks, matched=matched, initial={})


def _configurations(parts: Iterable[np.ndarray]) -> Configurations:
    return frozenset(tuple(point) for part in parts for point in part.tolist())


def _among(x: np.ndarray, chosen: Configurations) -> np.ndarray:
    return np.array([tuple(point) in chosen for point in x.tolist()], dtype=bool)


def _none_left(task: Task, what: str) -> DataError:
    return DataError(
        f"task '{task.name}' of space '{task.space}' has none of its {len(task.y)} points in the half of the "
        f"configurations that {what}; leave the task out, or splits with 'rows: half'"
    )


CANDIDATES = ("all", "matched", "rest")


def pools_of(benchmark: Benchmark, names: Iterable[str], which: str | int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return the `candidates` of each of these tasks."""
    tasks = [benchmark.tasks[name] for name in names]
    if which != "rest":
        return {task.name: candidates(benchmark, task, which, seed) for task in tasks}
    halves = {space: held_back(benchmark, space, seed) for space in {task.space for task in tasks}}
    return {task.name: _new_rows(task, halves[task.space]) for task in tasks}


def candidates(benchmark: Benchmark, task: Task, which: str | int, seed: int = 0) -> np.ndarray:
    """Return the positions, in order, of the points of a task that BO may query: "all"; those "matched" across tasks;
    the "rest" that `training_half` leaves out; or a number of points, which include the best one and the given initial
    points and are otherwise drawn by (seed, space, task).

    Raises ConfigError for another name, for "matched" if the task has given initial points (which need not be matched),
    and for a number smaller than that of the points that must be kept. Raises DataError for a task without such points.
    """
    if which == "all":
        return np.arange(len(task.y))
    if isinstance(which, int):
        return _fewer_candidates(benchmark, task, which, seed)
    if which not in CANDIDATES:
        raise ConfigError(f"split candidates '{which}': must be one of {', '.join(CANDIDATES)}")
    if which == "rest":
        return _new_rows(task, held_back(benchmark, task.space, seed))
    if task.name in benchmark.initial:
        raise ConfigError(f"task '{task.name}' has given initial points: candidates must be 'all'")
    return matched_rows(benchmark, task, task.x)


def _new_rows(task: Task, tested: Configurations) -> np.ndarray:
    rows = np.flatnonzero(_among(task.x, tested))
    if len(rows) == 0:
        raise _none_left(task, "BO may query")
    return rows


def _fewer_candidates(benchmark: Benchmark, task: Task, number: int, seed: int) -> np.ndarray:
    kept = np.unique(np.append(benchmark.initial.get(task.name, np.zeros(0, np.int64)), np.argmax(task.y)))
    if number < min(len(kept), len(task.y)):
        raise ConfigError(
            f"split candidates {number}: task '{task.name}' has a best point and initial points, {len(kept)} in all, "
            "which are always candidates; allow more in splits.yaml"
        )
    order = _permutation(stream(seed, "fewer candidates", task.space, task.name), len(task.y))
    others = order[~np.isin(order, kept)]
    return np.sort(np.concatenate([kept, others])[:number]).astype(np.int64)


def _permutation(key: jax.Array, count: int) -> np.ndarray:
    return np.asarray(jax.random.permutation(key, count))
