"""Cases of checks of cm-BO, as in `cases_bo`; methods of HyperBO stand in for those of cm-BO where names do not matter.

All runs are with PI but where a name says otherwise.
"""

import numpy as np
import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from tests.papers.engine.claims.made import bo, either, numbers, over, runs

NORMALISED = {"regret": "normalised_regret"}
VARIANTS = ("cm_jef_jef", "cm_wss_wss", "cm_jef_wss", "cm_wss_jef", "cm_wss_bary")


def regrets(last=4, **levels):
    return bo(NORMALISED, last=last, **levels)


def decaying(rate, last=50):
    """A regret that falls by the same share in every iteration."""
    return 0.9 * (1 - rate) ** np.arange(last)


def grouped(ends, spaces=("rpart_3", "rpart_6")):
    """Runs on spaces of cmbo_mini, one of each group of Figure 2; the regrets of a few targets differ."""
    one = runs(50, column="normalised_regret", **ends)
    parts = [one.assign(space=space, task=space + one["task"], fold=space + one["fold"]) for space in spaces]
    table = pd.concat(parts)
    return Evidence("cmbo_mini", {"trajectories": lambda: table}, NORMALISED)


def overtaking(good):
    """Three of five variants stay below HyperBO from the start, or from the 27th iteration on."""
    late = np.where(np.arange(1, 31) < 27, 0.5, 0.1)
    levels = {f"{m}_x_pi": either(good or i > 2, 0.1, late) for i, m in enumerate(VARIANTS)}
    return regrets(30, hyperbo=0.3, **levels)


def queries(flat, growing, noise=0.01, rounds=5):
    """Times of a query of two methods against the number of tasks, with these slopes, in rounds that differ by a factor
    and a little in their slopes."""
    rows = []
    for method, slope in (("cm_jef_jef", flat), ("rgpe", growing)):
        for tasks, turn in ((tasks, turn) for tasks in (10, 20, 40, 60) for turn in range(rounds)):
            seconds = (1 + turn) * tasks ** (slope + noise * (-1) ** turn)
            row = {"kind": "query", "measure": method, "tasks": tasks, "clusters": 4, "repetition": turn}
            rows.append({**row, "seconds": seconds})
    return numbers(keys=["tasks", "clusters", "repetition"], time=rows)


def times(good, middle=1.0):
    """Times of 2, 4 and 6 clusters: W2 grows a little or twofold, Jeffreys twofold; `middle` is off the line."""
    row = {"kind": "query_distance", "tasks": 0, "locations": 300}
    rows = [
        {**row, "measure": measure, "clusters": c, "seconds": (c / 2) ** (np.log(growth) / np.log(3)) * more}
        for measure, growth in (("wasserstein", either(good, 1.1, 2.0)), ("jeffreys", 2.0))
        for c, more in ((6, 1.0), (2, 1.0), (4, middle))
    ]
    return numbers(keys=["tasks", "clusters", "locations"], time=[*rows, {**rows[0], "kind": "query", "seconds": 99.0}])


