"""Run a stage command at smoke size, as the workflow does, for tests that need a real result."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from metabo.plan import config
from metabo.plan.typed import plain
from metabo.records.files import canonical

ROOT = Path(__file__).parents[1]


def smoke():
    """Return the configuration of the smoke scale."""
    return config.load(ROOT, (ROOT / "config" / "smoke.yaml",))


def run(stage: str, spec: object, out: Path, *options: str) -> Path:
    """Run a stage and return the file that it wrote; one that exists, or that another worker makes now, is not made
    again."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            command = [sys.executable, "-m", f"metabo.stages.{stage}", "--out", str(out), "--threads", "1", *options]
            environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax")}
            done = subprocess.run(
                [*command, "--spec", canonical(plain(spec))], cwd=ROOT, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
    return out
