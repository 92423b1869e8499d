"""Theorem 6.1 (HE-GP-UCB §6, appendix I): ε-regret of HE-StableOpt, as printed and repaired.

Algorithm 2 has two tests, of the candidate u_t that chose the point and of v_t that chose the perturbation, with σ_i in
both as in Algorithm 1; repaired it has σ_{i-1}, as the proof does. Both tests are applied at an iteration (the printed
second removal would undo the first), and y_t is at x_t + δ_t.
"""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination.confidence import beta_frequentist
from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.theory.estimated import rate, within
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, inequality, least_ratio, probability
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.growth import POWER
from metabo.papers.hegpucb.theory.intervals import rice
from metabo.papers.hegpucb.theory.posteriors import posteriors_at, simulate
from metabo.papers.hegpucb.theory.preservation import fired
from metabo.papers.hegpucb.theory.regimes import DELTA, SCALES, Regime, drawn, posed, settings_of, upper_gains, xis
from metabo.papers.hegpucb.theory.regret import WORST, binding_hill, binding_norm, both, bound_of, gains, steep

CHECKS = {"theorem61": "Theorem 6.1: ε-regret of HE-StableOpt"}
RUNS = {"regret": 500, "binding": 200}
ITERATIONS = 400
BINDING = {"norm": 2000, "GP": 400}
"""T on the instances whose bound is below T times the largest ε-regret: B = 20 and |U| = 2; a hill of height 30."""
SHORT = 60
"""T where wrong candidates are to be dropped."""
RADIUS = 0.05
"""ε, for distances |x - x'|."""
TIMES = np.unique(np.geomspace(20, ITERATIONS, 10).astype(int))
EARLY = np.array([2, 3, 5, 8, 12, 20])
"""T at which the best ε-regret is taken: on a grid it is 0 in nearly all runs soon after."""
HEIGHT = 24.0
"""Height of a hill, and depth of a pit, that one observation shows to be absent with β of about 8."""
HUNDRED = 100.0
"""The control of dropped candidates has this times the threshold."""
BY_U, BY_V = "absent hills, GP", "absent pits, GP"
"""Cases in which wrong candidates can be told: hills too high by far attract x_t and are dropped by the test of u_t,
pits too deep attract δ_t and are dropped by that of v_t."""


class Robust(NamedTuple):
    """Functions (n, c), what a rule did on them, and the worst value around each point (n, c)."""

    f: Float[np.ndarray, "n c"]
    trace: Trace
    worst: Float[np.ndarray, "n c"]


class Sides(NamedTuple):
    """Error and threshold of the test of v_t (n, t), and the threshold without the widths."""

    error: Float[np.ndarray, "n t"]
    threshold: Float[np.ndarray, "n t"]
    bare: Float[np.ndarray, "n t"]


def play(case: Regime, settings: EliminationSettings, rule: str, key: Key[Array, ""], count: int) -> Robust:
    """Run a robust rule on functions of the case."""
    keys, one = jax.random.split(key), case.instance
    f = drawn(case, generator(keys[0]), count)
    near = problems.within(one.x, RADIUS)
    problem = posed(case, settings.T)._replace(neighbours=jnp.asarray(near))
    return Robust(f, simulate(problem, rule, settings, keys[1], f), f[:, near].min(axis=2))


def rival_sides(case: Regime, settings: EliminationSettings, trace: Trace, candidates: Iterable[int]) -> Sides:
    """Return the sides of the test of v_t where v_t is one of `candidates`, and zeros elsewhere.

    The trace has mean, σ and β of u_t only: those of v_t come from posteriors that are factorised anew. They are right
    up to the first iteration at which v_t was dropped.
    """
    one, xi = case.instance, xis(settings, case.instance.many, settings.xi)
    error, widths, choices = (np.zeros((*trace.v.shape, one.many)) for _ in range(3))
    beta = trace.beta  # the same for all candidates where f is a GP sample
    if not case.bayes:
        gains = upper_gains(one, settings.T)
        printed = settings.beta == "frequentist_printed"
        every = np.asarray(beta_frequentist(case.norm, settings.R, gains, settings.delta, printed))
        beta = every[trace.v, np.arange(settings.T)]
    for v in candidates:
        own = trace.v == v
        if own.any():
            mean, variance = posteriors_at(one.kernels[v], one.means[v], instances.R**2, trace.point, trace.y)
            if settings.sigma == "after":
                variance = variance * instances.R**2 / (variance + instances.R**2)
            error[..., v] = np.abs(np.cumsum(own * (trace.y - mean), axis=1))
            widths[..., v] = np.cumsum(own * beta * np.sqrt(variance), axis=1)
            choices[..., v] = np.cumsum(own, axis=1)
    error, widths, choices = (
        np.take_along_axis(a, trace.v[..., None], axis=2)[..., 0] for a in (error, widths, choices)
    )
    bare = np.sqrt(xi * choices)
    return Sides(error, bare + widths, bare)


