"""Cases of checks of tables and counts, as in `cases_bo`."""

import numpy as np
import pandas as pd

from metabo.papers.engine.claims.evidence import Evidence
from tests.papers.engine.claims.made import TASKS, either, numbers, over, runs


def ranks(good, priors=10):
    """H-NLL is second of three in all repetitions, or the last."""
    shown = runs(priors=priors, h_nll=either(good, 0.2, 0.4), rand=0.3, fsbo=0.1)
    return numbers(trajectories=shown, parameters={"spaces": {"pd1_mini": ["s"]}})


def best_metrics(good):
    """H-EKL is the better one on 23 of 24 tasks, or on one."""
    lost = either(good, TASKS[:1], TASKS[1:])
    rows = [
        {"task": task, "method": m, "mean": v, "std": 0.1}
        for task in TASKS
        for m, v in (("h_ekl", 1.0), ("rand", 0.5 if task in lost else 2.0))
    ]
    shown = runs(tasks=len(TASKS), h_ekl=[3, 2, 1, 1])  # y rises as the metric falls: an error
    return numbers(best_metric=rows, trajectories=shown)


def losses(good):
    """H-EKL has the lowest loss on 22 of 24 tasks and H-NLL on one, or the other way round; FSBO on the last."""
    often, seldom = either(good, ("h_ekl", "h_nll"), ("h_nll", "h_ekl"))
    rows = [
        {"space": "s", "fold": f"f{number}", "task": task, "method": m, "prior_seed": prior, "metric": "test_nll"}
        | {"value": float(m != (often if number < 22 else seldom if number == 22 else "fsbo"))}
        for number, task in enumerate(TASKS)
        for m in ("h_ekl", "h_nll", "fsbo")
        for prior in range(2)
    ]
    return Evidence("pd1_mini", {"evaluations": lambda: pd.DataFrame(rows)})


def printed(good):
    off = either(good, 0.0, 5.0)
    rows = [
        {"task": "WMT XFormer 64", "method": m, "mean": v + off, "std": 0.01}
        for m, v in (("ablr", 33.91), ("stboh", 34.17), ("mimo", 34.27))
    ]
    return numbers("pd1", best_metric=rows)


def points(spaces, weights, priors=8):
    """Return trajectories and losses of three methods on the spaces, whose folds of one task have the weights.

    A weight is how strongly the loss of the fold's task rises with the regret.
    """
    shown, lost = [], []
    for space in spaces:
        for fold, weight in weights[space].items():
            for method, level in (("ablr", 0.3), ("fsbo", 0.2), ("h_nll", 0.1)):
                for prior in range(priors):
                    own = {"space": space, "task": f"{space}_{fold}", "fold": fold, "method": method}
                    own |= {"prior_seed": prior}
                    noise = np.cos(7 * prior) + 0.1 * np.cos(3 * len(shown))
                    regret, loss = level * (1 + 0.01 * prior), weight * (level + 0.01 * noise)
                    shown += [{**own, "seed": 0, "iteration": t, "simple_regret": regret} for t in (1, 2)]
                    lost += [{**own, "metric": m, "value": loss} for m in ("test_nll", "train_nll")]
    shown = pd.DataFrame(shown)
    shown["normalised_regret"] = shown["simple_regret"]
    return shown, pd.DataFrame(lost)


def correlated(weights, priors=8):
    """Evidence of one space, with the weights of its folds (`points`)."""
    shown, lost = points(["s"], {"s": {f"f{n}": weight for n, weight in enumerate(weights)}}, priors)
    return Evidence("pd1_mini", {"trajectories": lambda: shown, "evaluations": lambda: lost})


def pearsons(**signs):
    """Evidence of spaces with regrets and losses that rise together (1), or not (-1)."""
    shown, lost = points(signs, {space: {"a": sign, "b": 2 * sign} for space, sign in signs.items()})
    return Evidence("hpob", {"trajectories": lambda: shown, "evaluations": lambda: lost})


def mostly(good):
    return pearsons(**dict.fromkeys("abcdefghijk", 1), last=either(good, -1, 1))


