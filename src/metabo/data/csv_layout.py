"""How a CSV file is written: its encoding, the mark between columns, and the decimal mark, which are detected and
reported. A file that can be read in two ways is refused with the place and what to do; `Sheet.layout` has what was
assumed.
"""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from metabo.data.csv_rows import ABSENT, read_bytes, records, undecodable
from metabo.errors import DataError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Marks between columns that are looked for, and their names."""
SAMPLE = 200
"""Rows that decide on the mark between columns."""

_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
_POINT = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?")
_COMMA = re.compile(r"[-+]?(\d+,\d+|,\d+)([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_SEPARATOR = re.compile(r"\"?sep=(.)\"?\r?\n")
"""What Excel writes into a first row of its own to name the mark between columns."""


class Layout(NamedTuple):
    """What was assumed: the encoding, the mark between columns, the decimal mark, and what a person should check."""

    encoding: str = "UTF-8"
    delimiter: str = ","
    decimal: str = "."
    check: str = ""

    @property
    def usual(self) -> bool:
        """Tell whether it is UTF-8 with commas and decimal points."""
        return self[:3] == ("UTF-8", ",", ".")

    @property
    def said(self) -> str:
        """Describe the layout in one line."""
        mark = DELIMITERS.get(self.delimiter, f"'{self.delimiter}'")
        decimal = "decimal commas" if self.decimal == "," else "decimal points"
        check = f" ({self.check})" if self.check else ""
        return f"{self.encoding}{check}, columns separated by {mark}, {decimal}"


class Sheet(NamedTuple):
    """A table as text: where it comes from, for messages; column names; rows with their numbers; how it was written
    (None: it is not a file); where the names of its columns stand, for messages."""

    where: str
    header: list[str]
    rows: list[tuple[int, list[str]]]
    layout: Layout | None = None
    head: str = "row 1, "


def read_sheet(path: str | Path, numeric: Collection[str] | None = None, text: Collection[str] = ()) -> Sheet:
    """Return a CSV file in any usual layout; row numbers are those that a spreadsheet shows. Decimal commas in the
    `numeric` columns (None: those that hold nothing but numbers, and are not in `text`) become points.

    Raises DataError for a file that cannot be read, or that can be read in two ways.
    """
    path = Path(path)
    content, encoding, check = decoded(read_bytes(path), str(path))
    named = _SEPARATOR.match(content)
    if named:  # the row stays, empty, so that row numbers are those that the spreadsheet shows
        content = "\n" + content[named.end() :]
    delimiter = named[1] if named else delimiter_of(content, str(path))
    (_, header), *rows = records(content, path, delimiter)
    places = [i for i in _places(header, rows, numeric) if header[i] not in text]
    decimal = decimal_of(header, rows, places, str(path))
    if decimal == ",":
        rows = [(number, _with_points(cells, places)) for number, cells in rows]
    return Sheet(str(path), header, rows, Layout(encoding, delimiter, decimal, check))


def decoded(content: bytes, where: str) -> tuple[str, str, str]:
    """Return the text of a file, its encoding, and what to check if the encoding is only the likeliest.

    Raises DataError for bytes that are not text in UTF-8, UTF-16 or cp1252.
    """
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise DataError(f"{where}: row 1 begins as UTF-32 does; save the file as CSV UTF-8")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _strict(content, "utf-16", where), "UTF-16", ""
    if b"\0" in content:
        odd, even = content[1::2].count(0), content[::2].count(0)
        if len(content) % 2 or min(odd, even) or max(odd, even) < len(content) / 4:
            row = content[: content.index(0)].count(b"\n") + 1
            raise DataError(f"{where}: row {row} has a byte 0x00, which no text has; save the file as CSV UTF-8")
        codec = "utf-16-le" if odd else "utf-16-be"
        return _strict(content, codec, where), "UTF-16", "it has no mark that says so"
    try:
        return content.decode("utf-8-sig"), "UTF-8", ""
    except UnicodeDecodeError as error:
        first, row = error.start, content[: error.start].count(b"\n") + 1
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError as error:
        raise undecodable(where, content, error, "is neither UTF-8 nor cp1252") from error
    return text, "cp1252", f"it is not UTF-8; check that row {row} has the letter '{text[first]}'"


def _strict(content: bytes, codec: str, where: str) -> str:
    try:
        return content.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: begins as UTF-16 and is broken at byte {error.start}; save the file as CSV UTF-8"
        ) from error


def delimiter_of(text: str, where: str) -> str:
    """Return the mark between columns: the one that gives all rows as many cells as the header, and the most columns.

    A header of one column has commas. Raises DataError if two marks fit equally well.
    """
    fits = {}
    for mark in DELIMITERS:
        try:
            rows = list(itertools.islice(_filled(text, mark), SAMPLE))
        except csv.Error:  # `records` says so if no other mark fits
            continue
        if rows and len(rows[0]) > 1:
            fits[mark] = (all(len(row) == len(rows[0]) for row in rows), len(rows[0]))
    best = [mark for mark, fit in fits.items() if fit == max(fits.values())]
    if len(best) > 1:
        names = " or by ".join(DELIMITERS[mark] for mark in best)
        raise DataError(f"{where}: row 1, its columns may be separated by {names}; save it with one of them only")
    return best[0] if best else ","


def _filled(text: str, mark: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    return (row for row in reader if any(cell.strip() for cell in row))


def _places(header: list[str], rows: list[tuple[int, list[str]]], numeric: Collection[str] | None) -> list[int]:
    """Return the positions of columns with numbers."""
    if numeric is not None:
        return [i for i, column in enumerate(header) if column in numeric]
    return [
        i
        for i in range(len(header))
        if all(cells[i].lower() in ABSENT or _NUMBER.fullmatch(cells[i]) for _, cells in rows if i < len(cells))
    ]


def decimal_of(header: list[str], rows: list[tuple[int, list[str]]], places: list[int], where: str) -> str:
    """Return the decimal mark of the columns at `places`: "," if a number has one and none has a point.

    Raises DataError if both occur, and if every comma may be one that sets off thousands.
    """
    found: dict[str, str] = {}
    thousands = ""
    for number, cells in rows:
        for i in places:
            cell = cells[i] if i < len(cells) else ""
            mark = "." if _POINT.fullmatch(cell) else "," if _COMMA.fullmatch(cell) else ""
            place = f"row {number}, field '{header[i]}': '{cell}'"
            if mark == "," and _THOUSANDS.fullmatch(cell):
                thousands = thousands or place
            elif mark:
                found.setdefault(mark, place)
    comma = found.get(",") or thousands
    if comma and "." in found:
        raise DataError(
            f"{where}: {comma} has a decimal comma, and {found['.'].replace(', field', ' field')} a decimal point; "
            "write all numbers with points"
        )
    if thousands and "," not in found:
        raise DataError(
            f"{where}: {thousands} has a comma that may set off thousands or decimals; write it with a decimal point, "
            "or without the comma"
        )
    return "," if comma else "."


def _with_points(cells: list[str], places: list[int]) -> list[str]:
    out = list(cells)
    for i in places:
        if i < len(out) and _COMMA.fullmatch(out[i]):
            out[i] = out[i].replace(",", ".")
    return out
