"""The ladder of a claim: its verdict in this run and in recorded ones, and on other benchmarks, in words and as a
picture."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence import earlier
from metabo.evidence.recorded import RecordedEvidence, RecordedVerdicts
from metabo.papers.engine.claims.settling import THEORY
from metabo.papers.engine.claims.sheet import OWN_TABLE, Claim, benchmarks_of, readings
from metabo.papers.engine.claims.verdicts import CONTRADICTED, UNDECIDED, waits
from metabo.plan.entries import CatalogueEntry
from metabo.report import scorecard
from metabo.report.scorecard import VERDICTS, ClaimRow, JudgedClaim, ours

ORDER = ("smoke", "default", "published")
"""Rungs from the bottom; others follow."""
TURNED = ("few", "power", "small", "open", "unresolved")
"""Causes of a verdict that give way to "size" where another rung holds."""
REMEDY = "add the results again (metabo evidence add)"


class Rung(NamedTuple):
    """A step of a claim's ladder: one cell, how often its tests got which verdict, and our number if it is one test.

    `reading` is "" for the primary cell; `source`: the folder of recorded results, "" for this run.
    """

    rung: str
    benchmark: str
    reading: str
    verdicts: tuple[tuple[str, int], ...]
    number: str
    source: str = ""


class JoinedClaims(NamedTuple):
    """The claims of a run with their recorded verdicts, the folders that these are from, and one line on each folder,
    or on claims in it, that are not shown."""

    claims: list[JudgedClaim]
    folders: list[RecordedVerdicts]
    refused: list[str]


Sheets = Mapping[tuple[str, str], Claim]
"""The claims of the papers as they are now, by paper and name."""


def joined(
    claims: Sequence[JudgedClaim],
    evidence: RecordedEvidence,
    sheets: Sheets = MappingProxyType({}),
    catalogue: Mapping[str, CatalogueEntry] = MappingProxyType({}),
) -> JoinedClaims:
    """Put recorded verdicts beside those of a run. A claim is the same if paper, name and statement are. Those in
    `sheets` are judged by the readings that they have now (`as_read_now`)."""
    known = {_key(claim): claim for claim in claims}
    shown: dict[tuple[str, str], list[tuple[str, JudgedClaim]]] = {}
    folders, refused = [], list(evidence.refused)
    for one in evidence.folders:
        try:
            same = _same(one, known, refused)
        except DataError as error:
            refused.append(str(error))
            continue
        folders += [one] if same else []
        for claim in same:
            now = as_read_now(claim, sheets.get(_key(claim)), catalogue)
            shown.setdefault(_key(claim), []).append((one.folder.as_posix(), now))
    beside = [turned(replace(claim, recorded=tuple(shown.get(_key(claim), ())))) for claim in claims]
    return JoinedClaims(beside, folders, refused)


def _same(
    found: RecordedVerdicts, known: Mapping[tuple[str, str], JudgedClaim], refused: list[str]
) -> list[JudgedClaim]:
    """Return the recorded claims that are those of the run; add a line on others of the same name, and if none is."""
    recorded = [one for _, one in read(found.tables, refused)]
    named = [one for one in recorded if _key(one) in known]
    same = [one for one in named if one.whole.statement == known[_key(one)].whole.statement]
    if other := [one.whole.claim for one in named if one not in same]:
        what = "says something else than the claim" if len(other) == 1 else "say something else than the claims"
        refused.append(f"{found.folder}: {', '.join(other)} {what} of this version; {REMEDY}")
    elif recorded and not named:
        refused.append(f"{found.folder}: none of its {len(recorded)} claims is one of this run")
    return same


def read(tables: Mapping[str, Sequence[Path]], refused: list[str]) -> list[tuple[Path, JudgedClaim]]:
    """Return the claims that were judged, and the table that each is read from. `tables`: of each paper, the newest
    first, since a scale may be judged in pieces (`metabo.evidence.earlier`). Raises DataError for a table of the newest
    judging that cannot be read; an earlier one is left out, with a line on it in `refused`."""
    found = []
    for newest, *before in tables.values():
        told = {newest: scorecard.claims(scorecard.read([newest], REMEDY))}
        for table in before:
            try:
                told[table] = scorecard.claims(scorecard.read([table], "judge its claims again"))
            except DataError as error:
                refused.append(str(error))
        chosen = earlier.read_from(told)
        found += [(table, one) for table, claims in told.items() for one in claims if one.whole.claim in chosen[table]]
    return found


def as_read_now(claim: JudgedClaim, sheet: Claim | None, catalogue: Mapping[str, CatalogueEntry]) -> JudgedClaim:
    """Return a recorded claim as the rules judge it that its sheet has now.

    A claim that is contradicted is undecided if its sheet has got a reading since, which that judging lacks: a claim is
    contradicted only by all of them. One that theory contradicts no reading but theory's can save.
    """
    whole = claim.whole
    if sheet is None or whole.verdict != CONTRADICTED or sheet.statement != whole.statement:
        return claim
    parts = claim.parts or [whole]
    judged = {on for row in parts if not waits(row.verdict, row.said) for on in row.benchmark.split()}
    refuted = {row.artefact for row in parts if row.verdict == CONTRADICTED}
    theory = any(test.check == THEORY and test.artefact in refuted for test in sheet.tests if not test.beside)
    shown = {(row.reading, on) for row in claim.beside for on in row.benchmark.split()}
    lost = [
        test.beside
        for test in readings(sheet)
        if (not theory or test.check == THEORY)
        and any((test.beside, on) not in shown for on in judged & set(benchmarks_of(test, catalogue)))
    ]
    if not lost:
        return claim
    said = f"contradicted under every reading that was recorded, {', '.join(dict.fromkeys(lost))} not among them"
    return replace(claim, whole=whole._replace(verdict=UNDECIDED, cause="untested", said=f"{said}: {whole.said}"))


def _key(claim: JudgedClaim) -> tuple[str, str]:
    return claim.whole.paper, claim.whole.claim


def turned(claim: JudgedClaim) -> JudgedClaim:
    """Return a claim with the cause "size" if it does not hold here for no other reason, and holds at another rung."""
    holds = any(one.whole.verdict == "holds" and one.whole.rung != claim.whole.rung for _, one in claim.recorded)
    return replace(claim, whole=claim.whole._replace(cause="size")) if holds and claim.whole.cause in TURNED else claim


def ladder(claim: JudgedClaim) -> list[Rung]:
    """Return the primary cell of a claim in this run and in recorded ones, then the other benchmarks and readings in
    the order of the tables. What belongs to no run (the paper's own table) is listed once."""
    sources = [("", claim), *claim.recorded]
    first = [_primary(one.whole, source) for source, one in sources]
    others = [step for source, one in sources for step in _others(one, source)]
    return first + list(dict.fromkeys(step if step.rung else step._replace(source="") for step in others))


def _primary(whole: ClaimRow, source: str) -> Rung:
    return Rung(whole.rung, whole.benchmark, "", ((whole.verdict, 1),), ours(whole), source)


def _others(claim: JudgedClaim, source: str) -> list[Rung]:
    whole = claim.whole
    cells: dict[tuple[str, str, str], list[ClaimRow]] = {}
    for row in claim.beside:
        place = ("", "") if row.reading == OWN_TABLE else (row.rung, row.benchmark)  # as in tables recorded before
        cells.setdefault((*place, row.reading if row.reading != whole.reading else ""), []).append(row)
    return [
        Rung(*cell, _counted(rows), ours(rows[0]) if len(rows) == 1 else "", source) for cell, rows in cells.items()
    ]


def _counted(rows: Iterable[ClaimRow]) -> tuple[tuple[str, int], ...]:
    found = Counter(row.verdict for row in rows)
    return tuple((verdict, found[verdict]) for verdict in VERDICTS if found[verdict])


class Track(NamedTuple):
    """A line of the picture: a benchmark (those of the primary cell: `decides`), and its verdicts by rung."""

    benchmark: str
    decides: bool
    marks: Mapping[str, tuple[str, ...]]


class LadderPicture(NamedTuple):
    """Rungs from left to right, and a track for each benchmark on which the claim's own reading was judged."""

    rungs: Sequence[str]
    tracks: Sequence[Track]

    @property
    def said(self) -> str:
        """The picture in words."""
        return "; ".join(
            f"{track.benchmark}{' (decides)' if track.decides else ''}: "
            + ", ".join(f"{rung} {' and '.join(track.marks[rung])}" for rung in self.rungs if rung in track.marks)
            for track in self.tracks
        )


def picture(claim: JudgedClaim) -> LadderPicture | None:
    """Return the picture of a claim's ladder; None if there is one cell alone. Two sources of one rung share a place:
    a verdict that both have is drawn once."""
    marks: dict[tuple[str, bool], dict[str, dict[str, None]]] = {}
    steps = [step for step in ladder(claim) if not step.reading]
    primary = claim.whole.benchmark
    for step in steps:
        own = marks.setdefault((step.benchmark or "no benchmark", step.benchmark == primary), {})
        own.setdefault(step.rung, {}).update(dict.fromkeys(verdict for verdict, _ in step.verdicts))
    if len({(step.benchmark, step.rung, step.source) for step in steps}) < 2:
        return None
    rungs = sorted({step.rung for step in steps}, key=lambda rung: (*ORDER, rung).index(rung))
    tracks = [Track(*key, {rung: tuple(found) for rung, found in own.items()}) for key, own in marks.items()]
    return LadderPicture(rungs, sorted(tracks, key=lambda track: not track.decides))