def speedups(good):
    """Sixteen folds of two tasks each: H-NLL is eight times as fast on all tasks but one, or not faster but on one."""
    table = runs(tasks=32, h_nll=0.1, rand=0.5)
    table["fold"] = table["task"].str[1:].astype(int) // 2
    table["fold"] = table["fold"].astype(str)
    usual, other = either(good, (8.0, 0.0), (1.0, 8.0))
    rows = over("speedup", task=[f"t{i}" for i in range(32)], speedup=[other] + [usual] * 31)
    rows = [{**row, "comparison": "rand", "method": "h_nll", "alternative": "rand"} for row in rows]
    return numbers(speedup=rows, trajectories=table)


def crossed(good):
    row = {"method": "h_ekl", "reference": "ablr, all points", "measure": "iteration 100", "settings": 2, "higher": 0}
    ablr = either(good, 0.5, 0.05)
    shown = runs(h_ekl__crossed=0.1, h_ekl_x_ei__crossed=0.2, ablr__crossed=ablr, ablr_x_ei__crossed=ablr)
    return numbers(verdict=[{**row, "lower": either(good, 2, 0)}], trajectories=shown)


TABLES = {
    "rank_within": lambda good: (ranks(good), {"method": "h_nll", "at": 100, "last": 2}),
    "best_in_most": lambda good: (best_metrics(good), {"method": "h_ekl", "among": ["h_ekl", "rand"]}),
    "lower_more_often": lambda good: (losses(good), {"metric": "test_nll", "method": "h_ekl", "other": "h_nll"}),
    "printed_cells": lambda good: (
        printed(good),
        {"table": "best_metric", "metric": "", "printed": "tab05 error_percent"},
    ),
    "correlation": lambda good: (
        correlated([either(good, 1, -1)] * 6),
        {"comparison": "regret against test_nll", "printed": 0.8},
    ),
    "mostly_positive": lambda good: (mostly(good), {}),
    "negative_in": lambda good: (
        pearsons(**{"5636": -1, "5859": either(good, -1, 1)}),
        {"spaces": ["5636", "5859"]},
    ),
    "speedup": lambda good: (speedups(good), {"methods": ["h_nll"], "factor": 7, "over": "rand"}),
    "crossed_lower": lambda good: (crossed(good), {"reference": "ablr, all points", "measure": "iteration 100"}),
    "as_stated": lambda good: (
        numbers(
            "pd1",
            count=over(
                "count",
                count=["tasks", "test tasks", "x: inputs"],
                stated=[24, 23, 2],
                found=[24, either(good, 23, 22), 2],
                differs=[0, either(good, 0, 1), 0],
            ),
        ),
        {"counts": ["test tasks", "*: inputs", "tas*"]},
    ),
    "any_as_stated": lambda good: (
        numbers(
            "pd1",
            count=over(
                "count",
                count=["matched, nan", "matched, status"],
                stated=[242, 242],
                found=[250, either(good, 242, 251)],
                differs=[1, either(good, 0, 1)],
            ),
        ),
        {"beginning": "matched"},
    ),
    "inside_box": lambda good: (
        numbers(range=over("range", parameter=["a", "b"], outside=[0, either(good, 0, 1)], points=[9, 9])),
        {},
    ),
    "few_tasks": lambda good: (
        numbers(
            task=over("task", task=[f"t{i}" for i in range(either(good, 24, 120))], points=[1] * either(good, 24, 120))
        ),
        {"most": 101},
    ),
    "counts_at_most": lambda good: (
        numbers(
            "hpob",
            count=over(
                "count",
                count=["a: training tasks", "b: training tasks", "evaluations"],
                stated=[float("nan")] * 3,
                found=[54, either(good, 101, 102), 9000],
                differs=[0, 0, 0],
            ),
        ),
        {"ending": ": training tasks", "most": 101},
    ),
    "super_dataset": lambda good: (
        numbers(
            "super",
            keys=["index"],
            space=over(
                "space",
                space=["a", "b", "new"],
                train=[3, 3, 19],
                test=[1, 1, either(good, 4, 5)],
                points=[1, 1, 1],
                unseen=[0, 0, 1],
            ),
            context=[
                {"space": s, "index": i, "discrete": 0} for s, d in (("a", 2), ("b", 3), ("new", 4)) for i in range(d)
            ],
        ),
        {"seen": 2, "unseen": 1, "train": 19, "test": 4, "dims": [2, 3]},
    ),
}
