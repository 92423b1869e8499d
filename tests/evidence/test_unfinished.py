"""What long jobs have finished so far is kept with the code, and the same job goes on from it in another clone."""

import json
import shutil
from pathlib import Path

import jax.numpy as jnp
import pytest

from metabo.compute import checkpoint, mapping
from metabo.errors import DataError
from metabo.evidence import adding, listing, manifest, restoring, unfinished, verifying
from tests.compute.test_checkpoint import Stopped, results, stop_after

KEPT = Path("evidence/laptop")
FOLDER = Path("results/laptop")
ENTRIES = jnp.linspace(0.1, 2.0, 6)


@pytest.fixture
def attempt(run, monkeypatch):
    """Return a function that runs a job of six entries, until some of them are kept (0: to its end)."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(mapping, "SECONDS", 0.0)

    def call(number, out="results/laptop/priors/long/maf.npz", identity="a"):
        go_on = stop_after(monkeypatch, number)
        checkpoint.begin(identity, out)
        try:
            mapping.one_by_one(results, ENTRIES, (), "fits")
        except Stopped:
            pass
        else:
            checkpoint.end()
        finally:
            go_on()

    yield call
    checkpoint._job = checkpoint._Attempt()


def kept():
    return sorted((KEPT / unfinished.PLACE).glob("*/*"))


def test_a_job_goes_on_in_another_clone(attempt, capsys):
    attempt(4)
    added = adding.add(FOLDER, KEPT.parent)
    assert added.unfinished == 1 and "of 1 unfinished jobs what they have finished" in added.line
    assert [path.name for path in kept()] == ["0001.npz", "job.json"]
    assert verifying.lines(KEPT.parent, 0, 0)[1] == 0
    told = listing.lines(KEPT.parent)
    assert "  unfinished: results/laptop/priors/long/maf.npz" in told
    assert any("src/metabo/plan/equivalent.py says why: compute/mapping.py" in line for line in told)
    shutil.rmtree(checkpoint.FOLDER)  # as in another clone
    found = restoring.restore(KEPT, [], FOLDER)
    assert found.unfinished == 1 and "Unfinished jobs, which go on if settings and code are the same: 1" in found.lines
    assert restoring.restore(KEPT, [], FOLDER).unfinished == 0, "it is there now"
    capsys.readouterr()
    attempt(0)
    assert "goes on from an earlier attempt (4 fits were finished)" in capsys.readouterr().err


def test_of_a_job_the_newest_is_kept_and_nothing_once_it_has_ended(attempt, run):
    attempt(2)
    adding.add(FOLDER, KEPT.parent)
    (first,) = {path.parent.name for path in kept()}
    attempt(3)
    adding.add(FOLDER, KEPT.parent)
    assert {path.parent.name for path in kept()} == {first}
    assert json.loads((KEPT / unfinished.PLACE / first / checkpoint.JOB).read_text())["attempts"] == 2
    attempt(3, identity="other settings")
    adding.add(FOLDER, KEPT.parent)
    (second,) = {path.parent.name for path in kept()}
    assert second != first
    made = FOLDER / "priors/tiny/held_out/h_nll.npz"
    for path in kept():  # as if it were of a job that has ended since
        if path.name == checkpoint.JOB:
            job = json.loads(path.read_text()) | {"out": made.as_posix()}
            path.write_text(json.dumps(job))
    listed = manifest.read(KEPT)
    listed["files"] |= {one.relative_to(KEPT).as_posix(): adding._listed(one) for one in kept()}
    manifest.write(KEPT, listed)
    shutil.rmtree(checkpoint.FOLDER)
    adding.add(FOLDER, KEPT.parent)
    assert not kept() and verifying.lines(KEPT.parent, 0, 0)[1] == 0


def test_what_another_run_has_not_finished_is_not_added(attempt):
    attempt(2, out="results/smoke/priors/long/maf.npz")
    assert adding.add(FOLDER, KEPT.parent).unfinished == 0 and not kept()


def test_a_result_that_is_there_takes_nothing_back(attempt):
    attempt(2)
    adding.add(FOLDER, KEPT.parent)
    shutil.rmtree(checkpoint.FOLDER)
    made = FOLDER / "priors/long/maf.npz"
    made.parent.mkdir()
    made.write_bytes(b"made")
    assert restoring.restore(KEPT, [], FOLDER).unfinished == 0 and not checkpoint.FOLDER.exists()


def test_a_damaged_one_is_named_and_restores_nothing(attempt):
    attempt(2)
    adding.add(FOLDER, KEPT.parent)
    shutil.rmtree(checkpoint.FOLDER)
    (file,) = (path for path in kept() if path.suffix == ".npz")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=f"{file}: damaged or edited since it was added"):
        restoring.restore(KEPT, [], FOLDER)
    assert not checkpoint.FOLDER.exists()


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"out": 3}', "\xff"])
def test_one_that_does_not_say_what_it_makes_is_left_out(attempt, text):
    attempt(2)
    (job,) = checkpoint.FOLDER.glob(f"*/{checkpoint.JOB}")
    job.write_bytes(text.encode("latin-1"))
    assert adding.add(FOLDER, KEPT.parent).unfinished == 0 and not kept()
