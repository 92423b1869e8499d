"""The record of one benchmark run: its ratios, the machine it ran on, and the table for people."""

import datetime
import os
import platform
import re
import statistics
from importlib import metadata
from pathlib import Path
from typing import Any

from metabo.records.provenance import git_state

SCHEMA = 1
PACKAGES = (
    *("metabo", "jax", "jaxlib", "numpy", "scipy", "equinox", "optax"),
    *("torch", "botorch", "gpytorch", "linear_operator"),
)
INSTALL = "python -m pip install -r requirements-bench.lock"
Record = dict[str, Any]


def summarise(cases: dict[str, Record], reference: str) -> None:
    """Add median, rate and ratio to every measured case of a section, in place.

    A ratio is the median over the turns of (time of the case / time of `reference` in the same turn): a slow moment
    of the machine then counts in both. It is None when either was not measured.
    """
    base = cases.get(reference, {}).get("ms")
    for case in cases.values():
        times = case.get("ms")
        case["median_ms"] = statistics.median(times) if times else None
        case["per_second"] = 1e3 / case["median_ms"] if times else None
        ratios = [a / b for a, b in zip(times, base, strict=True)] if times and base else None
        case["ratio"] = statistics.median(ratios) if ratios else None


def cpu_model() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def version(package: str) -> str | None:
    """Return an installed package's version, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def load_average() -> list[float] | None:
    """Return the load of the machine over 1, 5 and 15 minutes, where the system has it."""
    return [round(v, 2) for v in os.getloadavg()] if hasattr(os, "getloadavg") else None


def environment(gpu: str | None) -> Record:
    """Return when, where and with what a run is made: no host name, no user name, no path."""
    return {
        "schema": SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": {"cpu": cpu_model(), "cores": os.cpu_count(), "gpu": gpu, "system": platform.system()},
        "git": git_state(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }


def file_name(record: Record) -> str:
    """Return <UTC date>-<device>.json."""
    device = record["device"]
    words = f"{device['cpu']} {device['cores']} cores {device['gpu'] or ''}"
    return f"{record['created'][:10]}-{re.sub(r'[^a-z0-9]+', '-', words.lower()).strip('-')}.json"


def table(record: Record) -> str:
    """Lay a record out as text."""
    device = record["device"]
    lines = [
        f"{device['cpu']}, {device['cores']} cores, GPU: {device['gpu'] or 'none'}; "
        f"load before {record['load_before']}, after {record['load_after']}; commit {record['git']['commit']}",
    ]
    if record["quick"]:
        lines.append("QUICK sizes: these times mean nothing")
    for section in record["sections"].values():
        lines += ["", f"{section['title']} (ms per {section['unit']})", HEADER]
        lines += [row(case) for case in section["cases"].values()]
        goal, reached = section["goal_ms"], section["cases"].get(section["reference"], {}).get("median_ms")
        if goal and reached and not record["quick"]:
            lines.append(f"  goal: at most {goal} ms: {'met' if reached <= goal else 'not met'} ({reached:.3g} ms)")
    if any(c["status"] == "not installed" for s in record["sections"].values() for c in s["cases"].values()):
        lines += ["", f"To measure the peers that are not installed: {INSTALL}"]
    return "\n".join(lines)


HEADER = f"  {'':46}{'ms':>10}{'per s':>10}{'ratio':>8}{'trace s':>9}{'compile s':>11}{'peak MiB':>10}"


def row(case: Record) -> str:
    """Lay one case out as a line of the table."""
    if case["status"] != "ok":
        return f"  {case['label']:46}{case['status']:>10}"
    cells = (
        (case["median_ms"], 10, ".3g"), (case["per_second"], 10, ".4g"), (case["ratio"], 8, ".2f"),
        (case["trace_s"], 9, ".1f"), (case["compile_s"], 11, ".1f"), (case["peak_mib"], 10, ".0f"),
    )  # fmt: skip
    return f"  {case['label']:46}" + "".join(
        f"{'-' if value is None else format(value, form):>{width}}" for value, width, form in cells
    )
