"""Recorded verdicts in words: counted as the report takes them, each with the table that has its row."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from metabo.cli import main
from metabo.errors import DataError
from metabo.evidence import manifest
from metabo.records.files import digest
from metabo.report import recorded
from metabo.report.explain import names
from metabo.report.scorecard import VERDICTS
from tests.evidence.conftest import resealed

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_clone(monkeypatch):
    monkeypatch.chdir(ROOT)


def rows(line: str) -> list[str]:
    return line.split()


def test_each_claim_has_a_line_with_the_table_of_its_verdict(capsys):
    main(["evidence", "claims", "cmbo"])
    head, *lines = capsys.readouterr().out.splitlines()
    counted = Counter(line.split("  ")[2].strip().partition(" (")[0] for line in lines)
    holds, *others = (counted[verdict] for verdict in VERDICTS)
    assert head == (
        f"cmbo at scale published: {len(lines)} of 28 claims are judged: {holds} hold, "
        "{} contradicted, {} undecided, {} not testable".format(*others)
    )
    for line in lines:
        name, table = rows(line)[0].rstrip("*"), rows(line)[-1]
        with open(table, newline="") as stream:
            (whole,) = [row for row in csv.DictReader(stream) if (row["claim"], row["role"]) == (name, "claim")]
        assert f" {whole['verdict']} " in line and (whole["headline"] == "1") == rows(line)[0].endswith("*")
    assert len(lines) >= 14


def test_all_papers_are_listed_and_an_unknown_one_is_not():
    found = recorded.lines(Path("evidence"))
    assert [line.split()[0] for line in found if not line.startswith(" ")] == ["cmbo", "hegpucb", "hyperbo", "mphd"]
    with pytest.raises(DataError, match=r"'hyperb' is no paper\. Did you mean 'hyperbo'\? Papers: cmbo, "):
        recorded.lines(Path("evidence"), ["hyperb"])
    assert recorded.lines(Path("nowhere")) == [
        "nowhere: has no verdicts; `metabo evidence list --to nowhere` shows what is kept"
    ]


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


def copied(folder: Path) -> Path:
    """Return a copy of the recorded verdicts as a folder of recorded results of its own."""
    kept = folder / "evidence/published"
    shutil.copytree("evidence/published/claims", kept / "claims")
    whole = manifest.read(Path("evidence/published"))
    relisted(kept, whole)
    return kept


def relisted(kept: Path, whole: manifest.Manifest) -> None:
    files = [path for path in kept.rglob("*") if path.is_file() and path.name != manifest.NAME]
    listed = {
        path.relative_to(kept).as_posix(): {"bytes": path.stat().st_size, "sha256": digest(path)} for path in files
    }
    manifest.write(kept, {**whole, "files": listed})


def changed(kept: Path, table: Path) -> None:
    """Bring record and manifest up to date with a changed table of verdicts, as if it had been made so."""
    own = table.with_suffix(".json")
    outputs = json.loads(own.read_text())["outputs"]
    resealed(own, outputs={name: digest(table) if name.endswith("/hyperbo.csv") else outputs[name] for name in outputs})
    relisted(kept, manifest.read(kept))


def test_what_is_not_read_is_said(tmp_path):
    """A table of an older schema is no absence of verdicts."""
    kept = copied(tmp_path)
    before = recorded.claims(kept.parent, ["hyperbo"])
    assert len(before.held) >= 32 and before.refused == []
    table = next(one.table for one in before.held if "earlier" in one.table.parts)
    lost = [one.claim.whole.claim for one in before.held if one.table == table]
    pd.read_csv(table, dtype=str, keep_default_na=False).drop(columns="said").to_csv(table, index=False)
    changed(kept, table)
    *_, last = found = recorded.lines(kept.parent, ["hyperbo"])
    assert last.startswith(f"not read: {table}: no column said") and f"{len(before.held) - len(lost)} of 87" in found[0]
    assert any("no column said" in line for line in recorded.of_claim("hyperbo", lost[0], kept.parent))


def test_a_claim_that_was_worded_anew_is_named(tmp_path):
    kept = copied(tmp_path)
    before = recorded.claims(kept.parent, ["hyperbo"]).held
    (table,) = [one.table for one in before if one.claim.whole.claim == "C14"]
    table.write_text(table.read_text().replace("With fewer functions than points", "With as many functions as points"))
    changed(kept, table)
    found = recorded.claims(kept.parent, ["hyperbo"])
    assert found.refused == [f"{table}: C14 says something else than the claim of this version"]
    assert "C14" not in {one.claim.whole.claim for one in found.held} and len(found.held) == len(before) - 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["claims", "--to", "nosuch"], "nosuch: there is no such folder; recorded results are in evidence"),
        (["list", "--to", "nosuch"], "nosuch: there is no such folder; recorded results are in evidence"),
        (["add"], "metabo evidence add: name the results of one run, e.g. results/laptop"),
        (
            ["add", "--artefacts", "a", "b", "results/x"],
            "put the folder first: metabo evidence add results/x --artefacts a b",
        ),
        (
            ["restore", "--configfile", "config/published.yaml", "results/published"],
            "put the folder first: metabo evidence restore results/published --configfile config/published.yaml",
        ),
    ],
)
def test_what_is_not_named_or_not_there_is_said(given, message, capsys):
    with pytest.raises(SystemExit, match="1"):
        main(["evidence", *given])
    assert capsys.readouterr().err.rstrip().endswith(message)


def test_a_claim_and_a_run_are_explained_with_what_is_recorded():
    said = " ".join(" ".join(names.explain("C22")).split())
    assert "recorded published: holds, 0.126 [0.0824, 0.17] share covered (evidence/published/claims/" in said
    overlay = [Path("config/published.yaml")]
    said = names.explain("h_nll-pi@held_out", overlay)
    assert any("evidence/published/bo/lcbench/held_out/h_nll-pi.parquet" in line for line in said)
    said = " ".join(names.explain("mphd-pi@held_out", overlay))
    assert "held_out/mphd-pi.json (its table is not kept; the record has the checksum)" in " ".join(said.split())
    assert not any(line.startswith("recorded") for line in names.explain("h_nll-pi@held_out"))
