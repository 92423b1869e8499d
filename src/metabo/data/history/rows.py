"""One row of a history: its trial, or why it is none. A message names the row's field and what to do."""

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from metabo.data.csv_rows import ABSENT, WORDS
from metabo.data.history.constraints import broken, finite
from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import Field, OutsideSpace, widening
from metabo.data.history.numbers import read_number
from metabo.data.history.space_yaml import LARGEST, NOTHING_APART, StudyFacts
from metabo.errors import nearest, quoted
from metabo.records.csv_cells import unguarded

FAILED = ("failed", "fail", "inf", "-inf", "infinity", "-infinity")
"""What stands in the outcome of a trial that failed, besides `ABSENT` (in lower case)."""
DIGITS = 15
"""Digits of a number that was multiplied by a factor: 3 times 0.1 is 0.3."""


class Trial(NamedTuple):
    """One row: its number in the file, the study, the configuration, the outcome in today's direction and unit (NaN:
    it failed), the values of its constraints in today's unit, and the names of those that it breaks."""

    row: int
    study: str
    configuration: Configuration
    outcome: float
    measured: Mapping[str, float] = MappingProxyType({})
    broken: tuple[str, ...] = ()

    @property
    def counted(self) -> float:
        """Return the outcome that a model may see; NaN if the trial failed or is infeasible."""
        return math.nan if self.broken else self.outcome


class Unread(NamedTuple):
    """Why a cell or a row is not read, in full and in short. `kind`: something is wrong with it ("fault"), or with all
    rows of its study ("study"), or it is a trial of another space ("outside"), or ``space.yaml`` leaves its study out
    ("dropped")."""

    text: str
    reason: str
    kind: Literal["fault", "study", "outside", "dropped"] = "fault"


class Refused(NamedTuple):
    """A row that is no trial of today's space."""

    row: int
    study: str
    why: Unread


def read_row(
    number: int, cells: list[str], header: list[str], space: Description, lacking: Mapping[str, Collection[str]]
) -> Trial | Refused:
    """Read one row. `lacking`: the parameters and constraints that have no value in any row of a study, by study."""
    if len(cells) != len(header):
        text = f"it has {len(cells)} cells, the header has {len(header)}; check separators and quotes"
        return Refused(number, "", Unread(text, "another number of cells"))
    row = dict(zip(header, cells, strict=True))
    study = unguarded(row[space.study])
    if not study:
        return Refused(number, "", Unread(f"field '{space.study}' is empty; name the study of the trial", "no study"))
    facts, without = space.studies.get(study, NOTHING_APART), lacking.get(study, ())
    if left := [one.name for one in space.constraints if one.name in without and one.unrecorded == "drop"]:
        reason = f"{left[0]} not recorded ('constraints.{left[0]}.unrecorded' is drop)"
        return Refused(number, study, Unread(reason, reason, "dropped"))
    configuration = read_cells(row, space, facts, without)
    if isinstance(configuration, Unread):
        return Refused(number, study, configuration)
    outcome = read_outcome(row[space.outcome], space, facts)
    if isinstance(outcome, Unread):
        return Refused(number, study, outcome)
    measured = {} if math.isnan(outcome) else read_measured(row, space, facts, without)
    if isinstance(measured, Unread):
        return Refused(number, study, measured)
    return Trial(number, study, configuration, outcome, measured, tuple(broken(space.constraints, measured)))


def read_cells(
    row: dict[str, str], space: Description, facts: StudyFacts = NOTHING_APART, untuned: Collection[str] = ()
) -> Configuration | Unread:
    """Return the configuration of a row, or why there is none. A parameter that is not in use is not read; one that is
    `untuned` in the study of the row has its default."""
    out: Configuration = {}
    for field in space.fields:
        if field.parent is not None and out[field.parent] not in field.needs:
            out[field.name] = None
        elif field.name in untuned and field.default is not None:
            out[field.name] = field.default
        elif field.name in untuned:
            return Unread(
                f"field '{field.name}' has no value in all of study '{row.get(space.study)}'; write the value that it "
                f"had there under 'parameters.{field.name}.default' in space.yaml",
                f"{field.name} not tuned, and no default in space.yaml",
                "study",
            )
        else:
            cell, factor = row[field.name], facts.factors.get(field.name)
            today = multiplied(cell, factor)
            try:
                out[field.name] = field.parse(today)
            except ValueError as error:
                return _unread(field, cell, error, "" if today == cell else f", times {factor:g} {today},")
    return out


