"""Before a run: results of other settings that Snakemake has no note of stop the plan."""

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


@pytest.mark.parametrize("path", [RESULT, LONG])
def test_a_file_of_a_job_that_has_not_ended_is_marked(folder, path):
    from snakemake.persistence.file import FilePersistence

    assert not preflight.is_marked(path), "there is no folder"
    notes = FilePersistence(nolock=True, path=folder / ".snakemake")
    assert not preflight.is_marked(path)
    notes._mark_incomplete(path.as_posix(), None)
    assert preflight.is_marked(path) and not preflight.is_marked(path.with_suffix(".json"))
    notes._unmark_incomplete(path.as_posix())
    assert not preflight.is_marked(path)


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