def absent() -> dict[str, Regime]:
    """Return the cases BY_U and BY_V: candidates with a hill, or a pit, that f does not have."""
    hills, pits = (instances.means(-1, HEIGHT, count) for count in (4, 8))
    pits = pits._replace(means=-pits.means)
    return {name: Regime(one, True, slope=steep(one, 0.1)) for name, one in ((BY_U, hills), (BY_V, pits))}


def theorem61(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check, as printed and repaired: coverage of the explicit bound, preservation of u*, and the rates of R_T^ε."""
    return [one for version in ("printed", "repaired") for one in _version(key, share, version)]


def _version(key: Key[Array, ""], share: float, version: str) -> list[Statement]:
    """Return the statements for Algorithm 2 as printed or repaired."""
    short, keys = instances.lengthscales(SCALES, 0), jax.random.split(key, 4)
    longs = {"norm": Regime(short, False), "GP": Regime(short, True, slope=rice(SCALES[0]))}
    binding = {"norm": binding_norm(20.0), "GP": binding_hill(True)}
    found: dict[str, list[Cell]] = {}

    def add(decided: dict[str, Ruling], **where: str) -> None:
        for kind, ruling in decided.items():
            found.setdefault(kind, []).append(cell(ruling, **where))

    for place, (name, case) in enumerate(longs.items()):
        settings = settings_of(case, version == "printed", ITERATIONS)
        played = play(case, settings, "he_stable_opt", jax.random.fold_in(keys[0], place), runs(RUNS["regret"], share))
        add(coverage(case, settings, played), case=name)
        add(growth(played, jax.random.fold_in(keys[1], place)), case=name)
        add(kept(case, settings, played.trace), case=name)
        for test, ruling in bare(case, settings, played.trace).items():
            add({"bare": ruling}, case=name, test=test)
    for place, (name, case) in enumerate(absent().items()):
        settings = settings_of(case, version == "printed", SHORT)
        played = play(case, settings, "he_stable_opt", jax.random.fold_in(keys[2], place), runs(RUNS["regret"], share))
        add(kept(case, settings, played.trace), case=name)
        add(others(case, settings, played.trace, by_v=name == BY_V), case=name)
    for place, (name, case) in enumerate(binding.items()):
        settings = settings_of(case, version == "printed", BINDING[name])
        played = play(case, settings, "he_stable_opt", jax.random.fold_in(keys[3], place), runs(RUNS["binding"], share))
        add({f"{kind} binding": ruling for kind, ruling in coverage(case, settings, played).items()}, case=name)
    return _statements(found, version)


def _statements(found: dict[str, list[Cell]], version: str) -> list[Statement]:
    over = f"over T = {TIMES[0]} to {TIMES[-1]}"
    test = "σ_i and constants as printed" if version == "printed" else "σ_{i-1}, ξ_t with 3δ_B"
    bad, chance = f"P[R_T^ε > bound for some T] <= δ, ε = {RADIUS}, {test}", "the same for random queries"
    bound = "ε-regret, with 4β_T √(CT|U|γ_T) for its O(·)"
    return [
        statement("Theorem 6.1", bound, "§6, App. I", [
            part("coverage", bad, "probability", found["covered"], control(WORST, found["worst"]))], version),
        statement("Theorem 6.1, binding", f"{bound}, where the bound is below the worst policy's", "§6, App. I", [
            part("coverage", bad, "probability", found["covered binding"],
                 control(WORST, found["worst binding"]))], version),
        statement("Theorem 6.1, kept", "HE-StableOpt keeps u*", "§6, App. I", [
            part("kept", f"P[u* is dropped] <= δ, by either test, {test}", "probability", found["kept"],
                 control("threshold √(ξ_t |S|) alone", found["bare"])),
            part("others", f"P[no wrong candidate is dropped by t = {SHORT}] <= ½, by the test of u_t, and by that of "
                 "v_t", "probability", found["others"],
                 control(f"{HUNDRED:.0f} times the threshold", found["hundred"]))], version),
        statement("Theorem 6.1, growth", f"R_T^ε grows less than T^{POWER}", "§6, App. I", [
            part("slope", f"E R_T^ε ∝ T^s with s <= {POWER} {over}", "expectation", found["total"],
                 control(chance, found["random"]))], version),
        statement("Theorem 6.1, best", "The best ε-regret is at most the average one, which falls like 1/√T", "§6", [
            part("average", f"E R_T^ε/T ∝ T^s with s <= -1/2 {over}", "expectation", found["average"],
                 control(chance, found["chance"])),
            part("below", "min_{s <= T} r_s^ε <= R_T^ε/T at every T (true by construction)", "inequality",
                 found["best"], control("r_T^ε <= R_T^ε/T at every T", found["last"]))], version),
    ]  # fmt: skip


def coverage(case: Regime, settings: EliminationSettings, played: Robust) -> dict[str, Ruling]:
    """Decide coverage of the bound by the runs, and by the worst policy."""
    bound = bound_of(case, settings, played.trace, gains(case, settings.T), robust=True)
    return dict(zip(("covered", "worst"), both(played.trace.regret, bound, played.worst), strict=True))


def growth(played: Robust, key: Key[Array, ""]) -> dict[str, Ruling]:
    """Decide the rates of the ε-regret, of the runs and of random queries, whose best ε-regret falls fast as well."""
    trace, worst = played.trace, played.worst
    queries = generator(key).integers(0, worst.shape[1], trace.point.shape)
    chance = worst.max(axis=1, keepdims=True) - np.take_along_axis(worst, queries, axis=1)
    total, random = (np.cumsum(regret, axis=1)[:, TIMES - 1] for regret in (trace.regret, chance))
    best, best_random = (np.minimum.accumulate(r, axis=1) for r in (trace.regret, chance))
    average = np.cumsum(trace.regret, axis=1) / np.arange(1, trace.regret.shape[1] + 1)
    below = inequality(best, average)
    early = {"best_rate": best, "random_rate": best_random}
    rates = {name: rate(values[:, EARLY - 1], EARLY).value for name, values in early.items()}
    return {
        "total": within(rate(total, TIMES), -np.inf, POWER),
        "random": within(rate(random, TIMES), -np.inf, POWER),
        "average": within(rate(total / TIMES, TIMES), -np.inf, -0.5),
        "chance": within(rate(random / TIMES, TIMES), -np.inf, -0.5),
        "best": below._replace(numbers=below.numbers | rates),
        "last": inequality(trace.regret, average),
    }


def kept(case: Regime, settings: EliminationSettings, trace: Trace) -> dict[str, Ruling]:
    """Decide P(u* is dropped by either test) <= δ; `sees` from the nearer threshold of the two tests."""
    true_u, true_v = (chosen == case.instance.truth for chosen in (trace.u, trace.v))
    gone = (trace.rejected & true_u) | (trace.rejected_v & true_v)
    rival = rival_sides(case, settings, trace, (case.instance.truth,))
    ratio = np.minimum(
        least_ratio(trace.threshold, np.where(true_u, trace.error, 0.0)), least_ratio(rival.threshold, rival.error)
    )
    return {"kept": probability(int(gone.any(axis=1).sum()), len(gone), DELTA, ratio)}


def bare(case: Regime, settings: EliminationSettings, trace: Trace) -> dict[str, Ruling]:
    """Decide the same for each test without its widths, by name of the test."""
    one = case.instance
    rival = rival_sides(case, settings, trace, (one.truth,))
    found = {"u": fired(trace, one.truth, xis(settings, one.many, settings.xi), 0.0), "v": rival.error > rival.bare}
    return {test: probability(int(bad.any(axis=1).sum()), len(bad), DELTA) for test, bad in found.items()}


def others(case: Regime, settings: EliminationSettings, trace: Trace, by_v: bool) -> dict[str, Ruling]:
    """Decide P(no wrong candidate is dropped by the test of u_t, or v_t) <= ½, and with HUNDRED times its threshold."""
    one = case.instance
    sides, fell, chosen = trace, trace.rejected, trace.u
    if by_v:
        sides, fell, chosen = rival_sides(case, settings, trace, range(one.many)), trace.rejected_v, trace.v
    wrong = chosen != one.truth
    dropped = {"others": fell & wrong, "hundred": (sides.error > HUNDRED * sides.threshold) & wrong}
    return {kind: probability(int((~d).all(axis=1).sum()), len(d), 0.5) for kind, d in dropped.items()}
