"""What a budget of queries achieves: the area below the regret curve, distinct queries, solved runs."""

from dataclasses import replace

import numpy as np
import pandas as pd

from metabo.metrics.runs import Runs, repetitions


def regret_at(runs: Runs, iterations: list[int], unit: str = "prior") -> pd.DataFrame:
    """Return method, iteration, mean, std: the regret after a number of queries, averaged over tasks, with its mean and
    standard deviation (ddof 0) over repetitions."""
    return pd.DataFrame(
        {"method": method, "iteration": iteration, "mean": regret.mean(), "std": regret.std()}
        for iteration in iterations
        for method, values in repetitions(runs.at(iteration), unit).items()
        for regret in [values.mean(axis=(1, 2))]
    )


def budgets(regrets: Runs, queries: Runs, budget: int, unit: str = "prior") -> pd.DataFrame:
    """Return method, area, distinct, solved, repetitions for the first `budget` queries.

    `area`: mean regret over these queries, tasks and repetitions (the area below the curve); `distinct`: mean number of
    different candidates in a run; `solved`: share of runs whose regret is 0 at their end. `queries` has the candidates
    of the same runs in place of regrets.
    """
    first = regrets.iterations <= budget
    begun = replace(regrets, values={m: v[..., first] for m, v in regrets.values.items()})
    found = []
    for method, values in repetitions(begun, unit).items():
        asked = np.sort(queries.values[method][..., first], axis=-1)
        found.append(
            {
                "method": method,
                "area": values.mean(),
                "distinct": 1 + (np.diff(asked, axis=-1) > 0).sum(axis=-1).mean(),
                "solved": (begun.values[method][..., -1] == 0).mean(),
                "repetitions": len(values),
            }
        )
    return pd.DataFrame(found)
