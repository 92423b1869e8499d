"""Tasks and matched blocks: the NumPy side of the data. Outputs are maximised everywhere; the original metric is kept
next to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from metabo.errors import DataError

_UNSAID = np.zeros(0)
"""A stand-in for an array that was left out."""


@dataclass(frozen=True)
class Task:
    """One tuning task: n evaluated points of one search space.

    `x` (n, d) inputs (unit cube unless the benchmark says otherwise), `y` (n,) outputs to maximise, `metric` (n,) the
    original metric, `rows` (n,) row numbers in the source (default: 0 to n - 1), `group` the task's data set (a
    hold-out removes all tasks of a group together), `diverged` (k, d) inputs whose evaluation had no value (default:
    none), `noise` (n,) standard deviations of the noise in `y` if the source has repetitions (NaN where unknown), else
    None. Raises DataError if the arrays do not fit together or are not finite.
    """

    name: str
    space: str
    group: str
    x: np.ndarray
    y: np.ndarray
    metric: np.ndarray
    rows: np.ndarray = field(default_factory=lambda: _UNSAID)
    diverged: np.ndarray = field(default_factory=lambda: _UNSAID)
    noise: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.rows is _UNSAID:
            object.__setattr__(self, "rows", np.arange(n))
        if self.diverged is _UNSAID:
            object.__setattr__(self, "diverged", np.zeros((0, *self.x.shape[1:])))
        if n == 0:
            raise DataError(f"task '{self.name}': no finite evaluation; drop the task or repair its source")
        if self.x.ndim != 2 or len(self.x) != n or len(self.metric) != n or len(self.rows) != n:
            raise DataError(
                f"task '{self.name}': x {self.x.shape}, y {self.y.shape}, metric {self.metric.shape} differ in length"
            )
        if self.noise is not None and (self.noise.shape != (n,) or (self.noise < 0).any()):
            raise DataError(f"task '{self.name}': noise {self.noise.shape} must be one deviation for each of {n} rows")
        if self.diverged.shape[1:] != self.x.shape[1:] or self.diverged.ndim != 2:
            raise DataError(
                f"task '{self.name}': diverged {self.diverged.shape} must be inputs as x {self.x.shape}, one in each "
                "row"
            )
        for label in ("x", "y", "metric", "diverged"):
            values = getattr(self, label)
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

    Blocks that share a name are pieces of one table (see `restrict`), and list their tasks in the same order.
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


def cut_by_tasks(name: str, space: str, tasks: Sequence[str], x: np.ndarray, y: np.ndarray) -> tuple[MatchedBlock, ...]:
    """Cut one table of shared inputs x (m, d), with outputs y (m, len(tasks)) that are NaN where a task has none, into
    blocks of inputs that the same tasks evaluated. Blocks with the most tasks come first; inputs without any task are
    left out."""
    kinds, kind = np.unique(np.isfinite(y), axis=0, return_inverse=True)
    cut = []
    for i in sorted(range(len(kinds)), key=lambda i: (-kinds[i].sum(), i)):
        rows = np.flatnonzero(kind.reshape(-1) == i)
        present = tuple(task for task, there in zip(tasks, kinds[i], strict=True) if there)
        if present:
            cut.append(MatchedBlock(name, space, present, x[rows], y[np.ix_(rows, kinds[i])]))
    return tuple(cut)


def restrict(blocks: tuple[MatchedBlock, ...], names: tuple[str, ...], gaps: int = 2) -> tuple[MatchedBlock, ...]:
    """Return the matched data of the tasks `names` (hyperbo §5.2.4 and the authors' rule for PD1).

    Blocks with the same name are pieces of one table of shared inputs, cut by which tasks have a value. Once the
    columns of other tasks are dropped, pieces may have the same tasks, so these are joined first. Then the pieces that
    lack at most `gaps` of the table's tasks and keep at least two are returned.
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
