"""Servers that misbehave, on this machine, behind `metabo.data.download.fetch`: alone, or before one that serves
the file, which must then be there."""

import contextlib
import hashlib
import io
import logging
import os
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple
from unittest import mock

import numpy as np
import pooch

from metabo.data import download, transfer
from metabo.errors import MetaboError
from tests.adversary.judge import Attempt

SECRET = "s3cret"
RETRIES = 2
"""Attempts in a row that may bring next to nothing: a small file that breaks off, and then has changed, takes both."""
MADE = {"x.zip", "x.zip.part", "x.zip.corrupt"}
"""What a download may leave in its folder."""


class Request(NamedTuple):
    """What is asked for: the bytes from `start` on (None: all) of the file `body`, the `seen`-th time from 0 on."""

    path: str
    start: int | None
    seen: int
    body: bytes


Answer = Callable[[Request], Iterator[bytes]]


class Tried(NamedTuple):
    """How the first address answers, how the try ends if it is alone and with a good one behind it, and the files
    that lie there before, below the folder of the download: contents, or what makes them."""

    what: str
    answer: Answer
    alone: Literal["value", "refusal", "either"] = "refusal"
    behind: Literal["value", "refusal", "either"] = "value"
    there: Callable[[Path, bytes], object] = lambda folder, body: None
    address: str = "http://{host}/first"
    sized: bool = True


def head(status: str = "200 OK", length: object = None, *more: str) -> bytes:
    """Return the head of an answer."""
    lines = [f"HTTP/1.1 {status}", "Connection: close", *more]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def good(ask: Request, *more: str) -> Iterator[bytes]:
    """Serve the file, from where it is asked for."""
    if ask.start is None:
        yield head("200 OK", len(ask.body), *more)
        yield ask.body
    elif ask.start >= len(ask.body):
        yield head("416 Range Not Satisfiable", 0, *more)
    else:
        size = len(ask.body)
        left = f"Content-Range: bytes {ask.start}-{size - 1}/{size}"
        yield head("206 Partial Content", size - ask.start, left, *more)
        yield ask.body[ask.start :]


def says(status: str, *more: str) -> Answer:
    """Answer each time with a status and no body."""
    return lambda ask: iter([head(status, 0, *more)])


def raw(content: bytes) -> Answer:
    """Answer each time with bytes that need not be HTTP."""
    return lambda ask: iter([content])


def first(answer: Answer, times: int = 1) -> Answer:
    """Answer well after some times."""
    return lambda ask: answer(ask) if ask.seen < times else good(ask)


def whole(change: Callable[[bytes], bytes], length: Callable[[bytes], object] = len, *more: str) -> Answer:
    """Send another body, whatever range is asked for."""
    return lambda ask: iter([head("200 OK", length(change(ask.body)), *more), change(ask.body)])


