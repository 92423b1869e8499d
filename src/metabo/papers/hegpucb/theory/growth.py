"""How the regret of HE-GP-UCB grows (HE-GP-UCB §4, §6): with T on four types of hyperparameters, with |U|, with γ_T."""

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import run_all, traced
from metabo.papers.engine.theory.estimated import rate, within
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.theory import instances, stuck
from metabo.papers.hegpucb.theory.posteriors import simulate
from metabo.papers.hegpucb.theory.regimes import Regime, play, settings_of
from metabo.papers.hegpucb.theory.regret import gains

CHECKS = {
    "no_regret": "Theorems 4.1 and 4.2: R_T/T vanishes",
    "dependence": "Theorems 4.1 and 4.2: dependence on |U| and on γ_T",
}
RUNS = {"no_regret": 100, "dependence": 200}
LONG, SHORT = 400, 100
TIMES = np.unique(np.geomspace(50, LONG, 10).astype(int))
ROUGHEST = "rough length-scale, GP"
POWER = 0.9
"""The rates are compared with T^POWER: an interval around 1 would not decide against T itself."""
CANDIDATES = (1, 2, 5, 10, 20)
ROUGH = (0.3, 0.15, 0.075, 0.0375)
"""Length-scales of the second candidate; f is of the first, 0.3."""
SMOOTH = (0.3, 0.6, 1.2, 2.4)
"""The same for a second candidate that is not rougher: the control."""
FEW = 5
"""|U| from which the cost of wrong candidates is fitted."""
LINEAR, DEPENDS = 1.5, 0.25
"""Limits of the powers: between |U| and |U|², as an interval around 1 would not decide against 1 itself; and between no
dependence on γ_T and √γ_T, that of the bound at the same β."""


def types() -> dict[str, Regime]:
    """Return a case of every type of hyperparameter of §7, and one in which the wrong candidates lead astray."""
    return {
        ROUGHEST: Regime(instances.lengthscales((0.03, 2.0, 4.0), 0), True),
        "length-scale, norm": Regime(instances.lengthscales((0.1, 0.15, 0.2, 0.3, 0.5), 2), False),
        "period, GP": Regime(instances.periods(3), True),
        "decomposition, GP": Regime(instances.decompositions(1), True),
        "mean, GP": Regime(instances.means(2), True),
    }


