"""Small file helpers: atomic writes, checksums, canonical JSON."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np

from metabo.errors import MetaboError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value that is only passed through; a layout that the code reads is a TypedDict instead."""

_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_SCRATCH = re.compile(r"\.metabo-(?P<name>.+)\.[a-z0-9_]{8}(?P<suffix>(\.[^.]+)?)")


def unwritable(path: str | Path, error: OSError) -> MetaboError | None:
    """Return the error for a file that the disk refuses, with the free space, or None if `error` has another cause."""
    if error.errno not in _UNWRITABLE:
        return None
    full = Path(path).absolute()
    place = next(folder for folder in (full, *full.parents) if folder.exists())
    free = shutil.disk_usage(place).free / 2**20
    return MetaboError(
        f"{path}: could not be written ({os.strerror(error.errno)}); {free:.1f} MiB are free there. Make space (or "
        "check the disk) and run the same command"
    )


def is_scratch(path: Path) -> bool:
    """Tell whether a file has a scratch name of `atomic_path`, left by a job that was killed while writing."""
    found = _SCRATCH.fullmatch(path.name)
    return found is not None and found["suffix"] == Path(found["name"]).suffix


def remove_scratch(paths: Iterable[Path]) -> int:
    """Delete those of the files that killed jobs left unfinished, and return how many. Call it only while no job writes
    there. Files that cannot be deleted, such as another user's, stay."""
    removed = 0
    for path in paths:
        if is_scratch(path) and path.is_file():
            with suppress(OSError):
                path.unlink()
                removed += 1
    return removed


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a scratch path in the same folder; on success it replaces `path`, on failure it is removed.

    A killed run therefore never leaves a half-written result, and its scratch files are removed at the start of the
    next run (`remove_scratch`). The file keeps its permissions; a new one has those of the umask. Raises MetaboError
    if the folder is not writable or the disk is full.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = _new_beside(path)
    except OSError as error:
        if full := unwritable(path, error):
            raise full from error
        raise MetaboError(
            f"{path.parent}: cannot write here ({error.strerror}); check its permissions and free space"
        ) from error
    try:
        yield scratch
        _keep_permissions(path, scratch)
        _to_disk(scratch)
        os.replace(scratch, path)
        _to_disk(path.parent)
    except OSError as error:
        if full := unwritable(path, error):
            raise full from error
        raise
    finally:
        scratch.unlink(missing_ok=True)


def _new_beside(path: Path) -> Path:
    """Create an empty file with a scratch name, which only its user can read if it is to replace a file."""
    mode = 0o600 if path.exists() else 0o666  # less the umask
    while True:
        scratch = path.with_name(f".metabo-{path.name}.{secrets.token_hex(4)}{path.suffix}")
        with suppress(FileExistsError):
            os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
            return scratch


def _keep_permissions(path: Path, scratch: Path) -> None:
    """Give a scratch file the group and the permissions of the file that it will replace, if there is one, but that its
    user can read and write it. Another group, where the system refuses the old one, may do what all may."""
    with suppress(OSError):
        old = path.stat()
        mode = old.st_mode & 0o777 | 0o600
        with suppress(PermissionError):
            os.chown(scratch, -1, old.st_gid)
        if scratch.stat().st_gid != old.st_gid:
            mode = mode & 0o707 | (mode & 0o007) << 3
        os.chmod(scratch, mode)


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, so that a power cut leaves either the old or the
    new result."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def append(path: str | Path, content: bytes, end: int) -> None:
    """Append to a file of `end` bytes, and wait until all of it is on the disk.

    Raises MetaboError if the disk is full, and OSError for other failures; the file is then cut back to its former
    length, if the disk allows that. A killed process may leave part of the content.
    """
    try:
        with open(path, "ab", buffering=0) as stream:  # a buffer would write again what a failed call already wrote
            left = memoryview(content)
            while left:
                left = left[stream.write(left) :]
            os.fsync(stream.fileno())
    except OSError as error:
        with suppress(OSError):
            os.truncate(path, end)
        if full := unwritable(path, error):
            raise full from error
        raise


def save_npz(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as an ``.npz`` file, atomically and byte for byte reproducibly (np.savez stamps the clock)."""
    with atomic_path(path) as scratch, zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
        for name in sorted(arrays):
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(arrays[name]), allow_pickle=False)


def digest(path: str | Path, algorithm: str = "sha256") -> str:
    """Return the hexadecimal checksum of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def canonical(settings: "Json | Mapping[str, object]") -> str:
    """Return JSON with sorted keys and no spaces, so that equal settings give equal text. Raises ValueError for NaN and
    infinity."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
