"""Time limits for jobs on a cluster: the limits for Slurm, and which jobs are short enough to be submitted together.

Limits are generous, because a job that reaches its limit is killed, and one that ends early frees its node. A job that
is killed anyway is tried again with twice the time (`retries` of profiles/slurm).
"""

import math
from collections.abc import Mapping

from metabo.plan.sections.config import Config
from metabo.plan.work import Kind, NumericJob, loops

QUICK = 10
"""The limit, in minutes, of a job that takes seconds at every scale (loads, figures, checks of theory), and the
smallest limit."""
SHORT = 30
"""A job with a limit of up to this many minutes is short: it may share a submission with others, and waits for them."""
LONG = 720
"""The limit, in minutes, of a job that is not short; more if the estimate says so."""

MARGIN = 3
START = 30
"""Seconds until a job starts computing: imports, compilation, reading."""
PACES: Mapping[Kind, float] = {
    "untrained": 1e-5, "steps": 6e-8, "sources": 4e-7, "ekl": 1.5e-9, "networks": 5e-4, "features": 2e-5, "maf": 4e-9,
    "candidates": 5e-7, "clusters": 2e-4, "refits": 3.5e-3, "evaluations": 5e-11, "online": 1.5e-2,
}  # fmt: skip
"""Seconds of one innermost step of the slowest job of each kind at laptop scale, on one core of a small virtual
machine, rounded up (`python benchmarks/paces.py results/laptop` measures them again). Untrained priors, evaluations and
searches of candidates took no longer there than a job takes to start; their paces are a part of that time."""


def seconds(job: NumericJob, settings: Config) -> float:
    """Estimate how long a job takes on one core; most take less, since the slowest of each kind was measured."""
    kind, steps = loops(job, settings)
    return START + PACES[kind] * steps


def minutes(job: NumericJob, settings: Config) -> int:
    """Return the limit of a numeric job in minutes."""
    limit = math.ceil(MARGIN * seconds(job, settings) / 60)
    return max(limit, QUICK) if limit <= SHORT else max(limit, LONG)


def short(limit: int) -> bool:
    """Tell whether a job with this limit (minutes) may be submitted with others."""
    return limit <= SHORT
