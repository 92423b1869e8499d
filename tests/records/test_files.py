"""Files are written with the permissions that their user wants."""

import os
import stat
import subprocess
import sys

import pytest

from metabo.records import files

WRITES = "import os, sys; os.umask(int(sys.argv[1], 8)); from metabo.records import files; files.write_text('it', 'x')"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mask", "mode_of_new"), [("022", 0o644), ("002", 0o664), ("077", 0o600)])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, mask, mode_of_new):
    subprocess.run([sys.executable, "-c", WRITES, mask], cwd=tmp_path, check=True)
    assert mode(tmp_path / "it") == mode_of_new


def test_the_umask_of_the_process_stays():
    program = "import os; os.umask(0o027); from metabo.records import files; print(os.umask(0))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(done.stdout) == 0o027


@pytest.mark.parametrize("kept", [0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, kept):
    path = tmp_path / "it"
    path.write_text("before")
    os.chmod(path, kept)
    files.write_text(path, "since")
    assert path.read_text() == "since" and mode(path) == kept
