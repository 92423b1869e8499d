"""Less data for pre-training: fewer points a task, fewer tasks, matched points only (hyperbo §7.4.3, 7.4.4, 7.6.2).

Every draw depends on the names of space and task (or fold) and on the pre-training seed, on nothing else.
"""

import jax
import numpy as np

from metabo.compute.keys import stream
from metabo.errors import ConfigError, DataError
from metabo.plan.past import ROWS, Past
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.task import MatchedBlock, Task


def training_tasks(benchmark: Benchmark, fold: Fold, past: Past, seed: int, number: int) -> tuple[str, ...]:
    """Return the training tasks of a fold for pre-training seed `number`, in the fold's order.

    Of more than `past.tasks`, those that share the data set (group) of a test task are dropped first, then random ones
    (hyperbo §7.4.4).
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
    """Return the inputs and outputs of a task that pre-training seed `number` sees, of its `data` (x, y)."""
    x, y = data
    if past.points is None or len(y) <= past.points:
        return x, y
    key = stream(seed, "fewer points", task.space, task.name, number)
    keep = np.sort(_permutation(key, len(y))[: past.points])
    return x[keep], y[keep]


def block_points(blocks: tuple[MatchedBlock, ...], fold: Fold, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and outputs of a task in the matched blocks of a fold, in their order (`rows: matched`).

    Raises DataError if the task is in none of them.
    """
    own = [(block.x, block.y[:, block.tasks.index(name)]) for block in blocks if name in block.tasks]
    if not own:
        raise DataError(
            f"fold '{fold.name}' of space '{fold.space}': task '{name}' has no matched points with the other training "
            "tasks; leave out splits that need them"
        )
    return np.concatenate([x for x, _ in own]), np.concatenate([y for _, y in own])


def matched_rows(benchmark: Benchmark, task: Task, x: np.ndarray) -> np.ndarray:
    """Return the positions in `x` of the inputs that the task shares with any other. Raises DataError if none are."""
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
    """Keep `past.points` random inputs of all matched blocks together (None: all), so that no task has more."""
    total = sum(len(block.x) for block in blocks)
    if past.points is None or total <= past.points:
        return blocks
    key = stream(seed, "fewer matched points", fold.space, fold.name, number)
    keep = np.zeros(total, dtype=bool)
    keep[_permutation(key, total)[: past.points]] = True
    ends = np.cumsum([len(block.x) for block in blocks])
    parts = zip(blocks, np.split(keep, ends[:-1]), strict=True)
    return tuple(MatchedBlock(b.name, b.space, b.tasks, b.x[k], b.y[k]) for b, k in parts if k.any())


def candidates(benchmark: Benchmark, task: Task, which: str | int, seed: int = 0) -> np.ndarray:
    """Return the positions, in order, of the points of a task that BO may query: "all", those "matched" across tasks,
    or a number of them, drawn by (seed, space, task), with the best one and the given initial points.

    Raises ConfigError for another name, for matched points of a task with given initial points (they would not be among
    them), or a number that is less than what must be kept.
    """
    if which == "all":
        return np.arange(len(task.y))
    if isinstance(which, int):
        return _fewer_candidates(benchmark, task, which, seed)
    if which not in ROWS:
        raise ConfigError(f"split candidates '{which}': must be one of {', '.join(ROWS)}")
    if task.name in benchmark.initial:
        raise ConfigError(f"task '{task.name}' has given initial points: candidates must be 'all'")
    return matched_rows(benchmark, task, task.x)


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
