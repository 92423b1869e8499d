"""Cases of checks of cm-BO, as in `cases_bo`; methods of HyperBO stand in for those of cm-BO."""

import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from tests.papers.engine.claims.made import bo, either, numbers, over


def panels(good, **last):
    """Curves in one panel that fall from 1 at iteration 10 to these last values at 50."""
    rows = []
    for method, end in last.items():
        for t in range(1, 51):
            rows.append({"panel": "ei", "method": f"{method}-ei", "iteration": t, "mean": 1 - (1 - end) * t / 50})
    return [{**row, "low": row["mean"] - 0.01, "high": row["mean"] + 0.01} for row in rows]


def banded(good, table, levels):
    keys = {"group": "a", "acquisition": "pooled"}
    return numbers(
        keys=["iteration"],
        **{
            table: [
                {**keys, "method": method, "iteration": t, "mean": v, "low": v - 0.05, "high": v + 0.05}
                for method, v in levels.items()
                for t in (30, 40, 50)
            ]
        },
    )


def growth(slope, tasks):
    return numbers(
        growth=[
            {"kind": "query", "measure": "cm_jef_jef", "axis": "tasks", "slope": slope},
            {"kind": "query", "measure": "rgpe", "axis": "tasks", "slope": tasks},
        ]
    )


def times(good):
    """Times of 2 and 6 clusters: W2 grows to the limit or beyond it, Jeffreys is noisy in between."""
    row = {"kind": "query_distance", "tasks": 0, "locations": 300}
    seconds = {("wasserstein", 6): either(good, 0.125, 0.2), ("wasserstein", 2): 0.1, ("wasserstein", 4): 9.0}
    seconds |= {("jeffreys", 2): 0.02, ("jeffreys", 6): 0.04}
    rows = [{**row, "measure": m, "clusters": c, "seconds": s} for (m, c), s in seconds.items()]
    return numbers(keys=["tasks", "clusters", "locations"], time=[*rows, {**rows[0], "kind": "query", "seconds": 99.0}])


def lost(good, w2=None):
    """Distances that were lost; those of another kernel and after jitter would turn the verdict."""
    counts = {"jeffreys": 5, "wasserstein": either(good, 0, 7) if w2 is None else w2}
    rows = []
    for kernel, jitter, turned in (("plain", 0, False), ("product", 0, False), ("smooth", 0, True), ("plain", 1, True)):
        for measure, count in counts.items():
            row = {"kernel": kernel, "measure": measure, "locations": 100, "jitter": jitter, "of": 20, "error": 0.5}
            rows.append({**row, "lost": 9 - count if turned else count})
    ratios = {
        "claim": "B12",
        "comparison": "iteration of k-means, W2 over Jeffreys",
        "low": 1.5,
        "high": 5.0,
        "holds": 1.0,
    }
    return numbers(keys=["locations", "jitter"], stability=rows, claim=[{**ratios, "value": 2.0}])


def harm(level, repetitions=4, noise=0.01):
    """Last regrets on two targets, a GP (0.3) beside two methods; repetitions differ, those of the GP among them."""
    ends = {"stbo": 0.3, "stbo-ei": 0.3, "h_nll": 0.1, "ablr": level, "ablr-ei": level}
    rows = []
    for method, end in ends.items():
        for task, seed in ((task, seed) for task in "ab" for seed in range(repetitions)):
            row = {"space": "s", "task": task, "fold": "f", "method": method, "prior_seed": 0, "seed": seed}
            own = noise * (-1) ** seed if method.startswith("stbo") else 0.0
            rows.append({**row, "iteration": 1, "normalised_regret": end + own, "y": 0.0, "metric": 0.0})
    return Evidence("cmbo_mini", {"trajectories": lambda: pd.DataFrame(rows)}, {"regret": "normalised_regret"})


def areas(good):
    gap = either(good, -0.2, 0.1)
    row = {"reference": "rand-ei", "method": "h_nll-ei", "panel": "ei", "difference": -0.1, "low": -0.2, "high": 0.0}
    return numbers(difference=[{**row, "area": gap, "area_low": gap - 0.05, "area_high": gap + 0.05, "better": 1}])


