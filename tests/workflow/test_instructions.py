"""Jobs keep NumPy to instructions that nearly every x86-64 machine has, so that tables are the same on all of them."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
FEATURES = "from numpy._core._multiarray_umath import __cpu_features__ as found; print(found.get('X86_V4'))"


def pinned(given: str | None = None) -> str:
    """Return what the workflow sets where the user has set `given`."""
    lines = (ROOT / "workflow/rules/common.smk").read_text().splitlines()
    found = [
        line for line in lines if re.match(r'(GIVEN|DISABLED) = |os\.environ\["NPY_DISABLE_CPU_FEATURES"\] = ', line)
    ]
    assert len(found) == 3, "the workflow no longer pins NumPy's instructions"
    own = SimpleNamespace(environ={} if given is None else {"NPY_DISABLE_CPU_FEATURES": given})
    exec("\n".join(found), {"os": own})
    return own.environ["NPY_DISABLE_CPU_FEATURES"]


def test_what_a_user_disables_is_disabled_too_and_takes_nothing_back():
    assert pinned("") == pinned() == "X86_V4 AVX512_ICL AVX512_SPR"
    assert pinned("AVX2,X86_V4") == "X86_V4 AVX512_ICL AVX512_SPR AVX2"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
def test_numpy_takes_the_pin_without_a_warning_and_leaves_avx_512_out():
    found = subprocess.run([sys.executable, "-c", FEATURES], capture_output=True, text=True).stdout.strip()
    if found != "True":
        pytest.skip("this machine has no AVX-512 to leave out")
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": pinned()}
    command = [sys.executable, "-W", "error::ImportWarning", "-c", FEATURES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "False", "")
