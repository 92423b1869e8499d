"""A small synthetic set of inputs for the notebook templates: seeded random search of several strengths.

A test fixture only: nothing here is, or becomes, a result.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metabo import catalogue, claims, files, results

STRENGTH = {"rand": 1, "stbo": 2, "stboh": 3, "ablr": 4, "fsbo": 6, "h_nll": 12, "h_ekl": 9}
PRIORS, SEEDS, ITERATIONS, POOL = 3, 2, 25, 150


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


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Return a function (benchmark, artefact) -> notebook parameters, as the workflow would give them."""
    made = {}

    def build(benchmark: str) -> dict:
        if benchmark not in made:
            tmp = tmp_path_factory.mktemp(benchmark)
            names = list(pd.read_csv(Path(claims.__file__).parent / "pd1_tasks.csv", comment="#")["task"])
            tasks = names[:6] if benchmark == "pd1" else [f"task {i}" for i in range(5)]
            files.save_npz(tmp / "data.npz", {"any": np.zeros(1)})
            data = files.digest(tmp / "data.npz")[:12]
            pairs = [catalogue.trajectory(m) for m in STRENGTH]
            made[benchmark] = {
                "tmp": tmp,
                "data": str(tmp / "data.npz"),
                "trajectories": {m: trajectories(tmp, benchmark, tasks, m, a, data) for m, a in pairs},
                "evaluations": {m: evaluation(tmp, benchmark, tasks, m) for m in ("ablr", "fsbo", "h_nll", "h_ekl")},
            }
        return made[benchmark]

    def parameters(id: str, entry: dict, benchmark: str, out: Path) -> dict:
        made = build(benchmark)
        wanted = entry["inputs"]
        return {
            "artefact": id, "title": entry["title"], "caption": entry["caption"], "benchmark": benchmark,
            "split": wanted["split"], "data": made["data"], "out": str(out),
            "trajectories": [made["trajectories"][m] for m in wanted.get("trajectories", [])],
            "evaluations": [made["evaluations"][m] for m in wanted.get("evaluations", [])],
            **entry.get("parameters", {}),
        }  # fmt: skip

    return parameters