def half(ask: Request) -> Iterator[bytes]:
    """Break off half-way through the file."""
    yield head("200 OK", len(ask.body))
    yield ask.body[: len(ask.body) // 2]


def endless(ask: Request) -> Iterator[bytes]:
    yield head()
    while True:
        yield bytes(1 << 16)


def dripping(ask: Request) -> Iterator[bytes]:
    yield head("200 OK", len(ask.body))
    for at in range(len(ask.body)):
        time.sleep(0.02)
        yield ask.body[at : at + 1]


def dripping_head(ask: Request) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX: "
    while True:
        time.sleep(0.02)
        yield b"y"


def going_on(ask: Request) -> Iterator[bytes]:
    while True:
        time.sleep(0.001)
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def silent(ask: Request) -> Iterator[bytes]:
    yield head("200 OK", len(ask.body)) if ask.seen % 2 else b""
    time.sleep(1.5)


def changing(*tags: str) -> Answer:
    """Break off in another version of the file, and go on in the right one; `tags`: what names the two versions."""

    def answer(ask: Request) -> Iterator[bytes]:
        tag = tags[min(ask.seen, len(tags) - 1) :][:1]
        if ask.seen:
            yield from good(ask, *tag)
        else:
            yield head("200 OK", len(ask.body), *tag)
            yield ask.body[::-1][: len(ask.body) // 2]

    return answer


def sent_on(to: str) -> Answer:
    """Send on to another address."""
    return lambda ask: good(ask) if ask.path == "/good" else iter([head("302 Found", 0, f"Location: {to}")])


def shifted(ask: Request) -> Iterator[bytes]:
    """Send another range than the one that is asked for."""
    if ask.start is None:
        yield from half(ask)
    else:
        yield head("206 Partial Content", 10, f"Content-Range: bytes {ask.start - 7}-{ask.start + 2}/{'*' * 5000}")
        yield ask.body[ask.start - 7 :][:10]


def chunks(end: bytes) -> Answer:
    """Send the file in a chunk, and then `end`."""
    return lambda ask: iter(
        [head("200 OK", None, "Transfer-Encoding: chunked"), b"%x\r\n" % len(ask.body), ask.body, end]
    )


def part(change: Callable[[bytes], bytes]) -> Callable[[Path, bytes], object]:
    """Lay a part file there."""
    return lambda folder, body: (folder / "x.zip.part").write_bytes(change(body))


def link(name: str) -> Callable[[Path, bytes], object]:
    """Lay a link there, to a file that no download may change."""
    return lambda folder, body: (folder / name).symlink_to(folder.parent / "precious")


def folder_at(name: str) -> Callable[[Path, bytes], object]:
    """Lay a folder there."""
    return lambda folder, body: (folder / name).mkdir(parents=True)


def tries() -> list[Tried]:
    """The ways to misbehave."""
    long, codes = "x" * 5000, "\x1b[2J"
    return [
        Tried("not there", says("404 Not Found")),
        Tried("forbidden, in long words", says(f"403 {long}")),
        Tried("an error, in words that steer a terminal", says(f"500 {codes}no")),
        Tried("busy once", first(says("503 Busy")), "value"),
        Tried("longer than published", whole(lambda body: body + b"more")),
        Tried("endless", endless),
        Tried("endless, of unknown size", endless, sized=False),
        Tried("always half", half),
        Tried("half, then the rest", first(half), "value"),
        Tried("dripping", dripping),
        Tried("silent", silent),
        Tried("sent on to the file", sent_on("/good"), "value"),
        Tried("sent in a circle, with a token", sent_on(f"/again?token={SECRET}")),
        Tried("sent to a file, with a password", sent_on(f"file://me:{SECRET}@host/etc/passwd")),
        Tried("changed on the way, with a tag", changing('ETag: "a"', 'ETag: "b"'), "value"),
        Tried("changed on the way, with nothing that says so", changing(), "value"),
        Tried("another file", whole(lambda body: body[::-1])),
        Tried("a web page", whole(lambda body: b"<!doctype html><p>Sign in" + bytes(len(body)))),
        Tried("a part file that is a link", good, "refusal", "refusal", link("x.zip.part")),
        Tried("a file that is a link to another one", good, "value", "value", link("x.zip")),
        Tried("a password that is refused", says("401 No"), address=f"http://me:{SECRET}@{{host}}/first"),
        Tried("a token that is refused, and said", says(f"404 no ?token={long}{SECRET}"), address=f"http://{{host}}/first?token={SECRET}"),
        Tried("a password that is right", good, "value", address=f"http://me:{SECRET}@{{host}}/first?sig={SECRET}"),
        Tried("a password before a port that is none", good, address=f"http://me:{SECRET}@127.0.0.1:port/first"),
        Tried("a range that was not asked for", shifted),
        Tried("a length that is none", whole(bytes, lambda body: "1e5"), "either"),
        Tried("a length below zero", whole(bytes, lambda body: -5), "either"),
        Tried("chunks without an end", chunks(b"\r\n")),
        Tried("chunks that end", chunks(b"\r\n0\r\n\r\n"), "value"),
        Tried("a chunk that is none", chunks(b"\r\nzzz\r\n")),
        Tried("a part file of another file", good, "value", there=part(lambda body: body[::-1][:900])),
        Tried("a part file that is complete", says("404 Not Found"), "either", there=part(bytes)),
        Tried("a part file that is too long", good, "value", there=part(lambda body: body * 2)),
        Tried("a part file that is a folder", good, "refusal", "refusal", folder_at("x.zip.part")),
        Tried("an older file", good, "value", there=lambda folder, body: (folder / "x.zip").write_bytes(body[:-1])),
        Tried("a folder in place of the file", good, "either", "either", folder_at("x.zip")),
        Tried("another file, where a folder is set aside", whole(lambda body: body[::-1]), "refusal", "refusal",
              folder_at("x.zip.corrupt/x")),
        Tried("no HTTP", raw(b"SSH-2.0-" + b"x" * 5000 + b"\r\n")),
        Tried("headers without end", raw(head()[:-2] + b"X: y\r\n" * 4000)),
        Tried("a header without end", raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000)),
        Tried("nothing", raw(b"")),
        Tried("squeezed, although that was not asked for",
              whole(lambda body: body[: len(body) // 2], len, "Content-Encoding: gzip")),
        Tried("no server", good, address="http://127.0.0.1:9/first"),
        Tried("no such host", good, address=f"http://no-such-host.invalid/{long}?key={SECRET}"),
        Tried("a port that is too large", good, address="http://127.0.0.1:99999/first"),
        Tried("an address with signs that no address has", good, address="http://{host}/a b\n\x1b[2J"),
        Tried("another protocol", good, "refusal", "refusal", address=f"ftp://me:{SECRET}@{{host}}/first"),
        Tried("headers that drip", dripping_head),
        Tried("a device", good, address="file:///dev/zero"),
        Tried("told to go on, without end", going_on),
    ]  # fmt: skip


def attempt(number: int, rng: np.random.Generator, place: Path) -> Attempt:
    """Ask one misbehaving address, alone or before a good one as is drawn."""
    body = rng.bytes(int(rng.integers(2_000, 400_000)))
    known = tries()
    tried = known[number % len(known)]
    alone = bool(rng.random() < 0.5)
    checksum = f"sha256:{hashlib.sha256(body).hexdigest()}"
    folder, precious = place / "folder", place / "precious"
    folder.mkdir()
    precious.write_bytes(b"precious")
    tried.there(folder, body)
    out, said, size = folder / "x.zip", io.StringIO(), len(body) if tried.sized else None

    def act() -> Path:
        with _serving({"/second": good, "/good": good}, tried.answer, body) as host, _heard(said), _impatient():
            urls = [tried.address.format(host=host)] + ([] if alone else [f"http://{host}/second"])
            try:
                return download.fetch("x", urls, checksum, out, size, RETRIES, 0.0, limit=1 << 20)
            except MetaboError as error:
                said.write(str(error))
                raise

    def right(found: Path) -> str:
        return "" if found == out and out.read_bytes() == body else "another file"

    def after() -> str:
        if precious.read_bytes() != b"precious":
            return "wrote through a link"
        if SECRET in said.getvalue():
            return f"told a password: {said.getvalue()}"
        if left := {*os.listdir(folder)} - MADE:
            return f"left {left}"
        return "left a wrong file" if out.is_file() and out.read_bytes() != body else ""

    end = tried.alone if alone else tried.behind
    what = f"{tried.what}, {'alone' if alone else 'before a good one'}"
    return Attempt(what, act, right, end, ("x.zip", "127.0.0.1", "'x'"), after)


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Shorten what a download waits for."""
    with mock.patch.multiple(transfer, TIMEOUT_S=0.3, WINDOW_S=0.5):
        yield


@contextlib.contextmanager
def _heard(said: io.StringIO) -> Iterator[None]:
    """Take down what is printed and logged."""
    heard = logging.StreamHandler(said)
    logger = pooch.get_logger()
    before, logger.handlers = logger.handlers, [heard]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            yield
    finally:
        logger.handlers = before


@contextlib.contextmanager
def _serving(answers: dict[str, Answer], otherwise: Answer, body: bytes) -> Iterator[str]:
    """Serve paths in a thread; give the host and port."""
    seen: dict[str, int] = {}

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            lines = []
            while (line := self.rfile.readline(1 << 16).strip()) and len(lines) < 100:
                lines.append(line.decode("latin-1"))
            path = lines[0].split(" ")[1] if lines else ""
            start = next((int(one[13:-1]) for one in lines if one.lower().startswith("range: bytes=")), None)
            count = seen[path] = seen.get(path, -1) + 1
            with contextlib.suppress(OSError):  # who asked has gone
                for block in answers.get(path, otherwise)(Request(path, start, count, body)):
                    self.wfile.write(block)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
