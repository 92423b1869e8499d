"""What the studies of HE-GP-UCB share: its methods and settings on each problem, runs, and their table (hegpucb §7).

Norm bound, noise, scaling of the outputs and kernels are not in the paper. Three profiles stand for them:

- `figure`: outputs as they are, noise variance λ = R² = 0.01, ξ with R, observations without noise in (a) and (b), with
  N(0, R²) in (c) and (d), and one constant β in all problems: of five, the one under which cumulative regrets end on
  the axes of the paper's Figure 2 in most problems, two of four (`summaries.calibration`, which does not look at the
  order of the methods);
- `plain`: the same with β of the repaired theorems, B = 1: two to ten times as large;
- `successor`: settings of the authors' later code: outputs standardised, noise variance 1e-4, R = 1e-4 in β and ξ,
  B = 1, δ = 0.01, deviations with the noise, observations without noise, its own length-scales in (a). Kernels have
  scale 1 in both (that code: 1.42 in (a)), points are those of the grid.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from metabo.compute.keys import stream
from metabo.errors import NumericsError, unknown
from metabo.methods.elimination.problem import EliminationSettings, Problem, check
from metabo.methods.elimination.simulate import Trace, run_all, traced
from metabo.papers.hegpucb import problems

PROFILES = ("figure", "plain", "successor")
COMPARED = {
    "lengthscale": ("mle", "expected_ucb", "a_gp_ucb", "he_gp_ucb"),
    "period": ("mle", "expected_ucb", "he_gp_ucb"),
    "decomposition": ("mle", "expected_ucb", "he_gp_ucb"),
    "mean": ("mle", "expected_ucb", "he_gp_ucb"),
}
"""Methods that the paper shows for each problem (Figure 2)."""
BESIDE = {
    "lengthscale": ("uniform",),
    "period": ("gp_ucb", "uniform"),
    "decomposition": ("gp_ucb", "uniform"),
    "mean": ("gp_ucb", "uniform"),
}
"""Shown besides these: GP-UCB with the true candidate, and random points."""
BAYESIAN = ("mean",)
NOISY = ("decomposition", "mean")


class StudyProblem(NamedTuple):
    """A problem with its settings, and, per seed, functions (s, c) and true candidates (s,) (None: the problem's)."""

    problem: Problem
    settings: EliminationSettings
    f: Float[Array, "s c"] | None
    truth: Int[Array, " s"] | None


class ProblemGrid(TypedDict):
    """Points of the grid along each axis, initial points, and queries."""

    points: list[int]
    initial: int
    iterations: int


def case(
    name: str,
    sizes: ProblemGrid,
    seeds: int,
    seed: int,
    *,
    profile: str = "plain",
    delta: float = 0.1,
    norm: float = 1.0,
    beta: float = 1.0,
    noise: float = 0.01,
    standardise: bool = False,
    predictive: bool = False,
    **made: str | float,
) -> StudyProblem:
    """Return a problem of the paper under a profile, checked.

    norm (B) is read by `plain` only, beta by `figure`; delta, noise (λ), standardise and predictive (σ includes the
    noise) by both; `made`: variant, height, width (`problems.make`). Raises ConfigError for an unknown profile or
    problem.
    """
    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    later = profile == "successor"
    level = noise**0.5
    outputs = level if name in NOISY and not later else 0.0
    lengthscales = "code" if later else "paper"
    problem = _problem(name, tuple(sizes["points"]), sizes["initial"], lengthscales, tuple(sorted(made.items())))
    problem = problem._replace(noise_std=outputs)
    bayes = "bayes_successor" if later else "bayes_finite"
    known = {"beta": bayes} if name in BAYESIAN else {"beta": "frequentist_printed" if later else "frequentist"}
    if profile == "figure":
        known, norm = {"beta": "constant"}, beta
    if later:
        settings = EliminationSettings(
            sizes["iterations"], 0.01, 1.0, 1e-4, noise=1e-2, standardise=True, predictive=True, **known
        )
    else:
        settings = EliminationSettings(
            sizes["iterations"], delta, norm, level, standardise=standardise, predictive=predictive, **known
        )
    check(problem, settings)
    if name != "mean":
        return StudyProblem(problem, settings, None, None)
    draws = jnp.stack([stream(seed, "hegpucb", "function", s) for s in range(seeds)])
    return StudyProblem(problem, settings, *problems.draw_means(problem, draws))


@lru_cache(maxsize=1)
def _problem(
    name: str, points: tuple[int, ...], initial: int, lengthscales: str, made: tuple[tuple[str, str | float], ...]
) -> Problem:
    """Keep the last problem: the kernels of (c) are half a GiB and the same in all cells of the grid."""
    return problems.make(name, points, initial, 0.0, lengthscales=lengthscales, **dict(made))


def execute(given: StudyProblem, rules: Sequence[str], seeds: int, seed: int, where: str) -> Trace:
    """Run all rules with all seeds, by one program; leading axes: rules, seeds.

    Prints how often the test of the last candidate fired, which keeps it. Raises NumericsError for an unsound step.
    """
    keys = jnp.stack([stream(seed, "hegpucb", "run", s) for s in range(seeds)])
    together = jax.default_backend() != "cpu"
    trace = run_all(given.problem, tuple(rules), traced(given.settings), keys, given.f, given.truth, together)
    trace = jax.tree.map(np.asarray, trace)
    if not trace.ok.all():
        rule, run, t = np.argwhere(~trace.ok)[0]
        raise NumericsError(
            f"{where}: the posterior of {rules[rule]}, seed {run}, is not finite from iteration {t + 1} on; raise the "
            "noise (config key 'studies.hegpucb_runs.noise', or the grid of hegpucb_sensitivity)"
        )
    for rule, fired in zip(rules, trace.exhausted.any(axis=2).sum(axis=1), strict=True):
        if fired:
            print(f"{where}: {rule} would have dropped its last candidate in {fired} of {seeds} runs; it was kept")
    return trace


def simple_regret(trace: Trace, values: np.ndarray) -> np.ndarray:
    """Return the best regret so far (rules, seeds, T), initial points counted; `values`: f per seed (s, c) or (c,)."""
    values = np.broadcast_to(values, (trace.point.shape[1], values.shape[-1]))
    first = values.max(axis=1) - np.take_along_axis(values, trace.initial[0], axis=1).max(axis=1, initial=-np.inf)
    return np.minimum(first[:, None], np.minimum.accumulate(trace.regret, axis=2))


def run_table(given: StudyProblem, trace: Trace, rules: Sequence[str], **keys: str | int) -> pd.DataFrame:
    """Return one row per query: the `keys`, method, seed, iteration, x (first input), regret, cumulative, simple,
    candidate u, mle (likeliest candidate before the query), truth (-1: none), alive (candidates after it), rejected."""
    rules_count, seeds, length = trace.point.shape
    values = np.asarray(given.problem.f if given.f is None else given.f)
    truth = np.broadcast_to(np.asarray(given.problem.truth if given.truth is None else given.truth), (seeds,))
    x = np.asarray(given.problem.x)[:, 0]
    # Rules that do not eliminate have the test's outcome too, but nothing is dropped.
    dropped = trace.rejected & np.isin(rules, ["he_gp_ucb"])[:, None, None] & ~trace.exhausted
    columns = {
        "x": x[trace.point], "regret": trace.regret, "cumulative": trace.regret.cumsum(axis=2),
        "simple": simple_regret(trace, values), "u": trace.u, "mle": trace.evidence.argmax(axis=3),
        "truth": np.broadcast_to(truth[None, :, None], trace.u.shape), "alive": trace.alive.sum(axis=3),
        "rejected": dropped,
    }  # fmt: skip
    frame = pd.DataFrame({name: values.reshape(-1) for name, values in columns.items()})
    frame.insert(0, "method", np.repeat(rules, seeds * length))
    frame.insert(1, "seed", np.tile(np.repeat(np.arange(seeds), length), rules_count))
    frame.insert(2, "iteration", np.tile(np.arange(1, length + 1), rules_count * seeds))
    for place, (name, value) in enumerate(keys.items()):
        frame.insert(place, name, value)
    return frame
