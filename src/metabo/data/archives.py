"""Read members of downloaded archives without ever writing them to disk.

Archives are untrusted: a name that points outside, a link or a device is refused although nothing is extracted, since
an archive with such a member is not the published one. Its contents may not be larger than `most` bytes: a few
kilobytes can hold more zeros than the machine has memory for.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from metabo.errors import DataError, printable

T = TypeVar("T")
Stream = IO[bytes]
"""Decompressed bytes of a member."""
TIMES, LEAST, MOST = 100, 1 << 26, 1 << 34
"""What an archive holds may be this many times as large as the archive, at least 64 MiB and at most 16 GiB. Published
JSON and CSV are at most some 30 times as large as their archives, a bomb 1,000 times."""
CHUNK = 1 << 20
SHOWN = 150
"""Letters of a member's name in a message."""
SQUEEZED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open, b"\x5d\0\0\x80": lzma.open}
"""How a compressed tar begins, and what opens it."""
LOCKED, DESCRIBED = 0x1, 0x8
"""Flags of a zip's member: it needs a password; its checksum and sizes stand behind its bytes."""
HEADER = struct.Struct("<4s5H3L2H")
"""Of a zip's member: magic, version, flags, method, time, date, checksum, packed and plain size, lengths of name and
extra fields."""
DESCRIPTORS = (struct.Struct("<3L"), struct.Struct("<L2Q"))
"""Checksum, packed and plain size behind a member; sizes of 8 bytes if one does not fit into 4."""
MAGIC, FOLLOWING = 4, (b"PK\x01\x02", b"PK\x03\x04")
"""Bytes of a magic number, and those of the directory and of a member."""
NOTHING = (0, 0, 0)
LARGE, LARGE_FIELD = 0xFFFFFFFF, 1
"""A size that stands in an extra field instead, and that field."""
PUBLISHED = "this is not the published archive: delete it and check where it came from"


def read_members(path: str | Path, names: tuple[str, ...], parse: Callable[[str, Stream], T]) -> dict[str, T]:
    """Parse the members called `names` (last part of the path, with or without ``.gz``) of a tar.gz or zip archive.

    `parse(member, stream)` gets the full member name and its decompressed bytes. Returns name -> parsed value. Raises
    DataError for a damaged, locked or overlarge archive, an unsafe, missing or duplicate member.
    """
    path = Path(path)
    found: dict[str, T] = {}
    room = _Room(path)
    seen: list[str] = []
    try:
        for member, stream in _told(path, _members(path, room)):
            seen.append(member)
            name = PurePosixPath(member).name.removesuffix(".gz")
            if name not in names:
                continue
            if name in found:
                raise DataError(
                    f"{path}: holds {name} twice, the second time as '{_shown(member)}'; get the published archive"
                )
            found[name] = parse(member, room.limited(member, stream))
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise _damaged(path, error) from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such archive; download it first (benchmarks.*.mirrors may name a copy)") from error
    except OSError as error:
        if error.errno is not None:
            raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions and the disk") from error
        # what gzip and bz2 say of bytes that are not theirs
        raise _damaged(path, error) from error
    missing = [name for name in names if name not in found]
    if missing:
        held = printable(", ".join(seen[:20]), 2 * SHOWN) or "nothing"
        raise DataError(f"{path}: lacks {', '.join(missing)}; holds {held}")
    return found


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path}: damaged archive ({_shown(str(error) or type(error).__name__)}); delete it and download it again"
    )


def _shown(text: str) -> str:
    return printable(text, SHOWN)


def _told(path: Path, members: Iterator[tuple[str, Stream]]) -> Iterator[tuple[str, Stream]]:
    """Report errors of tarfile and zipfile on nonsensical headers as damage. Errors of a parser do not pass here."""
    try:
        yield from members
    except (ArithmeticError, LookupError, RecursionError, ValueError, struct.error) as error:
        raise _damaged(path, error) from error


def arrays_file(content: bytes) -> io.BytesIO:
    """Return the bytes of an ``.npz`` to be loaded. Raises DataError if its arrays are larger than `LEAST`, BadZipFile
    for bytes that are not a zip."""
    file = io.BytesIO(content)
    with zipfile.ZipFile(file) as arrays:
        if sum(info.file_size for info in arrays.infolist()) > LEAST:
            raise DataError(f"its arrays have more than {LEAST} bytes; {PUBLISHED}")
    file.seek(0)
    return file


class _Room:
    """How much an archive, and each compressed member of it, may hold. Raises DataError."""

    def __init__(self, path: Path) -> None:
        self.path, self.held = path, 0
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for without end
            raise DataError(f"{path}: is no file but a pipe or a device; give the archive itself")
        self.most = min(max(TIMES * path.stat().st_size, LEAST), MOST) if path.exists() else LEAST

    def add(self, member: str, size: int) -> None:
        """Count a member by the size that the archive states. One below zero would lead back to where it stands."""
        if size < 0:
            raise DataError(f"{self.path}: member '{_shown(member)}' has {size} bytes; {PUBLISHED}")
        self.held += size
        self.require(member, self.held)

    def require(self, member: str, size: int) -> None:
        if size > self.most:
            raise DataError(
                f"{self.path}: holds more than {self.most} bytes, at member '{_shown(member)}'; {PUBLISHED}"
            )

    def limited(self, member: str, stream: IO[bytes]) -> Stream:
        """Return the bytes of a member, decompressed, and no more than there is room for."""
        plain = gzip.GzipFile(fileobj=stream) if member.endswith(".gz") else stream
        return io.BufferedReader(_Limited(self, member, plain))


