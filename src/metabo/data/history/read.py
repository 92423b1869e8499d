"""A CSV of past trials: one row per trial, columns for study, parameters and outcome. Every fault names file, row and
field.

Row numbers are those that a spreadsheet shows: the header is row 1. A trial that failed has an empty outcome, a number
that is not finite, or the word "failed".
"""

import math
from pathlib import Path
from typing import NamedTuple

from metabo.data.csv_rows import ABSENT, require_columns, table
from metabo.data.history.description import LARGEST, Configuration, Description
from metabo.errors import DataError, nearest

SHOWN = 10
"""Faults that one message lists."""
FAILED = ("failed", "fail", "inf", "-inf", "infinity", "-infinity")
"""What stands in the outcome of a trial that failed, besides `ABSENT` (in lower case)."""


class Trial(NamedTuple):
    """One row: its number in the file, the study, the configuration and the outcome as written (NaN: it failed)."""

    row: int
    study: str
    configuration: Configuration
    outcome: float


class History(NamedTuple):
    """The trials of a file, and what a person should know of how it was read."""

    trials: list[Trial]
    remarks: list[str]


class _Fault(NamedTuple):
    row: int
    text: str


def read(path: str | Path, description: Description, skip_bad_rows: bool = False) -> History:
    """Read a history. `skip_bad_rows`: leave out the rows with a fault, and say which.

    Raises DataError for a file, header or rows that are not as described; it lists up to `SHOWN` faulty rows.
    """
    path = Path(path)
    header, rows = table(path)
    columns = [description.study, description.outcome, *(field.name for field in description.fields)]
    check_header(path, header, columns, list(description.ignore))
    if not rows:
        raise DataError(f"{path}: no rows below the header; a history has one row per past trial")
    trials, faults = [], []
    for number, cells in rows:
        found = _trial(number, cells, header, description)
        (faults if isinstance(found, _Fault) else trials).append(found)
    if faults and not skip_bad_rows:
        more = f"\n  ... and {len(faults) - SHOWN} more rows" if len(faults) > SHOWN else ""
        lines = "".join(f"\n  row {fault.row}, {fault.text}" for fault in faults[:SHOWN])
        raise DataError(
            f"{path}: {len(faults)} of {len(rows)} rows cannot be used; correct them, or leave them out with "
            f"--skip-bad-rows:{lines}{more}"
        )
    if not trials:
        raise DataError(f"{path}: no usable row is left, the first: row {faults[0].row}, {faults[0].text}")
    kept, remarks = _without_copies(trials, path)
    if faults:
        remarks.insert(0, f"{path}: left out {listed([fault.row for fault in faults])}: they have faults")
    failed = [trial.row for trial in kept if math.isnan(trial.outcome)]
    if failed:
        remarks.append(f"{path}: {listed(failed)} without a finite outcome count as failed trials")
    return History(kept, remarks)


def check_header(path: Path, header: list[str], needed: list[str], ignored: list[str]) -> None:
    """Raise DataError for columns that are missing, unknown or twice there."""
    require_columns(path, header, needed, ignored, "Correct the header, or the name in space.yaml")
    strange = [column for column in header if column not in (*needed, *ignored)]
    if strange:
        raise DataError(
            f"{path}: row 1, column '{strange[0]}' is not in space.yaml.{nearest(strange[0], needed)} Describe it "
            f"under 'parameters', or list under 'ignore' what is not tuned: [{', '.join(strange)}]"
        )


def _trial(number: int, cells: list[str], header: list[str], description: Description) -> Trial | _Fault:
    """Read one row."""
    if len(cells) != len(header):
        return _Fault(number, f"it has {len(cells)} cells, the header has {len(header)}; check commas and quotes")
    row = dict(zip(header, cells, strict=True))
    if not row[description.study]:
        return _Fault(number, f"field '{description.study}' is empty; name the study of the trial")
    configuration = read_cells(row, description)
    if isinstance(configuration, str):
        return _Fault(number, configuration)
    outcome = read_outcome(row[description.outcome], description)
    if isinstance(outcome, str):
        return _Fault(number, outcome)
    return Trial(number, row[description.study], configuration, outcome)


