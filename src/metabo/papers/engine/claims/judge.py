"""Judge the claims of a paper: one verdict from its primary cell, and everything else beside it.

Rows of a claim: "claim", the verdict; "part", each part of the primary cell, where there are several; "beside", the
multiverse: other readings, benchmarks and metrics. Only the primary cell gives the verdict. It is contradicted only if
every reading that the paper allows contradicts it; a reading that holds after Holm's correction over the readings is
named as the cause of a verdict that is undecided.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from metabo.papers.engine.claims import checks, gates
from metabo.papers.engine.claims.evidence import SYNTHETIC, Evidence, NoTable, gather
from metabo.papers.engine.claims.gates import Gate
from metabo.papers.engine.claims.sheet import Claim, ClaimTest, cells
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    interval,
    ordered,
    supporting,
    tally,
    together,
    untestable,
)
from metabo.plan.catalogue import Artefact
from metabo.plan.entries import CatalogueEntry

COLUMNS = (
    "claim", "paper", "headline", "kind", "section", "statement", "paper_value", "role", "benchmark", "rung",
    "artefact", "reading", "metrics", "verdict", "cause", "value", "low", "high", "suite_low", "suite_high",
    "new_low", "new_high", "unit", "clusters", "power", "needed", "said",
)  # fmt: skip
CLAIM, PART, BESIDE = "claim", "part", "beside"
"""Roles of rows."""
CAUSES = {
    "claim": "contradicted in theory, with a counterexample, or at the published size on two independent benchmarks",
    "size": "another rung of the ladder holds",
    "data": "another benchmark holds, or only the paper's own data can show it",
    "power": "too few units for an effect of the paper's size",
    "reading": "another reading of the paper decides otherwise",
    "ours": "a known departure of this project",
    "gate": "a control of the benchmark or of a method fails, so that nothing can be concluded",
    "unresolved": "contradicted here, and no rung, benchmark or reading says why",
}
"""Why a claim does not hold."""
ESTIMANDS = {"direct": "suite", "conceptual": "new"}
"""What the interval of a verdict is about: a direct test asks what the paper reports, its own tasks; a test on other
tables asks whether the claim carries over to a new one."""
METRICS: Mapping[str, object] = {"area": "area", "last": 100, "regret at 10": 10}
"""Moments that stand beside each other where a claim names none."""
RUNGS = {"laptop": "default", "paper": "published"}
"""Rungs of the ladder by scale; any other scale is its own."""

REPAIRED = "repaired"
"""`beside` of a test of our correction: no reading of the paper, so that it cannot save what is printed. The row says
what it shows."""

CONTROL = "control"
"""The benchmark whose gates count everywhere."""
Place = tuple[str, str]
"""An artefact's id and benchmark ("": none)."""


@dataclass(frozen=True)
class ClaimCell:
    """One test on one benchmark: what it is called in the table, and where it can be made (None: nowhere here)."""

    claim: str
    test: ClaimTest
    benchmark: str
    role: str
    reading: str
    place: Place | None


@dataclass(frozen=True)
class Judged:
    """A cell with its finding, and the failed gates that it rests on, with which nothing can be tested."""

    cell: ClaimCell
    finding: Finding
    gates: tuple[Gate, ...] = ()


def judge(
    claims: Sequence[Claim], made: Iterable[Artefact], root: Path, entries: Mapping[str, CatalogueEntry]
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, list[str]]]:
    """Return the table of verdicts (COLUMNS), that of gates (`gates.COLUMNS`), and the files behind each artefact.

    `made`: the artefacts that this run has, below `root` (results/{scale}), those without claims for their gates;
    `entries`: the whole catalogue. Every artefact is read once, whatever the number of claims. Raises DataError for a
    missing file.
    """
    artefacts = {(artefact.id, artefact.benchmark): artefact for artefact in made}
    wanted_cells = [cell for claim in claims for cell in cells_of(claim, artefacts, entries)]
    kinds = {claim.id: claim.kind for claim in claims}
    wanted = dict.fromkeys(cell.place for cell in wanted_cells if cell.place)
    found: dict[int, Judged] = {}
    read: dict[str, list[str]] = {}
    shared = {
        (place, gate): list[str]()
        for place, artefact in artefacts.items()
        if place[1] == CONTROL
        for gate in gates.of(artefact.entry.paper, gather(artefact, root)[0])
    }
    resting = dict(shared)
    # those that show the same runs follow each other, so that these are read once
    for place in sorted(wanted, key=lambda place: (place[1], str(artefacts[place].files.get("trajectories")))):
        evidence, files = gather(artefacts[place], root)
        paper = artefacts[place].entry.paper
        here = {(place, gate): list[str]() for gate in gates.of(paper, evidence)}
        resting |= here
        counting = [key for key in (*here, *shared) if key in here or key[1].everywhere]
        runs = list(dict.fromkeys(evidence.trajectories["method"])) if evidence.has("trajectories") else []
        read["/".join(filter(None, place))] = [str(path) for paths in files.values() for path in paths]
        for number, cell in enumerate(wanted_cells):
            if cell.place == place:
                own = [key for key in counting if gates.rests(key[1], paper, cell.test, runs)]
                failed = [gate for _, gate in own if not gate.passed]
                apart = [gate for gate in failed if gates.apart(gate, cell.test)]
                about = evidence.about(ESTIMANDS.get(kinds[cell.claim], "new"), gates.failing(apart, runs))
                found[number] = _judged(paper, cell, about, [gate for gate in failed if gate not in apart])
                for key in own:
                    resting[key] += [cell.claim] if cell.claim not in resting[key] else []
    controls = [
        _control(artefacts[place].entry.paper, place, gate, claims) for (place, gate), claims in resting.items()
    ]
    told = [found.get(number) or Judged(cell, _absent(cell)) for number, cell in enumerate(wanted_cells)]
    rung = RUNGS.get(root.name, root.name)
    rows = [row for claim in claims for row in _rows(claim, [one for one in told if one.cell.claim == claim.id], rung)]
    return pd.DataFrame(rows, columns=list(COLUMNS)), pd.DataFrame(controls, columns=list(gates.COLUMNS)), read


