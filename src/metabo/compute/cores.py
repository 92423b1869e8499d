"""Give a job its own cores and device before JAX is imported.

XLA starts one spinning thread per visible core, so two JAX jobs that share cores slow each other down twenty-fold. Each
job therefore pins itself to as many cores as it has threads, and while cores are free, no two jobs of one user take the
same one. Linear algebra outside JAX has as many threads.
"""

import fcntl
import os
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from metabo.compute.compiler import CPU_FLAGS
from metabo.errors import MetaboError

POOL = "PJRT_NPROC"
"""Environment variable with the number of threads in XLA's pool, read when JAX begins to compute."""
LINEAR_ALGEBRA = "OPENBLAS_NUM_THREADS"
"""Environment variable with the number of threads of NumPy's and SciPy's linear algebra, read when these are loaded."""
_own_process = False


def own_process() -> None:
    """Make this process ours: 64-bit floats throughout, and one thread in XLA's pool, unless the environment says
    otherwise. Jobs, the command line, notebooks and tests call this before JAX computes anything; library code must
    not.

    One thread is enough because runs are spread over processes, and it is necessary because jaxlib 0.10 deadlocks when
    batched factorisations meet in a larger pool (`metabo.compute.precision`). This does not import JAX, so cores can
    still be pinned.
    """
    global _own_process
    _own_process = True
    os.environ.setdefault("JAX_ENABLE_X64", "true")
    os.environ.setdefault(POOL, "1")
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)


def is_own_process() -> bool:
    """Tell whether `own_process` was called here."""
    return _own_process


class Granted(TypedDict):
    """What a job was given: `threads`, the `cores` that it is pinned to (none if the platform cannot pin), how many of
    these it has locked for itself (`exclusive`), `gpu` as requested, and the flags of XLA."""

    threads: int
    cores: list[int]
    exclusive: int
    gpu: int
    xla_flags: str


def own_cores(threads: int, gpu: int, locks: Path | None = None) -> Granted:
    """Pin this process to `threads` free cores and choose the device; call it before JAX is imported.

    `gpu`: 1 lets JAX use an accelerator, 0 keeps it on the CPU. `locks`: folder of the core locks (default: one per
    user and machine, because cores belong to the machine and not to a checkout).
    When more jobs run than there are cores, the rest share. Raises MetaboError if JAX is already imported.
    """
    if "jax" in sys.modules:
        raise MetaboError("cores.own_cores: JAX is already imported, its threads are set; call own_cores first")
    if not gpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
        # The user's own come last and win.
        os.environ["XLA_FLAGS"] = " ".join(filter(None, [CPU_FLAGS, os.environ.get("XLA_FLAGS")]))
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(".cache/jax").resolve()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
    flags = os.environ.get("XLA_FLAGS", "")
    granted: Granted = {"threads": threads, "cores": [], "exclusive": 0, "gpu": gpu, "xla_flags": flags}
    _limit_linear_algebra(threads)
    if not hasattr(os, "sched_setaffinity"):
        return granted
    cores = sorted(os.sched_getaffinity(0))
    exclusive = _take(cores, threads, locks or Path(tempfile.gettempdir()) / f"metabo-cores-{os.getuid()}")
    shared = [core for core in cores if core not in exclusive]
    turn = os.getpid() % max(len(shared), 1)  # spread the jobs that found no free core
    mine = sorted([*exclusive, *(shared[turn:] + shared[:turn])[: threads - len(exclusive)]])
    os.sched_setaffinity(0, mine)
    return {**granted, "cores": mine, "exclusive": len(exclusive)}


def _limit_linear_algebra(threads: int) -> None:
    """Give NumPy's and SciPy's linear algebra as many threads, unless the environment says how many.

    A library counts the cores when it is loaded. NumPy's mostly is by now, before the process was pinned: its threads
    would share one core, and a product of 200 x 200 matrices would take five times as long.
    """
    if LINEAR_ALGEBRA in os.environ:
        return
    os.environ[LINEAR_ALGEBRA] = str(threads)
    if "numpy" in sys.modules:
        from metabo.compute import blas

        blas.limit(threads)


def _take(cores: list[int], number: int, locks: Path) -> list[int]:
    """Lock up to `number` of the cores. The files stay open: the kernel frees them when the process ends."""
    taken: list[int] = []
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError:
        return taken
    for core in cores:
        if len(taken) == number:
            break
        try:
            handle = os.open(locks / f"{core}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return taken
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            continue
        taken.append(core)
    return taken
