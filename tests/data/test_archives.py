"""Archives: nothing outside, no links, no devices, no half files."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile

import numpy as np
import pytest

from metabo.data import archives
from metabo.data.archives import read_members
from metabo.errors import DataError


def text(_member, stream):
    return stream.read().decode()


def tar(path, members, kind=None, link=""):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if kind is not None and name == members[-1][0]:
                info.type, info.linkname = kind, link
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def test_reads_plain_and_gzipped_members_of_both_kinds(tmp_path):
    members = [("deep/folder/a.txt", b"alpha"), ("b.txt.gz", gzip.compress(b"beta")), ("other", b"ignored")]
    path = tar(tmp_path / "x.tar.gz", members)
    assert read_members(path, ("a.txt", "b.txt"), text) == {"a.txt": "alpha", "b.txt": "beta"}
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    assert read_members(tmp_path / "x.zip", ("a.txt", "b.txt"), text) == {"a.txt": "alpha", "b.txt": "beta"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "a\\..\\evil", "C:/evil"])
def test_member_that_points_outside(tmp_path, name):
    path = tar(tmp_path / "x.tar.gz", [("a.txt", b"alpha"), (name, b"evil")])
    with pytest.raises(DataError) as error:
        read_members(path, ("a.txt",), text)
    assert "points outside" in str(error.value) and repr(name)[1:-1].replace("\\\\", "\\") in str(error.value)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "alpha")
        archive.writestr(name, "evil")
    with pytest.raises(DataError, match="points outside"):
        read_members(tmp_path / "x.zip", ("a.txt",), text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.tar.gz", "x.zip"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_link_or_device_in_tar(tmp_path, kind):
    path = tar(tmp_path / "x.tar.gz", [("a.txt", b"alpha"), ("strange", b"")], kind, "a.txt")
    with pytest.raises(DataError, match="'strange' is a link or a device"):
        read_members(path, ("a.txt",), text)


def test_link_in_zip(tmp_path):
    info = zipfile.ZipInfo("strange")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "alpha")
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="'strange' is a link"):
        read_members(tmp_path / "x.zip", ("a.txt",), text)


def test_missing_and_doubled_member(tmp_path):
    path = tar(tmp_path / "x.tar.gz", [("one/a.txt", b"alpha"), ("two/a.txt", b"again")])
    with pytest.raises(DataError, match=r"holds a.txt twice, the second time as 'two/a.txt'"):
        read_members(path, ("a.txt",), text)
    with pytest.raises(DataError, match=r"lacks c.txt; holds one/a.txt, two/a.txt"):
        read_members(path, ("c.txt",), text)
    with pytest.raises(DataError, match="no such archive"):
        read_members(tmp_path / "none.zip", ("c.txt",), text)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9])
def test_truncated_archives(tmp_path, keep):
    noise = bytes(range(256)) * 400
    path = tar(tmp_path / "x.tar.gz", [("a.txt", noise.hex().encode())])
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(DataError, match="damaged archive"):
        read_members(path, ("a.txt",), text)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", noise)
    content = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(DataError, match="damaged archive"):
        read_members(tmp_path / "x.zip", ("a.txt",), text)


def test_flipped_byte_in_zip_member(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", b"alpha" * 1000)
    content = bytearray((tmp_path / "x.zip").read_bytes())
    content[2000] ^= 1
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(DataError, match="damaged archive"):
        read_members(tmp_path / "x.zip", ("a.txt",), text)


NOISE = bytes(range(256)) * 400
ZIPS = {"zip-bz2": zipfile.ZIP_BZIP2, "zip-xz": zipfile.ZIP_LZMA, "zip": zipfile.ZIP_DEFLATED}


def packed(path, kind, content):
    """Write an archive with the member a.txt."""
    if kind in ZIPS:
        with zipfile.ZipFile(path, "w", ZIPS[kind]) as archive:
            archive.writestr("a.txt", content)
    else:
        with tarfile.open(path, f"w:{kind.removeprefix('tar-')}") as archive:
            info = tarfile.TarInfo("a.txt")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def refused(path, names, part):
    with pytest.raises(DataError, match=part) as error:
        read_members(path, names, text)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("kind", [*ZIPS, "tar-gz", "tar-bz2", "tar-xz"])
def test_every_compression_is_read_and_its_faults_are_one_line(tmp_path, kind):
    content = np.random.default_rng(0).bytes(20_000).hex().encode()
    path = packed(tmp_path / "x", kind, content)
    assert read_members(path, ("a.txt",), text)["a.txt"].encode() == content
    good = path.read_bytes()
    for place in range(100, len(good) - 200, len(good) // 9):
        path.write_bytes(good[:place] + bytes(100) + good[place + 100 :])
        try:  # a tar is not read to its checksum
            read_members(path, ("a.txt",), lambda _, stream: stream.read())
            assert kind not in ZIPS
        except DataError as error:
            assert "\n" not in str(error) and "damaged archive" in str(error)
        path.write_bytes(good[:place])
        refused(path, ("a.txt",), "damaged archive|lacks a.txt")


@pytest.mark.parametrize("squeeze", [gzip.compress, bz2.compress, lzma.compress])
def test_a_member_that_is_not_what_its_name_says(tmp_path, squeeze):
    path = tar(tmp_path / "x.tar.gz", [("a.txt.gz", squeeze(NOISE)[5:])])
    refused(path, ("a.txt",), "damaged archive")


@pytest.mark.parametrize("kind", [*ZIPS, "tar-gz", "tar-bz2", "tar-xz"])
def test_an_archive_that_holds_too_much_is_refused_before_it_is_read(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    path = packed(tmp_path / "x", kind, bytes(1 << 25))
    assert path.stat().st_size < 1 << 17
    refused(path, ("other",), r"holds more than \d+ bytes, at member 'a.txt'; this is not the published archive")
    packed(path, kind, bytes(1 << 20))
    assert len(read_members(path, ("a.txt",), text)["a.txt"]) == 1 << 20


@pytest.mark.parametrize("parse", [lambda stream: stream.read(), lambda stream: list(stream)])
def test_a_gzip_file_in_an_archive_that_holds_too_much(tmp_path, monkeypatch, parse):
    """What a gzip file holds is not known before it is read."""
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    bomb = gzip.compress(b"0123456\n" * (1 << 22))
    path = tar(tmp_path / "x.tar.gz", [("a.txt.gz", bomb)])
    with pytest.raises(DataError, match=r"holds more than \d+ bytes, at member 'a.txt.gz'"):
        read_members(path, ("a.txt",), lambda _, stream: parse(stream))


def test_a_zip_that_says_that_it_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    path = packed(tmp_path / "x", "zip", bytes(1 << 25))
    size = (1 << 25).to_bytes(4, "little")
    assert path.read_bytes().count(size) == 2  # before the member, and in the directory
    path.write_bytes(path.read_bytes().replace(size, (100).to_bytes(4, "little")))
    refused(path, ("a.txt",), "damaged archive")


def test_a_zip_with_a_password(tmp_path):
    path = packed(tmp_path / "x", "zip", NOISE)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    refused(path, ("a.txt",), "member 'a.txt' needs a password; this is not the published archive")


def test_an_archive_that_cannot_be_opened_is_told_as_such(tmp_path):
    (tmp_path / "x.zip").mkdir()
    refused(tmp_path / "x.zip", ("a.txt",), "cannot be read .Is a directory.; check its permissions and the disk")
