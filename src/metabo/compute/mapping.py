"""Map a function over many entries, one after another, with one compiled program that handles a stretch of them per
call.

Between two stretches the job can report its progress, and keep what is finished, so that it goes on from there if it is
stopped (`metabo.compute.checkpoint`).
"""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Int, PyTree

from metabo.compute import checkpoint, progress

SECONDS = 5.0
"""How many seconds a stretch should take: long compared with the overhead of a call, short for whoever watches the
progress."""


def one_by_one(run: Callable[..., PyTree], entries: PyTree, shared: tuple[PyTree, ...], what: str) -> PyTree:
    """Return `run(entry, *shared)` for every entry of the leading axis of `entries`, stacked, and report the progress.

    One program serves all stretches, and all calls with the same function, array sizes and non-array `shared` values.
    `what` names the entries in the plural. Inside a compiled program this is `jax.lax.map`.
    """
    count = len(jax.tree.leaves(entries)[0])
    traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((entries, shared)))
    if traced or not count:
        return jax.lax.map(lambda entry: run(entry, *shared), entries)
    first_entry = jax.tree.map(lambda leaf: leaf[0], entries)
    shape = eqx.filter_eval_shape(_one, run, first_entry, shared)
    done = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), shape)
    kept = checkpoint.Loop(what, jax.tree.leaves(done))
    first, length = kept.first, 1
    if kept.leaves is not None:
        done = jax.tree.unflatten(jax.tree.structure(done), map(jnp.asarray, kept.leaves))
    with progress.counted(what, count, first) as advance:
        while first < count:
            started, last = time.monotonic(), min(first + length, count)
            done = _stretch(run, entries, shared, done, jnp.asarray(first), jnp.asarray(last))
            jax.block_until_ready(done)
            advance(last)
            if kept.due():
                kept.keep(last, jax.tree.leaves(done))
            pace = (time.monotonic() - started) / (last - first)
            first, length = last, max(1, int(SECONDS / max(pace, 1e-6)))
    return done


@eqx.filter_jit
def _one(run: Callable[..., PyTree], entry: PyTree, shared: tuple[PyTree, ...]) -> PyTree:
    return run(entry, *shared)


@eqx.filter_jit
def _stretch(
    run: Callable[..., PyTree],
    entries: PyTree,
    shared: tuple[PyTree, ...],
    done: PyTree,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> PyTree:
    def step(number, done):
        result = _one(run, jax.tree.map(lambda leaf: leaf[number], entries), shared)
        return jax.tree.map(lambda into, value: into.at[number].set(value), done, result)

    return jax.lax.fori_loop(first, last, step, done)
