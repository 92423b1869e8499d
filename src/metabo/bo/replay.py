"""Follow recorded runs step by step: did each choice maximise the acquisition, given what was recorded before it?

The outcomes of a run depend on every earlier choice, so a run that is repeated on another machine may diverge from the
record at the first tie that rounding breaks the other way. Here the record provides the history at every step, so each
step is checked on its own.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.acquisition import Acquisition
from metabo.bo.loop import sizes
from metabo.bo.policy import Candidates, Growing, Info, Policy, remaining
from metabo.bo.priors import SpacePrior
from metabo.bo.trajectories import Entry, Priors, gather, planned, policy_of
from metabo.errors import DataError
from metabo.plan import registry
from metabo.plan.specs import BOSpec
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.training_set import TrainingSet


class Followed(NamedTuple):
    """One run of t steps of the policy's own: its choice given the record so far, and the gap by which the acquisition
    at the recorded choice falls short of the maximum. The gap is infinite if the recorded candidate may not be queried,
    or if it differs from the policy's choice and the policy has no scores."""

    choice: Int[Array, " t"]
    gap: Float[Array, " t"]


class ReplayedRun(NamedTuple):
    """A recorded run that was followed: its entry, its largest gap, and the iteration (from 1) of that gap."""

    entry: Entry
    gap: float
    iteration: int


def follow(
    policy: Policy,
    candidates: Candidates,
    outputs: Float[Array, " c"],
    recorded: Int[Array, " k_t"],
    known: int,
    key: Key[Array, ""],
    repeats: bool = True,
) -> Followed:
    """Follow a recorded run of `metabo.bo.loop.run` with the same arguments: `recorded` has the `known` given
    candidates, followed by the policy's own."""
    init_key, loop_key = jax.random.split(key)
    state, total = policy.init(candidates, init_key), len(recorded)
    again, room = repeats and policy.repeats, jnp.arange(len(outputs))
    scores: Acquisition | None = getattr(policy, "acquisition", None)

    def short_of(best: Info, own: Info, highest: Float[Array, ""], number: Int[Array, ""]) -> Float[Array, ""]:
        if scores is None:
            return jnp.asarray(jnp.inf)
        mean, std = (jnp.stack(pair) for pair in ((best.mean, own.mean), (best.std, own.std)))
        top, reached = scores(mean, std, highest, number)
        return jnp.where(jnp.isnan(top - reached), jnp.inf, top - reached)

    def judge(number, state, mask, highest):
        taken = recorded[number]
        index, best = policy.select(state, mask, jax.random.fold_in(loop_key, number - known))
        _, own = policy.select(state, mask & (room == taken), jax.random.fold_in(loop_key, number - known))
        gap = jnp.where(index == taken, 0.0, short_of(best, own, highest, number))
        return Followed(index, jnp.where(mask[taken], gap, jnp.inf))

    def step(now, number):
        state, mask, highest = now
        given = Followed(recorded[number], jnp.asarray(0.0))
        found = jax.lax.cond(number < known, lambda: given, lambda: judge(number, state, mask, highest))
        y = outputs[recorded[number]]
        state = policy.observe(state, recorded[number], y)
        mask = remaining(mask, candidates.mask, recorded[number], again)
        return (state, mask, jnp.maximum(highest, y)), found

    now, parts = (state, candidates.mask, jnp.asarray(-jnp.inf)), []
    for first, last in pairwise([0, *(known + end for end in sizes(policy, known, total - known))]):
        if isinstance(policy, Growing):
            now = (policy.resized(now[0], last), *now[1:])
        now, part = jax.lax.scan(step, now, jnp.arange(first, last))
        parts.append(part)
    return jax.tree.map(lambda *each: jnp.concatenate(each)[known:], *parts)


@eqx.filter_jit
def _one(
    priors: Priors,
    number: Int[Array, ""],
    pool: Candidates,
    outputs: Float[Array, " c"],
    recorded: Int[Array, " k_t"],
    key: Key[Array, ""],
    make: Callable[[Priors, Int[Array, ""]], Policy],
    known: int,
    repeats: bool,
) -> Followed:
    return follow(make(priors, number), pool, outputs, recorded, known, key, repeats)


def replay(
    benchmark: Benchmark,
    prior: SpacePrior,
    spec: BOSpec,
    table: pd.DataFrame,
    chosen: Callable[[int], Sequence[int]],
    training: TrainingSet | None = None,
) -> list[ReplayedRun]:
    """Follow some runs of the trajectory table of `metabo.bo.trajectories.optimise` with the same arguments.

    `chosen(count)` returns which of the `count` runs of this space to follow. Raises DataError if the table lacks such
    a run, has a point that is not a candidate, or has an outcome that differs from the benchmark's.
    """
    listed, names, pools, runs, batch = planned(benchmark, prior, spec)
    known = runs.initial.shape[1]
    make = policy_of(registry.policy_module(spec.method), spec, spec.iterations + known)
    priors, repeats, found = gather(prior, training), spec.repeats(prior.space), []
    x, y, mask = map(jnp.asarray, batch)
    for place in chosen(len(listed)):
        entry, task = listed[place], names.index(listed[place].task)
        points = pools[entry.task]
        outputs = np.asarray(batch.y[task])[: len(points)]  # the rest is padding
        recorded = _recorded(table, prior.space, entry, points, outputs, spec.iterations + known)
        pool = Candidates(x[task], mask[task], jnp.asarray(runs.place)[place])
        followed = _one(
            priors, runs.policy[place], pool, y[task], jnp.asarray(recorded), runs.key[place], make, known, repeats
        )
        worst = int(np.argmax(followed.gap))
        found.append(ReplayedRun(entry, float(followed.gap[worst]), worst + 1))
    return found


def _recorded(
    table: pd.DataFrame,
    space: str,
    entry: Entry,
    pool: Int[np.ndarray, " c"],
    outputs: Float[np.ndarray, " c"],
    length: int,
) -> Int[np.ndarray, " k_t"]:
    """Return the positions in the pool of a recorded run's queries."""
    of_run = (table["space"] == space) & (table["task"] == entry.task)
    of_run &= (table["prior_seed"] == entry.prior_seed) & (table["seed"] == entry.seed)
    rows = table.loc[of_run].sort_values(by="iteration")
    where = f"space '{space}', task '{entry.task}', prior {entry.prior_seed}, run {entry.seed}"
    if len(rows) != length:
        raise DataError(f"{where}: {len(rows)} steps are recorded, {length} are to be expected")
    points = rows["candidate"].to_numpy()
    places = np.minimum(np.searchsorted(pool, points), len(pool) - 1)
    wrong: Bool[np.ndarray, " t"] = (pool[places] != points) | (outputs[places] != rows["y"].to_numpy())
    if wrong.any():
        row = rows.iloc[int(np.argmax(wrong))]
        raise DataError(
            f"{where}, iteration {row['iteration']}: candidate {row['candidate']} with outcome {row['y']!r} is not the "
            "benchmark's: it is another version of the benchmark, or the table was changed"
        )
    return places
