"""Reading sidecars: the records that jobs write beside their results (`metabo.records.provenance`)."""

from pathlib import Path

from metabo.records.checksums import Sidecar, read_sidecar


def of(path: str | Path) -> Sidecar:
    """Return the sidecar of a result file, {} if it has none. A result that is JSON itself has ``.meta.json``. Raises
    DataError if it is damaged."""
    sidecar = Path(path).with_suffix(".meta.json" if Path(path).suffix == ".json" else ".json")
    return read_sidecar(sidecar) if sidecar.is_file() else {}
