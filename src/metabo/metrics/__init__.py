"""Metrics: pure functions from the trajectory table to the numbers that figures and tables show (hyperbo §7.3).

`collect` turns the table into checked arrays; everything else reads those arrays:

- `runs`: the arrays, the grid checks, and what counts as one repetition (`unit`);
- `aggregate`: regret curves, performance profiles, ranks, best metric in T iterations;
- `speedups`: how many iterations fewer one method needs than another;
- `inference`: Pearson correlation, paired bootstrap, variance split;
- `losses`: NLL and EKL of the priors;
- `sweeps`: regret against the amount of training data, and priors on different data side by side.

`online` does the same for the table of online tuning. `relatedness` and `description` read the benchmark itself:
correlations between tasks, and the tables of tasks and search spaces.
"""

from metabo.metrics.aggregate import (
    best_metric,
    performance_profiles,
    ranks,
    regret_by_task,
    regret_curves,
    regret_slices,
)
from metabo.metrics.description import loader_counts, space_table, task_table
from metabo.metrics.inference import Difference, Pearson, differences, paired_difference, pearson, variance_split
from metabo.metrics.runs import Runs, collect, metric_sign, paired, repetitions
from metabo.metrics.speedups import speedup_summary, speedups

__all__ = [
    "Difference",
    "Pearson",
    "Runs",
    "best_metric",
    "collect",
    "differences",
    "loader_counts",
    "metric_sign",
    "paired",
    "paired_difference",
    "pearson",
    "performance_profiles",
    "ranks",
    "regret_by_task",
    "regret_curves",
    "regret_slices",
    "repetitions",
    "space_table",
    "speedup_summary",
    "speedups",
    "task_table",
    "variance_split",
]
