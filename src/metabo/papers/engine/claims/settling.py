"""Settle a claim: the verdict of all its parts together, and the cause where it does not hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from metabo.papers.engine.claims.conjunctions import supporting, tally, together
from metabo.papers.engine.claims.evidence import SYNTHETIC
from metabo.papers.engine.claims.gates import Gate
from metabo.papers.engine.claims.power import WANTED
from metabo.papers.engine.claims.ranges import at_least
from metabo.papers.engine.claims.sheet import OWN_TABLE, REPAIRED, Claim, ClaimTest
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    untestable,
)
from metabo.plan import registry

CAUSES = {
    "claim": "contradicted in theory, with a counterexample, or at the published size on two independent benchmarks",
    "size": "another rung of the ladder holds",
    "data": "another benchmark holds, or only the paper's own data can show it",
    "few": "so few units that a part could not be decided even if all of them agreed, so that it cannot hold here",
    "power": "too few units for an effect of the paper's size: less than 80 % power, and more units can be had",
    "small": "an effect of that size would have been found in 80 % of cases: what there is may be smaller",
    "open": "the test does not decide, and no number of units is known that would",
    "reading": "another reading of the paper decides otherwise",
    "untested": "contradicted under every reading that was tested; one that the paper allows was not, or cannot be",
    "ours": "a known departure of this project",
    "gate": "a control of the benchmark or of a method fails, so that nothing can be concluded",
    "beyond": "no run could show or refute it: the paper gives nothing to compare with, or speaks of all algorithms",
    "unresolved": "contradicted here, and no rung, benchmark or reading says why",
}
"""Why a claim does not hold."""
THEORY = "statements"
"""The check that reads what the theory checks found: for a refuted statement, they have a counterexample."""
PUBLISHED = "published"
"""The rung at which a contradiction on two independent benchmarks is the claim's own fault."""
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
    """A cell with its finding, and the failed gates that it rests on, with which it cannot hold."""

    cell: ClaimCell
    finding: Finding
    gates: tuple[Gate, ...] = ()


def settled(
    claim: Claim, parts: Sequence[Judged], beside: Sequence[Judged], rung: str = "default"
) -> tuple[Finding, str]:
    """Return the finding of a claim at a rung and the cause of a verdict that is not `holds`.

    It is contradicted if every reading is; one that cannot be tested neither agrees nor disagrees, and leaves it
    undecided. A failed gate of any part leaves the claim untestable, unless what does not rest on the gate decides it:
    a part contradicts it, or most comparisons (one, of an existence claim) hold although those that rest on the gate
    count as if they did not. The finding says what the paper's own table and our correction show, whatever the
    verdict.
    """
    found, cause = _verdict(claim, parts, beside, rung)
    told = [found.said]
    if repaired := [one.finding for one in beside if one.cell.reading == REPAIRED]:
        told.append(f"repaired, {together(repaired).verdict}: {together(repaired).said}")
    if own := [one.finding for one in beside if one.cell.reading == OWN_TABLE]:
        told.append(_own_table(together(own)))
    return replace(found, said="; ".join(told)), cause


def _verdict(claim: Claim, parts: Sequence[Judged], beside: Sequence[Judged], rung: str) -> tuple[Finding, str]:
    found = [part.finding for part in parts]
    whole = together(found) if claim.pooled is None else pooled(found, claim.pooled)
    on = {part.cell.benchmark for part in parts}
    readings: dict[str, list[Finding]] = {}
    elsewhere: dict[str, list[Finding]] = {}
    for one in beside:
        if one.cell.reading in (REPAIRED, OWN_TABLE) or one.cell.test.partial:
            continue
        if one.cell.test.beside and one.cell.benchmark in on:
            readings.setdefault(one.cell.reading, []).append(one.finding)
        elif not one.cell.test.beside and one.cell.benchmark not in on:
            elsewhere.setdefault(one.cell.benchmark, []).append(one.finding)
    read = {name: together(several) for name, several in readings.items()}
    others = {name: together(several) for name, several in elsewhere.items()}
    refuted = _refuted(parts)
    proved = {one.cell.reading for one in beside if one.cell.test.check == THEORY}
    saving = {name: finding for name, finding in read.items() if name in proved or not refuted}
    lower = [name for name, finding in saving.items() if finding.verdict not in (CONTRADICTED, UNTESTABLE)]
    if whole.verdict == CONTRADICTED and lower:
        said = f"contradicted, not under every reading ({', '.join(lower)}): {whole.said}"
        return replace(whole, verdict=UNDECIDED, said=said), "reading"
    lost = {name: finding.said for name, finding in saving.items() if finding.verdict == UNTESTABLE}
    if whole.verdict == CONTRADICTED and lost:
        why = "; ".join(f"{name}: {reason}" for name, reason in lost.items())
        said = f"contradicted under every reading that can be tested, not testable under another ({why}): {whole.said}"
        return replace(whole, verdict=UNDECIDED, said=said), "untested"
    failed = dict.fromkeys(gate.failure for part in parts for gate in part.gates)
    if whole.verdict not in (HOLDS, CONTRADICTED) and failed:
        return untestable("; ".join(failed)), "gate"
    theory = refuted or (claim.primary and set(claim.primary.metrics) <= {"statement"})
    if whole.verdict == CONTRADICTED and (theory or (rung == PUBLISHED and _twice(parts, others))):
        return whole, "claim"
    return whole, _cause(claim, whole, read, others)


