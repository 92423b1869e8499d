"""The collected tables that the package carries: read with checksum, and put there by `metabo ship`."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from metabo.errors import DataError
from metabo.plan.entries import collection
from metabo.records.checksums import read_sidecar
from metabo.records.files import atomic_path, digest, write_text

if TYPE_CHECKING:  # the workflow checks tables while it is parsed, without pandas
    import pandas as pd

FOLDER = Path(__file__).parent / "shipped"
KEPT = ("spec", "versions", "platform", "finished", "trials", "units")
"""What the record beside a shipped table keeps of the collection's sidecar."""


def table_path(benchmark: str, version: int = 1) -> Path:
    """Return where the package keeps a version of the table of a benchmark; its record (.json) is beside it."""
    return FOLDER / f"{collection(benchmark, version)}.parquet"


def newest(benchmark: str) -> int:
    """Return the newest version that the package has, 1 if it has none."""
    version = 1
    while table_path(benchmark, version + 1).is_file():
        version += 1
    return version


def check(benchmark: str, path: Path | None = None, version: int = 1) -> Path:
    """Return the path of a shipped table (the package's unless `path` is given) after comparing its checksum.

    Raises DataError if the table or its record is missing or damaged, or if the checksum is not the recorded one.
    """
    path = path or table_path(benchmark, version)
    record = path.with_suffix(".json")
    remedy = "restore both from the project's repository, or re-collect and set source: collected"
    if not path.is_file() or not record.is_file():
        raise DataError(f"{path}: the shipped table or its record {record.name} is missing; {remedy}")
    try:
        expected = json.loads(record.read_text())["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{record}: no readable checksum ({error!r}); {remedy}") from error
    found = digest(path)
    if found != expected:
        raise DataError(f"{path}: checksum error, sha256 is {found}, {record.name} says {expected}; {remedy}")
    return path


def read(benchmark: str, path: Path | None = None, version: int = 1) -> "pd.DataFrame":
    """Read a shipped table (the package's unless `path` is given) after comparing its checksum. Raises DataError."""
    return read_table(check(benchmark, path, version))


def read_table(path: str | Path) -> "pd.DataFrame":
    """Read a collected table; text columns come back as plain strings. Raises DataError."""
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except Exception as error:
        raise DataError(f"{path}: not a readable table ({error}); delete it and collect again") from error
    text = [column for column in table if isinstance(table[column].dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(text, "str"))


def write_table(table: "pd.DataFrame", path: str | Path) -> None:
    """Write a collected table compactly and atomically: same table, same bytes."""
    text = [c for c in table if table[c].dtype == object and table[c].map(lambda v: isinstance(v, str)).all()]
    with atomic_path(path) as scratch:
        table.astype(dict.fromkeys(text, "category")).to_parquet(
            scratch, index=False, compression="zstd", compression_level=19
        )


def ship(benchmark: str, collected: Path, folder: Path | None = None) -> list[str]:
    """Copy a collected table into the package, as the version that its sidecar says, and record checksum and origin.
    Returns lines that say what was done.

    Raises DataError if the table or its sidecar is missing, or if they do not belong together or to this benchmark.
    """
    sidecar = collected.with_suffix(".json")
    if not collected.is_file() or not sidecar.is_file():
        raise DataError(f"{collected}: no collected table with its sidecar; make it: snakemake collect_{benchmark}")
    origin = read_sidecar(sidecar)
    of = origin.get("spec", {}).get("benchmark")
    if of != benchmark:
        raise DataError(f"{sidecar}: a collection of {of}, not of {benchmark}; give the table of {benchmark}")
    if digest(collected) not in origin.get("outputs", {}).values():
        raise DataError(f"{collected}: not the table that {sidecar.name} was written with; collect again")
    version = origin.get("spec", {}).get("version", 1)
    to = (folder or FOLDER) / table_path(benchmark, version if isinstance(version, int) else 1).name
    with atomic_path(to) as scratch:
        shutil.copyfile(collected, scratch)
    record = {"benchmark": benchmark, "sha256": digest(to), "rows": len(read_table(to)), "bytes": to.stat().st_size}
    write_text(to.with_suffix(".json"), json.dumps(record | {k: origin.get(k) for k in KEPT}, indent=1) + "\n")
    return [f"shipped {record['rows']} rows, {record['bytes'] / 2**20:.2f} MiB, sha256 {record['sha256'][:12]}..."]
