"""CPU time of a piece of work, for the studies that measure times."""

import time
from collections.abc import Callable

import jax

SHORTEST = 0.02
"""Seconds that one repeat lasts at least: shorter work is called several times."""


def seconds(work: Callable[[], object], repeats: int, shortest: float = SHORTEST) -> float:
    """Return the lowest CPU time of one call of `work`, after one call that is not timed."""
    jax.block_until_ready(work())
    started = time.process_time()
    jax.block_until_ready(work())
    calls = max(1, int(shortest / max(time.process_time() - started, 1e-9)))
    times = []
    for _ in range(repeats):
        started = time.process_time()
        for _ in range(calls):
            jax.block_until_ready(work())
        times.append((time.process_time() - started) / calls)
    return min(times)
