"""Data sets of many files: fetched one by one from folders, packed as one archive with a pinned checksum."""

import csv
import hashlib
import shutil
import subprocess
import sys
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from metabo.data import bundle, download, published
from metabo.errors import ConfigError, DataError
from metabo.records.files import canonical, digest

ROOT = Path(__file__).parents[2]
FILES = {"b 1.npz": b"second" * 5000, "a.json": b"[1, 2]", "c28.6.npz": b"third" * 700}
MEMBERS = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
QUIET = {"retries": 1, "pause": 0.0, "progress": False}


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; a file called *.html stands for a server that sends a page, with status 200, for a lost file."""

    def do_GET(self):
        self.server.log.append(self.path)
        super().do_GET()

    def log_message(self, *args):
        pass


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name, content in FILES.items():
        (source / name).write_bytes(content)
    return source


@pytest.fixture
def server(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as http:
        http.log = []
        http.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield http
        http.shutdown()
        thread.join()


@pytest.fixture
def checksum(folder, tmp_path):
    bundle.pack({name: folder / name for name in FILES}, tmp_path / "expected.tar")
    return f"sha256:{digest(tmp_path / 'expected.tar')}"


def test_files_are_fetched_and_packed_the_same_everywhere(server, tmp_path, checksum):
    out = bundle.fetch_bundle("x", [f"{server.url}/"], MEMBERS, checksum, tmp_path / "cache" / "x.tar", **QUIET)
    assert sorted(server.log) == ["/a.json", "/b%201.npz", "/c28.6.npz"]
    with tarfile.open(out) as archive:
        assert archive.getnames() == sorted(FILES)
        assert all(archive.extractfile(name).read() == content for name, content in FILES.items())
        assert {(m.mtime, m.uid, m.gid, m.uname, m.mode) for m in archive} == {(0, 0, 0, "", 0o644)}
    assert [p.name for p in out.parent.iterdir()] == ["x.tar"]  # no parts are left
    server.log.clear()
    assert bundle.fetch_bundle("x", [server.url], MEMBERS, checksum, out, **QUIET) == out
    assert server.log == []  # a right archive is left alone


def test_a_missing_file_is_named_and_those_that_came_are_kept(server, folder, tmp_path, checksum):
    (folder / "c28.6.npz").rename(tmp_path / "aside")
    out = tmp_path / "x.tar"
    with pytest.raises(DataError, match=r"c28.6.npz: 'x' could not be downloaded(.|\n)*404") as error:
        bundle.fetch_bundle("x", [server.url], MEMBERS, checksum, out, **QUIET)
    assert len(str(error.value).splitlines()) == 2
    assert not out.exists() and sorted(p.name for p in (tmp_path / "x.tar.parts").iterdir()) == ["a.json", "b 1.npz"]
    (tmp_path / "aside").rename(folder / "c28.6.npz")
    server.log.clear()
    bundle.fetch_bundle("x", [server.url], MEMBERS, checksum, out, **QUIET)
    assert server.log == ["/c28.6.npz"]


def test_a_web_page_in_place_of_a_file_is_told(server, folder, tmp_path, checksum):
    (folder / "a.json").write_text("<!DOCTYPE html><title>moved</title>")
    with pytest.raises(DataError, match=r"a.json(.|\n)*it is a web page, not the file"):
        bundle.fetch_bundle("x", [server.url], MEMBERS, checksum, tmp_path / "x.tar", **QUIET)


def test_half_a_file_is_refused_and_the_next_address_is_tried(server, folder, tmp_path, checksum):
    half = tmp_path / "half"
    shutil.copytree(folder, half)
    (half / "b 1.npz").write_bytes(FILES["b 1.npz"][:9000])
    with pytest.raises(DataError, match=r"b 1.npz(.|\n)*wrong sha256"):
        bundle.fetch_bundle("x", [half.as_uri()], MEMBERS, checksum, tmp_path / "x.tar", **QUIET)
    bundle.fetch_bundle("x", [half.as_uri(), server.url], MEMBERS, checksum, tmp_path / "x.tar", **QUIET)
    assert server.log == ["/b%201.npz"]


def test_a_list_that_does_not_fit_the_checksum_keeps_the_files(folder, tmp_path):
    with pytest.raises(DataError, match="do not belong together"):
        bundle.fetch_bundle("x", [folder.as_uri()], MEMBERS, "sha256:" + "0" * 64, tmp_path / "x.tar", **QUIET)
    assert not (tmp_path / "x.tar").exists() and len(list((tmp_path / "x.tar.parts").iterdir())) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lists no file"),
        ("abc  a.npz\n", "line 1: 'abc  a.npz' must be a SHA-256"),
        (f"{'0' * 64}  a.npz\n{'1' * 64}  a.npz\n", "line 2"),
        (f"{'0' * 64}  ../a.npz\n", "line 1"),
    ],
)
def test_a_bad_list_is_told(tmp_path, text, message):
    (tmp_path / "x.sha256").write_text(text)
    with pytest.raises(ConfigError, match=message):
        bundle.manifest(tmp_path / "x.sha256")
    with pytest.raises(ConfigError, match="cannot be read"):
        bundle.manifest(tmp_path / "none.sha256")


def test_copies_below_metabo_data(tmp_path, monkeypatch):
    monkeypatch.delenv(bundle.LOCAL, raising=False)
    assert bundle.local_copies("lcbench", "lcbench.tar", many=True) == []
    monkeypatch.setenv(bundle.LOCAL, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"METABO_DATA: '.*none' is no folder"):
        bundle.local_copies("lcbench", "lcbench.tar", many=True)
    monkeypatch.setenv(bundle.LOCAL, str(tmp_path))
    assert bundle.local_copies("lcbench", "lcbench.tar", many=True) == []
    (tmp_path / "lcbench").mkdir()
    (tmp_path / "pd1.tar.gz").write_bytes(b"x")
    assert bundle.local_copies("lcbench", "lcbench.tar", many=True) == [f"{tmp_path.as_uri()}/lcbench"]
    assert bundle.local_copies("pd1", "pd1.tar.gz", many=False) == [f"{tmp_path.as_uri()}/pd1.tar.gz"]
    assert bundle.local_copies("lcbench", "lcbench.tar", many=False) == []


def test_the_stage_takes_copies_below_metabo_data_first(folder, tmp_path, checksum, monkeypatch):
    data = tmp_path / "data"
    shutil.copytree(folder, data / "x")
    (tmp_path / "x.sha256").write_text("".join(f"{value}  {name}\n" for name, value in MEMBERS.items()))
    spec = {"name": "x", "urls": ["http://127.0.0.1:9/x"], "checksum": checksum, "retries": 0, "pause": 0.0}
    spec["members"] = str(tmp_path / "x.sha256")
    out = tmp_path / "out" / "x.tar"
    command = [sys.executable, "-m", "metabo.stages.download", "--spec", canonical(spec), "--out", str(out)]
    without = subprocess.run(command, capture_output=True, text=True, check=False)
    assert without.returncode == 1 and "127.0.0.1:9/x" in without.stderr and "Traceback" not in without.stderr
    monkeypatch.setenv(bundle.LOCAL, str(data))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"sha256:{digest(out)}" == checksum


def test_every_list_belongs_to_a_row_of_the_table():
    rows = download.archives(ROOT / "workflow/datasets.csv", ROOT / "workflow/schemas/datasets.yaml")
    listed = {row["members"] for row in rows.values() if row["members"]}
    assert listed == {path.relative_to(ROOT).as_posix() for path in published.FOLDER.glob("*.sha256")}
    with (ROOT / "workflow/datasets.csv").open(newline="") as stream:
        assert all(row["licence"] and row["note"] for row in csv.DictReader(stream))
