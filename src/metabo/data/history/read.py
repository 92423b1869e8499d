"""A history of past trials, from a CSV file or DataFrames: one row per trial, columns for study, parameters and
outcome. Every fault names file, row and field.

Row numbers are those that a spreadsheet shows: the header is row 1. A trial that failed has an empty outcome, a number
that is not finite, or the word "failed".
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.data.csv_layout import Sheet, read_sheet
from metabo.data.csv_rows import require_columns
from metabo.data.history.account import StudyAccount, account, listed
from metabo.data.history.coverage import covered
from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import widening
from metabo.data.history.rows import Refused, Trial, empty, read_row
from metabo.errors import ConfigError, DataError, nearest, printable
from metabo.records.csv_cells import unguarded

SHOWN = 10
"""Faults that one message lists."""
MANY = 5
"""Rows in which a parameter is empty for a reason, perhaps."""
UNNAMED = "(without a study)"
"""What the account of rows without the name of a study is called."""
NAMELESS = "a column without a name"


class History(NamedTuple):
    """The trials of a history, what became of the rows of each study, what a person should know of how it was read,
    and how its files were written ("": it is no file)."""

    trials: list[Trial]
    remarks: list[str]
    accounts: list[StudyAccount]
    layout: str = ""


def read(path: str | Path, description: Description, skip_bad_rows: bool = False) -> History:
    """Read a history from a CSV file. `skip_bad_rows`: leave out the rows with a fault, and say which.

    Raises DataError for a file, header or rows that are not as described; it lists up to `SHOWN` faulty rows.
    """
    return read_sheets([read_sheet(path, description.numeric)], description, skip_bad_rows)


def read_sheets(sheets: Sequence[Sheet], description: Description, skip_bad_rows: bool = False) -> History:
    """Read a history that stands in tables; all rows of a study are in the same one. Trials outside the space are left
    out, and so are, with `skip_bad_rows`, rows with a fault.

    Raises DataError for a table or rows that are not as described, ConfigError for a study of ``space.yaml`` that is
    not there.
    """
    parts = [_read(sheet, description, skip_bad_rows) for sheet in sheets]
    accounts = [one for part in parts for one in part.accounts]
    _require_studies(description, [one["study"] for one in accounts], sheets[0].where)
    trials = [trial for part in parts for trial in part.trials]
    if not trials:
        where, first = next((sheet.where, part.refused[0]) for sheet, part in zip(sheets, parts, strict=True))
        raise DataError(f"{where}: no usable row is left, the first: row {first.row}, {first.why.text}")
    remarks = [remark for part in parts for remark in part.remarks]
    said = dict.fromkeys(sheet.layout.said for sheet in sheets if sheet.layout)
    return History(trials, remarks, accounts, "; ".join(said))


class _Part(NamedTuple):
    """What is read from one table, and the rows that are no trials."""

    trials: list[Trial]
    remarks: list[str]
    accounts: list[StudyAccount]
    refused: list[Refused]


def _read(sheet: Sheet, space: Description, skip_bad_rows: bool) -> _Part:
    where, header, rows = sheet.where, sheet.header, sheet.rows
    needed = [field.name for field in space.fields if field.default is None]
    rest = check_header(sheet, [space.study, space.outcome, *needed], space)
    if not rows:
        raise DataError(f"{where}: no rows below the header; a history has one row per past trial")
    lacking = _lacking(sheet, space)
    found = [read_row(number, cells, header, space, lacking) for number, cells in rows]
    refused = [one for one in found if isinstance(one, Refused)]
    left = [one for one in refused if one.why.kind in ("outside", "dropped")]
    faults = [one for one in refused if one.why.kind in ("fault", "study")]
    if faults and not skip_bad_rows:
        raise DataError(
            f"{where}: {len(faults)} of {len(rows)} rows cannot be used; correct them, or leave them out with "
            "--skip-bad-rows (in Python: skip_bad_rows=True):",
            *_often_empty(faults, space),
            *_shown(faults),
        )
    kept, copies = _without_copies([one for one in found if isinstance(one, Trial)])
    remarks = []
    for reason, kind in dict.fromkeys((one.why.reason, one.why.kind) for one in [*faults, *left]):
        numbers = listed([one.row for one in refused if one.why.reason == reason])
        remedy = f"; {widening(reason)} to use them" if kind == "outside" else ""
        remarks.append(f"{where}: left out {numbers}: {reason}{remedy}")
    if copies:
        remarks.append(
            f"{where}: left out {listed([one.row for one in copies])}: each repeats an earlier row, outcome included"
        )
    remarks += unused(sheet, space, {one.row: one.configuration for one in found if isinstance(one, Trial)})
    if failed := [trial.row for trial in kept if math.isnan(trial.outcome)]:
        remarks.append(f"{where}: {unsuccessful(failed)}")
    for one in space.constraints:
        if broke := [trial.row for trial in kept if one.name in trial.broken]:
            breaks = "breaks" if len(broke) == 1 else "break"
            remarks.append(f"{where}: {listed(broke)} {breaks} '{one.name}' ({one.said}): infeasible, like failed ones")
    for field in space.fields:
        if lacking and all(field.name in names for names in lacking.values()):
            remarks.append(
                f"{where}: no study has a value of '{field.name}', so nothing is learned about it; if a column has it "
                "under another name, rename that column, or the parameter in space.yaml"
            )
    if rest:
        remarks.append(f"{where}: ignored (ignore: rest): {', '.join(one or NAMELESS for one in rest)}")
    dropped = [(one.study, one.why.reason, one.row) for one in refused]
    dropped += [(one.study, "repeats an earlier row", one.row) for one in copies]
    return _Part(kept, remarks, _accounts(found, kept, dropped, space, lacking), refused)


def unsuccessful(rows: list[int]) -> str:
    """Say of rows without a finite outcome what they count as."""
    said = "counts as a failed trial" if len(rows) == 1 else "count as failed trials"
    return f"{listed(rows)} without a finite outcome {said}"


def unused(sheet: Sheet, space: Description, configurations: Mapping[int, Configuration]) -> list[str]:
    """Return a remark for each parameter that has values in rows where it is not in use. `configurations`: by row."""
    cells, remarks = dict(sheet.rows), []
    for field in space.fields:
        if field.parent is None or field.name not in sheet.header:
            continue
        place = sheet.header.index(field.name)
        idle = [row for row, one in configurations.items() if one[field.name] is None]
        if filled := [row for row in idle if not field.blank(cells[row][place])]:
            has = "has" if len(filled) == 1 else "have"
            remarks.append(
                f"{sheet.where}: {listed(filled)} {has} a value of '{field.name}', which is not in use there ('when' "
                "in space.yaml): it is not read"
            )
    return remarks


def check_header(sheet: Sheet, needed: list[str], space: Description, more: Sequence[str] = ()) -> list[str]:
    """Return the columns that `ignore: rest` leaves out. `more`: columns that are not read, of a table that is told: a
    study that is tuned reads ``study.json``, so its remedy is no edit of ``space.yaml``.

    Raises DataError for columns that are missing, unknown, without a name or twice there.
    """
    ignored, tuned = [*space.ignore, *more], [field.name for field in space.fields]
    known = [*tuned, *(one.name for one in space.constraints)]
    place = f"{sheet.where}: {sheet.head}column"
    remedy = "Correct the header" if more else "Correct the header, or the name in space.yaml"
    require_columns(sheet.where, sheet.header, needed, ignored, remedy, sheet.head)
    if "" in sheet.header and "" not in ignored and not space.rest:
        places = [i for i, column in enumerate(sheet.header, start=1) if not column]
        which = f"{listed(places, unit='column')} {'has' if len(places) == 1 else 'have'} no name"
        also = "" if more else ", or leave it out with ignore: [''] in space.yaml"
        raise DataError(
            f"{sheet.where}: {sheet.head}{which}: the index of a DataFrame (write the file with index=False), or an "
            f"empty column of a spreadsheet (delete it){also}"
        )
    strange = list(dict.fromkeys(one for one in sheet.header if one not in (*needed, *known, *ignored)))
    for name in (name for name in known if name not in sheet.header):  # it need not be there, which must hide no slip
        if close := nearest(name, strange):
            why = f"tuned '{name}', which has a default," if name in tuned else f"recorded constraint '{name}',"
            raise DataError(
                f"{place} '{name}' is missing.{close} Correct the header; if no study there {why} list the other "
                "column under 'ignore' in space.yaml"
            )
    if strange and not space.rest:
        close = nearest(strange[0], [name for name in (*needed, *known) if name not in sheet.header])
        shown = printable(", ".join(strange), 200)
        why = f"{place} '{printable(strange[0], 80)}' is not in space.yaml.{close}"
        if more:
            which = "the column" if len(strange) == 1 else f"the columns {shown}"
            raise DataError(f"{why} Delete {which}: what is told has columns of parameters, constraints and outcome")
        raise DataError(
            f"{why} Describe it under 'parameters', or list under 'ignore' what is not tuned: [{shown}] (ignore: rest "
            "for all)"
        )
    return strange


def _lacking(sheet: Sheet, space: Description) -> dict[str, list[str]]:
    """Return the parameters and constraints that have no value in any row of a study, by study."""
    whole = [dict(zip(sheet.header, cells, strict=True)) for _, cells in sheet.rows if len(cells) == len(sheet.header)]
    groups: dict[str, list[dict[str, str]]] = {}
    for row in whole:
        groups.setdefault(unguarded(row[space.study]), []).append(row)
    return {
        study: [
            one.name
            for one in (*space.fields, *space.constraints)
            if one.name not in sheet.header or all(one.blank(row[one.name]) for row in rows)
        ]
        for study, rows in groups.items()
    }


def _often_empty(faults: list[Refused], space: Description) -> list[str]:
    """Return a line for each parameter that is empty in many rows: they may have no use for it."""
    found = Counter(one.why.reason for one in faults)
    return [
        f"  '{field.name}' is empty in {found[empty(field)]} rows; if it is used only where another parameter has "
        "certain values, say so with `when` in space.yaml"
        for field in space.fields
        if field.parent is None and found[empty(field)] >= MANY
    ]


def _shown(faults: list[Refused]) -> list[str]:
    """Return faults, a line each; one that all rows of a study have is told once."""
    lines: dict[tuple[str, str, int], list[int]] = {}
    for one in faults:
        lines.setdefault((one.why.text, one.study, 0 if one.why.kind == "study" else one.row), []).append(one.row)
    told = [f"  {listed(rows, 3)}, {text}" for (text, *_), rows in list(lines.items())[:SHOWN]]
    more = sum(map(len, list(lines.values())[SHOWN:]))
    return [*told, *([f"  ... and {more} more rows"] if more else [])]


def _accounts(
    found: list[Trial | Refused],
    kept: list[Trial],
    dropped: list[tuple[str, str, int]],
    space: Description,
    lacking: dict[str, list[str]],
) -> list[StudyAccount]:
    """Account for the rows of each study, in the order of the table."""
    out = []
    for study in dict.fromkeys(one.study for one in found):
        trials = [trial for trial in kept if trial.study == study]
        failed = sum(math.isnan(trial.outcome) for trial in trials)
        why = [(reason, row) for of, reason, row in dropped if of == study]
        notes = covered(study, trials, space, lacking.get(study, [])) if study else []
        out.append(account(study or UNNAMED, len(trials), failed, why, notes))
    return out


def _require_studies(space: Description, studies: list[str], where: str) -> None:
    for study in space.studies:
        if study not in studies:
            raise ConfigError(
                f"{space.where} key 'studies.{study}' names no study of {where}.{nearest(study, studies)} Studies "
                f"there: {', '.join(studies)}"
            )


def _without_copies(trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Part the trials from those that repeat another one with the same outcome; repeats that came out otherwise are
    data."""
    seen: dict[tuple, int] = {}
    kept, copies = [], []
    for trial in trials:
        came_out = "failed" if math.isnan(trial.outcome) else trial.outcome, tuple(trial.measured.items())
        first = seen.setdefault((trial.study, tuple(trial.configuration.items()), *came_out), trial.row)
        (kept if first == trial.row else copies).append(trial)
    return kept, copies
