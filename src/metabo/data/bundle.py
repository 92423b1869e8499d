"""Data sets that are published as many files: fetched one by one, each against its checksum, and packed as one archive.

The archive is the same, byte for byte, wherever it is packed, so that it has a pinned checksum like any other.
"""

import io
import os
import re
import shutil
import tarfile
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from metabo.data import published
from metabo.data.download import LIMIT, fetch
from metabo.errors import ConfigError, DataError
from metabo.records.files import atomic_path, digest

LOCAL = "METABO_DATA"
"""Environment variable: a folder with copies of published data, tried before any address."""


def manifest(path: Path) -> dict[str, str]:
    """Read a list of checksums as sha256sum writes it: file name -> hexadecimal digits. Raises ConfigError, which names
    the first line that is not one."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); it lists the files of a data set") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        match = re.fullmatch(r"([0-9a-f]{64}) [ *]([^/\\]+)", line)
        if not match or match[2] in found:
            raise ConfigError(f"{path}, line {number}: {line!r} must be a SHA-256, two spaces and a new file name")
        found[match[2]] = match[1]
    if not found:
        raise ConfigError(f"{path}: lists no file")
    return found


def members_of(name: str) -> tuple[str, ...]:
    """Return the names of the files of a data set, from its list in the project."""
    return tuple(manifest(published.FOLDER / f"{name}.sha256"))


def require_same(archive: Path, what: str, inputs: Mapping[str, np.ndarray]) -> None:
    """Raise DataError unless all files have the same configurations; `what`: where in a file these stand."""
    first, *others = inputs
    for file in others:
        if not np.array_equal(inputs[file], inputs[first]):
            raise DataError(
                f"{archive}: the configurations ({what}) in {file} are not those in {first}; all files must have the "
                "same"
            )


@contextmanager
def naming(archive: Path, file: str) -> Iterator[None]:
    """Put archive and file before the message of a DataError raised in the block, and the remedy after it."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{archive}: {file}: {error}; get the published file") from error


def local_copies(name: str, file: str, many: bool) -> list[str]:
    """Return the address of a data set below the folder that METABO_DATA names, if it has a copy: of its own `file`,
    or, for `many` files, of a folder called `name`. Raises ConfigError if METABO_DATA names no folder."""
    if not (root := os.environ.get(LOCAL)):
        return []
    if not Path(root).is_dir():
        raise ConfigError(f"environment variable {LOCAL}: '{root}' is no folder; name one that has copies of the data")
    copy = Path(root).resolve() / (name if many else file)
    there = copy.is_dir() if many else copy.is_file()
    return [copy.as_uri()] if there else []


def fetch_bundle(
    name: str,
    folders: list[str],
    members: Mapping[str, str],
    checksum: str,
    out: str | Path,
    retries: int = 4,
    pause: float = 2.0,
    progress: bool = True,
    limit: int = LIMIT,
) -> Path:
    """Fetch every one of `members` (file name -> SHA-256) from the first of `folders` that has it, and pack them.

    Files that have arrived stay next to `out`, in a folder ``<out>.parts``, until all have: a run that is killed, or
    that ends at a missing file, goes on from there. A correct archive is left alone. `limit`: the most bytes that are
    taken of a file. Raises DataError, which names the file and what each address did (`metabo.data.download.fetch`),
    ConfigError where no address is known.
    """
    out = Path(out)
    if out.is_file() and f"sha256:{digest(out)}" == checksum:
        return out
    parts = out.with_name(f"{out.name}.parts")
    for member, expected in members.items():
        addresses = [f"{folder.rstrip('/')}/{urllib.parse.quote(member)}" for folder in folders]
        fetch(name, addresses, f"sha256:{expected}", parts / member, None, retries, pause, progress, limit)
    with atomic_path(out) as scratch:
        pack({member: parts / member for member in members}, scratch)
        if (found := f"sha256:{digest(scratch)}") != checksum:
            raise DataError(
                f"{out}: its files are the listed ones, but the archive of them has {found}, not {checksum}; the row "
                f"'{name}' of workflow/datasets.csv and its list of files do not belong together"
            )
    shutil.rmtree(parts)
    return out


def pack(files: Mapping[str, Path], out: Path) -> None:
    """Write files as an uncompressed tar, in the order of their names, without clocks, owners or permissions."""
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            content = files[name].read_bytes()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
