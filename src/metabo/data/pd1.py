"""PD1: optimiser hyperparameters of 24 deep-learning tasks (hyperbo §7.1), from the published archive pd1.tar.gz.

`pd1_mini` is this project's own small collection over the same box (`metabo.collect.pd1_mini`), in the same format.

Four JSON-lines files: matched (one set of points for all tasks) and unmatched, each in two phases. Outputs are
y = -log(error rate + 1e-10); the error rate is the best over training. Repeated inputs are kept. pd1_mini 2 has one of
the files; its error rates are means over trainings.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.data import counts, pd1_repeats
from metabo.data.archives import Stream, read_members
from metabo.data.pd1_columns import FILES, INPUTS, MATCHED, METRIC, SPACE, STATUS, TASK, Trials
from metabo.data.pd1_columns import raw_inputs as raw_inputs  # for tuning online
from metabo.data.pd1_counts import report
from metabo.data.pd1_repeats import Repeats
from metabo.errors import DataError, nearest
from metabo.tasks import ties
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import DROPPING, RULES, SCALES, Divergence, Facts, Inputs
from metabo.tasks.folds import leave_group_out, leave_one_out
from metabo.tasks.task import MatchedBlock, Task

BENCHMARKS = {
    "pd1": {
        "dataset": "pd1",
        "matched": True,
        "default_split": "held_out",
        "splits": ["held_out", "others"],
        "package": None,
        "settings": ["inputs", "divergence"],
    },
    "pd1_mini": {
        "dataset": None,
        "collector": "collect.pd1_mini",
        "writer": "collect.pd1_archive",
        "archive": "pd1_mini.tar.gz",
        "versions": 2,
        "matched": True,
        "default_split": "held_out",
        "splits": ["held_out", "others"],
        "package": None,
        "settings": ["version", "inputs", "divergence", "online"],
    },
    "pd1_mini_nan": {
        "dataset": None,
        "archive_of": "pd1_mini",  # the same collection, diverged trials with a finite value kept
        "matched": True,
        "default_split": "held_out",
        "package": None,
        "settings": ["version", "inputs", "divergence"],
    },
}

MINI = ("pd1_mini", "pd1_mini_nan")
"""Benchmarks that are read from this project's collection."""
TRAINING_ONLY = "imagenet_resnet50,imagenet,resnet,resnet50,1024"
HAIR = 0.01  # share of a parameter's (warped) range by which a point may lie outside the box


def load(name: str, settings: Mapping[str, object], archive: Path | None) -> Benchmark:
    """Parse the archive. Settings: `inputs` ("unit": Table 4 to [0, 1]; "warped": λ, ln η, p, ln(1 - β), unscaled as in
    the authors' code) and `divergence` ("nan": drop a row without a finite value, the authors' code; "status": drop
    also every row whose status is not "done", since a diverged run may carry a finite best value; of pd1_mini also
    "chance": give such a row the error of guessing the most frequent class, as HyperBO's authors propose) and `online`
    (tasks that online tuning runs on: the split `others` trains on all tasks but one of these, or, without it, of all);
    of pd1_mini also `version`: in version 2 a task whose outputs tie at the best trains only (`metabo.tasks.ties`).

    Raises DataError for a damaged archive, a missing file or column, a point far outside the box (with file and row),
    or a task without any finite row.
    """
    defaults = {"inputs": "unit", "divergence": "nan", "online": []}
    mini = name in MINI
    chosen = counts.take(name, settings, defaults | ({"version": 1} if mini else {}))
    inputs: Inputs = counts.one_of(name, "inputs", chosen["inputs"], SCALES)
    divergence: Divergence = counts.one_of(name, "divergence", chosen["divergence"], RULES if mini else DROPPING)
    repeated = mini and counts.version(name, chosen["version"], 2) == 2
    if archive is None:
        raise DataError(f"benchmark '{name}' needs its archive in PD1's format; run its download or collection first")
    trials = read(archive, repeated)
    repeats = Repeats.of(trials.more) if repeated else None
    if divergence == "chance":
        trials, repeats = pd1_repeats.guessed(trials, repeats)
    unit, outside = unit_inputs(trials)
    x = unit if inputs == "unit" else warped_inputs(trials)
    kept = keep(trials, divergence)
    tasks = _tasks(trials, x, kept, repeats)
    level = ties.tied_tasks(tasks) if repeated else []
    never = frozenset({TRAINING_ONLY, *level}) & frozenset(tasks)
    splits = {"held_out": leave_group_out(tasks, never_test=never)}
    tested = [task for task in tasks if task not in never]
    if (
        one_by_one := [t for t in counts.listed(name, "online", chosen["online"]) if t in tasks]
        if "online" in settings
        else tested
    ):
        splits["others"] = leave_one_out(tasks, one_by_one)
    matched = matched_blocks(trials, x, kept)
    rules = {rule: keep(trials, rule) for rule in DROPPING}
    lines = report(trials, tasks, rules, never, published=name == "pd1")
    repeated_flags = pd1_repeats.flags(trials, divergence, repeats)
    flags = (*outside, *counts.flat_tasks(tasks), *repeated_flags, *ties.said(level))
    facts = Facts(counts=tuple(lines), flags=flags, inputs=inputs, divergence=divergence)
    return Benchmark(name, {"pd1": SPACE}, tasks, matched, splits, facts=facts)


