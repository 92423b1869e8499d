"""Online tuning of a benchmark's tasks: the list of runs, and the table of their results (`metabo.records.results`)."""

import json
import time
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from metabo.bo.ask_tell import OnlineMethod, Step, Target, begin, run
from metabo.bo.priors import SpacePrior
from metabo.bo.soundness import UNSOUND_SHARE
from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.errors import ConfigError, NumericsError
from metabo.plan.specs import OnlineSpec
from metabo.records.results import ONLINE_RUN
from metabo.tasks.benchmark import Benchmark


def tune(
    benchmark: Benchmark,
    prior: SpacePrior,
    method: OnlineMethod,
    spec: OnlineSpec,
    data: str,
    target: Callable[[str], Target],
    raw: Callable[[np.ndarray], np.ndarray],
) -> pd.DataFrame:
    """Tune every test task of the prior's folds, `spec.seeds` times; run s starts from prior seed s mod seeds.

    `data`: checksum of the benchmark's file. `target` makes a task's target (once per task); `raw` maps unit-cube rows
    (n, d) to raw points. Raises ConfigError for a space whose parameters are not all numeric and scaled to the unit
    interval, and for a benchmark whose rows count diverged evaluations as successes. Raises NumericsError for too many
    unsound steps.
    """
    require_unit_cube(benchmark, prior.space)
    require_failures_apart(benchmark)
    tables = []
    tasks = [(f, task) for f, fold in enumerate(prior.folds) for task in fold.test]
    for f, task in progress.loop(tasks, "tasks"):
        goal = target(task)
        for seed in progress.loop(range(spec.seeds), "runs"):
            prior_seed = seed % prior.seeds
            started = time.perf_counter()
            name = f"{task}, seed {seed}"
            steps = run(
                method, begin(method, f, prior_seed), goal, lambda x: raw(x[None])[0], spec.iterations,
                stream(spec.seed, "online", task, seed),
                lambda line, name=name: print(f"{name}, {line}", flush=True),
            )  # fmt: skip
            ids = {"task": task, "prior_seed": prior_seed, "seed": seed, "metric_name": goal.metric}
            tables.append(table(benchmark.name, spec, data, ids, steps))
            print(f"{name}: {summary(tables[-1])}, {time.perf_counter() - started:.1f} s", flush=True)
    joined = pd.concat(tables, ignore_index=True)
    require_sound(joined)
    return joined


def require_unit_cube(benchmark: Benchmark, space: str) -> None:
    """Raise ConfigError unless the space is a unit cube of numeric parameters."""
    other = [p.name for p in benchmark.spaces[space].parameters if p.kind not in ("linear", "log")]
    if other:
        raise ConfigError(f"space '{space}': online tuning searches a continuous box, but {other} are not numeric")
    if benchmark.facts.inputs != "unit":
        raise ConfigError(
            f"benchmark '{benchmark.name}': online tuning searches the unit cube, but its inputs are "
            f"'{benchmark.facts.inputs}'; set config key 'benchmarks.{benchmark.name}.inputs' to unit"
        )


def require_failures_apart(benchmark: Benchmark) -> None:
    """Raise ConfigError if the benchmark was loaded with diverged evaluations among the successful ones."""
    rule = benchmark.facts.divergence
    if rule not in (None, "status"):
        raise ConfigError(
            f"benchmark '{benchmark.name}': online, a diverged evaluation is infeasible, but the training rows count "
            f"those with a value as successes (rule '{rule}'); set config key "
            f"'benchmarks.{benchmark.name}.divergence' to status"
        )


def table(name: str, spec: OnlineSpec, data: str, ids: Mapping[str, str | int], steps: list[Step]) -> pd.DataFrame:
    """Lay out one run as one row per iteration. The metric is minimised, and its best value is NaN until a step is
    feasible."""
    metric = np.array([step.outcome.metric for step in steps])
    columns: dict[str, object] = {
        "benchmark": name, "split": spec.split, "method": spec.method, "acquisition": spec.acquisition, "data": data,
        **ids,
        "iteration": np.arange(1, len(steps) + 1),
        "x": [json.dumps([float(v) for v in step.suggestion.x]) for step in steps],
        "y": np.array([step.outcome.y for step in steps]), "metric": metric,
        "best_metric": np.fmin.accumulate(metric), "feasible": ~np.isnan(metric),
        "reason": [step.outcome.reason for step in steps],
        "mean": np.array([step.suggestion.mean for step in steps]),
        "std": np.array([step.suggestion.std for step in steps]),
        "jitter": np.array([step.suggestion.jitter for step in steps]),
        "ok": np.array([step.suggestion.ok for step in steps]),
    }  # fmt: skip
    return pd.DataFrame(columns)


def summary(run: pd.DataFrame) -> str:
    """Return one line on how a run ended."""
    best, lost = run["best_metric"].iloc[-1], int((~run["feasible"]).sum())
    return f"best {run['metric_name'].iloc[0]} {best:.4g} after {len(run)} evaluations, {lost} infeasible"


def require_sound(table: pd.DataFrame) -> None:
    """Raise NumericsError if more than 5 % of the steps had no finite fit or posterior."""
    bad = table[~table["ok"]]
    if len(bad) > UNSOUND_SHARE * len(table):
        first = bad.iloc[0][[*ONLINE_RUN, "iteration"]].to_dict()
        raise NumericsError(
            f"{len(bad)} of {len(table)} online steps have no finite posterior or fit, the first: {first}; change "
            f"learning rate or steps (config key 'methods.{first['method']}')"
        )
