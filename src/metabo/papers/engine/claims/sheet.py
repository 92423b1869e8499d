"""The claim sheets: every claim of a paper, in our words, with the tests that decide it
(`papers/{paper}/claims.yaml`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypedDict

from metabo.errors import ConfigError, unknown
from metabo.papers.engine.claims import checks
from metabo.plan.entries import CatalogueEntry
from metabo.plan.schema import violations
from metabo.plan.yaml_files import read_yaml
from metabo.records.files import Json

FOLDER = Path(__file__).parents[2]
SCHEMA = Path("workflow/schemas/claims.yaml")


@dataclass(frozen=True)
class ClaimTest:
    """A check of one artefact, on all its benchmarks or only on `benchmarks`."""

    artefact: str
    check: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    benchmarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: `printed` is its number ("-": none), `untestable` the reason if no result can decide it.

    `pooled`: see the schema; None for a claim that is as good as its worst test.
    """

    id: str
    paper: str
    statement: str
    section: str
    printed: str
    tests: tuple[ClaimTest, ...] = ()
    untestable: str = ""
    pooled: float | None = None


class TestEntry(TypedDict):
    """A test as the sheet has it."""

    artefact: str
    check: str
    arguments: NotRequired[dict[str, Json]]
    benchmarks: NotRequired[list[str]]


class ClaimEntry(TypedDict):
    """A claim as the sheet has it (`SCHEMA`)."""

    statement: str
    section: str
    paper: str
    pooled: NotRequired[float]
    untestable: NotRequired[str]
    tests: NotRequired[list[TestEntry]]


def papers() -> list[str]:
    """List the papers that have a claim sheet."""
    return sorted(path.parent.name for path in FOLDER.glob("*/claims.yaml"))


def path(paper: str) -> Path:
    """Return the file of a paper's sheet. Raises ConfigError for a paper without one."""
    if paper not in papers():
        raise unknown("paper with claims", paper, papers())
    return FOLDER / paper / "claims.yaml"


def load(paper: str, root: Path = Path()) -> list[Claim]:
    """Read and check a paper's claims, in the order of the sheet; `root`: the project folder.

    Raises ConfigError that lists every fault: of the schema, and checks or arguments that do not exist.
    """
    entries: dict[str, ClaimEntry] = read_yaml(path(paper))
    found = violations(entries, read_yaml(root / SCHEMA), "claim")
    if not found:
        found = [
            f"claim '{id}': {fault}"
            for id, entry in entries.items()
            for test in entry.get("tests", [])
            for fault in checks.faults(paper, test["check"], test.get("arguments", {}))
        ]
    if found:
        raise ConfigError(f"{paper}/claims.yaml:\n  " + "\n  ".join(found))
    return [_claim(id, paper, entry) for id, entry in entries.items()]


def _claim(id: str, paper: str, entry: ClaimEntry) -> Claim:
    tests = tuple(
        ClaimTest(t["artefact"], t["check"], t.get("arguments", {}), tuple(t.get("benchmarks", [])))
        for t in entry.get("tests", [])
    )
    return Claim(
        id, paper, entry["statement"].strip(), entry["section"], entry["paper"], tests,
        entry.get("untestable", "").strip(), entry.get("pooled"),
    )  # fmt: skip


def faults(claims: Iterable[Claim], catalogue: Mapping[str, CatalogueEntry]) -> list[str]:
    """Say where sheet and catalogue contradict each other: artefacts or benchmarks that do not exist, claims that an
    entry names but the sheet lacks, tests that the entry does not name."""
    claims = list(claims)
    known = {claim.id for claim in claims}
    found = []
    for claim in claims:
        for test in claim.tests:
            if test.artefact not in catalogue:
                found.append(f"claim '{claim.id}': {unknown('artefact', test.artefact, catalogue)}")
                continue
            entry = catalogue[test.artefact]
            if entry.paper != claim.paper:
                found.append(f"claim '{claim.id}': {test.artefact} is of paper '{entry.paper}'; use one of its own")
            found += [
                f"claim '{claim.id}': {unknown(f'benchmark of {test.artefact}', benchmark, entry.benchmarks)}"
                for benchmark in test.benchmarks
                if benchmark not in entry.benchmarks
            ]
            if claim.id not in entry.claims:
                found.append(f"claim '{claim.id}' is tested on {test.artefact}, whose 'claims' lack it; add it there")
    for paper in {claim.paper for claim in claims}:
        for id, entry in catalogue.items():
            if entry.paper == paper:
                strangers = [name for name in entry.claims if name not in known]
                found += [f"{id}: claim '{name}' is not in {paper}/claims.yaml" for name in strangers]
    return found