def cluster_numbers(good):
    rows = over("clusters", clusters=[1, 2, 3, 4, 5, 6], better=[0, 1, 1, 1, either(good, 1, 0), 0])
    rows = [{**row, "panel": "h_nll", "method": f"v{row['clusters']}", "last": 0.1} for row in rows]
    return numbers(keys=["clusters"], number=rows)


def spaces(good):
    row = {"space": "4796", "inputs": 3, "stated_inputs": 3, "stated_tasks": 44, "splits": 5}
    row |= {"tasks": either(good, 44, 43), "flat": 2, "targets": either(good, 22, 44)}
    return numbers("cmbo_hpob", space=[row])


CLUSTERS = {
    "as_ranged": lambda good: (
        numbers(
            claim=[
                {"claim": "B15", "comparison": "first iteration", "panel": "ei", "value": 12.0, "holds": 1.0},
                {"claim": "B15", "comparison": "first iteration", "panel": "pi", "value": 30.0, "holds": float(good)},
                {"claim": "B5", "comparison": "gain", "panel": "pi", "value": 0.5, "holds": 0.0},
            ]
        ),
        {"claim": "B15"},
    ),
    "wins_most": lambda good: (
        bo(
            {"regret": "normalised_regret"},
            h_nll=0.1,
            ablr=either(good, 0.2, 0.6),
            rand=0.5,
            fsbo=either(good, 0.4, 0.05),
        ),
        {"variants": ["h_nll", "ablr"], "others": ["fsbo", "rand"]},
    ),
    "larger_area": lambda good: (areas(good), {"method": "rand", "than": ["h_nll"]}),
    "small_gain": lambda good: (
        numbers(keys=["iteration"], curve=panels(good, h_nll=either(good, 0.95, 0.5), ablr=0.1, fsbo=0.2)),
        {"method": "h_nll", "variants": ["ablr", "fsbo"], "start": 20, "most": 0.1},
    ),
    "best_areas": lambda good: (
        numbers(keys=["iteration"], curve=panels(good, h_nll=0.1, ablr=either(good, 0.2, 0.5), fsbo=0.4)),
        {"methods": ["ablr", "h_nll"], "among": ["h_nll", "ablr", "fsbo"]},
    ),
    "falls_every_decade": lambda good: (
        numbers(keys=["iteration"], curve=panels(good, h_nll=either(good, 0.5, 1.0))),
        {"methods": ["h_nll", "ablr"]},
    ),
    "best_in_band": lambda good: (
        banded(good, "rank", {"h_nll": 1.5, "ablr": either(good, 2.0, 3.5), "rand": 3.0}),
        {"table": "rank", "group": "a", "methods": ["h_nll", "ablr"], "within": [30, 50]},
    ),
    "fewer_solved": lambda good: (
        banded(good, "solved", {"h_nll": 0.4, "ablr": either(good, 0.6, 0.3)}),
        {"method": "h_nll", "than": ["ablr"], "groups": ["a", "b"]},
    ),
    "more_clusters_help": lambda good: (cluster_numbers(good), {"least": 4}),
    "index_agrees": lambda good: (
        numbers(
            correlation=[{"panel": "h_nll", "distance": "jeffreys", "spearman": either(good, 0.99, -0.3), "points": 5}]
        ),
        {},
    ),
    "run_count": lambda good: (spaces(good), {"stated": 900, "repetitions": 8}),
    "table_of_spaces": lambda good: (spaces(good), {}),
    "negative_transfer": lambda good: (
        harm(either(good, 0.4, 0.2)),
        {"single": "stbo", "meta": ["h_nll", "ablr"]},
    ),
    "more_stable": lambda good: (lost(good), {"kernels": ["plain", "product"]}),
    "grows_with_tasks": lambda good: (
        growth(0.1, either(good, 1.0, 0.3)),
        {"flat": ["cm_jef_jef"], "linear": ["rgpe"]},
    ),
    "weak_growth": lambda good: (
        times(good),
        {"kind": "query_distance", "most": {"wasserstein": 1.25, "jeffreys": 2.5}},
    ),
}
