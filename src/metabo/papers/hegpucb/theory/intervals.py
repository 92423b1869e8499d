"""Theorem 3.1 and Lemma 5.4 (HE-GP-UCB §3, §5, appendix H): confidence intervals of the true model, for all x and t.

Queries are those of GP-UCB with the true hyperparameter; the theorem holds for any that look at the past only. The
frequentist β as printed carries the factor R of IGP-UCB, whose regulariser is 1 + 2/T and not R² (sheet §2.2).
"""

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination import confidence
from metabo.methods.elimination.problem import EliminationSettings
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, least_ratio, probability
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.posteriors import PosteriorTrace, greedy, posterior, simulate

CHECKS = {
    "theorem31_bayes": "Theorem 3.1: intervals of a GP sample",
    "theorem31_frequentist": "Theorem 3.1: intervals of a function with a bounded norm",
    "lemma54": "Lemma 5.4: the largest value of a GP sample",
}
DELTA = 0.1
"""δ_A."""
RUNS = {"bayes": 1000, "frequentist": 400, "sup": 20_000}
POINTS, LENGTHSCALE = 200, 0.2
ITERATIONS = {"bayes": 100, "frequentist": 50}
NORMS, NOISES = (0.2, 1.0, 5.0), (0.01, 0.1, 0.5)
UNSURE = 1.0 / (1.0 - np.exp(-1.0))
"""γ <= UNSURE times the greedy gain."""


def missing(found: PosteriorTrace, beta: Float[np.ndarray, "..."]) -> Ruling:
    """Decide P(|f(x) - μ_{t-1}(x)| > β_t σ_{t-1}(x) for some x and t) <= δ_A; β (t,) or (n, t)."""
    bad = (~(found.distance <= beta)).any(axis=1)
    return probability(int(bad.sum()), len(bad), DELTA, least_ratio(beta, found.distance))


def _below(sup: Float[np.ndarray, " n"], limit: float) -> Ruling:
    """Decide P(sup |f| > limit) <= δ/2."""
    return probability(int((~(sup <= limit)).sum()), len(sup), DELTA / 2, least_ratio(limit, sup))


def bayes_beta(iterations: int) -> Float[np.ndarray, " t"]:
    """Return β_t of Theorem 3.1 for a GP sample (δ_A = DELTA): that of Theorem 4.2(A) at δ = 2δ_A."""
    return np.asarray(confidence.beta_bayes_finite(POINTS, np.arange(1, iterations + 1), 2.0 * DELTA))


def frequentist_beta(norm: float, noise: float, gain: Float[np.ndarray, "..."], printed: bool) -> np.ndarray:
    """Return β_t of Theorem 3.1 for ||f|| <= B (δ_A = DELTA), with the factor R if `printed`."""
    return np.asarray(confidence.beta_frequentist(norm, noise, gain, 2.0 * DELTA, printed))


# --- a GP sample


