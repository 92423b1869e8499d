"""Metrics that papers share: pure functions from tables to the numbers that figures and tables show (hyperbo §7.3).

`collect` turns the trajectory table into checked arrays; everything else reads those arrays:

- `runs`: the arrays, the grid checks, and what counts as one repetition (`unit`);
- `aggregate`: regret curves, performance profiles, ranks, best metric in T iterations;
- `budgets`: regret, area, distinct queries and solved runs after a number of queries;
- `speedups`: how many iterations fewer one method needs than another;
- `pools`, `ceiling`: what the rows of one task can decide, and what a model of them reaches;
- `inference`: Pearson correlation, paired differences, variance split.

`description` reads the benchmark itself and returns tables of its tasks and search spaces, and the counts of its
loader. Metrics that only one paper shows (losses, sweeps, online tuning, ...) are in `metabo.papers.{paper}.metrics`.
"""

from metabo.metrics.aggregate import (
    best_metric,
    performance_profiles,
    profile_of_resolved,
    ranks,
    regret_by_task,
    regret_curves,
    regret_slices,
    resolutions,
)
from metabo.metrics.budgets import budgets, regret_at
from metabo.metrics.description import loader_counts, space_table, task_table
from metabo.metrics.inference import (
    Difference,
    Pearson,
    differences,
    independent_units,
    paired_difference,
    pearson,
    variance_split,
)
from metabo.metrics.runs import Runs, collect, metric_sign, paired, repetitions
from metabo.metrics.speedups import first_time, speedup_summary, speedups

__all__ = [
    "Difference",
    "Pearson",
    "Runs",
    "best_metric",
    "budgets",
    "collect",
    "differences",
    "first_time",
    "independent_units",
    "loader_counts",
    "metric_sign",
    "paired",
    "paired_difference",
    "pearson",
    "performance_profiles",
    "profile_of_resolved",
    "ranks",
    "regret_at",
    "regret_by_task",
    "regret_curves",
    "regret_slices",
    "repetitions",
    "resolutions",
    "space_table",
    "speedup_summary",
    "speedups",
    "task_table",
    "variance_split",
]