def _judged(paper: str, cell: ClaimCell, evidence: Evidence, failed: Sequence[Gate]) -> Judged:
    if failed:
        said = "; ".join(f"gate '{gate.name}' fails: {gate.said}" for gate in failed)
        return Judged(cell, untestable(said), tuple(failed))
    try:
        return Judged(cell, checks.run(paper, cell.test.check, evidence, cell.test.arguments))
    except NoTable as error:
        return Judged(cell, untestable(str(error)))


def _control(paper: str, place: Place, gate: Gate, claims: Sequence[str]) -> dict[str, object]:
    return {
        "paper": paper, "gate": gate.name, "artefact": place[0], "benchmark": place[1] or SYNTHETIC,
        "subjects": " ".join(gate.subjects), "verdict": gates.PASSES if gate.passed else gates.FAILS,
        "value": gate.value, "bound": gate.bound, "said": gate.said, "claims": " ".join(claims),
    }  # fmt: skip


def _absent(cell: ClaimCell) -> Finding:
    where = "" if cell.benchmark == SYNTHETIC else f" on {cell.benchmark}"
    reason = f"{cell.test.artefact}{where} is not part of this run (config run.papers, run.benchmarks)"
    return untestable(reason)


def cells_of(claim: Claim, artefacts: Iterable[Place], entries: Mapping[str, CatalogueEntry]) -> list[ClaimCell]:
    """Return the cells of a claim: parts on the primary benchmarks first, then what stands beside them.

    A part that this run cannot make has a cell without a place; what stands beside is listed only where it was made.
    """
    if claim.primary is None:
        return []
    made, primary = set(artefacts), claim.primary
    own = cells(claim, entries)
    parts, beside = [], []
    for test, benchmark in own:
        place = (test.artefact, "" if benchmark == SYNTHETIC else benchmark)
        here = place if place in made else None
        parts.append(ClaimCell(claim.id, test, benchmark, PART, primary.reading, here))
        if here:
            others = other_metrics(claim.paper, test)
            beside += [ClaimCell(claim.id, other, benchmark, BESIDE, name, here) for name, other in others]
    for test in claim.tests:
        for id, on in sorted(made):
            benchmark = on or SYNTHETIC
            if id != test.artefact or (test.benchmarks and on not in test.benchmarks) or (test, benchmark) in own:
                continue
            beside.append(ClaimCell(claim.id, test, benchmark, BESIDE, test.beside or primary.reading, (id, on)))
    return [*parts, *beside]


def other_metrics(paper: str, test: ClaimTest) -> list[tuple[str, ClaimTest]]:
    """Return a test of regrets at the other moments of METRICS, with their names; none where the claim names some."""
    moments = checks.moments(paper, test.check, test.arguments)
    if len(moments) != 1 or not moments <= {"area", "last"}:
        return []
    listed = isinstance(test.arguments.get("at", [100]), list)
    return [
        (name, replace(test, arguments={**test.arguments, "at": [at] if listed else at}))
        for name, at in METRICS.items()
        if name not in moments
    ]


def _rows(claim: Claim, told: Sequence[Judged], rung: str) -> list[dict[str, object]]:
    if claim.untestable:
        return [_row(claim, CLAIM, "", rung, "", "", untestable(claim.untestable), "")]
    parts = [one for one in told if one.cell.role == PART]
    beside = [one for one in told if one.cell.role == BESIDE]
    finding, cause = settled(claim, parts, beside)
    assert claim.primary is not None
    on, artefacts = ([name(part.cell) for part in parts] for name in (lambda c: c.benchmark, lambda c: c.test.artefact))
    names = [" ".join(dict.fromkeys(several)) for several in (on, artefacts)]
    rows = [_row(claim, CLAIM, names[0], rung, names[1], claim.primary.reading, finding, cause)]
    for one in [*(parts if len(parts) > 1 else []), *beside]:
        cell = one.cell
        rows.append(_row(claim, cell.role, cell.benchmark, rung, cell.test.artefact, cell.reading, one.finding, ""))
    return rows


