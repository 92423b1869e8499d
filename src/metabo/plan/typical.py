"""Typical times of jobs, from which the progress of a run is estimated.

`metabo.plan.limits` says how long a job may take at most. This module has the typical time on the machine that was
measured, with one job per core: a start (imports, compilation, reading) and a pace, the seconds of one step of the
loops that `metabo.plan.work` counts. `typical.csv` has both by kind of loop and family of the method, and the means of
the rules without such loops. `python benchmarks/typical.py results/laptop` fits them to the records of a finished run.
That was a run of the other papers and a part of HyperBO; the jobs that it did not have (online jobs, two studies) are
from another run.
"""

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from metabo.plan import registry
from metabo.plan.sections.config import Config
from metabo.plan.work import NumericJob, loops

TABLE = Path(__file__).with_name("typical.csv")
NOTEBOOK = "notebook"
"""The rule that figures and tables count as, because each has a rule of its own."""


class Cost(NamedTuple):
    """Seconds until a job starts computing, and seconds of one step of its loops."""

    start: float
    pace: float


class Typical(NamedTuple):
    """The seconds of a job on the measured machine, and its group, whose jobs' times deviate by the same factor."""

    group: str
    seconds: float


@cache
def table() -> Mapping[tuple[str, str], Cost]:
    """Read the costs by (kind of loop, family) and by (rule, study); "" stands for all others."""
    with TABLE.open(newline="") as stream:
        return {
            (row["jobs"], row["of"]): Cost(float(row["start"]), float(row["pace"])) for row in csv.DictReader(stream)
        }


def family(method: str) -> str:
    """Return the package of a method, whose methods cost about the same."""
    return registry.method(method).method.split(".")[1]


def of_numeric(job: NumericJob, settings: Config) -> Typical:
    """Return the typical time of a job that computes."""
    kind, steps = loops(job, settings)
    own = kind, family(job.method)
    cost = table()[own if own in table() else (kind, "")]
    return Typical(f"{job.rule} {kind} {own[1]}", cost.start + cost.pace * steps)


def of_rule(rule: str, study: str = "") -> Typical:
    """Return the typical time of any other job. `study` is the study of a `run_study`."""
    known = rule if (rule, "") in table() else NOTEBOOK
    return Typical(known, table().get((known, study), table()[known, ""]).start)
