"""What the scale `published` still has to run, which claims wait for it, and which results have no recorded file."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from paper_plan import ROOT

from metabo.errors import DataError
from metabo.papers.engine.claims import sheet
from metabo.papers.engine.claims.evidence import SYNTHETIC
from metabo.plan import catalogue
from metabo.plan.sections.config import Config
from metabo.records.checksums import read_sidecar
from metabo.records.spent import core_seconds
from metabo.report import recorded

KINDS = {"bo": "tables of runs", "priors": "priors", "studies": "tables of studies"}


class PublishedStep(NamedTuple):
    """A step: what it decides, and its artefacts."""

    name: str
    decides: str
    artefacts: Sequence[str]


class Planned(NamedTuple):
    """A job: the step that needs it first, its rule, benchmark and method (or study, or paper), its record below the
    folder of the run, and what it should cost: seconds of a core, bytes of what evidence keeps."""

    step: str
    rule: str
    benchmark: str
    method: str
    record: str
    seconds: float
    size: float


def numeric(step: PublishedStep, jobs: Iterable[Planned]) -> list[Planned]:
    """Return the jobs of a step but for its figures."""
    return [job for job in jobs if job.step == step.name and job.rule != "notebook"]


def left(jobs: Iterable[Planned], results: Path) -> list[Planned]:
    """Return the jobs without a record."""
    return [job for job in jobs if not (results / job.record).is_file()]


def unjudged(steps: Iterable[PublishedStep], given: Config) -> dict[str, list[str]]:
    """Return, by step, the claims without a recorded verdict whose primary cell needs an artefact of the step."""
    entries = catalogue.load(ROOT)
    names = {(one.id, one.benchmark or SYNTHETIC): one.name for one in catalogue.artefacts(given, entries)}
    read = recorded.claims(ROOT / "evidence", project=ROOT)
    if read.refused:
        raise DataError(*read.refused)
    judged = {(one.claim.whole.paper, one.claim.whole.claim) for one in read.held}
    found: dict[str, list[str]] = {}
    for step in steps:
        own = set(step.artefacts)
        found[step.name] = [
            claim.id
            for paper in sheet.papers()
            for claim in sheet.load(paper)
            if (paper, claim.id) not in judged
            and claim.primary is not None
            and any(
                names.get((test.artefact, on)) in own
                for test in claim.tests
                if not test.beside
                for on in set(sheet.benchmarks_of(test, entries)) & set(claim.primary.benchmarks)
            )
        ]
    return found


def unkept(jobs: Iterable[Planned], results: Path) -> list[str]:
    """Return, in Markdown, the runs, priors and studies of which only the record is there, and what they took."""
    groups: defaultdict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    whole: Counter[tuple[str, str, str]] = Counter()
    for job in jobs:
        kind, _, _ = job.record.partition("/")
        if kind not in KINDS or not (results / job.record).is_file():
            continue
        place = (KINDS[kind], job.benchmark or "-", Path(job.record).parent.name if job.benchmark else "-")
        whole[place] += 1
        made = read_sidecar(results / job.record)
        if not all(results.joinpath(*Path(name).parts[2:]).is_file() for name in made["outputs"]):
            groups[place][Path(job.record).stem] = core_seconds(made) / 3600
    lines = ["| what | benchmark | split | which | core hours |", "|---|---|---|---|---:|"]
    for place, hours in sorted(groups.items()):
        named = (
            f"all {whole[place]}" if len(hours) == whole[place] else ", ".join(f"`{name}`" for name in sorted(hours))
        )
        lines.append(f"| {' | '.join(place)} | {named} | {sum(hours.values()):.2f} |")
    return lines