def empty(field: Field) -> str:
    """Return the reason, in short, of a row that has no value of a parameter."""
    return f"{field.name} empty"


def _unread(field: Field, cell: str, error: ValueError, today: str = "") -> Unread:
    """Say why a cell has no value. `today`: its number in today's unit, if that is another one."""
    name = f"field '{field.name}'"
    if field.blank(cell):
        named = field.choices and cell.lower() in WORDS
        also = f", or add '{cell}' to its choices in space.yaml if it is one" if named else ""
        return Unread(f"{name} has no value; write {field.allowed}{also}", empty(field))
    given = f"{quoted(cell)}{today}"
    if not isinstance(error, OutsideSpace):
        return Unread(f"{name}: {given} {error}; write {field.allowed}, or correct space.yaml", f"bad {field.name}")
    short = f"{field.name} is not {field.allowed}.{nearest(cell, map(str, field.choices))}" if field.choices else ""
    text = f"{name}: {given} {error}; write {field.allowed}, or {widening(str(error))}"
    return Unread(text, short.rstrip(".") or f"{field.name} {str(error).removeprefix('is ')}", "outside")


def multiplied(cell: str, factor: float | None) -> str:
    """Return a cell in today's unit; what is no number stays, to be told as such."""
    if factor is None:
        return cell
    try:
        return f"{read_number(cell) * factor:.{DIGITS}g}"
    except ValueError:
        return cell


def read_outcome(cell: str, space: Description, facts: StudyFacts = NOTHING_APART) -> float | Unread:
    """Return the outcome of a cell in today's direction and unit, NaN for a failed trial, or what is wrong with it."""
    if cell.lower() in (*ABSENT, *FAILED):
        return math.nan
    name = f"field '{space.outcome}'"
    try:
        value = read_number(multiplied(cell, facts.factors.get(space.outcome)))
    except ValueError:
        text = f"{name}: {quoted(cell)} is no number; write one, or 'failed' for a failed trial"
        return Unread(text, f"bad {space.outcome}")
    value = -value if facts.flipped else value
    if space.log and value <= 0:
        fault = f"{name}: {quoted(cell)} has no logarithm"
        if facts.flipped:
            text = f"{fault} with its sign flipped, as the goal of its study demands; convert the outcomes of the study"
        else:
            text = f"{fault}; write a number above 0"
        text += ", or remove 'scale: log' of the outcome from space.yaml"
        return Unread(text, f"{space.outcome} without a logarithm")
    if _beyond(value, cell) or (math.isfinite(value) and abs(value) > LARGEST and not space.log):
        text = (
            f"{name}: {quoted(cell)} is larger than {LARGEST:g} in size; choose another unit, or write 'failed' if the "
        )
        return Unread(f"{text}trial diverged", f"{space.outcome} beyond {LARGEST:g}")
    return value if math.isfinite(value) else math.nan


def read_measured(
    row: dict[str, str], space: Description, facts: StudyFacts = NOTHING_APART, without: Collection[str] = ()
) -> dict[str, float] | Unread:
    """Return the values of a row's constraints in today's unit, or what is wrong with them. `without`: the constraints
    that the study of the row did not record."""
    out: dict[str, float] = {}
    for one in space.constraints:
        if one.name in without and one.unrecorded is None:
            return Unread(
                f"field '{one.name}' has no value in all of study '{row.get(space.study)}'; write the values, or say "
                f"under 'constraints.{one.name}.unrecorded' in space.yaml what its trials count as: met (they met it) "
                "or drop (they are left out)",
                f"{one.name} not recorded, and no 'unrecorded' in space.yaml",
                "study",
            )
        if one.name in without:
            continue
        cell = row[one.name]
        out[one.name] = finite(multiplied(cell, facts.factors.get(one.name)))
        if math.isnan(out[one.name]):
            what = "has no value" if one.blank(cell) else f"is {quoted(cell)}, no finite number"
            text = f"field '{one.name}' {what}; write a number, or 'failed' into '{space.outcome}' if the trial failed"
            return Unread(text, f"{one.name} empty" if one.blank(cell) else f"bad {one.name}")
    return out


def _beyond(value: float, text: str) -> bool:
    """Tell whether a text is a number that is too large to be one, such as 1e400; "inf" says that a trial failed."""
    return math.isinf(value) and any(sign.isdigit() for sign in text)
