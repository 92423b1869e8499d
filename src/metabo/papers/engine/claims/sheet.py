"""The claim sheets: every claim of a paper, in our words, with the tests that decide it
(`papers/{paper}/claims.yaml`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypedDict

from metabo.errors import ConfigError, unknown
from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.evidence import SYNTHETIC
from metabo.plan.entries import CatalogueEntry
from metabo.plan.runs import method_of
from metabo.plan.schema import violations
from metabo.plan.yaml_files import read_yaml
from metabo.records.files import Json

FOLDER = Path(__file__).parents[2]
SCHEMA = Path("workflow/schemas/claims.yaml")
REPAIRED = "repaired"
"""`beside` of a test of our correction. It is not a reading of the paper, so it cannot save what is printed. The row
says what it shows."""
OWN_TABLE = "the paper's own table"
"""`beside` of a test on the numbers that the paper prints. It is not a reading; the row says whether they pass the
rule."""
MOMENTS = {"named", "place", "rank", "iteration", "solved"}
"""Metrics whose iterations the claim itself names."""
COMPARED = (
    "method", "methods", "others", "among", "variants", "meta", "but", "lower", "than", "other", "over", "more",
    "reference", "single", "flat", "growing",
)  # fmt: skip
"""Arguments of checks that name methods alone, where the artefact shows runs."""
OF_OTHERS = {("wider_spread", "than"), ("larger_gain", "more"), ("crossed_lower", "reference")}
"""Those that name something else: a panel, a split, a combination of method and points."""


@dataclass(frozen=True)
class ClaimTest:
    """A check of one artefact, on all its benchmarks or only on `benchmarks`.

    `beside`: the reading that it is of, where that is not the primary one; "" for a part of the claim. `partial`: the
    reading was made for some of the claim's parts only; it is shown, and cannot save the claim.
    """

    artefact: str
    check: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    benchmarks: tuple[str, ...] = ()
    beside: str = ""
    partial: bool = False


@dataclass(frozen=True)
class Primary:
    """The cell that gives a claim's verdict (schema: `primary`): its parts are the tests without `beside`.

    `effect`: the paper's own, in the units of the metric; None where it prints none.
    """

    benchmarks: tuple[str, ...]
    rung: str
    reading: str
    metrics: tuple[str, ...]
    margin: float
    effect: float | None = None


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: `printed` is its number ("-": none), `untestable` the reason if no result can decide it.

    `headline`, `kind`, `pooled`, `ours`: see the schema; `pooled` is None for a claim that needs all its parts, `kind`
    "" and `primary` None for one that nothing here can test.
    """

    id: str
    paper: str
    statement: str
    section: str
    printed: str
    tests: tuple[ClaimTest, ...] = ()
    untestable: str = ""
    pooled: float | None = None
    headline: bool = False
    kind: str = ""
    primary: Primary | None = None
    ours: str = ""


class TestEntry(TypedDict):
    """A test as the sheet has it."""

    artefact: str
    check: str
    arguments: NotRequired[dict[str, Json]]
    benchmarks: NotRequired[list[str]]
    beside: NotRequired[str]
    partial: NotRequired[bool]


class PrimaryEntry(TypedDict):
    """The primary cell as the sheet has it."""

    benchmarks: list[str]
    rung: str
    reading: str
    metrics: list[str]
    margin: float
    effect: NotRequired[float]


class ClaimEntry(TypedDict):
    """A claim as the sheet has it (`SCHEMA`)."""

    statement: str
    section: str
    paper: str
    headline: NotRequired[bool]
    kind: NotRequired[str]
    primary: NotRequired[PrimaryEntry]
    ours: NotRequired[str]
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

    Raises ConfigError, which lists every fault: of the schema, and checks or arguments that do not exist.
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
        raise ConfigError(f"{paper}/claims.yaml:", *(f"  {fault}" for fault in found))
    return read(paper)


def read(paper: str) -> list[Claim]:
    """Read a paper's claims as they are, in the order of the sheet: for what has been checked (`load`)."""
    return [_claim(id, paper, entry) for id, entry in read_yaml(path(paper)).items()]


def _claim(id: str, paper: str, entry: ClaimEntry) -> Claim:
    tests = tuple(map(_test, entry.get("tests", [])))
    return Claim(
        id, paper, entry["statement"].strip(), entry["section"], entry["paper"], tests,
        entry.get("untestable", "").strip(), entry.get("pooled"), entry.get("headline", False), entry.get("kind", ""),
        _primary(entry["primary"]) if "primary" in entry else None, entry.get("ours", "").strip(),
    )  # fmt: skip


