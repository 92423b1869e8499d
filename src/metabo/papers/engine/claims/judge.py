"""Judge the claims of a paper: run their tests on what was made, one row per test and benchmark, one per claim."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from metabo.papers.engine.claims import checks
from metabo.papers.engine.claims.evidence import SYNTHETIC, Evidence, NoTable, gather
from metabo.papers.engine.claims.sheet import Claim, ClaimTest
from metabo.papers.engine.claims.verdicts import UNTESTABLE, Finding, share, tally, untestable, worst
from metabo.plan.catalogue import Artefact

COLUMNS = (
    "claim", "paper", "section", "statement", "paper_value", "benchmark", "artefact", "verdict", "value", "low", "high",
    "unit", "said",
)  # fmt: skip
ALL = "all"
"""The benchmark of a claim's summary row."""

Place = tuple[str, str]
"""An artefact's id and benchmark ("": none)."""
Tests = dict[tuple[str, int], tuple[ClaimTest, list[Place]]]
"""Every test, by claim and number, with where it can be made."""
Findings = dict[tuple[str, int, str], Finding]
"""By claim, number of the test, and benchmark."""


def judge(claims: Sequence[Claim], made: Iterable[Artefact], root: Path) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return the table of verdicts (COLUMNS), and the files behind each artefact, by its place.

    `made`: the artefacts that this run has, below `root` (results/{scale}). Every claim has a row per test and
    benchmark, and one with the benchmark "all" if there are several: the worst of those that are testable, or by
    `pooled` counts. Every artefact is read once, whatever the number of claims. Raises DataError for a missing file.
    """
    artefacts = {(artefact.id, artefact.benchmark): artefact for artefact in made}
    tests: Tests = {(c.id, i): (test, places(test, artefacts)) for c in claims for i, test in enumerate(c.tests)}
    findings: Findings = {}
    read = {}
    wanted = dict.fromkeys(place for _, found in tests.values() for place in found)
    # those that show the same runs follow each other, so that these are read once
    for place in sorted(wanted, key=lambda place: (place[1], str(artefacts[place].files.get("trajectories")))):
        evidence, files = gather(artefacts[place], root)
        read["/".join(filter(None, place))] = [str(path) for paths in files.values() for path in paths]
        for (id, number), (test, found) in tests.items():
            if place in found:
                findings[id, number, evidence.benchmark] = _found(artefacts[place].entry.paper, test, evidence)
    rows = [row for claim in claims for row in _rows(claim, tests, findings)]
    return pd.DataFrame(rows, columns=list(COLUMNS)), read


def _found(paper: str, test: ClaimTest, evidence: Evidence) -> Finding:
    try:
        return checks.run(paper, test.check, evidence, test.arguments)
    except NoTable as error:
        return untestable(str(error))


def places(test: ClaimTest, artefacts: Iterable[Place]) -> list[Place]:
    """Return where a test can be made: the benchmarks of its artefact that this run has and that it is meant for."""
    return [(id, on) for id, on in artefacts if id == test.artefact and (not test.benchmarks or on in test.benchmarks)]


def _rows(claim: Claim, tests: Tests, findings: Findings) -> list[dict[str, str | float | None]]:
    if claim.untestable:
        return [_row(claim, ALL, "", untestable(claim.untestable))]
    found: list[tuple[str, str, Finding]] = []
    for number, test in enumerate(claim.tests):
        on = [benchmark or SYNTHETIC for _, benchmark in tests[claim.id, number][1]]
        found += [(benchmark, test.artefact, findings[claim.id, number, benchmark]) for benchmark in on]
        if not on:
            where = " or ".join(test.benchmarks) or "its benchmarks"
            reason = f"{test.artefact} on {where} is not part of this run (config run.papers, run.benchmarks)"
            found.append((" ".join(test.benchmarks) or "none", test.artefact, untestable(reason)))
    rows = [_row(claim, *one) for one in found]
    if len(found) > 1:
        names = " ".join(dict.fromkeys(artefact for _, artefact, _ in found))
        rows.append(_row(claim, ALL, names, summary(claim, [finding for _, _, finding in found])))
    return rows


def summary(claim: Claim, findings: Sequence[Finding]) -> Finding:
    """Return the finding of a claim with several: the worst of the testable ones, or by pooled counts."""
    said = f"{tally(findings)} of {len(findings)} tests"
    tested = [finding for finding in findings if finding.verdict != UNTESTABLE]
    if not tested:
        return untestable(said)
    if claim.pooled is None:
        return Finding(worst(tested), said)
    counts = [(finding.count, finding.of) for finding in tested if finding.count is not None and finding.of]
    if not counts:
        return untestable(f"{said}, none of which counts anything to pool")
    count, of = (sum(column) for column in zip(*counts, strict=True))
    return share(count, of, f"over {len(counts)} tests", count > claim.pooled * of)


def _row(claim: Claim, benchmark: str, artefact: str, finding: Finding) -> dict[str, str | float | None]:
    return {
        "claim": claim.id, "paper": claim.paper, "section": claim.section, "statement": claim.statement,
        "paper_value": claim.printed, "benchmark": benchmark, "artefact": artefact, "verdict": finding.verdict,
        "value": finding.value, "low": finding.low, "high": finding.high, "unit": finding.unit, "said": finding.said,
    }  # fmt: skip


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim: the summary, or the only row."""
    return table.groupby("claim", sort=False).tail(1).reset_index(drop=True)
