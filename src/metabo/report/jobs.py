"""The jobs behind a set of artefacts, followed from sidecar to sidecar: run times by rule, versions, commits.

An artefact's sidecar names its inputs, each of which has a sidecar of the job that made it, and so on: what is counted
is what the shown artefacts were made from, not whatever lies in the results folder. Times are those of Snakemake's
benchmark files (with the start of Python); a job without one counts with the wall time in its sidecar.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metabo.errors import DataError
from metabo.records.checksums import read_sidecar, sidecar_of

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
class Job:
    """One finished job: its sidecar's path and content, and its seconds."""

    sidecar: str
    record: dict[str, Any]
    seconds: float

    @property
    def stage(self) -> str:
        """Name of the stage."""
        return self.record["stage"]

    @property
    def rule(self) -> str:
        """Name of the rule, as Snakemake prints it (artefacts: all of their rules together)."""
        return RULES.get(self.stage, (self.stage, ""))[0]

    @property
    def name(self) -> str:
        """Short name of what it made: the path of its result below results/{scale}, without suffix."""
        return _stem(self.sidecar)


def read(sidecar: str | Path) -> dict[str, Any]:
    """Read a sidecar. Raises DataError if it is missing, damaged, or not a sidecar."""
    record = read_sidecar(sidecar)
    if not {"stage", "inputs", "outputs", "wall_s", "versions"} <= record.keys():
        raise DataError(f"{sidecar}: not the sidecar of a result; delete it and its result and run again")
    return record


def behind(sidecars: Iterable[str | Path], known: Mapping[str, Job] | None = None) -> dict[str, Job]:
    """Return every job that the results of these sidecars were made by, theirs included, by sidecar path.

    Jobs of `known` are taken from there instead of from their files."""
    found: dict[str, Job] = {}
    queue = [str(path) for path in sidecars]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found[path] = (known or {}).get(path) or _load(path)
        queue += [str(upstream) for name in found[path].record["inputs"] if (upstream := sidecar_of(name))]
    return dict(sorted(found.items()))


def outdated(record: dict[str, Any], jobs: dict[str, Job]) -> list[str]:
    """List the inputs of a job that were made anew since it ran, by the checksums in the sidecars."""
    changed = []
    for path, checksum in record["inputs"].items():
        upstream = jobs.get(str(sidecar_of(path)))
        if upstream and upstream.record["outputs"].get(path, checksum) != checksum:
            changed.append(path)
    return changed


def by_rule(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """Add up the jobs of each rule, the longest first: rule, what, jobs, seconds, share, longest, longest_s, memory.

    `share`: of all seconds; `longest`: name of the longest job; `memory`: largest resident memory of a job, in bytes.
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.rule, []).append(job)
    whole = sum(job.seconds for group in groups.values() for job in group) or 1.0
    rows = []
    for rule, group in groups.items():
        longest = max(group, key=lambda job: job.seconds)
        seconds = sum(job.seconds for job in group)
        rows.append(
            {
                "rule": rule, "what": RULES.get(longest.stage, ("", ""))[1], "jobs": len(group), "seconds": seconds,
                "share": seconds / whole, "longest": longest.name, "longest_s": longest.seconds,
                "memory": max(job.record.get("peak_bytes") or 0 for job in group),
            }
        )  # fmt: skip
    return sorted(rows, key=lambda row: -row["seconds"])


def environment(jobs: Iterable[Job]) -> dict[str, Any]:
    """Gather what the jobs ran on: versions, platforms, devices, commits (with job counts), first start, last end.

    More than one entry in a list says that the results come from several.
    """
    records = [job.record for job in jobs]
    packages = sorted({name for record in records for name in record["versions"]})
    commits = Counter(_commit(record.get("git") or {}) for record in records)
    devices = {_device(record["device"], record.get("x64")) for record in records if record.get("device")}
    return {
        "versions": {
            name: sorted({r["versions"][name] for r in records if name in r["versions"]}) for name in packages
        },
        "platforms": sorted({record.get("platform", "unknown") for record in records}),
        "devices": sorted(devices),
        "commits": commits.most_common(),
        "started": min((record["started"] for record in records if "started" in record), default=""),
        "finished": max((record["finished"] for record in records if "finished" in record), default=""),
    }


def _load(sidecar: str) -> Job:
    record = read(sidecar)
    return Job(sidecar, record, _seconds(sidecar, record))


def _commit(git: dict[str, Any]) -> str:
    return (git.get("commit") or "unknown")[:10] + (" with changes" if git.get("dirty") else "")


def _device(device: dict[str, Any], x64: bool | None) -> str:
    return f"{device['count']} × {device['kind']}, {64 if x64 else 32}-bit floats"


def _stem(sidecar: str) -> str:
    """Return a sidecar's path below results/{scale} without its suffix; an artefact's is its folder."""
    path = Path(sidecar)
    below = Path(*path.parts[2:]) if path.parts[0] == "results" and len(path.parts) > 2 else path
    if below.name == "provenance.json":
        return below.parent.as_posix()
    return below.with_name(below.name.partition(".")[0]).as_posix()


def _seconds(sidecar: str, record: dict[str, Any]) -> float:
    path = Path(sidecar)
    if path.parts[0] == "results" and len(path.parts) > 2:
        measured = Path(*path.parts[:2]) / "benchmarks" / f"{_stem(sidecar)}.tsv"
        if measured.is_file():
            with measured.open() as stream:
                rows = list(csv.DictReader(stream, delimiter="\t"))
            if rows and rows[-1].get("s"):
                return float(rows[-1]["s"])
    return float(record["wall_s"])
