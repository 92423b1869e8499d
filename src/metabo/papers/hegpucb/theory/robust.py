"""Theorem 6.1 (HE-GP-UCB §6, appendix I): ε-regret of HE-StableOpt.

Both tests are applied at an iteration (the printed second removal would undo the first), and y_t is at x_t + δ_t.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.theory.estimated import rate, within
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, probability
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.theory import bounds, instances
from metabo.papers.hegpucb.theory.growth import POWER
from metabo.papers.hegpucb.theory.instances import Instance
from metabo.papers.hegpucb.theory.intervals import rice
from metabo.papers.hegpucb.theory.posteriors import simulate
from metabo.papers.hegpucb.theory.preservation import DELTA, NORM, SCALES, Regime, fired, xis
from metabo.papers.hegpucb.theory.regret import SHRINK, covered, gains

CHECKS = {"theorem61": "Theorem 6.1: ε-regret of HE-StableOpt"}
RUNS = 500
ITERATIONS = 400
RADIUS = 0.05
"""ε, for distances |x - x'|."""
TIMES = np.unique(np.geomspace(20, ITERATIONS, 10).astype(int))
EARLY = np.array([2, 3, 5, 8, 12, 20])
"""T at which the best ε-regret is taken: on a grid it is 0 in nearly all runs soon after."""


class Robust(NamedTuple):
    """Functions (n, c), what a rule did on them, and the worst value around each point (n, c)."""

    f: Float[np.ndarray, "n c"]
    trace: Trace
    worst: Float[np.ndarray, "n c"]


def play(case: Regime, settings: EliminationSettings, rule: str, key: Key[Array, ""], count: int) -> Robust:
    """Run a robust rule on functions of the case."""
    keys, one = jax.random.split(key), case.instance
    rng = generator(keys[0])
    f = instances.gp_draws(rng, one, count) if case.bayes else instances.rkhs_draws(rng, one, count, NORM)
    near = problems.within(one.x, RADIUS)
    trace = simulate(one.problem()._replace(neighbours=jnp.asarray(near)), rule, settings, keys[1], f)
    return Robust(f, trace, f[:, near].min(axis=2))


def bound_of(one: Instance, settings: EliminationSettings, trace: Trace, gain: np.ndarray, norm: float) -> np.ndarray:
    """Return the bound on R_T^ε for every T and run; β of the run, the greedy gain for γ_T."""
    beta, t = np.maximum.accumulate(trace.beta, axis=1), np.arange(1, settings.T + 1)
    infinite = settings.beta == "bayes_infinite"
    xi = xis(settings, one.many, settings.xi)
    return bounds.regret_bound(norm, beta, xi, gain, one.many, t, instances.R, robust=True, infinite=infinite)


def theorem61(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check coverage of the explicit bound, preservation of u*, and the rates of R_T^ε and of the best ε-regret."""
    a, b = rice(SCALES[0])
    base = EliminationSettings(ITERATIONS, delta=DELTA, B=NORM, R=instances.R, xi="corrected")
    forms = {"norm": base._replace(beta="frequentist"), "GP": base._replace(beta="bayes_infinite", a=a, b=b)}
    names = ("whole", "shrunk", "kept", "lost", "total", "random", "average", "chance", "best", "fast")
    found: dict[str, list[Cell]] = {name: [] for name in names}
    for place, (name, settings) in enumerate(forms.items()):
        decided = _decided(name == "GP", settings, jax.random.fold_in(key, place), runs(RUNS, share))
        for kind, ruling in decided.items():
            found[kind].append(cell(ruling, case=name))
    over = f"over T = {TIMES[0]} to {TIMES[-1]}"
    return [
        statement("Theorem 6.1", "ε-regret, with 4β_T √(CT|U|γ_T) for its O(·)", "§6, App. I", [
            part("coverage", f"P[R_T^ε > bound for some T <= {ITERATIONS}] <= δ, ε = {RADIUS}", "probability",
                 found["whole"], control(f"bound/{SHRINK:.0f}", found["shrunk"])),
            part("kept", "P[u* is dropped] <= δ, by either test", "probability", found["kept"],
                 control("threshold √(ξ_t |S|) alone", found["lost"])),
            part("slope", f"E R_T^ε ∝ T^s with s <= {POWER} {over}", "expectation", found["total"],
                 control("the same for random queries", found["random"]))], "reading"),
        statement("Theorem 6.1, best", "The best ε-regret is at most the average one, which falls like 1/√T", "§6", [
            part("average", f"E R_T^ε/T ∝ T^s with s <= -1/2 {over}", "expectation", found["average"],
                 control("the same for random queries", found["chance"])),
            part("best", f"E min_{{s <= T}} r_s^ε ∝ T^s with s <= -1/2 over T = {EARLY[0]} to {EARLY[-1]}",
                 "expectation", found["best"], control("s <= -4", found["fast"]))], "reading"),
    ]  # fmt: skip


def _decided(bayes: bool, settings: EliminationSettings, key: Key[Array, ""], count: int) -> dict[str, Ruling]:
    """Run HE-StableOpt in one setting and return what each part and each control finds."""
    keys, case = jax.random.split(key), Regime(instances.lengthscales(SCALES, 0), bayes)
    one = case.instance
    _, trace, worst = play(case, settings, "he_stable_opt", keys[0], count)
    norm = float(trace.beta[0, 0]) + 1.0 if bayes else NORM
    bound = bound_of(one, settings, trace, gains(case, ITERATIONS), norm)
    gone = (trace.rejected & (trace.u == one.truth)) | (trace.rejected_v & (trace.v == one.truth))
    bare = fired(trace, one.truth, xis(settings, one.many, settings.xi), 0.0)
    queries = generator(keys[1]).integers(0, worst.shape[1], trace.point.shape)
    random = worst.max(axis=1, keepdims=True) - np.take_along_axis(worst, queries, axis=1)
    total, chance = (np.cumsum(regret, axis=1)[:, TIMES - 1] for regret in (trace.regret, random))
    best = np.minimum.accumulate(trace.regret, axis=1)[:, EARLY - 1]
    early = within(rate(best, EARLY), -np.inf, -0.5)
    early.numbers["bests"] = best.mean(axis=0)
    return {
        "whole": covered(trace.regret, bound, DELTA),
        "shrunk": covered(trace.regret, bound / SHRINK, DELTA),
        "kept": probability(int(gone.any(axis=1).sum()), count, DELTA),
        "lost": probability(int(bare.any(axis=1).sum()), count, DELTA),
        "total": within(rate(total, TIMES), -np.inf, POWER),
        "random": within(rate(chance, TIMES), -np.inf, POWER),
        "average": within(rate(total / TIMES, TIMES), -np.inf, -0.5),
        "chance": within(rate(chance / TIMES, TIMES), -np.inf, -0.5),
        "best": early,
        "fast": within(rate(best, EARLY), -np.inf, -4.0),
    }
