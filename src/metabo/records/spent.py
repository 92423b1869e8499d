"""What a job has cost, by its record."""

from metabo.records.checksums import Sidecar


def core_seconds(record: Sidecar) -> float:
    """Return the seconds that cores have worked for a job. A record that is older than this key has its wall time, and
    so has a job on an accelerator, each times its cores."""
    device = record.get("device") or {}
    if "cpu_s" in record and device.get("platform", "cpu") == "cpu":
        return record["cpu_s"]
    return record.get("wall_s", 0.0) * record.get("threads", 1)
