"""Read the files of a study, and check that they are as they were written: by a seal like that of sidecars, and every
value.

``study.json`` is an object. A file of trials is a journal (`metabo.tuner.journal`); in format 2 it was an object with a
list, and in format 1 the bare list. Files of format 1 had no seal: they are read as they are, and sealed when they are
next written.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypedDict, cast

from metabo.data.history.account import StudyAccount
from metabo.data.history.description import Configuration, Description
from metabo.errors import DataError
from metabo.records.checksums import SEAL, sealed
from metabo.records.fields import Fields
from metabo.records.files import Json
from metabo.tuner.trials import STATES, StudyTrial

FORMAT = 3
RECORD_AGAIN = "restore a copy, or make it again with metabo pretrain (trials stay)"
LISTS = (1, 2)
"""Formats of trials before the journal (`metabo.tuner.journal`), each a single JSON document."""
TRIALS_AGAIN = (
    "restore a copy, or move the file away; if the change is yours, leave only the list [...] of trials in it, and it "
    "is sealed again"
)
PRIOR = re.compile(r"prior-[0-9a-f]{12}\.npz")
CHECKSUM = re.compile(r"[0-9a-f]{64}")


class PastSummary(TypedDict):
    """What a prior was learned from: a history, its space, the numbers of its usable studies and trials, the layout of
    its file, and what became of the rows of each study."""

    history: str
    space: str
    studies: int
    trials: int
    layout: str
    accounts: list[StudyAccount]


class StudyRecord(TypedDict):
    """What ``study.json`` says about a prior: the space as ``space.yaml`` described it, the scale of its outcomes (None
    if there is no past study), the specification of the method, the histories, and remarks on them and on the
    training."""

    space: Mapping[str, object]
    scale: dict[str, float] | None
    spec: Mapping[str, object]
    past: list[PastSummary]
    remarks: list[str]


class StoredRecord(StudyRecord):
    """The record as it is stored: with its format, and the name and checksum of the file with the parameters."""

    format: int
    prior: str
    checksum: str


def record_text(record: StudyRecord, prior: str, checksum: str) -> str:
    """Return the text of ``study.json``."""
    content = sealed({**record, "format": FORMAT, "prior": prior, "checksum": checksum})
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def parse_record(path: Path, content: object) -> StoredRecord:
    """Return the record in ``study.json``. Raises DataError, which names the field that is missing or wrong."""
    fields = intact(path, content, RECORD_AGAIN)
    fields.object("space")
    fields.object("spec").text("method")
    past = [_past(one, fields.number("format")) for one in fields.objects("past")]
    _texts(fields, "remarks")
    for name, pattern in (("prior", PRIOR), ("checksum", CHECKSUM)):
        if not pattern.fullmatch(fields.text(name)):
            raise DataError(f"{path}: field '{name}' is {fields.text(name)!r}, not as it is written; {RECORD_AGAIN}")
    if "scale" not in fields.values or fields.maybe("scale"):
        scale = fields.object("scale")
        numbers = [scale.number(name) for name in ("centre", "spread", "worst")]
        if not (all(map(math.isfinite, numbers)) and numbers[1] > 0):
            raise DataError(f"{path}: field 'scale' is {dict(scale.values)}, not finite or no spread; {RECORD_AGAIN}")
    kept = {name: value for name, value in fields.values.items() if name != SEAL}
    return cast(StoredRecord, {**kept, "past": past})


def _past(past: Fields, written: float) -> dict[str, Json]:
    """Return the record of one history, some of whose fields format 1 lacked. Raises DataError for a missing or wrong
    field."""
    if written == 1:
        past = replace(past, values={"layout": "", "accounts": [], **past.values})
    _ = past.text("history"), past.text("space"), past.number("studies"), past.number("trials"), past.text("layout")
    for account in past.objects("accounts"):
        _ = account.text("study"), account.number("read"), account.number("used"), account.number("failed")
        for dropped in account.objects("dropped"):
            _ = dropped.text("reason"), dropped.numbers("rows")
        _texts(account, "notes")
    return dict(past.values)


def parse_list(path: Path, content: object, space: Description) -> list[StudyTrial]:
    """Return the trials in a file of format 1 or 2. Raises DataError, which names the trial and its field."""
    if isinstance(content, list):
        content = {"format": 1, "trials": content}
    fields = intact(path, content, TRIALS_AGAIN, LISTS)
    return parse_trials(path, list(enumerate(listed(fields, "trials"))), space, TRIALS_AGAIN)


def parse_trials(path: Path, found: Iterable[tuple[int, object]], space: Description, remedy: str) -> list[StudyTrial]:
    """Return trials, each of which is given with its number. Raises DataError, which names the trial and its field."""
    return [_trial(number, one, f"{path}: trial {number}", space, remedy) for number, one in found]


def intact(path: Path, content: object, remedy: str, allowed: Sequence[int] = (1, 2, FORMAT)) -> Fields:
    """Return the fields of a file with an intact seal, or of format 1. Raises DataError for any other file."""
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a file of a study; {remedy}")
    fields = Fields(content, str(path), remedy)
    try:
        if SEAL in content and content[SEAL] != sealed(content)[SEAL]:
            raise ValueError
    except ValueError:  # also for NaN, which has no seal
        raise DataError(f"{path}: damaged or edited since it was written (its '{SEAL}' differs); {remedy}") from None
    written = fields.number("format")
    if written > FORMAT and SEAL in content:
        raise DataError(f"{path}: format {written:g} is that of a newer version of metabo; use that one")
    if written not in allowed:
        raise DataError(f"{path}: field 'format' is {written!r}, must be {allowed[-1]}; {remedy}")
    if written > 1:
        fields.text(SEAL)
    return fields


def _trial(number: int, found: object, where: str, space: Description, remedy: str) -> StudyTrial:
    if not isinstance(found, dict):
        raise DataError(f"{where} is no object; {remedy}")
    fields = Fields(cast(Mapping[str, Json], found), where, remedy)
    state, outcome = fields.text("state"), found.get("outcome")
    _ = fields.number("number")
    parameters = cast(Configuration, fields.object("parameters").values)  # or else `read` refuses it
    if strange := sorted(set(found) - {"number", "parameters", "state", "outcome", "claim", "constraints"}):
        raise DataError(f"{where}: field '{strange[0]}' is unknown; {remedy}")
    if "outcome" not in found:
        raise DataError(f"{where}: field 'outcome' is missing; {remedy}")
    if found["number"] != number:
        raise DataError(f"{where}: field 'number' is {found['number']}, not its place; {remedy}")
    if state not in STATES:
        raise DataError(f"{where}: field 'state' is {state!r}, must be one of {', '.join(STATES)}; {remedy}")
    if state == "done" and not math.isfinite(fields.number("outcome")):
        raise DataError(f"{where}: field 'outcome' is {outcome}, must be a finite number; {remedy}")
    if state != "done" and outcome is not None:
        raise DataError(f"{where}: field 'outcome' is {outcome!r}, must be null: the trial is {state}; {remedy}")
    if "claim" in found:
        _claim(fields.object("claim"), state)
    if "constraints" in found or (state == "done" and space.constraints):
        _constraints(fields.object("constraints"), state, space)
    try:
        parameters = space.read(parameters)
    except DataError as error:
        raise DataError(f"{where}: {error}; {remedy}") from None
    return cast(StudyTrial, {**found, "parameters": parameters})


def _claim(claim: Fields, state: str) -> None:
    if state != "running":
        raise DataError(f"{claim.file}: field 'claim' is of a running trial, this one is {state}; {claim.remedy}")
    claim.text("by")
    try:
        known = datetime.fromisoformat(claim.text("at")).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise DataError(
            f"{claim.file}: field 'claim.at' is {claim.text('at')!r}, must be a time such as "
            f"2026-01-31T12:00:00+00:00; {claim.remedy}"
        )


def _constraints(values: Fields, state: str, space: Description) -> None:
    """Raise DataError for values that no trial can have. A value of a constraint that the space no longer has is
    kept."""
    if state != "done":
        raise DataError(f"{values.file}: field 'constraints' is of a done trial, this one is {state}; {values.remedy}")
    for name in dict.fromkeys([*values.values, *(one.name for one in space.constraints)]):
        if not math.isfinite(value := values.number(name)):
            raise DataError(f"{values.file}: field 'constraints.{name}' is {value}, must be finite; {values.remedy}")


def _texts(fields: Fields, name: str) -> None:
    """Raise DataError if a field is not a list of texts."""
    if not all(isinstance(one, str) for one in listed(fields, name)):
        place = f"{fields.at}.{name}" if fields.at else name
        raise DataError(f"{fields.file}: field '{place}' is no list of texts; {fields.remedy}")


def listed(fields: Fields, name: str) -> list[Json]:
    """Return a list. Raises DataError if the field is missing or not a list."""
    if name not in fields.values:
        raise DataError(f"{fields.file}: field '{name}' is missing; {fields.remedy}")
    value = fields.values[name]
    if not isinstance(value, list):
        raise DataError(f"{fields.file}: field '{name}' is no list; {fields.remedy}")
    return value
