"""TaskSet: twelve recurrent networks on one text data set, each trained with the same 1,000 configurations of Adam.

Metz et al.: Using a thousand optimization tasks to learn hyperparameter search strategies (2020), its text tasks with
eight hyperparameters of Adam. One JSON file per task: a list of {"hp": inputs, "valid": {"loss": curve}, ...} with 51
losses a curve. The output is y = -log(validation loss), to be maximised.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.data import counts
from metabo.data.archives import Stream, read_members
from metabo.data.bundle import members_of, naming, require_same
from metabo.errors import DataError
from metabo.tasks import ties
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import DROPPING, Divergence, Facts
from metabo.tasks.folds import Fold, leave_one_out
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task, cut_by_tasks

BENCHMARKS = {
    "taskset": {
        "dataset": "taskset",
        "matched": True,
        "default_split": "held_out",
        "splits": ["held_out", "others", "first"],
        "settings": ["loss", "divergence"],
        "memory_mb": 3000,
        "one_data_set": True,
    }
}

INPUTS = ("learning_rate", "beta1", "beta2", "epsilon", "l1", "l2", "linear_decay", "exponential_decay")
# Ranges of TaskSet's sampling, all log-uniform; the betas by their distance from one.
SPACE = SearchSpace(
    "taskset",
    (
        Parameter("learning_rate", "log", 1e-8, 10.0),
        Parameter("one_minus_beta1", "log", 1e-4, 1.0),
        Parameter("one_minus_beta2", "log", 1e-6, 1.0),
        Parameter("epsilon", "log", 1e-10, 1e3),
        Parameter("l1", "log", 1e-8, 10.0),
        Parameter("l2", "log", 1e-8, 10.0),
        Parameter("linear_decay", "log", 1e-7, 1e-4),
        Parameter("exponential_decay", "log", 1e-6, 1e-3),
    ),
)
TASKS, CONFIGURATIONS, STEPS = 12, 1000, 51
LOSSES = ("final", "best")
PREFIX = "FixedTextRNNClassification_"
DATA_SET = "imdb"
BLOWN_UP = 10.0
"""A curve blows up where its loss exceeds this many times the task's median loss before training."""


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Build the benchmark `taskset`. Settings: `loss` ("final": of the last step; "best": the least of the curve) and
    `divergence` ("nan": drop rows without a finite loss; "status": drop also curves that ever lack a finite loss, or
    exceed `BLOWN_UP` times the median loss before training).

    All tasks are of one data set, so they are one group. `held_out`: one fold for each kind of cell (LSTM, GRU, ...),
    tested together; `others`: one fold for each task; `first`: the first of the cells. Names are TaskSet's without
    their common beginning. Tasks whose outputs tie at the best (`metabo.tasks.ties.tied`) train only.

    Raises DataError for a damaged archive, a missing file or field, a loss that is not positive, or configurations
    that differ between files.
    """
    chosen = counts.take(name, settings, {"loss": "final", "divergence": "status"})
    which = counts.one_of(name, "loss", chosen["loss"], LOSSES)
    divergence: Divergence = counts.one_of(name, "divergence", chosen["divergence"], DROPPING)
    if archive is None:
        raise DataError(f"benchmark '{name}' needs its archive; run the target download_{name} first")
    tables = read_members(archive, members_of(name), partial(_parse, archive))
    require_same(archive, "hp", {file: table.inputs for file, table in tables.items()})
    first = next(iter(tables))
    with naming(archive, first):
        x = unit_inputs(tables[first].inputs)
    curves = {file.removesuffix(".json").removeprefix(PREFIX): table.curves for file, table in sorted(tables.items())}
    lost = {rule: {t: diverged(curve, which, rule) for t, curve in curves.items()} for rule in DROPPING}
    tasks = {t: _task(t, x, reduced(curve, which), ~lost[divergence][t]) for t, curve in curves.items()}
    cells = {t: cell(t) for t in tasks}
    level = ties.tied_tasks(tasks)
    tested = [t for t in tasks if t not in level]
    if not tested:
        raise DataError(f"{archive}: every task ties at the best; no method could be compared; get the published files")
    held_out = _by_cell(cells, tested)
    splits = {"held_out": held_out, "others": leave_one_out(tasks, tested), "first": held_out[:1]}
    lines = [
        counts.count("tasks", len(tasks), TASKS),
        counts.count("data sets", len({task.group for task in tasks.values()}), 1),
        counts.count("configurations, the same for all", len(x), CONFIGURATIONS),
        counts.count("inputs", x.shape[1], 8),
        counts.count("tasks that are tested", len(tested), TASKS),
        counts.count("losses a curve", tables[first].curves.shape[1], STEPS),
        counts.count("repeated inputs", counts.repeated_inputs({first: next(iter(tasks.values()))})),
    ]
    for t in tasks:
        finite, shown = (int(lost[rule][t].sum()) for rule in ("nan", "status"))
        lines.append(counts.count(f"{t}: curves without a finite loss", finite))
        lines.append(counts.count(f"{t}: curves that diverge", shown))
    blown_up = _kept_though_blown_up(curves, which) if divergence == "nan" else ()
    flags = (*ties.said(level), *counts.flat_tasks(tasks), *blown_up)
    facts = Facts(counts=tuple(lines), flags=flags, divergence=divergence)
    return Benchmark(name, {SPACE.name: SPACE}, tasks, _matched(tasks, x), splits, facts=facts)


class _Curves(NamedTuple):
    """What one file holds: inputs (configurations, 8), validation curves (configurations, steps) with NaN and inf."""

    inputs: np.ndarray
    curves: np.ndarray


def _parse(archive: Path, member: str, stream: Stream) -> _Curves:
    where = f"{archive}: {member}"
    fix = "delete the archive and download it again"
    try:
        rows = json.loads(stream.read())
        inputs = [[float(row["hp"][key]) for key in INPUTS] for row in rows]
        curves = [[float(loss) for loss in row["valid"]["loss"]] for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where}: not a list of {{hp, valid: {{loss}}}} ({error!r}); {fix}") from error
    lengths = {len(curve) for curve in curves}
    if len(lengths) != 1 or lengths == {0}:
        raise DataError(f"{where}: curves of {sorted(lengths) or 'no'} losses; all must have as many; {fix}")
    values, losses = np.array(inputs), np.array(curves)
    if (bad := ~np.isfinite(values)).any():
        row, column = np.argwhere(bad)[0]
        raise DataError(f"{where}: hp.{INPUTS[column]} of row {row} is {values[row, column]}; {fix}")
    if (bad := losses <= 0).any():
        row, step = np.argwhere(bad)[0]
        raise DataError(f"{where}: loss {step} of row {row} is {losses[row, step]}; a cross entropy is positive; {fix}")
    return _Curves(values, losses)


def unit_inputs(inputs: np.ndarray) -> np.ndarray:
    """Map raw inputs (n, 8), in the order of `INPUTS`, to the unit cube. Raises DataError for one outside its range."""
    columns = dict(zip((p.name for p in SPACE.parameters), inputs.T, strict=True))
    columns |= {f"one_minus_{beta}": 1 - inputs[:, INPUTS.index(beta)] for beta in ("beta1", "beta2")}
    return SPACE.encode(columns)


def reduced(curves: np.ndarray, which: str) -> np.ndarray:
    """Return the loss (n,) of each curve (n, steps): "final" or "best"; NaN or infinite where there is none."""
    if which == "final":
        return curves[:, -1]
    return np.where(np.isnan(curves), np.inf, curves).min(axis=1)


def diverged(curves: np.ndarray, which: str, rule: Divergence) -> np.ndarray:
    """Tell (n,) which curves (n, steps) have no loss to be used, by a rule of `load`."""
    lost, limit = ~np.isfinite(reduced(curves, which)), _limit(curves)
    if rule == "nan":
        return lost
    return lost | ~np.isfinite(curves).all(axis=1) | (np.where(np.isnan(curves), np.inf, curves) > limit).any(axis=1)


def _limit(curves: np.ndarray) -> float:
    """Return the loss above which a curve has blown up; infinite if no curve has a loss before training."""
    first = curves[np.isfinite(curves[:, 0]), 0]
    return BLOWN_UP * float(np.median(first)) if len(first) else np.inf


def _kept_though_blown_up(curves: Mapping[str, np.ndarray], which: str) -> list[str]:
    """Name the tasks in which rule "nan" keeps losses that are finite, but beyond all others."""
    counted = {}
    for task, own in curves.items():
        loss = reduced(own, which)
        counted[task] = int((np.isfinite(loss) & (loss > _limit(own))).sum())
    listed = ", ".join(f"{task} {count}" for task, count in counted.items() if count)
    return [f"losses above {BLOWN_UP:g} times the median before training, kept by rule nan: {listed}"] if listed else []


def cell(task: str) -> str:
    """Return the kind of cell that a task's name has. Raises DataError for a name without one."""
    found = re.search(r"_([A-Z]+)\d", task)
    if not found:
        raise DataError(f"task '{task}' of TaskSet: its name has no cell such as LSTM128")
    return found[1]


def _task(name: str, x: np.ndarray, loss: np.ndarray, kept: np.ndarray) -> Task:
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise DataError(f"task '{name}' of TaskSet: none of its {len(kept)} curves has a loss that can be used")
    return Task(name, SPACE.name, DATA_SET, x[rows], -np.log(loss[rows]), loss[rows], rows, x[~kept])


def _by_cell(cells: Mapping[str, str], tested: Sequence[str]) -> tuple[Fold, ...]:
    folds = []
    for kind in dict.fromkeys(cells[t] for t in tested):
        train = tuple(t for t in cells if cells[t] != kind)
        folds.append(Fold(f"without {kind}", SPACE.name, train, tuple(t for t in tested if cells[t] == kind)))
    return tuple(folds)


def _matched(tasks: Mapping[str, Task], x: np.ndarray) -> tuple[MatchedBlock, ...]:
    """Cut the shared configurations by the set of tasks that have a value there, as `metabo.tasks.task.restrict`
    takes them."""
    y = np.full((len(x), len(tasks)), np.nan)
    for column, task in zip(y.T, tasks.values(), strict=True):
        column[task.rows] = task.y
    return cut_by_tasks(SPACE.name, SPACE.name, list(tasks), x, y)
