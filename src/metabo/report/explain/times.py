"""The jobs behind a result: which are made, how long each took, and the settings that it reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.compute.progress import duration
from metabo.errors import DataError
from metabo.plan.chain import PlannedJob
from metabo.records.files import Json, canonical
from metabo.report import jobs
from metabo.report.explain import layout

ABSENT = "not made yet"
OTHER = "made with other settings"
BROKEN = "its record is damaged (`metabo verify` says more)"


class JobState(NamedTuple):
    """A planned job as its record has it: `seconds` that it took, None if it is not made, and what a reader should know
    of it ("": it is made with these settings)."""

    job: PlannedJob
    seconds: float | None
    remark: str


def state(job: PlannedJob) -> JobState:
    """Look a job up in the results below the present folder."""
    if not (Path(job.record).is_file() and Path(job.result).is_file()):
        return JobState(job, None, ABSENT)
    try:
        made = jobs.load(job.record)
    except DataError:
        return JobState(job, None, BROKEN)
    same = canonical(made.record.spec.values) == canonical(job.spec)
    return JobState(job, made.seconds, "" if same else OTHER)


def lines(planned: Sequence[PlannedJob]) -> list[str]:
    """Say how many jobs are made and the time that they took; then, stage by stage, each job with its settings. What
    all jobs of a stage read is said once."""
    states = [state(job) for job in planned]
    stages = list(dict.fromkeys(job.stage for job in planned))
    found = [*layout.field("jobs", f"{_counts(states)}; times are of the last run of each"), ""]
    for stage in stages:
        found += _stage(stage, [one for one in states if one.job.stage == stage])
    return found


def _counts(states: Sequence[JobState]) -> str:
    taken = [one.seconds for one in states if one.seconds is not None]
    absent = sum(one.remark == ABSENT for one in states)
    other = sum(one.remark == OTHER for one in states)
    parts = [f"{len(taken)} of {len(states)} made" + (f" in {duration(sum(taken))}" if taken else "")]
    parts += [f"{other} of them {OTHER}"] * bool(other) + [f"{absent} {ABSENT}"] * bool(absent)
    return ", ".join(parts)


def _stage(stage: str, states: Sequence[JobState]) -> list[str]:
    rule, what = jobs.RULES[stage]
    shared = _shared([one.job.spec for one in states])
    found = [f"{rule}: {what}; {_counts(states)}"]
    found += layout.paragraph(f"all: {layout.settings(shared)}") if len(states) > 1 and shared else []
    for one in states:
        took = duration(one.seconds) if one.seconds is not None else ""
        found += layout.paragraph(f"{one.job.result}  {', '.join(filter(None, (took, one.remark)))}")
        own = {key: value for key, value in one.job.spec.items() if len(states) == 1 or key not in shared}
        found += layout.paragraph(layout.settings(own), 6) if own else []
    return [*found, ""]


def _shared(specs: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the settings that are the same in all specs."""
    first, *others = specs
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)}