def no_regret(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the slope of log E R_T in log T for every type, of the algorithm as printed and repaired.

    Three controls must have a slope above POWER: random queries, MLE where it missed the peak of function (a), and
    HE-GP-UCB without the true candidate where the others lead astray.
    """
    count, made = runs(RUNS["no_regret"], share), []
    missing = _slope(_stuck(jax.random.fold_in(key, len(types())), count), rule="MLE, peak missed")
    for version in ("printed", "repaired"):
        own, astray = [], [missing]
        for place, (name, case) in enumerate(types().items()):
            keys = jax.random.split(jax.random.fold_in(key, place))
            settings = settings_of(case, version == "printed", LONG)
            f, trace, _ = play(case, settings, keys[0], count)
            queries = generator(keys[1]).integers(0, f.shape[1], trace.point.shape)
            chance = f.max(axis=1, keepdims=True) - np.take_along_axis(f, queries, axis=1)
            own.append(_slope(trace.regret, case=name))
            astray.append(_slope(chance, case=name, rule="random"))
            if name == ROUGHEST:
                wrong = simulate(_without_truth(case).problem(), "he_gp_ucb", settings, keys[1], f)
                astray.append(_slope(wrong.regret, case=name, rule="without the truth"))
        less = f"E R_T ∝ T^s with s <= {POWER} over T = {TIMES[0]} to {TIMES[-1]}"
        against = control("the same for random queries, for MLE and without the true candidate", astray)
        own_part = part("slope", less, "expectation", own, against)
        made.append(statement("No regret", f"R_T grows less than T^{POWER}", "§4", [own_part], version))
    return made


def _slope(regret: np.ndarray, **where: str) -> Cell:
    """Decide whether E R_T grows like T^POWER or less; `regret` (runs, T) of each iteration."""
    total = np.cumsum(regret, axis=1)[:, TIMES - 1]
    found = within(rate(total, TIMES), -np.inf, POWER)
    found.numbers["average"] = (total / TIMES).mean(axis=0)
    return cell(found, **where)


def _without_truth(case: Regime) -> instances.Instance:
    one, kept = case.instance, np.arange(case.instance.many) != case.instance.truth
    return one._replace(kernels=one.kernels[kept], means=one.means[kept], truth=-1)


def _stuck(key: Key[Array, ""], count: int) -> np.ndarray:
    """Return the regrets (runs, LONG) of MLE on function (a) in the runs without its peak by iteration stuck.EARLY."""
    problem = problems.make("lengthscale", (stuck.POINTS,), stuck.INITIAL, 0.0)
    settings = traced(EliminationSettings(LONG, xi="corrected", predictive=False))
    trace = run_all(problem, ("mle",), settings, jax.random.split(key, count))
    visited = np.concatenate([np.asarray(trace.initial), np.asarray(trace.point)], axis=2)[0]
    return np.asarray(trace.regret)[0][stuck.missed_early(np.asarray(problem.f), visited)]


def dependence(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check how R_T grows with the number of wrong candidates, and with the gain of a rough one, as printed and
    repaired."""
    return [one for version in ("printed", "repaired") for one in _dependence(key, share, version)]


def _dependence(key: Key[Array, ""], share: float, version: str) -> list[Statement]:
    count, keys, printed = runs(RUNS["dependence"], share), jax.random.split(key, 3), version == "printed"
    tall = [Regime(instances.means(-1, instances.TALL, 20, m), True) for m in CANDIDATES]
    rough = [Regime(instances.lengthscales((ROUGH[0], v), 0), True) for v in ROUGH]
    many, regret = _final(tall, keys[0], count, printed), _final(rough, keys[1], count, printed)
    gain = np.array([gains(case, SHORT)[-1] for case in rough])

    def slopes(values: np.ndarray, sizes: np.ndarray, low: float, high: float, **where: int) -> list[Cell]:
        found = within(rate(values, sizes), low, high)
        found.numbers["regrets"] = values.mean(axis=0)
        return [cell(found, T=SHORT, **where)]

    smooth = _independent([Regime(instances.lengthscales((ROUGH[0], v), 0), True) for v in SMOOTH], keys[2], count,
                          printed)  # fmt: skip
    sizes, wrong, extra = wrong_cost(many, np.array(CANDIDATES))
    increments = np.diff(many.mean(axis=0)) / np.diff(CANDIDATES)
    least, less = (slopes(values, wrong, -np.inf, LINEAR) for values in (extra, extra * (sizes + 1.0)))
    for c in least:
        c["numbers"] |= {"all": many.mean(axis=0).tolist(), "increments": increments.tolist()}
    name = f"over |U| = {sizes[0]} to {sizes[-1]}, T = {SHORT}"
    return [
        statement("Dependence on |U|", f"The cost of wrong candidates grows less than their number to {LINEAR}", "§4", [
            part("slope", f"E[R_T(|U|) - R_T(1)] ∝ (|U| - 1)^s with s <= {LINEAR} {name}, every wrong candidate to be "
                 "dropped", "expectation", least, control("the cost times |U| + 1, as if it were quadratic", less))],
            version),
        statement("Dependence on γ_T", "R_T grows with max_u γ_T^u, whatever u* is", "§6", [
            part("slope", f"E R_T ∝ (max_u γ_T^u)^s with s >= {DEPENDS}: f has ℓ = 0.3, the other candidate is ever "
                 "rougher",
                 "expectation", slopes(regret, gain, DEPENDS, np.inf),
                 control("the other candidate is smoother; γ_T of the rough ones in place of its own, a constant",
                         slopes(smooth, gain, DEPENDS, np.inf)))], version),
    ]  # fmt: skip


def wrong_cost(
    regret: Float[np.ndarray, "n k"], candidates: Int[np.ndarray, " k"]
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"], Float[np.ndarray, "n m"]]:
    """Return |U| from FEW on, the number of wrong candidates there, and R_T less that of one candidate, run by run.

    R_T itself has an offset, with which quadratic growth over these |U| has a slope below 1 too.
    """
    kept = candidates >= FEW
    return candidates[kept], candidates[kept] - 1, (regret - regret[:, :1])[:, kept]


def _independent(cases: list[Regime], key: Key[Array, ""], count: int, printed: bool) -> np.ndarray:
    """Return R_T at T = SHORT (n, k), with functions of its own for every case."""
    return np.concatenate(
        [_final([case], jax.random.fold_in(key, k), count, printed) for k, case in enumerate(cases)], axis=1
    )


def _final(cases: list[Regime], key: Key[Array, ""], count: int, printed: bool) -> np.ndarray:
    """Return R_T at T = SHORT of every run and case (n, k); the functions of a run are the same in all cases."""
    played = [play(case, settings_of(case, printed, SHORT), key, count) for case in cases]
    return np.stack([p.trace.regret.sum(axis=1) for p in played], axis=1)
