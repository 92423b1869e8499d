"""Archives: nothing outside, no links, no devices, no half files."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

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
