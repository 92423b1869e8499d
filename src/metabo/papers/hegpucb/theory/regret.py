"""Theorems 4.1 and 4.2 and Lemma 5.3 (HE-GP-UCB §4, §5, appendices C, D, G): the regret of HE-GP-UCB and its bounds.

The bounds take the greedy information gain, which is at most γ_T, and the largest β_t^{u_t} of a run: they are at most
those of the theorems, so that what holds here holds there.
"""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import Ruling, identity, inequality, least_ratio, probability, upper_bound
from metabo.papers.hegpucb.theory import bounds, instances
from metabo.papers.hegpucb.theory.intervals import UNSURE, rice
from metabo.papers.hegpucb.theory.posteriors import greedy
from metabo.papers.hegpucb.theory.preservation import DELTA, NORM, SCALES, Regime, criticals, play, settings_of, xis

CHECKS = {
    "theorem41": "Theorem 4.1: regret for functions with a bounded norm",
    "theorem42": "Theorem 4.2: regret for GP samples",
    "lemma53": "Lemma 5.3: sum of the widths",
}
RUNS = {"regret": 500, "lemma53": 200}
ITERATIONS = 200
SHRINK = 200.0
"""The controls divide the bound by this."""


def gains(case: Regime, iterations: int) -> Float[np.ndarray, " t"]:
    """Return max_u of the greedy gain of 1..T points: γ_T is at least this, and at most UNSURE times this."""
    found = [
        np.asarray(greedy(k, instances.R**2, iterations + 1))[1:] for k in np.unique(case.instance.kernels, axis=0)
    ]
    return np.max(found, axis=0)


def covered(regret: Float[np.ndarray, "n t"], bound: Float[np.ndarray, "n t"], delta: float) -> Ruling:
    """Decide P(R_T > bound for some T) <= δ, and report the slack: the largest share of the bound that is used."""
    total = np.cumsum(regret, axis=1)
    bad = (~(total <= bound)).any(axis=1)
    found = probability(int(bad.sum()), len(total), delta, least_ratio(bound, total))
    slack = {"regret": float(np.quantile(total[:, -1], 1.0 - delta)), "bound": float(np.median(bound[:, -1]))}
    return Ruling(found.verdict, found.numbers | slack | {"largest_share": float((total / bound).max())})


def bound_of(
    case: Regime, settings: EliminationSettings, trace: Trace, gain: Float[np.ndarray, " t"]
) -> Float[np.ndarray, "n t"]:
    """Return the bound on R_T for T = 1..T of every run."""
    one, t = case.instance, np.arange(1, settings.T + 1)
    beta = np.maximum.accumulate(trace.beta, axis=1)
    norm, infinite = NORM, settings.beta == "bayes_infinite"
    if case.bayes:  # Lemma 5.4
        norm = float(trace.beta[0, 0] + np.abs(one.means).max() + infinite)
    xi = xis(settings, one.many, settings.xi)
    return bounds.regret_bound(norm, beta, xi, gain, one.many, t, instances.R, infinite=infinite)


