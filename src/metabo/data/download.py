"""Download the published archives: several addresses, resumable, checked against a pinned checksum.

Pooch does the bookkeeping (known hash, atomic move into place); the transfer itself is `metabo.data.transfer`, which
pooch calls as its downloader.
"""

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path

from metabo.data.transfer import Resumable, Unwritable, fault
from metabo.errors import ConfigError, DataError, printable, unknown, without_passwords
from metabo.plan.schema import violations
from metabo.plan.yaml_files import read_yaml

LIMIT = 1 << 35
"""Bytes (32 GiB) that a file of unpublished size may have: a server that sends without end must not fill the disk."""


def archives(table: Path, schema: Path) -> dict[str, dict[str, str]]:
    """Read the table of downloadable archives: name -> row. Raises ConfigError naming the first row that is wrong."""
    with open(table, newline="") as stream:
        rows = list(csv.DictReader(stream, restkey="(cells beyond the header)"))
    rules = read_yaml(schema)
    for row in rows:
        if wrong := violations(row, rules, f"row '{row.get('name')}',"):
            raise ConfigError(f"{table}: {'; '.join(wrong)}")
    return {row["name"]: row for row in rows}


def require_rows(table: Path, rows: Mapping[str, object], named: Mapping[str, str | None]) -> None:
    """Raise ConfigError for a benchmark that is read from an archive without a row in the table. `named`: the archive
    of each benchmark, if it has one."""
    for benchmark, archive in named.items():
        if archive is not None and archive not in rows:
            raise ConfigError(
                f"BENCHMARKS key '{benchmark}.dataset': {unknown('archive', archive, rows)}; add a row to {table}, or "
                "leave the key out if nothing is downloaded"
            )


def fetch(
    name: str,
    urls: list[str],
    checksum: str,
    out: str | Path,
    size: int | None = None,
    retries: int = 4,
    pause: float = 2.0,
    progress: bool = True,
    limit: int = LIMIT,
) -> Path:
    """Download `name` to `out` from the first address that gives the right bytes.

    `checksum` is "md5:..." or "sha256:...", `size` the number of bytes, if published, else `limit` is the most that is
    taken; `retries` counts attempts in a row that bring next to nothing, `pause` is the first wait in seconds (doubled
    each time, at most a minute). A file that is already correct is left alone; one with a wrong checksum or size is set
    aside as ``<file>.corrupt``. Messages leave out passwords, which an address may have (https://user:password@host/).

    Raises DataError, which lists what each address did, or says that the file cannot be written here.
    """
    import pooch

    out = Path(out)
    algorithm, expected = _parse_checksum(name, checksum)
    if not urls:
        raise ConfigError(f"no address is known for '{name}'; add one to benchmarks.{name}.mirrors")
    for url in urls:
        if not re.match(r"(https?|file)://", url):
            shown = _shown(url)
            raise ConfigError(f"'{name}': address '{shown}' must start with http://, https:// or file://")
    part = out.with_name(f"{out.name}.part")
    problems = []
    try:
        _make_folder(out.parent)
        if out.exists() and fault(out, algorithm, expected, size):
            os.replace(out, out.with_name(f"{out.name}.corrupt"))
        for url in urls:
            shown = _shown(url)
            transfer = Resumable(url, part, algorithm, expected, size, size or limit, retries, pause, progress)
            try:  # pooch writes into its log which address it is given
                pooch.retrieve(shown, f"{algorithm}:{expected}", out.name, out.parent.resolve(), downloader=transfer)
            except Unwritable:
                raise
            except DataError as error:
                problems.append(f"  {shown}: {without_passwords(str(error))}")
                continue
            out.chmod(0o644)
            return out
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error}); check the disk") from error
    fix = f"check the network, or give another address in benchmarks.{name}.mirrors (file:///... for a local copy)"
    raise DataError(f"{out}: '{name}' could not be downloaded; {fix}. Tried:", *problems)


def _shown(url: str) -> str:
    return printable(without_passwords(url), 200)


def _parse_checksum(name: str, checksum: str) -> tuple[str, str]:
    match = re.fullmatch(r"(md5):([0-9a-f]{32})|(sha256):([0-9a-f]{64})", checksum)
    if not match:
        raise ConfigError(f"'{name}': checksum '{checksum}' must be md5: or sha256: and its hexadecimal digits")
    return (match[1], match[2]) if match[1] else (match[3], match[4])


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made ({error.strerror}); check its permissions") from error
