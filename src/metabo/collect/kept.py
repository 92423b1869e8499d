"""Finished trials outside the project's folder, so that a collection that took hours survives its checkout.

The environment variable METABO_COLLECTED names a folder. Journals are written there and stay when a unit is finished;
tables with their sidecars may be put beside them. What was made with other settings or by other code is not used.
"""

import os
from pathlib import Path

from metabo.errors import ConfigError, DataError
from metabo.records.checksums import Sidecar, read_sidecar
from metabo.records.files import Json, canonical, digest

VARIABLE = "METABO_COLLECTED"
CODE = "trained_by"
"""Key of a unit's sidecar: digest of the code that trains, and of no other."""
ORIGIN = ("git", "finished", "wall_s", "platform", "versions")
"""What the sidecar of a unit copies from the sidecar of the table that was used."""


def place(path: Path) -> tuple[Path, bool]:
    """Return where the journal that would be `path` (.../scale/collection/unit.jsonl) is, and whether it is kept there
    when the unit is finished. Raises ConfigError if METABO_COLLECTED names no folder."""
    if not (root := os.environ.get(VARIABLE)):
        return path, False
    if not Path(root).is_dir():
        raise ConfigError(f"environment variable {VARIABLE}: '{root}' is no folder; make it, or name another one")
    return Path(root, *path.parts[-3:]), True


def finished(table: Path, spec: Json, code: str) -> tuple[Sidecar | None, str]:
    """Return the sidecar of a finished table, and a remark on it. The sidecar is None if the table cannot be used, and
    the remark is empty if there is no table. A table can be used if it was made with the same settings (`spec`) by the
    same code (`code`) and is as its job wrote it.
    """
    if not table.is_file():
        return None, ""
    try:
        record = read_sidecar(table.with_suffix(".json"), table)
    except DataError as error:
        return None, f"{table}: not taken, {error}"
    told: dict[str, object] = {**record}
    reasons = {
        "it was made with other settings": canonical(record.get("spec", {})) != canonical(spec),
        "it was trained by other code": told.get(CODE) != code,
        "it is not as its job wrote it": digest(table) not in record.get("outputs", {}).values(),
    }
    if wrong := [reason for reason, holds in reasons.items() if holds]:
        return None, f"{table}: not taken, {wrong[0]}"
    return record, f"{table}: taken, its trials are finished"
