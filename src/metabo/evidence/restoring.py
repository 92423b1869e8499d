"""Copy recorded results back to where the jobs of a run would make them, so that the run goes on from there."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence import manifest, swapping, unfinished
from metabo.evidence.adding import KEPT
from metabo.evidence.describing import runs_same_code
from metabo.evidence.manifest import below
from metabo.plan import digests
from metabo.plan.chain import PlannedJob
from metabo.records import inventory
from metabo.records.files import atomic_path, canonical, digest
from metabo.records.inventory import StoredSidecar

JUDGED = "claims"
"""Verdicts are made again, because they read every artefact, and artefacts are not kept."""
SHOWN = 3

UNKEPT = "made what is not kept"
SETTINGS = "had other settings"
CODE = "ran other code"
INPUTS = "read what is not here, or something else"


class Restored(NamedTuple):
    """What was restored: the folder, the number of jobs whose results were copied, the number whose results were
    already there, the numbers of jobs left out, by reason, the tables that must be made first, and the number of
    unfinished jobs that go on from what they had finished."""

    folder: Path
    jobs: int
    there: int
    left: Counter[str]
    tables: list[str]
    unfinished: int = 0

    @property
    def lines(self) -> list[str]:
        """What the user reads."""
        said = f"{self.folder}: results of {self.jobs:,} jobs are back; those of {self.there:,} were there"
        found = ["; ".join([said, *(f"{count:,} not, since they {why}" for why, count in sorted(self.left.items()))])]
        if self.unfinished:
            found.append(f"Unfinished jobs, which go on if settings and code are the same: {self.unfinished}")
        if self.tables:
            more = f" (and {len(self.tables) - SHOWN} more)" if len(self.tables) > SHOWN else ""
            first = " ".join(self.tables[:SHOWN])
            found.append(f"Tables are not kept; make these with the options of the run, then restore: {first}{more}")
        return found


def restore(kept: Path, jobs: Iterable[PlannedJob], results: Path) -> Restored:
    """Copy recorded results of one scale, `evidence/{scale}`, to `results`, for the jobs of a plan that would make the
    same: with the same settings and code, from inputs that are here. Results that are already there, with their
    records, are not touched; logs and half-written files of jobs that were stopped are replaced.

    `jobs` lists each job after those that it waits for (`chain.behind`). Raises DataError, and copies nothing, if the
    recorded results are missing or not as they were added.
    """
    if not kept.exists() and not swapping.beside(kept)[1].exists():
        raise DataError(f"{kept}: nothing is kept of this scale; `metabo evidence list` shows what is")
    manifest.checked(kept)
    digests.record()  # files that a later plan would write would be newer than what they stand for
    records = {record.path: record for record in inventory.take(kept.absolute()).records}
    done, there, left, tables = 0, 0, Counter[str](), dict[str, None]()
    for job in jobs:
        record = records.get((kept / _place(job.record)).absolute())
        if record is None or job.stage not in KEPT - {JUDGED}:
            continue
        if all(Path(results, _place(name)).exists() for name in (job.result, job.record)):
            there += 1
        elif reason := _reason(job, record, kept, results):
            left[reason] += 1
            tables |= dict.fromkeys(_tables(job, results)) if reason == INPUTS else {}
        else:
            _copy(record, kept, results)
            done += 1
    return Restored(results, done, there, left, list(tables), unfinished.restore(kept, results))


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
    return "" if all(_same(results, record, *one) for one in record.inputs.items()) else INPUTS


def _same(results: Path, record: StoredSidecar, name: str, expected: str) -> bool:
    """Tell whether a file that the job read is here unchanged. Files of the project itself count as code."""
    if not name.startswith(f"{record.named}/"):
        return True
    path = results / below(record, name)
    return path.is_file() and digest(path) == expected


def _tables(job: PlannedJob, results: Path) -> Iterator[str]:
    return (one.result for one in job.needs if one.stage == "data" and not Path(results, _place(one.result)).exists())


def _copy(record: StoredSidecar, kept: Path, results: Path) -> None:
    """Copy what a job made, its logs, and last its record, without which a result does not count."""
    for name in (*record.outputs, *record.logs):
        _copied(kept, results, below(record, name))
    _copied(kept, results, record.path.relative_to(kept.absolute()).as_posix())


def _copied(kept: Path, results: Path, name: str) -> None:
    with atomic_path(results / name) as scratch:
        shutil.copyfile(kept / name, scratch)  # with the current time, so that a result is newer than its inputs
