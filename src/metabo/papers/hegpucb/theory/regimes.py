"""The cases on which the algorithms run (HE-GP-UCB §4): an instance, the law of f, and the constants of the theorems.

Algorithm 1 as printed has σ_i in its test, after x_i was observed; π for π² in ξ_t, and the factor R in β, where f has
a bounded norm. Repaired it has σ_{i-1}, 3δ_B inside ξ_t, and no factor R. β_t has the upper value of the maximum
information gain γ_{t-1} in both.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination import confidence
from metabo.methods.elimination.problem import EliminationSettings, Problem
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.instances import Instance
from metabo.papers.hegpucb.theory.intervals import UNSURE
from metabo.papers.hegpucb.theory.posteriors import greedy, simulate

DELTA = 0.1
NORM = 1.0
SCALES = (0.1, 0.15, 0.2, 0.3, 0.5)
"""Length-scales; f is of the shortest, which is chosen most often."""


class Regime(NamedTuple):
    """An instance, and whether f is a GP sample (Bayesian) or has the norm `norm` (frequentist).

    `slope`: (a, b) of Assumption B.1, for the constants of an infinite domain (Theorem 4.2(B)).
    """

    instance: Instance
    bayes: bool
    norm: float = NORM
    slope: tuple[float, float] | None = None


class Played(NamedTuple):
    """Functions (n, c) and what happened on them; `settings` are those of the run."""

    f: Float[np.ndarray, "n c"]
    trace: Trace
    settings: EliminationSettings


def settings_of(case: Regime, printed: bool, iterations: int) -> EliminationSettings:
    """Return Algorithm 1 as printed with the constants of its theorem, or repaired: σ_{i-1}, ξ_t, factor 1 in β."""
    form = "bayes_finite" if case.bayes else ("frequentist_printed" if printed else "frequentist")
    xi = ("pi2" if case.bayes else "printed") if printed else "corrected"
    a, b = case.slope or (1.0, 1.0)
    form = form if case.slope is None else "bayes_infinite"
    return EliminationSettings(
        iterations, delta=DELTA, B=case.norm, R=instances.R, beta=form, xi=xi,
        sigma="after" if printed else "before", a=a, b=b,
    )  # fmt: skip


def upper_gains(one: Instance, length: int) -> Float[np.ndarray, "u t"]:
    """Return at least γ_{t-1}^u for t = 1..`length`, of every candidate: the greedy gain times UNSURE.

    Theorem 4.1 sets β_t with the maximum information gain, not with that of the queries, which can be far smaller.
    """
    return UNSURE * np.stack([np.asarray(greedy(jnp.asarray(k), instances.R**2, length)) for k in one.kernels])


def posed(case: Regime, iterations: int) -> Problem:
    """Return the problem on which a rule runs; where f has a bounded norm, β takes `upper_gains`."""
    problem = case.instance.problem()
    if case.bayes:
        return problem
    return problem._replace(gains=jnp.asarray(upper_gains(case.instance, iterations + 1)))


def drawn(case: Regime, rng: np.random.Generator, count: int) -> Float[np.ndarray, "n c"]:
    """Draw functions of the case."""
    if case.bayes:
        return instances.gp_draws(rng, case.instance, count)
    return instances.rkhs_draws(rng, case.instance, count, case.norm)


def play(
    case: Regime, settings: EliminationSettings, key: Key[Array, ""], count: int, rule: str = "he_gp_ucb"
) -> Played:
    """Draw functions and run a rule on them."""
    keys = jax.random.split(key)
    f = drawn(case, generator(keys[0]), count)
    return Played(f, simulate(posed(case, settings.T), rule, settings, keys[1], f), settings)


def xis(settings: EliminationSettings, many: int, kind: str) -> Float[np.ndarray, " t"]:
    """Return ξ_t of t = 1..T."""
    return np.asarray(confidence.xi(np.arange(1, settings.T + 1), settings.R, many, settings.delta, kind))
