"""Reading sidecars, the records that jobs write next to their results (`metabo.records.provenance`)."""

from pathlib import Path

from metabo.records.checksums import Sidecar, read_sidecar


def of(path: str | Path) -> Sidecar:
    """Return the sidecar of a result file, or {} if it has none. The sidecar of a JSON result ends in ``.meta.json``.
    Raises DataError if it is damaged."""
    sidecar = Path(path).with_suffix(".meta.json" if Path(path).suffix == ".json" else ".json")
    return read_sidecar(sidecar) if sidecar.is_file() else {}