def _test(entry: TestEntry) -> ClaimTest:
    given, benchmarks = entry.get("arguments", {}), tuple(entry.get("benchmarks", []))
    beside, partial = entry.get("beside", "").strip(), entry.get("partial", False)
    return ClaimTest(entry["artefact"], entry["check"], given, benchmarks, beside, partial)


def _primary(entry: PrimaryEntry) -> Primary:
    return Primary(
        tuple(entry["benchmarks"]), entry["rung"], entry["reading"], tuple(entry["metrics"]), float(entry["margin"]),
        entry.get("effect"),
    )  # fmt: skip


def readings(claim: Claim) -> list[ClaimTest]:
    """Return the tests of other readings of the whole claim: it is contradicted only if these are too."""
    return [test for test in claim.tests if test.beside not in ("", REPAIRED, OWN_TABLE) and not test.partial]


def cells(claim: Claim, catalogue: Mapping[str, CatalogueEntry]) -> list[tuple[ClaimTest, str]]:
    """Return the parts of a claim's primary cell: each test without `beside`, on each primary benchmark it is for."""
    if claim.primary is None:
        return []
    return [
        (test, benchmark)
        for test in claim.tests
        if not test.beside
        for benchmark in claim.primary.benchmarks
        if benchmark in benchmarks_of(test, catalogue)
    ]


def benchmarks_of(test: ClaimTest, catalogue: Mapping[str, CatalogueEntry]) -> Sequence[str]:
    """Return the benchmarks on which a test can be judged: its own, else those of its artefact."""
    return test.benchmarks or catalogue[test.artefact].benchmarks or (SYNTHETIC,)


def faults(claims: Iterable[Claim], catalogue: Mapping[str, CatalogueEntry]) -> list[str]:
    """Say where sheet and catalogue contradict each other: artefacts or benchmarks that do not exist, methods that an
    artefact does not show, claims that an entry names but the sheet lacks, tests that the entry does not name."""
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
            found += [f"claim '{claim.id}': {fault}" for fault in _strange_methods(test, entry)]
            if claim.id not in entry.claims:
                found.append(f"claim '{claim.id}' is tested on {test.artefact}, whose 'claims' lack it; add it there")
        found += _faults_of_primary(claim, catalogue)
    for paper in {claim.paper for claim in claims}:
        for id, entry in catalogue.items():
            if entry.paper == paper:
                strangers = [name for name in entry.claims if name not in known]
                found += [f"{id}: claim '{name}' is not in {paper}/claims.yaml" for name in strangers]
    return found


def _strange_methods(test: ClaimTest, entry: CatalogueEntry) -> list[str]:
    """Name the methods in a test's arguments of which its artefact shows no run, if it shows any."""
    runs = [run for kind in ("trajectories", "evaluations", "online") for run in entry.inputs.kinds.get(kind, ())]
    shown = {method_of(run) for run in runs}
    found = []
    for key in [key for key in COMPARED if shown and (test.check, key) not in OF_OTHERS]:
        given = test.arguments.get(key, [])
        names = given if isinstance(given, list) else [given]
        strange = [name for name in names if isinstance(name, str) and method_of(name) not in shown]
        found += [f"{test.check}, '{key}': {unknown(f'method of {test.artefact}', name, shown)}" for name in strange]
    return found


def _faults_of_primary(claim: Claim, catalogue: Mapping[str, CatalogueEntry]) -> list[str]:
    """Say which part has no primary benchmark, which benchmark no part, and which moment of a part is no metric."""
    if claim.primary is None or any(test.artefact not in catalogue for test in claim.tests):
        return []
    parts = [test for test in claim.tests if not test.beside]
    held = cells(claim, catalogue)
    found = [] if parts else [f"claim '{claim.id}': every test has `beside`; leave it out of those that decide"]
    found += [
        f"claim '{claim.id}': {test.artefact} has none of the primary benchmarks {', '.join(claim.primary.benchmarks)}"
        for test in parts
        if not any(test == part for part, _ in held)
    ]
    found += [
        f"claim '{claim.id}': no part is tested on the primary benchmark '{benchmark}'"
        for benchmark in claim.primary.benchmarks
        if parts and benchmark not in {on for _, on in held}
    ]
    for test in parts:
        moments = checks.moments(claim.paper, test.check, test.arguments)
        if not {*claim.primary.metrics} & MOMENTS and moments - {*claim.primary.metrics}:
            found.append(
                f"claim '{claim.id}': {test.check} compares at {', '.join(sorted(moments))}, the primary metrics are "
                f"{', '.join(claim.primary.metrics)}; give the test the argument `at`, or name the metric in `primary`"
            )
    return found