class _Member(NamedTuple):
    """The rows of one file, as in `Trials`."""

    task: list[str]
    status: list[str | None]
    line: np.ndarray
    raw: np.ndarray
    error: np.ndarray
    more: np.ndarray


def read(archive: Path, repeated: bool = False) -> Trials:
    """Read the four files, of `repeated` trainings the one file, in one fixed order whatever the order in the archive.
    Raises DataError."""
    files, more = ((MATCHED,), pd1_repeats.COLUMNS) if repeated else (FILES, ())
    found = read_members(archive, files, partial(_parse, archive, more))
    parts = [found[name] for name in files]
    sizes = [len(part.line) for part in parts]
    return Trials(
        task=np.array([task for part in parts for task in part.task], dtype=object),
        raw=np.concatenate([part.raw for part in parts]),
        error=np.concatenate([part.error for part in parts]),
        status=np.array([status for part in parts for status in part.status], dtype=object),
        file=np.repeat(np.array(files, dtype=object), sizes),
        line=np.concatenate([part.line for part in parts]),
        phase=np.repeat([int("phase1" in name) for name in files], sizes),
        matched=np.repeat(["unmatched" not in name for name in files], sizes),
        more=np.concatenate([part.more for part in parts]),
    )


def _parse(archive: Path, more: Sequence[str], member: str, stream: Stream) -> _Member:
    tasks, values, states, lines = [], [], [], []
    numbers = (*INPUTS, METRIC, *more)
    needed = (TASK, STATUS, *numbers)
    absent = set(needed)
    names: set[str] = set()
    for number, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        where = f"{archive}: {member}, row {number}"
        try:
            row = json.loads(text)
            values.append([_number(row.get(column)) for column in numbers])
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{where}: not a JSON record of numbers ({error}); get the published archive") from error
        if absent:
            absent -= row.keys()
            names |= row.keys()
        tasks.append(row.get(TASK))
        states.append(row.get(STATUS))
        lines.append(number)
        if TASK in row and len(str(row[TASK]).split(",")) < 3:
            raise DataError(f"{where}: {TASK} '{row[TASK]}' is not 'name,dataset,...,batch size'")
    if absent:
        column = sorted(absent)[0]
        raise DataError(f"{archive}: {member} has no column '{column}' in {len(lines)} rows.{nearest(column, names)}")
    for number, task in zip(lines, tasks, strict=True):
        if task is None:
            raise DataError(f"{archive}: {member}, row {number}: {TASK} is empty; every row needs its task")
    array = np.array(values, dtype=np.float64)
    array[~np.isfinite(array)] = np.nan
    bad = (array[:, 4] < 0) | (array[:, 4] > 1 + 1e-6)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{archive}: {member}, row {lines[row]}: {METRIC} {array[row, 4]} is not an error rate in [0, 1]"
        )
    return _Member(tasks, states, np.array(lines), array[:, :4], array[:, 4], array[:, 5:])


def _number(value: float | str | None) -> float:
    return float("nan") if value is None else float(value)


def keep(trials: Trials, rule: Divergence) -> np.ndarray:
    """Return (n,) True for the rows to use: finite inputs and value; by the rule "status" also status "done"."""
    finite = np.isfinite(trials.raw).all(axis=1) & np.isfinite(trials.error)
    return finite & (trials.status == "done") if rule == "status" else finite


