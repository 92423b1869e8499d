"""Compare finished results with the records next to them, as `metabo verify` does.

Each file below a folder of results either is a record, or is listed by a record as made or logged by its job, or has no
record. Every file is read once, however many records list it, and nothing is written.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from metabo.errors import DataError
from metabo.records import checksums, inventory
from metabo.records.checksums import LogStart
from metabo.records.files import Json, digest, is_scratch
from metabo.records.flaws import BARE, DAMAGED, MISSING, SERIOUS, STALE, Flaw, again, anew
from metabo.records.inventory import Inventory, StoredSidecar

REMAKE = "run the same command, which makes it again"
LOOK = "check that it is a file, its permissions and the disk"
ASIDE = {
    "logs": "logs of jobs that ended before records listed logs, or that failed",
    "benchmarks": "times that Snakemake writes after a job, when its record is finished",
}
"""Folders of a run whose files may lack a record, with the reason."""
MADE = frozenset({".npz", ".parquet", ".csv", ".ipynb", ".png", ".pdf", ".html"})
"""Suffixes of files that jobs make. Such a file without a record cannot be compared, because its record must have been
lost."""
SHOWN = 3
"""The most names in one line."""


class Verified(NamedTuple):
    """What was found below a folder: the number of `files` that were compared with a checksum, of `records` among them,
    of `unsealed` records (written before records had their own checksum), and of inputs `elsewhere`, which are not on
    this machine."""

    folder: str
    files: int
    records: int
    unsealed: int
    elsewhere: int
    flaws: list[Flaw]

    def count(self, kind: str) -> int:
        """Return the number of files with flaws of a kind."""
        return sum(flaw.files for flaw in self.flaws if flaw.kind == kind)

    @property
    def intact(self) -> bool:
        """Whether nothing is damaged and nothing is missing."""
        return not any(self.count(kind) for kind in SERIOUS)

    @property
    def lines(self) -> list[str]:
        """One line for each flaw, and a last line with the counts."""
        counted = ", ".join(f"{self.count(kind):,} {kind}" for kind in (*SERIOUS, STALE, BARE))
        notes = [f"{self.unsealed:,} records of schema 1, which have no checksum of themselves"] * bool(self.unsealed)
        notes += [f"{self.elsewhere:,} inputs outside the folder are not here to compare"] * bool(self.elsewhere)
        last = f"{self.folder}: {self.files:,} files checked, {self.records:,} of them records: {counted}"
        return [*map(str, self.flaws), "; ".join([last, *notes])]

    @property
    def json(self) -> dict[str, Json]:
        """The same for a program."""
        counts = {kind.replace(" ", "_"): self.count(kind) for kind in (*SERIOUS, STALE, BARE)}
        own = {key: value for key, value in self._asdict().items() if key != "flaws"}
        return {"intact": self.intact, **own, **counts, "flaws": [flaw._asdict() for flaw in self.flaws]}


class Content(NamedTuple):
    """A file as it is now: its checksum, or the reason why it has none."""

    sha256: str = ""
    lost: bool = False
    unreadable: str = ""


class Contents(dict[Path, Content]):
    """The files that were read so far; a new one is read on first access."""

    def __missing__(self, path: Path) -> Content:
        self[path] = _content(path)
        return self[path]


class Sight(NamedTuple):
    """Everything that a comparison needs: the folder as the user names it and as an absolute path, its inventory, the
    contents of the files, the checksums in intact records of what their jobs made, these records, and what is wrong
    with others."""

    given: Path
    root: Path
    held: Inventory
    contents: Contents
    made: dict[Path, list[str]]
    sealed: set[Path]
    broken: dict[Path, str]

    def shown(self, path: Path) -> str:
        """Return a path as a reader would type it."""
        if path.is_relative_to(self.root):
            return (self.given / path.relative_to(self.root)).as_posix()
        return (path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path).as_posix()

    def inside(self, path: Path) -> bool:
        """Tell whether a file belongs to the folder."""
        return path.is_relative_to(self.root)

    def doubtful(self, path: Path) -> bool:
        """Tell whether a file is a broken record, or its own record is broken, which counts as a flaw of the record."""
        return any(place in self.broken for place in (path, *checksums.sidecar_names(path)))

    def recorded(self, path: Path) -> list[str]:
        """Return the checksums of a file in intact records of the job that made it. Such a record may lie outside the
        folder."""
        if self.inside(path):
            return self.made.get(path, [])
        found = []
        for place in filter(Path.is_file, checksums.sidecar_names(path)):
            with suppress(DataError):
                listed = checksums.read_sidecar(place).get("outputs", {})
                found += [value for name, value in listed.items() if Path(name).name == path.name]
        return found


def verify(folder: str | Path) -> Verified:
    """Compare all results below a folder with their records. Raises DataError if it is not a folder or has no
    record."""
    root = Path(os.path.abspath(folder))
    if not root.is_dir():
        raise DataError(f"{folder}: no such folder; name one with results, e.g. results/laptop")
    sight, bare = _sight(Path(folder), root)
    held = sight.held
    if not held.records and not sight.broken:
        raise DataError(f"{folder}: has no record of a job, so nothing to compare; name results, e.g. results/laptop")
    both = "delete it and its result, and"
    flaws = [Flaw(DAMAGED, sight.shown(path), why, f"{both} {again(path)}") for path, why in sight.broken.items()]
    flaws += [
        Flaw(DAMAGED, sight.shown(path), f"cannot be listed ({why})", LOOK) for path, why in held.unlisted.items()
    ]
    for record in held.records:
        flaws += [*_outputs(sight, record), *_logs(sight, record), *_inputs(sight, record)]
    flaws += _without_record(sight, bare)
    compared = {path for path, found in sight.contents.items() if found.sha256}
    compared |= {record.located(name) for record in held.records for name in record.logs} & {*held.files}
    return Verified(
        folder=str(folder),
        files=len(compared | sight.sealed),
        records=len(held.records),
        unsealed=sum(checksums.SEAL not in record.content for record in held.records),
        elsewhere=sum(not found.sha256 and not sight.inside(path) for path, found in sight.contents.items()),
        flaws=sorted(dict.fromkeys(flaws), key=_order),
    )


def _sight(given: Path, root: Path) -> tuple[Sight, list[Path]]:
    """Take the inventory of a folder, and return it with the files that no record lists."""
    held = inventory.take(root)
    made: dict[Path, list[str]] = {}
    for record in held.records:
        for name, expected in record.outputs.items():
            made.setdefault(record.located(name), []).append(expected)
    sealed = {record.path for record in held.records}
    listed = {*made, *sealed, *held.broken}
    listed |= {record.located(name) for record in held.records for name in record.logs}
    bare = [path for path in held.files if path not in listed]
    places = {place for path in bare for place in checksums.sidecar_names(path)}
    broken = held.broken | {
        path: f"damaged: {why}"  # it lies where a record belongs, or is incomplete
        for path, why in held.texts.items()
        if path in {*bare} and (path in places or why.startswith(inventory.UNREADABLE))
    }
    return Sight(given, root, held, Contents(), made, sealed, broken), [path for path in bare if path not in broken]


def _order(flaw: Flaw) -> tuple[int, str]:
    return (*SERIOUS, STALE, BARE).index(flaw.kind), flaw.path


def _content(path: Path) -> Content:
    try:
        if not path.exists():
            return Content(lost=True)
        return Content(digest(path)) if path.is_file() else Content(unreadable="is no file")
    except OSError as error:
        return Content(unreadable=f"cannot be read ({error.strerror})")


def _outputs(sight: Sight, record: StoredSidecar) -> Iterator[Flaw]:
    for name, expected in record.outputs.items():
        path = record.located(name)
        found, shown = sight.contents[path], sight.shown(path)
        if found.lost:
            yield Flaw(MISSING, shown, _lost(path), again(path))
        elif found.unreadable:
            yield Flaw(DAMAGED, shown, found.unreadable, LOOK)
        elif found.sha256 not in sight.made[path]:
            what = (
                f"damaged or edited since it was written (sha256 {found.sha256[:12]}, its record has {expected[:12]})"
            )
            yield Flaw(DAMAGED, shown, what, anew(path))


def _lost(path: Path) -> str:
    return f"missing, a link to {os.readlink(path)}, where nothing is" if path.is_symlink() else "missing"


def _logs(sight: Sight, record: StoredSidecar) -> Iterator[Flaw]:
    """Compare the beginning of each log; lines that a job printed after its record was written do not count."""
    result = record.located(record.result)
    remedy = f"no result depends on it; to have it again, delete {sight.shown(result)} and {again(result)}"
    for name, expected in record.logs.items():
        path = record.located(name)
        try:
            intact = checksums.log_start(path, expected["bytes"]) == _plain(expected)
        except FileNotFoundError:
            yield Flaw(MISSING, sight.shown(path), "log missing", remedy)
        except OSError as error:
            yield Flaw(DAMAGED, sight.shown(path), f"cannot be read ({error.strerror})", LOOK)
        else:
            if not intact:
                yield Flaw(DAMAGED, sight.shown(path), "log damaged or edited since its job ended", remedy)


def _plain(expected: LogStart) -> LogStart:
    return {"bytes": expected["bytes"], "sha256": expected["sha256"]}


def _inputs(sight: Sight, record: StoredSidecar) -> Iterator[Flaw]:
    """Compare what a job read with what is there now. A flaw of an input that its own record already reports is not
    reported again. Such an input can only be stale, that is, it was made again since."""
    changed = []
    for name, expected in record.inputs.items():
        path = record.located(name)
        if sight.doubtful(path):
            continue
        found, own = sight.contents[path], sight.recorded(path)
        if sight.inside(path) and not own and path not in sight.sealed:
            yield _unrecorded(sight, record, path, expected)
        elif found.sha256 and own and found.sha256 not in own:
            if not sight.inside(path):
                shown = sight.shown(path)
                yield Flaw(DAMAGED, shown, "damaged or edited since it was written", anew(path))
        elif found.sha256 and found.sha256 != expected:
            changed.append(sight.shown(path))
    if changed:
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        what = f"stale, made from what has changed since: {', '.join(changed[:SHOWN])}{more}"
        yield Flaw(STALE, sight.shown(record.located(record.result)), what, REMAKE)


def _unrecorded(sight: Sight, record: StoredSidecar, path: Path, expected: str) -> Flaw:
    """Return what is wrong with a result that a job read and that has no record."""
    found, shown = sight.contents[path], sight.shown(path)
    if found.lost:
        return Flaw(MISSING, shown, _lost(path), again(path))
    if found.unreadable:
        return Flaw(DAMAGED, shown, found.unreadable, LOOK)
    if found.sha256 == expected:
        return Flaw(MISSING, shown, "its record is missing", anew(path))
    what = f"its record is missing, and it is not what {sight.shown(record.located(record.result))} was made from"
    return Flaw(DAMAGED, shown, what, anew(path))


def _without_record(sight: Sight, bare: Iterable[Path]) -> Iterator[Flaw]:
    """Report the files that no record lists, those in a folder of ASIDE in one line. If a file's record exists but is
    broken, only the record is reported. A file that a job must have made (MADE) lacks its record; any other file is the
    user's own."""
    aside: dict[Path, list[Path]] = {}
    read = {record.located(name) for record in sight.held.records for name in record.inputs}  # reported by `_inputs`
    bases = {record.base for record in sight.held.records}
    for path in bare:
        place = next((base / name for base in bases for name in ASIDE if path.is_relative_to(base / name)), None)
        if path.is_symlink() and sight.contents[path].lost:
            yield Flaw(MISSING, sight.shown(path), _lost(path), "delete the link, or bring back what it names")
        elif is_scratch(path):
            yield Flaw(BARE, sight.shown(path), "unfinished file of a killed job", "the next run deletes it")
        elif place:
            aside.setdefault(place, []).append(path)
        elif path.name == "README.md" or sight.doubtful(path) or path in read:
            continue
        elif path.suffix in MADE:
            yield Flaw(MISSING, sight.shown(path), "its record is missing", anew(path))
        else:
            yield Flaw(BARE, sight.shown(path), "no record lists it", "if a job made it, delete it and run again")
    for place, files in aside.items():
        what = f"{len(files):,} file{'s' * (len(files) > 1)} without a record: {ASIDE[place.name]}"
        yield Flaw(BARE, sight.shown(place), what, "nothing needs to be done", len(files))