def settled(claim: Claim, parts: Sequence[Judged], beside: Sequence[Judged]) -> tuple[Finding, str]:
    """Return the finding of a claim and the cause of a verdict that is not `holds`."""
    found = [part.finding for part in parts]
    whole = together(found) if claim.pooled is None else pooled(found, claim.pooled)
    on = {part.cell.benchmark for part in parts}
    readings: dict[str, list[Finding]] = {}
    repaired = [one.finding for one in beside if one.cell.reading == REPAIRED]
    if repaired:
        whole = replace(whole, said=f"{whole.said}; repaired, {together(repaired).verdict}: {together(repaired).said}")
    elsewhere: dict[str, list[Finding]] = {}
    for one in beside:
        if one.cell.reading == REPAIRED or one.cell.test.partial:
            continue
        if one.cell.test.beside and one.cell.benchmark in on:
            readings.setdefault(one.cell.reading, []).append(one.finding)
        elif not one.cell.test.beside and one.cell.benchmark not in on:
            elsewhere.setdefault(one.cell.benchmark, []).append(one.finding)
    read = {name: together(several) for name, several in readings.items()}
    others = {name: together(several) for name, several in elsewhere.items()}
    lower = [name for name, finding in read.items() if finding.verdict not in (CONTRADICTED, UNTESTABLE)]
    if whole.verdict == CONTRADICTED and lower:
        said = f"contradicted, not under every reading ({', '.join(lower)}): {whole.said}"
        return replace(whole, verdict=UNDECIDED, said=said), "reading"
    if whole.verdict != CONTRADICTED and any(part.gates for part in parts):
        lost = untestable("; ".join(dict.fromkeys(part.finding.said for part in parts if part.gates)))
        return lost, "gate"
    return whole, _cause(claim, whole, read, others)


def _cause(claim: Claim, whole: Finding, read: Mapping[str, Finding], others: Mapping[str, Finding]) -> str:
    assert claim.primary is not None
    if whole.verdict == HOLDS:
        return ""
    if whole.verdict == UNTESTABLE:
        return "ours" if claim.ours else "data"
    if whole.verdict == CONTRADICTED and set(claim.primary.metrics) <= {"statement"}:
        return "claim"
    holding = [f for f in read.values() if f.verdict == HOLDS and supporting(f) * len(read) <= LEVEL / 2]
    if whole.verdict == UNDECIDED and holding:
        return "reading"
    if any(finding.verdict == HOLDS for finding in others.values()):
        return "data"
    if claim.ours:
        return "ours"
    return "power" if whole.verdict == UNDECIDED else "unresolved"


def pooled(findings: Sequence[Finding], bound: float) -> Finding:
    """Return the finding of a claim about the share of all that its tests count: more than `bound` of it holds.

    The ends of the parts' intervals, weighted by what they count, are the ends of the whole; that is wider than 95 %.
    """
    tested = [f for f in findings if f.count is not None and f.of and f.low is not None and f.high is not None]
    if not tested:
        return untestable(f"{tally(findings)}; none of {len(findings)} tests counts anything to pool")
    of = sum(f.of or 0 for f in tested)
    count = sum(f.count or 0 for f in tested)
    low, high = (sum(end * (f.of or 0) for end, f in zip(ends, tested, strict=True)) / of for ends in _ends(tested))
    said = f"over {len(tested)} tests: {count} of {of}, share {interval(count / of, low, high)}"
    lost = len(findings) - len(tested)
    verdict = ordered(low, high, False, bound)
    if lost:
        said, verdict = f"{said}; {lost} not testable", UNTESTABLE if verdict == HOLDS else verdict
    return Finding(verdict, said, count / of, low, high, "share", count, of)


def _ends(findings: Sequence[Finding]) -> tuple[list[float], list[float]]:
    return [f.low or 0.0 for f in findings], [1.0 if f.high is None else f.high for f in findings]


def _row(
    claim: Claim, role: str, benchmark: str, rung: str, artefact: str, reading: str, finding: Finding, cause: str
) -> dict[str, object]:
    suite, new = finding.suite or (None, None), finding.new or (None, None)
    return {
        "claim": claim.id, "paper": claim.paper, "headline": int(claim.headline), "kind": claim.kind,
        "section": claim.section, "statement": claim.statement, "paper_value": claim.printed, "role": role,
        "benchmark": benchmark, "rung": rung, "artefact": artefact, "reading": reading,
        "metrics": " ".join(claim.primary.metrics) if claim.primary else "", "verdict": finding.verdict, "cause": cause,
        "value": finding.value, "low": finding.low, "high": finding.high, "suite_low": suite[0], "suite_high": suite[1],
        "new_low": new[0], "new_high": new[1], "unit": finding.unit, "clusters": finding.clusters,
        "power": finding.power, "needed": finding.needed, "said": finding.said,
    }  # fmt: skip


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim: its verdict."""
    return table[table["role"] == CLAIM].reset_index(drop=True)
