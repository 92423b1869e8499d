"""Cases of checks of tables and counts, as in `cases_bo`."""

from tests.papers.engine.claims.made import HALVES, either, numbers, over, runs


def ranks(good):
    rows = over("rank", method=["h_nll", "rand", "fsbo"], mean=[either(good, 2.0, 3.0), 2.5, 1.0])
    rows = [{**row, "panel": panel, "iteration": t} for row in rows for panel in "AB" for t in (1, 2)]
    return numbers(keys=["iteration"], rank=rows)


def best_metrics(good):
    values = {"h_ekl": [1.0, 1.0, 1.0, 9.0], "rand": [2.0, 2.0, either(good, 2.0, 0.5), 1.0]}
    rows = [
        {"task": task, "method": m, "mean": v, "std": 0.1}
        for m, own in values.items()
        for task, v in zip(HALVES, own, strict=True)
    ]
    return numbers(best_metric=rows, trajectories=runs(h_ekl=[3, 2, 1, 1]))  # y rises as the metric falls: an error


def losses(good):
    lows = {"test_nll": {"h_ekl": [1, 1, 1, 5], "h_nll": [2, 2, 2, either(good, 4, 6)], "fsbo": [3, 3, 3, 3]}}
    if not good:
        lows["test_nll"]["h_ekl"] = [5, 5, 5, 5]
    return numbers(
        loss=[
            {"metric": metric, "task": task, "method": m, "mean": float(v)}
            for metric, methods in lows.items()
            for m, own in methods.items()
            for task, v in zip(HALVES, own, strict=True)
        ]
    )


def printed(good):
    off = either(good, 0.0, 5.0)
    rows = [
        {"task": "WMT XFormer 64", "method": m, "mean": v + off, "std": 0.01}
        for m, v in (("ablr", 33.91), ("stboh", 34.17), ("mimo", 34.27))
    ]
    return numbers("pd1", best_metric=rows)


def pearsons(good, **values):
    return numbers(
        pearson=[{"space": s, "r": r, "low": r - 0.5, "high": r + 0.2, "points": 9} for s, r in values.items()]
    )


def speedups(good):
    """Two folds of two tasks each."""
    table = runs(tasks=4, h_nll=0.1, rand=0.5)
    table["fold"] = table["task"].map({"t0": "a", "t1": "a", "t2": "b", "t3": "b"})
    rows = over(
        "speedup", task=["t0", "t1", "t2", "t3"], speedup=[8.0, 7.0, 9.0, 0.0] if good else [8.0, 7.0, 1.0, 0.0]
    )
    rows = [{**row, "comparison": "rand", "method": "h_nll", "alternative": "rand"} for row in rows]
    return numbers(speedup=rows, trajectories=table)


def crossed(good):
    row = {"method": "h_ekl", "reference": "ablr, all points", "measure": "iteration 100", "settings": 12, "higher": 0}
    return numbers(verdict=[{**row, "lower": either(good, 11, 6)}])


TABLES = {
    "rank_within": lambda good: (ranks(good), {"method": "h_nll", "at": 100, "last": 2}),
    "best_in_most": lambda good: (best_metrics(good), {"method": "h_ekl", "among": ["h_ekl", "rand", "maf"]}),
    "lowest_more_often": lambda good: (losses(good), {"metric": "test_nll", "method": "h_ekl", "other": "h_nll"}),
    "printed_cells": lambda good: (
        printed(good),
        {"table": "best_metric", "metric": "", "printed": "tab05 error_percent"},
    ),
    "correlation": lambda good: (
        numbers(
            pearson=[
                {
                    "comparison": "a against b",
                    "r": either(good, 0.7, -0.2),
                    "low": either(good, 0.2, -0.7),
                    "high": 0.9,
                    "n": 12,
                }
            ]
        ),
        {"comparison": "a against b", "printed": 0.8},
    ),
    "mostly_positive": lambda good: (pearsons(good, a=0.5, b=0.1, c=either(good, -0.2, 0.2)), {}),
    "negative_in": lambda good: (
        pearsons(good, **{"5636": -0.5, "5859": either(good, -0.1, 0.1)}),
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
