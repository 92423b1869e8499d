"""Recorded verdicts and runs in words: each claim as the report takes it, with the table that it is read from."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError, nearest
from metabo.evidence import recorded
from metabo.papers.engine.claims import sheet
from metabo.plan import catalogue
from metabo.report import rungs
from metabo.report.scorecard import VERDICTS, JudgedClaim, ours

ROOT, HERE = Path("evidence"), Path()
"""Where recorded results lie, below the folder with the Snakefile, and that folder."""
HEADLINE = "*"
PLURAL = {"holds": "hold"}


class RecordedClaim(NamedTuple):
    """A claim as it is read now, the scale that it was judged at, and the table that has its row."""

    scale: str
    table: Path
    claim: JudgedClaim


class RecordedClaims(NamedTuple):
    """The recorded claims by scale and paper, in the order of the sheets, and a line on each that is not read: its
    table is damaged, or its sentence is not that of its sheet any more."""

    held: list[RecordedClaim]
    refused: list[str]


def claims(root: Path = ROOT, papers: Collection[str] = (), project: Path = HERE) -> RecordedClaims:
    """Read the recorded claims of the given papers (none: of all), as the report takes them. `project`: the folder with
    the Snakefile.

    Raises DataError for recorded results that are not as they were added.
    """
    found, entries = recorded.verdicts(root), catalogue.load(project)
    if found.refused:
        raise DataError(*found.refused)
    made = RecordedClaims([], [])
    for one in found.folders:
        for paper, tables in one.tables.items():
            if papers and paper not in papers:
                continue
            judged = {claim.whole.claim: (table, claim) for table, claim in rungs.read({paper: tables}, made.refused)}
            for own in sheet.load(paper):
                table, claim = judged.get(own.id, (None, None))
                if table is None or claim is None:
                    continue
                if claim.whole.statement != own.statement:
                    made.refused.append(f"{table}: {own.id} says something else than the claim of this version")
                    continue
                made.held.append(RecordedClaim(one.folder.name, table, rungs.as_read_now(claim, own, entries)))
    return made


def lines(root: Path, papers: Collection[str] = ()) -> list[str]:
    """Return a line for each recorded claim of the given papers (none: of all): headlines with a star, the verdict with
    its cause, our number, and the table with the row; above each paper the counts, and last what is not read. Raises
    DataError for an unknown paper."""
    for paper in papers:
        if paper not in sheet.papers():
            known = ", ".join(sheet.papers())
            raise DataError(f"'{paper}' is no paper.{nearest(paper, sheet.papers())} Papers: {known}")
    out, found = [], claims(root, papers)
    for scale, name in dict.fromkeys((one.scale, one.claim.whole.paper) for one in found.held):
        own = [one for one in found.held if (one.scale, one.claim.whole.paper) == (scale, name)]
        counts = Counter(one.claim.whole.verdict for one in own)
        counted = ", ".join(f"{counts[verdict]} {PLURAL.get(verdict, verdict)}" for verdict in VERDICTS)
        out.append(f"{name} at scale {scale}: {len(own)} of {len(sheet.load(name))} claims are judged: {counted}")
        out += [f"  {line}" for line in _columns([_row(one) for one in own])]
    out += [f"not read: {why}" for why in found.refused]
    return out or [f"{root}: has no verdicts; `metabo evidence list --to {root}` shows what is kept"]


def of_claim(paper: str, name: str, root: Path = ROOT) -> list[str]:
    """Return what is recorded of a claim, a text for each scale; the line that says why it cannot be read, if so."""
    try:
        found = claims(root, [paper])
    except DataError as error:
        return [str(error)]
    held = [one for one in found.held if one.claim.whole.claim == name]
    said = [f"{one.scale}: {_verdict(one.claim)}{_number(one.claim)} ({one.table})" for one in held]
    return said + [f"not read: {why}" for why in found.refused]


def of_run(record: str, result: str, root: Path = ROOT) -> list[str]:
    """Return where a run is recorded: its table, or its record where the table is not kept; nothing if it is not.
    `record` and `result`: the planned paths, results/{scale}/..."""
    place = [root.joinpath(*Path(name).parts[1:]) for name in (result, record)]
    if place[0].is_file():
        return [place[0].as_posix()]
    return [f"{place[1]} (its table is not kept; the record has the checksum)"] if place[1].is_file() else []


def _row(one: RecordedClaim) -> tuple[str, ...]:
    whole = one.claim.whole
    mark = HEADLINE if one.claim.headline else ""
    return f"{whole.claim}{mark}", _verdict(one.claim), ours(whole) or "-", whole.benchmark or "-", str(one.table)


def _verdict(claim: JudgedClaim) -> str:
    return claim.whole.verdict + (f" ({claim.whole.cause})" if claim.whole.cause else "")


def _number(claim: JudgedClaim) -> str:
    return f", {ours(claim.whole)}" if ours(claim.whole) else ""


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
