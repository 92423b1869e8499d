"""The cost of a job, according to its record."""

from metabo.records.checksums import Sidecar


def core_seconds(record: Sidecar) -> float:
    """Return the core seconds of a job. For a record without CPU time, because it is older than that key, and for a job
    on an accelerator, this is the wall time multiplied by the number of threads."""
    device = record.get("device") or {}
    if "cpu_s" in record and device.get("platform", "cpu") == "cpu":
        return record["cpu_s"]
    return record.get("wall_s", 0.0) * record.get("threads", 1)
