"""A small synthetic set of inputs for the notebook templates: seeded random search of several strengths.

A test fixture only: nothing here is, or becomes, a result.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metabo import catalogue, claims, files, results
from metabo.data.pd1 import SPACE
from metabo.spaces import Parameter, SearchSpace
from metabo.tasks import Benchmark, Task, leave_group_out, leave_one_out

STRENGTH = {"rand": 1, "stbo": 2, "stboh": 3, "ablr": 4, "fsbo": 6, "h_nll": 12, "h_ekl": 9}
ONLINE = {"rand": 1, "stbo_online": 2, "stboh_online": 3, "h_nll_online": 8, "h_ekl_online": 6}
PRIORS, SEEDS, ITERATIONS, POOL = 3, 2, 25, 150
MODELS = ("simple_cnn", "max_pool_relu", "mlp")


def trajectories(tmp: Path, benchmark: str, tasks: list[str], method: str, acquisition: str, data: str) -> str:
    """Write one method's table: each query is the best of `STRENGTH[method]` random candidates."""
    rows = []
    single = method in ("rand", "stbo", "stboh")
    for k, task in enumerate(tasks):
        pool = np.random.default_rng([1, k])
        error = np.sort(pool.beta(2, 5, POOL))[::-1]
        y = -np.log(error + 1e-10)
        for prior in range(1 if single else PRIORS):
            for seed in range(SEEDS):
                rng = np.random.default_rng([2, k, prior, seed, STRENGTH[method]])
                query = rng.integers(POOL, size=(ITERATIONS, STRENGTH[method])).max(axis=1)
                best = np.maximum.accumulate(y[query])
                regret = y.max() - best
                shared = {
                    "benchmark": benchmark, "space": "s", "split": "held_out", "fold": f"without {task}", "task": task,
                    "method": method, "acquisition": acquisition, "prior_seed": prior, "seed": seed,
                    "iteration": np.arange(1, ITERATIONS + 1), "candidate": query, "y": y[query], "best_y": best,
                    "simple_regret": regret, "normalised_regret": regret / np.ptp(y), "metric": error[query],
                    "mean": np.nan, "std": np.nan, "feasible": True, "ok": True, "data": data,
                }  # fmt: skip
                rows.append(pd.DataFrame(shared))
    path = tmp / "bo" / f"{method}-{acquisition}.parquet"
    results.write(pd.concat(rows, ignore_index=True), path)
    return str(path)


def evaluation(tmp: Path, benchmark: str, tasks: list[str], method: str) -> str:
    rows = []
    for k, task in enumerate(tasks):
        for prior in range(PRIORS):
            draw = np.random.default_rng([3, k, prior, STRENGTH[method]]).normal(size=3)
            level = 300 / STRENGTH[method]
            values = {
                "test_nll": level + 20 * draw[0],
                "train_nll": level / 2 + draw[1],
                "ekl": level / 50 + 0.1 * draw[2],
            }
            for metric, value in values.items():
                rows.append([benchmark, "held_out", "s", f"without {task}", task, method, prior, metric, value])
    columns = ["benchmark", "split", "space", "fold", "task", "method", "prior_seed", "metric", "value"]
    path = tmp / "evaluation" / f"{method}.parquet"
    results.write_evaluations(pd.DataFrame(rows, columns=columns), path)
    return str(path)


def online_table(tmp: Path, benchmark: str, tasks: list[str], method: str, data: str) -> str:
    """Write one method's table of online tuning; a quarter of its queries diverge, all of one task's for one method."""
    frames = []
    for k, task in enumerate(tasks):
        for seed in range(PRIORS):
            rng = np.random.default_rng([4, k, seed, ONLINE[method]])
            metric = rng.beta(2, 5, (ITERATIONS, ONLINE[method])).min(axis=1)
            feasible = rng.random(ITERATIONS) > (1 if (k, method) == (1, "stboh_online") else 0.25)
            metric = np.where(feasible, metric, np.nan)
            points = [json.dumps(list(x)) for x in rng.random((ITERATIONS, 4))]
            shared = {
                "benchmark": benchmark, "split": "others", "task": task, "method": method,
                "acquisition": catalogue.trajectory(method)[1], "prior_seed": 0, "seed": seed,
                "iteration": np.arange(1, ITERATIONS + 1), "x": points,
                "y": -np.log(metric), "metric": metric, "best_metric": np.fmin.accumulate(metric),
                "metric_name": "ce_loss" if k == 0 else "error_rate", "feasible": feasible,
                "reason": np.where(feasible, "", "raised: MemoryError: out of memory"), "mean": 0.0, "std": 1.0,
                "ok": True, "data": data,
            }  # fmt: skip
            frames.append(pd.DataFrame(shared))
    path = tmp / "online" / f"{method}.parquet"
    results.write_online(pd.concat(frames, ignore_index=True), path)
    return str(path)


