"""Verdicts of a scale that is judged in pieces: those on artefacts that the newest run lacks are kept beside its own.

A judging leaves a table of verdicts, a table of gates and a record. Those of the newest run lie in `claims`, as its
jobs name them. Those of a run before it move to `claims/earlier/{paper}-{number}` as they are, so that every verdict
keeps the record of the job that made it. What that job read and a newer run replaces, for claims that are judged anew,
moves along, to `read` in that folder.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.evidence.manifest import EARLIER, READ, ListedFile, Manifest, below, placed
from metabo.papers.engine.claims.evidence import SYNTHETIC
from metabo.papers.engine.claims.verdicts import BESIDE, CONTRADICTED, HOLDS, UNTESTABLE, waits
from metabo.plan import registry
from metabo.plan.artefact import Artefact
from metabo.plan.entries import CatalogueEntry
from metabo.records import inventory
from metabo.records.files import digest
from metabo.records.inventory import StoredSidecar

TABLES = "claims/*.csv"
GATES = "-gates"
"""The end of the name of a table of gates, which lies next to the claims."""
SHOWN = 3
BACK = "get it back from version control (git checkout)"

Readers = Mapping[str, Set[str]]
Part = tuple[str, str, int]
"""The artefacts of a part of a claim and its benchmarks, as its row has them, and which of the claim's tests on them it
is."""


class Pieces(NamedTuple):
    """What becomes of recorded verdicts when others are added, as paths below the folder. `moved`: by the new path, the
    old one of files of a judging some of whose claims the new run lacks; `gone`: files of earlier judgings that are no
    longer needed; `claims`: the claims whose verdicts stay those of an earlier judging."""

    moved: dict[str, str]
    gone: list[str]
    claims: list[str]


def is_verdicts(path: Path) -> bool:
    """Tell whether a file of recorded results is a table of verdicts of the newest judging."""
    return path.match(TABLES) and not path.stem.endswith(GATES)


def tables(folder: Path) -> dict[str, list[Path]]:
    """Return the tables of verdicts of one scale by paper, the newest first."""
    found = {path.stem: [path] for path in sorted(folder.glob(TABLES)) if is_verdicts(path)}
    before = [path for path in (folder / EARLIER).glob("*/*.csv") if not path.stem.endswith(GATES)]
    for path in sorted(before, key=lambda path: _number(path.parent.name), reverse=True):
        found.setdefault(path.stem, []).append(path)
    return found


class _Judged(NamedTuple):
    """A claim in one table: the share of its tests that waited for no artefact (0 if the verdict waits itself), and
    whether the verdict is decided, and is `contradicted`; of its parts all, those that did not wait, and those that a
    failed gate made untestable."""

    share: float
    decided: bool
    parts: Set[Part]
    made: Set[Part]
    gated: Set[Part]
    contradicted: bool


_WAITS = _Judged(0.0, False, frozenset(), frozenset(), frozenset(), False)


def read_from(tables: Iterable[Path]) -> dict[Path, set[str]]:
    """Return, of the tables of one paper, the newest first, the claims whose verdicts are read from each.

    A claim's verdict is that of the judging that had most of its artefacts, the newest of these. If that one decides
    nothing, and a part that neither it nor a newer one has judged fails a gate in another one, the claim is read from
    there: a failed gate leaves it untestable, unless the whole is contradicted. Claims that the newest table does not
    list are no more, and a claim that waits for its artefacts in all tables is read from none.
    """
    judged = {table: _judged(table) for table in tables}
    found: dict[Path, set[str]] = {table: set() for table in judged}
    for claim in next(iter(judged.values()), {}):
        told = {table: of.get(claim, _WAITS) for table, of in judged.items()}
        best = max(told, key=lambda table: told[table].share)  # the first of equals
        if told[best].share > 0:
            found[_gated(told, best) or best].add(claim)
    return found


def _gated(told: Mapping[Path, _Judged], best: Path) -> Path | None:
    """Return the table with a failed gate that leaves an undecided claim untestable; None if the whole is contradicted
    by a part that no newer table has judged."""
    if told[best].decided:
        return None
    judged, listed, found = set[Part](), next(iter(told.values())).parts, None
    for table, one in told.items():
        if one.contradicted and (one.made & listed) - judged:
            return None
        if found is None and (one.gated & listed) - told[best].made - judged:
            found = table
        judged |= one.made
    return found


def _judged(table: Path) -> dict[str, _Judged]:
    with table.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row.get("role") != BESIDE]
    tests: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:  # a claim's first row is its verdict
        tests[row["claim"]].append(row)
    return {claim: _of_claim(*every) for claim, every in tests.items()}


def _of_claim(whole: dict[str, str], *parts: dict[str, str]) -> _Judged:
    waiting = [waits(one["verdict"], one.get("said", "")) for one in (whole, *parts)]
    lacks, gate = whole["verdict"] == UNTESTABLE, whole.get("cause") == "gate"
    rows = list(zip(parts, waiting[1:], strict=True)) or [(whole, waiting[0])]  # the verdict is that of the only part
    seen: Counter[tuple[str, str]] = Counter()
    listed, made, failed = set[Part](), set[Part](), set[Part]()
    for row, lost in rows:
        place = row.get("artefact", ""), row.get("benchmark", "")
        part = (*place, seen[place])
        seen[place] += 1
        listed.add(part)
        if not lost:
            made.add(part)
            if lacks and gate and row["verdict"] == UNTESTABLE and _says(whole, row):
                failed.add(part)
    contradicted = whole["verdict"] == CONTRADICTED
    share = 0.0 if lacks and not gate and any(waiting) else 1 - sum(waiting) / len(waiting)
    return _Judged(share, whole["verdict"] in (HOLDS, CONTRADICTED), listed, made, failed, contradicted)


def _says(whole: dict[str, str], part: dict[str, str]) -> bool:
    """Tell whether a verdict gives the first reason of one of its parts."""
    return part.get("said", "").split("; gate ")[0] in whole.get("said", "")


def readers(catalogue: Mapping[str, CatalogueEntry]) -> Readers:
    """Return, by path below the results folder, on which benchmarks artefacts read a file; SYNTHETIC for none."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for id, entry in catalogue.items():
        for benchmark in entry.benchmarks or ("",):
            artefact = Artefact(id, id, benchmark, entry)
            for path in chain.from_iterable(artefact.files.values()):
                found[path].add(benchmark or SYNTHETIC)
    return found


