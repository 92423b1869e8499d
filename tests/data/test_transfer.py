"""Downloads from servers that send too much, too slowly, or another file on the way, and that ask for a password."""

import base64
import contextlib
import hashlib
import http.client
import itertools
import logging
import os
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from metabo.data import download, transfer
from metabo.errors import DataError, without_passwords

CONTENT = np.random.default_rng(0).bytes(400_000)
OTHER = CONTENT[::-1]
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
QUIET = {"retries": 2, "pause": 0.0, "progress": False}
HALF = 200_000
LOGIN = "Basic " + base64.b64encode(b"me:s3cret/@x").decode()


class Server(BaseHTTPRequestHandler):
    """Paths: /good; /endless (no length, more bytes than the file has), /long (says so in its header), /drip (a byte at
    a time), /crumbs (one byte for each request), /changed and /mute (the first half is of another version, with and
    without an ETag; /stubborn: with one, and deaf to If-Range), /strange (a length that is none), /elsewhere (a
    redirect to an address that is none), /login (asks for a password), /on (sends on to /login)."""

    def do_GET(self):
        self.path = self.path.partition("?")[0]
        first = self.path not in [path for path, *_ in self.server.log]
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        self.server.log.append((self.path, start, dict(self.headers)))
        if self.path == "/login" and self.headers.get("Authorization") != LOGIN:
            return self.send_error(401)
        if self.path in ("/on", "/elsewhere"):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/login" if self.path == "/on"
                             else "http://host:port/x")  # fmt: skip
            return self.end_headers()
        old = self.path in ("/changed", "/mute", "/stubborn") and first
        tag = f'"{1 if old else 2}"' if self.path in ("/changed", "/stubborn") else ""
        if self.path != "/stubborn" and self.headers.get("If-Range", tag) != tag:
            start = 0
        body = (OTHER if old else CONTENT)[start : HALF if old else None]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        if tag:
            self.send_header("ETag", tag)
        length = {"/endless": None, "/long": 10**9, "/strange": "many"}.get(self.path, len(CONTENT) - start)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.close_connection = True
        if self.path == "/drip":
            for byte in range(len(CONTENT)):
                if self.server.closing.wait(0.02):
                    return
                self.wfile.write(CONTENT[byte : byte + 1])
        elif self.path == "/endless":
            while not self.server.closing.is_set():
                self.wfile.write(CONTENT)
        else:
            self.wfile.write(body[:1] if self.path == "/crumbs" else body)

    def handle(self):
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as made:
        made.log, made.closing = [], threading.Event()
        made.url = f"http://127.0.0.1:{made.server_port}"
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.closing.set()
        made.shutdown()
        thread.join()


def fetch(server, out, *paths, size=None, **more):
    return download.fetch("x", [f"{server.url}{path}" for path in paths], SHA, out / "x.zip", size, **QUIET, **more)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("path", "size"), [("/endless", len(CONTENT)), ("/long", len(CONTENT)), ("/long", None)])
def test_more_bytes_than_the_file_has_are_not_taken(server, tmp_path, path, size):
    most = {} if size else {"limit": 10**6}
    with pytest.raises(
        DataError, match=rf"the server sends more than {size or 10**6} bytes, which is|the most"
    ) as error:
        fetch(server, tmp_path, path, size=size, **most)
    assert len(str(error.value).splitlines()) == 2 and names(tmp_path) == []
    assert fetch(server, tmp_path, path, "/good", size=size, **most).read_bytes() == CONTENT


def test_a_local_copy_that_is_too_long_is_not_taken(tmp_path):
    (tmp_path / "long").write_bytes(CONTENT * 3)
    with pytest.raises(DataError, match=f"sends more than {len(CONTENT)} bytes"):
        download.fetch("x", [(tmp_path / "long").as_uri()], SHA, tmp_path / "x.zip", len(CONTENT), **QUIET)
    assert names(tmp_path) == ["long"]


def test_a_server_that_drips_is_left_for_the_next_which_goes_on_from_there(server, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "WINDOW_S", 0.5)
    with pytest.raises(DataError, match=r"/drip: too slow: \d+ bytes came in \d+ s, fewer than 1024 a second"):
        fetch(server, tmp_path, "/drip")
    kept = (tmp_path / "x.zip.part").stat().st_size
    assert 0 < kept < 100
    assert fetch(server, tmp_path, "/good").read_bytes() == CONTENT and server.log[-1][1] == kept


def test_an_average_over_a_window_decides_what_is_slow(monkeypatch):
    clock = itertools.count(0, 30.0)
    pace = transfer._Pace(lambda: next(clock))
    pace.take(60 * 1024)  # after 30 s
    pace.take(0)  # after 60 s: just fast enough
    pace.take(59 * 1024)
    with pytest.raises(DataError, match="too slow: 60416 bytes came in 60 s"):
        pace.take(0)


def test_a_byte_for_each_request_is_no_progress(server, tmp_path):
    with pytest.raises(DataError, match="truncated: got 3 of 400000 bytes, gave up after 2 retries"):
        fetch(server, tmp_path, "/crumbs")
    assert len(server.log) == 3


