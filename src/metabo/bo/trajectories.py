"""Offline BO on a benchmark: which runs there are, and the table of what they did (schema: `metabo.results`)."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import PyTree

from metabo import registry, results
from metabo.bo.loop import Runs, Steps, run_all
from metabo.bo.policy import Candidates
from metabo.errors import ConfigError, NumericsError
from metabo.keys import stream
from metabo.memory import fitting
from metabo.priors import SpacePrior
from metabo.tasks import Benchmark, stack

UNSOUND_SHARE = 0.05
"""More unsound steps than this share fail the job: its regrets would be those of a guess."""


@dataclass(frozen=True)
class Entry:
    """One BO run: which task (of which fold), prior seed and BO seed."""

    fold: int
    task: str
    prior_seed: int
    seed: int


def entries(benchmark: Benchmark, prior: SpacePrior, seeds: int) -> list[Entry]:
    """List the runs of one space. Raises ConfigError when a task has fewer given initialisations than BO seeds."""
    listed = []
    for f, fold in enumerate(prior.folds):
        for task in fold.test:
            given = benchmark.initial.get(task)
            if given is not None and len(given) < seeds:
                raise ConfigError(
                    f"config key 'bo.seeds' is {seeds}, but task '{task}' of benchmark '{benchmark.name}' has only "
                    f"{len(given)} initialisations; set bo.seeds to at most {len(given)}"
                )
            listed += [Entry(f, task, p, s) for p in range(prior.seeds) for s in range(seeds)]
    return listed


def optimise(benchmark: Benchmark, prior: SpacePrior, spec: dict[str, Any], chunk: int | None) -> pd.DataFrame:
    """Run BO on every test task of one space, for every prior and seed, and return the trajectory table.

    At most `chunk` runs (None: all), and no more than fit in memory, go side by side; this changes speed, and
    results only by rounding. Raises ConfigError if the memory is too small for one run.
    """
    module = registry.policy_module(spec["method"])
    listed = entries(benchmark, prior, spec["seeds"])
    names = list(dict.fromkeys(entry.task for entry in listed))
    tasks = [benchmark.tasks[name] for name in names]
    none = np.zeros(0, dtype=np.int64)
    starts = [benchmark.initial[e.task][e.seed] if e.task in benchmark.initial else none for e in listed]
    runs = Runs(
        policy=jnp.asarray([prior.pair(e.fold, e.prior_seed) for e in listed]),
        task=jnp.asarray([names.index(e.task) for e in listed]),
        initial=jnp.asarray(np.stack(starts)),
        key=jnp.stack([stream(spec["seed"], "bo", e.task, e.prior_seed, e.seed) for e in listed]),
    )
    budget = spec["iterations"] + runs.initial.shape[1]
    batch = stack([t.x for t in tasks], [t.y for t in tasks])
    policies = module.policy(prior.params, spec["policy"], spec["acquisition"], budget)
    where = f"benchmark '{benchmark.name}', method '{spec['method']}', BO with {batch.x.shape[1]} candidates"
    need = run_bytes(policies, Candidates(batch.x[0], batch.mask[0]))
    chunk = fitting(min(chunk or len(listed), len(listed)), need, where, "lower bo.iterations")
    steps = run_all(policies, *map(jnp.asarray, batch), runs, spec["iterations"], chunk)
    return table(benchmark, prior, spec, listed, jax.tree.map(np.asarray, steps))


def unsound(table: pd.DataFrame) -> int:
    """Return the number of steps that were not numerically sound. Raises NumericsError if they exceed 5 %."""
    bad = table[~table["ok"]]
    if len(bad) > UNSOUND_SHARE * len(table):
        first = bad.iloc[0][[*results.RUN, "iteration"]].to_dict()
        raise NumericsError(
            f"{len(bad)} of {len(table)} steps have no finite posterior or fit, the first: {first}; look at the "
            f"sidecar of its priors, and change learning rate or steps (config key 'methods.{first['method']}')"
        )
    return len(bad)


def run_bytes(policies: PyTree, pool: Candidates) -> int:
    """Return the size of one run's state (`policies` has a leading axis); nothing is allocated to find out."""
    one = jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, policies)
    state = jax.eval_shape(lambda pool, key: one.init(pool, key), pool, stream(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def table(
    benchmark: Benchmark, prior: SpacePrior, spec: dict[str, Any], listed: list[Entry], steps: Steps
) -> pd.DataFrame:
    """Lay out the runs as one row per observation; regrets are against the best of the whole pool (hyperbo §7.3)."""
    runs, length = steps.index.shape
    tasks = [benchmark.tasks[e.task] for e in listed]
    best = np.maximum.accumulate(steps.y, axis=1)
    top = np.array([t.y.max() for t in tasks])[:, None]
    spread = np.array([np.ptp(t.y) for t in tasks])[:, None]
    regret = top - best
    metric = np.stack([t.metric[index] for t, index in zip(tasks, steps.index, strict=True)])
    constant = {"benchmark": benchmark.name, "split": spec["split"], "method": spec["method"]}
    constant |= {"acquisition": spec["acquisition"], "space": prior.space, "data": spec["data"]}
    per_run = {
        "fold": [prior.folds[e.fold].name for e in listed],
        "task": [e.task for e in listed],
        "prior_seed": [e.prior_seed for e in listed],
        "seed": [e.seed for e in listed],
    }
    per_step = {
        "candidate": steps.index, "y": steps.y, "best_y": best, "simple_regret": regret,
        # A constant task has no spread: every point is optimal and its normalised regret is 0.
        "normalised_regret": np.where(spread > 0, regret / np.where(spread > 0, spread, 1.0), 0.0),
        "metric": metric, "mean": steps.info.mean, "std": steps.info.std, "ok": steps.info.ok,
    }  # fmt: skip
    columns: dict[str, Any] = {name: np.repeat(values, length) for name, values in per_run.items()}
    columns |= {name: values.reshape(-1) for name, values in per_step.items()}
    columns["iteration"] = np.tile(np.arange(1 - (length - spec["iterations"]), spec["iterations"] + 1), runs)
    columns["feasible"] = np.ones(runs * length, dtype=bool)
    return pd.DataFrame(columns).assign(**constant)
