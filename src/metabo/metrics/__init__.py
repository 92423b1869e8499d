"""Metrics: pure functions from the trajectory table to the numbers that figures and tables show (hyperbo §7.3).

`collect` turns the table into checked arrays; everything else reads those arrays:

- `runs`: the arrays, the grid checks, and what counts as one repetition (`unit`);
- `aggregate`: regret curves, performance profiles, ranks, best metric in T iterations;
- `speedups`: how many iterations fewer one method needs than another;
- `inference`: Pearson correlation, paired bootstrap, variance split;
- `losses`: NLL and EKL of the priors.
"""

from metabo.metrics.aggregate import (
    best_metric,
    performance_profiles,
    ranks,
    regret_by_task,
    regret_curves,
    regret_slices,
)
from metabo.metrics.inference import Difference, Pearson, differences, paired_difference, pearson, variance_split
from metabo.metrics.losses import loss_runs, loss_table, means_per_repeat
from metabo.metrics.runs import Runs, collect, metric_sign, paired, repetitions
from metabo.metrics.speedups import speedup_summary, speedups

__all__ = [
    "Difference",
    "Pearson",
    "Runs",
    "best_metric",
    "collect",
    "differences",
    "loss_runs",
    "loss_table",
    "means_per_repeat",
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
    "speedup_summary",
    "speedups",
    "variance_split",
]
