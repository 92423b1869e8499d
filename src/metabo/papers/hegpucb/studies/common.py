"""Study of HE-GP-UCB's problem (b) with candidates that share a length-scale (hegpucb §7, Figure 2(b)).

Elsewhere each candidate of (b) has the length-scale of its fit: 2 for those of the pieces, 0.144 for the true one. So
the likelihood tells them apart by length-scale too. Here they differ in the period alone; all else is as in profile
`figure`.
"""

import jax.numpy as jnp
import numpy as np
import pandas as pd

from metabo.compute import progress
from metabo.methods.elimination.problem import check
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.studies.profiles import (
    BESIDE,
    COMPARED,
    ProblemGrid,
    StudyProblem,
    case,
    execute,
    run_table,
)

STUDIES = {"hegpucb_common": {}}

PROBLEM, PROFILE = "period", "figure"
RULES = (*COMPARED[PROBLEM], *BESIDE[PROBLEM])
EACH = 0.0
"""What the tables show where each candidate has its own length-scale, as in study hegpucb_runs."""
TRUE = problems.PERIODS["lengthscales"][-1]
"""The true candidate's own: it is the only one that leaves that candidate as it is, and what a claim reads."""


class CommonSpec(StudySpec, ProblemGrid):
    """The sizes of panel (b), δ, the constant β, `noise` λ, and shared length-scales besides TRUE."""

    delta: float
    beta: float
    noise: float
    seeds: int
    lengthscales: list[float]


def common_case(spec: CommonSpec, lengthscale: float) -> StudyProblem:
    """Return panel (b) whose candidates all have this length-scale (EACH: their own)."""
    one = case(
        PROBLEM, spec, spec["seeds"], spec["seed"], profile=PROFILE, delta=spec["delta"], beta=spec["beta"],
        noise=spec["noise"],
    )  # fmt: skip
    if lengthscale == EACH:
        return one
    x = np.asarray(one.problem.x)
    kernels = np.stack([problems.periodic(x, period, lengthscale) for period in problems.PERIODS["periods"]])
    problem = one.problem._replace(kernels=jnp.asarray(kernels))
    check(problem, one.settings)
    return one._replace(problem=problem)


def run(spec: CommonSpec) -> Frames:
    """Return every query of every run.

    "run": problem, profile, lengthscale (EACH, TRUE, then those of the configuration) and the columns of
    `profiles.run_table`.
    """
    frames = []
    for lengthscale in progress.loop(dict.fromkeys((EACH, TRUE, *spec["lengthscales"])), "length-scales"):
        where = f"study hegpucb_common, length-scale {lengthscale or 'each'}"
        one = common_case(spec, lengthscale)
        trace = execute(one, RULES, spec["seeds"], spec["seed"], where)
        frames.append(run_table(one, trace, RULES, problem=PROBLEM, profile=PROFILE).assign(lengthscale=lengthscale))
    return {"run": pd.concat(frames, ignore_index=True)}
