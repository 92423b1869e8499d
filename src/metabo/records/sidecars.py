"""Reading sidecars: the records that jobs write beside their results (`metabo.records.provenance`)."""

from pathlib import Path
from typing import Any

from metabo.records.checksums import read_sidecar


def of(path: str | Path) -> dict[str, Any]:
    """Return the sidecar of a result file, {} if it has none. A result that is JSON itself has ``.meta.json``. Raises
    DataError if it is damaged."""
    sidecar = Path(path).with_suffix(".meta.json" if Path(path).suffix == ".json" else ".json")
    return read_sidecar(sidecar) if sidecar.is_file() else {}
