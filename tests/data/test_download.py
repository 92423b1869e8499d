"""Downloads against a loopback HTTP server that misbehaves on request."""

import contextlib
import hashlib
import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from metabo.data import download, transfer
from metabo.errors import ConfigError, DataError

CONTENT = np.random.default_rng(0).bytes(1_500_000)
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
QUIET = {"retries": 2, "pause": 0.0, "progress": False}


class Handler(BaseHTTPRequestHandler):
    """Paths: /good, /bad (other bytes), /drop (closes half-way on the first request), /short (always stops early),
    /deaf (drops first, ignores Range), /busy (503 twice), /shifted (wrong range), /slow-head and /go-on (headers, and
    "100 Continue", without end), /wordy (404 in many words, the last of them secret), anything else 404."""

    def do_GET(self):
        wanted = self.headers.get("Range")
        seen = sum(p == self.path for p, _, _ in self.server.log)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        body, status, stop = CONTENT, 200, None
        if self.path == "/bad":
            body = CONTENT[::-1]
        elif self.path in ("/drop", "/deaf") and seen == 0:
            stop = 600_000
        elif self.path == "/short":
            stop = start + 100_000 if start < 200_000 else start
        elif self.path == "/busy" and seen < 2:
            status = 503
        elif self.path not in ("/good", "/drop", "/deaf", "/busy", "/shifted"):
            status = 404
        self.server.log.append((self.path, start, status))
        if self.path in ("/slow-head", "/go-on"):
            return self.send_without_end(b"y" if self.path == "/slow-head" else b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.path == "/wordy":
            self.send_response(404, f"no ?token={'x' * 5000}s3cret")
            return self.end_headers()
        if status != 200:
            return self.send_error(status)
        if wanted and self.path != "/deaf":
            if start >= len(body):
                return self.send_error(416)
            self.send_response(206)
            shown = start + 5 if self.path == "/shifted" else start
            self.send_header("Content-Range", f"bytes {shown}-{len(body) - 1}/{len(body)}")
        else:
            start = 0
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:stop])
        self.close_connection = True

    def send_without_end(self, words):
        begun = time.monotonic()
        with contextlib.suppress(OSError):  # who asked has gone
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: " if words == b"y" else b"")
            while time.monotonic() < begun + 8:
                self.wfile.write(words)
                time.sleep(0.02)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.log = []
        http.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield http
        http.shutdown()
        thread.join()


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("checksum", [SHA, MD5])
def test_normal(server, tmp_path, checksum):
    out = download.fetch("x", [f"{server.url}/good"], checksum, tmp_path / "deep" / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT and names(out.parent) == ["x.zip"]
    download.fetch("x", [f"{server.url}/good"], checksum, out, **QUIET)
    assert len(server.log) == 1, "a file that is already right is not fetched again"


def test_wrong_checksum_sets_the_file_aside(server, tmp_path):
    with pytest.raises(DataError) as error:
        download.fetch("x", [f"{server.url}/bad"], SHA, tmp_path / "x.zip", **QUIET)
    found = hashlib.sha256(CONTENT[::-1]).hexdigest()
    for part in ("x.zip", SHA.removeprefix("sha256:"), found, "x.zip.corrupt", "mirrors"):
        assert part in str(error.value)
    assert names(tmp_path) == ["x.zip.corrupt"]
    assert (tmp_path / "x.zip.corrupt").read_bytes() == CONTENT[::-1]


def test_stale_file_with_wrong_checksum_is_replaced(server, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"older version")
    out = download.fetch("x", [f"{server.url}/good"], SHA, tmp_path / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT
    assert (tmp_path / "x.zip.corrupt").read_bytes() == b"older version"


def test_dropped_connection_resumes_without_fetching_the_beginning_again(server, tmp_path):
    out = download.fetch("x", [f"{server.url}/drop"], SHA, tmp_path / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT
    assert [entry[1] for entry in server.log] == [0, 600_000], "one Range request, from the byte where it broke off"


def test_a_new_process_resumes_what_an_old_one_left(server, tmp_path):
    (tmp_path / "x.zip.part").write_bytes(CONTENT[:1_000_000])
    out = download.fetch("x", [f"{server.url}/good"], SHA, tmp_path / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT and server.log == [("/good", 1_000_000, 200)]
    assert names(tmp_path) == ["x.zip"]


def test_complete_part_needs_no_byte_more(server, tmp_path):
    (tmp_path / "x.zip.part").write_bytes(CONTENT)
    assert download.fetch("x", [f"{server.url}/good"], SHA, tmp_path / "x.zip", **QUIET).read_bytes() == CONTENT


@pytest.mark.parametrize("rest", [CONTENT[::-1][:1000], CONTENT + b"more"])
def test_foreign_part_is_thrown_away(server, tmp_path, rest):
    (tmp_path / "x.zip.part").write_bytes(rest)
    out = download.fetch("x", [f"{server.url}/good"], SHA, tmp_path / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT and server.log[-1][1] == 0


def test_server_that_ignores_range_starts_again(server, tmp_path):
    out = download.fetch("x", [f"{server.url}/deaf"], SHA, tmp_path / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT and [entry[1] for entry in server.log] == [0, 600_000]


def test_server_that_sends_another_range_starts_again(server, tmp_path):
    (tmp_path / "x.zip.part").write_bytes(CONTENT[:1000])
    out = download.fetch("x", [f"{server.url}/shifted"], SHA, tmp_path / "x.zip", **QUIET)
    assert out.read_bytes() == CONTENT and [entry[1] for entry in server.log] == [1000, 0]


def test_truncated_keeps_what_it_has_and_says_so(server, tmp_path):
    with pytest.raises(DataError, match=r"truncated: got 200000 of 1500000 bytes, gave up after 2 retries") as error:
        download.fetch("x", [f"{server.url}/short"], SHA, tmp_path / "x.zip", **QUIET)
    assert "200000 bytes are kept to resume from" in str(error.value)
    assert names(tmp_path) == ["x.zip.part"]
    assert len(server.log) == 5, "two attempts with progress, then three without"
    assert download.fetch("x", [f"{server.url}/good"], SHA, tmp_path / "x.zip", **QUIET).read_bytes() == CONTENT
    assert server.log[-1] == ("/good", 200_000, 200)


def test_missing_page_is_asked_once_and_the_mirror_serves(server, tmp_path):
    urls = [f"{server.url}/nothing", f"{server.url}/bad", f"{server.url}/good"]
    assert download.fetch("x", urls, SHA, tmp_path / "x.zip", **QUIET).read_bytes() == CONTENT
    assert [entry[0] for entry in server.log] == ["/nothing", "/bad", "/good"]
    with pytest.raises(DataError, match="404"):
        download.fetch("y", [f"{server.url}/nothing"], SHA, tmp_path / "y.zip", **QUIET)
    assert names(tmp_path) == ["x.zip", "x.zip.corrupt"]


def test_busy_server_is_asked_again(server, tmp_path):
    assert download.fetch("x", [f"{server.url}/busy"], SHA, tmp_path / "x.zip", **QUIET).read_bytes() == CONTENT
    assert len(server.log) == 3


@pytest.mark.parametrize("path", ["/slow-head", "/go-on"])
def test_headers_without_end_are_left_for_the_next_address(server, tmp_path, monkeypatch, path):
    monkeypatch.setattr(transfer, "WINDOW_S", 0.3)
    begun = time.monotonic()
    urls = [f"{server.url}{path}", f"{server.url}/good"]
    out = download.fetch("x", urls, SHA, tmp_path / "x.zip", **QUIET | {"retries": 0})
    assert out.read_bytes() == CONTENT and time.monotonic() < begun + 6
    with pytest.raises(DataError, match=r"connection failed \(the headers did not end in 0.3 s\)"):
        download.fetch("y", urls[:1], SHA, tmp_path / "y.zip", **QUIET | {"retries": 0})


def test_long_words_of_a_server_and_long_addresses_are_shown_shortened_and_without_secrets(server, tmp_path):
    urls = [f"{server.url}/wordy", f"{server.url}/none/{'x' * 5000}?token={'y' * 100}s3cret"]
    with pytest.raises(DataError) as error:
        download.fetch("x", urls, SHA, tmp_path / "x.zip", **QUIET)
    assert max(map(len, str(error.value).splitlines()[1:])) < 500
    assert "s3cret" not in str(error.value) and "says 404 no ?token=***" in str(error.value)


def test_no_server_at_all(tmp_path):
    with pytest.raises(DataError, match=r"x.zip: 'x' could not be downloaded(.|\n)*connection failed"):
        download.fetch("x", ["http://127.0.0.1:9/x"], SHA, tmp_path / "x.zip", **QUIET)


def test_local_copy(tmp_path):
    (tmp_path / "copy of it").write_bytes(CONTENT)
    url = (tmp_path / "copy of it").as_uri()
    assert download.fetch("x", [url], MD5, tmp_path / "x.zip", **QUIET).read_bytes() == CONTENT
    with pytest.raises(DataError, match="cannot be copied"):
        download.fetch("x", ["file:///no/such/file"], MD5, tmp_path / "y.zip", **QUIET)


@pytest.mark.parametrize(
    ("urls", "checksum", "message"),
    [
        ([], SHA, r"no address is known for 'x'; add one to benchmarks.x.mirrors"),
        (["ftp://host/x"], SHA, "must start with http"),
        (["http://host/x"], "sha256:12", "must be md5: or sha256:"),
        (["http://host/x"], "", "must be md5: or sha256:"),
    ],
)
def test_bad_specification(tmp_path, urls, checksum, message):
    with pytest.raises(ConfigError, match=message):
        download.fetch("x", urls, checksum, tmp_path / "x.zip", **QUIET)


TABLE = Path(__file__).parents[2] / "workflow" / "datasets.csv"
SCHEMA = TABLE.parent / "schemas" / "datasets.yaml"


def test_table_of_addresses_is_valid():
    rows = download.archives(TABLE, SCHEMA)
    assert set(rows) == {"pd1", "hpob", "lcbench", "taskset"}
    for name, row in rows.items():
        download._parse_checksum(name, row["checksum"])
    assert "http://storage.googleapis.com/gresearch/pint/pd1.tar.gz" in rows["pd1"]["urls"].split()
    weak = [name for name, row in rows.items() if not row["checksum"].startswith("sha256:")]
    assert weak == ["pd1"]  # no public source has its SHA-256


def test_a_benchmark_of_an_archive_without_a_row_is_refused():
    rows = download.archives(TABLE, SCHEMA)
    download.require_rows(TABLE, rows, {"tables": None, "pd1": "pd1"})
    with pytest.raises(
        ConfigError, match=r"key 'soils.dataset': unknown archive 'lcbensh'\. Did you mean 'lcbench'\?.*row"
    ):
        download.require_rows(TABLE, rows, {"tables": None, "soils": "lcbensh"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("licence", "licnce"), r"row 'pd1', key 'licnce' is unknown\. Did you mean 'licence'"),
        (("md5:", "md-5:"), "row 'pd1', key 'checksum'"),
        (("https://storage", "gs://storage"), "row 'pd1', key 'urls'"),
        ((",261011374,", ",249 MiB,"), "row 'hpob', key 'bytes'"),
        ((",261011374,", ",261,011,374,"), r"row 'hpob', key '\(cells beyond the header\)' is unknown"),
        ((",bytes,", ","), "row 'pd1', key 'bytes' is missing"),
    ],
)
def test_wrong_tables_of_addresses_name_row_and_column(tmp_path, change, message):
    text = TABLE.read_text()
    assert change[0] in text
    (tmp_path / "datasets.csv").write_text(text.replace(*change))
    with pytest.raises(ConfigError, match=rf"datasets\.csv: .*{message}"):
        download.archives(tmp_path / "datasets.csv", SCHEMA)


def test_wrong_size_sets_the_file_aside(server, tmp_path):
    size = len(CONTENT)
    out = download.fetch("x", [f"{server.url}/good"], SHA, tmp_path / "x.zip", size, **QUIET)
    assert download.fetch("x", [f"{server.url}/good"], SHA, out, size, **QUIET) == out and len(server.log) == 1
    with pytest.raises(DataError, match=rf"x\.zip: wrong size: expected {size + 1} bytes, found {size}; .*set aside"):
        download.fetch("x", [f"{server.url}/good"], SHA, out, size + 1, **QUIET)
    assert names(tmp_path) == ["x.zip.corrupt"] and (tmp_path / "x.zip.corrupt").read_bytes() == CONTENT


def test_stage_command(server, tmp_path):
    """The command with one address, with a mirror after a dead address, and failing with one clean message."""
    out = tmp_path / "x.zip"
    spec = {"name": "x", "urls": [f"{server.url}/good"], "checksum": SHA, "size": len(CONTENT)}
    spec |= {"retries": 0, "pause": 0.0}

    def run(spec, *more):
        command = [sys.executable, "-m", "metabo.stages.download", "--spec", json.dumps(spec), "--out", str(out), *more]
        return subprocess.run(command, capture_output=True, text=True)

    assert run(spec).returncode == 0 and out.read_bytes() == CONTENT
    sidecar = json.loads(out.with_suffix(".json").read_text())
    assert SHA.removeprefix("sha256:") in json.dumps(sidecar)
    out.unlink()
    assert run({**spec, "urls": [f"{server.url}/nothing", f"{server.url}/good"]}).returncode == 0
    assert out.read_bytes() == CONTENT
    out.unlink()
    failed = run({**spec, "urls": [f"{server.url}/bad"]})
    assert failed.returncode == 1 and "Traceback" not in failed.stderr and "wrong sha256" in failed.stderr
