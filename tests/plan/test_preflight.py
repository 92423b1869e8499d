"""Before a run: what jobs have finished though their run was killed stays, and results of other settings stop the
plan."""

import base64
import fcntl
import json
from pathlib import Path

import pytest

from metabo.errors import DataError, MetaboError
from metabo.plan import preflight
from metabo.records.checksums import sealed
from metabo.records.files import canonical, digest

RESULT = Path("results/laptop/priors/a.npz")
LONG = Path(f"results/laptop/priors/{'b' * 230}.npz")
SPEC = {"method": "h_nll", "pretrain": {"steps": 5, "batch": 3}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (RESULT, LONG):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"made")
        record(path)
    return tmp_path


def record(path, **changes):
    made = {"stage": "pretrain", "spec": SPEC, "inputs": {}, "outputs": {path.as_posix(): digest(path)}, "schema": 2}
    path.with_suffix(".json").write_text(json.dumps(sealed(made | changes)))


def mark(path: Path) -> Path:
    """Mark a file as Snakemake does."""
    name = base64.urlsafe_b64encode(path.as_posix().encode()).decode()
    parts = [name[i : i + 254] for i in range(0, len(name), 254)]
    place = preflight.MARKS.joinpath(*[f"@{part}" for part in parts[:-1]], parts[-1])
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text('{"external_jobid": null}')
    return place


def test_snakemake_names_its_marks_like_this(folder):
    from snakemake.persistence.file import FilePersistence

    notes = FilePersistence(nolock=True, path=folder / ".snakemake")
    for path in (RESULT, LONG):
        notes._mark_incomplete(path.as_posix(), None)
        assert mark(path).is_file()
    assert sum(one.is_file() for one in preflight.MARKS.rglob("*")) == 2


def test_what_a_job_has_finished_is_not_marked_any_more(folder):
    marks = [mark(path) for one in (RESULT, LONG) for path in (one, one.with_suffix(".json"))]
    assert preflight.keep_finished() == 4 and not any(one.exists() for one in marks)


@pytest.mark.parametrize("flaw", ["no record", "other bytes", "no result", "another result", "damaged record"])
def test_what_may_be_half_made_stays_marked(folder, flaw):
    own = RESULT.with_suffix(".json")
    match flaw:
        case "no record":
            own.unlink()
        case "other bytes":
            RESULT.write_bytes(b"half")
        case "no result":
            RESULT.unlink()
        case "another result":
            record(RESULT, outputs={"results/laptop/priors/c.npz": "0" * 64})
        case "damaged record":
            own.write_text(own.read_text().replace("h_nll", "h_ekl"))
    marks = mark(RESULT), mark(own)
    assert preflight.keep_finished() == 0 and all(one.exists() for one in marks)


def test_marks_stay_of_a_file_beside_whose_sibling_is_missing(folder):
    """A job of two results that was killed between them has no record; one of an older record does not count."""
    both = {RESULT.as_posix(): digest(RESULT), "results/laptop/priors/more.npz": "0" * 64}
    record(RESULT, outputs=both)
    mark(RESULT)
    assert preflight.keep_finished() == 0


@pytest.mark.parametrize("lock", [preflight.RUN, preflight.JOBS])
def test_nothing_is_touched_while_something_is_at_work(folder, lock):
    one = mark(RESULT)
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert preflight.keep_finished() == 0 and one.exists()
    assert preflight.keep_finished() == 1


def test_files_that_are_no_marks_or_of_no_result_are_left_alone(folder):
    others = [mark(Path("/etc/passwd")), mark(Path("src/a.py")), preflight.MARKS / "no base 64"]
    others[-1].write_text("")
    assert preflight.keep_finished() == 0 and all(one.exists() for one in others)


def test_a_folder_without_marks_has_none(folder):
    assert preflight.keep_finished() == 0


def test_a_link_to_a_disk_that_is_not_mounted_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("/nowhere/results")
    with pytest.raises(
        MetaboError, match=r"^results: is a link to /nowhere/results, which is not there; mount it, or r"
    ):
        preflight.require_writable(Path("results/laptop"))
    Path("results").unlink()
    Path("elsewhere").mkdir()
    Path("results").symlink_to("elsewhere")
    preflight.require_writable(Path("results/laptop"))


def test_results_of_the_same_settings_pass(folder):
    preflight.require_same_spec([RESULT.as_posix(), RESULT.with_suffix(".json").as_posix()], canonical(SPEC))
    preflight.require_same_spec(["results/laptop/priors/not_there.npz"], canonical({}))


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({**SPEC, "pretrain": {"steps": 6, "batch": 3}}, "(pretrain.steps: 5, now 6)"),
        ({**SPEC, "seed": 1}, "(seed: null, now 1)"),
        ({"method": "x" * 100}, f'(method: "h_nll", now "{"x" * 59}...; pretrain: '),
        ({k: 1 for k in "abcd"} | SPEC, "(a: null, now 1; b: null, now 1; c: null, now 1; and 1 more)"),
    ],
)
def test_results_of_other_settings_are_named_with_what_differs(folder, now, told):
    with pytest.raises(DataError) as error:
        preflight.require_same_spec([RESULT.as_posix()], canonical(now))
    said = str(error.value)
    assert said.startswith(f"{RESULT}: was made with other settings than those of this run ") and told in said
    assert f"delete it and {RESULT.with_suffix('.json')}" in said and "\n" not in said


def test_a_damaged_record_is_left_to_the_check_of_damage(folder):
    own = RESULT.with_suffix(".json")
    for text in ("", "[]", own.read_text().replace("h_nll", "h_ekl")):
        own.write_text(text)
        preflight.require_same_spec([RESULT.as_posix()], canonical({}))
