"""Study of HE-StableOpt on the function of panel (a): queries that an adversary moves (hegpucb §6, Algorithm 2).

The paper has no experiment of it. Compared: HE-StableOpt, StableOpt with the longest length-scale, StableOpt with the
likeliest one.
"""

import jax.numpy as jnp
import numpy as np
import pandas as pd

from metabo.methods.elimination.problem import check
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.papers.hegpucb.problems import labels, lengthscale_function, within
from metabo.papers.hegpucb.studies.profiles import ProblemGrid, StudyProblem, case, execute

STUDIES = {"hegpucb_robust": {}}

RULES = ("he_stable_opt", "stable_opt", "mle_stable_opt")


class RobustSpec(StudySpec, ProblemGrid):
    """The sizes of panel (a), δ, `norm` B, `noise` λ, and ε, how far the adversary moves a query."""

    delta: float
    norm: float
    noise: float
    seeds: int
    epsilon: float


def robust_case(spec: RobustSpec) -> StudyProblem:
    """Return panel (a) with Δ_ε(x) = the points within `epsilon`; StableOpt has the longest length-scale."""
    one = case(
        "lengthscale", spec, spec["seeds"], spec["seed"], delta=spec["delta"], norm=spec["norm"], noise=spec["noise"]
    )
    near = jnp.asarray(within(np.asarray(one.problem.x), spec["epsilon"]))
    problem = one.problem._replace(neighbours=near, truth=len(one.problem.kernels) - 1)
    check(problem, one.settings)
    return one._replace(problem=problem)


def reported(trace: Trace) -> np.ndarray:
    """Return the regret of the point that StableOpt would report at each iteration: the x_s, s <= t, with the highest
    min over δ of LCB_{s-1}(x_s + δ) (rules, seeds, T)."""
    best = np.maximum.accumulate(trace.score, axis=2)
    before = np.concatenate([np.full_like(best[:, :, :1], -np.inf), best[:, :, :-1]], axis=2)
    new = np.where(trace.score > before, np.arange(best.shape[2]), 0)
    return np.take_along_axis(trace.regret, np.maximum.accumulate(new, axis=2), axis=2)


def run(spec: RobustSpec) -> Frames:
    """Return every query of every run, and the function with its worst case within ε.

    "run": method, seed, iteration, x (x_t), moved (x_t + δ_t), regret (ε-regret), cumulative, simple (least so far),
    reported, u, v, alive, rejected (candidates dropped at this query); "function": x, value, worst; "candidate": u,
    label.
    """
    one = robust_case(spec)
    trace = execute(one, RULES, spec["seeds"], spec["seed"], "study hegpucb_robust")
    x = np.asarray(one.problem.x)[:, 0]
    alive = trace.alive.sum(axis=3)
    before = np.concatenate([np.full_like(alive[:, :, :1], trace.alive.shape[3]), alive[:, :, :-1]], axis=2)
    columns = {
        "x": x[trace.centre], "moved": x[trace.point], "regret": trace.regret,
        "cumulative": trace.regret.cumsum(axis=2), "simple": np.minimum.accumulate(trace.regret, axis=2),
        "reported": reported(trace), "u": trace.u, "v": trace.v, "alive": alive, "rejected": before - alive,
    }  # fmt: skip
    rules, seeds, length = trace.point.shape
    frame = pd.DataFrame({name: values.reshape(-1) for name, values in columns.items()})
    frame.insert(0, "method", np.repeat(RULES, seeds * length))
    frame.insert(1, "seed", np.tile(np.repeat(np.arange(seeds), length), rules))
    frame.insert(2, "iteration", np.tile(np.arange(1, length + 1), rules * seeds))
    value = lengthscale_function(x[:, None])
    worst = value[np.asarray(one.problem.neighbours)].min(axis=1)
    names = labels("lengthscale")
    return {
        "run": frame,
        "function": pd.DataFrame({"x": x, "value": value, "worst": worst}),
        "candidate": pd.DataFrame({"u": range(len(names)), "label": names}),
    }
