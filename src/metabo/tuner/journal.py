"""The file of a study's trials: a journal, to which each change adds a row.

The first line says the format. Each line after it is one change, all or none of it: the trials that are new, or that
stand from now on in the place of those with their numbers. A row carries the checksum of itself and the row before, so
that it seals all rows up to it; adding a row looks at the last one alone, however many there are.

A process that dies while it writes a row leaves an unfinished last line. It had not acknowledged that row, so the row
does not count, and the next change writes the file anew without it.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from metabo.data.history.description import Configuration, Description
from metabo.errors import DataError
from metabo.records.checksums import SEAL, sealed
from metabo.records.files import Json, canonical
from metabo.tuner import formats
from metabo.tuner.trials import StudyTrial, TrialIndex

CHAIN: Final = "chain_sha256"
"""Key of a row: checksum of the row before and of its own trials."""
AGAIN = "restore a copy, or move the file away; if the change is yours, delete its first line, and it is sealed again"
HEAD = canonical(sealed({"format": formats.FORMAT})).encode() + b"\n"
START = f'{{"{CHAIN}":"'.encode()
MIDDLE = b'","trials":'
DIGITS = 64


@dataclass
class TrialJournal:
    """What this process knows of a file: its trials, the position after its last whole row, and that row with its seal.
    `seal` "": the file cannot be added to (there is none, it is of an older format, or has an unfinished row), and the
    next change writes it anew. `checked`: the values of all trials were looked at, not only their seals."""

    index: TrialIndex
    end: int = 0
    last: bytes = b""
    seal: str = ""
    checked: bool = False


def text(trials: list[StudyTrial]) -> bytes:
    """Return a file with a row for each trial."""
    lines, seal = [HEAD], _first_seal()
    for one in trials:
        line, seal = row([one], seal)
        lines.append(line)
    return b"".join(lines)


def row(trials: list[StudyTrial], seal: str) -> tuple[bytes, str]:
    """Return the row of a change after the row with this seal, and its own."""
    payload = canonical([cast(Json, one) for one in trials]).encode()
    own = _seal(seal, payload)
    return START + own.encode() + MIDDLE + payload + b"}\n", own


def read(path: Path, content: bytes, space: Description) -> TrialJournal:
    """Return what a file holds. What is sealed is taken as it was written; the values of others are looked at.

    Raises DataError for what is not as it was written, and names the value that no trial has."""
    head, _, rest = content.partition(b"\n")
    try:
        first = json.loads(head)
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, dict) and "trials" not in first and (SEAL in first or rest):
        formats.intact(path, first, AGAIN, (formats.FORMAT,))
        found = TrialJournal(TrialIndex(space), len(head) + 1, content[: len(head) + 1], _first_seal())
        return more(path, rest, found)
    if isinstance(first, dict) and CHAIN in first:
        return _edited(path, content, space)
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}); {formats.TRIALS_AGAIN}") from error
    return TrialJournal(TrialIndex(space, formats.parse_list(path, whole, space)), checked=True)


def more(path: Path, content: bytes, known: TrialJournal) -> TrialJournal:
    """Return what a file holds if `content` stands after what is known of it. Raises DataError."""
    body, newline, tail = content.rpartition(b"\n")
    lines = body.split(b"\n") if newline else []
    if lines and b"\0" in lines[-1]:  # the disk kept the file's new length and not all of its bytes
        tail = lines.pop()
    for line in lines:
        seal = _put(path, line, known)
        if not seal:
            raise DataError(
                f"{path}: damaged or edited since it was written (the row after {len(known.index.trials)} trials "
                f"differs from its '{CHAIN}'); {AGAIN}"
            )
        known.seal, known.last = seal, line + b"\n"
        known.end += len(line) + 1
    if tail:  # if all of the row is there, it counts; the file is written anew in either case
        _ = _put(path, tail, known) or _put(path, tail[:-1], known)
        known.seal = ""
    return known


def _put(path: Path, line: bytes, known: TrialJournal) -> str:
    """Put a row's trials among those known and return its seal; "" if the row is not whole, or not as it was written.

    Raises DataError for a row that is as it was written, and skips a number."""
    seal, payload = line[len(START) :][:DIGITS].decode(errors="replace"), line[len(START) + DIGITS + len(MIDDLE) : -1]
    whole = line == START + seal.encode() + MIDDLE + payload + b"}" and seal == _seal(known.seal, payload)
    if not whole:
        return ""
    for one in json.loads(payload):
        if one["number"] > len(known.index.trials):
            raise DataError(f"{path}: trial {one['number']} stands after {len(known.index.trials)} trials; {AGAIN}")
        known.index.put(completed(one, known.index.space))
    return seal


def completed(one: StudyTrial, space: Description) -> StudyTrial:
    """Return a sealed trial with its parameters in the order of the space."""
    parameters: Configuration = {field.name: one["parameters"].get(field.name) for field in space.fields}
    return {**one, "parameters": parameters | one["parameters"]}


def _edited(path: Path, content: bytes, space: Description) -> TrialJournal:
    """Return the trials of a file whose user edited it and took away its first line. Raises DataError."""
    found: dict[int, Json] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            for one in json.loads(line)["trials"]:
                place = one["number"] if isinstance(one, dict) and isinstance(one.get("number"), int) else len(found)
                found[min(max(place, 0), len(found))] = one
        except (ValueError, RecursionError, TypeError, KeyError):
            raise DataError(f"{path}: line {number} is no row of trials; {AGAIN}") from None
    return TrialJournal(TrialIndex(space, formats.parse_trials(path, found.items(), space, AGAIN)), checked=True)


def _first_seal() -> str:
    return hashlib.sha256(HEAD).hexdigest()


def _seal(before: str, payload: bytes) -> str:
    return hashlib.sha256(before.encode() + payload).hexdigest()
