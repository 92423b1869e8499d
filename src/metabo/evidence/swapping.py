"""Replace a folder of recorded results as a whole: whoever is interrupted leaves the old one or the new one, and of two
that add at once the second is told so."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metabo.errors import DataError, MetaboError
from metabo.records.disk import to_disk
from metabo.records.files import unwritable

ENDS = (NEW, OLD, GONE) = ".new", ".old", ".gone"
"""The ends of the hidden folders beside one that is being replaced: what takes its place, what it was, and what is
being deleted. The first two are never deleted under these names, so that an `.old` is always whole."""
AGAIN = "run `metabo evidence add` again"


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the folder of all recorded results, and make it if need be, so that no other process on this machine adds to
    it meanwhile.

    Raises DataError if one does, or if the folder cannot be made.
    """
    made = not root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DataError(
            f"{root}: cannot be a folder of recorded results ({error.strerror}); choose another with --to"
        ) from error
    try:
        _lock(handle, root)
        yield
    finally:
        if made:
            with suppress(OSError):
                root.rmdir()  # nothing was added
        os.close(handle)


def _lock(handle: int, root: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(
            f"{root}: another `metabo evidence add` is running; run this again when it has finished"
        ) from None
    except OSError:
        return  # a file system without locks
    if not (root.exists() and os.path.samestat(os.fstat(handle), root.stat())):  # another one made it, and removed it
        raise DataError(f"{root}: another `metabo evidence add` was running; run this again")


def left_over(root: Path) -> list[Path]:
    """Return what interrupted additions have left in the folder of all recorded results."""
    return sorted(path for path in root.glob(".*") if path.suffix in ENDS and path.is_dir())


def meant(left: Path) -> Path:
    """Return the folder that something of `left_over` was to become, or was."""
    name = left.stem.removeprefix(".")
    return left.with_name(name.rpartition("~")[0] if left.suffix == GONE else name)


def recover(root: Path) -> None:
    """Bring back folders of which an addition was interrupted after it had moved them away, and delete what others have
    left.

    Call it only while no other process adds (`alone`). Raises DataError if a folder is there, with both that it was to
    be swapped with, since one of these may be all that is left of an earlier addition.
    """
    left = left_over(root)
    for folder in dict.fromkeys(map(meant, left)):
        new, old = beside(folder)
        if folder.exists() and new.exists() and old.exists():
            raise DataError(
                f"{old}, {new}: left behind by an interrupted `metabo evidence add`, and {folder} is there again; keep "
                f"the one that you want as {folder}, and delete the others"
            )
        with _told(folder):
            if old.exists() and not folder.exists():
                (new if new.exists() else old).rename(folder)  # `new` was complete before the old one moved
    for path in left:
        _discard(path)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a copy of a folder, or an empty one, which takes its place at the end. If anything fails, the folder stays
    as it was. Files of the copy may be replaced and deleted, but not written to: they are links to the old ones.

    Raises DataError for a folder that is a link and for what cannot be read or written, and MetaboError with the free
    space if the disk is full.
    """
    if folder.is_symlink():
        raise DataError(f"{folder}: is a link; add to where it leads, or put the folder itself in its place")
    new, old = beside(folder)
    with _told(folder):
        try:
            if folder.exists():
                shutil.copytree(folder, new, symlinks=True, copy_function=_linked)
                _writable(new)
            else:
                new.mkdir(parents=True)
            yield new
            os.sync()  # after a power cut, too, the folder is the old one or the new one
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
            to_disk(folder.parent)
        except BaseException as error:
            # The message has the free space, so it is made before the copy is deleted.
            said = _message(error, folder) if isinstance(error, OSError) else None
            if old.exists() and not folder.exists():
                old.rename(folder)
            _discard(new)
            if said:
                raise said from error
            raise
    _discard(old)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _message(error, folder) from error


def _message(error: OSError, folder: Path) -> MetaboError:
    """Return the message for a file that cannot be read or written."""
    if isinstance(error, shutil.Error):  # of several files; the first is enough
        source, _, reason = error.args[0][0]
        return DataError(
            f"{source}: cannot be copied ({reason}); {folder} is as it was. Check the free space and the permissions "
            f"there, and {AGAIN}"
        )
    path = error.filename2 or error.filename or folder
    return unwritable(path, error) or DataError(
        f"{path}: cannot be read or written ({error.strerror}); {folder} is as it was. Give yourself the right to, and "
        f"{AGAIN}"
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


def _discard(folder: Path) -> None:
    """Rename a folder that is no longer needed, then delete it, so that an interruption leaves nothing that looks
    complete. What cannot be deleted stays, and `metabo verify` names it."""
    with suppress(OSError):
        if folder.exists() and folder.suffix != GONE:
            place = tempfile.mkdtemp(prefix=f".{meant(folder).name}~", suffix=GONE, dir=folder.parent)
            folder = folder.rename(Path(place, folder.name)).parent
        _writable(folder)
        shutil.rmtree(folder)


def _writable(folder: Path) -> None:
    """Let the owner change what folders hold: those of a copy have the permissions of the old ones."""
    for place, _, _ in os.walk(folder):
        with suppress(OSError):
            os.chmod(place, 0o755)


def beside(folder: Path) -> tuple[Path, Path]:
    """Return where what takes the place of a folder is made, and where the folder goes meanwhile."""
    new, old = (folder.with_name(f".{folder.name}{end}") for end in (NEW, OLD))
    return new, old
