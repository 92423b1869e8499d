"""CSV files, UTF-8 with or without a byte-order mark. Every fault names file, row and column, and what to do.

Row numbers are those that a spreadsheet shows: the header is row 1.
"""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metabo.errors import DataError, nearest, printable
from metabo.tasks.spaces import SearchSpace

ABSENT = ("", "nan", "na", "n/a", "null", "none")
"""How tables write that a cell has no value (in lower case)."""
WORDS = ("null", "none")
"""Those of `ABSENT` that may be the name of a choice."""


class Row(NamedTuple):
    """One row: where it is, for messages ("forest.csv, row 8"), and its cells by column; NaN: an empty number."""

    place: str
    texts: dict[str, str]
    numbers: dict[str, float]


def read(path: str | Path, texts: Sequence[str], numbers: Sequence[str], empty: Sequence[str] = ()) -> list[Row]:
    """Read columns with text and columns with numbers, the latter finite; only those in `empty` may lack a number.
    Other columns are not read. Raises DataError, also for a row that is the same as an earlier one in all columns.
    """
    path = Path(path)
    header, filled = table(path)
    require_columns(path, header, [*texts, *numbers])
    if not filled:
        raise DataError(f"{path}: no rows below the header; check that it is the right file")
    rows, seen = [], dict[tuple[str, ...], int]()
    for number, cells in filled:
        place = f"{path}, row {number}"
        if (first := seen.setdefault(tuple(cells), number)) != number:
            raise DataError(
                f"{place}: the same as row {first}; delete one, or tell repeated trainings apart in a column (seed)"
            )
        if len(cells) != len(header):
            raise DataError(f"{place}: {len(cells)} cells, the header has {len(header)}; check commas and quotes")
        row = dict(zip(header, cells, strict=True))
        for column in texts:
            if not row[column]:
                raise DataError(f"{place}: column '{column}' is empty; fill it in, or delete the row")
        found = {column: _number(row[column], f"{place}: column '{column}'", column in empty) for column in numbers}
        rows.append(Row(place, {column: row[column] for column in texts}, found))
    return rows


def encoded(space: SearchSpace, rows: Sequence[Row]) -> np.ndarray:
    """Return the inputs of n rows in the unit cube (n, d). Raises DataError, which names the row, or a parameter
    without a column."""
    columns = [*rows[0].texts, *rows[0].numbers] if rows else []
    if lost := [p.name for p in space.parameters if rows and p.name not in columns]:
        raise DataError(
            f"space '{space.name}': parameter '{lost[0]}' is none of the columns that were read, {', '.join(columns)}."
            f"{nearest(lost[0], columns)} Call the parameter as its column, and name that column to `csv_rows.read`"
        )

    def encode(chosen: Sequence[Row]) -> np.ndarray:
        cells = [row.texts | row.numbers for row in chosen]
        return space.encode({p.name: np.array([cell[p.name] for cell in cells]) for p in space.parameters})

    try:
        return encode(rows)
    except DataError:
        for row in rows:
            try:
                encode([row])
            except DataError as fault:
                raise DataError(f"{row.place}: {fault}; correct the row or delete it") from None
        raise


def _number(cell: str, where: str, may_lack: bool) -> float:
    if cell.lower() in ABSENT:
        if may_lack:
            return math.nan
        raise DataError(f"{where} has no value; write a number, or delete the row")
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: {cell!r} is no finite number; write one, or delete the row")
    return value


def read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises DataError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot read it ({error.strerror}); check the path") from error


def undecodable(where: str | Path, content: bytes, error: UnicodeDecodeError, fault: str) -> DataError:
    """Make the error that names the row and the byte at which decoding stopped; `fault`: what the row is not."""
    row = content[: error.start].count(b"\n") + 1
    return DataError(f"{where}: row {row} {fault} (byte 0x{content[error.start]:02x}); save the file as CSV UTF-8")


def table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return header and (row number, cells) of a CSV file, blank rows left out. Raises DataError."""
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise undecodable(path, content, error, "is not UTF-8") from error
    filled = records(text, path)
    return filled[0][1], filled[1:]


def records(text: str, path: str | Path, delimiter: str = ",") -> list[tuple[int, list[str]]]:
    """Return (row number, cells) of a CSV text, header first, blank rows left out. Raises DataError."""
    try:
        lines = list(enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), start=1))
    except csv.Error as error:
        raise DataError(
            f"{path}: not a CSV table ({error}); save it with columns separated by commas, and closed quotes"
        ) from error
    filled = [(number, [cell.strip() for cell in cells]) for number, cells in lines if any(c.strip() for c in cells)]
    if not filled:
        raise DataError(f"{path}: the file is empty; its first row must name the columns")
    return filled


def require_columns(
    path: str | Path,
    header: list[str],
    needed: list[str],
    ignored: Sequence[str] = (),
    remedy: str = "Correct the header",
    head: str = "row 1, ",
) -> None:
    """Raise DataError for columns that are missing or occur twice; several may have no name. `ignored`: not suggested
    for a missing one; `head`: where the header stands."""
    twice = [column for column in dict.fromkeys(header) if column and header.count(column) > 1]
    if twice:
        raise DataError(
            f"{path}: {head}column '{printable(twice[0], 80)}' is there {header.count(twice[0])} times; rename one"
        )
    strange = [column for column in header if column not in (*needed, *ignored)]
    for column in needed:
        if column not in header:
            hint = ""
            if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
                hint = " Its columns are separated by semicolons or tabs: save it with commas."
            raise DataError(
                f"{path}: {head}column '{printable(column, 80)}' is missing.{hint or nearest(column, strange)} "
                f"Columns there: {printable(', '.join(header), 200)}. {remedy}"
            )
