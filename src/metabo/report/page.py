"""The report page: the templates filled with what was gathered. Links are relative."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from metabo.errors import unknown
from metabo.evidence.recorded import RecordedVerdicts
from metabo.plan.yaml_files import read_yaml
from metabo.report import checks, jobs, rungs, scorecard
from metabo.report import gates as controls
from metabo.report.answers import Answer, answers
from metabo.report.gallery import ShownArtefact
from metabo.report.gates import ShownGate
from metabo.report.html import duration, templates
from metabo.report.jobs import Job
from metabo.report.questions import Question
from metabo.report.scorecard import JudgedClaim
from metabo.report.theory import ShownStatement

PAPERS = Path(__file__).with_name("papers.yaml")


def about(papers: list[str]) -> dict[str, dict[str, str]]:
    """Return name, title, authors, where and about of papers, in the order of papers.yaml. Raises ConfigError."""
    known = read_yaml(PAPERS)
    for paper in papers:
        if paper not in known:
            raise unknown(f"paper in {PAPERS.name}", paper, known)
    return {paper: entry for paper, entry in known.items() if paper in papers}


@dataclass(frozen=True)
class PaperCard:
    """A paper (papers.yaml) with what the run has of it.

    `counts`: claims by verdict, none if its claims are not checked; `answers`: what they come to, in sentences;
    `questions`: what a reader asks that no single claim answers;
    `headline`: the claims of its abstract, introduction and conclusion; `theory`: statements by verdict; `claims` and
    `artefacts`: their numbers.
    """

    id: str
    name: str
    title: str
    authors: str
    where: str
    about: str
    counts: Mapping[str, int]
    answers: Sequence[Answer]
    questions: Sequence[Question]
    headline: Sequence[JudgedClaim]
    claims: int
    artefacts: int
    theory: Mapping[str, int]


def summary(
    papers: list[str],
    claims: list[JudgedClaim],
    artefacts: list[ShownArtefact],
    theory: list[ShownStatement],
    gates: list[ShownGate],
    asked: Mapping[str, Sequence[Question]] = MappingProxyType({}),
) -> list[PaperCard]:
    """Answer, per paper, and count: claims by verdict (none if its claims are not checked), artefacts, theory. `asked`:
    the questions by paper."""
    cards = []
    for paper, entry in about(papers).items():
        own = [claim for claim in claims if claim.whole.paper == paper]
        verdicts = Counter(row.verdict for row in theory if row.paper == paper)
        cards.append(
            PaperCard(
                **entry,
                id=paper,
                counts=scorecard.counts(own) if own else {},
                answers=answers(own, [gate for gate in gates if gate.paper == paper]),
                questions=asked.get(paper, ()),
                headline=[claim for claim in own if claim.headline],
                claims=len(own),
                artefacts=sum(a.paper == paper for a in artefacts),
                theory=dict(sorted(verdicts.items())),
            )
        )
    return cards


def summary_lines(
    papers: list[str], claims: list[JudgedClaim], made: Mapping[str, Job], refused: Sequence[str] = ()
) -> list[str]:
    """Say in plain text how many claims of each paper got which verdict, what recorded results are not shown, and where
    the time went, rule by rule."""
    lines = []
    for paper in papers:
        own = scorecard.counts(claim for claim in claims if claim.whole.paper == paper)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in own.items())
        clear, headline = scorecard.decided(claim for claim in claims if claim.whole.paper == paper)
        verdicts += f"; {clear} of {headline} headline claims decided"
        lines.append(f"{paper}: " + (verdicts if sum(own.values()) else "claims are not checked"))
    lines += [f"not shown: {line}" for line in refused]
    rows = jobs.by_rule(made.values())
    lines.append(f"{len(made)} jobs took {duration(sum(row.seconds for row in rows))} in all:")
    for row in rows:
        longest = f"longest {duration(row.longest_s)}: {row.longest}"
        lines.append(f"{row.share:7.1%}  {duration(row.seconds):>14}  {row.rule} ({row.jobs} jobs, {longest})")
    return lines


def index(
    scale: str,
    papers: list[str],
    claims: list[JudgedClaim],
    artefacts: list[ShownArtefact],
    theory: list[ShownStatement],
    gates: list[ShownGate],
    made: Mapping[str, Job],
    recorded: Sequence[RecordedVerdicts] = (),
    refused: Sequence[str] = (),
    asked: Mapping[str, Sequence[Question]] = MappingProxyType({}),
) -> str:
    """Return the page; `made`: the jobs behind it; `recorded`: the folders of recorded results that are shown,
    `refused`: a line on each that is not; `asked`: questions by paper."""
    names = {(a.id, a.benchmark): a.name for a in artefacts}
    first = {a.id: a.name for a in reversed(artefacts)}  # where a claim names no benchmark of the page
    shown = {
        (row.artefact, row.benchmark): names.get((row.artefact, row.benchmark), first.get(row.artefact))
        for claim in claims
        for row in (claim.whole, *claim.tests)
    }
    places = [(gate.artefact, gate.benchmark) for gate in gates]
    return templates().get_template("index.html.j2").render(
        scale=scale,
        papers=summary(papers, claims, artefacts, theory, gates, asked),
        titles={paper: entry["name"] for paper, entry in about(papers).items()},
        verdicts=scorecard.VERDICTS,
        claims=claims,
        verdict_of={claim.anchor: claim.whole.verdict for claim in claims},
        shown=shown,
        ours=scorecard.ours,
        printed=scorecard.printed,
        ladder=rungs.ladder,
        picture=rungs.picture,
        recorded=recorded,
        refused=refused,
        links={a.name: a.links for a in artefacts},
        checks=(every := checks.read(papers)),
        checks_of=checks.by_claim(every),
        widths=scorecard.widths(claims),
        artefacts=artefacts,
        benchmarks=list(dict.fromkeys(a.benchmark for a in artefacts if a.benchmark)),
        theory=theory,
        gates=gates,
        gate_counts=controls.counts(gates),
        gate_links={place: names.get(place, first.get(place[0])) for place in places},
        rules=jobs.by_rule(made.values()),
        longest=sorted(made.values(), key=lambda job: -job.seconds)[:10],
        seconds=sum(job.seconds for job in made.values()),
        environment=jobs.environment(made.values()),
        number_of_jobs=len(made),
    )  # fmt: skip
