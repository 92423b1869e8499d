"""`metabo verify`: what it says of finished results that are damaged in every way, and that it changes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from metabo import cli
from metabo.errors import DataError
from metabo.records import checksums, files, verify

OUT = "results/smoke"
DATA, RUNS, THEORY = "data/tables.npz", "bo/tables/held_out/h_nll-pi.parquet", "theory/hyperbo/lemma10.json"
PLACE = "hyperbo/tables/hyperbo_fig08"
FIGURE = tuple(f"{PLACE}/{name}" for name in ("data.csv", "figure.pdf", "figure.png", "notebook.ipynb"))
PAGES = f"{PLACE}/notebook.html"
REPORT = ("index.html", "scorecard.csv")
LOGS = ("logs/data/tables.log", f"logs/{PLACE}.ipynb")
RESULTS = (DATA, RUNS, THEORY, *FIGURE, PAGES, *REPORT)
RECORD = {DATA: "data/tables.json", RUNS: RUNS.replace("parquet", "json"), THEORY: THEORY.replace("json", "meta.json")}
RECORDS = (*RECORD.values(), f"{PLACE}/provenance.json", "hyperbo/pages.json", "index.json")


def write(record: str, outputs: tuple[str, ...], inputs: tuple[str, ...] = (), logs: tuple[str, ...] = (), **more):
    """Write the results of a job, where they are not there, and its record."""
    for name in (*outputs, *logs):
        if not Path(OUT, name).exists():
            files.write_text(Path(OUT, name), "{}" if name.endswith(".json") else f"content of {name}\n" * 9)
    read = [name if name.startswith("notebooks/") else f"{OUT}/{name}" for name in inputs]
    content = {
        "schema": 2, "stage": "trial", "spec": {}, "inputs": {name: files.digest(name) for name in read},
        "outputs": {f"{OUT}/{name}": files.digest(f"{OUT}/{name}") for name in outputs},
        "logs": {f"{OUT}/{name}": checksums.log_start(f"{OUT}/{name}") for name in logs}, **more,
    }  # fmt: skip
    files.write_text(Path(OUT, record), json.dumps(checksums.sealed(content)))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A finished run with each kind of file, in the present folder."""
    monkeypatch.chdir(tmp_path)
    files.write_text("notebooks/curves.ipynb", "a template")
    files.write_text("results/README.md", "what is here")
    write(RECORD[DATA], (DATA,), logs=LOGS[:1])
    write(RECORD[RUNS], (RUNS,), (DATA,))
    write(RECORD[THEORY], (THEORY,))
    write(f"{PLACE}/provenance.json", FIGURE, (RUNS, THEORY, "notebooks/curves.ipynb"), LOGS[1:])
    write("hyperbo/pages.json", (PAGES,), (f"{PLACE}/notebook.ipynb",))
    write("index.json", REPORT, (f"{PLACE}/provenance.json", "hyperbo/pages.json"))
    return tmp_path


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p): (p.lstat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


def found(folder: str = "results") -> dict[str, list[str]]:
    """Return the paths of flaws by kind, below the results of the run."""
    flaws = verify.verify(folder).flaws
    kinds = dict.fromkeys(flaw.kind for flaw in flaws)
    return {kind: [flaw.path.removeprefix(f"{OUT}/") for flaw in flaws if flaw.kind == kind] for kind in kinds}


def test_intact_results_are_said_to_be_so(project, capsys):
    before = state(project)
    cli.main(["verify"])
    number = len(RESULTS) + len(LOGS) + len(RECORDS) + 1  # the template
    assert capsys.readouterr().out == (
        f"results: {number} files checked, {len(RECORDS)} of them records: "
        "0 damaged, 0 missing, 0 stale, 0 without record\n"
    )
    assert state(project) == before


@pytest.mark.parametrize("name", [*RESULTS, *LOGS])
def test_a_byte_that_changed_is_found_in_each_kind_of_file(project, name, capsys):
    path = Path(OUT, name)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    before = state(project)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["verify", OUT])
    line, last = capsys.readouterr().out.splitlines()
    assert stopped.value.code == 1 and line.startswith(f"{OUT}/{name}: ") and "damaged or edited since" in line
    assert "delete" in line.rpartition(": ")[2] and ": 1 damaged, 0 missing, 0 stale, 0 without record" in last
    assert state(project) == before