class _Limited(io.RawIOBase):
    """A stream that counts what is read of it."""

    def __init__(self, room: _Room, member: str, stream: IO[bytes] | gzip.GzipFile) -> None:
        self.room, self.member, self.stream, self.count = room, member, stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        found = self.stream.read(len(buffer))
        self.count += len(found)
        self.room.require(self.member, self.count)
        buffer[: len(found)] = found
        return len(found)

    def readall(self) -> bytes:
        parts = []
        while found := self.stream.read(CHUNK):
            self.count += len(found)
            self.room.require(self.member, self.count)
            parts.append(found)
        return b"".join(parts)


class _Tape:
    """The bytes of a tar, with no more of names, extended headers and padding than there is room for: tarfile reads
    those into memory, and skips what holes of a sparse file hide, however long they say they are."""

    def __init__(self, room: _Room, stream: IO[bytes]) -> None:
        self.room, self.stream, self.tell = room, stream, stream.tell

    def read(self, size: int) -> bytes:
        if size < 0:
            raise tarfile.ReadError("a size is below zero")
        self.require(self.tell() + size)
        return self.stream.read(size)

    def seek(self, position: int) -> int:
        self.require(position)
        return self.stream.seek(position)

    def require(self, position: int) -> None:
        if position > 2 * self.room.most + CHUNK:
            raise DataError(f"{self.room.path}: has headers that are larger than what it may hold; {PUBLISHED}")


def _members(path: Path, room: _Room) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, stream) of each regular file once its name and kind are checked; a stream lives until the next."""
    with open(path, "rb") as file:
        start = file.read(tarfile.BLOCKSIZE)
    if not _begins_tar(start) and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                _refuse(path, info.filename, special=kind not in (0, stat.S_IFREG, stat.S_IFDIR))
                room.add(info.filename, info.file_size)
                if info.flag_bits & LOCKED:
                    raise DataError(f"{path}: member '{_shown(info.filename)}' needs a password; {PUBLISHED}")
            with open(path, "rb") as file:
                for info in archive.infolist():
                    if not info.is_dir():
                        _require_agreement(file, info, os.path.getsize(path))
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as stream:
                        yield info.filename, stream
        return
    squeezed = next((opener for magic, opener in SQUEEZED.items() if start.startswith(magic)), None)
    with open(path, "rb") as file, squeezed(file) if squeezed else file as plain:
        tape = _Tape(room, plain)
        with tarfile.open(fileobj=tape, mode="r:") as archive:
            for member in archive:
                _refuse(path, member.name, special=not (member.isfile() or member.isdir()))
                room.add(member.name, member.size)
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is not None:
                    yield member.name, stream
        while squeezed and tape.read(CHUNK):  # its checksum stands behind the last member
            pass


def _require_agreement(file: IO[bytes], info: zipfile.ZipInfo, size: int) -> None:
    """Raise BadZipFile if a zip's directory states another checksum or size of a member than stands next to the member:
    zipfile believes the directory, in which twelve zeros make a member look empty and sound. `size`: of the archive."""
    if not 0 <= info.header_offset <= size - HEADER.size or not 0 <= info.compress_size <= size:
        raise zipfile.BadZipFile(f"'{info.filename}' is beyond the end")
    file.seek(info.header_offset)
    _, _, flags, _, _, _, checksum, packed, plain, name, extra = HEADER.unpack(file.read(HEADER.size))
    file.seek(name, io.SEEK_CUR)
    large = iter(_large_sizes(file.read(extra)))
    plain, packed = (next(large, size) if size == LARGE else size for size in (plain, packed))
    found = {(checksum, packed, plain)}
    if flags & DESCRIBED:
        file.seek(info.compress_size, io.SEEK_CUR)
        behind = file.read(MAGIC + DESCRIPTORS[-1].size + MAGIC)
        found -= {NOTHING}  # what stands where it is not known yet; some write what it is
        found |= set(_described(behind))
    if (info.CRC, info.compress_size, info.file_size) not in found:
        raise zipfile.BadZipFile(f"the directory and '{info.filename}' itself differ in checksum or size")


def _described(behind: bytes) -> Iterator[tuple[int, ...]]:
    """Yield checksum and sizes that the bytes behind a member may mean, with and without a magic number. Zeros mean an
    empty member only if the next one follows: its own content may be zeros. Some write nothing behind those."""
    if behind.startswith(FOLLOWING):
        yield NOTHING
    for start in {0, MAGIC if behind.startswith(b"PK\x07\x08") else 0}:
        for kind in DESCRIPTORS:
            if len(behind) >= (end := start + kind.size):
                found = kind.unpack_from(behind, start)
                if any(found) or behind.startswith(FOLLOWING, end):
                    yield found


def _large_sizes(extra: bytes) -> tuple[int, ...]:
    """Return the sizes in the extra fields of a member that has at least 4 GiB, or might have had."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == LARGE_FIELD and length % 8 == 0 and len(extra) >= 4 + length:
            return struct.unpack_from(f"<{length // 8}Q", extra, 4)
        extra = extra[4 + length :]
    return ()


def _begins_tar(start: bytes) -> bool:
    """Tell a tar from a zip, which has its directory at the end, so a tar that ends with an .npz looks like one; no zip
    looks like a tar."""
    if start.startswith(tuple(SQUEEZED)):
        return True
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _refuse(path: Path, member: str, special: bool) -> None:
    name, shown = member.replace("\\", "/"), _shown(member)
    if special:
        raise DataError(f"{path}: member '{shown}' is a link or a device, not a plain file; {PUBLISHED}")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        raise DataError(f"{path}: member '{shown}' points outside the archive; {PUBLISHED}")
