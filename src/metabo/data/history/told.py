"""Finished trials of the study that is tuned, from a CSV file as `metabo suggest` prints it. Every fault names file,
row and field."""

import math
from pathlib import Path
from typing import NamedTuple

from metabo.data.csv_layout import Sheet, read_sheet
from metabo.data.history.account import listed
from metabo.data.history.description import Configuration, Description
from metabo.data.history.read import SHOWN, check_header
from metabo.data.history.rows import Unread, read_cells, read_measured, read_outcome
from metabo.errors import DataError, printable
from metabo.records.csv_cells import unguarded

AGAIN = " and give `metabo pretrain` the folder again"
"""What follows a remedy in ``space.yaml``: a study that is tuned has the space that it was made with."""


class ToldRow(NamedTuple):
    """A finished trial of the study that is tuned: its row in the file, the configuration, the outcome (NaN: it failed)
    and the values of its constraints (none if it failed)."""

    row: int
    configuration: Configuration
    outcome: float
    measured: dict[str, float]


def read_told(given: str | Path | Sheet, description: Description, study: str | None = None) -> list[ToldRow]:
    """Read finished trials of the study that is tuned: columns of parameters, constraints and outcome, which must say
    so of a failed trial ("failed"). Columns of `ignore` are not read; a column of the study may name `study` alone
    (None: it is not read). Raises DataError."""
    sheet = given if isinstance(given, Sheet) else read_sheet(given, description.numeric)
    path, header, rows = sheet.where, sheet.header, sheet.rows
    needed = [description.outcome, *(one.name for one in (*description.fields, *description.constraints))]
    check_header(sheet, needed, description, [description.study])
    if not rows:
        raise DataError(f"{path}: no rows below the header; one row per finished trial is needed")
    if study is not None:
        _require_study(sheet, description.study, study)
    told = []
    for number, cells in rows:
        if len(cells) != len(header):
            raise DataError(
                f"{path}: row {number} has {len(cells)} cells, the header has {len(header)}; check separators"
            )
        row = dict(zip(header, cells, strict=True))
        if row[description.outcome] == "":
            raise DataError(
                f"{path}: row {number}, field '{description.outcome}' is empty; write the outcome, 'failed' if the "
                "trial failed, or remove the row until it is finished"
            )
        told.append(ToldRow(number, *_told(row, description, f"{path}: row {number}")))
    return told


def _require_study(sheet: Sheet, column: str, study: str) -> None:
    """Raise DataError if rows name another study than the one that is told."""
    if column not in sheet.header:
        return
    place = sheet.header.index(column)
    named: dict[str, list[int]] = {}
    for number, cells in sheet.rows:
        if place < len(cells) and cells[place]:
            named.setdefault(unguarded(cells[place]), []).append(number)
    others = [f"'{printable(one, 80)}' in {listed(rows, 3)}" for one, rows in named.items() if one != study]
    if others:
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        raise DataError(
            f"{sheet.where}: column '{column}' names {', '.join(others[:SHOWN])}{more}, and study '{study}' is told; "
            f"keep the rows of one study, and name it with --study, or delete the column if all rows are of '{study}'"
        )


def _told(row: dict[str, str], space: Description, where: str) -> tuple[Configuration, float, dict[str, float]]:
    configuration, outcome = read_cells(row, space), read_outcome(row[space.outcome], space)
    failed = isinstance(outcome, float) and math.isnan(outcome)
    measured = {} if failed else read_measured(row, space)
    for found in (configuration, outcome, measured):
        if isinstance(found, Unread):
            again = AGAIN if "space.yaml" in found.text else ""
            raise DataError(f"{where}, {found.text}{again}")
    return configuration, outcome, measured
