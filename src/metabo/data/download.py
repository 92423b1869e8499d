"""Download the published archives: several addresses, resumable, checked against a pinned checksum.

Pooch does the bookkeeping (known hash, atomic move into place); the transfer itself is `Resumable`, which pooch calls
as its downloader: it keeps a ``.part`` file beside the target and asks for the rest with an HTTP Range request.
"""

import csv
import http.client
import os
import re
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from metabo.errors import ConfigError, DataError
from metabo.plan.schema import violations
from metabo.plan.yaml_files import read_yaml
from metabo.records.files import digest

if TYPE_CHECKING:  # imported when a bar is shown
    from tqdm import tqdm

CHUNK = 1 << 18
TIMEOUT_S = 60.0
LONGEST_PAUSE_S = 60.0
GONE = (401, 403, 404, 410)  # asking again will not help; the next address may


def archives(table: Path, schema: Path) -> dict[str, dict[str, str]]:
    """Read the table of downloadable archives: name -> row. Raises ConfigError naming the first row that is wrong."""
    with open(table, newline="") as stream:
        rows = list(csv.DictReader(stream, restkey="(cells beyond the header)"))
    rules = read_yaml(schema)
    for row in rows:
        if wrong := violations(row, rules, f"row '{row.get('name')}',"):
            raise ConfigError(f"{table}: {'; '.join(wrong)}")
    return {row["name"]: row for row in rows}


def fetch(
    name: str,
    urls: list[str],
    checksum: str,
    out: str | Path,
    size: int | None = None,
    retries: int = 4,
    pause: float = 2.0,
    progress: bool = True,
) -> Path:
    """Download `name` to `out` from the first address that gives the right bytes.

    `checksum` is "md5:..." or "sha256:...", `size` the number of bytes, if published; `retries` counts attempts in a
    row without a new byte, `pause` is the first wait in seconds (doubled each time, at most a minute). A file that is
    already right is left alone; one with a wrong checksum or size is set aside as ``<file>.corrupt``. Raises DataError
    that lists what each address did.
    """
    import pooch

    out = Path(out)
    algorithm, expected = _parse_checksum(name, checksum)
    if not urls:
        raise ConfigError(f"no address is known for '{name}'; add one to benchmarks.{name}.mirrors")
    for url in urls:
        if not re.match(r"(https?|file)://", url):
            raise ConfigError(f"'{name}': address '{url}' must start with http://, https:// or file://")
    _make_folder(out.parent)
    if out.exists() and _fault(out, algorithm, expected, size):
        os.replace(out, out.with_name(out.name + ".corrupt"))
    problems = []
    for url in urls:
        transfer = Resumable(out.with_name(out.name + ".part"), algorithm, expected, size, retries, pause, progress)
        try:
            pooch.retrieve(
                url, f"{algorithm}:{expected}", fname=out.name, path=out.parent.resolve(), downloader=transfer
            )
        except DataError as error:
            problems.append(f"  {url}: {error}")
            continue
        out.chmod(0o644)
        return out
    fix = f"check the network, or give another address in benchmarks.{name}.mirrors (file:///... for a local copy)"
    raise DataError("\n".join([f"{out}: '{name}' could not be downloaded; {fix}. Tried:", *problems]))


