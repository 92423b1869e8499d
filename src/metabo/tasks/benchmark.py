"""Tasks, benchmarks and splits: the NumPy side of the data, its checks, and the padded arrays that JAX reads.

Outputs are maximised everywhere; the original metric is kept beside them. A `Benchmark` is stored as one ``.npz``
file (arrays plus a JSON header, never pickle).
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metabo.errors import DataError, MetaboError, unknown
from metabo.records.files import save_npz
from metabo.tasks.checks import faults
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import SearchSpace


@dataclass(frozen=True)
class Task:
    """One tuning task: n evaluated points of one search space.

    `x` (n, d) inputs (unit cube unless the benchmark says otherwise), `y` (n,) outputs to maximise, `metric` (n,) the
    original metric, `rows` (n,) row numbers in the source, `group` the task's data set (what a hold-out removes
    together), `diverged` (k, d) inputs whose evaluation had no value.
    """

    name: str
    space: str
    group: str
    x: np.ndarray
    y: np.ndarray
    metric: np.ndarray
    rows: np.ndarray
    diverged: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.y)
        if n == 0:
            raise DataError(f"task '{self.name}': no finite evaluation; drop the task or repair its source")
        if self.x.ndim != 2 or len(self.x) != n or len(self.metric) != n or len(self.rows) != n:
            raise DataError(
                f"task '{self.name}': x {self.x.shape}, y {self.y.shape}, metric {self.metric.shape} differ in length"
            )
        for label, values in (("x", self.x), ("y", self.y), ("diverged", self.diverged)):
            if not np.isfinite(values).all():
                row = int(np.argwhere(~np.isfinite(values))[0][0])
                raise DataError(f"task '{self.name}': {label} is not finite in row {row}; filter it in the loader")

    @property
    def flat(self) -> bool:
        """True when all outputs are equal (such a task carries no signal)."""
        return bool(np.ptp(self.y) == 0)


@dataclass(frozen=True)
class MatchedBlock:
    """The same m inputs evaluated in several tasks (what EKL needs): `x` (m, d), `y` (m, len(tasks)).

    Blocks that share a name are pieces of one table (see `restrict`); their tasks are in one common order.
    """

    name: str
    space: str
    tasks: tuple[str, ...]
    x: np.ndarray
    y: np.ndarray

    def __post_init__(self) -> None:
        if self.y.shape != (len(self.x), len(self.tasks)) or not np.isfinite(self.y).all():
            raise DataError(
                f"matched block '{self.name}': y {self.y.shape} must be finite and ({len(self.x)}, {len(self.tasks)})"
            )


@dataclass(frozen=True)
class Benchmark:
    """Tasks of one or more search spaces with matched blocks and named splits.

        import metabo

        benchmark = metabo.load_benchmark("mphd_s", domains=2, functions=5, points=40)
        for task in benchmark.tasks.values():
            print(task.name, "in space", task.space, task.x.shape, "best:", task.y.max())
        benchmark.save("toy.npz")
        again = metabo.Benchmark.load("toy.npz")
        print(again.spaces.keys() == benchmark.spaces.keys(), again.splits == benchmark.splits)

    `initial` maps a task to (seeds, k) candidate indices evaluated before BO starts; tasks without an entry start
    empty. `notes` holds the counts and flags that the loader reports. Raises DataError if the parts do not fit
    together (`metabo.tasks.checks`).
    """

    name: str
    spaces: dict[str, SearchSpace]
    tasks: dict[str, Task]
    matched: tuple[MatchedBlock, ...]
    splits: dict[str, tuple[Fold, ...]]
    initial: dict[str, np.ndarray] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in faults(self.spaces, self.tasks, self.matched, self.splits, self.initial, self.notes):
            raise DataError(f"benchmark '{self.name}', {fault}")

    def split(self, name: str) -> tuple[Fold, ...]:
        """Return the folds of one split. Raises ConfigError that lists the splits."""
        if name not in self.splits:
            raise unknown(f"split of benchmark '{self.name}'", name, self.splits)
        return self.splits[name]

    @property
    def width(self) -> int:
        """Number of input columns of the widest task."""
        return max((task.x.shape[1] for task in self.tasks.values()), default=0)

    def save(self, path: str | Path) -> None:
        """Write the benchmark as one ``.npz`` file, atomically."""
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {"name": self.name, "notes": self.notes, "tasks": [], "matched": []}
        header["spaces"] = [space.to_json() for space in self.spaces.values()]
        header["splits"] = {name: [list(fold) for fold in folds] for name, folds in self.splits.items()}
        header["initial"] = list(self.initial)
        for i, task in enumerate(self.tasks.values()):
            header["tasks"].append({"name": task.name, "space": task.space, "group": task.group})
            arrays |= {f"task{i}_{key}": getattr(task, key) for key in _TASK_ARRAYS}
        for i, block in enumerate(self.matched):
            header["matched"].append({"name": block.name, "space": block.space, "tasks": list(block.tasks)})
            arrays |= {f"matched{i}_x": block.x, f"matched{i}_y": block.y}
        arrays |= {f"initial{i}": indices for i, indices in enumerate(self.initial.values())}
        arrays["header"] = np.array(json.dumps(header, sort_keys=True))
        save_npz(path, arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Benchmark":
        """Read what `save` wrote. Raises DataError if the file is not a benchmark."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as data:
                header = json.loads(str(data["header"]))
                arrays = {key: data[key] for key in data.files if key != "header"}
            return cls._of(header, arrays)
        except MetaboError:
            raise
        except Exception as error:
            raise DataError(f"{path}: not a readable benchmark file ({error!r}); delete it and run again") from error

    @classmethod
    def _of(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> "Benchmark":
        tasks = {
            t["name"]: Task(**t, **{key: arrays[f"task{i}_{key}"] for key in _TASK_ARRAYS})
            for i, t in enumerate(header["tasks"])
        }
        matched = tuple(
            MatchedBlock(b["name"], b["space"], tuple(b["tasks"]), arrays[f"matched{i}_x"], arrays[f"matched{i}_y"])
            for i, b in enumerate(header["matched"])
        )
        splits = {
            name: tuple(Fold(f[0], f[1], tuple(f[2]), tuple(f[3])) for f in folds)
            for name, folds in header["splits"].items()
        }
        spaces = {s["name"]: SearchSpace.from_json(s) for s in header["spaces"]}
        initial = {name: arrays[f"initial{i}"] for i, name in enumerate(header["initial"])}
        return cls(header["name"], spaces, tasks, matched, splits, initial, header["notes"])


_TASK_ARRAYS = ("x", "y", "metric", "rows", "diverged")


def restrict(blocks: tuple[MatchedBlock, ...], names: tuple[str, ...], gaps: int = 2) -> tuple[MatchedBlock, ...]:
    """Matched data of the tasks `names` (hyperbo §5.2.4 and the authors' rule for PD1).

    Blocks of one name are one table of shared inputs, cut by which tasks have a value. Only after the columns of the
    other tasks are dropped is it known which inputs all of `names` share, so pieces that now have the same tasks are
    joined first; then those that lack at most `gaps` of the table's tasks, and keep at least two, are returned.
    """
    tables: dict[tuple[str, str], dict[tuple[str, ...], list[MatchedBlock]]] = {}
    for block in blocks:
        columns = [i for i, task in enumerate(block.tasks) if task in names]
        if columns:
            tasks = tuple(block.tasks[i] for i in columns)
            piece = MatchedBlock(block.name, block.space, tasks, block.x, block.y[:, columns])
            tables.setdefault((block.space, block.name), {}).setdefault(tasks, []).append(piece)
    kept = []
    for (space, name), pieces in tables.items():
        present = list(dict.fromkeys(task for tasks in pieces for task in tasks))
        for tasks, parts in sorted(pieces.items(), key=lambda item: (-len(item[0]), item[0])):
            missing = [task for task in present if task not in tasks]
            if len(missing) > gaps or len(tasks) < 2:
                continue
            label = f"{name} without {'; '.join(missing)}" if missing else name
            x, y = np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts])
            kept.append(MatchedBlock(label, space, tasks, x, y))
    return tuple(kept)


class TaskBatch(NamedTuple):
    """Ragged tasks padded to one length N: `x` (T, N, d), `y` (T, N), `mask` (T, N); padding is finite zeros."""

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray


def pad(arrays: list[np.ndarray], length: int | None = None) -> np.ndarray:
    """Stack arrays of different first dimension into one, padded with zeros."""
    length = length or max(len(a) for a in arrays)
    out = np.zeros((len(arrays), length, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for i, a in enumerate(arrays):
        out[i, : len(a)] = a
    return out


def stack(xs: list[np.ndarray], ys: list[np.ndarray], length: int | None = None) -> TaskBatch:
    """Pad inputs and outputs of several tasks to one length (the longest unless given)."""
    return TaskBatch(pad(xs, length), pad(ys, length), pad([np.ones(len(y), dtype=bool) for y in ys], length))