@pytest.mark.parametrize("path", ["/changed", "/mute", "/stubborn"])
def test_a_file_that_changes_on_the_way_is_fetched_anew(server, tmp_path, path):
    assert fetch(server, tmp_path, path).read_bytes() == CONTENT and names(tmp_path) == ["x.zip"]
    starts = [start for _, start, _ in server.log]
    assert starts == ([0, HALF] if path == "/changed" else [0, HALF, 0])
    assert server.log[1][2].get("If-Range") == (None if path == "/mute" else '"1"')


@pytest.mark.parametrize("path", ["/strange", "/elsewhere"])
def test_whatever_an_address_does_the_next_is_asked(server, tmp_path, path):
    assert fetch(server, tmp_path, path, "/good").read_bytes() == CONTENT
    (tmp_path / "x.zip").unlink()
    with pytest.raises(DataError) as error:
        fetch(server, tmp_path, path)
    assert len(str(error.value).splitlines()) == 2 and path in str(error.value)


@pytest.mark.parametrize("fault", [ssl.SSLError("bad record"), OSError("odd"), http.client.IncompleteRead(b""),
                                   UnicodeError("host")])  # fmt: skip
def test_whatever_reading_raises_the_next_is_asked(server, tmp_path, monkeypatch, fault):
    read, asked = http.client.HTTPResponse.read1, iter([fault] * (1 if isinstance(fault, ValueError) else 3))

    def broken(self, *args):
        if (this := next(asked, None)) is not None:
            raise this
        return read(self, *args)

    monkeypatch.setattr(http.client.HTTPResponse, "read1", broken)
    assert fetch(server, tmp_path, "/good", "/good?again").read_bytes() == CONTENT


@pytest.mark.parametrize("source", ["/good", "file"])
def test_a_part_file_that_is_a_link_is_refused(server, tmp_path, source):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    copy = tmp_path / "copy"
    copy.write_bytes(CONTENT)
    out = tmp_path / "cache"
    out.mkdir()
    (out / "x.zip.part").symlink_to(victim)
    url = f"{server.url}/good" if source == "/good" else copy.as_uri()
    with pytest.raises(DataError, match=r"x\.zip\.part: is a link, and a download writes there; delete it") as error:
        download.fetch("x", [url], SHA, out / "x.zip", **QUIET)
    assert len(str(error.value).splitlines()) == 1
    assert victim.read_text() == "mine" and names(out) == ["x.zip.part"]
    transferring = transfer.Resumable(url, out / "x.zip.part", "sha256", SHA[7:], None, 10**9, 0, 0.0, False)
    with pytest.raises(transfer.Unwritable):  # put there after it was looked at
        transferring._open("wb")


def test_a_full_disk_is_told_as_such_and_no_other_address_is_asked(server, tmp_path, monkeypatch):
    class Full:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.stream.close()

        def write(self, chunk):
            raise OSError(28, "No space left on device")

    opened = transfer.Resumable._open
    monkeypatch.setattr(transfer.Resumable, "_open", lambda self, mode: Full(opened(self, mode)))
    with pytest.raises(
        DataError, match=r"^.*x\.zip\.part: cannot be written \(No space left on device\); check the disk$"
    ):
        fetch(server, tmp_path, "/good", "/good?again")
    assert len(server.log) == 1


def test_a_password_is_used_and_never_shown(server, tmp_path, caplog, capfd):
    secret = server.url.replace("://", "://me:s3cret%2F%40x@")
    with caplog.at_level(logging.DEBUG):
        assert download.fetch("x", [f"{secret}/login"], SHA, tmp_path / "x.zip", **QUIET).read_bytes() == CONTENT
        with pytest.raises(DataError) as error:
            download.fetch("y", [f"{secret}/on", f"{secret}/strange?token=s3cret"], SHA, tmp_path / "y.zip", **QUIET)
    assert "401" in str(error.value)  # the place that it is sent on to gets no password
    out, err = capfd.readouterr()
    told = [str(error.value), out, err, caplog.text]
    assert not any("s3cret" in text or "me:" in text for text in told)
    assert f"http://***@127.0.0.1:{server.server_port}/strange?token=***" in told[0]


def test_passwords_come_from_the_users_netrc_for_https_only(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine data.example login me password s3cret\ndefault login you password other\n")
    os.chmod(tmp_path / "netrc", 0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert transfer._login("https://data.example:8443/x") == ("https://data.example:8443/x", "me:s3cret")
    for url in ("http://data.example/x", "https://another.example/x"):
        assert transfer._login(url) == (url, "")
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    assert transfer._login("https://data.example/x") == ("https://data.example/x", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@host/x and http://you@host:80/y", "https://***@host/x and http://***@host:80/y"),
        ("https://me:p@w@host/x", "https://***@host/x"),
        ("https://me:p/w@host/x", "https://***@host/x"),
        ("https://host/x?X-Amz-Signature=abc&v=1", "https://host/x?X-Amz-Signature=***&v=1"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("https://host/a@b, mail a@b", "https://host/a@b, mail a@b"),
        ("file:///home/me@here/x", "file:///home/me@here/x"),
    ],
)
def test_what_signs_in_is_left_out(text, shown):
    assert without_passwords(text) == shown