def _own_table(found: Finding) -> str:
    """Say whether the numbers that the paper prints pass the rule."""
    words = {HOLDS: "supported by", CONTRADICTED: "contradicted by"}
    return f"{words.get(found.verdict, 'not supported by')} {OWN_TABLE} ({found.verdict}: {found.said})"


def _refuted(parts: Sequence[Judged]) -> bool:
    """Return whether theory contradicts one of the parts: a reading of another part cannot save it."""
    return any(part.cell.test.check == THEORY and part.finding.verdict == CONTRADICTED for part in parts)


def _twice(parts: Sequence[Judged], others: Mapping[str, Finding]) -> bool:
    """Return whether two benchmarks that share no data contradict, of the primary cell or beside it, and none holds."""
    if any(finding.verdict == HOLDS for finding in others.values()):
        return False
    own = [part.cell.benchmark for part in parts if part.finding.verdict == CONTRADICTED]
    against = {*own, *(name for name, finding in others.items() if finding.verdict == CONTRADICTED)}
    return any(sources(one).isdisjoint(sources(other)) for one, other in combinations(sorted(against), 2))


def sources(benchmark: str) -> frozenset[str]:
    """Return the archives that a benchmark is made of: its own, that of another one, or those of its members."""
    if benchmark == SYNTHETIC:
        return frozenset([benchmark])
    known = registry.benchmark(benchmark)
    if known.members:
        return frozenset().union(*map(sources, known.members))
    return frozenset([known.archive_of or known.dataset or benchmark])


def _cause(claim: Claim, whole: Finding, read: Mapping[str, Finding], others: Mapping[str, Finding]) -> str:
    assert claim.primary is not None
    if whole.verdict == HOLDS:
        return ""
    if whole.verdict == UNTESTABLE:
        return "ours" if claim.ours else "data"
    holding = [f for f in read.values() if f.verdict == HOLDS and supporting(f) * len(read) <= LEVEL / 2]
    if whole.verdict == UNDECIDED and holding:
        return "reading"
    if any(finding.verdict == HOLDS for finding in others.values()):
        return "data"
    if claim.ours:
        return "ours"
    return _open(whole) if whole.verdict == UNDECIDED else "unresolved"


def _open(whole: Finding) -> str:
    """Return the cause of an undecided finding that no reading and no benchmark explains: its own units and power."""
    if not whole.decidable:
        return "few"
    if whole.power is None or whole.clusters is None:
        return "open"
    return "power" if whole.power < WANTED else "small"


def pooled(findings: Sequence[Finding], bound: float) -> Finding:
    """Return the finding of a claim about the share of all that its tests count: more than `bound` of it holds.

    Their parts are counted together, as those of one test are (`metabo.papers.engine.claims.ranges.at_least`): with
    Hochberg's correction over all of them `holds` and `contradicted` are wrong in at most LEVEL / 2 each. With sums of
    the tests' own bounds, the error rate would grow with the number of tests. A test that counts nothing might hold or
    not, so with it nothing is decided.
    """
    tested = [f for f in findings if f.count is not None and f.of and f.parts]
    if not tested:
        return untestable(f"{tally(findings)}; none of {len(findings)} tests counts anything to pool")
    parts = [part for f in tested for part in f.parts]
    count, lost = sum(f.count or 0 for f in tested), len(findings) - len(tested)
    ahead = [number < count for number in range(len(parts))]
    found = at_least(f"over {len(tested)} tests", parts, ahead, math.floor(bound * len(parts)) + 1)
    if not lost:
        return found
    decided = found.verdict in (HOLDS, CONTRADICTED)
    return replace(found, verdict=UNTESTABLE if decided else found.verdict, said=f"{found.said}; {lost} not testable")
