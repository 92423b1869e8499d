"""The jobs behind a set of artefacts, followed from sidecar to sidecar: run times by rule, versions, commits.

An artefact's sidecar names its inputs, each of which has a sidecar of the job that made it, and so on: this counts what
the shown artefacts were made from, not whatever lies in the results folder. Times are those of Snakemake's benchmark
files (with the start of Python); a job without one counts with the wall time in its sidecar.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from metabo.errors import DataError
from metabo.records.checksums import read_sidecar, sidecar_of
from metabo.records.fields import Fields

RULES = {
    "download": ("download", "fetch an archive"),
    "archive": ("archive", "write a shipped table in the published format"),
    "collect": ("collect", "train networks or learners for a table"),
    "pack": ("collect", "join collected units"),
    "data": ("load", "load a benchmark"),
    "pretrain": ("pretrain", "pre-train the priors of a method"),
    "evaluate": ("evaluate", "losses of the priors"),
    "bo": ("run_bo", "Bayesian optimisation on tables"),
    "online": ("run_online", "tuning in which every evaluation trains a network"),
    "study": ("run_study", "synthetic studies"),
    "theory": ("check_theory", "checks of the theory"),
    "notebook": ("artefacts", "execute the notebook of a figure or table"),
    "claims": ("judge_claims", "judge the claims of a paper"),
    "pages": ("pages", "notebooks as HTML"),
}
"""Stage: name of its rule, and what a job does."""


@dataclass(frozen=True)
class JobRecord:
    """What the page reads of a sidecar.

    `inputs` and `outputs`: checksum by path; `commit`, with a word on changes, and `device` as the page writes them;
    `code` and `settings`: hashes; `wall`: seconds; `peak`: bytes, 0 if unknown. A text that the sidecar lacks is "".
    """

    stage: str
    spec: Fields
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    versions: Mapping[str, str]
    commit: str
    platform: str
    device: str
    started: str
    finished: str
    code: str
    settings: str
    wall: float
    peak: float


@dataclass(frozen=True)
class Job:
    """One finished job: its sidecar's path and content, and its seconds."""

    sidecar: str
    record: JobRecord
    seconds: float

    @property
    def stage(self) -> str:
        """Name of the stage."""
        return self.record.stage

    @property
    def rule(self) -> str:
        """Name of the rule, as Snakemake prints it (artefacts: all of their rules together)."""
        return RULES.get(self.stage, (self.stage, ""))[0]

    @property
    def name(self) -> str:
        """Short name of what it made: the path of its result below results/{scale}, without suffix."""
        return _stem(self.sidecar)


@dataclass(frozen=True)
class RuleTime:
    """The jobs of a rule: what it does, their number, seconds and share of all seconds; the longest job and its
    seconds; the largest resident memory of one, in bytes."""

    rule: str
    what: str
    jobs: int
    seconds: float
    share: float
    longest: str
    longest_s: float
    memory: float


@dataclass(frozen=True)
class Environment:
    """What jobs ran on: versions by package, platforms, devices, commits with job counts, first start, last end.

    More than one entry in a list says that the results come from several.
    """

    versions: Mapping[str, list[str]]
    platforms: list[str]
    devices: list[str]
    commits: list[tuple[str, int]]
    started: str
    finished: str


def read(sidecar: str | Path) -> JobRecord:
    """Read a sidecar. Raises DataError if it is missing, damaged, or not a sidecar."""
    again = "delete it and its result and run again"
    record = read_sidecar(sidecar)
    if not {"stage", "inputs", "outputs", "wall_s", "versions"} <= record.keys():
        raise DataError(f"{sidecar}: not the sidecar of a result; {again}")
    fields = Fields(record, str(sidecar), again)
    return JobRecord(
        stage=fields.text("stage"),
        spec=fields.object("spec"),
        inputs=fields.texts("inputs"),
        outputs=fields.texts("outputs"),
        versions=fields.texts("versions"),
        commit=_commit(fields),
        platform=_text(fields, "platform", "unknown"),
        device=_device(fields),
        started=_text(fields, "started"),
        finished=_text(fields, "finished"),
        code=_text(fields, "code_sha256"),
        settings=_text(fields, "spec_sha256"),
        wall=fields.number("wall_s"),
        peak=fields.number("peak_bytes") if fields.maybe("peak_bytes") else 0,
    )