def changed(good, less=None, ratio=2.0, pairs=40):
    """Changes of distances by rounding: W2 changes less in the first `less` of 20 independent pairs; those of another
    kernel, after jitter, and of the pairs that share a Gaussian with these would turn the verdict."""
    less = either(good, 20, 0) if less is None else less
    rows = []
    for kernel, jitter, turned in (("plain", 0, False), ("product", 0, False), ("smooth", 0, True), ("plain", 1, True)):
        for pair in range(pairs):
            first = (pair // 2 < less) ^ turned ^ bool(pair % 2)
            row = {"kernel": kernel, "locations": 100, "jitter": jitter, "pair": pair, "jeffreys": 1e-6}
            rows.append({**row, "wasserstein": 1e-8 if first else 1e-4})
    dearer = {"claim": "B12, ratio", "comparison": "iteration of k-means, W2 over Jeffreys", "low": 1.5, "high": 5.0}
    dearer |= {"value": ratio, "least": ratio / 1.2, "most": ratio * 1.2, "units": 5, "holds": 1.0}
    return numbers(keys=["locations", "jitter", "pair"], changes=rows, claim=[dearer])


def fits(good, of=20):
    """Iterations of fits of k-means: nine in most of them with each distance, or ten with W2."""
    rows = [
        {"measure": measure, "repetition": run, "iterations": either(good or measure == "jeffreys", 9, 10)}
        for measure in ("jeffreys", "wasserstein")
        for run in range(of)
    ]
    return numbers(keys=["repetition"], iterations=rows)


def costs(good, least=12.0):
    """Ratios with their intervals; those of another claim would turn the verdict."""
    rows = over(
        "claim",
        claim=["B13", "B13", "B12"],
        comparison=["distances of a query", "another", "iteration"],
        value=[15.0, either(good, 20.0, 2.0), 0.1],
        low=[5.0, 5.0, 1.5],
        high=[30.0, np.inf, 5.0],
        least=[least, either(good, 18.0, 1.5), 0.1],
        most=[18.0, either(good, 22.0, 2.5), 0.1],
        units=[5, 5, 5],
        holds=[1.0, float(good), 0.0],
    )
    return numbers(claim=rows)


def harm(level, repetitions=8, high=0):
    """Last regrets on two targets: a GP (0.3, and 9 in the `high` first repetitions) beside two methods, one of which
    was not run with all acquisitions. On the second target the GP is last."""
    ends = {"stbo": 0.3, "stbo-ei": 0.3, "h_nll": 0.1, "ablr": level, "ablr-ei": level}
    rows = []
    for method, end in ends.items():
        for task, seed in ((task, seed) for task in "ab" for seed in range(repetitions)):
            row = {"space": "s", "task": task, "fold": "f", "method": method, "prior_seed": 0, "seed": seed}
            single = method.startswith("stbo")
            own = 9.0 if single and (seed < high or task == "b") else end
            rows.append({**row, "iteration": 1, "normalised_regret": own, "y": 0.0, "metric": 0.0})
    return Evidence("cmbo_mini", {"trajectories": lambda: pd.DataFrame(rows)}, NORMALISED)


def spaces(good):
    row = {"space": "4796", "inputs": 3, "stated_inputs": 3, "stated_tasks": 44, "splits": 3}
    row |= {"tasks": either(good, 44, 43), "flat": 2, "targets": 5}
    return numbers("cmbo_hpob", space=[row])


CLUSTERS = {
    "as_ranged": lambda good: (costs(good), {"claim": "B13"}),
    "overtakes_early": lambda good: (overtaking(good), {"method": "hyperbo", "variants": list(VARIANTS), "before": 25}),
    "wins_most": lambda good: (
        regrets(h_nll=0.1, ablr=either(good, 0.2, 0.6), rand=0.5, fsbo=either(good, 0.4, 0.05)),
        {"variants": ["h_nll", "ablr"], "others": ["fsbo", "rand"]},
    ),
    "behind_most": lambda good: (
        regrets(rand=0.5, h_nll=0.1, ablr=either(good, 0.2, 0.7), fsbo=0.8),
        {"methods": ["rand"], "than": ["h_nll", "ablr", "fsbo"], "at": ["area"]},
    ),
    "ahead_in_most": lambda good: (
        grouped({"h_nll": 0.001, "ablr": either(good, 0.002, 0.4), "rand": 0.3}),
        {"variants": ["h_nll", "ablr"], "others": ["rand"], "groups": ["a", "b"]},
    ),
    "small_gain": lambda good: (
        regrets(50, h_nll=0.3 * decaying(either(good, 0.001, 0.1)), ablr=decaying(0.02), fsbo=decaying(0.015)),
        {"method": "h_nll", "variants": ["ablr", "fsbo"], "start": 20, "limit": 0.1},
    ),
    "best_areas": lambda good: (
        regrets(h_nll=0.1, ablr=either(good, 0.2, 0.5), fsbo=0.4),
        {"methods": ["ablr", "h_nll"], "among": ["h_nll", "ablr", "fsbo"]},
    ),
    "falls_every_decade": lambda good: (
        regrets(50, h_nll=decaying(either(good, 0.05, 0.0001)), ablr=decaying(0.1), fsbo=decaying(0.0001)),
        {"methods": ["h_nll", "ablr", "fsbo"]},
    ),
    "best_in_band": lambda good: (
        grouped({"h_nll": 0.1, "ablr": either(good, 0.2, 0.4), "rand": 0.3}),
        {"table": "rank", "group": "b", "methods": ["h_nll", "ablr"], "within": [30, 50]},
    ),
    "fewer_solved": lambda good: (
        grouped({"h_nll": 0.1, "ablr": either(good, 0.001, 0.1), "fsbo": 0.001} | either(good, {}, {"h_nll": 0.001})),
        {"method": "h_nll", "than": ["ablr", "fsbo"], "groups": ["a", "b"]},
    ),
    "more_clusters_help": lambda good: (
        regrets(**{f"cm_wss_{n}": 0.5 if n == 1 else either(good, 0.1, 0.9) if n < 6 else 0.6 for n in range(1, 7)}),
        {"least": 4},
    ),
    "index_agrees": lambda good: (
        numbers(
            correlation=[{"panel": "h_nll", "distance": "jeffreys", "spearman": either(good, 0.99, -0.99), "points": 6}]
        ),
        {},
    ),
    "run_count": lambda good: (
        spaces(True),
        {"stated": either(good, 300, 900), "factors": {"repetitions": 8, "splits": 5}, "share": 0.15},
    ),
    "table_of_spaces": lambda good: (spaces(good), {}),
    "negative_transfer": lambda good: (
        harm(either(good, 0.6, 0.2)),
        {"single": "stbo", "meta": ["h_nll", "ablr"]},
    ),
    "more_stable": lambda good: (changed(good), {"kernels": ["plain", "product"]}),
    "few_iterations": lambda good: (fits(good), {"fewer": 10}),
    "grows_with_tasks": lambda good: (
        queries(0.02, either(good, 1.0, 0.1)),
        {"flat": ["cm_jef_jef"], "growing": ["rgpe"]},
    ),
    "weak_growth": lambda good: (
        times(good),
        {"kind": "query_distance", "most": {"wasserstein": 1.25, "jeffreys": 2.5}},
    ),
}
