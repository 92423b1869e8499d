"""Check that results are still what their jobs wrote, by the checksums in the sidecars, and check sidecars by their
own.

Neither parquet nor JSON detects a flipped bit, and a wrong number looks like any other. So a job checks its inputs
before it reads them, and a run checks those of all jobs ahead before the first of them starts.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypedDict

from metabo.errors import DataError, MetaboError
from metabo.records.files import Json, canonical, digest

SEAL: Final = "record_sha256"
"""The key of a sidecar with the checksum of all its other keys."""

MADE = ("results", ".cache")
"""Folders whose files jobs make."""

AGAIN = "delete it and run the same command"


class LogStart(TypedDict):
    """A log as it was when its job wrote the sidecar: its length at that time, and the checksum of that many first
    bytes. It may have grown since."""

    bytes: int
    sha256: str


class Sidecar(TypedDict, total=False):
    """The record next to a result (`metabo.records.provenance`). These are the keys of every stage; each stage adds its
    own. `resumed` is there if a job went on from earlier attempts, whose seconds `wall_s` and `cpu_s` count too."""

    schema: int
    stage: str
    status: str
    spec: Mapping[str, Json]
    spec_sha256: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    logs: dict[str, LogStart]
    git: dict[str, str | bool | None]
    code_sha256: str
    depends_sha256: str
    versions: dict[str, str]
    platform: str
    device: Mapping[str, Json] | None
    threads: int
    started: str
    finished: str
    wall_s: float
    cpu_s: float
    compile_s: float | None
    peak_bytes: int
    resumed: Mapping[str, Json]
    record_sha256: str


def sealed(record: Mapping[str, object]) -> dict[str, object]:
    """Return a sidecar's content with its own checksum added."""
    return {**record, SEAL: _seal(record)}


def _seal(record: Mapping[str, object]) -> str:
    plain = json.loads(json.dumps({key: value for key, value in record.items() if key != SEAL}, allow_nan=False))
    return hashlib.sha256(canonical(plain).encode()).hexdigest()


def read_sidecar(path: str | Path, result: str | Path = "its result") -> Sidecar:
    """Read the sidecar of a result. Raises DataError if it is missing, not a JSON object, or not as it was written.

    A record of schema 1, which had no SEAL, is accepted as it is. A later record cannot pass for one of these by damage
    to only one of the two keys.
    """
    again = f"delete it and {result}, and run the same command"  # Snakemake never remakes a record alone
    try:
        record: Sidecar = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable sidecar ({error}); {again}") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}: not the sidecar of a result; {again}")
    if not is_intact(record):
        raise DataError(f"{path}: damaged or edited since it was written (its '{SEAL}' differs); {again}")
    return record


def is_intact(record: Mapping[str, object]) -> bool:
    """Tell by its own checksum whether a sidecar is as it was written. One of schema 1, which had no checksum, counts
    as intact."""
    try:
        return record[SEAL] == _seal(record) if SEAL in record else record.get("schema", 1) == 1
    except ValueError:  # NaN, which is never written to a sidecar
        return False


def log_start(path: str | Path, size: int | None = None) -> LogStart:
    """Measure the first `size` bytes of a log, by default all that it has now. Raises OSError if it cannot be read."""
    with open(path, "rb") as stream:
        content = stream.read(size)
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def sidecar_of(result: str | Path) -> Path | None:
    """Return the sidecar of a result file, or None if it has none (a notebook template, a table of the package)."""
    path = Path(result)
    return next((name for name in sidecar_names(path) if name.is_file()), None) if _made(path) else None


def sidecar_names(path: Path) -> list[Path]:
    """Return the paths where the sidecar of a result file may lie, whether or not one exists."""
    stem = path.name.partition(".")[0]  # archives end in .tar.gz
    if not stem:  # a hidden file
        return []
    plain = path.with_name(stem)
    own = "figure", "data", "notebook"  # an artefact's files share provenance.json
    names = [path.with_suffix(".meta.json")] if path.suffix == ".json" else [plain.with_suffix(".json")]
    names += [path.with_name("provenance.json")] if plain.name in own else []
    return [name for name in names if name != path]


def _made(path: str | Path) -> bool:
    return Path(path).parts[0] in MADE


def checksums(paths: Iterable[str | Path]) -> dict[str, str]:
    """Return the checksum of each file (by path) after comparing it with the one in the file's sidecar.

    Raises DataError, which names the first file that cannot be read or is not as its job wrote it. A file without a
    sidecar counts as a source; a file that is itself a sidecar is checked as one.
    """
    return {path: _checked(path) for path in dict.fromkeys(map(str, paths))}


def damaged(paths: Iterable[str | Path]) -> list[str]:
    """Return one message for each result that is not as its job wrote it.

    The records of everything that the results were made from are checked too, because figures show settings of priors
    and the report shows all jobs.
    """
    found: dict[Path, str] = {}
    results = [path for path in paths if _made(path)]
    for path in results:
        try:
            _checked(path)
        except MetaboError as error:
            found[sidecar_of(path) or Path(path)] = str(error)
    queue, seen = [sidecar_of(path) for path in results], set(found)
    while queue:
        sidecar = queue.pop()
        if sidecar is None or sidecar in seen:
            continue
        seen.add(sidecar)
        try:
            queue += map(sidecar_of, read_sidecar(sidecar).get("inputs", {}))
        except MetaboError as error:
            found[sidecar] = str(error)
    return list(found.values())


def _checked(path: str | Path) -> str:
    try:
        found = digest(path)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check that it is a file, its permissions and the disk"
        ) from error
    sidecar = sidecar_of(path)
    if sidecar is None:
        if _made(path) and Path(path).suffix == ".json":
            read_sidecar(path)
        return found
    written = read_sidecar(sidecar, path).get("outputs", {})
    recorded = written.get(str(path)) or {Path(name).name: value for name, value in written.items()}.get(
        Path(path).name, found
    )
    if recorded != found:
        raise DataError(
            f"{path}: damaged or edited since it was written (sha256 {found[:12]}, {sidecar} says {recorded[:12]}); "
            f"{AGAIN}"
        )
    return found
