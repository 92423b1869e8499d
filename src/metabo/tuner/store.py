"""The folder of a study: ``study.json`` (what the prior is and where it came from), ``prior-*.npz`` (its parameters)
and ``trials/*.json`` (its trials, see `journal`). There are only JSON and arrays. Every file is replaced in one step or
gets one more row, and is on the disk before it is reported as written. Nothing here imports JAX.

``study.json`` names the file of the parameters and is written last, so a killed `pretrain` leaves the old prior intact.
Changes of trials hold a lock, so none is lost when several processes tell at once.
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
from metabo.records.disk import to_disk
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
    """Wait for the folder's lock and hold it. The kernel frees it however the process ends.

    Only the holder writes here, so any unfinished files were left by killed runs, and they are removed.

    Raises DataError if the folder cannot be locked.
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
        with suppress(OSError):  # it is closed whatever the kernel says, and what was written stays written
            os.close(handle)


@contextmanager
def publishing(folder: Path) -> Iterator[Path]:
    """Make the folder, hold its lock, and yield an empty folder in it for the files to publish.

    That folder is removed at the end, as are those that killed runs left. Raises DataError if the file system refuses.
    """
    with _speaking(folder, "written", "or choose another folder with --to"):
        _make(folder)
        with locked(folder):
            for left in folder.glob(f"{SCRATCH}*"):
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH, ignore_cleanup_errors=True) as place:
                yield Path(place)


def require(folder: Path) -> StoredRecord:
    """Return the record of a folder. Raises DataError if it is none, has no record, or one that is not as it was
    written."""
    path = folder / RECORD
    if os.path.isfile(folder):  # an error of the disk is told by what reads the record
        raise DataError(f"{folder}: is a file; give the folder of the study, which metabo pretrain made")
    content = _json(path, formats.RECORD_AGAIN)
    if content is None:
        raise DataError(f"{folder}: no prior here ({RECORD} is missing); make one: metabo pretrain ... --to {folder}")
    return formats.parse_record(path, content)


def prior_path(folder: Path, record: StoredRecord) -> Path:
    """Return the file of the parameters. Raises DataError if it is missing or not as it was written."""
    path = folder / record["prior"]
    try:
        intact = digest(path) == record["checksum"]
    except OSError:
        intact = False
    if not intact:
        raise DataError(f"{path}: missing or changed since it was written; make it again with metabo pretrain")
    return path


def publish(folder: Path, record: StudyRecord, prior: Path) -> None:
    """Make the parameters that the caller wrote at `prior`, in the folder, the folder's prior; then delete the
    parameters of former priors. Call it with the lock held."""
    checksum = digest(prior)
    name = f"prior-{checksum[:12]}.npz"
    os.replace(prior, folder / name)
    to_disk(folder)  # before a record names it
    write_text(folder / RECORD, formats.record_text(record, name, checksum))
    for old in folder.glob("prior-*.npz"):
        if old.name != name:
            with suppress(OSError):  # the next prior removes it
                old.unlink()


def current(folder: Path, expected: StoredRecord) -> StoredRecord:
    """Return the current record of the folder. Raises DataError if its space differs from that in `expected`."""
    record = require(folder)
    decisive = ("parameters", "outcome", "constraints")
    if any(record["space"].get(key) != expected["space"].get(key) for key in decisive):
        raise DataError(f"{folder / RECORD}: has another space than when the study was opened; open the study again")
    return record


def settle(folder: Path, expected: StoredRecord) -> None:
    """Seal the record if an older version wrote it. Call it with the lock held, before trials are written.

    Raises DataError if the folder's space no longer is the one in `expected`, which the caller keeps using.
    """
    record = current(folder, expected)
    if record["format"] < formats.FORMAT:
        with _speaking(folder / RECORD, "written"):
            write_text(folder / RECORD, formats.record_text(record, record["prior"], record["checksum"]))


def trials_path(folder: Path, study: str) -> Path:
    """Return the file of a study's trials. Raises ConfigError for a name that is not a plain file name."""
    if not NAME.fullmatch(study):
        raise ConfigError(
            f"study '{printable(study, 80)}': write at most 100 letters, digits, '.', '_' and '-', first a letter or "
            "digit"
        )
    return folder / "trials" / f"{study}.json"


