"""64-bit floats for our own calls, in a process whose JAX is not ours.

GP algebra needs float64. A process of ours (a job, the command line, a test) has it throughout (`cores.own_process`).
In anyone else's, the public functions compute inside `scope`, which only the calling thread sees and which ends with
the call. Inside it JAX computes on a CPU device of our own, whose pool has one thread. In a larger pool jaxlib 0.10
waits forever when as many batched factorisations as there are threads run side by side: each holds a thread and waits
for parts of its batch that are queued in the same pool. So neither we nor other programs of the process can take the
threads that the other needs, and an accelerator is left alone.
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
    """Compute in float64 on one CPU thread of our own, in this thread only and until the block ends; in a process of
    ours nothing changes. Settings of JAX that would change results or refuse our programs have their defaults inside.
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
            jax.debug_nans(False),  # fits notice what is not finite, and go on from the last sound step
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
    """Tell whether JAX computes on something else than a CPU here: inside `scope` never."""
    return get_default_device().platform != "cpu"


_making = Lock()


def _device():
    """Return the device of `scope`: that of a CPU client with one thread, which JAX's list of devices does not have."""
    with _making:  # the arrays of all threads are to lie on one and the same
        return _made_device()


@cache
def _made_device():
    before = os.environ.get(cores.POOL)
    # Not os.environ, which others read: XLA looks at the C environment, once, while it makes the client.
    os.putenv(cores.POOL, "1")
    try:
        return xla_client.make_cpu_client().devices()[0]
    finally:
        os.unsetenv(cores.POOL) if before is None else os.putenv(cores.POOL, before)