def planned(
    files: Mapping[str, Path], made: Mapping[str, str], folder: Path, before: Manifest | None, readers: Readers
) -> Pieces:
    """Return what becomes of the verdicts in `folder` when `files`, by their path below it, are added. `made`: the
    checksums of all that the run made, kept or not; `before`: the manifest; `readers`: who reads what (`readers`).

    Raises DataError if a verdict that must stay is not as it was added, or was judged on results that the run replaces.
    """
    moved: dict[str, str] = {}
    gone: list[str] = []
    stay: set[str] = set()
    known = tables(folder)
    for name, source in files.items():
        if not is_verdicts(Path(name)):
            continue
        paper = Path(name).stem
        places = _places(folder, before, paper)
        for table, claims in list(read_from([source, *known.get(paper, ())]).items())[1:]:
            if not claims:
                continue
            record = _record(table, folder)
            _refuse_changed(record, folder, before)
            replaced = _replaced(record, made, source, claims, readers)
            stay |= claims
            if table == folder / name:
                place = f"{EARLIER}/{paper}-{1 + max(map(_number, places), default=0)}"
                moved |= {f"{place}/{Path(old).name}": old for old in _made(record, folder)}
            else:
                place = f"{EARLIER}/{table.parent.name}"
                places.pop(table.parent.name)
            moved |= _along(replaced, f"{place}/{READ}", files, folder, before)
        gone += [old for files_there in places.values() for old in files_there]
    _refuse_others(files, made, folder)
    return Pieces(moved, gone, sorted(stay))


def _number(place: str) -> int:
    number = place.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _places(folder: Path, before: Manifest | None, paper: str) -> dict[str, list[str]]:
    """Return, by its name, the files of each earlier judging of a paper: those that are there, and those listed."""
    there = {path.relative_to(folder).as_posix() for path in (folder / EARLIER).rglob("*") if path.is_file()}
    listed = {name for name in (before["files"] if before else ()) if name.startswith(f"{EARLIER}/")}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(there | listed):
        place = name.removeprefix(f"{EARLIER}/").partition("/")[0]
        if place.rpartition("-")[0] == paper:
            found[place].append(name)
    return dict(found)


