"""Runs of MLflow from exported CSV files, as one table: study, parameters, outcome.

The files are those of `mlflow.search_runs(...).to_csv(...)` and `mlflow experiments csv`: columns ``params.*``,
``metrics.*``, ``tags.*``, ``status``, ``run_id`` and ``experiment_id``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.data.csv_layout import Sheet, read_sheet
from metabo.data.csv_rows import ABSENT
from metabo.data.history.account import StudyAccount, account
from metabo.data.history.rows import FAILED as WRITTEN_FAILED
from metabo.data.imports import guess
from metabo.data.imports.draft import Goal
from metabo.data.imports.imported import Imported, draft_of, either, free
from metabo.errors import ConfigError, DataError, nearest, unknown

PARAMETER, METRIC, TAG = "params.", "metrics.", "tags."
STUDIES = ("experiment_name", "experiment_id")
"""Columns that name the study of a run, unless another one is chosen: the first that is there."""
FAILED, UNFINISHED = ("FAILED", "KILLED"), ("RUNNING", "SCHEDULED")


class _Run(NamedTuple):
    where: str
    row: int
    cells: dict[str, str]


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
) -> Imported:
    """Turn runs into a history. `outcome`: the metric, which may be left out if there is one; `by`: the column that
    names the study of a run, such as tags.dataset (default: the experiment); `ignore`: parameters that were not tuned.

    Runs that are not finished, that have no parameters, or that finished without the metric are left out. Raises
    DataError for files that are not such an export, ConfigError for a metric or column that is not there.
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
    runs = _runs(sheets)
    parameters = [column for column in columns if column.startswith(PARAMETER)]
    names = [column.removeprefix(PARAMETER) for column in parameters]
    own = [free(column, names) for column in ("study", "run_id", "status")]
    target = free(metric.removeprefix(METRIC), [*names, *own])
    header, rows = [own[0], own[1], *names, own[2], target], []
    places: dict[str, list[tuple[int, list[str]]]] = {}
    dropped: dict[str, list[tuple[str, int]]] = {}
    for run in runs:
        of = run.cells.get(study, "")
        if not of:
            raise DataError(f"{run.where}: row {run.row}, field '{study}' is empty; name the study of the run")
        dropped.setdefault(of, [])
        cells = [run.cells.get(column, "") for column in parameters]
        found = _outcome(run, metric, not all(map(guess.missing, cells)))
        if isinstance(found, _Left):
            dropped[of].append((found.reason, run.row))
        else:
            rows.append([of, run.cells.get("run_id", ""), *cells, run.cells["status"], found])
            places.setdefault(run.where, []).append((run.row, rows[-1]))
    if not rows:
        raise DataError(f"{where}: no finished run has parameters and '{metric}'; check the export")
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


def _outcome(run: _Run, metric: str, has_parameters: bool) -> str | _Left:
    """Return the cell of a run's outcome, or why it is left out. Raises DataError for a status unknown to MLflow."""
    status, cell = run.cells.get("status", "").upper(), run.cells.get(metric, "")
    if status not in ("FINISHED", *FAILED, *UNFINISHED):
        raise DataError(
            f"{run.where}: row {run.row}, field 'status': '{run.cells.get('status', '')}' is none of FINISHED, "
            f"{', '.join((*FAILED, *UNFINISHED))}; correct it, or delete the row"
        )
    if status in UNFINISHED:
        return _Left("not finished")
    if not has_parameters:
        return _Left("without parameters")
    if status in FAILED:
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


def _runs(sheets: Sequence[Sheet]) -> list[_Run]:
    """Return the runs of all tables, each run once."""
    seen, runs = set(), []
    for sheet in sheets:
        for number, cells in sheet.rows:
            if len(cells) != len(sheet.header):
                raise DataError(
                    f"{sheet.where}: row {number} has {len(cells)} cells, the header has {len(sheet.header)}; check "
                    "separators and quotes"
                )
            run = _Run(sheet.where, number, dict(zip(sheet.header, cells, strict=True)))
            name = run.cells.get("run_id")
            if not name or name not in seen:
                runs.append(run)
            seen.add(name)
    return runs


def _accounts(rows: list[list[str]], dropped: dict[str, list[tuple[str, int]]]) -> list[StudyAccount]:
    out = []
    for study, why in dropped.items():
        own = [row for row in rows if row[0] == study]
        out.append(account(study, len(own), sum(row[-1] == "failed" for row in own), why, []))
    return out
