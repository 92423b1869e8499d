"""An addition replaces a folder as a whole, whatever stops it, and says what it cannot do; what lies about is named."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metabo.cli import main
from metabo.errors import DataError, MetaboError
from metabo.evidence import adding, losses, manifest, recorded, restoring, swapping
from metabo.evidence.swapping import replacing
from metabo.plan import codegraph
from metabo.records import inventory
from tests.evidence.conftest import COMMIT, make, resealed
from tests.evidence.test_evidence import FOLDER, KEPT, PRIOR, SCALE, TABLE, names, verified
from tests.evidence.test_restoring import code, planned


class Stop(BaseException):
    """Stands for a kill. Where it is raised, `swapping._discard`, which would clean up, is switched off."""


def content(folder):
    return {name: (folder / name).read_bytes() for name in names(folder)}


def stopped(*_):
    raise Stop


def nothing(*_):
    """Stands for the cleaning up of a process that is no more."""


@pytest.fixture
def two(run, tmp_path):
    """Evidence of one run, whose place in `results` another run has; return the evidence before and after."""
    adding.add(FOLDER, KEPT)
    before = content(KEPT)
    make(tmp_path, seed=1)
    adding.add(FOLDER, KEPT)
    after = content(KEPT)
    shutil.rmtree(KEPT)
    for name, text in before.items():
        (KEPT / name).parent.mkdir(parents=True, exist_ok=True)
        (KEPT / name).write_bytes(text)
    assert before != after
    return before, after


@pytest.mark.parametrize("step", [0, 1, 4, 11, "losses", "manifest", "sync"])
def test_an_addition_that_is_killed_before_the_swap_leaves_all_as_it_was(step, two, monkeypatch, capsys):
    before, after = two
    copies = iter(range(1_000))

    def copied(source, target, real=shutil.copyfile):
        if next(copies) == step:
            Path(target).write_bytes(b"half")
            raise Stop
        return real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(swapping, "_discard", nothing)
        patched.setattr(shutil, "copyfile", copied)
        places = {"losses": (losses, "write"), "manifest": (adding, "write"), "sync": (os, "sync")}
        if step in places:
            patched.setattr(*places[step], stopped)
        with pytest.raises(Stop):
            adding.add(FOLDER, KEPT)
    assert {name: text for name, text in content(KEPT).items() if not name.startswith(".")} == before
    status, said = verified(capsys, "--runs", "0")
    assert status == 1 and "evidence/.laptop.new: left behind by an interrupted `metabo evidence add`: run" in said
    assert "0 not as recorded" in said  # the folder itself is whole
    adding.add(FOLDER, KEPT)
    assert content(KEPT) == after and verified(capsys, "--runs", "0")[0] == 0


KILLED = """
import os, sys
from pathlib import Path
from metabo.evidence import swapping

real, done = Path.rename, []

def renamed(self, target):
    if len(done) == int(sys.argv[1]):
        os._exit(9)
    done.append(real(self, target))

Path.rename, swapping._discard = renamed, lambda _: os._exit(9)
with swapping.replacing(Path("evidence/laptop")) as stage:
    for path in Path("made").rglob("*"):
        if path.is_file():
            swapping.put(path, stage / path.relative_to("made"))