def names(benchmark: str) -> list[str]:
    if benchmark == "pd1":
        return list(pd.read_csv(Path(claims.__file__).parent / "pd1_tasks.csv", comment="#")["task"])
    if benchmark == "pd1_mini":
        return [f"{d}_{m},{d},family,{m},{b}" for d in ("digits", "mnist", "text") for m in MODELS for b in (32, 256)]
    return [f"s/data set {i}" if benchmark.startswith("hpob") else f"task {i}" for i in range(5)]


def data_file(path: Path, benchmark: str) -> None:
    """Save a benchmark with 40 inputs that all tasks share (but those that diverged) and 20 of each task's own."""
    space = SPACE if benchmark.startswith("pd1") else SearchSpace("s", (Parameter("a", "linear", 0.0, 1.0),) * 2)
    rng, tasks = np.random.default_rng(5), {}
    common, slope = rng.random((40, space.dim)), rng.normal(size=space.dim)
    for name in names(benchmark):
        x = np.concatenate([common, rng.random((20, space.dim))])
        y = x @ (slope + 0.5 * rng.normal(size=space.dim))
        lost = rng.random(len(x)) < 0.2
        group = name.split(",")[1] if "," in name else name
        rows = np.flatnonzero(~lost)
        tasks[name] = Task(name, space.name, group, x[rows], y[rows], np.exp(-y[rows]), rows, x[lost])
    splits = {"held_out": leave_group_out(tasks), "others": leave_one_out(tasks, names(benchmark)[:4])}
    lines = [{"name": "tasks", "expected": len(tasks), "found": len(tasks), "differs": False}]
    notes = {"inputs": "unit", "counts": lines, "flags": ["power: 1 of 60 points a hair outside [0.1, 2.0]"]}
    Benchmark(benchmark, {space.name: space}, tasks, (), splits, notes=notes).save(path)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Return a function (benchmark, artefact) -> notebook parameters, as the workflow would give them."""
    made = {}

    def build(benchmark: str) -> dict:
        if benchmark not in made:
            tmp = tmp_path_factory.mktemp(benchmark)
            tasks = names(benchmark)[:6]
            data_file(tmp / "data.npz", benchmark)
            data = files.digest(tmp / "data.npz")[:12]
            pairs = [catalogue.trajectory(m) for m in STRENGTH]
            made[benchmark] = {
                "tmp": tmp,
                "data": str(tmp / "data.npz"),
                "trajectories": {m: trajectories(tmp, benchmark, tasks, m, a, data) for m, a in pairs},
                "evaluations": {m: evaluation(tmp, benchmark, tasks, m) for m in ("ablr", "fsbo", "h_nll", "h_ekl")},
                "online": {m: online_table(tmp, benchmark, tasks, m, data) for m in ONLINE},
            }
        return made[benchmark]

    def parameters(id: str, entry: dict, benchmark: str, out: Path) -> dict:
        made = build(benchmark)
        wanted = entry.get("inputs", {})
        tables = {key: [made[key][m] for m in methods] for key, methods in wanted.items() if key != "split"}
        return {
            "artefact": id, "title": entry["title"], "caption": entry["caption"], "benchmark": benchmark,
            "data": made["data"], "out": str(out), **({"split": wanted["split"]} if wanted else {}), **tables,
            **entry.get("parameters", {}),
        }  # fmt: skip

    return parameters
