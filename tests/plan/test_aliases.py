"""File names with braces, which Snakemake would take for patterns."""

import os
from pathlib import Path

import pytest

from metabo.plan import aliases


def test_a_name_without_braces_stays(tmp_path):
    assert aliases.escaped("my files/history.csv", tmp_path) == "my files/history.csv" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["his{tory}.csv", "{a}/{b,x+}.csv", "}{.csv"])
def test_a_name_with_braces_becomes_a_link(tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("content")
    link = aliases.escaped(str(file), tmp_path / "names")
    assert not set(link) & {"{", "}"} and Path(link).read_text() == "content"
    before = os.lstat(link)
    assert aliases.escaped(str(file), tmp_path / "names") == link and os.lstat(link).st_ino == before.st_ino
    other = file.with_name(f"{file.name}2")
    other.write_text("other")
    assert aliases.escaped(str(other), tmp_path / "names") != link
    os.unlink(link)
    os.symlink("nowhere", link)
    assert Path(aliases.escaped(str(file), tmp_path / "names")).read_text() == "content"
    assert len(os.listdir(tmp_path / "names")) == 2
