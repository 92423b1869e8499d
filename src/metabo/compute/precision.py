"""64-bit floats for our own calls, in a process whose JAX settings belong to someone else.

GP algebra needs float64. Our own processes (jobs, the command line, tests) use it throughout (`cores.own_process`). In
any other process, the public functions compute inside `scope`, which affects only the calling thread and ends with the
call. Inside it JAX computes on a CPU device of our own, whose pool has one thread. In a larger pool jaxlib 0.10
deadlocks when as many batched factorisations run side by side as there are threads: each holds a thread and waits for
parts of its batch that are queued in the same pool. With a pool of our own, neither we nor other programs in the
process can take threads that the other needs, and accelerators are left alone.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from threading import Lock
from typing import ParamSpec, TypeVar

import jax
from jax.extend.backend import get_default_device
from jaxlib import xla_client

from metabo.compute import cores

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def scope() -> Iterator[None]:
    """Compute in float64 on one CPU thread of our own, in this thread only and until the block ends. In our own
    processes nothing changes. Inside the block, JAX settings that would change results or reject our programs have
    their defaults.
    """
    if cores.is_own_process():
        yield
        return
    with ExitStack() as settings:
        for setting in (
            jax.enable_x64(True),
            jax.default_device(_device()),
            jax.default_prng_impl("threefry2x32"),
            jax.default_matmul_precision(None),
            jax.numpy_dtype_promotion("standard"),
            jax.numpy_rank_promotion("allow"),
            jax.debug_nans(False),  # fits detect non-finite values and keep the last sound step
            jax.debug_infs(False),
        ):
            settings.enter_context(setting)
        yield


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function compute inside `scope`."""

    @wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
        with scope():
            return function(*args, **kwargs)

    return scoped


def accelerated() -> bool:
    """Tell whether JAX computes on something other than a CPU here; inside `scope` it never does."""
    return get_default_device().platform != "cpu"


_making = Lock()


def _device():
    """Return the device of `scope`: that of a CPU client with one thread, which is not in JAX's list of devices."""
    with _making:  # the arrays of all threads must live on the same device
        return _made_device()


@cache
def _made_device():
    before = os.environ.get(cores.POOL)
    # Not os.environ, which others read: XLA reads the C environment once, while it makes the client.
    os.putenv(cores.POOL, "1")
    try:
        return xla_client.make_cpu_client().devices()[0]
    finally:
        os.unsetenv(cores.POOL) if before is None else os.putenv(cores.POOL, before)
