"""Results damaged on disk: found before they are read, named with what to do, and made again without losing others."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from metabo.bo import priors
from metabo.collect.journal import Journal
from metabo.data import download
from metabo.errors import DataError
from metabo.papers.engine.claims import evidence
from metabo.papers.engine.studies import files as studies
from metabo.papers.engine.theory import tables as theory
from metabo.records import checksums, results
from metabo.records.files import canonical, digest
from metabo.report import jobs, notebooks, scorecard
from metabo.tasks.benchmark import Benchmark
from tests.faults import chain

AGAIN = "run the same command"


def flipped(content, place):
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


DAMAGE = {
    "empty": lambda content, _: b"",
    "cut short": lambda content, _: content[: len(content) // 2],
    "one bit flipped": lambda content, chance: flipped(content, chance.randrange(8 * len(content))),
    "other bytes": lambda content, chance: chance.randbytes(len(content)),
}
KINDS = (
    *(chain.DATA, chain.PRIOR, chain.RUNS, chain.LOSSES, chain.SCORES),
    *(f"{chain.FIGURE}/{name}" for name in ("data.csv", "notebook.ipynb", "provenance.json")),
    chain.DATA.replace(".npz", ".json"),
)


@pytest.mark.slow
def test_each_kind_of_result_is_checked(copy, fault, monkeypatch):
    monkeypatch.chdir(copy())
    chance = random.Random(8)
    assert checksums.damaged(KINDS) == []
    for path in KINDS:
        content = Path(path).read_bytes()
        for name, damage in DAMAGE.items():
            with fault(f"{path}: {name}"):
                for _ in range(40 if "bit" in name else 1):
                    Path(path).write_bytes(damage(content, chance))
                    (message,) = checksums.damaged([path])
                    assert message.startswith(f"{path}: ") and "delete it" in message and AGAIN in message
        Path(path).write_bytes(content)
    assert checksums.damaged(KINDS) == []


def test_a_damaged_record_of_what_an_input_was_made_from_is_found(tmp_path, monkeypatch, fault):
    monkeypatch.chdir(tmp_path)
    made = {"results/prior.npz": {}, "results/runs.parquet": {"results/prior.npz": "0"}}
    Path("results").mkdir()
    for path, inputs in made.items():
        Path(path).write_text("x")
        record = {"schema": 2, "inputs": inputs, "outputs": {path: digest(path)}}
        Path(path).with_suffix(".json").write_text(json.dumps(checksums.sealed(record)))
    assert checksums.damaged(["results/runs.parquet", "config.yaml"]) == []
    with fault("the record of a prior cut short, which a figure reads"):
        os.truncate("results/prior.json", 40)
        (message,) = checksums.damaged(["results/runs.parquet"])
        assert (
            message.startswith("results/prior.json: not a readable sidecar") and "delete it and its result" in message
        )


@pytest.mark.parametrize(
    "row",
    download.archives(Path("workflow/datasets.csv"), Path("workflow/schemas/datasets.yaml")).values(),
    ids=lambda row: row["name"],
)
def test_the_record_of_a_download_is_found(row, tmp_path, monkeypatch):
    rule = Path("workflow/rules/data.smk").read_text()
    meta = re.search(r'meta=f"(\.cache/archives/.*)",', rule)[1]
    monkeypatch.chdir(tmp_path)
    record = Path(meta.replace("{row['file'].partition('.')[0]}", row["file"].partition(".")[0]))
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    assert checksums.sidecar_of(Path(".cache/archives", row["file"])) == record


READERS = {
    "npz": (Benchmark.load, priors.load, studies.read, lambda path: theory.read([path])),
    "parquet": (lambda path: results.read([path]), lambda path: results.read_evaluations([path]), studies.read),
    "csv": (evidence._csv, lambda path: scorecard.read([path])),
    "json": (jobs.read, lambda path: theory.read([path])),
    "ipynb": (lambda path: notebooks.render(path, "", "", notebooks.exporter()),),
}


@pytest.mark.parametrize("suffix", READERS)
def test_a_reader_without_a_record_to_compare_with(suffix, tmp_path, fault):
    path = tmp_path / f"result.{suffix}"
    for name, content in (("empty", b""), ("text", b"{'no': such\nfile"), ("bytes", bytes(range(256)))):
        with fault(f"{suffix}, {name}, no record"):
            path.write_bytes(content)
            for reader in READERS[suffix]:
                with pytest.raises(DataError, match=re.escape(str(path))):
                    reader(path)


@pytest.mark.slow
def test_damage_is_found_before_anything_is_deleted(copy, reference, fault, monkeypatch):
    project = copy()
    before = chain.state(project, chain.MADE[chain.ARTEFACT])
    with fault("a bit flipped in a table, a record cut short"):
        runs, record = project / chain.RUNS, (project / chain.LOSSES).with_suffix(".json")
        runs.write_bytes(flipped(runs.read_bytes(), 8 * 999))
        record.write_text(record.read_text()[:100])
        status, output = chain.run(project)
        assert status != 0 and "nothing was started" in output and chain.clear(output), output
        assert f"{chain.RUNS}: damaged" in output and f"{chain.LOSSES.replace('.parquet', '.json')}: " in output
        assert chain.state(project, chain.MADE[chain.ARTEFACT]) == before
        for path in (runs, record, project / chain.LOSSES):
            path.unlink()
        status, output = chain.run(project, chain.RUNS, chain.LOSSES)
        assert status == 0 and sorted(chain.finished(output)) == ["evaluate", "run_bo"], output
        assert chain.lasting(project) == reference.results
        assert "Nothing to be done" in chain.run(project, dry=True)[1]  # nor is what was made from them
    with fault("Snakemake's records cut short"):
        project = copy("other")
        for path in (project / ".snakemake/metadata").rglob("*"):
            if path.is_file():
                os.truncate(path, path.stat().st_size // 2)
        status, output = chain.run(project, dry=True)
        assert status == 0 and "Nothing to be done" in output, output
    with fault("a prior damaged while the run is at work"):
        prior = project / chain.PRIOR
        prior.write_bytes(flipped(prior.read_bytes(), 4321))
        spec = json.loads((project / chain.LOSSES).with_suffix(".json").read_text())["spec"]
        command = ["metabo.stages.evaluate", "--spec", canonical(spec), "--in-data", chain.DATA, "--out", chain.LOSSES]
        done = subprocess.run(
            [sys.executable, "-m", *command, "--in-prior", chain.PRIOR], cwd=project, capture_output=True, text=True
        )
        assert done.returncode == 1 and done.stderr.startswith(f"evaluate: {chain.PRIOR}: damaged"), done.stderr
        assert done.stderr.count("\n") == 1 and AGAIN in done.stderr


def test_a_damaged_journal_gives_no_wrong_trial(tmp_path, fault):
    path = tmp_path / "unit.jsonl"
    trials = {str(i): {"error": i / 7, "status": "done"} for i in range(3)}
    Journal(path, "key").add(trials)
    content = path.read_bytes()
    with fault("bits of a journal flipped"):
        for place in range(0, 8 * len(content), 5):
            path.write_bytes(flipped(content, place))
            found = Journal(path, "key").records
            assert found.items() <= trials.items() and len(found) >= 1  # a line end may join two
    for name in ("empty", "cut short", "other bytes"):
        with fault(f"journal: {name}"):
            path.write_bytes(DAMAGE[name](content, random.Random(8)))
            assert Journal(path, "key").records.items() <= trials.items()


def test_a_wrong_column_is_named(tmp_path):
    path = tmp_path / "data.csv"
    pd.DataFrame({"table": ["a"]}).to_csv(path)
    with pytest.raises(DataError, match="no column quantity, value; delete it"):
        evidence._csv(path)
