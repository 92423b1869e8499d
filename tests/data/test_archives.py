"""Archives: nothing outside, no links, no devices, no half files."""

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib

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


class Pipe(io.RawIOBase):
    """A file that cannot be gone back in, as when a zip is written to a pipe."""

    def __init__(self):
        self.content = b""

    def writable(self):
        return True

    def write(self, part):
        self.content += bytes(part)
        return len(part)


def zips():
    """The ways in which a zip states the sizes of a member: before it, behind it, and both with 8 bytes."""
    for large in (False, True):
        for file in (io.BytesIO(), Pipe()):
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("empty", b"")
                with archive.open("a.txt", "w", force_zip64=large) as member:
                    member.write(b"alpha" * 100)
            yield file.getvalue() if isinstance(file, io.BytesIO) else file.content


@pytest.mark.parametrize("content", [*zips()], ids=["before", "behind", "before-8", "behind-8"])
def test_a_zip_whose_directory_makes_a_member_empty(tmp_path, content):
    """Twelve zeros over checksum and sizes: to zipfile an empty member, and sound."""
    (tmp_path / "x.zip").write_bytes(content)
    assert read_members(tmp_path / "x.zip", ("a.txt",), text)["a.txt"] == "alpha" * 100
    entry = content.rindex(b"PK\x01\x02")
    damaged = content[: entry + 16] + bytes(12) + content[entry + 28 :]
    (tmp_path / "x.zip").write_bytes(damaged)
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert archive.read("a.txt") == b""
    refused(tmp_path / "x.zip", ("a.txt",), "damaged archive .*'a.txt' itself differ in checksum or size")


DATA = b"alpha" * 100
SIZED = (zlib.crc32(DATA), len(DATA), len(DATA))
EMPTY = (0, 0, 0)


def by_hand(path, members):
    """Write a zip of stored members: name, flags, sizes before it, extra field, content, what stands behind it, and the
    sizes in the directory."""
    body, directory = b"", b""
    for name, flags, before, extra, content, behind, listed in members:
        common = struct.pack("<3H2H", 20, flags, 0, 0, 0x21)
        lengths = struct.pack("<2H", len(name), len(extra))
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<3L", *listed)
        directory += struct.pack("<2H", len(name), 0) + struct.pack("<3H2L", 0, 0, 0, 0, len(body)) + name
        body += b"PK\x03\x04" + common + struct.pack("<3L", *before) + lengths + name + extra + content + behind
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


LARGE = struct.pack("<2H2Q", 1, 16, len(DATA), len(DATA))
TIMES = struct.pack("<2HBL", 0x5455, 5, 1, 0)
NEXT = (b"next", 0, (zlib.crc32(b"n"), 1, 1), b"", b"n", b"", (zlib.crc32(b"n"), 1, 1))


@pytest.mark.parametrize(
    "member",
    [
        (b"a.txt", 0, SIZED, b"", DATA, b"", SIZED),
        (b"a.txt", 8, EMPTY, b"", DATA, struct.pack("<3L", *SIZED), SIZED),
        (b"a.txt", 8, EMPTY, b"", DATA, b"PK\x07\x08" + struct.pack("<3L", *SIZED), SIZED),
        (b"a.txt", 8, EMPTY, b"", DATA, b"PK\x07\x08" + struct.pack("<L2Q", *SIZED), SIZED),
        (b"a.txt", 8, SIZED, b"", DATA, b"", SIZED),  # against the standard, and written all the same
        (b"a.txt", 0, (SIZED[0], 0xFFFFFFFF, 0xFFFFFFFF), TIMES + LARGE, DATA, b"", SIZED),
    ],
    ids=["before", "behind", "behind-magic", "behind-8", "both", "extra-field"],
)
def test_zips_of_many_writers_are_read(tmp_path, member):
    folder = (b"d/", 8, EMPTY, b"", b"", b"", EMPTY)  # nothing behind it: so do some
    path = by_hand(tmp_path / "x.zip", [folder, member, NEXT])
    assert read_members(path, ("a.txt",), text)["a.txt"].encode() == DATA
    for place, other in enumerate((1, len(DATA) - 1, len(DATA) - 1)):
        listed = (*SIZED[:place], other, *SIZED[place + 1 :])
        refused(by_hand(path, [(*member[:6], listed), NEXT]), ("a.txt",), "damaged archive")


@pytest.mark.parametrize("behind", [b"", bytes(12), b"PK\x07\x08" + bytes(12), b"PK\x07\x08" + bytes(20)])
def test_an_empty_member_of_a_zip_is_read_where_the_next_one_follows(tmp_path, behind):
    member = (b"a.txt", 8, EMPTY, b"", b"", behind, EMPTY)
    for members in ([member], [member, NEXT]):
        assert read_members(by_hand(tmp_path / "x.zip", members), ("a.txt",), text) == {"a.txt": ""}
    hidden = (*member[:4], bytes(30) + DATA, behind, EMPTY)  # content that looks like what stands behind an empty one
    refused(by_hand(tmp_path / "x.zip", [hidden, NEXT]), ("a.txt",), "damaged archive")


