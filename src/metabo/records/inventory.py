"""The contents of a folder of results: its files, the records among them, and the files that records name.

A record names files as its job did: `results/{scale}/...` and sources of the project. The folder may have been moved,
renamed or copied since, so names are resolved from the place of the record.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple, TypeGuard

from metabo.records.checksums import SEAL, LogStart, Sidecar, is_intact

MARKS = {"stage", "spec", "inputs", "outputs", SEAL}
"""Keys of a record; no other JSON of a run has two of them."""


FIELDS = ("spec", "git", "versions")
"""Keys of a record whose values have fields of their own."""

UNREADABLE = "cannot be read"
"""The start of the reason in `Inventory.texts` for a file that is not JSON."""


class StoredSidecar(NamedTuple):
    """An intact record: its file, its content, the folder `results/{scale}` as the record names it, and where that
    folder is now."""

    path: Path
    content: Sidecar
    named: str
    base: Path

    def located(self, name: str) -> Path:
        """Return where a file that the record names lies now."""
        if name.startswith(f"{self.named}/"):
            return self.base / name.removeprefix(f"{self.named}/")
        kept = self.base.as_posix().endswith(f"/{self.named}")
        return (self.base.parents[self.named.count("/")] if kept else Path.cwd()) / name

    @property
    def inputs(self) -> dict[str, str]:
        """Checksum by name of everything that the job read. This includes the files that the stage `claims` opened
        itself."""
        opened = self.content.get("read", {})
        return {**self.content.get("inputs", {}), **(opened if _texts(opened) else {})}

    @property
    def outputs(self) -> dict[str, str]:
        """Checksum by name of everything that the job made."""
        return self.content.get("outputs", {})

    @property
    def logs(self) -> dict[str, LogStart]:
        """The job's logs by name; empty for records that are older than this key."""
        return self.content.get("logs", {})

    @property
    def result(self) -> str:
        """The name of one file that the job made."""
        return next(iter(self.outputs), self.path.name)


class Inventory(NamedTuple):
    """The files below a folder. `records` has the intact records, `broken` what is wrong with other records, by file,
    `texts` all other JSON and `unlisted` the folders that cannot be listed, each with the reason."""

    files: list[Path]
    records: list[StoredSidecar]
    broken: dict[Path, str]
    texts: dict[Path, str]
    unlisted: dict[Path, str]


def take(folder: Path) -> Inventory:
    """List the files below a folder (an absolute path), and read the records among them. This raises nothing."""
    files, unlisted = walk(folder)
    records: list[StoredSidecar] = []
    broken: dict[Path, str] = {}
    texts: dict[Path, str] = {}
    for path in files:
        if path.suffix != ".json":
            continue
        try:
            content = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            texts[path] = f"{UNREADABLE} as JSON ({error.strerror if isinstance(error, OSError) else error})"
            continue
        if not _is_record(content):
            texts[path] = "not the record of a job"
        elif fault := _fault(content):
            broken[path] = fault
        else:
            records.append(StoredSidecar(path, content, *_place(path, content, folder)))
    return Inventory(files, records, broken, texts, unlisted)


def walk(folder: Path) -> tuple[list[Path], dict[Path, str]]:
    """List the files, including those in linked folders, each folder once, and the folders that cannot be listed."""
    found: list[Path] = []
    unlisted: dict[Path, str] = {}
    seen: set[str] = set()

    def note(error: OSError) -> None:
        unlisted[Path(error.filename)] = str(error.strerror)

    for place, below, names in os.walk(folder, onerror=note, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            below.clear()
            continue
        seen.add(real)
        below.sort()
        found += [Path(place, name) for name in sorted(names)]
    return found, unlisted


def _is_record(content: object) -> TypeGuard[Sidecar]:
    return isinstance(content, dict) and len(MARKS & content.keys()) >= 2


def _fault(record: Sidecar) -> str:
    if not is_intact(record):
        return f"damaged or edited since it was written (its '{SEAL}' differs)"
    if not all(_texts(record.get(key)) for key in ("inputs", "outputs")) or not _logs(record.get("logs", {})):
        return "damaged: it does not list its inputs and outputs with checksums"
    if wrong := [key for key in FIELDS if not isinstance(record.get(key, {}), dict)]:
        return f"damaged: its '{wrong[0]}' has no fields"
    return ""


def _place(path: Path, record: Sidecar, folder: Path) -> tuple[str, Path]:
    """Return the folder of the run as a record names it, and where it is now: the folder of this name around the
    record, or else the folder that is being read."""
    first = next(iter(record.get("outputs", {})), "")
    named = "/".join(Path(first).parts[:2])
    scale = named.rpartition("/")[2]
    for above in path.parents:
        if above.as_posix().endswith(f"/{named}") or (above.name == scale and above.is_relative_to(folder)):
            return named, above
    return named, folder


def _texts(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())


def _logs(value: object) -> TypeGuard[dict[str, LogStart]]:
    """Tell whether this is a collection of results of `checksums.log_start`."""
    return isinstance(value, dict) and all(
        isinstance(one, dict) and isinstance(one.get("bytes"), int) and isinstance(one.get("sha256"), str)
        for one in value.values()
    )
