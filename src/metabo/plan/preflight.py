"""Checks before a workflow run starts: no other run is active here, and results can be written and are as they were
made, with the settings of this run."""

import base64
import contextlib
import errno
import fcntl
import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

from metabo.errors import DataError, MetaboError
from metabo.records.checksums import MADE, damaged, read_sidecar, sidecar_of
from metabo.records.files import Json, canonical, unwritable

RUN = Path(".cache/run.lock")
"""The lock that a run holds."""
JOBS = RUN.with_name("jobs.lock")
"""The lock that a run's jobs share; those on a cluster, and those that cannot stop, outlive a run that is killed."""
MARKS = Path(".snakemake/incomplete")
"""Where Snakemake marks the files of jobs that it has started and not seen ended: by their names in base 64, cut into
folders "@..." if they are long."""
SHOWN, LONGEST = 3, 60
"""How many settings are told that differ, and how many characters of a value."""
PATIENCE = 15.0
"""For how many seconds a run waits for the jobs of a killed one, which then stop (`metabo.compute.orphans`)."""
ROOM = 2**16
"""The number of bytes that must be free before a run starts."""

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""The errors of flock on file systems without locks, such as some shared ones of clusters."""


def claim_folder(run: Path = RUN) -> bool:
    """Hold an exclusive lock until this process ends, and return whether it is certain that no job is at work here.
    Raises MetaboError if another run, or a job of one, is.

    The kernel frees the locks however a process ends, so a killed run never has to be unlocked by hand (Snakemake's own
    lock files would stay behind; the profile turns them off). If the file system has no locks, a warning asks the user
    to make sure that only one run is active.
    """
    require_writable(run.parent)
    run.parent.mkdir(parents=True, exist_ok=True)
    held = _hold(run, f"another run is active in {Path.cwd()}; wait until it ends, or stop it")
    jobs = run.with_name(JOBS.name)
    at_work = held and _hold(
        jobs,
        f"jobs of a run that was killed are still at work in {Path.cwd()}; wait until they end, or stop them "
        f"(`fuser {jobs}` shows their ids), then run the same command",
        PATIENCE,
    )
    if at_work:
        os.close(at_work)  # this run's own jobs share it now
    return bool(at_work)


def _hold(lock: Path, taken: str, patience: float = 0.0) -> int | None:
    """Return the open file of a lock, which is held until it is closed or the process ends, or None if there are no
    locks. Raises MetaboError with `taken` if others still hold it after `patience` seconds."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    last = time.monotonic() + patience
    try:
        while not _is_free(handle, time.monotonic() >= last):
            time.sleep(0.1)
        return handle
    except BlockingIOError as error:
        os.close(handle)
        raise MetaboError(taken) from error
    except OSError as error:
        os.close(handle)
        if error.errno not in _NO_LOCKS:
            raise MetaboError(f"{lock}: cannot be locked ({error.strerror}); check the file system") from error
        warnings.warn(
            f"{lock}: this file system keeps no locks ({error.strerror}), so a second run in {Path.cwd()} would not be"
            " noticed; start one at a time",
            stacklevel=3,
        )
        return None


def _is_free(handle: int, last: bool) -> bool:
    """Try to take a lock; raise BlockingIOError if others hold it the last time."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if last:
            raise
        return False
    return True


def tell_at_work(jobs: Path = JOBS) -> None:
    """Signal, until this process ends, that a job is at work here. This does nothing where no run was ever started."""
    with contextlib.suppress(OSError):
        fcntl.flock(os.open(jobs, os.O_RDWR), fcntl.LOCK_SH | fcntl.LOCK_NB)  # never closed


def is_marked(path: str | Path, marks: Path = MARKS) -> bool:
    """Tell whether Snakemake has marked a file as one of a job that it has not seen ended, and will make it again."""
    name = base64.urlsafe_b64encode(str(path).encode()).decode()
    longest = os.pathconf(marks, "PC_NAME_MAX") - 1 if marks.is_dir() else len(name)
    parts = [name[start : start + longest] for start in range(0, len(name), longest)]
    return marks.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1]).is_file()


def require_same_spec(outputs: Iterable[str], spec: str) -> None:
    """Raise DataError if results are there whose record has other settings than `spec`, JSON of those of this run.

    Snakemake compares settings only with its own notes, which copied and restored results lack.
    """
    for path in filter(os.path.isfile, outputs):
        record = sidecar_of(path)
        was = _spec(record) if record else None
        if was is not None and canonical(was) != spec:
            raise DataError(
                f"{path}: was made with other settings than those of this run ({_differences(was, json.loads(spec))}), "
                f"and Snakemake has no note of it, as of copied or restored results; delete it and {record}, or give "
                "the settings that it was made with, and run the same command"
            )


def _spec(record: Path) -> Json:
    """Return the settings in a record; None of a damaged one, which is told when a job reads its result."""
    with contextlib.suppress(MetaboError):
        return read_sidecar(record).get("spec")
    return None


def _differences(was: object, now: Json, place: str = "") -> str:
    """Return the first settings that differ, with both values."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
        told = [_differences(was.get(key), now.get(key), f"{place}.{key}".lstrip(".")) for key in keys[:SHOWN]]
        return "; ".join(told) + (f"; and {len(keys) - SHOWN} more" if len(keys) > SHOWN else "")
    before, after = (text if len(text) <= LONGEST else text[:LONGEST] + "..." for text in map(json.dumps, (was, now)))
    return f"{place}: {before}, now {after}"


def require_intact(paths: Iterable[str]) -> None:
    """Raise DataError, which lists every file that is not as its job wrote it, if there are any.

    Snakemake deletes the results of a job before it starts the job again, so a damaged input must be found before that.
    """
    if faults := damaged(paths):
        raise DataError(
            "nothing was started, because results that are needed are damaged:", *(f"  {fault}" for fault in faults)
        )


def no_future(paths: Iterable[str]) -> int:
    """Give results that are dated in the future the current time, and return how many there were.

    After a clock was set back, Snakemake would delete what a job made from such results, because it is older. Contents
    decide what is made again (times do so only for files larger than the size in the profile), so nothing else depends
    on these times.
    """
    now = time.time()
    ahead = [path for path in paths if Path(path).parts[0] in MADE and os.path.getmtime(path) > now]
    for path in ahead:
        with contextlib.suppress(OSError):  # someone else's file
            os.utime(path, (now, now))
    return len(ahead)


def require_writable(folder: Path) -> None:
    """Try to write in the folder, or in the nearest parent that exists. Raises MetaboError if that fails, and for a
    link to what is not there."""
    if lost := next((one for one in (folder, *folder.parents) if one.is_symlink() and not one.exists()), None):
        raise MetaboError(f"{lost}: is a link to {os.readlink(lost)}, which is not there; mount it, or remove the link")
    place = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place) as stream:
            stream.write(bytes(ROOM))
    except OSError as error:
        raise unwritable(place, error) or MetaboError(
            f"{place}: cannot write here ({error.strerror}); check that it is a folder, its permissions and free space"
        ) from error
