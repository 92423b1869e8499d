"""LCBench: 35 tabular data sets, the same 2,000 configurations of a network trained on each for 52 epochs.

Zimmer, Lindauer, Hutter: Auto-PyTorch Tabular (TPAMI 2021). One file per data set: `X` (configurations, inputs) and `Y`
(configurations, epochs), the validation cross entropy after each epoch. The output is y = -log(cross entropy after the
last epoch), to be maximised.
"""

import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from metabo.data import counts
from metabo.data.archives import Stream, arrays_file, read_members
from metabo.data.bundle import members_of, naming, require_same
from metabo.errors import DataError
from metabo.tasks import ties
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import dealt_out, leave_one_out
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task

BENCHMARKS = {
    "lcbench": {
        "dataset": "lcbench",
        "matched": True,
        "default_split": "held_out",
        "splits": ["held_out", "others", "one_out", "first"],
        "settings": [],
        "memory_mb": 4000,
    }
}

# The columns of X. Published: batch size and units log-uniform integers, learning rate log-uniform, the others uniform.
SPACE = SearchSpace(
    "lcbench",
    (
        Parameter("batch_size", "log", 16, 512),
        Parameter("learning_rate", "log", 1e-4, 1e-1),
        Parameter("momentum", "linear", 0.1, 0.99),
        Parameter("weight_decay", "linear", 1e-5, 1e-1),
        Parameter("num_layers", "linear", 1, 4),
        Parameter("max_units", "log", 64, 1024),
        Parameter("max_dropout", "linear", 0.0, 1.0),
    ),
)
DATA_SETS, CONFIGURATIONS, EPOCHS = 35, 2000, 52
FOLDS = 5
LARGEST = 1000.0
"""No loss is larger: the published maximum is 34.5. A larger one (1e34 after an overflow) would set a task's range
alone."""


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Build the benchmark `lcbench`; it has no settings.

    `held_out`: five folds, in each of which every fifth data set by name is tested and all others train; `others`: the
    same five, since no two tasks share a data set, so that a sweep trains 5 priors a seed in place of 34; `one_out`:
    one fold for each data set; `first`: the first of the five. Data sets whose outputs tie at the best
    (`metabo.tasks.ties.tied`) train only.

    Raises DataError for a damaged archive, a missing file or array, values that are not finite or not positive, or
    configurations that differ between files.
    """
    counts.take(name, settings, {})
    if archive is None:
        raise DataError(f"benchmark '{name}' needs its archive; run the target download_{name} first")
    tables = read_members(archive, members_of(name), partial(_parse, archive))
    require_same(archive, "X", {file: table.x for file, table in tables.items()})
    first = next(iter(tables))
    with naming(archive, first):
        x = SPACE.encode({p.name: column for p, column in zip(SPACE.parameters, tables[first].x.T, strict=True)})
    losses = {PurePosixPath(file).stem: table.losses[:, -1] for file, table in sorted(tables.items())}
    rows, none = np.arange(len(x)), np.zeros((0, SPACE.dim))
    tasks = {t: Task(t, SPACE.name, t, x, -np.log(loss), loss, rows, none) for t, loss in losses.items()}
    level = ties.tied_tasks(tasks)
    tested = [t for t in tasks if t not in level]
    held_out = dealt_out(tasks, tested, FOLDS)
    splits = {
        "held_out": held_out,
        "others": held_out,
        "one_out": leave_one_out(tasks, tested),
        "first": held_out[:1],
    }
    matched = MatchedBlock(SPACE.name, SPACE.name, tuple(tasks), x, np.stack([t.y for t in tasks.values()], axis=1))
    lines = (
        counts.count("data sets", len(tasks), DATA_SETS),
        counts.count("configurations, the same for all", len(x), CONFIGURATIONS),
        counts.count("inputs", x.shape[1], 7),
        counts.count("epochs", tables[first].losses.shape[1], EPOCHS),
        counts.count("data sets that are tested", len(tested)),
        counts.count("repeated inputs", counts.repeated_inputs({first: next(iter(tasks.values()))})),
    )
    facts = Facts(counts=lines, flags=(*ties.said(level), *counts.flat_tasks(tasks)))
    return Benchmark(name, {SPACE.name: SPACE}, tasks, (matched,), splits, facts=facts)


class _Losses(NamedTuple):
    """What one file holds: x (configurations, inputs), losses (configurations, epochs)."""

    x: np.ndarray
    losses: np.ndarray


def _parse(archive: Path, member: str, stream: Stream) -> _Losses:
    where = f"{archive}: {member}"
    try:
        with np.load(arrays_file(stream.read()), allow_pickle=False) as arrays:
            x, losses = arrays["X"], arrays["Y"]
    except (KeyError, ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, DataError) as error:
        raise DataError(
            f"{where}: not the arrays X and Y ({error}); delete the archive and download it again"
        ) from error
    if x.ndim != 2 or x.shape[1] != len(SPACE.parameters):
        raise DataError(f"{where}: X has shape {x.shape}; it must be (configurations, {len(SPACE.parameters)})")
    if losses.ndim != 2 or len(losses) != len(x):
        raise DataError(f"{where}: Y has shape {losses.shape}; it must be ({len(x)}, epochs)")
    for label, values in (("X", x), ("Y", losses)):
        if not np.issubdtype(values.dtype, np.floating) and not np.issubdtype(values.dtype, np.integer):
            raise DataError(f"{where}: {label} holds {values.dtype}, not numbers; get the published file")
    for label, bad in (("X", ~np.isfinite(x)), ("Y", ~((losses > 0) & (losses <= LARGEST)))):
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value = (x if label == "X" else losses)[row, column]
            raise DataError(
                f"{where}: {label}[{row}, {column}] is {value}; inputs are finite, and losses above 0 and up to "
                f"{LARGEST:g}; get the published file"
            )
    return _Losses(np.asarray(x, np.float64), np.asarray(losses, np.float64))
