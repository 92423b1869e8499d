"""Recorded verdicts in words: counted as the report takes them, each with the table that has its row."""

import csv
import shutil
from pathlib import Path

import pytest

from metabo.cli import main
from metabo.errors import DataError
from metabo.report import recorded
from metabo.report.explain import names

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_clone(monkeypatch):
    monkeypatch.chdir(ROOT)


def rows(line: str) -> list[str]:
    return line.split()


def test_each_claim_has_a_line_with_the_table_of_its_verdict(capsys):
    main(["evidence", "claims", "cmbo"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith(
        "cmbo at scale published: 14 of 28 claims are judged: 5 hold, 3 contradicted, 2 undecided, 4 not"
    )
    for line in lines:
        name, table = rows(line)[0].rstrip("*"), rows(line)[-1]
        with open(table, newline="") as stream:
            (whole,) = [row for row in csv.DictReader(stream) if (row["claim"], row["role"]) == (name, "claim")]
        assert f" {whole['verdict']} " in line and (whole["headline"] == "1") == rows(line)[0].endswith("*")
    assert len(lines) == 14


def test_all_papers_are_listed_and_an_unknown_one_is_not():
    found = recorded.lines(Path("evidence"))
    assert [line.split()[0] for line in found if not line.startswith(" ")] == ["cmbo", "hegpucb", "hyperbo", "mphd"]
    with pytest.raises(DataError, match=r"'hyperb' is no paper\. Did you mean 'hyperbo'\? Papers: cmbo, "):
        recorded.lines(Path("evidence"), "hyperb")
    assert recorded.lines(Path("nowhere"))[0].startswith("nowhere: no recorded verdicts")


def test_a_reading_that_came_later_counts(capsys):
    """M11 is contradicted in its table, and undecided by the readings of today."""
    main(["evidence", "claims", "mphd"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.split()[0] == "M11"]
    assert "undecided (untested)" in line


def test_damaged_records_are_named(tmp_path):
    shutil.copytree("evidence/published/claims", tmp_path / "evidence/published/claims")
    (tmp_path / "evidence/published/manifest.json").write_text("{}")
    with pytest.raises(DataError, match=r"manifest\.json"):
        recorded.lines(tmp_path / "evidence")
    (said,) = recorded.of_claim("hyperbo", "C22", tmp_path / "evidence")
    assert "manifest.json" in said


def test_a_claim_and_a_run_are_explained_with_what_is_recorded():
    said = " ".join(" ".join(names.explain("C22")).split())
    assert "recorded published: holds, 0.126 [0.0824, 0.17] share covered (evidence/published/claims/" in said
    overlay = [Path("config/published.yaml")]
    said = names.explain("h_nll-pi@held_out", overlay)
    assert any("evidence/published/bo/lcbench/held_out/h_nll-pi.parquet" in line for line in said)
    said = " ".join(names.explain("mphd-pi@held_out", overlay))
    assert "held_out/mphd-pi.json (its table is not kept; the record has the checksum)" in " ".join(said.split())
    assert not any(line.startswith("recorded") for line in names.explain("h_nll-pi@held_out"))
