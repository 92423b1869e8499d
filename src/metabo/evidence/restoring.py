"""Copy recorded results back to where the jobs of a run would make them, so that the run goes on from there."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence import manifest, swapping, unfinished
from metabo.evidence.adding import KEPT
from metabo.evidence.describing import runs_same_code
from metabo.evidence.manifest import below
from metabo.evidence.stored import making
from metabo.plan import digests
from metabo.plan.chain import PlannedJob
from metabo.records import inventory
from metabo.records.files import atomic_path, canonical, digest
from metabo.records.inventory import StoredSidecar

JUDGED = "claims"
"""Verdicts are made again, because they read every artefact, and artefacts are not kept."""

UNKEPT = "made what is not kept"
SETTINGS = "had other settings"
CODE = "ran other code"
ABSENT = "read what is not here"
OTHER = "read something else than what is here"


class Restored(NamedTuple):
    """What was restored: the folder, the number of jobs whose results were copied, the number whose results were
    already there, the jobs left out, by reason, the benchmarks whose tables must be made first, the number of
    unfinished jobs that go on from what they had finished, and the overlays of the run."""

    folder: Path
    jobs: int
    there: int
    left: Mapping[str, Sequence[str]]
    tables: Sequence[str]
    unfinished: int = 0
    overlays: Sequence[Path] = ()

    @property
    def lines(self) -> list[str]:
        """What the user reads."""
        found = [f"{self.folder}: results of {self.jobs:,} jobs are back; those of {self.there:,} were there"]
        for why, jobs in sorted(self.left.items()):
            first = f" (first: {jobs[0]})" if why in (SETTINGS, CODE, OTHER) else ""
            found.append(f"{len(jobs):,} not, since they {why}{first}")
        if self.unfinished:
            found.append(f"Unfinished jobs, which go on if settings and code are the same: {self.unfinished}")
        if self.tables:
            first = making(self.folder.name, self.tables, self.overlays)
            found.append(f"Tables are not kept; make them, then restore again: {first}")
        return found


def restore(kept: Path, jobs: Iterable[PlannedJob], results: Path, overlays: Sequence[Path] = ()) -> Restored:
    """Copy recorded results of one scale, `evidence/{scale}`, to `results`, for the jobs of a plan that would make the
    same: with the same settings and code, from inputs that are here. Results that are already there, with their
    records, are not touched; logs and half-written files of jobs that were stopped are replaced. `overlays`: those of
    the configuration of the plan, for the command that makes tables.

    `jobs` lists each job after those that it waits for (`chain.behind`). Raises DataError, and copies nothing, if the
    recorded results are missing or not as they were added.
    """
    if not kept.exists() and not swapping.beside(kept)[1].exists():
        raise DataError(f"{kept}: nothing is kept of this scale; `metabo evidence list` shows what is")
    manifest.checked(kept)
    digests.record()  # files that a later plan would write would be newer than what they stand for
    records = {record.path: record for record in inventory.take(kept.absolute()).records}
    done, there, left, tables = 0, 0, dict[str, list[str]](), dict[str, None]()
    for job in jobs:
        record = records.get((kept / _place(job.record)).absolute())
        if record is None or job.stage not in KEPT - {JUDGED}:
            continue
        if all(Path(results, _place(name)).exists() for name in (job.result, job.record)):
            there += 1
        elif reason := _reason(job, record, kept, results):
            left.setdefault(reason, []).append(_place(job.result))
            tables |= dict.fromkeys(_tables(job, results)) if reason == ABSENT else {}
        else:
            _copy(record, kept, results)
            done += 1
    return Restored(results, done, there, left, list(tables), unfinished.restore(kept, results), overlays)


def _place(name: str) -> str:
    """Return the path of a planned file below results/{scale}."""
    return Path(*Path(name).parts[2:]).as_posix()


def _reason(job: PlannedJob, record: StoredSidecar, kept: Path, results: Path) -> str:
    """Return why a job would not make what is recorded, or "" if it would."""
    if not all((kept / below(record, name)).is_file() for name in (*record.outputs, *record.logs)):
        return UNKEPT
    if canonical(record.content.get("spec")) != canonical(job.spec):
        return SETTINGS
    if not runs_same_code(record, job.stage, job.spec):
        return CODE
    made = {name: sha for name, sha in record.inputs.items() if name.startswith(f"{record.named}/")}  # the rest is code
    here = {results / below(record, name): sha for name, sha in made.items()}
    if not all(path.is_file() for path in here):
        return ABSENT
    return "" if all(digest(path) == sha for path, sha in here.items()) else OTHER


def _tables(job: PlannedJob, results: Path) -> Iterator[str]:
    """Yield the benchmarks whose tables a job reads, and that are not here."""
    needed = (Path(results, _place(one.result)) for one in job.needs if one.stage == "data")
    return (table.stem for table in needed if not table.exists())


def _copy(record: StoredSidecar, kept: Path, results: Path) -> None:
    """Copy what a job made, its logs, and last its record, without which a result does not count."""
    for name in (*record.outputs, *record.logs):
        _copied(kept, results, below(record, name))
    _copied(kept, results, record.path.relative_to(kept.absolute()).as_posix())


def _copied(kept: Path, results: Path, name: str) -> None:
    with atomic_path(results / name) as scratch:
        shutil.copyfile(kept / name, scratch)  # with the current time, so that a result is newer than its inputs