def unit_inputs(trials: Trials) -> tuple[np.ndarray, list[str]]:
    """Map λ, η, p, 1 - β to the unit cube, NaN where an input is absent; also say which lie just outside (C08).

    Points outside by at most `HAIR` are clipped and reported. Raises DataError for a point further out.
    """
    raw = trials.raw.copy()
    raw[:, 3] = 1 - raw[:, 3]
    unit = np.full(raw.shape, np.nan)
    flags = []
    for i, p in enumerate(SPACE.parameters):
        warp = np.log if p.kind == "log" else np.asarray
        least, most = p.bounds
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (warp(raw[:, i]) - warp(least)) / (warp(most) - warp(least))
        present = np.isfinite(raw[:, i])
        bad = present & ~((share >= -HAIR) & (share <= 1 + HAIR))
        if bad.any():
            row = int(np.argmax(bad))
            where = f"{trials.file[row]}, row {trials.line[row]}"
            raise DataError(f"{where}: {p.name} {raw[row, i]} is far outside [{least}, {most}] (hyperbo Table 4)")
        out = present & ((share < -1e-9) | (share > 1 + 1e-9))
        if out.any():
            low, high = np.nanmin(raw[:, i]), np.nanmax(raw[:, i])
            flags.append(
                f"{p.name}: {int(out.sum())} of {len(out)} points a hair outside [{least}, {most}]: {low}..{high}"
            )
        unit[present, i] = p.encode(np.clip(raw[present, i], least, most))[:, 0]
    return unit, flags


def warped_inputs(trials: Trials) -> np.ndarray:
    """Return λ, ln η, p, ln(1 - β) without any scaling, as in the authors' code."""
    decay, rate, power, momentum = trials.raw.T
    return np.stack([decay, np.log(rate), power, np.log(1 - momentum)], axis=1)


def warp_error(error: np.ndarray) -> np.ndarray:
    """Return y = -log(error rate + 1e-10), to be maximised (hyperbo §7.1)."""
    return -np.log(error + 1e-10)


WARPS = {"error_rate": warp_error, "ce_loss": lambda loss: -np.log(loss)}
"""Metrics that online tuning minimises -> the output to maximise: losses as error rates, but without the floor."""


def _tasks(trials: Trials, x: np.ndarray, kept: np.ndarray, repeats: Repeats | None) -> dict[str, Task]:
    noise = repeats.noise(trials.error) if repeats else None
    tasks = {}
    for name in dict.fromkeys(trials.task):
        mine = trials.task == name
        rows = np.flatnonzero(mine & kept)
        if not len(rows):
            files = ", ".join(dict.fromkeys(trials.file[mine]))
            raise DataError(f"task '{name}': none of its {int(mine.sum())} rows in {files} has a finite {METRIC}")
        lost = x[mine & ~kept]
        lost = lost[np.isfinite(lost).all(axis=1)]
        error = trials.error[rows]
        known = None if noise is None else noise[rows]
        tasks[name] = Task(name, "pd1", name.split(",")[1], x[rows], warp_error(error), error, rows, lost, known)
    return tasks


def matched_blocks(trials: Trials, x: np.ndarray, kept: np.ndarray) -> tuple[MatchedBlock, ...]:
    """Cut each phase's matched points by the set of tasks that have a value there (the authors' pivot table).

    All pieces of a phase share its name; `metabo.tasks.task.restrict` joins them for a given set of training tasks
    and keeps the points that all share, plus those that exactly one or two lack. A point repeated within a task and
    phase counts once, with its first value.
    """
    blocks = []
    for phase in (0, 1):
        values: dict[tuple[float, ...], dict[str, int]] = {}
        for row in np.flatnonzero(kept & trials.matched & (trials.phase == phase)):
            values.setdefault(tuple(trials.raw[row]), {}).setdefault(trials.task[row], int(row))
        pieces: dict[tuple[str, ...], list[list[int]]] = {}
        for point in sorted(values):
            tasks = tuple(sorted(values[point]))
            pieces.setdefault(tasks, []).append([values[point][task] for task in tasks])
        for tasks in sorted(pieces, key=lambda t: (-len(t), t)):
            rows = np.array(pieces[tasks])
            blocks.append(MatchedBlock(f"phase{phase}", "pd1", tasks, x[rows[:, 0]], warp_error(trials.error[rows])))
    return tuple(blocks)
