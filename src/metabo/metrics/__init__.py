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
from metabo.metrics.losses import loss_runs, loss_table, means_per_repeat
from metabo.metrics.online import (
    OnlineRuns,
    collect_online,
    infeasible_queries,
    online_comparison,
    online_curves,
    online_final,
)
from metabo.metrics.relatedness import correlation_summary, task_correlations
from metabo.metrics.runs import Runs, collect, metric_sign, paired, repetitions
from metabo.metrics.speedups import speedup_summary, speedups
from metabo.metrics.sweeps import (
    size_trends,
    sizes_below,
    sweep_curves,
    sweep_differences,
    sweep_slices,
    training_sizes,
    transfer_by_space,
    twin_differences,
    window_means,
)

__all__ = [
    "Difference",
    "OnlineRuns",
    "Pearson",
    "Runs",
    "best_metric",
    "collect",
    "collect_online",
    "correlation_summary",
    "differences",
    "infeasible_queries",
    "loader_counts",
    "loss_runs",
    "loss_table",
    "means_per_repeat",
    "metric_sign",
    "online_comparison",
    "online_curves",
    "online_final",
    "paired",
    "paired_difference",
    "pearson",
    "performance_profiles",
    "ranks",
    "regret_by_task",
    "regret_curves",
    "regret_slices",
    "repetitions",
    "size_trends",
    "sizes_below",
    "space_table",
    "speedup_summary",
    "speedups",
    "sweep_curves",
    "sweep_differences",
    "sweep_slices",
    "task_correlations",
    "task_table",
    "training_sizes",
    "transfer_by_space",
    "twin_differences",
    "variance_split",
    "window_means",
]
