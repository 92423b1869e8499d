"""The file of a study's trials: a journal to which each change adds a row.

The first line states the format. Each later line is one atomic change: trials that are new, or that replace those with
the same numbers. A row carries the checksum of itself and the row before, so it seals all rows up to it. Adding a row
reads only the last one, however many there are.

A process that dies while it writes a row leaves an unfinished last line. It had not acknowledged that row, so the row
does not count, and the next change rewrites the file without it.
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
"""The key of a row with the checksum of the row before and of its own trials."""
AGAIN = "restore a copy, or move the file away; if the change is yours, delete its first line, and it is sealed again"
EDITED = "correct that line, or restore a copy"
"""What to do about a file whose first line its user deleted: without one, it has nothing to delete."""
HEAD = canonical(sealed({"format": formats.FORMAT})).encode() + b"\n"
START = f'{{"{CHAIN}":"'.encode()
MIDDLE = b'","trials":'
DIGITS = 64


@dataclass
class TrialJournal:
    """What this process knows about a file: its trials, the position after its last complete row, and that row with its
    seal. If `seal` is "", nothing can be appended (there is no file, or it has an older format or an unfinished row),
    and the next change rewrites it. `checked` says that the values of all trials were checked, not only their seals."""

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
    """Return the row of a change, to follow the row with this seal, and the seal of the new row."""
    payload = canonical([cast(Json, one) for one in trials]).encode()
    own = _seal(seal, payload)
    return START + own.encode() + MIDDLE + payload + b"}\n", own


def read(path: Path, content: bytes, space: Description) -> TrialJournal:
    """Return the contents of a file. Sealed trials are taken as they were written; the values of others are checked.

    Raises DataError if the file is not as it was written, or for a value that no trial can have, which it names."""
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
    """Return the contents of a file in which `content` follows what is known of it. Raises DataError for a row that is
    not as it was written."""
    body, newline, tail = content.rpartition(b"\n")
    lines = body.split(b"\n") if newline else []
    if lines and b"\0" in lines[-1]:  # the disk kept the file's new length but not all of its bytes
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
    if tail:  # a complete row counts; the file is rewritten in either case
        _ = _put(path, tail, known) or _put(path, tail[:-1], known)
        known.seal = ""
    return known


def _put(path: Path, line: bytes, known: TrialJournal) -> str:
    """Add a row's trials to those known and return its seal, or "" if the row is incomplete or not as it was written.

    Raises DataError for an intact row that skips a number."""
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
    """Return the trials of a file that its user edited and whose first line the user removed. Rows may be missing: the
    trials that are left are numbered anew, in order. Raises DataError for a line that is not a row of trials."""
    found: list[Json] = []
    places: dict[int, int] = {}  # of a trial's number in the file: a later row with the same number replaces it
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            for one in json.loads(line)["trials"]:
                written = one.get("number") if isinstance(one, dict) else None
                if type(written) is not int or written < 0:  # told as a fault below
                    found.append(one)
                    continue
                place = places.setdefault(written, len(found))
                found[place : place + 1] = [{**one, "number": place}]
        except (ValueError, RecursionError, TypeError, KeyError):
            raise DataError(f"{path}: line {number} is no row of trials; {EDITED}") from None
    return TrialJournal(TrialIndex(space, formats.parse_trials(path, enumerate(found), space, EDITED)), checked=True)


def _first_seal() -> str:
    return hashlib.sha256(HEAD).hexdigest()


def _seal(before: str, payload: bytes) -> str:
    return hashlib.sha256(before.encode() + payload).hexdigest()
