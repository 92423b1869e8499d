"""Runs of MLflow from exported CSV files, as one table: study, parameters, outcome.

The files are those of `mlflow.search_runs(...).to_csv(...)` and `mlflow experiments csv`: columns ``params.*``,
``metrics.*``, ``tags.*``, ``status``, ``run_id`` and ``experiment_id``.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from metabo.data.csv_layout import Sheet, read_sheet
from metabo.data.csv_rows import ABSENT
from metabo.data.history.account import StudyAccount, account, several
from metabo.data.history.rows import FAILED as WRITTEN_FAILED
from metabo.data.imports import guess
from metabo.data.imports.draft import Goal
from metabo.data.imports.imported import Imported, draft_of, either, free
from metabo.errors import ConfigError, DataError, nearest, unknown

PARAMETER, METRIC, TAG = "params.", "metrics.", "tags."
STUDIES = ("experiment_name", "experiment_id")
"""Columns that name the study of a run, unless another one is chosen: the first that is there."""
FAILED, KILLED, UNFINISHED = "FAILED", "KILLED", ("RUNNING", "SCHEDULED")


Killed = Literal["drop", "failed"]
"""What a killed run counts as: a person or a machine ended it, which says nothing of its parameters, or it failed."""


class _Run(NamedTuple):
    where: str
    row: int
    cells: dict[str, str]

    @property
    def status(self) -> str:
        return self.cells.get("status", "").upper()


class _Left(NamedTuple):
    """Why a run is left out."""

    reason: str


def imported(
    paths: Sequence[str | Path],
    goal: Goal,
    name: str,
    outcome: str | None = None,
    by: str | None = None,
    ignore: Sequence[str] = (),
    killed: Killed = "drop",
) -> Imported:
    """Turn runs into a history. `outcome`: the metric, which may be left out if there is one; `by`: the column that
    names the study of a run, such as tags.dataset (default: the experiment); `ignore`: parameters that were not tuned;
    `killed`: whether runs that were killed are left out or count as failed trials.

    Runs that are not finished, that have no parameters, or that finished without the metric are left out. A run that
    is in the files more than once counts once, as the version that ended. Raises DataError for files that are not such
    an export and for two versions of a run that differ, ConfigError for a metric or column that is not there.
    """
    left = [f"{PARAMETER}{one.removeprefix(PARAMETER)}" for one in ignore]
    sheets = [read_sheet(path, text=left) for path in paths]
    remarks = [f"{sheet.where}: {sheet.layout.said}" for sheet in sheets if sheet.layout]
    columns = list(dict.fromkeys(column for sheet in sheets for column in sheet.header))
    where = ", ".join(sheet.where for sheet in sheets)
    _require_export(sheets)
    metric = _metric(columns, outcome)
    study = by or next((column for column in STUDIES if column in columns), "")
    if study not in columns:
        tags = [column for column in columns if column.startswith(TAG)]
        raise ConfigError(
            f"{where}: no column '{study or STUDIES[1]}' names the study of a run.{nearest(study, columns)} Choose one "
            f"with --by: {either([*(one for one in STUDIES if one in columns), *tags])}"
        )
    parameters = [column for column in columns if column.startswith(PARAMETER)]
    runs, repeats = _runs(sheets, [study, *(one for one in parameters if one not in left)], metric)
    if repeats:
        remarks.append(f"{where}: {several(repeats, 'row')} of runs that other rows have too; each run counts once")
    names = [column.removeprefix(PARAMETER) for column in parameters]
    own = [free(column, names) for column in ("study", "run_id", "status")]
    target = free(metric.removeprefix(METRIC), [*names, *own])
    header, rows = [own[0], own[1], *names, own[2], target], []
    places: dict[str, list[tuple[int, list[str]]]] = {}
    dropped: dict[str, list[tuple[str, int]]] = {}
    unused: list[_Run] = []
    for run in runs:
        of = run.cells.get(study, "")
        if not of:
            raise DataError(f"{run.where}: row {run.row}, field '{study}' is empty; name the study of the run")
        dropped.setdefault(of, [])
        cells = [run.cells.get(column, "") for column in parameters]
        found = _outcome(run, metric, not all(map(guess.missing, cells)), killed)
        if isinstance(found, _Left):
            dropped[of].append((found.reason + (f" in {run.where}" if len(sheets) > 1 else ""), run.row))
        else:
            if run.status in (FAILED, KILLED) and run.cells.get(metric, ""):
                unused.append(run)
            rows.append([of, run.cells.get("run_id", ""), *cells, run.cells["status"], found])
            places.setdefault(run.where, []).append((run.row, rows[-1]))
    if not rows:
        raise DataError(f"{where}: no finished run has parameters and '{metric}'; check the export")
    if unused:
        one = f"{unused[0].where}: row {unused[0].row}"
        remarks.append(
            f"{where}: {several(len(unused), 'run')} ended as {FAILED} or {KILLED} with a value of '{metric}' (first "
            f"{one}); the value is not used, the trial counts as failed"
        )
    reasons = {own[1]: "MLflow's name of the run", own[2]: "what MLflow says of the run"}
    reasons |= dict.fromkeys((one.removeprefix(PARAMETER) for one in ignore), "as asked for with --ignore")
    tables = [Sheet(place, header, numbered) for place, numbered in places.items()]
    draft = draft_of(tables, own[0], target, goal, reasons, name)
    if len(dropped) == 1:
        remarks.append(
            f"{where}: all runs are of one study, '{next(iter(dropped))}' (column '{study}'); a prior needs several: "
            f"choose another column with --by, e.g. {either(c for c in columns if c.startswith(TAG))}"
        )
    return Imported(header, rows, draft, _accounts(rows, dropped), remarks)


def _outcome(run: _Run, metric: str, has_parameters: bool, killed: Killed) -> str | _Left:
    """Return the cell of a run's outcome, or why it is left out. Raises DataError for a status unknown to MLflow."""
    cell = run.cells.get(metric, "")
    if run.status not in ("FINISHED", FAILED, KILLED, *UNFINISHED):
        raise DataError(
            f"{run.where}: row {run.row}, field 'status': '{run.cells.get('status', '')}' is none of FINISHED, "
            f"{', '.join((FAILED, KILLED, *UNFINISHED))}; correct it, or delete the row"
        )
    if run.status in UNFINISHED:
        return _Left("not finished")
    if not has_parameters:
        return _Left("without parameters")
    if run.status == KILLED and killed == "drop":
        return _Left("killed")
    if run.status in (FAILED, KILLED):
        return "failed"
    if cell == "":
        return _Left(f"finished without {metric}")
    return "failed" if cell.lower() in (*ABSENT, *WRITTEN_FAILED) else cell


