"""The record of one benchmark run: its ratios, the machine it ran on, and the table for people."""

import datetime
import os
import platform
import re
import statistics
from importlib import metadata
from typing import Any

from growth import exponent

from metabo.compute.machine import cpu_model
from metabo.records.provenance import git_state

SCHEMA = 2
PACKAGES = (
    *("metabo", "jax", "jaxlib", "numpy", "scipy", "equinox", "optax"),
    *("torch", "botorch", "gpytorch", "linear_operator", "optuna", "scikit-learn"),
)
INSTALL = "python -m pip install -r requirements-bench.lock"
Record = dict[str, Any]
FACTS = {
    "flop": "{:,.0f} FLOP",
    "product_gflops": "products {:.1f} GFLOP/s",
    "inverse_us": "potrf + potri {:.1f} us",
    "evaluations_per_step": "{:.2f} evaluations a step of L-BFGS",
    "log_likelihood": "log likelihood a point {:.4f}",
}
"""What a case may state beside its time, and how the table shows it."""


def summarise(cases: dict[str, Record], reference: str, sizes: list[int] | None = None) -> None:
    """Add median, rate, ratio, memory ratio and exponent to every measured case of a section, in place.

    A ratio is the median over the turns of (time of the case / time of `reference` in the same turn): a slow moment
    of the machine then counts in both. It is None when either was not measured. With `sizes`, a turn has one time for
    each: medians are lists then, ratios are those of the largest size, and there is an exponent.
    """
    base = cases.get(reference, {})
    for case in cases.values():
        times = case.get("ms")
        case["median_ms"] = None if not times else _median(times)
        case["per_second"] = 1e3 / case["median_ms"] if times and sizes is None else None
        case["ratio"] = _ratio(times, base.get("ms"))
        peaks = case.get("peak_mib"), base.get("peak_mib")
        case["memory_ratio"] = peaks[0] / peaks[1] if all(peaks) else None
        case["exponent"] = exponent(sizes, times)._asdict() if times and sizes else None


def _median(times: list) -> float | list[float]:
    curves = isinstance(times[0], list)
    return [statistics.median(column) for column in zip(*times, strict=True)] if curves else statistics.median(times)


def _ratio(times: list | None, base: list | None) -> float | None:
    if not times or not base:
        return None
    last = [[turn[-1] if isinstance(turn, list) else turn for turn in turns] for turns in (times, base)]
    return statistics.median(a / b for a, b in zip(*last, strict=True))


def within(cases: dict[str, Record], reference: str, goal: Record | None) -> Record | None:
    """Return a goal {case, at_most} with the `ratio` reached: the time of `reference` over that of the case, the median
    over the turns (None if either was not measured)."""
    if goal is None:
        return None
    measured = (cases.get(name, {}).get("ms") for name in (reference, goal["case"]))
    return goal | {"ratio": _ratio(*measured)}


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
        header, lay = (CURVES, curve_row) if section.get("sizes") else (HEADER, row)
        lines += ["", f"{section['title']} (ms per {section['unit']})", header]
        lines += [lay(case) for case in section["cases"].values()]
        lines += goals(section, record["quick"])
    if any(c["status"] == "not installed" for s in record["sections"].values() for c in s["cases"].values()):
        lines += ["", f"To measure the peers that are not installed: {INSTALL}"]
    return "\n".join(lines)


def goals(section: Record, quick: bool) -> list[str]:
    """Say what the section should reach and whether it did; at toy sizes only what it is compared with."""
    lines = []
    goal, reached = section["goal_ms"], section["cases"].get(section["reference"], {}).get("median_ms")
    if goal and reached and not quick:
        lines.append(f"  goal: at most {goal} ms: {verdict(reached <= goal)} ({reached:.3g} ms)")
    wanted = section.get("within")
    if wanted and wanted["ratio"] is not None:
        found = f"  {section['reference']} / {wanted['case']}: {wanted['ratio']:.2f}"
        judged = f" (goal: at most {wanted['at_most']}: {verdict(wanted['ratio'] <= wanted['at_most'])})"
        lines.append(found if quick else found + judged)
    return lines


def verdict(met: bool) -> str:
    return "met" if met else "not met"


HEADER = (
    f"  {'':46}{'ms':>10}{'per s':>10}{'ratio':>9}{'trace s':>9}{'compile s':>11}{'peak MiB':>10}{'memory ratio':>14}"
)
CURVES = (
    f"  {'':46}{'exponent':>10}{'95 % interval':>18}{'at the end':>12}{'ratio':>9}{'peak MiB':>10}{'memory ratio':>14}"
)


def cells(values: list[tuple[float | None, int, str]]) -> str:
    """Lay numbers out, each with its width and format; a dash where there is none."""
    return "".join(f"{'-' if value is None else format(value, form):>{width}}" for value, width, form in values)


def row(case: Record) -> str:
    """Lay one case out as a line of the table."""
    if case["status"] != "ok":
        return f"  {case['label']:46}{case['status']:>10}"
    numbers = cells([
        (case["median_ms"], 10, ".3g"), (case["per_second"], 10, ".4g"), (case["ratio"], 9, ".2f"),
        (case["trace_s"], 9, ".1f"), (case["compile_s"], 11, ".1f"), (case["peak_mib"], 10, ".0f"),
        (case.get("memory_ratio"), 14, ".2f"),
    ])  # fmt: skip
    facts = ", ".join(FACTS[name].format(value) for name, value in case.get("facts", {}).items())
    return f"  {case['label']:46}{numbers}" + (f"  {facts}" if facts else "")


def curve_row(case: Record) -> str:
    """Lay the growth of one case out as a line of the table."""
    if case["status"] != "ok":
        return f"  {case['label']:46}{case['status']:>10}"
    found = case["exponent"]
    interval = f"{found['low']:.2f} to {found['high']:.2f}"
    memory = cells([(case["ratio"], 9, ".2f"), (case["peak_mib"], 10, ".0f"), (case["memory_ratio"], 14, ".2f")])
    return f"  {case['label']:46}{found['value']:>10.2f}{interval:>18}{found['last']:>12.2f}{memory}"
