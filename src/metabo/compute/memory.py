"""Will it fit? Compare estimates with the available memory before anything large is allocated."""

import os

from jax.extend.backend import get_default_device

from metabo.compute.precision import accelerated
from metabo.errors import ConfigError

SHARE = 0.8
"""The share of the memory that one computation may plan to use."""


def available() -> tuple[int, str]:
    """Return the bytes of the memory that JAX computes in, and whose they are: the accelerator's or the machine's."""
    if accelerated():
        limit = (get_default_device().memory_stats() or {}).get("bytes_limit")
        if limit:
            return int(limit), "the accelerator"
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "the machine"


def check_memory(need_bytes: int, where: str, remedy: str) -> None:
    """Raise ConfigError, naming `where` and `remedy`, when `need_bytes` exceeds the usable share of the memory."""
    have, whose = available()
    if need_bytes > SHARE * have:
        raise ConfigError(
            f"{where}: needs about {need_bytes / 2**30:.1f} GiB, {whose} has {have / 2**30:.1f} "
            f"(of which {SHARE:.0%} may be planned for); {remedy}, or take a machine with more memory"
        )


def fitting(wanted: int, need_bytes: int, where: str, remedy: str) -> int:
    """Return how many of `wanted` computations, each of `need_bytes`, fit side by side.

    Raises ConfigError like `check_memory` when not even one does.
    """
    check_memory(need_bytes, where, remedy)
    return max(1, min(wanted, int(SHARE * available()[0]) // max(need_bytes, 1)))
