"""The folder of a tuned study: ``study.json`` (what the prior is and where it came from), ``prior-*.npz`` (its
parameters) and ``trials/*.json`` (what was told: `journal`). JSON and arrays only; every file is replaced in one step
or gets one more row, and is on the disk before anyone is told that it was written. Nothing here imports JAX.

``study.json`` names the file of the parameters and is written last, so a killed `pretrain` leaves the old prior whole.
Changes of trials hold a lock, so that none is lost when several processes tell at once.
"""

import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from metabo.data.history.description import Description
from metabo.errors import ConfigError, DataError, printable
from metabo.records.files import append, digest, remove_scratch, write_text
from metabo.tuner import formats, journal
from metabo.tuner.formats import StoredRecord, StudyRecord
from metabo.tuner.journal import TrialJournal
from metabo.tuner.trials import StudyTrial, TrialIndex

RECORD = "study.json"
SCRATCH = ".prior-"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for it. The kernel frees it however the process ends.

    Who holds it is the only one who writes here, so unfinished files are what killed runs left: they are removed.

    Raises DataError if the folder does not let itself be locked.
    """
    try:
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataError(
            f"{folder / '.lock'}: cannot be opened ({error.strerror}); check its permissions and those of the folder"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            raise DataError(
                f"{folder / '.lock'}: cannot be locked ({error.strerror}); move the folder to a file system with locks"
            ) from error
        with _speaking(folder, "read"):
            remove_scratch([*folder.glob(".*"), *folder.glob("trials/.*")])
        yield
    finally:
        with suppress(OSError):  # closed it is, whatever the kernel says, and what was written stays written
            os.close(handle)


@contextmanager
def publishing(folder: Path) -> Iterator[Path]:
    """Make the folder, hold its lock and yield an empty folder in it, where to write what is to be published.

    The empty folder is removed at the end, with those that killed runs left. Raises DataError.
    """
    with _speaking(folder, "written", "or choose another folder with --to"):
        _make(folder)
        with locked(folder):
            for left in folder.glob(f"{SCRATCH}*"):
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH, ignore_cleanup_errors=True) as place:
                yield Path(place)


def require(folder: Path) -> StoredRecord:
    """Return the record of a folder. Raises DataError if it has none, or one that is not as it was written."""
    path = folder / RECORD
    content = _json(path, formats.RECORD_AGAIN)
    if content is None:
        raise DataError(f"{folder}: no prior here ({RECORD} is missing); make one: metabo pretrain ... --to {folder}")
    return formats.parse_record(path, content)


def prior_path(folder: Path, record: StoredRecord) -> Path:
    """Return the file of the parameters. Raises DataError if it is not the one that was written."""
    path = folder / record["prior"]
    try:
        intact = digest(path) == record["checksum"]
    except OSError:
        intact = False
    if not intact:
        raise DataError(f"{path}: missing or changed since it was written; make it again with metabo pretrain")
    return path


def publish(folder: Path, record: StudyRecord, prior: Path) -> None:
    """Take the parameters, written by the caller at `prior` in the folder, and make them the folder's prior; then the
    parameters of former priors go. Call it with the lock held."""
    checksum = digest(prior)
    name = f"prior-{checksum[:12]}.npz"
    os.replace(prior, folder / name)
    _to_disk(folder)  # before a record names it
    write_text(folder / RECORD, formats.record_text(record, name, checksum))
    for old in folder.glob("prior-*.npz"):
        if old.name != name:
            with suppress(OSError):  # the next prior takes it along
                old.unlink()


def current(folder: Path, expected: StoredRecord) -> StoredRecord:
    """Return the record that the folder has now. Raises DataError if its space is another one than in `expected`."""
    record = require(folder)
    decisive = ("parameters", "outcome", "constraints")
    if any(record["space"].get(key) != expected["space"].get(key) for key in decisive):
        raise DataError(f"{folder / RECORD}: has another space than when the study was opened; open the study again")
    return record


def settle(folder: Path, expected: StoredRecord) -> None:
    """Seal a record that an older version wrote. Call it with the lock held, before trials are written.

    Raises DataError if the folder has come to have another space than the one in `expected`, which is not asked again.
    """
    record = current(folder, expected)
    if record["format"] < formats.FORMAT:
        with _speaking(folder / RECORD, "written"):
            write_text(folder / RECORD, formats.record_text(record, record["prior"], record["checksum"]))


def trials_path(folder: Path, study: str) -> Path:
    """Return the file of a study's trials. Raises ConfigError for a name that is no plain file name."""
    if not NAME.fullmatch(study):
        raise ConfigError(
            f"study '{printable(study, 80)}': write letters, digits, '.', '_' and '-', first a letter or digit"
        )
    return folder / "trials" / f"{study}.json"


