"""What comes back of recorded results: what a plan's jobs would make the same, and nothing else."""

from pathlib import Path

import pytest

from metabo.errors import DataError
from metabo.evidence import adding, manifest, restoring
from metabo.plan import codegraph, digests
from metabo.plan.chain import PlannedJob
from metabo.records import inventory
from tests.evidence.conftest import resealed

KEPT = Path("evidence/laptop")
FOLDER = Path("results/laptop")
TABLE = FOLDER / "data/tiny.npz"
MADE = ("priors/tiny/held_out/h_nll.npz", "bo/tiny/held_out/h_nll-pi.parquet")


def code(stage, spec):
    return digests.together(codegraph.inputs(codegraph.stage_roots(stage, spec)))


def planned(folder):
    """Return the jobs that made a run's priors and trajectories, as a plan of the same settings has them."""
    load = PlannedJob("data", TABLE.as_posix(), TABLE.with_suffix(".json").as_posix(), {"benchmark": "tiny"})
    jobs = [load]
    for one in inventory.take(folder.absolute()).records:
        if one.content["stage"] in ("pretrain", "bo"):
            (result,) = one.outputs
            own = Path(result).with_suffix(".json").as_posix()
            jobs.append(PlannedJob(one.content["stage"], result, own, one.content["spec"], (load,)))
    return sorted(jobs, key=lambda job: ("data", "pretrain", "bo").index(job.stage))


@pytest.fixture
def jobs(run):
    """Jobs of a run that is kept, of which nothing but the table is left."""
    found = planned(FOLDER)
    for job in found[1:]:
        log = FOLDER / "logs" / f"{Path(job.result).name}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text("said\n")
        listed = {log.as_posix(): {"bytes": 5, "sha256": digests.file_digest(log)}}
        resealed(Path(job.record), depends_sha256=code(job.stage, job.spec), logs=listed)
    adding.add(FOLDER, KEPT.parent)
    for job in found[1:]:
        Path(job.result).unlink()
        Path(job.record).unlink()
    return found


def test_what_the_jobs_would_make_is_back_with_its_record_and_log(jobs):
    found = restoring.restore(KEPT, jobs, FOLDER)
    assert (found.jobs, found.there, found.left, found.tables) == (4, 0, {}, [])
    for name in MADE:
        for path in (name, Path(name).with_suffix(".json")):
            assert (FOLDER / path).read_bytes() == (KEPT / path).read_bytes()
    assert (FOLDER / "logs/h_nll.npz.log").read_text() == "said\n"
    assert found.lines == ["results/laptop: results of 4 jobs are back; those of 0 were there"]
    times = [Path(job.result).stat().st_mtime_ns for job in jobs]
    assert times == sorted(times)  # or Snakemake would make again what seems to be older than its inputs


def test_what_is_there_is_not_touched(jobs):
    own = FOLDER / MADE[0]
    own.write_text("mine")
    own.with_suffix(".json").write_text("{}")  # without a record it is what a job left that was stopped
    found = restoring.restore(KEPT, jobs, FOLDER)
    assert own.read_text() == "mine" and found.there == 1
    assert found.left == {restoring.OTHER: [MADE[1]]}  # the trajectories are from the recorded prior, not from this one
    assert found.lines[1] == f"1 not, since they read something else than what is here (first: {MADE[1]})"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"method": "h_nll", "seed": 9}}, restoring.SETTINGS),
        ({"stage": "evaluate"}, restoring.CODE),
    ],
)
def test_what_a_job_would_make_otherwise_stays_away(change, reason, jobs):
    (place,) = [i for i, job in enumerate(jobs) if job.result.endswith(MADE[0])]
    jobs[place] = PlannedJob(**{**vars(jobs[place]), **change})
    found = restoring.restore(KEPT, jobs, FOLDER)
    assert not (FOLDER / MADE[0]).exists() and not (FOLDER / MADE[1]).exists()
    assert found.left == {reason: [MADE[0]], restoring.ABSENT: [MADE[1]]} and found.jobs == 2
    assert f"1 not, since they {reason} (first: {MADE[0]})" in found.lines


def test_what_read_another_table_stays_away_and_a_missing_one_is_named(jobs):
    TABLE.write_bytes(b"another")
    found = restoring.restore(KEPT, jobs, FOLDER)
    assert MADE[0] in found.left[restoring.OTHER] and MADE[1] in found.left[restoring.ABSENT], "its prior is not here"
    assert sum(map(len, found.left.values())) == 4 and found.tables == []
    TABLE.unlink()
    found = restoring.restore(KEPT, jobs, FOLDER, [Path("config/fast.yaml")])
    assert [*found.left] == [restoring.ABSENT] and found.tables == [TABLE.stem]
    assert found.lines[1] == "4 not, since they read what is not here"
    assert found.lines[2].endswith(f"then restore again: snakemake --cores 1 --configfile config/fast.yaml -- {TABLE}")


def test_priors_that_are_not_kept_stay_away(jobs, monkeypatch):
    path = KEPT / MADE[0]
    path.unlink()
    listed = manifest.read(KEPT)
    del listed["files"][MADE[0]]
    manifest.write(KEPT, listed)
    assert restoring.restore(KEPT, jobs, FOLDER).left == {
        restoring.UNKEPT: [MADE[0]],
        restoring.ABSENT: [MADE[1]],
    }


def test_recorded_results_that_are_damaged_bring_nothing_back(jobs):
    (KEPT / MADE[0]).write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"h_nll\.npz: damaged or edited since it was added"):
        restoring.restore(KEPT, jobs, FOLDER)
    assert not (FOLDER / MADE[1]).exists()
    with pytest.raises(DataError, match="nothing is kept of this scale"):
        restoring.restore(KEPT.with_name("published"), jobs, FOLDER)
