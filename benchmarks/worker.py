"""Measure one implementation in a process of its own (so that its memory is its own), one turn per line of input.

Protocol: one JSON object per line on the original standard output. First what happened until the case was warm; then,
for each line "go", the milliseconds per unit of one turn (a list for a curve, one number for each size); at the end of
the input the peak memory and the facts.
"""

import importlib
import json
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

from problem import QUICK, Sizes

from metabo.compute import cores

MODULES = {
    "metabo": "ours",
    "limit": "limit",
    "textbook": "textbook",
    "botorch": "peer_botorch",
    "optuna": "peer_optuna",
    "sklearn": "peer_sklearn",
}
"""Modules by the first word of a case's name."""
PARTS = ("mphd", "tables", "gp", "ask", "growth")
"""Sections that begin so have modules of their own."""
PEER_PACKAGES = ("torch", "botorch", "gpytorch", "linear_operator", "optuna", "sklearn")


def peak_mib() -> float:
    """Largest resident memory so far, in MiB (Linux counts KiB, macOS bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def module_of(section: str, case: str) -> str:
    """Return the module that holds a case: its name begins with that of the implementation, and may end in a part."""
    module = MODULES[case.split("_")[0]]
    part = section.split("_")[0]
    return f"{module}_{part}" if part in PARTS else module


def device_memory() -> float | None:
    """Peak memory in use on the accelerator in MiB, None on a CPU."""
    if "jax" not in sys.modules:
        return None
    stats = sys.modules["jax"].devices()[0].memory_stats() or {}
    peak = stats.get("peak_bytes_in_use")
    return None if peak is None else round(peak / 2**20, 1)


def main(section: str, name: str, sizes: Sizes) -> None:
    """Serve one case. A peer that is not installed is an answer, not an error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is not an answer

    def answer(**fields: Any) -> None:
        print(json.dumps(fields), file=answers)

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = scratch  # empty: compile times are cold
        cores.own_process()
        cores.own_cores(1, int(name.endswith("_gpu")), Path(scratch))
        try:
            module = importlib.import_module(module_of(section, name))
            base = peak_mib()
            case = module.CASES[section][name](sizes)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in PEER_PACKAGES:
                raise
            answer(status="not installed", missing=error.name)
            return
        case.turn()
        answer(status="ok", trace_s=case.trace_s, compile_s=case.compile_s, base_mib=base)
        for _ in sys.stdin:
            answer(ms=case.turn())
        answer(peak_mib=peak_mib(), device_mib=device_memory(), facts=case.facts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], QUICK if "--quick" in sys.argv else Sizes())
