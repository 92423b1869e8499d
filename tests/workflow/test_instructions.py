"""Jobs keep NumPy to instructions that nearly every x86-64 machine has, so that tables are the same on all of them."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEATURES = "from numpy._core._multiarray_umath import __cpu_features__ as found; print(found.get('X86_V4'))"


def pinned() -> str:
    """Return what the workflow sets."""
    found = re.search(
        r'setdefault\("NPY_DISABLE_CPU_FEATURES", "([^"]+)"\)', (ROOT / "workflow/rules/common.smk").read_text()
    )
    assert found, "the workflow no longer pins NumPy's instructions"
    return found[1]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
def test_numpy_takes_the_pin_without_a_warning_and_leaves_avx_512_out():
    found = subprocess.run([sys.executable, "-c", FEATURES], capture_output=True, text=True).stdout.strip()
    if found != "True":
        pytest.skip("this machine has no AVX-512 to leave out")
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": pinned()}
    command = [sys.executable, "-W", "error::ImportWarning", "-c", FEATURES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "False", "")