@pytest.mark.parametrize("name", [*RESULTS, *LOGS])
def test_a_file_that_is_gone_is_found(project, name):
    Path(OUT, name).unlink()
    assert found() == {"missing": [name]}


@pytest.mark.parametrize("name", RECORDS)
def test_a_byte_that_changed_in_a_record_is_found(project, name):
    path, content = Path(OUT, name), Path(OUT, name).read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert found()["damaged"] == [name], place
    for short in (b"", content[:40], b"{}"):
        path.write_bytes(short)
        assert found().get("damaged") == [name] or (short == b"{}" and name in ("hyperbo/pages.json", "index.json"))
    path.write_text(json.dumps({**json.loads(content), "stage": "other"}))  # edited by hand
    assert found()["damaged"] == [name]


@pytest.mark.parametrize("name", RECORDS[:4])
def test_a_record_that_is_gone_is_found_where_another_job_read_its_result(project, name):
    Path(OUT, name).unlink()
    missing = found()["missing"]
    if name == f"{PLACE}/provenance.json":
        assert missing == [*FIGURE, name]  # its notebook was read by the job of the pages, itself by the report's
    else:
        assert [RECORD[result] for result in missing] == [name]


def test_a_record_that_is_gone_is_found_where_no_job_read_its_result(project, capsys):
    leaf, figure = "bo/tables/held_out/rand-uniform.parquet", "cmbo/tables/cmbo_fig02/data.csv"
    for result, record in (
        (leaf, leaf.replace("parquet", "json")),
        (figure, figure.replace("data.csv", "provenance.json")),
    ):
        write(record, (result,))
        Path(OUT, record).unlink()
    assert found() == {"missing": [leaf, figure]}
    with pytest.raises(SystemExit) as stop:
        cli.main(["verify"])
    assert stop.value.code == 1 and f"{OUT}/{leaf}: its record is missing: delete it" in capsys.readouterr().out


