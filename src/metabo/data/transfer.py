"""The transfer of one file from one address, resumed where it stopped: a ``.part`` file lies beside the target, and the
rest is asked for with an HTTP Range request.

A server is not trusted: it may send more than the file has, drip, change the file on the way, or send something else.
"""

import base64
import http.client
import netrc
import os
import re
import socket
import stat
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from metabo.data.answer_heads import opener
from metabo.errors import DataError, printable, without_passwords
from metabo.records.files import digest

if TYPE_CHECKING:  # imported when a bar is shown
    from tqdm import tqdm

CHUNK = 1 << 18
TIMEOUT_S = 60.0
LONGEST_PAUSE_S = 60.0
SLOWEST = 1024
"""Bytes a second that an address must bring, on average over `WINDOW_S`; below that, the next one is tried."""
WINDOW_S = 60.0
PROGRESS = 1 << 16
"""Bytes that an attempt must bring to count as a success: else attempts of one byte each would go on for ever."""
GONE = (401, 403, 404, 410)  # asking again will not help; the next address may


class Unwritable(DataError):
    """The file cannot be written here, whatever its address."""


class _Interrupted(Exception):
    """A transfer that may succeed if asked again."""


@dataclass
class Resumable:
    """A pooch downloader of one address, called ``transfer(url, output_file, pooch)``, whose `url` is for pooch's log.

    `size`: bytes of the file, None if unknown; `limit`: the most that are taken. Raises DataError when this address
    cannot deliver, `Unwritable` when no other could.
    """

    url: str
    part: Path
    algorithm: str
    expected: str
    size: int | None
    limit: int
    retries: int
    pause: float
    progress: bool
    validator: str = field(default="", init=False)
    """What the server calls the version of the file (If-Range)."""
    joined: bool = field(default=False, init=False)
    """The part file has bytes of several answers, which need not be of one version."""

    def __call__(self, url: str, output_file: str, pooch: object = None) -> None:
        """Complete the ``.part`` file, check it, and hand it over as `output_file`."""
        self.joined = self._size() > 0
        self._complete()
        if self.joined and self._fault():
            self.part.unlink()  # once more, all of it at once
            self._complete()
        if wrong := self._fault():
            aside = self.part.with_suffix(".corrupt")
            os.replace(self.part, aside)
            raise DataError(
                f"{self._target()}: {wrong}; the bad file is set aside as {aside}. Delete it and try again; if it "
                "persists, the address serves another file"
            )
        os.replace(self.part, output_file)

    def _complete(self) -> None:
        """Ask again, from where the last attempt stopped, until the whole body is in the ``.part`` file."""
        failures, farthest = 0, self._size()
        while True:
            try:
                return self._attempt()
            except _Interrupted as error:
                failures = 0 if self._size() >= farthest + PROGRESS else failures + 1
                farthest = max(farthest, self._size())
                if failures > self.retries:
                    kept = f"; {self._size()} bytes are kept to resume from" if self._size() else ""
                    raise DataError(f"{error}, gave up after {self.retries} retries without progress{kept}") from error
                time.sleep(min(self.pause * 2 ** max(failures - 1, 0), LONGEST_PAUSE_S))

    def _fault(self) -> str:
        return fault(self.part, self.algorithm, self.expected, self.size)

    def _target(self) -> Path:
        return self.part.with_suffix("")

    def _size(self) -> int:
        """Return the bytes that there are. Raises Unwritable for a part file that is not one of ours."""
        try:
            found = os.lstat(self.part)
        except FileNotFoundError:
            return 0
        if not stat.S_ISREG(found.st_mode):
            what = "a link" if stat.S_ISLNK(found.st_mode) else "no file"
            raise Unwritable(f"{self.part}: is {what}, and a download writes there; delete it")
        return found.st_size

    def _attempt(self) -> None:
        if self.url.startswith("file://"):
            return self._copy()
        have = self._size()
        try:
            with opener(WINDOW_S).open(self._request(have), timeout=TIMEOUT_S) as response:
                self._receive(response, have)
        except urllib.error.HTTPError as error:
            if error.code == 416 and have:  # nothing lies beyond what we have: it is complete, or of another file
                if digest(self.part, self.algorithm) == self.expected:
                    return
                self.part.unlink()
            if error.code in GONE:
                raise DataError(f"the server says {error.code} {_said(error.reason)}") from error
            raise _Interrupted(f"the server says {error.code} {_said(error.reason)}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, socket.gaierror):
                raise DataError(
                    f"its host name cannot be resolved ({error.reason.strerror}); is there a network?"
                ) from error
            raise _Interrupted(f"connection failed ({_said(error.reason)})") from error
        except (http.client.HTTPException, OSError) as error:  # what is local has been told as Unwritable
            raise _Interrupted(f"connection failed ({_said(error) or type(error).__name__})") from error
        except ValueError as error:  # a port, length or redirect that is none
            raise DataError(f"its address, or what the server says, cannot be understood ({_said(error)})") from error

    def _request(self, have: int) -> urllib.request.Request:
        url, login = _login(self.url)
        request = urllib.request.Request(url, headers={"User-Agent": "metabo", "Accept-Encoding": "identity"})
        if login:  # not for where the server sends us on to
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
        if have:
            request.add_header("Range", f"bytes={have}-")
            if self.validator:  # of another version the server then sends all
                request.add_header("If-Range", self.validator)
        return request

    def _receive(self, response: http.client.HTTPResponse, have: int) -> None:
        """Append the body to the part file, or start it again if the server sends the file from its beginning."""
        start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        resumed = response.status == 206 and start is not None and int(start[1]) == have
        validator = _validator(response)
        changed = resumed and bool(self.validator) and validator not in ("", self.validator)
        if response.status == 206 and (not resumed or changed):
            self.part.unlink(missing_ok=True)
            self.validator = ""
            sent = f"the range {_said(response.headers.get('Content-Range'))}, not {have}-"
            raise _Interrupted("the file changed on the way" if changed else f"the server sent {sent}")
        self.validator = validator
        self.joined = resumed and (self.joined or have > 0)
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        self._require_room(total or 0)
        pace = _Pace(time.monotonic)
        with self._open("ab" if resumed else "wb") as sink, self._bar(total, have) as bar:
            while chunk := response.read1(CHUNK):
                have += len(chunk)
                self._require_room(have)
                with self._writing():
                    sink.write(chunk)
                bar.update(len(chunk))
                pace.take(len(chunk))
            with self._writing():
                sink.flush()
        if total is not None and self._size() < total:
            raise _Interrupted(f"truncated: got {self._size()} of {total} bytes")

    def _require_room(self, size: int) -> None:
        """Raise DataError if there are, or are to come, more bytes than the file has."""
        if size > self.limit:
            self.part.unlink(missing_ok=True)
            most = "which is the size of the file" if self.size is not None else "the most that is taken"
            raise DataError(f"the server sends more than {self.limit} bytes, {most}; it serves another file")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Tell a fault of the disk from one of the network."""
        try:
            yield
        except OSError as error:
            raise Unwritable(f"{self.part}: cannot be written ({error.strerror}); check the disk") from error

    def _open(self, mode: str) -> IO[bytes]:
        """Open the part file without following a link that was put there since it was looked at."""
        with self._writing():
            return open(self.part, mode, opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o644))

    def _bar(self, total: int | None, have: int) -> "tqdm[NoReturn]":
        from tqdm import tqdm

        label = self._target().name
        hide = not self.progress
        return tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=label, file=sys.stderr, disable=hide)

    def _copy(self) -> None:
        source = urllib.request.url2pathname(self.url.removeprefix("file://"))
        self._size()  # refuses a link
        self.joined, have = False, 0
        try:
            with open(source, "rb") as stream, self._open("wb") as sink:
                while chunk := stream.read(CHUNK):
                    have += len(chunk)
                    self._require_room(have)
                    with self._writing():
                        sink.write(chunk)
                with self._writing():
                    sink.flush()
        except (OSError, ValueError) as error:
            raise DataError(f"{source}: cannot be copied ({getattr(error, 'strerror', None) or error})") from error


class _Pace:
    """How fast bytes arrive. `take` raises DataError if they were too slow throughout a window."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.begun, self.came = clock, clock(), 0

    def take(self, count: int) -> None:
        self.came += count
        if (passed := self.clock() - self.begun) < WINDOW_S:
            return
        if self.came < SLOWEST * passed:
            raise DataError(f"too slow: {self.came} bytes came in {passed:.0f} s, fewer than {SLOWEST} a second")
        self.begun, self.came = self.clock(), 0


def _said(words: object) -> str:
    """Shorten a server's message, which can be of any length, after removing secrets, which a cut could hide."""
    return printable(without_passwords(str(words)), 150)


def _validator(response: http.client.HTTPResponse) -> str:
    """Return what names the version of a file exactly, "" if nothing does."""
    tag = response.headers.get("ETag", "")
    return "" if tag.startswith("W/") else tag or response.headers.get("Last-Modified", "")


def _login(url: str) -> tuple[str, str]:
    """Return an address without user and password, and these as "user:password": from the address or, for https, from
    the user's .netrc ("": there are none)."""
    parts = urllib.parse.urlsplit(url)
    user, found, host = parts.netloc.rpartition("@")
    if found:
        return parts._replace(netloc=host).geturl(), urllib.parse.unquote(user)
    if parts.scheme != "https" or not parts.hostname:
        return url, ""
    try:
        hosts = netrc.netrc(os.environ.get("NETRC")).hosts
    except (OSError, netrc.NetrcParseError):
        return url, ""
    user, _, password = hosts.get(parts.hostname, ("", "", ""))
    return url, f"{user}:{password}" if password else ""


def fault(path: Path, algorithm: str, expected: str, size: int | None) -> str:
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
