"""Independent replicates of a simulation: drawn by NumPy from a passed key, computed by JAX, in chunks.

Compiling JAX's normal generator for every shape takes longer than most of the simulations.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import numpy as np
from jaxtyping import Array, Key, PyTree

from metabo.compute import progress

LEAST = 100
"""Replicates that every simulation has, however small the scale."""


def runs(full: int, share: float) -> int:
    """Return the number of replicates: `share` of the full number, at least LEAST."""
    return max(LEAST, round(full * share))


def generator(key: Key[Array, ""]) -> np.random.Generator:
    """Return NumPy's generator started from a key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def replicate(
    compute: Callable[[PyTree], PyTree],
    draw: Callable[[np.random.Generator, int], PyTree],
    key: Key[Array, ""],
    number: int,
    chunk: int = 2000,
) -> PyTree:
    """Return `compute` of `number` independent draws, stacked as NumPy arrays.

    `draw(generator, n)` makes the random arrays of n replicates (a pytree with leading axis n), `compute` takes one
    replicate's. All chunks have the same size, at most `chunk` (what is left over is dropped), so that it is compiled
    once, also for several calls with the same function and shapes.
    """
    rng = generator(key)
    chunks = -(-number // chunk)
    size = -(-number // chunks)
    numbers = progress.loop(range(chunks), f"chunks of {size} replicates")
    done = [jax.tree.map(np.asarray, _batched(compute)(draw(rng, size))) for _ in numbers]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:number], *done)


@lru_cache(maxsize=8)
def _batched(compute: Callable[[PyTree], PyTree]) -> Callable[[PyTree], PyTree]:
    return jax.jit(jax.vmap(compute))
