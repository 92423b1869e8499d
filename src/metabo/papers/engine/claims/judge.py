"""Judge the claims of a paper: one verdict from its primary cell, and everything else beside it.

Rows of a claim: "claim", the verdict; "part", each part of the primary cell, where there are several; "beside", the
multiverse: other readings, benchmarks and metrics. Only the primary cell gives the verdict. It is contradicted only if
every reading that the paper allows contradicts it; a reading that holds after Holm's correction over the readings is
named as the cause of a verdict that is undecided.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from metabo.papers.engine.claims import checks, gates
from metabo.papers.engine.claims.evidence import SYNTHETIC, Evidence, NoTable, gather
from metabo.papers.engine.claims.gates import Gate
from metabo.papers.engine.claims.settling import ClaimCell, Judged, Place, settled
from metabo.papers.engine.claims.sheet import OWN_TABLE, Claim, ClaimTest, benchmarks_of, cells, readings
from metabo.papers.engine.claims.verdicts import BESIDE, CLAIM, NOT_MADE, PART, Finding, untestable
from metabo.plan import registry
from metabo.plan.artefact import Artefact
from metabo.plan.entries import CatalogueEntry

COLUMNS = (
    "claim", "paper", "headline", "kind", "section", "statement", "paper_value", "role", "benchmark", "rung",
    "artefact", "reading", "metrics", "verdict", "cause", "value", "low", "high", "suite_low", "suite_high",
    "new_low", "new_high", "unit", "clusters", "power", "needed", "effect", "said",
)  # fmt: skip
ESTIMANDS = {"direct": "suite", "conceptual": "new"}
"""What the interval of a verdict is about: a direct test asks what the paper reports, its own tasks; a test on other
tables asks whether the claim carries over to a new one."""
METRICS: Mapping[str, object] = {"area": "area", "last": 100, "regret at 10": 10}
"""Moments that stand beside each other where a claim names none."""
RUNGS = {"laptop": "default", "published": "published", "paper": "published"}
"""Rungs of the ladder by scale; any other scale is its own."""


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
    resting: dict[tuple[Place, Gate], list[str]] = {}
    for place, artefact in artefacts.items():
        if place[1] and (registry.benchmark(place[1]).control or artefact.online):
            evidence, files = gather(artefact, root)
            resting |= {(place, gate): [] for gate in gates.of(artefact.entry.paper, evidence)}
            read[_label(place)] = _paths(files)
    everywhere = [key for key in resting if key[1].everywhere]
    # those that show the same runs follow each other, so that these are read once
    for place in sorted(wanted, key=lambda place: (place[1], str(artefacts[place].files.get("trajectories")))):
        evidence, files = gather(artefacts[place], root)
        paper = artefacts[place].entry.paper
        here = [(place, gate) for gate in gates.of(paper, evidence)]
        counting = dict.fromkeys([*here, *everywhere])
        resting = {key: [] for key in here} | resting
        runs = _runs(evidence)
        read[_label(place)] = _paths(files)
        for number, cell in enumerate(wanted_cells):
            if cell.place != place:
                continue
            printed = cell.reading == OWN_TABLE  # the paper's numbers, of which our gates say nothing
            own = [key for key in counting if not printed and gates.rests(key[1], paper, cell.test, runs, evidence)]
            failed = [gate for _, gate in own if not gate.passed]
            apart = [gate for gate in failed if gates.apart(gate, cell.test)]
            about = evidence.about(ESTIMANDS.get(kinds[cell.claim], "new"), gates.failing(apart, runs))
            found[number] = _judged(paper, cell, about, failed, whole=len(failed) > len(apart))
            for key in own:
                resting[key] += [cell.claim] if cell.claim not in resting[key] else []
    controls = [
        _control(artefacts[place].entry.paper, place, gate, claims) for (place, gate), claims in resting.items()
    ]
    told = [found.get(number) or Judged(cell, _absent(cell)) for number, cell in enumerate(wanted_cells)]
    rung = RUNGS.get(root.name, root.name)
    rows = [row for claim in claims for row in _rows(claim, [one for one in told if one.cell.claim == claim.id], rung)]
    return pd.DataFrame(rows, columns=list(COLUMNS)), pd.DataFrame(controls, columns=list(gates.COLUMNS)), read


def _runs(evidence: Evidence) -> list[str]:
    """Return the runs that an artefact shows, of BO on tables or of online tuning."""
    tables = [evidence.trajectories] if evidence.has("trajectories") else []
    tables += [evidence.online] if evidence.has("online") else []
    return list(dict.fromkeys(run for table in tables for run in table["method"]))


def _label(place: Place) -> str:
    return "/".join(filter(None, place))


def _paths(files: Mapping[str, Sequence[Path]]) -> list[str]:
    return [str(path) for paths in files.values() for path in paths]


def _judged(paper: str, cell: ClaimCell, evidence: Evidence, failed: Sequence[Gate], whole: bool) -> Judged:
    """Judge a cell. `whole`: some failed gate takes the whole test, not single comparisons of it alone."""
    if whole:
        return Judged(cell, untestable("; ".join(gate.failure for gate in failed)), tuple(failed))
    try:
        finding = checks.run(paper, cell.test.check, evidence, cell.test.arguments)
    except NoTable as error:
        finding = untestable(str(error))
    return Judged(cell, finding, tuple(failed))


def _control(paper: str, place: Place, gate: Gate, claims: Sequence[str]) -> dict[str, object]:
    return {
        "paper": paper, "gate": gate.name, "artefact": place[0], "benchmark": place[1] or SYNTHETIC,
        "subjects": " ".join(gate.subjects), "verdict": gates.PASSES if gate.passed else gates.FAILS,
        "value": gate.value, "bound": gate.bound, "said": gate.said, "claims": " ".join(claims),
    }  # fmt: skip


def _absent(cell: ClaimCell) -> Finding:
    where = "" if cell.benchmark == SYNTHETIC else f" on {cell.benchmark}"
    reason = f"{cell.test.artefact}{where} {NOT_MADE} (config section run)"
    return untestable(reason)


def cells_of(claim: Claim, artefacts: Iterable[Place], entries: Mapping[str, CatalogueEntry]) -> list[ClaimCell]:
    """Return the cells of a claim: parts on the primary benchmarks first, then what stands beside them.

    A part that this run cannot make has a cell without a place. So has another reading of a part that it makes, since a
    claim is contradicted only by every reading; what else stands beside is listed only where it was made.
    """
    if claim.primary is None:
        return []
    made, primary = set(artefacts), claim.primary
    own = cells(claim, entries)
    parts, beside = [], []
    for test, benchmark in own:
        place = _place(test, benchmark)
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
    judged = dict.fromkeys(cell.benchmark for cell in parts if cell.place)
    return [*parts, *beside, *_unread(claim, judged, made, entries)]


def _unread(
    claim: Claim, judged: Iterable[str], made: Iterable[Place], entries: Mapping[str, CatalogueEntry]
) -> list[ClaimCell]:
    """Return a cell without a place for each reading that this run lacks on a benchmark on which a part is judged."""
    return [
        ClaimCell(claim.id, test, benchmark, BESIDE, test.beside, None)
        for test in readings(claim)
        for benchmark in judged
        if benchmark in benchmarks_of(test, entries) and _place(test, benchmark) not in made
    ]


def _place(test: ClaimTest, benchmark: str) -> Place:
    return test.artefact, "" if benchmark == SYNTHETIC else benchmark


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
        return [_row(claim, CLAIM, "", rung, "", "", untestable(claim.untestable), "beyond")]
    parts = [one for one in told if one.cell.role == PART]
    beside = [one for one in told if one.cell.role == BESIDE]
    finding, cause = settled(claim, parts, beside, rung)
    assert claim.primary is not None
    on, artefacts = ([name(part.cell) for part in parts] for name in (lambda c: c.benchmark, lambda c: c.test.artefact))
    names = [" ".join(dict.fromkeys(several)) for several in (on, artefacts)]
    rows = [_row(claim, CLAIM, names[0], rung, names[1], claim.primary.reading, finding, cause)]
    for one in [*(parts if len(parts) > 1 else []), *beside]:
        cell = one.cell
        # what the paper prints was run on no benchmark of ours, at no rung
        where = ("", "") if cell.reading == OWN_TABLE else (cell.benchmark, rung)
        rows.append(_row(claim, cell.role, *where, cell.test.artefact, cell.reading, one.finding, ""))
    return rows


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
        "power": finding.power, "needed": finding.needed, "effect": finding.effect, "said": finding.said,
    }  # fmt: skip


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim: its verdict."""
    return table[table["role"] == CLAIM].reset_index(drop=True)