def read_trials(folder: Path, study: str, space: Description) -> list[StudyTrial]:
    """Return what was told of a study, oldest first.

    Raises DataError for a file that cannot be read, is not as it was written, or has values outside the space."""
    path = trials_path(folder, study)
    found = _journal(path, space)
    if found.checked:
        return found.index.trials
    return formats.parse_trials(path, enumerate(found.index.trials), space, journal.AGAIN)


def held_trials(folder: Path, study: str, space: Description, known: TrialJournal | None) -> TrialJournal:
    """Return the trials of a study to change them: `known`, as this process saw them last, with what others have added
    since. Only that is looked at; after another change, all. Call it with the lock held.

    Raises DataError for a file that cannot be read, or is not as it was written."""
    path = trials_path(folder, study)
    if known is not None and known.seal:
        with _speaking(path, "read", journal.AGAIN), open(path, "rb") as stream:
            stream.seek(known.end - len(known.last))
            there, added = stream.read(len(known.last)), stream.read()
        if there == known.last:
            return journal.more(path, added, known)
    return _journal(path, space)


def add_trials(folder: Path, study: str, held: TrialJournal, new: list[StudyTrial]) -> TrialJournal:
    """Add trials that are new or changed, and are in the index of those held already. Call it with the lock held.

    Raises MetaboError; then nothing is changed, and `held` holds no longer. What could not be read again is refused."""
    path, space = trials_path(folder, study), held.index.space
    if not held.seal:
        return write_trials(folder, study, held.index.trials, space)
    formats.parse_trials(path, [(one["number"], one) for one in new], space, journal.AGAIN)
    row, seal = journal.row(new, held.seal) if new else (b"", held.seal)
    with _speaking(path, "written"):
        append(path, row, held.end)  # no row: it waits until what was told before is on the disk
    return replace(held, end=held.end + len(row), last=row or held.last, seal=seal)


def write_trials(folder: Path, study: str, trials: list[StudyTrial], space: Description) -> TrialJournal:
    """Replace the trials of a study. Call it with the lock held, from reading to writing.

    Raises MetaboError, and then nothing is changed: for what could not be read again, too."""
    path = trials_path(folder, study)
    formats.parse_trials(path, enumerate(trials), space, journal.AGAIN)
    content = journal.text(trials)
    with _speaking(path, "written"):
        _make(path.parent)
        write_text(path, content.decode())
    return journal.read(path, content, space)


def _journal(path: Path, space: Description) -> TrialJournal:
    """Read a file of trials; there need not be one. Raises DataError."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a link to a device would be read without end
            raise DataError(f"{path}: is no file; {journal.AGAIN}")
        content = path.read_bytes()
    except FileNotFoundError:
        return TrialJournal(TrialIndex(space), checked=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}); {journal.AGAIN}") from error
    return journal.read(path, content, space)


def write_page(path: Path, text: str) -> None:
    """Write a file that is none of a study's own, and may lie in a study's folder: then with the lock held, for who
    holds it removes unfinished files there. Raises MetaboError."""
    studies = [folder for folder in list(path.absolute().parents)[:2] if (folder / RECORD).is_file()]
    with locked(studies[0]) if studies else nullcontext(), _speaking(path, "written"):
        write_text(path, text)


def told_studies(folder: Path) -> list[str]:
    """List the studies that have trials. Raises DataError."""
    # `*.json` is also the name of what a killed first `tell` left unfinished; no study has such a name.
    with _speaking(folder, "read"):
        return sorted(path.stem for path in (folder / "trials").glob("*.json") if NAME.fullmatch(path.stem))


@contextmanager
def _speaking(path: Path, done: str, remedy: str = "") -> Iterator[None]:
    """Turn what the file system refuses into one line. Raises DataError."""
    try:
        yield
    except OSError as error:
        also = f", {remedy}" if remedy else ""
        raise DataError(
            f"{path}: cannot be {done} ({error.strerror or error}); check its permissions and the disk{also}"
        ) from error


def _make(folder: Path) -> None:
    """Make a folder and those above it, and wait until their names are on the disk."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in new:
        with suppress(PermissionError):  # a folder that may be written and not read
            _to_disk(one.parent)


def _to_disk(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _json(path: Path, remedy: str) -> object:
    """Return what a file of JSON holds; None if there is no file. Raises DataError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}); {remedy}") from error