@dataclass
class Resumable:
    """A pooch downloader: ``transfer(url, output_file, pooch)``; raises DataError when this address cannot deliver."""

    part: Path
    algorithm: str
    expected: str
    size: int | None
    retries: int
    pause: float
    progress: bool

    def __call__(self, url: str, output_file: str, pooch: object = None) -> None:
        """Complete the ``.part`` file, check it, and hand it over as `output_file`."""
        inherited = self._size() > 0
        self._complete(url)
        if inherited and self._fault():
            self.part.unlink()  # the kept beginning may come from another file: once more, all from this address
            self._complete(url)
        if fault := self._fault():
            aside = self.part.with_suffix(".corrupt")
            os.replace(self.part, aside)
            raise DataError(
                f"{self._target()}: {fault}; the bad file is set aside as {aside}. Delete it and try again; if it "
                "persists, the address serves another file"
            )
        os.replace(self.part, output_file)

    def _complete(self, url: str) -> None:
        """Ask again, from where the last attempt stopped, until the whole body is in the ``.part`` file."""
        failures, farthest = 0, self._size()
        while True:
            try:
                return self._attempt(url)
            except _Interrupted as error:
                failures = 0 if self._size() > farthest else failures + 1
                farthest = max(farthest, self._size())
                if failures > self.retries:
                    kept = f"; {self._size()} bytes are kept to resume from" if self._size() else ""
                    raise DataError(f"{error}, gave up after {self.retries} retries without progress{kept}") from error
                time.sleep(min(self.pause * 2 ** max(failures - 1, 0), LONGEST_PAUSE_S))

    def _fault(self) -> str:
        return _fault(self.part, self.algorithm, self.expected, self.size)

    def _target(self) -> Path:
        return self.part.with_suffix("")

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _attempt(self, url: str) -> None:
        if url.startswith("file://"):
            return self._copy(url)
        have = self._size()
        request = urllib.request.Request(url, headers={"User-Agent": "metabo", "Accept-Encoding": "identity"})
        if have:
            request.add_header("Range", f"bytes={have}-")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                self._receive(response, have)
        except urllib.error.HTTPError as error:
            if (
                error.code == 416 and have
            ):  # nothing lies beyond what we have: it is either complete or not a part of this file
                if digest(self.part, self.algorithm) == self.expected:
                    return
                self.part.unlink()
            if error.code in GONE:
                raise DataError(f"the server says {error.code} {error.reason}") from error
            raise _Interrupted(f"the server says {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, socket.gaierror):
                raise DataError(
                    f"its host name cannot be resolved ({error.reason.strerror}); is there a network?"
                ) from error
            raise _Interrupted(f"connection failed ({error.reason})") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            raise _Interrupted(f"connection failed ({error})") from error

    def _receive(self, response: http.client.HTTPResponse, have: int) -> None:
        """Append the body to the part file, or start it again if the server ignored the Range request."""
        start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        resumed = response.status == 206 and start is not None and int(start[1]) == have
        if response.status == 206 and not resumed:
            self.part.unlink(missing_ok=True)
            raise _Interrupted(f"the server sent the range {response.headers.get('Content-Range')}, not {have}-")
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with open(self.part, "ab" if resumed else "wb") as sink, self._bar(total, have) as bar:
            while chunk := response.read(CHUNK):
                sink.write(chunk)
                bar.update(len(chunk))
        if total is not None and self._size() < total:
            raise _Interrupted(f"truncated: got {self._size()} of {total} bytes")

    def _bar(self, total: int | None, have: int) -> "tqdm[NoReturn]":
        from tqdm import tqdm

        label = self._target().name
        hide = not self.progress
        return tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=label, file=sys.stderr, disable=hide)

    def _copy(self, url: str) -> None:
        source = urllib.request.url2pathname(url.removeprefix("file://"))
        try:
            shutil.copyfile(source, self.part)
        except OSError as error:
            raise DataError(f"{source}: cannot be copied ({error.strerror})") from error


class _Interrupted(Exception):
    """A transfer that may succeed if asked again."""


def _fault(path: Path, algorithm: str, expected: str, size: int | None) -> str:
    """Say what is wrong with the bytes of a file, "" if they are the expected ones."""
    if size is not None and path.stat().st_size != size:
        return f"wrong size: expected {size} bytes, found {path.stat().st_size}{_web_page(path)}"
    found = digest(path, algorithm)
    return "" if found == expected else f"wrong {algorithm}: expected {expected}, found {found}{_web_page(path)}"


def _web_page(path: Path) -> str:
    """Say so if a file is HTML: what many servers send, with status 200, in place of a file that has moved."""
    with open(path, "rb") as stream:
        start = stream.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return " (it is a web page, not the file)" if start.startswith((b"<!doctype html", b"<html")) else ""


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