"""


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_one_that_is_killed_in_the_swap_is_brought_to_its_end(moves, two, capsys):
    before, after = two
    for name, text in after.items():
        path = Path("made") / Path(name).relative_to("laptop")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    assert subprocess.run([sys.executable, "-c", KILLED, str(moves)]).returncode == 9
    assert SCALE.exists() == (moves != 1)
    status, said = verified(capsys, "--runs", "0")
    assert status == 1 and ("evidence/.laptop.old: left behind by an interrupted" in said) == (moves > 0)
    told = (
        "evidence/laptop: `metabo evidence add` was interrupted while it replaced this folder; run it again, or rename"
    )
    assert (f"{told} evidence/.laptop.new to evidence/laptop" in said) == (moves == 1)
    assert len(recorded.verdicts(KEPT).refused) == (moves == 1)
    swapping.recover(KEPT)
    assert content(KEPT) == (after if moves else before) and verified(capsys, "--runs", "0")[0] == 0


def test_verdicts_in_pieces_survive_a_kill(tmp_path, monkeypatch):
    """Copied file by file, neither run could be added again, and the old verdicts were told to be deleted."""
    head, wait = "claim,role,verdict,said\n", "hyperbo_fig08 is not part of this run (config section run)"
    kept = tmp_path / "evidence"
    for name, claims in (("first", "C01,claim,holds,a\n"), ("second", f"C01,claim,not testable,{wait}\n")):
        make(tmp_path / name, methods=(), claims=head + claims)
        monkeypatch.chdir(tmp_path / name)
        with monkeypatch.context() as patched:
            if name == "second":
                patched.setattr(swapping.os, "sync", stopped)
                patched.setattr(swapping, "_discard", nothing)
                with pytest.raises(Stop):
                    adding.add(FOLDER, kept)
            else:
                adding.add(FOLDER, kept)
    assert adding.add(FOLDER, kept).earlier == ["C01"]
    assert manifest.flaws(kept / "laptop", manifest.read(kept / "laptop")) == []


def test_the_second_of_two_additions_at_once_is_told(run):
    KEPT.mkdir()
    handle = os.open(KEPT, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(DataError, match="evidence: another `metabo evidence add` is running"):
        adding.add(FOLDER, KEPT)
    os.close(handle)
    assert not list(KEPT.iterdir())
    adding.add(FOLDER, KEPT)


@pytest.mark.parametrize("spoil", [lambda text: text.replace("0.", "0.1", 1), lambda text: "", lambda text: text[:-30]])
def test_losses_that_were_edited_are_made_again_and_not_sealed(spoil, run, capsys):
    adding.add(FOLDER, KEPT)
    path = SCALE / manifest.LOSSES
    whole = path.read_text()
    path.write_text(spoil(whole))
    assert path.read_text() != whole and verified(capsys, "--runs", "0")[0] == 1
    adding.add(FOLDER, KEPT)
    assert path.read_text() == whole and verified(capsys, "--runs", "0")[0] == 0


def test_edited_losses_of_priors_that_this_run_lacks_are_made_from_its_tables_or_refused(run, tmp_path):
    adding.add(FOLDER, KEPT)
    path = SCALE / manifest.LOSSES
    whole = path.read_text()
    path.write_text(whole.replace("0.", "0.1", 1))
    shutil.rmtree(FOLDER)
    make(tmp_path, methods=("rand",))
    adding.add(FOLDER, KEPT)  # H-NLL's table is that of this run
    assert path.read_text() == whole
    path.write_text(whole.replace("0.", "0.1", 1))
    kept = content(KEPT)
    shutil.rmtree(FOLDER)
    make(tmp_path, methods=())
    (FOLDER / "data/tiny.npz").unlink()
    (FOLDER / "data/tiny.json").unlink()
    with pytest.raises(
        DataError, match=r"losses\.csv: missing, damaged or edited .* tables of 2 files of priors are not"
    ):
        adding.add(FOLDER, KEPT)
    assert content(KEPT) == kept


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"x"), lambda path: path.unlink()])
def test_losses_are_not_made_again_from_damaged_priors(spoil, run, tmp_path):
    adding.add(FOLDER, KEPT)
    path = SCALE / manifest.LOSSES
    path.write_text(path.read_text().replace("0.", "0.1", 1))
    spoil(PRIOR)
    shutil.rmtree(FOLDER)
    make(tmp_path, methods=("rand",))
    kept = content(KEPT)
    with pytest.raises(DataError, match=r"h_nll\.npz: not as it was added, nor is evidence/laptop/losses\.csv"):
        adding.add(FOLDER, KEPT)
    assert content(KEPT) == kept


def test_losses_of_a_prior_that_was_replaced_do_not_stay(run, tmp_path, monkeypatch):
    adding.add(FOLDER, KEPT)
    assert losses.read(SCALE / manifest.LOSSES)
    make(tmp_path, seed=1)
    monkeypatch.setattr(losses, "of_results", lambda records, *_: ({}, len([*records])))  # as without their table
    adding.add(FOLDER, KEPT)
    assert losses.read(SCALE / manifest.LOSSES) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 0}'])
def test_what_is_said_of_a_manifest_helps(text, run, capsys):
    adding.add(FOLDER, KEPT)
    whole = content(KEPT)
    (SCALE / manifest.NAME).write_text(text)
    status, said = verified(capsys)
    assert status == 1 and "delete the folder and add all of its results again" in said
    with pytest.raises(DataError, match="delete the folder and add all of its results again"):
        adding.add(FOLDER, KEPT)
    shutil.rmtree(SCALE)
    adding.add(FOLDER, KEPT)
    assert content(KEPT) == whole


def test_the_only_manifest_that_is_missing_is_named(run, capsys):
    """The folder was taken for one of results, and its losses for a result whose record is missing."""
    adding.add(FOLDER, KEPT)
    (SCALE / manifest.NAME).unlink()
    for folder in (KEPT, SCALE):
        with pytest.raises(SystemExit):
            main(["verify", str(folder)])
        assert capsys.readouterr().out.startswith("evidence/laptop/manifest.json: cannot be read (No such file")
    with pytest.raises(SystemExit):
        main(["evidence", "list"])
    assert "evidence/laptop/manifest.json: cannot be read" in capsys.readouterr().err


def refused(capsys, *arguments):
    with pytest.raises(SystemExit):
        main(["evidence", "add", *arguments])
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_where_nothing_can_be_added_is_said(run, capsys, monkeypatch):
    Path("file").write_text("x")
    assert "file: cannot be a folder of recorded results" in refused(capsys, "results/laptop", "--to", "file")
    for place in ("results", "results/laptop"):
        assert "this is where the results are" in refused(capsys, "results/laptop", "--to", place)
    assert "its jobs wrote to results/laptop, results/smoke; name one of these" in several(capsys)
    assert "its jobs wrote to results/laptop; name one of these" in refused(capsys, "results")
    adding.add(FOLDER, KEPT)
    kept = content(KEPT)

    def full(*_):
        raise OSError(27, "File too large", "evidence/laptop/x")

    monkeypatch.setattr(swapping.shutil, "copyfile", full)
    said = refused(capsys, "results/laptop")
    assert "evidence/laptop/x: could not be written (File too large)" in said and "MiB are free" in said
    monkeypatch.setattr(swapping.os, "sync", lambda: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    monkeypatch.setattr(swapping, "put", lambda *_: None)
    assert "evidence/laptop: cannot be read or written (Permission denied); evidence/laptop is as it was" in refused(
        capsys, "results/laptop"
    )
    assert content(KEPT) == kept


def several(capsys):
    """What is said of the folder of all scales."""
    shutil.copytree(FOLDER, "results/smoke")
    for path in Path("results/smoke").rglob("*.json"):
        own = json.loads(path.read_text())
        moved = {
            key: {name.replace("laptop", "smoke"): sha for name, sha in own[key].items()}
            for key in ("inputs", "outputs")
        }
        resealed(path, **moved)
    said = refused(capsys, "results")
    shutil.rmtree("results/smoke")
    return said


def test_the_scale_is_that_of_the_jobs_whatever_the_folder_is_called(run, tmp_path):
    (tmp_path / "disk").mkdir()
    FOLDER.rename(tmp_path / "disk/run7")
    FOLDER.symlink_to(tmp_path / "disk/run7")
    assert adding.add(FOLDER, KEPT).folder == SCALE and manifest.read(SCALE)["scale"] == "laptop"
    assert restoring.restore(SCALE, planned(FOLDER), FOLDER).there == 4


def test_a_folder_that_is_a_link_is_not_replaced(two, tmp_path, capsys):
    SCALE.rename(tmp_path / "elsewhere")
    SCALE.symlink_to(tmp_path / "elsewhere")
    assert "evidence/laptop: is a link; add to where it leads" in refused(capsys, "results/laptop")
    assert SCALE.is_symlink() and verified(capsys, "--runs", "0")[0] == 0


def test_what_is_left_of_another_scale_is_deleted_and_does_not_count(run, monkeypatch):
    adding.add(FOLDER, KEPT)
    total = manifest.size(KEPT)
    for name in (".published.new", ".published~x.gone"):
        shutil.copytree(SCALE, KEPT / name)
    monkeypatch.setattr(adding, "LIMIT", total)
    adding.add(FOLDER, KEPT)
    assert [path.name for path in KEPT.iterdir()] == ["laptop"]


def test_what_may_be_all_that_is_left_of_an_addition_is_not_deleted(two, capsys):
    """Between the two renames somebody brought the committed folder back, as was told."""
    for name in (".laptop.new", ".laptop.old"):
        shutil.copytree(SCALE, KEPT / name)
    kept = content(KEPT)
    said = refused(capsys, "results/laptop")
    assert "evidence/.laptop.old, evidence/.laptop.new: left behind" in said and "keep the one that you want" in said
    assert content(KEPT) == kept


@pytest.mark.parametrize("again", [False, True])
def test_what_was_being_deleted_does_not_come_back(again, two, monkeypatch, capsys):
    """Half of it was taken for the whole."""
    _, after = two

    def half(folder, real=shutil.rmtree):
        real(next(path for path in folder.rglob("claims")))
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(swapping.shutil, "rmtree", half)
        with pytest.raises(Stop):
            adding.add(FOLDER, KEPT)
    if again:
        shutil.rmtree(SCALE)
    assert verified(capsys, "--runs", "0")[0] == 1
    swapping.recover(KEPT)
    assert content(KEPT) == ({} if again else after)


def test_files_without_a_manifest_are_not_added_to(run, capsys):
    adding.add(FOLDER, KEPT)
    (SCALE / manifest.NAME).unlink()
    kept = content(KEPT)
    assert "delete the folder and add all of its results again" in refused(capsys, "results/laptop")
    assert content(KEPT) == kept


def test_what_lies_about_is_named(run, tmp_path, capsys):
    adding.add(FOLDER, KEPT)
    (KEPT / "README.md").write_text("what this is")
    assert verified(capsys, "--runs", "0")[0] == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other/more.csv").write_text("x")
    (KEPT / "stray.txt").write_text("x")
    (SCALE / "linked").symlink_to(tmp_path / "other")
    (SCALE / "broken.csv").symlink_to("nowhere")
    status, said = verified(capsys, "--runs", "0")
    assert status == 1 and "evidence/stray.txt: belongs to no recorded results: delete it" in said
    assert "laptop/linked/more.csv: not listed" in said and "laptop/broken.csv: not listed" in said


def test_a_file_that_cannot_be_read_is_named_and_the_other_scale_checked(run, monkeypatch, capsys):
    adding.add(FOLDER, KEPT)
    shutil.copytree(SCALE, KEPT / "zebra")
    real = manifest.digest

    def denied(path):
        if Path(path) == TABLE:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(manifest, "digest", denied)
    status, said = verified(capsys, "--runs", "0")
    assert status == 1 and f"{TABLE}: cannot be read" in said and "evidence/zebra: " in said
    monkeypatch.setattr(manifest, "flaws", lambda *_: denied(TABLE))
    assert f"{TABLE}: cannot be read (Permission denied)" in verified(capsys, "--runs", "0")[1]


@pytest.mark.parametrize("change", [{"git": "x"}, {"git": None}, {"spec": []}, {"versions": 3}])
def test_a_record_without_its_fields_is_named_and_stops_nothing(change, run, capsys):
    adding.add(FOLDER, KEPT)
    own = SCALE / "bo/tiny/held_out/h_nll-pi.json"
    resealed(own, **change)
    status, said = verified(capsys, "--runs", "0")
    (key,) = change
    assert status == 1 and f"h_nll-pi.json: damaged: its '{key}' has no fields" in said
    (line,) = recorded.verdicts(KEPT).refused
    assert "h_nll-pi.json" in line
    resealed(FOLDER / "bo/tiny/held_out/h_nll-pi.json", **change)
    with pytest.raises(DataError, match=f"its '{key}' has no fields"):
        adding.add(FOLDER, KEPT)


def test_a_restoration_that_is_killed_is_taken_up(run, monkeypatch):
    jobs = planned(FOLDER)
    for job in jobs[1:]:
        resealed(Path(job.record), depends_sha256=code(job.stage, job.spec))
    adding.add(FOLDER, KEPT)
    for job in jobs[1:]:
        Path(job.result).unlink()
        Path(job.record).unlink()
    last = Path(jobs[-1].result)

    def half(source, target, real=shutil.copyfile):
        if Path(source).name == last.name:
            Path(target).write_bytes(b"half")
            raise Stop
        return real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(restoring.shutil, "copyfile", half)
        with pytest.raises(Stop):
            restoring.restore(SCALE, jobs, FOLDER)
    assert not last.exists()
    last.write_bytes(b"half")  # as a job that was killed leaves it: without a record
    found = restoring.restore(SCALE, jobs, FOLDER)
    assert (found.jobs, found.there) == (1, 3)
    assert last.read_bytes() == (SCALE / last.relative_to(FOLDER)).read_bytes()


def test_the_limit_counts_all_that_is_there_afterwards(run, monkeypatch, tmp_path):
    adding.add(FOLDER, KEPT)
    total = manifest.size(KEPT)
    shutil.rmtree(KEPT)
    monkeypatch.setattr(adding, "LIMIT", total - 1)  # the manifest and the losses count, which the run does not have
    with pytest.raises(DataError, match="are kept"):
        adding.add(FOLDER, KEPT)
    assert not KEPT.exists()
    monkeypatch.setattr(adding, "LIMIT", total)
    adding.add(FOLDER, KEPT)
    large = tmp_path / "large"
    large.mkdir()
    (large / manifest.LOSSES).write_bytes(b"x" * 1_000)
    (KEPT / "paper").symlink_to(large)
    monkeypatch.setattr(adding, "LIMIT", total + 999)
    with pytest.raises(DataError, match="are kept"):
        adding.add(FOLDER, KEPT)


def test_the_commit_is_that_of_the_code_that_runs_not_of_the_folder_one_is_in(run, tmp_path):
    def git(*arguments):
        asked = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    Path(".gitignore").write_text("*\n")
    git("add", "-f", ".gitignore")
    git("commit", "-qm", "a cooking recipe")
    own = FOLDER / "bo/tiny/held_out/h_nll-pi.json"
    spec = json.loads(own.read_text())["spec"]
    resealed(own, git={"commit": COMMIT, "dirty": True}, depends_sha256=code("bo", spec))
    noted: set[str] = set()
    try:
        adding.add(FOLDER, KEPT)
        noted = set(manifest.read(SCALE)["same_code"].values())
    except DataError as error:
        assert "this checkout has changes too" in str(error)  # that of the package
    assert git("rev-parse", "HEAD") not in noted
    assert adding.provenance.is_tracked(codegraph.PACKAGE_ROOT) and not adding.provenance.is_tracked(FOLDER)


def test_code_that_is_in_no_checkout_vouches_for_nothing(run, tmp_path, monkeypatch):
    resealed(FOLDER / "bo/tiny/held_out/h_nll-pi.json", git={"commit": COMMIT, "dirty": True})
    monkeypatch.setattr(adding.provenance, "is_tracked", lambda _: False)
    with pytest.raises(DataError, match="the code that runs here is in no checkout"):
        adding.add(FOLDER, KEPT)


def test_only_verdicts_on_the_papers_of_the_artefacts_are_added(run):
    for end in (".csv", "-gates.csv"):
        shutil.copy(FOLDER / f"claims/hyperbo{end}", FOLDER / f"claims/mphd{end}")
    own = json.loads((FOLDER / "claims/hyperbo.json").read_text())
    target = FOLDER / "claims/mphd.json"
    target.write_text(json.dumps(own))
    resealed(target, outputs={name.replace("hyperbo", "mphd"): sha for name, sha in own["outputs"].items()})
    adding.add(FOLDER, KEPT, ["hyperbo_fig08"])
    assert "claims/hyperbo.csv" in names(SCALE) and not [name for name in names(SCALE) if "mphd" in name]
    adding.add(FOLDER, KEPT)
    assert "claims/mphd.csv" in names(SCALE)


def test_a_copy_shares_no_byte_that_is_written(tmp_path):
    """Unchanged files are linked, so what is replaced must be another file."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "a").write_text("old")
    (folder / "b").write_text("old")
    (tmp_path / "source").write_text("new")
    with pytest.raises(MetaboError), replacing(folder) as stage:
        swapping.put(tmp_path / "source", stage / "a")
        assert (stage / "b").stat().st_ino == (folder / "b").stat().st_ino
        raise OSError(28, "No space left on device", str(stage / "c"))
    assert content(folder) == {"a": b"old", "b": b"old"} and sorted(tmp_path.iterdir()) == [folder, tmp_path / "source"]
    with replacing(folder) as stage:
        swapping.put(tmp_path / "source", stage / "a")
    assert content(folder) == {"a": b"new", "b": b"old"}


def test_after_an_addition_nothing_shares_a_file_with_what_was(run, tmp_path):
    adding.add(FOLDER, KEPT)
    other = SCALE / "priors/tiny/held_out/rand.npz"
    before = other.stat().st_ino
    (SCALE / "priors").chmod(0o555)
    shutil.rmtree(FOLDER)
    make(tmp_path, seed=1, methods=("h_nll",))
    adding.add(FOLDER, KEPT)
    assert other.stat().st_ino == before and other.stat().st_nlink == 1
    assert (SCALE / "priors").stat().st_mode & 0o777 == 0o755
    assert len(inventory.take(SCALE.absolute()).records) == 6
