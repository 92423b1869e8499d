"""Files are written with the permissions that their user wants."""

import os
import stat
import subprocess
import sys

import pytest

from metabo.records import files

WRITES = "import os, sys; from metabo.records import files; os.umask(int(sys.argv[1], 8)); files.write_text('it', 'x')"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mask", "mode_of_new"), [("022", 0o644), ("002", 0o664), ("077", 0o600)])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, mask, mode_of_new):
    subprocess.run([sys.executable, "-c", WRITES, mask], cwd=tmp_path, check=True)
    assert mode(tmp_path / "it") == mode_of_new


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o606])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, kept):
    path = tmp_path / "it"
    path.write_text("before")
    os.chmod(path, kept)
    with files.atomic_path(path) as scratch:
        assert mode(scratch) == 0o600  # nobody else may read what a private file will hold
        scratch.write_text("since")
    assert path.read_text() == "since" and mode(path) == kept


def test_a_file_that_its_user_cannot_read_can_be_replaced(tmp_path):
    path = tmp_path / "it"
    path.write_text("before")
    os.chmod(path, 0o200)
    files.write_text(path, "since")
    assert path.read_text() == "since" and mode(path) == 0o600


@pytest.mark.parametrize(("refused", "since"), [(False, (4242, 0o664)), (True, (os.getgid(), 0o644))])
def test_the_group_stays_or_gets_no_more_than_all(tmp_path, monkeypatch, refused, since):
    path, chown = tmp_path / "it", os.chown
    path.write_text("before")
    try:
        chown(path, -1, 4242)
    except PermissionError:
        pytest.skip("only root, or who is of two groups, can give a file to another group")
    os.chmod(path, 0o664)

    def given(file, user, group):
        if refused:
            raise PermissionError
        chown(file, user, group)

    monkeypatch.setattr(os, "chown", given)
    files.write_text(path, "since")
    assert (path.stat().st_gid, mode(path)) == since


def test_links_that_lead_nowhere_are_replaced(tmp_path):
    (tmp_path / "itself").symlink_to("itself")
    (tmp_path / "through").symlink_to(tmp_path / "file/below")
    (tmp_path / "file").write_text("")
    for name in ("itself", "through"):
        files.write_text(tmp_path / name, "since")
        assert (tmp_path / name).read_text() == "since" and not (tmp_path / name).is_symlink()