def test_what_no_record_lists_is_named_and_is_no_fault(project, capsys):
    for name in ("hyperbo/mine.txt", "data/.metabo-x.npz.abcdefgh.npz", "logs/bo/a.log", "logs/bo/b.log"):
        files.write_text(Path(OUT, name), "x")
    files.write_text(Path(OUT, "benchmarks/data/tables.tsv"), "s\n1\n")
    cli.main(["verify"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{OUT}/benchmarks: 1 file without a record: times that Snakemake writes after a job")
    assert lines[1].startswith(f"{OUT}/data/.metabo-x.npz.abcdefgh.npz: unfinished file of a killed job: ")
    assert lines[2].startswith(f"{OUT}/hyperbo/mine.txt: no record lists it: ")
    assert lines[3].startswith(f"{OUT}/logs: 2 files without a record: ") and lines[4].endswith(" 5 without record")


def test_an_input_that_was_made_again_is_stale_not_damaged(project, capsys):
    Path(OUT, DATA).write_text("made again")
    write(RECORD[DATA], (DATA,), logs=LOGS[:1])
    Path("notebooks/curves.ipynb").write_text("a better template")
    cli.main(["verify"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{OUT}/{RUNS}: stale, made from what has changed since: {OUT}/{DATA}: run the same")
    assert lines[1].startswith(f"{OUT}/{FIGURE[0]}: stale, made from what has changed since: notebooks/curves.ipynb: ")
    assert ": 0 damaged, 0 missing, 2 stale, 0 without record" in lines[2]


def test_a_result_without_a_record_that_is_not_what_was_read_is_damaged(project):
    Path(OUT, RECORD[DATA]).unlink()
    Path(OUT, DATA).write_text("other")
    assert found()["damaged"] == [DATA]


def test_the_files_that_a_judge_opened_itself_are_inputs_too(project):
    write("claims/hyperbo.json", ("claims/hyperbo.csv",), read={f"{OUT}/{RUNS}": "0" * 64})
    assert found() == {"stale": ["claims/hyperbo.csv"]}


def test_a_log_may_grow_after_its_job(project):
    with Path(OUT, LOGS[0]).open("a") as stream:
        stream.write("a late line\n")
    assert verify.verify(OUT).flaws == []


def test_a_record_of_schema_1_is_taken_as_it_is(project, capsys):
    path = Path(OUT, RECORD[RUNS])
    old = {key: value for key, value in json.loads(path.read_text()).items() if key not in (checksums.SEAL, "logs")}
    path.write_text(json.dumps(old | {"schema": 1}))
    cli.main(["verify"])
    assert "0 damaged" in (said := capsys.readouterr().out) and "; 1 records of schema 1, which have no " in said
    Path(OUT, RUNS).write_text("other")
    assert found() == {"damaged": [RUNS]}


def test_a_file_that_cannot_be_read_is_named_with_the_reason(project, monkeypatch):
    def refuse(path):
        if str(path).endswith(RUNS):
            raise PermissionError(13, "Permission denied")
        return files.digest(path)

    monkeypatch.setattr(verify, "digest", refuse)
    (flaw,) = verify.verify("results").flaws
    assert str(flaw) == f"{OUT}/{RUNS}: cannot be read (Permission denied): {verify.LOOK}" and flaw.kind == "damaged"
    monkeypatch.undo()
    monkeypatch.chdir(project)
    Path(OUT, RUNS).unlink()
    Path(OUT, RUNS).mkdir()
    (flaw,) = verify.verify("results").flaws
    assert flaw.what == "is no file"


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_listed_is_named(project):
    Path(OUT, "data").chmod(0)
    try:
        assert f"{OUT}/data: cannot be listed" in "\n".join(verify.verify("results").lines)
    finally:
        Path(OUT, "data").chmod(0o755)


def test_links_are_followed_once_and_broken_ones_named(project):
    Path(OUT, "data").rename("elsewhere")
    Path(OUT, "data").symlink_to(project / "elsewhere")
    Path(OUT, "bo", "again").symlink_to(project / OUT)
    assert verify.verify("results").flaws == []
    Path(OUT, "stray.npz").symlink_to(project / "nowhere")
    Path(OUT, RUNS).unlink()
    Path(OUT, RUNS).symlink_to("nowhere")
    flaws = verify.verify("results").flaws
    assert [flaw.kind for flaw in flaws] == ["missing", "missing"] and "a link to nowhere" in flaws[0].what
    assert "a link to" in flaws[1].what and "delete the link" in flaws[1].remedy


def test_results_may_have_been_moved_renamed_or_copied(project):
    for place in ("copy/smoke", "copy/renamed", "results/other"):
        Path(place).parent.mkdir(exist_ok=True)
        Path(OUT).rename(place)
        held = verify.verify(place)
        assert held.flaws == [] and held.files > len(RESULTS) and held.elsewhere in (0, 1), place
        Path(place, DATA).rename(Path(place, "x"))
        assert [flaw.path for flaw in verify.verify(place).flaws if flaw.kind == "missing"] == [f"{place}/{DATA}"]
        Path(place, "x").rename(Path(place, DATA))
        Path(place).rename(OUT)


def test_each_file_is_read_once(project, monkeypatch):
    read = []
    monkeypatch.setattr(verify, "digest", lambda path: read.append(path) or files.digest(path))
    verify.verify("results")
    assert len(read) == len(set(read)) > len(RESULTS)


@pytest.mark.parametrize("place", ["nowhere", "empty", "other"])
def test_a_folder_without_results_is_refused(tmp_path, place):
    (tmp_path / "empty").mkdir()
    files.write_text(tmp_path / "other" / "package.json", '{"name": "x", "version": 1}')
    files.write_text(tmp_path / "other" / "notes.txt", "x")
    with pytest.raises(DataError, match=rf"{place}: (no such folder|has no record of a job).* results/laptop"):
        verify.verify(tmp_path / place)


def test_the_answer_for_a_program(project, capsys):
    Path(OUT, DATA).unlink()
    with pytest.raises(SystemExit):
        cli.main(["verify", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert (said["intact"], said["damaged"], said["missing"], said["without_record"]) == (False, 0, 1, 0)
    assert said["flaws"][0] | {"remedy": ""} == {
        "kind": "missing", "path": f"{OUT}/{DATA}", "what": "missing", "remedy": "", "files": 1,
    }  # fmt: skip


def test_the_command_imports_no_jax(project):
    program = "import sys; from metabo import cli; cli.main(['verify']); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
