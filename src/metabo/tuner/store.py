"""The folder of a tuned study: ``study.json`` (what the prior is and where it came from), ``prior-*.npz`` (its
parameters) and ``trials/*.json`` (what was told). JSON and arrays only; every file is replaced in one step.

``study.json`` names the file of the parameters and is written last, so a killed `pretrain` leaves the old prior whole.
Changes of trials hold a lock, so that none is lost when several processes tell at once.
"""

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict, cast

from metabo.data.history.account import StudyAccount
from metabo.errors import ConfigError, DataError
from metabo.records.files import canonical, digest, remove_scratch, write_text
from metabo.tuner.trials import StudyTrial

FORMAT = 1
RECORD = "study.json"
SCRATCH = ".prior-"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class PastSummary(TypedDict):
    """What a prior was learned from: a history, its space, how many studies and trials of it were usable, how its file
    was written, and what became of the rows of each study."""

    history: str
    space: str
    studies: int
    trials: int
    layout: str
    accounts: list[StudyAccount]


class StudyRecord(TypedDict):
    """What ``study.json`` says of a prior: the space as ``space.yaml`` described it, the scale of its outcomes (None:
    no past study tells), the specification of the method, the histories, and remarks on them and on the training."""

    space: Mapping[str, object]
    scale: dict[str, float] | None
    spec: Mapping[str, object]
    past: list[PastSummary]
    remarks: list[str]


class StoredRecord(StudyRecord):
    """The same as it is stored: with its format, and the name and checksum of the file of the parameters."""

    format: int
    prior: str
    checksum: str


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
        remove_scratch([*folder.glob(".*"), *folder.glob("trials/.*")])
        yield
    finally:
        os.close(handle)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Yield an empty folder in `folder`, removed at the end with those that killed runs left. Hold the lock."""
    for left in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH) as place:
        yield Path(place)


def require(folder: Path) -> StoredRecord:
    """Return the record of a folder. Raises DataError if it has none, or one that cannot be read."""
    path = folder / RECORD
    if not path.is_file():
        raise DataError(f"{folder}: no prior here ({RECORD} is missing); make one: metabo pretrain ... --to {folder}")
    record = _json(path)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"{path}: not a record of format {FORMAT}; make it again with metabo pretrain")
    return cast(StoredRecord, record)


def prior_path(folder: Path, record: StoredRecord) -> Path:
    """Return the file of the parameters. Raises DataError if it is not the one that was written."""
    path = folder / record["prior"]
    if not path.is_file() or digest(path) != record["checksum"]:
        raise DataError(f"{path}: missing or changed since it was written; make it again with metabo pretrain")
    return path


def publish(folder: Path, record: StudyRecord, prior: Path) -> None:
    """Take the parameters, written by the caller at `prior` in the folder, and make them the folder's prior; then the
    parameters of former priors go. Call it with the lock held."""
    checksum = digest(prior)
    name = f"prior-{checksum[:12]}.npz"
    os.replace(prior, folder / name)
    content = {"format": FORMAT, **record, "prior": name, "checksum": checksum}
    write_text(folder / RECORD, json.dumps(content, indent=1, allow_nan=False) + "\n")
    for old in folder.glob("prior-*.npz"):
        if old.name != name:
            old.unlink(missing_ok=True)


def trials_path(folder: Path, study: str) -> Path:
    """Return the file of a study's trials. Raises ConfigError for a name that is no plain file name."""
    if not NAME.fullmatch(study):
        raise ConfigError(f"study '{study}': write letters, digits, '.', '_' and '-', first a letter or digit")
    return folder / "trials" / f"{study}.json"


def read_trials(folder: Path, study: str) -> list[StudyTrial]:
    """Return what was told of a study, oldest first.

    Raises DataError for a file that cannot be read."""
    path = trials_path(folder, study)
    if not path.exists():
        return []
    content = _json(path)
    keys = {"number", "parameters", "state", "outcome"}
    if not isinstance(content, list) or any(not isinstance(t, dict) or t.keys() != keys for t in content):
        raise DataError(f"{path}: not a list of trials with {', '.join(sorted(keys))}; restore it, or move it away")
    return cast(list[StudyTrial], content)


def write_trials(folder: Path, study: str, trials: list[StudyTrial]) -> None:
    """Replace the trials of a study. Call it with the lock held, from reading to writing."""
    lines = ",\n ".join(canonical(trial) for trial in trials)
    write_text(trials_path(folder, study), f"[{lines}]\n")


def told_studies(folder: Path) -> list[str]:
    """List the studies that have trials."""
    # `*.json` is also the name of what a killed first `tell` left unfinished; no study has such a name.
    return sorted(path.stem for path in (folder / "trials").glob("*.json") if NAME.fullmatch(path.stem))


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error}); restore it, or make it again") from error
