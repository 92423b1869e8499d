"""Offline BO on a benchmark: the list of runs, and the table of their results (schema: `metabo.records.results`)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Int, PyTree

from metabo.bo.loop import RunBatch, Steps, run_all
from metabo.bo.policy import Candidates, Policy, Remarking
from metabo.bo.priors import SpacePrior
from metabo.bo.protocol import Blamed, refuse_forbidden, told
from metabo.compute.keys import stream
from metabo.compute.memory import fitting
from metabo.errors import ConfigError
from metabo.plan import registry
from metabo.plan.specs import BOSpec, TrainingSpec
from metabo.plan.typed import Values, plain
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.padding import columns
from metabo.tasks.rows import Rows, stack
from metabo.tasks.subsets import pools_of
from metabo.tasks.training_set import TrainingSet


@dataclass(frozen=True)
class Entry:
    """One BO run: its fold, task, prior seed and BO seed."""

    fold: int
    task: str
    prior_seed: int
    seed: int


def entries(benchmark: Benchmark, prior: SpacePrior, seeds: int, draws: bool = False) -> list[Entry]:
    """List the runs of one space.

    `draws` says that queries are random draws, so that runs may share given points. Otherwise this raises ConfigError
    if a task has fewer given initialisations than BO seeds, because a second run from the same points would be the same
    run.
    """
    listed = []
    for f, fold in enumerate(prior.folds):
        for task in fold.test:
            given = benchmark.initial.get(task)
            if given is not None and len(given) < seeds and not draws:
                raise ConfigError(
                    f"config key 'bo.seeds' is {seeds}, but task '{task}' of benchmark '{benchmark.name}' has only "
                    f"{len(given)} initialisations; set bo.seeds to at most {len(given)}"
                )
            listed += [Entry(f, task, p, s) for p in range(prior.seeds) for s in range(seeds)]
    return listed


def _given(sets: Int[np.ndarray, "sets points"], run: int) -> Int[np.ndarray, " points"]:
    """Return the initial points of run number `run`: the sets take turns, starting over if there are more runs than
    sets."""
    return sets[run % len(sets)]


def refuse_seen(spec: BOSpec, trained_from: TrainingSpec) -> None:
    """Raise ConfigError if BO is to query the "rest" but the priors were not trained on the other half, drawn by the
    same seed."""
    seen = trained_from["past"].get("rows"), trained_from["seed"]
    if spec.candidates == "rest" and seen != ("half", spec.seed):
        raise ConfigError(
            f"split '{spec.split}', seed {spec.seed}: BO queries what priors on 'rows: half' have not seen, but "
            f"these have 'rows: {seen[0] or 'all'}', seed {seen[1]}; train them on this split and seed"
        )


class TrainingRows(NamedTuple):
    """The training rows of one space, and which of their tasks each of its p priors was trained on."""

    rows: Rows
    members: Int[Array, "p m"]
    present: Bool[Array, "p m"]

    def past(self, number: Int[Array, ""]) -> Rows:
        """Return the training rows of one of the priors."""
        x, y, mask = (array[self.members[number]] for array in self.rows)
        return Rows(x, y, mask & self.present[number][:, None])


class Priors(NamedTuple):
    """The priors of one space and, for methods that train on past tasks in every run, their training rows."""

    params: PyTree
    training: TrainingRows | None


def gather(prior: SpacePrior, training: TrainingSet | None) -> Priors:
    """Return the priors with the training rows of each, or without rows if `training` is None."""
    if training is None:
        return Priors(prior.params, None)
    pairs = len(prior.folds) * prior.seeds
    members, present = (jnp.asarray(array.reshape(pairs, -1)) for array in (training.members, training.present))
    return Priors(prior.params, TrainingRows(jax.tree.map(jnp.asarray, training.rows), members, present))


def policy_of(module: ModuleType, spec: BOSpec, budget: int) -> Callable[[Priors, Int[Array, ""]], Policy]:
    """Return the function that makes the policy of one of the priors. Equal arguments give the same function object, so
    that all spaces of one shape run one program that is traced once."""
    return _maker(module, spec.policy, spec.acquisition, budget)


@cache
def _maker(
    module: ModuleType, settings: Values, acquisition: str, budget: int
) -> Callable[[Priors, Int[Array, ""]], Policy]:
    chosen = plain(settings)

    def make(priors: Priors, number: Int[Array, ""]) -> Policy:
        params = jax.tree.map(lambda leaf: leaf[number], priors.params)
        past = None if priors.training is None else priors.training.past(number)
        return module.policy(params, chosen, acquisition, budget, past)

    return make


class PlannedRuns(NamedTuple):
    """The runs of one space: their entries (`listed`), the `names` of their tasks, the positions of each task's
    candidates among its points (`pools`), the `runs` as the loop takes them, and the candidates as a padded `batch`, in
    the order of `names`."""

    listed: list[Entry]
    names: list[str]
    pools: dict[str, Int[np.ndarray, " c"]]
    runs: RunBatch
    batch: Rows


def planned(benchmark: Benchmark, prior: SpacePrior, spec: BOSpec) -> PlannedRuns:
    """Return the runs on every test task of one space, for every prior and seed. Raises ConfigError as `entries`
    does."""
    listed = entries(benchmark, prior, spec.seeds, registry.made_of(spec.method).draws)
    names = list(dict.fromkeys(entry.task for entry in listed))
    pools = pools_of(benchmark, names, spec.candidates, spec.seed)
    tasks = [benchmark.tasks[name] for name in names]
    none = np.zeros(0, dtype=np.int64)
    # Count over priors too: from the same set, a method that learns nothing would repeat the same run for each prior.
    numbers = [e.prior_seed * spec.seeds + e.seed for e in listed]
    sets = benchmark.initial
    given = [_given(sets[e.task], i) if e.task in sets else none for e, i in zip(listed, numbers, strict=True)]
    # If the pool has only some of a task's rows, row numbers are not positions in the pool.
    starts = [np.searchsorted(pools[e.task], rows) for e, rows in zip(listed, given, strict=True)]
    runs = RunBatch(
        policy=jnp.asarray([prior.pair(e.fold, e.prior_seed) for e in listed]),
        task=jnp.asarray([names.index(e.task) for e in listed]),
        initial=jnp.asarray(np.stack(starts)),
        key=jnp.stack([stream(spec.seed, "bo", e.task, e.prior_seed, e.seed) for e in listed]),
        place=jnp.asarray([prior.folds[e.fold].test.index(e.task) for e in listed]),
    )
    batch = stack([t.x[pools[t.name]] for t in tasks], [t.y[pools[t.name]] for t in tasks])
    return PlannedRuns(listed, names, pools, runs, batch._replace(x=columns(batch.x, prior.dim)))


def optimise(
    benchmark: Benchmark,
    prior: SpacePrior,
    spec: BOSpec,
    data: str,
    chunk: int | None,
    training: TrainingSet | None = None,
) -> pd.DataFrame:
    """Run BO on every test task of one space, for every prior and seed, and return the trajectory table.

    `data`: checksum of the benchmark's file. `training`: what the priors were trained on, for methods that read it
    again. At most `chunk` runs (None: all), and no more than fit in memory, run side by side; this changes the speed,
    and results only by rounding. Inputs get columns of zeros if those of the priors are wider (`priors.widened`).
    Raises ConfigError as `entries` does, if the memory is too small for one run, and for a policy that breaks the
    protocol.
    """
    listed, names, pools, runs, batch = planned(benchmark, prior, spec)
    module, budget = registry.policy_module(spec.method), spec.iterations + runs.initial.shape[1]
    priors, make = gather(prior, training), policy_of(module, spec, budget)
    where = f"benchmark '{benchmark.name}', method '{spec.method}', BO with {batch.x.shape[1]} candidates"
    first = Candidates(batch.x[0], batch.mask[0], 0)
    blamed = Blamed(f"src/{module.__name__.replace('.', '/')}.py", spec.method)
    with told(lambda: make(priors, jnp.asarray(0)), first, blamed):
        need = run_bytes(make, priors, first)
        chunk = fitting(min(chunk or len(listed), len(listed)), need, where, "lower bo.iterations")
        x, y, mask = map(jnp.asarray, batch)
        repeats = spec.repeats(prior.space)
        steps = jax.tree.map(np.asarray, run_all(priors, x, y, mask, runs, spec.iterations, chunk, make, repeats))
        bad = ~steps.info.ok.all(axis=1)
    again = repeats and eqx.filter_eval_shape(make, priors, jnp.asarray(0)).repeats
    refuse_forbidden(
        steps.candidate, np.asarray(batch.mask)[np.asarray(runs.task)], runs.initial.shape[1], again, blamed
    )
    pool_of = {n: Candidates(x[i], mask[i]) for i, n in enumerate(names)}
    for remark in remarks(make, priors, prior, listed, pool_of, bad):
        print(remark, flush=True)
    return table(benchmark, prior, spec, data, listed, pools, steps)


def remarks(
    make: Callable[[Priors, Int[Array, ""]], Policy],
    priors: Priors,
    prior: SpacePrior,
    listed: list[Entry],
    pools: dict[str, Candidates],
    bad: Bool[np.ndarray, " r"],
) -> list[str]:
    """Return the remarks of `Remarking` policies on the runs with an unsound step (`bad`), once for each prior and
    task, with space, fold and task. The steps of a run say only that they are unsound."""
    said = []
    for f, p, task in dict.fromkeys((e.fold, e.prior_seed, e.task) for e, b in zip(listed, bad, strict=True) if b):
        policy = make(priors, jnp.asarray(prior.pair(f, p)))
        where = f"space '{prior.space}', {prior.folds[f].name}, prior {p}, task '{task}'"
        said += [
            f"{where}: {remark}" for remark in (policy.remarks(pools[task]) if isinstance(policy, Remarking) else [])
        ]
    return said


def run_bytes(make: Callable[[Priors, Int[Array, ""]], Policy], priors: Priors, pool: Candidates) -> int:
    """Return the size of one run's state in bytes, without allocating anything."""
    state = jax.eval_shape(lambda p, pool, key: make(p, jnp.asarray(0)).init(pool, key), priors, pool, stream(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def table(
    benchmark: Benchmark,
    prior: SpacePrior,
    spec: BOSpec,
    data: str,
    listed: list[Entry],
    pools: dict[str, np.ndarray],
    steps: Steps,
) -> pd.DataFrame:
    """Lay out the runs as one row per observation; regrets are relative to the best of the whole pool (hyperbo §7.3).

    `pools` has the positions of each task's candidates among its points; the table's `candidate` is the position of the
    point in the task.
    """
    runs, length = steps.candidate.shape
    tasks = [benchmark.tasks[e.task] for e in listed]
    best = np.maximum.accumulate(steps.y, axis=1)
    top = np.array([t.y[pools[t.name]].max() for t in tasks])[:, None]
    spread = np.array([np.ptp(t.y[pools[t.name]]) for t in tasks])[:, None]
    regret = top - best
    points = np.stack([pools[t.name][index] for t, index in zip(tasks, steps.candidate, strict=True)])
    metric = np.stack([t.metric[index] for t, index in zip(tasks, points, strict=True)])
    constant = {"benchmark": benchmark.name, "split": spec.split, "method": spec.method}
    constant |= {"acquisition": spec.acquisition, "space": prior.space, "data": data}
    per_run = {
        "fold": [prior.folds[e.fold].name for e in listed],
        "task": [e.task for e in listed],
        "prior_seed": [e.prior_seed for e in listed],
        "seed": [e.seed for e in listed],
    }
    per_step = {
        "candidate": points, "y": steps.y, "best_y": best, "simple_regret": regret,
        # A constant task has no spread: every point is optimal and its normalised regret is 0.
        "normalised_regret": np.where(spread > 0, regret / np.where(spread > 0, spread, 1.0), 0.0),
        "metric": metric, "mean": steps.info.mean, "std": steps.info.std,
        "noise": steps.info.noise, "ok": steps.info.ok,
        "jitter": np.nan_to_num(np.broadcast_to(steps.info.jitter, steps.y.shape)),  # NaN where nothing was predicted
    }  # fmt: skip
    columns: dict[str, np.ndarray] = {name: np.repeat(values, length) for name, values in per_run.items()}
    columns |= {name: values.reshape(-1) for name, values in per_step.items()}
    columns["iteration"] = np.tile(np.arange(1 - (length - spec.iterations), spec.iterations + 1), runs)
    columns["feasible"] = np.ones(runs * length, dtype=bool)
    return pd.DataFrame(columns).assign(**constant)
