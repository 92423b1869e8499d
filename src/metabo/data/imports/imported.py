"""What an import makes of past trials kept elsewhere: a history as CSV, a drafted ``space.yaml`` and an account of the
trials of each study."""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from metabo.data.csv_layout import Sheet
from metabo.data.csv_rows import require_columns
from metabo.data.history.account import StudyAccount
from metabo.data.history.space_yaml import field_of
from metabo.data.imports import guess
from metabo.data.imports.draft import Draft, Drafted, Goal, with_conditions
from metabo.errors import DataError, unknown
from metabo.records.csv_cells import guarded, without_formula


class Imported(NamedTuple):
    """The columns and rows of a history, the draft of its ``space.yaml``, what became of the trials of each study, and
    what a person should know. The first cell of a row is the name of its study, as it is; the others are as a history
    has them (`Field.written`)."""

    header: list[str]
    rows: list[list[str]]
    draft: Draft
    accounts: list[StudyAccount]
    remarks: list[str]

    @property
    def csv(self) -> str:
        """Return the history as CSV, in which no text is taken for a formula."""
        stream = io.StringIO()
        rows = [[guarded(study), *map(without_formula, cells)] for study, *cells in self.rows]
        csv.writer(stream, lineterminator="\n").writerows([map(guarded, self.header), *rows])
        return stream.getvalue()


def draft_of(
    sheets: Sequence[Sheet], study: str, outcome: str, goal: Goal, ignore: Mapping[str, str], name: str
) -> Draft:
    """Draft a ``space.yaml`` from tables of past trials, by the rules of `metabo.data.imports.guess`. `ignore`: columns
    that are not tuned, and why.

    Raises DataError for tables that do not have the columns, or a row without a study, ConfigError for a column to
    ignore that is not there.
    """
    where = sheets[0].where
    names = list(dict.fromkeys(column for sheet in sheets for column in sheet.header))
    for sheet in sheets:
        require_columns(sheet.where, sheet.header, [study, outcome], (), "Name the column that is meant", sheet.head)
    for column in ignore:
        if column not in names:
            raise unknown("column to ignore", column, names)
    if "" in names and "" not in (study, outcome):
        ignore = {"": "it has no name", **ignore}
    read = [(sheet, number, _cells(sheet, number, cells)) for sheet in sheets for number, cells in sheet.rows]
    if not read:
        raise DataError(f"{where}: no rows below the header; a history has one row per past trial")
    for sheet, number, row in read:
        if not row[study]:
            raise DataError(f"{sheet.where}: row {number}, field '{study}' is empty; name the study of the trial")
    columns = {
        column: [row.get(column, "") for _, _, row in read]
        for column in names
        if column not in (study, outcome, *ignore)
    }
    studies = [row[study] for _, _, row in read]
    places = [f"{sheet.where}: row {number}" for sheet, number, _ in read]
    found, none, others = guess.parameters(columns, studies, places)

    def conditional(parameters: list[Drafted]) -> tuple[Drafted, ...]:
        fields = [field_of(one.name, one.entry) for one in parameters]
        return with_conditions(parameters, [
            (row[study], {one.name: row[one.name] for one in fields if not one.blank(row.get(one.name, ""))})
            for _, _, row in read
        ])  # fmt: skip

    tried = conditional([others.get(one.name, one) for one in found])
    unused = {one.name for one in tried if "when" in one.entry}  # another parameter tells when "none" stands there
    drafted = conditional([others[one.name] if one.name in unused & {*others} else one for one in found])
    return Draft(name, where, study, outcome, goal, drafted, {**ignore, **none}, {})


def _cells(sheet: Sheet, number: int, cells: list[str]) -> dict[str, str]:
    if len(cells) != len(sheet.header):
        raise DataError(
            f"{sheet.where}: row {number} has {len(cells)} cells, the header has {len(sheet.header)}; check separators "
            "and quotes"
        )
    return dict(zip(sheet.header, cells, strict=True))


def free(name: str, taken: Collection[str]) -> str:
    """Return a name for a column that no other one has."""
    while name in taken:
        name += "_"
    return name


def either(names: Iterable[str]) -> str:
    """List names for a message, or say that there are none."""
    return ", ".join(names) or "none"