def _text(fields: Fields, name: str, absent: str = "") -> str:
    return fields.text(name) if fields.maybe(name) else absent


def _commit(fields: Fields) -> str:
    if not fields.maybe("git"):
        return "unknown"
    git = fields.object("git")
    return _text(git, "commit", "unknown")[:10] + (" with changes" if git.values.get("dirty") else "")


def _device(fields: Fields) -> str:
    if not fields.maybe("device"):
        return ""
    device, bits = fields.object("device"), 64 if fields.values.get("x64") else 32
    return f"{device.number('count')} × {device.text('kind')}, {bits}-bit floats"


def behind(sidecars: Iterable[str | Path], known: Mapping[str, Job] | None = None) -> dict[str, Job]:
    """Return every job that the results of these sidecars were made by, theirs included, by sidecar path.

    Jobs of `known` are taken from there instead of from their files."""
    found: dict[str, Job] = {}
    queue = [str(path) for path in sidecars]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found[path] = (known or {}).get(path) or load(path)
        queue += [str(upstream) for name in found[path].record.inputs if (upstream := sidecar_of(name))]
    return dict(sorted(found.items()))


def outdated(record: JobRecord, jobs: Mapping[str, Job]) -> list[str]:
    """List the inputs of a job that were made anew since it ran, by the checksums in the sidecars."""
    changed = []
    for path, checksum in record.inputs.items():
        upstream = jobs.get(str(sidecar_of(path)))
        if upstream and upstream.record.outputs.get(path, checksum) != checksum:
            changed.append(path)
    return changed


def by_rule(jobs: Iterable[Job]) -> list[RuleTime]:
    """Add up the jobs of each rule, those with the most seconds first."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.rule, []).append(job)
    whole = sum(job.seconds for group in groups.values() for job in group) or 1.0
    rows = []
    for rule, group in groups.items():
        longest = max(group, key=lambda job: job.seconds)
        seconds = sum(job.seconds for job in group)
        rows.append(
            RuleTime(
                rule, RULES.get(longest.stage, ("", ""))[1], len(group), seconds, seconds / whole, longest.name,
                longest.seconds, max(job.record.peak for job in group),
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: -row.seconds)


def environment(jobs: Iterable[Job]) -> Environment:
    """Gather what the jobs ran on."""
    records = [job.record for job in jobs]
    packages = sorted({name for record in records for name in record.versions})
    return Environment(
        versions={name: sorted({r.versions[name] for r in records if name in r.versions}) for name in packages},
        platforms=sorted({record.platform for record in records}),
        devices=sorted({record.device for record in records if record.device}),
        commits=Counter(record.commit for record in records).most_common(),
        started=min((record.started for record in records if record.started), default=""),
        finished=max((record.finished for record in records if record.finished), default=""),
    )


def load(sidecar: str) -> Job:
    """Read a finished job by its sidecar. Raises DataError if that is missing, damaged, or not a sidecar."""
    record = read(sidecar)
    return Job(sidecar, record, _seconds(sidecar, record))


def _stem(sidecar: str) -> str:
    """Return a sidecar's path below results/{scale} without its suffix; an artefact's is its folder."""
    path = Path(sidecar)
    below = Path(*path.parts[2:]) if path.parts[0] == "results" and len(path.parts) > 2 else path
    if below.name == "provenance.json":
        return below.parent.as_posix()
    return below.with_name(below.name.partition(".")[0]).as_posix()


def _seconds(sidecar: str, record: JobRecord) -> float:
    path = Path(sidecar)
    if path.parts[0] == "results" and len(path.parts) > 2:
        measured = Path(*path.parts[:2]) / "benchmarks" / f"{_stem(sidecar)}.tsv"
        if measured.is_file():
            with measured.open() as stream:
                rows = list(csv.DictReader(stream, delimiter="\t"))
            if rows and rows[-1].get("s"):
                return float(rows[-1]["s"])
    return record.wall
