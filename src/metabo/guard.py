"""Checks before a workflow run starts: nobody else runs here, and results can be written."""

import errno
import fcntl
import os
import tempfile
import warnings
from pathlib import Path

from metabo.errors import MetaboError

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""What flock says where the file system keeps no locks, as some that a cluster shares."""


def claim_folder(lock: Path) -> None:
    """Hold an exclusive lock until this process ends. Raises MetaboError if another process holds it.

    The kernel frees the lock however the process ends, so a killed run never has to be unlocked by hand (Snakemake's
    own lock files would stay behind; the profile turns them off). Where the file system keeps no locks, a warning asks
    the user to see to it that one run is active.
    """
    require_writable(lock.parent)
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)  # never closed: held until the process ends
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise MetaboError(f"another run is active in {Path.cwd()}; wait until it ends, or stop it") from error
    except OSError as error:
        os.close(handle)
        if error.errno not in _NO_LOCKS:
            raise MetaboError(f"{lock}: cannot be locked ({error.strerror}); check the file system") from error
        warnings.warn(
            f"{lock}: this file system keeps no locks ({error.strerror}), so a second run in {Path.cwd()} would not be"
            " noticed; start one at a time",
            stacklevel=2,
        )


def require_writable(folder: Path) -> None:
    """Try to write in the folder, or in the nearest parent that exists. Raises MetaboError if that fails."""
    place = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise MetaboError(
            f"{place}: cannot write here ({error.strerror}); check that it is a folder, its permissions and free space"
        ) from error