def theorem41(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the frequentist bound, of the algorithm as printed and repaired."""
    case = Regime(instances.lengthscales(SCALES, 0), False)
    smooth = Regime(instances.lengthscales(SCALES, len(SCALES) - 1), False)
    named = {"shortest length-scale": case, "longest length-scale": smooth}
    return _versions("Theorem 4.1", "Regret for ||f|| <= B", "§4, App. C", named, key, share)


def theorem42(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the Bayesian bounds: finite domains (A), and a grid of an infinite one (B)."""
    finite = {
        "length-scales": Regime(instances.lengthscales(SCALES, 0), True),
        "means": Regime(instances.means(-1, instances.TALL), True),
    }
    keys = jax.random.split(key)
    a, b = rice(SCALES[0])
    form = partial(EliminationSettings._replace, beta="bayes_infinite", a=a, b=b)
    infinite = {"length-scales": finite["length-scales"]}
    return [
        *_versions("Theorem 4.2(A)", "Regret for GP samples, |X| finite", "§4, App. D", finite, keys[0], share),
        *_versions("Theorem 4.2(B)", "Regret for GP samples, |X| = ∞", "§4, App. D", infinite, keys[1], share, form),
    ]  # fmt: skip


def _versions(
    id: str,
    title: str,
    where: str,
    named: dict[str, Regime],
    key: Key[Array, ""],
    share: float,
    form: Callable[[EliminationSettings], EliminationSettings] | None = None,
) -> list[Statement]:
    """Return the statement for Algorithm 1 as printed and repaired. `form`: changes of the settings."""
    made, count = [], runs(RUNS["regret"], share)
    for version in ("printed", "repaired"):
        whole, shrunk = [], []
        for place, (name, case) in enumerate(named.items()):
            settings = settings_of(case, version == "printed", ITERATIONS)
            settings = form(settings) if form else settings
            played = play(case, settings, jax.random.fold_in(key, 2 * place + (version == "printed")), count)
            bound = bound_of(case, settings, played.trace, gains(case, ITERATIONS))
            for factor, cells in ((1.0, whole), (1.0 / SHRINK, shrunk)):
                cells.append(cell(covered(played.trace.regret, factor * bound, DELTA), case=name))
        test = "σ_i and constants as printed" if version == "printed" else "σ_{i-1}, ξ_t with 3δ_B"
        own = part("coverage", f"P[R_T > bound for some T <= {ITERATIONS}] <= δ, {test}", "probability", whole,
                   control(f"bound/{SHRINK:.0f}", shrunk))  # fmt: skip
        made.append(statement(id, title, where, [own], version))
    return made


# --- Lemma 5.3


def lemma53(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Σ β⁺σ⁺ against its bound with C = 2/log(1 + R^-2), with half of it, and two steps of the proof."""
    count, own, half, least = runs(RUNS["lemma53"], share), [], [], []
    named = {
        "length-scales, GP": Regime(instances.lengthscales(SCALES, 0), True),
        "means, GP": Regime(instances.means(-1, instances.TALL), True),
        "length-scales, norm": Regime(instances.lengthscales(SCALES, 0), False),
    }
    constant = bounds.width_constant(instances.R)
    before = after = None
    for place, (name, case) in enumerate(named.items()):
        settings = settings_of(case, False, ITERATIONS)
        trace = play(case, settings, jax.random.fold_in(key, place), count).trace
        t, many, gain = np.arange(1, ITERATIONS + 1), case.instance.many, gains(case, ITERATIONS)
        total = np.cumsum(np.where(criticals(trace), 0.0, trace.beta * trace.sigma), axis=1)
        beta = np.maximum.accumulate(trace.beta, axis=1)
        where, points = {"case": name}, np.broadcast_to(t, total.shape)
        found = upper_bound(total, bounds.width_sum(beta, gain, many, t, constant), T=points)
        largest = total / bounds.width_sum(beta, gain, many, t, constant)
        own.append(cell(Ruling(found.verdict, found.numbers | {"largest_share": largest.max()}), **where))
        # the first iteration of one candidate: σ_0 = 1 and γ_1 = ½ log(1 + R^-2)
        first = bounds.width_sum(beta[:, 0], gain[0], 1, 1.0, 0.5 * constant)
        half.append(cell(inequality(trace.beta[:, 0] * trace.sigma[:, 0], first), **where, candidates=1, T=1))
        upper = bounds.width_sum(beta, UNSURE * gain, many, t, 0.5 * constant)
        found = upper_bound(total, upper, T=points)
        least.append(cell(found, **where))
        if before is None:
            before = trace.sigma**2
            after = before * instances.R**2 / (before + instances.R**2)  # with x_t among the observations
    step = part(
        "variance", "(σ_{t-1})²(x_t) = (σ_{X_t})²(x_t), X_t the first t queries", "identity",
        [cell(identity(before, after))], control("it is (σ_{X_t})²(x_t) + 1", [cell(identity(before, after + 1.0))]),
    )  # fmt: skip
    sound = part(
        "variance", "σ² <= ½ C log(1 + σ²/R²) for σ² <= 1", "inequality", [_concave(constant)],
        control("with half of C", [_concave(0.5 * constant)]),
    )  # fmt: skip
    return [
        statement("Lemma 5.3", "Some C does: C = 2/log(1 + R^-2)", "§5, App. G", [
            part("sum", f"Σ_{{t not in C}} β⁺σ⁺ <= β_T √(CT|U|γ_T) at every T <= {ITERATIONS}, greedy gain for γ_T",
                 "inequality", own, control("half of C, |U| = T = 1", half)), sound]),
        statement("Lemma 5.3, half of C", "C = 1/log(1 + R^-2) on these runs, upper bound of γ_T", "App. G", [
            part("sum", "Σ β⁺σ⁺ <= β_T √(½CT|U|γ_T)", "inequality", least,
                 control("half of C, |U| = T = 1", half))], "ours"),
        statement("Lemma 5.3, X_t", "The posterior variance before x_t is that of X_t", "App. G", [step], "proof step"),
    ]  # fmt: skip


def _concave(constant: float) -> Cell:
    variance = np.geomspace(1e-6, 1.0, 200)
    right = 0.5 * constant * np.log1p(variance / instances.R**2)
    return cell(inequality(variance, right, variance=variance), constant=constant)