def _made(record: StoredSidecar, folder: Path) -> list[str]:
    """Return the files of a judging, its record included."""
    own = record.path.relative_to(folder.absolute()).as_posix()
    return [own, *(placed(record, folder, name) for name in (*record.outputs, *record.logs))]


def _record(table: Path, folder: Path) -> StoredSidecar:
    path = table.with_suffix(".json").absolute()
    for one in inventory.take(path.parent).records:
        if one.path == path:
            return one._replace(base=folder.absolute())
    raise DataError(f"{table.with_suffix('.json')}: not the record of a job, and its verdicts are needed; {BACK}")


def _refuse_changed(record: StoredSidecar, folder: Path, before: Manifest | None) -> None:
    for name in _made(record, folder):
        path = folder / name
        if not before or not path.is_file() or not _is(before["files"].get(name), digest(path)):
            raise DataError(f"{path}: not as it was added, and holds verdicts that this run lacks; {BACK}")


def _along(
    replaced: Mapping[str, str], place: str, files: Mapping[str, Path], folder: Path, before: Manifest | None
) -> dict[str, str]:
    """Return where files go that a judging read and a run replaces, by the new path.

    Raises DataError for one that is not as it was added, or that is not there while the run's own would be kept.
    """
    kept = before["files"] if before else {}
    found = {}
    for old, sha in replaced.items():
        beside = folder / place / old
        if beside.is_file() and digest(beside) == sha:
            continue
        if _is(kept.get(old), sha):
            if not (folder / old).is_file() or digest(folder / old) != sha:
                raise DataError(
                    f"{folder / old}: not as it was added, and verdicts that stay were judged on it; {BACK}"
                )
            found[f"{place}/{old}"] = old
        elif old in files or beside.is_file():
            raise DataError(
                f"{folder / old}: verdicts that stay were judged on another one, which is not kept; judge all "
                "artefacts in one run"
            )
    return found


def _refuse_others(files: Mapping[str, Path], made: Mapping[str, str], folder: Path) -> None:
    """Refuse a run that replaces what verdicts on a paper rest on that it does not judge."""
    for paper, tables_there in tables(folder).items():
        if f"claims/{paper}.csv" not in files:
            for table, claims in read_from(tables_there).items():
                if claims:
                    _replaced(_record(table, folder), made, Path(f"claims/{paper}.csv"), claims, {})


def _is(listed: ListedFile | None, sha: str) -> bool:
    return listed is not None and listed["sha256"] == sha


def _replaced(
    record: StoredSidecar, made: Mapping[str, str], source: Path, claims: set[str], readers: Readers
) -> dict[str, str]:
    """Return what a judging read and a run replaces, by path below the folder, with the checksum that it had.

    Raises DataError if the verdicts on `claims`, which stay, may rest on it: a file that only artefacts on other
    benchmarks read was read for other claims.
    """
    found = {}
    for name, expected in record.inputs.items():
        place = below(record, name)
        if made.get(place, expected) == expected:
            continue
        if place not in readers or readers[place] & _benchmarks(record.path.with_suffix(".csv"), claims):
            more = f" and {len(claims) - SHOWN} more" if len(claims) > SHOWN else ""
            raise DataError(
                f"{source}: has no verdicts on {', '.join(sorted(claims)[:SHOWN])}{more}, which {record.path.name} "
                f"has; that judging read another {name} than this run has; bring the recorded results back "
                "(metabo evidence restore) and judge all artefacts in one run"
            )
        found[place] = expected
    return found


def _benchmarks(table: Path, claims: set[str]) -> set[str]:
    """Return the benchmarks on which claims were tested, with or without a bearing on the verdict, and those with the
    controls of methods; SYNTHETIC for none."""
    with table.open(newline="") as stream:
        tested = {on for row in csv.DictReader(stream) if row["claim"] in claims for on in row["benchmark"].split()}
    return tested | {name for name in registry.benchmarks() if registry.benchmark(name).control}