def read_trials(folder: Path, study: str, space: Description) -> list[StudyTrial]:
    """Return the trials of a study, oldest first.

    Raises DataError for a file that cannot be read, is not as it was written, or has values outside the space."""
    path = trials_path(folder, study)
    found = _journal(path, space)
    if found.checked:
        return found.index.trials
    return formats.parse_trials(path, enumerate(found.index.trials), space, journal.AGAIN)


def held_trials(folder: Path, study: str, space: Description, known: TrialJournal | None) -> TrialJournal:
    """Return the trials of a study in order to change them: `known`, as this process saw them last, extended by what
    others have added since. Only the additions are read; after any other change, the whole file is. Call it with the
    lock held.

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
    """Append trials that are new or changed and already in the index of `held`. Call it with the lock held.

    Raises MetaboError if that fails, and for trials that could not be read again. Then nothing is changed, and `held`
    is no longer valid."""
    path, space = trials_path(folder, study), held.index.space
    if not held.seal:
        return write_trials(folder, study, held.index.trials, space)
    formats.parse_trials(path, [(one["number"], one) for one in new], space, journal.AGAIN)
    row, seal = journal.row(new, held.seal) if new else (b"", held.seal)
    with _speaking(path, "written"):
        append(path, row, held.end)  # without a row it only waits until earlier rows are on the disk
    return replace(held, end=held.end + len(row), last=row or held.last, seal=seal)


def write_trials(folder: Path, study: str, trials: list[StudyTrial], space: Description) -> TrialJournal:
    """Replace the trials of a study. Call it with the lock held, from reading to writing.

    Raises MetaboError if that fails, and for trials that could not be read again. Then nothing is changed."""
    path = trials_path(folder, study)
    formats.parse_trials(path, enumerate(trials), space, journal.AGAIN)
    content = journal.text(trials)
    with _speaking(path, "written"):
        _make(path.parent)
        write_text(path, content.decode())
    return journal.read(path, content, space)


def _journal(path: Path, space: Description) -> TrialJournal:
    """Read a file of trials, which need not exist. Raises DataError if it cannot be read or is not as it was
    written."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a link to a device would be read without end
            raise DataError(f"{path}: is no file; {journal.AGAIN}")
        content = path.read_bytes()
    except FileNotFoundError:
        return TrialJournal(TrialIndex(space), checked=True)
    except OSError as error:
        raise _unread(path, error) from error
    return journal.read(path, content, space)


def write_page(path: Path, text: str) -> None:
    """Write a file that does not belong to a study but may lie in its folder. In that case hold the folder's lock,
    because its holder removes unfinished files there. Raises MetaboError, also for a file that is there and is no
    page."""
    page = path.suffix.lower() in (".html", ".htm")
    if not page and (path.exists() or path.is_symlink()):
        raise ConfigError(f"{path}: is there already and is no page; name a new file, or one that ends in .html")
    studies = [folder for folder in list(path.absolute().parents)[:2] if (folder / RECORD).is_file()]
    if not page and studies:
        raise ConfigError(f"{path}: lies in the folder of a study; name a file that ends in .html")
    with locked(studies[0]) if studies else nullcontext(), _speaking(path, "written"):
        write_text(path, text)


def told_studies(folder: Path) -> list[str]:
    """List the studies that have trials. Raises DataError if the folder cannot be read."""
    # `*.json` also matches the unfinished file of a killed first `tell`, but no study can have such a name.
    with _speaking(folder, "read"):
        return sorted(path.stem for path in (folder / "trials").glob("*.json") if NAME.fullmatch(path.stem))


@contextmanager
def _speaking(path: Path, done: str, remedy: str = "") -> Iterator[None]:
    """Turn errors of the file system into a DataError of one line."""
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
        with suppress(PermissionError):  # a folder that is writable but not readable
            to_disk(one.parent)


def _json(path: Path, remedy: str) -> object:
    """Return the contents of a JSON file, or None if there is no file. Raises DataError if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unread(path, error) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}); {remedy}") from error


def _unread(path: Path, error: OSError) -> DataError:
    """Return the error of a file that may be whole, though it cannot be read now."""
    return DataError(f"{path}: cannot be read ({error.strerror or error}); check its permissions and the disk")
