"""Our calls in a process of somebody else: `precision.scope`, and more options of JAX that would change random draws or
refuse our programs.

They are apart from `metabo.compute.precision`, on which every recorded job depends: in our own processes, where jobs
run, no option is set.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import ParamSpec, TypeVar

import jax

from metabo.compute import blas, cores, precision

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def scope() -> Iterator[None]:
    """Compute as `precision.scope` does, with JAX's own random draws, with transfers between host and device allowed,
    and eagerly, even while a function of the caller is being traced. In our own processes JAX needs none of this. In
    all of them linear algebra has one thread."""
    with ExitStack() as settings:
        settings.enter_context(blas.one_thread())
        if cores.is_own_process():
            yield
            return
        settings.enter_context(precision.scope())
        settings.enter_context(jax.threefry_partitionable(True))
        settings.enter_context(jax.transfer_guard("allow"))
        settings.enter_context(jax.ensure_compile_time_eval())
        yield


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function compute inside `scope`."""
    return scope()(function)