def theorem31_bayes(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the Bayesian half, and what §1 and §6 say of other priors, that none will do, for shorter length-scales."""
    keys, count, length = jax.random.split(key, 4), runs(RUNS["bayes"], share), ITERATIONS["bayes"]
    true = instances.lengthscales((LENGTHSCALE,), 0, POINTS)
    f = instances.gp_draws(generator(keys[0]), true, count)
    settings = EliminationSettings(length, delta=2.0 * DELTA, R=instances.R, beta="bayes_finite")
    trace = simulate(true.problem(), "gp_ucb", settings, keys[1], f)
    beta = bayes_beta(length)

    def coverage(gram: np.ndarray, factor: float, **where: float) -> Cell:
        found = posterior(gram, true.means[0], instances.R**2, f, trace.point, trace.y)
        return cell(missing(found, factor * beta), **where)

    def other(value: float) -> np.ndarray:
        return instances.lengthscales((value,), 0, POINTS).kernels[0]

    def held(value: float) -> Cell:
        found = posterior(other(value), true.means[0], instances.R**2, f, trace.point, trace.y)
        good = (found.distance <= beta).all(axis=1)
        return cell(probability(int(good.sum()), len(good), 1.0 - DELTA), lengthscale=value)

    own = part(
        "coverage", f"P[|f - μ_{{t-1}}| > β_t σ_{{t-1}} for some x, t <= {length}] <= δ_A", "probability",
        [coverage(true.kernels[0], 1.0, lengthscale=LENGTHSCALE)],
        control("half of β", [coverage(true.kernels[0], 0.5, lengthscale=LENGTHSCALE)]),
    )  # fmt: skip
    shorter = part(
        "shorter", "intervals of a prior with a shorter length-scale than the true one (0.2) hold with 1 - δ_A",
        "probability", [coverage(other(v), 1.0, lengthscale=v) for v in (0.1, 0.15)],
        control("also those of a longer one", [coverage(other(v), 1.0, lengthscale=v) for v in (0.4, 0.8)]),
    )  # fmt: skip
    needed = part(
        "needed", "intervals of a prior with a shorter length-scale than the true one (0.2) hold with at most 1 - δ_A",
        "probability", [held(v) for v in (0.1, 0.15)], control("so do those of the true one", [held(LENGTHSCALE)]),
    )  # fmt: skip
    return [
        statement("Theorem 3.1, Bayesian", "Confidence intervals of a GP sample", "§3", [own]),
        statement("Shorter length-scale, Bayesian", "Only the exact prior gives valid intervals, no shorter "
                  "length-scale", "§1, §6", [needed], "reading"),
        statement("Shorter length-scale, Bayesian", "§1 and §6: another prior cannot replace the true one; here it "
                  "does", "§1, §6", [shorter], "ours"),
    ]  # fmt: skip


# --- a function with a bounded norm


def theorem31_frequentist(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the frequentist half: factor R as printed, factor 1, and factor R with the regulariser of IGP-UCB."""
    count, length = runs(RUNS["frequentist"], share), ITERATIONS["frequentist"]
    true = instances.lengthscales((LENGTHSCALE,), 0)
    found: dict[str, list[Cell]] = {name: [] for name in ("printed", "repaired", "igp", "norm alone")}
    for place, (norm, noise) in enumerate([(b, r) for b in NORMS for r in NOISES]):
        keys = jax.random.split(jax.random.fold_in(key, place), 3)
        f = instances.rkhs_draws(generator(keys[0]), true, count, norm)
        most = UNSURE * np.asarray(greedy(true.kernels[0], noise**2, length))
        settings = EliminationSettings(length, delta=2.0 * DELTA, B=norm, R=noise)
        printed = simulate(true.problem(noise), "gp_ucb", settings._replace(beta="frequentist_printed"), keys[1], f)
        sound = simulate(true.problem(noise), "gp_ucb", settings, keys[2], f)
        own, repaired, igp = (
            posterior(true.kernels[0], true.means[0], variance, f, trace.point, trace.y)
            for trace, variance in ((printed, noise**2), (sound, noise**2), (sound, 1.0 + 2.0 / length))
        )
        judged = {
            "printed": (own, frequentist_beta(norm, noise, most, True)),
            "repaired": (repaired, frequentist_beta(norm, noise, repaired.gain, False)),
            "igp": (igp, frequentist_beta(norm, noise, igp.gain, True)),
        }
        if norm == min(NORMS):
            judged["norm alone"] = (repaired, np.full(length, norm))
        for name, (at, beta) in judged.items():
            found[name].append(cell(missing(at, beta), B=norm, R=noise))

    def made(name: str, claim: str) -> list[StatementPart]:
        return [part("coverage", claim, "probability", found[name], control("β = B", found["norm alone"]))]

    bad = f"P[|f - μ_{{t-1}}| > β_t σ_{{t-1}} for some x, t <= {length}] <= δ_A"
    title = "Theorem 3.1, frequentist"
    return [
        statement(title, "Confidence intervals of f with ||f|| <= B", "§3",
                  made("printed", f"{bad}, β = B + R√(2(γ + 1 + ln(1/δ_A))), upper bound of γ")),
        statement(title, "β without the factor R", "§3",
                  made("repaired", f"{bad}, β = B + √(2(γ + 1 + ln(1/δ_A))), γ of the queries"), "repaired"),
        statement(f"{title}, IGP-UCB", "The factor R with the regulariser 1 + 2/T in place of R²", "§3",
                  made("igp", f"{bad}, λ = 1 + 2/T, β as printed with γ of the queries"), "repaired"),
    ]  # fmt: skip


# --- the largest value


def lemma54(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check max |f| <= β_1 + max |μ_0| on a finite domain, and with one more on a fine grid of an infinite one."""
    count, rng = runs(RUNS["sup"], share), generator(key)
    zero = instances.lengthscales((LENGTHSCALE,), 0)
    tall = instances.alone(instances.means(2))
    fine = instances.lengthscales((LENGTHSCALE,), 0, 1001)
    a, b = rice(LENGTHSCALE)
    beta_inf = float(confidence.beta_bayes_infinite(1, 1, a, b, 1.0, DELTA))
    finite, infinite, less, less_inf = [], [], [], []
    for name, one in (("zero mean", zero), ("hills", tall)):
        sup = np.abs(instances.gp_draws(rng, one, count)).max(axis=1)
        beta = float(confidence.beta_bayes_finite(len(one.x), 1, DELTA))
        top = float(np.abs(one.means).max())
        wrong = 0.5 * beta if name == "zero mean" else beta
        for limit, cells in ((beta + top, finite), (wrong, less)):
            cells.append(cell(_below(sup, limit), mean=name, B=limit))
    sup = np.abs(instances.gp_draws(rng, fine, count)).max(axis=1)
    for limit, cells in ((beta_inf + 1.0, infinite), (beta_inf / 3.0, less_inf)):
        cells.append(cell(_below(sup, limit), B=limit))
    return [
        statement("Lemma 5.4", "sup |f| <= B with probability 1 - δ/2", "§5, App. H", [
            part("finite", "P[max |f| > β_1 + max |μ_0|] <= δ/2", "probability", finite,
                 control("half of β_1; β_1 without max |μ_0|", less)),
            part("infinite", "P[sup |f| > β_1 + sup |μ_0| + 1] <= δ/2, 1001 points for [0, 1]", "probability",
                 infinite, control("a third of β_1", less_inf)),
        ]),
    ]  # fmt: skip


def rice(lengthscale: float) -> tuple[float, float]:
    """Return (a, b) of Assumption B.1 for an RBF kernel on [0, 1]: P(sup |f'| > L) <= a exp(-L²/b) at every L.

    By Rice's formula: f' exceeds L at 0, or crosses it upwards (√3/(2πℓ) exp(-L²ℓ²/2) times on average); so does -f'.
    """
    return 1.0 + np.sqrt(3.0) / (np.pi * lengthscale), 2.0 / lengthscale**2
