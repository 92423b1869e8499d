"""Replace a folder of recorded results as a whole: whoever is stopped in between leaves the old one or the new one, and
of two that add at once the second is told to wait."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metabo.errors import DataError
from metabo.records.files import unwritable

ENDS = (NEW, OLD) = ".new", ".old"
"""The ends of the hidden folders next to a folder that is being replaced: what takes its place, and what it was."""


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the folder of all recorded results, and make it if need be, so that no other process adds to it meanwhile.

    Raises DataError if one does, or if the folder cannot be made.
    """
    made = not root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DataError(
            f"{root}: cannot be a folder of recorded results ({error.strerror}); name another one"
        ) from None
    try:
        _lock(handle, root)
        yield
    finally:
        os.close(handle)
        if made:
            with suppress(OSError):
                root.rmdir()  # nothing was added


def _lock(handle: int, root: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(
            f"{root}: another `metabo evidence add` is adding to it; say it again when it has ended"
        ) from None
    except OSError:
        return  # a file system without locks


def left_over(root: Path) -> list[Path]:
    """Return what additions that were stopped have left in the folder of all recorded results."""
    return sorted(path for path in root.glob(".*") if path.suffix in ENDS and path.is_dir())


def meant(left: Path) -> Path:
    """Return the folder that something of `left_over` was to become, or was."""
    return left.with_name(left.stem.removeprefix("."))


def recover(folder: Path) -> None:
    """Bring a folder back if an addition was stopped after it was moved away, and delete what others have left.

    Call it only while no other process adds (`alone`).
    """
    new, old = _beside(folder)
    if old.exists() and not _real(folder).exists():
        (new if new.exists() else old).rename(_real(folder))  # `new` was complete before the old one moved
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a copy of a folder, or an empty one, which takes its place at the end. If anything fails, the folder stays
    as it was. Files of the copy may be replaced and deleted, but not written to: they may be links to the old ones.

    Raises DataError, or MetaboError with the free space, for what cannot be read or written.
    """
    new, old = _beside(folder)
    real = _real(folder)
    try:
        if real.exists():
            shutil.copytree(real, new, copy_function=_linked)
        else:
            new.mkdir(parents=True)
        yield new
        os.sync()  # after a power cut, too, the folder is the old one or the new one
        if real.exists():
            real.rename(old)
        new.rename(real)
    except BaseException as error:
        if old.exists() and not real.exists():
            old.rename(real)
        shutil.rmtree(new, ignore_errors=True)
        if isinstance(error, OSError | shutil.Error):
            raise _told(error, folder) from error
        raise
    shutil.rmtree(old, ignore_errors=True)


def _told(error: OSError, folder: Path) -> Exception:
    """Return the message for a file that cannot be read or written."""
    path = error.filename or folder
    if isinstance(error, shutil.Error):  # of several files; the first is enough
        path, _, reason = error.args[0][0]
        return DataError(f"{path}: cannot be copied ({reason}); {folder} is as it was")
    return unwritable(path, error) or DataError(
        f"{path}: cannot be read or written ({error.strerror}); {folder} is as it was"
    )


def put(source: Path, target: Path) -> None:
    """Copy a file into a folder that `replacing` yielded."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copyfile(source, target)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _real(folder: Path) -> Path:
    """Return where a folder is, which may be a link."""
    return folder.resolve() if folder.is_symlink() else folder


def _beside(folder: Path) -> tuple[Path, Path]:
    real = _real(folder)
    new, old = (real.with_name(f".{real.name}{end}") for end in ENDS)
    return new, old