@pytest.mark.parametrize("place", [42, 20])
def test_a_zip_whose_directory_points_beyond_its_end(tmp_path, place):
    """Where a member begins, and how long it is."""
    path = by_hand(tmp_path / "x.zip", [(b"a.txt", 8, EMPTY, b"", DATA, struct.pack("<3L", *SIZED), SIZED)])
    content = path.read_bytes()
    entry = content.rindex(b"PK\x01\x02") + place
    path.write_bytes(content[:entry] + struct.pack("<L", 1 << 31) + content[entry + 4 :])
    refused(path, ("a.txt",), "damaged archive .*is beyond the end")


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
        refused(path, ("a.txt",), "damaged archive")
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


@pytest.mark.parametrize("squeeze", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_the_checksum_behind_the_last_member_is_read(tmp_path, squeeze, damage):
    """The content itself is whole: what the checksum says of it is all that differs."""
    content = squeeze(packed(tmp_path / "x", "tar-", b"alpha").read_bytes())
    (tmp_path / "x").write_bytes(content)
    assert read_members(tmp_path / "x", ("a.txt",), text) == {"a.txt": "alpha"}
    wrong = content[:-4] if damage == "cut" else content[:-5] + bytes([content[-5] ^ 4]) + content[-4:]
    (tmp_path / "x").write_bytes(wrong)
    refused(tmp_path / "x", ("a.txt",), "damaged archive")


def header(kind, size):
    """Return a header of a tar whose size, written to base 256 if it is below zero, may be a lie."""
    block = bytearray(tarfile.TarInfo("strange").tobuf(tarfile.GNU_FORMAT)[: tarfile.BLOCKSIZE])
    block[156:157] = kind
    block[124:136] = b"%011o\0" % size if size >= 0 else (256**12 + size).to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def with_headers(path, blocks):
    """Write a tar.gz whose member a.txt is followed by blocks."""
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    path.write_bytes(gzip.compress(path.read_bytes()[: tarfile.BLOCKSIZE] + blocks + bytes(1024)))
    return path


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g"])
def test_a_long_name_that_is_a_bomb_is_refused_before_it_is_read(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    path = with_headers(tmp_path / "x", header(kind, 1 << 25) + bytes(1 << 25))
    refused(path, ("a.txt",), "has headers that are larger than what it may hold; this is not the published archive")
    refused(with_headers(path, header(kind, -512)), ("a.txt",), "damaged archive .a size is below zero")


def test_a_sparse_member_that_hides_a_bomb_is_refused_before_it_is_read(tmp_path, monkeypatch):
    """It says that it is of no bytes when it is unpacked, and would be skipped."""
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    path = with_headers(tmp_path / "x", header(b"S", 1 << 25) + bytes(1 << 18))
    refused(path, ("a.txt",), "has headers that are larger than what it may hold")


def test_a_tar_that_goes_on_with_zeros_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    refused(with_headers(tmp_path / "x", bytes(1 << 25)), ("a.txt",), "larger than what it may hold")


def test_a_member_of_fewer_bytes_than_none_does_not_go_round_for_ever(tmp_path):
    path = with_headers(tmp_path / "x", header(b"0", -512))
    refused(path, ("a.txt",), "member 'strange' has -512 bytes; this is not the published archive")


def sparse(path):
    said = b"21 GNU.sparse.map=a,\n"
    return with_headers(path, header(b"x", len(said)) + said.ljust(tarfile.BLOCKSIZE, b"\0") + header(b"0", 0))


def chained(path):
    return with_headers(path, (header(b"L", 2) + b"y".ljust(tarfile.BLOCKSIZE, b"\0")) * 2000)


@pytest.mark.parametrize("made", [sparse, chained])
def test_headers_of_nonsense_are_damage(tmp_path, made):
    refused(made(tmp_path / "x"), ("a.txt",), "damaged archive")


def test_names_without_end_are_shown_shortened(tmp_path):
    long = "x" * 3000
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(f"../{long}", "evil")
    for path, part in [
        (tmp_path / "x", "points outside"),
        (tar(tmp_path / "y", [(long, b"")]), "lacks a.txt; holds xxx"),
        (tar(tmp_path / "z", [("s", b""), (long, b"")], tarfile.SYMTYPE, "s"), "is a link"),
    ]:
        with pytest.raises(DataError, match=part) as error:
            read_members(path, ("a.txt",), text)
        assert len(str(error.value)) < 500 + len(str(path))


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.zip")
    refused(tmp_path / "x.zip", ("a.txt",), "is no file but a pipe or a device")
