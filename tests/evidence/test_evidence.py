"""What is kept of a run, and that every change of it is found: by checksums, or by making it again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metabo.cli import main
from metabo.errors import DataError
from metabo.evidence import adding, describing, losses, manifest
from metabo.plan import codegraph, digests
from metabo.records import inventory, results
from metabo.records.files import digest
from tests import tiny
from tests.evidence.conftest import COMMIT, make, record, resealed

KEPT = Path("evidence")
SCALE = KEPT / "laptop"
TABLE = SCALE / "bo/tiny/held_out/h_nll-pi.parquet"
PRIOR = SCALE / "priors/tiny/held_out/h_nll.npz"
FOLDER = Path("results/laptop")
ROOT = Path(__file__).parents[2]


def verified(capsys, *options):
    """Return exit status and lines of `metabo verify evidence`."""
    try:
        main(["verify", str(KEPT), *options])
        status = 0
    except SystemExit as ended:
        status = ended.code
    return status, capsys.readouterr().out


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def relisted(*paths):
    """Bring the manifest, and the records beside them, up to date with changed files, as a forger would."""
    listed = json.loads((SCALE / manifest.NAME).read_text())["files"]
    for path in paths:
        own = path.with_suffix(".json")
        made = json.loads(own.read_text())["outputs"]
        resealed(own, outputs={name: digest(path) for name in made})
        for changed in (path, own):
            place = changed.relative_to(SCALE).as_posix()
            listed[place] = {"bytes": changed.stat().st_size, "sha256": digest(changed)}
    resealed(SCALE / manifest.NAME, files=listed)


def test_what_a_run_made_is_kept_and_what_others_own_is_not(run, capsys):
    main(["evidence", "add", "results/laptop"])
    assert "evidence/laptop: 13 new, 0 replaced, 0 deleted; 13 files" in capsys.readouterr().out
    kept = {
        f"{stem}.{end}"
        for stem in ("priors/tiny/held_out/h_nll", "priors/tiny/held_out/rand")
        for end in ("npz", "json")
    }
    kept |= {f"bo/tiny/held_out/{stem}.{end}" for stem in ("h_nll-pi", "rand-uniform") for end in ("parquet", "json")}
    kept |= {
        "data/tiny.json",
        "claims/hyperbo.csv",
        "claims/hyperbo-gates.csv",
        "claims/hyperbo.json",
        manifest.LOSSES,
        manifest.NAME,
    }
    assert names(SCALE) == kept  # no data/tiny.npz, no figure
    listed = manifest.read(SCALE)
    assert set(listed["files"]) == kept - {manifest.NAME}
    assert listed["commits"] == [COMMIT] and listed["core_hours"]["bo"] == 1.0
    status, said = verified(capsys)
    assert status == 0, said
    assert "replayed 20 runs" in said and "4 losses of priors" in said and "0 not as recorded" in said
    main(["evidence", "list"])
    said = capsys.readouterr().out
    assert "core hours: 3.0" in said and f"MB, of commit {COMMIT[:8]}\n" in said
    assert "  tiny: 2 trainings, 2 runs; made by this project\n" in said
    adding.add(FOLDER, KEPT, trajectories=False)
    main(["evidence", "list"])
    assert "  tiny: 2 trainings, 2 runs (2 by record alone); made by this project\n" in capsys.readouterr().out


def test_results_that_the_present_code_would_make_anew_are_named(run, capsys):
    """A finding was drawn from studies whose code had changed a day later; nothing had said so."""
    said = "made by other code than the present, run these again and add them:"
    for path in [*FOLDER.glob("bo/*/*/*.json"), *FOLDER.glob("priors/*/*/*.json")]:
        own = json.loads(path.read_text())
        code = digests.together(codegraph.inputs(codegraph.stage_roots(own["stage"], own["spec"])))
        resealed(path, depends_sha256=code)
    adding.add(FOLDER, KEPT)
    main(["evidence", "list"])
    assert f"{said} data/tiny.npz\n" in capsys.readouterr().out  # a benchmark that is not registered
    resealed(FOLDER / "bo/tiny/held_out/h_nll-pi.json", depends_sha256="0" * 64)
    resealed(FOLDER / "claims/hyperbo.json", depends_sha256="0" * 64)  # judged anew in every run
    adding.add(FOLDER, KEPT)
    main(["evidence", "list"])
    assert f"{said} bo/tiny/held_out/h_nll-pi.parquet, data/tiny.npz\n" in capsys.readouterr().out


def test_jobs_that_were_planned_with_the_table_of_typical_times_run_the_same_code(run):
    """Until 2026-11-29 it was an input of every job; what was recorded then still counts, with that table alone."""
    path = FOLDER / "bo/tiny/held_out/h_nll-pi.json"
    own = json.loads(path.read_text())
    found = digests.of_all(codegraph.inputs(codegraph.stage_roots("bo", own["spec"])))
    for table, outdated in (*((known, False) for known in describing.TYPICAL), ("0" * digests.LENGTH, True)):
        resealed(path, depends_sha256=digests.joined([*found, table]))
        records = inventory.take(FOLDER.absolute()).records
        assert ("bo/tiny/held_out/h_nll-pi.parquet" in describing.outdated(records)) == outdated


def test_what_the_project_records_is_of_its_present_code():
    """Else nothing of it can be restored. After an edit that changes results, run these again and add them."""
    records = inventory.take((ROOT / "evidence" / "published").absolute()).records
    assert len(records) > 300 and describing.outdated(records) == []


def test_only_what_an_artefact_was_made_from_is_kept(run):
    adding.add(FOLDER, KEPT, ["hyperbo_fig08_tiny"])
    assert "bo/tiny/held_out/h_nll-pi.parquet" in names(SCALE)
    assert not [name for name in names(SCALE) if "rand" in name]
    with pytest.raises(DataError, match="has no artefact 'hyperbo_fig09'; make it first, or name one of hyperbo_fig08"):
        adding.add(FOLDER, KEPT, ["hyperbo_fig09"])


def test_losses_that_are_stored_are_not_computed_again(run, tmp_path, monkeypatch):
    adding.add(FOLDER, KEPT)
    stored, computed = losses.read(SCALE / manifest.LOSSES), []
    of_priors = losses.of_priors
    monkeypatch.setattr(losses, "of_priors", lambda name, one: computed.append(name) or of_priors(name, one))
    adding.add(FOLDER, KEPT)
    own = "priors/tiny/held_out/h_nll.npz"
    assert own not in computed and losses.read(SCALE / manifest.LOSSES) == stored
    make(tmp_path, seed=1, methods=("h_nll",))
    adding.add(FOLDER, KEPT)
    assert own in computed and losses.read(SCALE / manifest.LOSSES) != stored


def test_a_second_addition_replaces_and_keeps_the_rest(run, tmp_path, capsys):
    adding.add(FOLDER, KEPT)
    before = manifest.read(SCALE)["files"]
    shutil.rmtree("results")
    make(tmp_path, seed=1, methods=("h_nll",))
    adding.add(FOLDER, KEPT)
    after = manifest.read(SCALE)["files"]
    assert set(before) == set(after)
    changed = {name for name in before if before[name] != after[name]}
    assert {"priors/tiny/held_out/h_nll.npz", "bo/tiny/held_out/h_nll-pi.parquet", manifest.LOSSES} <= changed
    assert not [name for name in changed if "rand" in name]
    assert verified(capsys)[0] == 0


@pytest.mark.parametrize("path", [TABLE, PRIOR, SCALE / "claims/hyperbo.csv", SCALE / "data/tiny.json"])
def test_one_flipped_byte_is_found(path, run, capsys):
    adding.add(FOLDER, KEPT)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    status, said = verified(capsys)
    assert status == 1 and path.as_posix() in said and "replayed" not in said


def test_a_swapped_query_is_found_although_all_checksums_fit(run, capsys):
    adding.add(FOLDER, KEPT)
    table = results.read([TABLE])
    rows = table.index[(table["task"] == "a") & (table["iteration"] == 2)]
    y = tiny.benchmark().tasks["a"].y
    assert (table.loc[rows, "candidate"] != np.argmin(y)).all()
    table.loc[rows, ["candidate", "y"]] = [int(np.argmin(y)), y.min()]
    results.write(table.astype({"candidate": "int64"}), TABLE)
    relisted(TABLE)
    assert verified(capsys, "--runs", "0")[0] == 0  # checksums alone do not see it
    status, said = verified(capsys, "--runs", "40")
    assert status == 1
    assert "task 'a'" in said and "iteration 2: the recorded choice is" in said and "h_nll-pi.parquet" in said


def test_a_changed_weight_is_found_by_its_loss(run, capsys):
    adding.add(FOLDER, KEPT)
    arrays = dict(np.load(PRIOR))
    name = next(key for key in arrays if "raw_noise" in key)
    arrays[name] = arrays[name] + 1e-3
    np.savez(PRIOR, **arrays)
    relisted(PRIOR)
    own = TABLE.with_suffix(".json")  # the run names the priors that it read
    read = json.loads(own.read_text())["inputs"]
    resealed(own, inputs={key: digest(PRIOR) if key.endswith("h_nll.npz") else value for key, value in read.items()})
    relisted(TABLE)
    status, said = verified(capsys, "--runs", "8")
    assert status == 1 and "h_nll.npz: the training loss of its parameters differs by" in said


def test_without_the_table_nothing_is_replayed_and_that_is_said(run, capsys):
    adding.add(FOLDER, KEPT)
    Path("results/laptop/data/tiny.npz").unlink()
    status, said = verified(capsys, "--runs", "7")
    assert status == 0 and said.startswith(
        "replayed 0 of 7 runs, since no table that one read is here: checksums alone"
    )
    assert "\n3 not replayed: benchmark 'tiny' is not here with the recorded checksum\n" in said
    assert "to replay these, first: snakemake --cores 1 -- results/laptop/data/tiny.npz\n" in said
    Path("config").mkdir(exist_ok=True)
    Path("config/laptop.yaml").write_text("")
    assert "first: snakemake --cores 1 --configfile config/laptop.yaml -- results" in verified(capsys)[1]


def edit():
    path = SCALE / manifest.NAME
    path.write_text(path.read_text().replace('"scale": "laptop"', '"scale": "paper"'))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (TABLE.unlink, "h_nll-pi.parquet: missing, the manifest lists it"),
        (lambda: (SCALE / "more.csv").write_text("x"), "more.csv: not listed by the manifest: delete it"),
        (
            lambda: resealed(SCALE / manifest.NAME, schema=0),
            "schema 0, this version reads 1; delete the folder and add",
        ),
        (lambda: resealed(SCALE / manifest.NAME, commits=["b" * 40]), "is of commit aaaaaaaaaaaa, which the manifest"),
        (edit, "manifest.json: damaged or edited by hand"),
        (lambda: (SCALE / manifest.NAME).write_text("{"), "manifest.json: cannot be read (Expecting property name"),
        (lambda: (KEPT / "paper").mkdir(), "evidence/paper/manifest.json: cannot be read (No such file or directory)"),
    ],
)
def test_what_is_wrong_is_named(spoil, message, run, capsys):
    adding.add(FOLDER, KEPT)
    spoil()
    status, said = verified(capsys)
    assert status == 1 and message in said


def test_what_is_no_evidence_is_refused_and_nothing_is_written(run, monkeypatch):
    own = FOLDER / "bo/tiny/held_out/h_nll-pi.json"
    whole = own.read_text()
    resealed(own, git={"commit": COMMIT, "dirty": True})
    with pytest.raises(DataError, match=r"h_nll-pi\.parquet was made by a checkout with changes that no commit had"):
        adding.add(FOLDER, KEPT)
    own.write_text(whole)
    monkeypatch.setattr(adding, "LIMIT", 20e3)
    with pytest.raises(DataError, match=r"at most 0 are kept \(largest: bo/tiny .*--artefacts hyperbo_fig08"):
        adding.add(FOLDER, KEPT)
    table = FOLDER / "bo/tiny/held_out/h_nll-pi.parquet"
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match=r"not as its jobs wrote it, so not evidence: .*h_nll-pi\.parquet: damaged"):
        adding.add(FOLDER, KEPT)
    assert not KEPT.exists()


def test_a_result_of_a_checkout_with_changes_counts_if_a_commit_has_its_code(run, monkeypatch, capsys):
    name, now = "bo/tiny/held_out/h_nll-pi.json", {"commit": "c" * 40, "dirty": False}
    own, whole = FOLDER / name, (FOLDER / name).read_text()
    spec = json.loads(whole)["spec"]
    same = digests.together(codegraph.inputs(codegraph.stage_roots("bo", spec)))
    monkeypatch.setattr(adding.provenance, "git_state", lambda *_: now)

    def refused(why):
        with pytest.raises(DataError, match=f"made by a checkout with changes that no commit had, and {why}"):
            adding.add(FOLDER, KEPT)

    changed = {"commit": "b" * 40, "dirty": True}
    resealed(own, git=changed, depends_sha256="0" * 64)
    refused("its code is not that of the present commit")
    Path("sheet.yaml").write_text("now\n")
    resealed(own, depends_sha256=same, inputs={**json.loads(whole)["inputs"], "sheet.yaml": "0" * 64})
    refused("its code is not that of the present commit")  # nor what else it read of the project
    resealed(own, inputs=json.loads(whole)["inputs"])
    now["dirty"] = True
    refused("this checkout has changes too")
    now["dirty"] = False
    assert adding.add(FOLDER, KEPT).line.endswith("; 1 results of a checkout with changes, whose code a commit has")
    listed = manifest.read(SCALE)
    assert listed["commits"] == [COMMIT, "c" * 40] and listed["same_code"] == {name: "c" * 40}
    assert verified(capsys)[0] == 0

    now["commit"] = "d" * 40  # whose code is another: what was noted stays
    monkeypatch.setattr(adding, "runs_same_code", lambda *_: False)
    adding.add(FOLDER, KEPT)
    assert manifest.read(SCALE)["same_code"] == {name: "c" * 40}
    own.write_text(whole)  # made again, at a commit
    adding.add(FOLDER, KEPT)
    assert manifest.read(SCALE)["commits"] == [COMMIT] and "same_code" not in manifest.read(SCALE)


def test_of_priors_that_are_too_large_the_record_is_kept_and_their_runs_are_not_replayed(run, monkeypatch, capsys):
    monkeypatch.setattr(adding, "_worth", lambda record: not record.result.endswith("priors/tiny/held_out/h_nll.npz"))
    main(["evidence", "add", "results/laptop"])
    assert "of 1 jobs the records alone, since what they made is too large" in capsys.readouterr().out
    assert not PRIOR.exists() and PRIOR.with_suffix(".json").exists() and TABLE.exists()
    status, said = verified(capsys, "--runs", "8")
    assert status == 0 and "replayed 8 runs" in said and "0 losses of priors" in said
    assert "1 not replayed: they, or their priors, are not kept" in said


def test_what_has_become_too_large_is_forgotten_and_its_record_is_kept(run, monkeypatch, capsys):
    adding.add(FOLDER, KEPT)
    assert TABLE.exists()
    largest = TABLE.stat().st_size
    others = sum(path.stat().st_size >= largest for path in FOLDER.rglob("*") if path.suffix in (".parquet", ".npz"))
    assert others == 1, "one file is the largest"
    monkeypatch.setattr(adding, "LARGEST", largest - 1)
    assert adding.add(FOLDER, KEPT).not_kept == 1
    assert not TABLE.exists() and TABLE.with_suffix(".json").exists()
    listed = manifest.read(SCALE)["files"]
    assert TABLE.relative_to(SCALE).as_posix() not in listed and "losses.csv" in listed
    assert verified(capsys, "--runs", "0")[0] == 0


def test_without_trajectories_the_priors_and_all_records_are_kept(run, capsys):
    adding.add(FOLDER, KEPT)
    main(["evidence", "add", "results/laptop", "--without-trajectories"])
    said = capsys.readouterr().out
    assert "too large" not in said and "; of 2 runs of BO the records alone" in said
    assert not TABLE.exists() and TABLE.with_suffix(".json").exists() and PRIOR.exists()
    assert TABLE.relative_to(SCALE).as_posix() not in manifest.read(SCALE)["files"]
    status, said = verified(capsys, "--runs", "8")
    assert (
        status == 0 and "2 not replayed: they, or their priors, are not kept" in said and "4 losses of priors" in said
    )


def test_without_priors_their_records_are_kept_and_their_losses_go(run, capsys):
    adding.add(FOLDER, KEPT)
    assert losses_recorded()
    main(["evidence", "add", "results/laptop", "--without-trajectories", "--without-priors"])
    said = capsys.readouterr().out
    assert "; of 2 runs of BO the records alone; of 2 files of priors the records alone" in said
    assert not PRIOR.exists() and PRIOR.with_suffix(".json").exists() and not losses_recorded()
    assert PRIOR.relative_to(SCALE).as_posix() not in manifest.read(SCALE)["files"]
    assert verified(capsys, "--runs", "8")[0] == 0


def losses_recorded():
    """The recorded losses of priors, without the header."""
    return (SCALE / "losses.csv").read_text().splitlines()[1:]


def test_the_table_of_a_study_has_a_lower_limit(run, tmp_path, monkeypatch):
    table = FOLDER / "studies/drawn.parquet"
    table.parent.mkdir()
    table.write_bytes(b"draws" * 100)
    record(table.absolute().with_suffix(".json"), "study", [], [table.absolute()], {"study": "drawn"}, tmp_path)
    assert adding.add(FOLDER, KEPT).not_kept == 0 and (SCALE / "studies/drawn.parquet").exists()
    monkeypatch.setattr(adding, "LARGEST_STUDY", 499)
    assert adding.add(FOLDER, KEPT).not_kept == 1
    assert not (SCALE / "studies/drawn.parquet").exists() and (SCALE / "studies/drawn.json").exists()


def test_priors_of_which_no_run_is_made_again_have_a_lower_limit(run, monkeypatch):
    prior = Path("priors/tiny/held_out/rand.npz")
    monkeypatch.setattr(adding, "LARGEST_UNUSED", (FOLDER / prior).stat().st_size - 1)
    assert adding.add(FOLDER, KEPT).not_kept == 0 and (SCALE / prior).exists()
    shutil.rmtree(KEPT)
    registered = adding.registry.made_of
    monkeypatch.setattr(adding.registry, "made_of", lambda name: replace(registered(name), uses_past=name == "rand"))
    assert adding.add(FOLDER, KEPT).not_kept == 1 and not (SCALE / prior).exists()


def test_a_folder_without_results_to_keep_is_refused(tmp_path):
    figure = tmp_path / "results/laptop/theory/figure.csv"
    figure.parent.mkdir(parents=True)
    figure.write_text("x")
    record(figure.with_suffix(".json"), "notebook", [], [figure], root=tmp_path)
    with pytest.raises(DataError, match="has no priors, trajectories, studies, theory or claims to keep"):
        adding.add(tmp_path / "results/laptop", tmp_path / "evidence")


def test_list_says_where_nothing_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["evidence", "list"])
    assert "evidence: nothing is kept yet; `metabo evidence add results/laptop` keeps a run" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["evidence", "list", "elsewhere"])
    assert "elsewhere: there is no such folder; recorded results are in evidence" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["evidence", "add"])
    assert "name the results of one run, e.g. results/laptop" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["elsewhere"], ["elsewhere/laptop"], ["--to", "elsewhere"]])
def test_list_shows_the_folder_that_is_named(tmp_path, monkeypatch, capsys, given):
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    adding.add(FOLDER, Path("elsewhere"))
    main(["evidence", "list", *given])
    assert capsys.readouterr().out.startswith("elsewhere/laptop: ")


def test_adding_says_how_many_files_changed(run):
    adding.add(FOLDER, KEPT)
    again = adding.add(FOLDER, KEPT)
    assert again.changes == (0, 0, 0) and again.line.startswith(
        "evidence/laptop: 0 new, 0 replaced, 0 deleted; 13 files"
    )
    bare = adding.add(FOLDER, KEPT, trajectories=False)
    gone = again.files - bare.files
    assert gone > 0 and bare.changes == (0, 0, gone)
    assert adding.add(FOLDER, KEPT).changes == (gone, 0, 0)


def test_methods_that_fit_in_every_step_are_compared_by_checksum_alone(tmp_path, monkeypatch, capsys):
    make(tmp_path, methods=("stboh",))
    monkeypatch.chdir(tmp_path)
    adding.add(FOLDER, KEPT)
    status, said = verified(capsys)
    assert status == 0 and "0 not as recorded" in said
    assert said.startswith("replayed 0 of 20 runs, since none that is kept can be: checksums alone were compared\n")
