"""Verdicts of a scale that is judged in pieces: those on artefacts that the newest run lacks are kept beside its own.

A judging leaves a table of verdicts, a table of gates and a record. Those of the newest run lie in `claims`, as its
jobs name them. Those of a run before it move to `claims/earlier/{number}` as they are, so that every verdict keeps the
record of the job that made it. A claim's verdict is that of the newest judging in which it waited for no artefact.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence.manifest import BACK, EARLIER, below, placed
from metabo.papers.engine.claims.judge import BESIDE
from metabo.papers.engine.claims.verdicts import NOT_MADE, UNTESTABLE
from metabo.records import inventory
from metabo.records.files import digest
from metabo.records.inventory import StoredSidecar

TABLES = "claims/*.csv"
GATES = "-gates"
"""The end of the name of a table of gates, which lies next to the claims."""
SHOWN = 3


class Pieces(NamedTuple):
    """What becomes of recorded verdicts when others are added, as paths below the folder. `moved`: where files go,
    because the new run lacks some of their claims; `gone`: files of earlier judgings that nothing is read from any
    more; `claims`: the claims whose verdicts stay those of an earlier judging."""

    moved: dict[str, str]
    gone: list[str]
    claims: list[str]


def is_verdicts(path: Path) -> bool:
    """Tell whether a file of recorded results is a table of verdicts of the newest judging."""
    return path.match(TABLES) and not path.stem.endswith(GATES)


def tables(folder: Path) -> list[Path]:
    """Return the tables of verdicts of one scale: of each paper the newest judging first, then the ones before."""
    newest = [path for path in sorted(folder.glob(TABLES)) if is_verdicts(path)]
    before = [path for path in _pieces(folder) if not path.stem.endswith(GATES)]
    return newest + sorted(before, key=_number, reverse=True)


def planned(files: Mapping[str, Path], folder: Path) -> Pieces:
    """Return what becomes of the verdicts in `folder` when `files`, by their path below it, are added.

    Raises DataError if a verdict that must stay was judged on results that these files replace by others.
    """
    moved: list[str] = []
    gone: list[str] = []
    stay: set[str] = set()
    for name, source in files.items():
        if not is_verdicts(Path(name)):
            continue
        listed, judged = _claims(source)
        for table in (path for path in tables(folder) if path.name == Path(name).name):
            newest = table == folder / name
            if needed := (_claims(table)[1] & listed) - judged:
                record = _record(folder, table)
                _refuse_replaced(record, files, source, needed)
                moved += _made(record, folder) if newest else []
                stay |= needed
                judged |= needed
            elif not newest:
                gone += _made(_record(folder, table), folder)
    number = 1 + max(map(_number, _pieces(folder)), default=0)
    return Pieces({old: f"{EARLIER}/{number}/{Path(old).name}" for old in moved}, gone, sorted(stay))


def _pieces(folder: Path) -> list[Path]:
    return [path for path in (folder / EARLIER).glob("*/*.csv") if path.parent.name.isdigit()]


def _number(table: Path) -> int:
    return int(table.parent.name)


def _made(record: StoredSidecar, folder: Path) -> list[str]:
    """Return the files of a judging, its record included."""
    own = record.path.relative_to(folder.absolute()).as_posix()
    return [own, *(placed(record, folder, name) for name in (*record.outputs, *record.logs))]


def _record(folder: Path, table: Path) -> StoredSidecar:
    path = table.with_suffix(".json").absolute()
    for one in inventory.take(path.parent).records:
        if one.path == path:
            return one._replace(base=folder.absolute())
    raise DataError(f"{table.with_suffix('.json')}: not the record of a job; {BACK}")


def _claims(table: Path) -> tuple[set[str], set[str]]:
    """Return the claims of a table of verdicts, and those among them that a run judged, with all their parts."""
    with table.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row.get("role") != BESIDE]
    waiting = {row["claim"] for row in rows if row["verdict"] == UNTESTABLE and NOT_MADE in row.get("said", "")}
    listed = {row["claim"] for row in rows}
    return listed, listed - waiting


def _refuse_replaced(record: StoredSidecar, files: Mapping[str, Path], source: Path, claims: set[str]) -> None:
    for name, expected in record.inputs.items():
        if (new := files.get(below(record, name))) is not None and digest(new) != expected:
            more = f" and {len(claims) - SHOWN} more" if len(claims) > SHOWN else ""
            raise DataError(
                f"{source}: has no verdicts on {', '.join(sorted(claims)[:SHOWN])}{more}, which {record.path.name} "
                f"has, judged on another {name} than this run's; bring the recorded results back "
                "(metabo evidence restore) and judge all artefacts in one run, or, if these claims are no more, delete "
                "the recorded verdicts"
            )
