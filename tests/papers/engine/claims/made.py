"""Made evidence: tables of data.csv, and BO runs with chosen regrets, so that a check's answer is known before."""

import numpy as np
import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.papers.engine.claims import checks, sheet
from metabo.papers.engine.claims.evidence import Evidence


def numbers(benchmark="pd1_mini", parameters=None, trajectories=None, keys=(), sources=None, **tables) -> Evidence:
    """Return evidence whose data.csv holds the tables (lists of rows), written as the notebooks write them.

    Columns of words are keys, and the columns of numbers in `keys`. `sources`: other kinds of tables, by kind.
    """
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    words = [column for frame in frames.values() for column in frame if frame[column].dtype == object]
    data = artefacts.numbers(frames, list(dict.fromkeys([*words, *keys]))) if frames else pd.DataFrame()
    read = {"data": lambda: data} | {kind: lambda table=table: table for kind, table in (sources or {}).items()}
    if trajectories is not None:
        read["trajectories"] = lambda: trajectories
    return Evidence(benchmark, read, parameters)


def runs(last=4, tasks=6, priors=3, column="simple_regret", **levels) -> pd.DataFrame:
    """Return a trajectory table: every method's regret is its level (a number, or one per iteration).

    It differs slightly from task to task and from prior to prior, in the same way for all methods.

    Methods are named with "__" for "@" and "_x_" for "-".
    """
    rows = []
    for name, level in levels.items():
        method = name.replace("__", "@").replace("_x_", "-")
        curve = np.broadcast_to(np.asarray(level, dtype=float), last)
        for task in range(tasks):
            for prior in range(priors):
                shift = 1.0 + 0.01 * task + 0.001 * prior
                own = {"space": "s", "task": f"t{task}", "fold": f"t{task}", "method": method, "prior_seed": prior}
                for t, regret in enumerate(np.minimum.accumulate(curve), start=1):
                    numbers = {"seed": 0, "iteration": t, column: regret * shift, "y": -regret, "metric": regret}
                    rows.append({**own, **numbers})
    return pd.DataFrame(rows)


def bo(parameters=None, benchmark="pd1_mini", last=4, **levels) -> Evidence:
    """Return evidence of BO runs (`runs`)."""
    column = (parameters or {}).get("regret", "simple_regret")
    table = runs(last, column=column, **levels)
    return Evidence(benchmark, {"trajectories": lambda: table}, parameters)


def over(names, **columns) -> list[dict]:
    """Return one row per name of a column: over("method", method=[...], mean=[...])."""
    lengths = {len(v) for v in columns.values()}
    assert len(lengths) == 1, names
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def either(good, yes, no):
    """Return what a good result has, or a bad one."""
    return yes if good else no


TASKS = [f"t{number}" for number in range(24)]
"""Tasks."""


CHECKS = {name: paper for paper in sheet.papers() for name in checks.of(paper)}
"""A paper that has the check, by the check's name."""


def run(name: str, evidence: Evidence, arguments: dict):
    """Run a check, of whatever paper."""
    return checks.run(CHECKS[name], name, evidence, arguments)
