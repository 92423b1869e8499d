"""The one BO loop for finite pools: offline runs, HE-GP-UCB's problems and suggestions to a user are all `play`."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from metabo.bo.policy import Candidates, Growing, Policy, remaining
from metabo.compute.mapping import one_by_one

LONG = 48
"""Runs with at least this many observations start a growing policy with room for only half of them. Compiling its step
for two sizes costs a few seconds, which shorter runs do not recover."""

Answer = Callable[[Int[Array, ""], Int[Array, ""], PyTree], Float[Array, ""]]
"""Maps the number of a step, its candidate, and the policy's record of the step to the step's output."""


class Steps(NamedTuple):
    """One run: for each step the selected candidate, its output, and the policy's record (`Info`, or a type of its
    own). Each has length `initial + iterations`."""

    candidate: Int[Array, " t"]
    y: Float[Array, " t"]
    info: PyTree


class RunState(NamedTuple):
    """A run in progress: the policy's state, the candidates that may be queried, and the steps so far (with
    placeholders for those to come)."""

    state: PyTree
    mask: Bool[Array, " c"]
    steps: Steps


class Given(NamedTuple):
    """Candidates that the policy does not choose: those of `candidate` in the first `known` steps. The first `told` of
    them need no prediction; for the others, the prediction may stand in for the outcome (`play`)."""

    candidate: Int[Array, " k"]
    told: int | Int[Array, ""]
    known: int | Int[Array, ""]


def begin(policy: Policy, candidates: Candidates, length: int, key: Key[Array, ""]) -> RunState:
    """Return a run of `length` steps before the first one."""
    state = policy.init(candidates, key)
    info = jax.eval_shape(lambda k: policy.select(state, candidates.mask, k)[1], key)
    room = unasked(info, lambda shape: (length, *shape))
    return RunState(state, candidates.mask, Steps(jnp.zeros(length, jnp.int64), jnp.zeros(length), room))


def unasked(info: PyTree, shape: Callable[[tuple[int, ...]], tuple[int, ...]]) -> PyTree:
    """Return placeholders for predictions that were not requested, structured like `info`: NaN, 0, or True (a sound
    step)."""
    kinds = {"f": jnp.nan, "b": True}
    return jax.tree.map(lambda leaf: jnp.full(shape(leaf.shape), kinds.get(leaf.dtype.kind, 0), leaf.dtype), info)


def play(
    policy: Policy,
    now: RunState,
    valid: Bool[Array, " c"],
    given: Given,
    first: int | Int[Array, ""],
    last: int | Int[Array, ""],
    answer: Answer,
    key: Key[Array, ""],
    repeats: bool,
) -> RunState:
    """Make the steps `first` to `last` (exclusive): select, answer, observe.

    In the first `given.known` steps the candidate is given. From step `given.told` on, the policy still predicts given
    candidates (with the key of its first own step), because the answer may be that prediction. The random numbers of a
    step depend only on how many steps of the policy's own came before it.
    """
    nothing = unasked(now.steps.info, lambda shape: shape[1:])
    room = jnp.arange(len(valid))

    def choose(number, state, mask):
        own = number - given.known
        if isinstance(given.known, int):  # all given steps are told, so the policy makes only its own choices
            return policy.select(state, mask, jax.random.fold_in(key, own))
        among = jnp.where(own < 0, room == given.candidate[jnp.minimum(number, len(given.candidate) - 1)], mask)
        return policy.select(state, among, jax.random.fold_in(key, jnp.maximum(own, 0)))

    def step(number, now):
        def ask(_):
            return choose(number, now.state, now.mask)

        def skip(_):
            return given.candidate[number], nothing

        index, info = jax.lax.cond(number < given.told, skip, ask, None) if len(given.candidate) else ask(None)
        y = answer(number, index, info)
        state = policy.observe(now.state, index, y)
        mask = remaining(now.mask, valid, index, repeats)
        steps = jax.tree.map(lambda all_of, one: all_of.at[number].set(one), now.steps, Steps(index, y, info))
        return RunState(state, mask, steps)

    return jax.lax.fori_loop(first, last, step, now)


def run(
    policy: Policy,
    candidates: Candidates,
    outputs: Float[Array, " c"],
    initial: Int[Array, " k"],
    key: Key[Array, ""],
    iterations: int,
    repeats: bool = True,
) -> Steps:
    """Observe the `initial` candidates, then run BO for `iterations` steps (hyperbo Algorithm 1 on a finite pool).

    A candidate may be queried again if `repeats` and the policy say so.
    """
    init_key, loop_key = jax.random.split(key)
    count = len(initial)
    now = begin(policy, candidates, count + iterations, init_key)
    given = Given(initial, count, count)
    for first, last in pairwise([0, *(count + end for end in sizes(policy, count, iterations))]):
        if isinstance(policy, Growing):
            now = now._replace(state=policy.resized(now.state, last))
        again = repeats and policy.repeats
        now = play(policy, now, candidates.mask, given, first, last, lambda t, i, info: outputs[i], loop_key, again)
    return now.steps


def sizes(policy: Policy, given: int, iterations: int) -> list[int]:
    """Return the iterations up to which a state of one size is used: all at once, or the first half of a long run and
    then the rest."""
    total = given + iterations
    half = total // 2 - given
    return [half, iterations] if isinstance(policy, Growing) and total >= LONG and half > 0 else [iterations]


class RunBatch(NamedTuple):
    """A list of runs: the policy, the task, the initial candidates (k may be 0) and the key of each. `place` is the
    position of the task in its fold (None: 0)."""

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
    repeats: bool = True,
) -> Steps:
    """Run every entry of `runs`, `chunk` of them side by side; `policy_of(policies, number)` is a run's policy.

    A candidate may be queried again if `repeats` and the policy say so. `chunk` changes speed and memory (one policy
    state per run in the chunk; for a fixed GP, budget x c floats each). It changes results only by rounding, which a
    fit cut off at its step limit may amplify. Chunks of one report their progress.
    """
    shared = (policies, x, outputs, mask, iterations, policy_of, repeats)
    # A batch of one would still be vmapped: every `cond` would run both branches, and re-fits would take three times as
    # long.
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
    repeats: bool = True,
) -> Steps:
    """Run one entry of a list of runs."""
    place = jnp.asarray(0) if entry.place is None else entry.place
    pool = Candidates(x[entry.task], mask[entry.task], place)
    policy = policy_of(policies, entry.policy)
    return run(policy, pool, outputs[entry.task], entry.initial, entry.key, iterations, repeats)