def read_cells(row: dict[str, str], description: Description) -> Configuration | str:
    """Return the configuration of a row, or its first fault. A parameter that is not in use is not read."""
    out: Configuration = {}
    for field in description.fields:
        cell = row[field.name]
        if field.parent is not None and out[field.parent] not in field.needs:
            out[field.name] = None
            continue
        try:
            out[field.name] = field.parse(cell)
        except ValueError as error:
            if cell.lower() in ABSENT:
                return f"field '{field.name}' has no value; write {field.allowed}"
            return f"field '{field.name}': {cell!r} {error}; write {field.allowed}, or correct space.yaml"
    return out


def read_outcome(cell: str, description: Description) -> float | str:
    """Return the outcome of a cell, NaN for a failed trial, or what is wrong with it."""
    if cell.lower() in (*ABSENT, *FAILED):
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return f"field '{description.outcome}': {cell!r} is no number; write one, or 'failed' for a failed trial"
    if description.log and value <= 0:
        return (
            f"field '{description.outcome}': {cell!r} has no logarithm; write a number above 0, or remove "
            "'scale: log' of the outcome from space.yaml"
        )
    if _beyond(value, cell) or (math.isfinite(value) and abs(value) > LARGEST and not description.log):
        return (
            f"field '{description.outcome}': {cell!r} is larger than {LARGEST:g} in size; choose another unit, or "
            "write 'failed' if the trial diverged"
        )
    return value if math.isfinite(value) else math.nan


def _beyond(value: float, text: str) -> bool:
    """Tell whether a text is a number that is too large to be one, such as 1e400; "inf" says that a trial failed."""
    return math.isinf(value) and any(sign.isdigit() for sign in text)


def _without_copies(trials: list[Trial], path: Path) -> tuple[list[Trial], list[str]]:
    """Leave out rows that repeat another one with the same outcome; repeats that came out otherwise are data."""
    seen: dict[tuple, int] = {}
    kept, copies = [], []
    for trial in trials:
        outcome = "failed" if math.isnan(trial.outcome) else trial.outcome
        first = seen.setdefault((trial.study, tuple(trial.configuration.items()), outcome), trial.row)
        if first == trial.row:
            kept.append(trial)
        else:
            copies.append(trial.row)
    return kept, [f"{path}: left out {listed(copies)}: each repeats an earlier row, outcome included"] if copies else []


def listed(rows: list[int]) -> str:
    """Name rows in a sentence: "row 7", "rows 7, 9, ... (12 rows)"."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = ", ".join(map(str, rows[:SHOWN]))
    return f"rows {shown}" + (f", ... ({len(rows)} rows)" if len(rows) > SHOWN else "")


def read_told(path: str | Path, description: Description) -> list[tuple[int, Configuration, float]]:
    """Read finished trials of the study that is tuned, each with its row in the file: columns of parameters and
    outcome; NaN for a failed trial, whose outcome must say so ("failed"). Columns of study and of `ignore` are not
    read. Raises DataError."""
    path = Path(path)
    header, rows = table(path)
    columns = [description.outcome, *(field.name for field in description.fields)]
    check_header(path, header, columns, [description.study, *description.ignore])
    if not rows:
        raise DataError(f"{path}: no rows below the header; one row per finished trial is needed")
    told = []
    for number, cells in rows:
        if len(cells) != len(header):
            raise DataError(f"{path}: row {number} has {len(cells)} cells, the header has {len(header)}; check commas")
        row = dict(zip(header, cells, strict=True))
        if row[description.outcome] == "":
            raise DataError(
                f"{path}: row {number}, field '{description.outcome}' is empty; write the outcome, 'failed' if the "
                "trial failed, or remove the row until it is finished"
            )
        configuration, outcome = read_cells(row, description), read_outcome(row[description.outcome], description)
        for found in (configuration, outcome):
            if isinstance(found, str):
                raise DataError(f"{path}: row {number}, {found}")
        told.append((number, configuration, outcome))
    return told
