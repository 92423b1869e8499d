"""The one BO loop for finite pools: `scan` over iterations, one compiled program for all priors, tasks and seeds."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from metabo.bo.policy import Candidates, Growing, Info, Policy
from metabo.compute.mapping import one_by_one

LONG = 48
"""From so many observations on a growing policy runs with room for half of them first. Compiling two sizes of its step
costs a few seconds, which shorter runs do not earn back."""


class Steps(NamedTuple):
    """One run: selected candidate, its output, and `Info`, each of length `initial + iterations`."""

    index: Int[Array, " t"]
    y: Float[Array, " t"]
    info: Info


def run(
    policy: Policy,
    candidates: Candidates,
    outputs: Float[Array, " c"],
    initial: Int[Array, " k"],
    key: Key[Array, ""],
    iterations: int,
) -> Steps:
    """Observe the `initial` candidates, then run BO for `iterations` steps (hyperbo Algorithm 1 on a finite pool)."""
    init_key, loop_key = jax.random.split(key)
    nothing = Info(jnp.asarray(jnp.nan), jnp.asarray(jnp.nan), jnp.asarray(True))

    def given(state, index):
        y = outputs[index]
        return policy.observe(state, index, y), Steps(index, y, nothing)

    def step(state, number):
        index, info = policy.select(state, jax.random.fold_in(loop_key, number))
        y = outputs[index]
        return policy.observe(state, index, y), Steps(index, y, info)

    def with_room(state, last):
        return policy.resized(state, len(initial) + last) if isinstance(policy, Growing) else state

    ends = sizes(policy, len(initial), iterations)
    state, before = jax.lax.scan(given, with_room(policy.init(candidates, init_key), ends[0]), initial)
    parts = [before]
    for first, last in pairwise([0, *ends]):
        state, after = jax.lax.scan(step, with_room(state, last), jnp.arange(first, last))
        parts.append(after)
    return jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *parts)


def sizes(policy: Policy, given: int, iterations: int) -> list[int]:
    """Return the iterations up to which a state of one size is used: all at once, or half of a long run first."""
    total = given + iterations
    half = total // 2 - given
    return [half, iterations] if isinstance(policy, Growing) and total >= LONG and half > 0 else [iterations]


class RunBatch(NamedTuple):
    """A list of runs: which policy, which task, which initial candidates (k may be 0), which key; `place`: the position
    of the task in its fold (None: 0)."""

    policy: Int[Array, " r"]
    task: Int[Array, " r"]
    initial: Int[Array, "r k"]
    key: Key[Array, " r"]
    place: Int[Array, " r"] | None = None


def stacked(policies: PyTree, number: Int[Array, ""]) -> Policy:
    """Return one of the policies of a pytree with a leading policy axis."""
    return jax.tree.map(lambda leaf: leaf[number] if eqx.is_array(leaf) else leaf, policies)


def run_all(
    policies: PyTree,
    x: Float[Array, "tasks c d"],
    outputs: Float[Array, "tasks c"],
    mask: Bool[Array, "tasks c"],
    runs: RunBatch,
    iterations: int,
    chunk: int,
    policy_of: Callable[[PyTree, Int[Array, ""]], Policy] = stacked,
) -> Steps:
    """Run every entry of `runs`, `chunk` of them side by side; `policy_of(policies, number)` is a run's policy.

    `chunk` changes speed and memory (chunk states of the policy; a fixed GP's: budget x c floats each), results only by
    rounding, which a fit cut off at its step limit may carry on. Chunks of one report their progress.
    """
    shared = (policies, x, outputs, mask, iterations, policy_of)
    # A batch of one would still be vmapped: every `cond` then runs both branches, and re-fits take thrice as long.
    return one_by_one(one_of_all, runs, shared, "runs") if chunk == 1 else _in_chunks(runs, shared, chunk)


@eqx.filter_jit
def _in_chunks(runs: RunBatch, shared: tuple, chunk: int) -> Steps:
    return jax.lax.map(lambda entry: one_of_all(entry, *shared), runs, batch_size=chunk)


def one_of_all(
    entry: RunBatch,
    policies: PyTree,
    x: Float[Array, "tasks c d"],
    outputs: Float[Array, "tasks c"],
    mask: Bool[Array, "tasks c"],
    iterations: int,
    policy_of: Callable[[PyTree, Int[Array, ""]], Policy],
) -> Steps:
    """Run one entry of a list of runs."""
    place = jnp.asarray(0) if entry.place is None else entry.place
    pool = Candidates(x[entry.task], mask[entry.task], place)
    return run(policy_of(policies, entry.policy), pool, outputs[entry.task], entry.initial, entry.key, iterations)
