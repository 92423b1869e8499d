"""Read members of downloaded archives without ever writing them to disk.

Archives are untrusted: a name that points outside, a link or a device is refused although nothing is extracted, since
an archive with such a member is not the published one.
"""

import gzip
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from metabo.errors import DataError

T = TypeVar("T")
Stream = IO[bytes] | gzip.GzipFile
"""Decompressed bytes of a member."""


def read_members(path: str | Path, names: tuple[str, ...], parse: Callable[[str, Stream], T]) -> dict[str, T]:
    """Parse the members called `names` (last part of the path, with or without ``.gz``) of a tar.gz or zip archive.

    `parse(member, stream)` gets the full member name and its decompressed bytes. Returns name -> parsed value. Raises
    DataError for a damaged archive, an unsafe, missing or doubled member.
    """
    path = Path(path)
    found: dict[str, T] = {}
    seen: list[str] = []
    try:
        for member, stream in _members(path):
            seen.append(member)
            name = PurePosixPath(member).name.removesuffix(".gz")
            if name not in names:
                continue
            if name in found:
                raise DataError(f"{path}: holds {name} twice, the second time as '{member}'; get the published archive")
            found[name] = parse(member, gzip.GzipFile(fileobj=stream) if member.endswith(".gz") else stream)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DataError(f"{path}: damaged archive ({error}); delete it and download it again") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such archive; download it first (benchmarks.*.mirrors may name a copy)") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(f"{path}: lacks {', '.join(missing)}; holds {', '.join(seen[:20]) or 'nothing'}")
    return found


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, stream) of each regular file once its name and kind are checked; a stream lives until the next."""
    # A zip has its directory at the end, so a tar that ends with an .npz looks like one; no zip looks like a tar.
    if not tarfile.is_tarfile(path) and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                _refuse(path, info.filename, special=kind not in (0, stat.S_IFREG, stat.S_IFDIR))
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as stream:
                        yield info.filename, stream
        return
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            _refuse(path, member.name, special=not (member.isfile() or member.isdir()))
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield member.name, stream


def _refuse(path: Path, member: str, special: bool) -> None:
    name = member.replace("\\", "/")
    fix = "this is not the published archive: delete it and check where it came from"
    if special:
        raise DataError(f"{path}: member '{member}' is a link or a device, not a plain file; {fix}")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        raise DataError(f"{path}: member '{member}' points outside the archive; {fix}")