def _metric(columns: Sequence[str], outcome: str | None) -> str:
    """Return the column of the outcome. Raises ConfigError for one that is not there, or not named among several."""
    metrics = [column for column in columns if column.startswith(METRIC)]
    names = [column.removeprefix(METRIC) for column in metrics]
    if outcome is None and len(metrics) == 1:
        return metrics[0]
    if outcome is None:
        raise ConfigError(f"name the metric that was tuned with --outcome; there are {either(names)}")
    if (name := outcome.removeprefix(METRIC)) not in names:
        raise unknown("metric", name, names)
    return f"{METRIC}{name}"


def _require_export(sheets: Sequence[Sheet]) -> None:
    """Raise DataError for a table that is not such an export, or has no rows."""
    for sheet in sheets:
        lacks = [kind for kind in (PARAMETER, METRIC) if not any(column.startswith(kind) for column in sheet.header)]
        if lacks or "status" not in sheet.header:
            what = f"a column that begins with '{lacks[0]}'" if lacks else "the column 'status'"
            raise DataError(
                f"{sheet.where}: row 1 lacks {what}; export the runs with mlflow.search_runs(...).to_csv(...), or read "
                "another table with metabo import csv"
            )
        if not sheet.rows:
            raise DataError(f"{sheet.where}: no rows below the header; an export has one row per run")


def _runs(sheets: Sequence[Sheet], used: Sequence[str], metric: str) -> tuple[list[_Run], int]:
    """Return the runs of all tables, each once, in the order of their first rows, and the number of rows that repeat a
    run.

    If a run has several rows, a finished one replaces an unfinished one. Raises DataError if two rows of a finished
    run differ in the columns `used`, or in its outcome.
    """
    runs: dict[str, _Run] = {}
    repeats = 0
    for sheet in sheets:
        for number, cells in sheet.rows:
            if len(cells) != len(sheet.header):
                raise DataError(
                    f"{sheet.where}: row {number} has {len(cells)} cells, the header has {len(sheet.header)}; check "
                    "separators and quotes"
                )
            run = _Run(sheet.where, number, dict(zip(sheet.header, cells, strict=True)))
            name = run.cells.get("run_id") or f"{sheet.where}, row {number}"
            other = runs.setdefault(name, run)
            if other is not run:
                repeats += 1
                runs[name] = _version(name, other, run, used, metric)
    return list(runs.values()), repeats


def _version(name: str, first: _Run, second: _Run, used: Sequence[str], metric: str) -> _Run:
    """Return which of two rows of a run counts."""
    if first.status in UNFINISHED or second.status in UNFINISHED:
        return second if first.status in UNFINISHED else first
    outcome = [metric] if first.status == "FINISHED" else []  # that of a failed run is not used
    for column in ["status", *used, *outcome]:
        values = [run.status if column == "status" else run.cells.get(column, "") for run in (first, second)]
        if values[0] != values[1] and _number(values[0]) != _number(values[1]):
            raise DataError(
                f"{second.where}: row {second.row}, field '{column}': run {name} has '{values[1]}' here and "
                f"'{values[0]}' in {first.where}, row {first.row}; delete the row that is out of date"
            )
    return first


def _number(cell: str) -> float | str:
    """Return the number that a cell has, or the cell: an export may write 0.1 as 0.10."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return "nan" if math.isnan(number) else number


def _accounts(rows: list[list[str]], dropped: dict[str, list[tuple[str, int]]]) -> list[StudyAccount]:
    out = []
    for study, why in dropped.items():
        own = [row for row in rows if row[0] == study]
        out.append(account(study, len(own), sum(row[-1] == "failed" for row in own), why, []))
    return out
