"""Lemma 4 (cm-BO appendix 1, cited from Chowdhury and Gopalan, 2017): confidence bounds, printed and corrected.

The lemma's β has the noise factor σ, which belongs to a posterior with the regulariser λ = 1 + 2/T, and no ‖f - μ_0‖ in
the RKHS of k_0. With λ = σ², as in Eqs. 1 and 2, the factor is 1 (Abbasi-Yadkori, 2013): for a fixed prior
|f(x) - μ_τ(x)| <= β √k_τ(x) for all x and τ with probability 1 - δ', β = ‖f - μ_0‖_{k_0} + √(2(γ + ln(1/δ'))).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.cmbo.theory.tasks import (
    NOISE,
    Gaussian,
    condition,
    draw_functions,
    greedy_information,
    information,
    values,
)
from metabo.papers.cmbo.theory.traces import constant, draw_sources, equal_grid, prior_of, prototypes, run
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, least_ratio, probability

CHECKS = {"lemma4": "Lemma 4: confidence bounds of the posterior"}
BOUND = 1.0
"""B, the norm of f in the RKHS of the kernel before any data."""
DELTA = 0.1
POINTS, QUERIES, RUNS, OBSERVED = 60, 20, 500, 50
UCB = 3.0
"""ξ of the queries."""
GREEDY = 1.0 / (1.0 - np.exp(-1.0))
"""The largest information of t points is at most GREEDY times that of t points chosen greedily."""


def printed_beta(gamma: np.ndarray, bound: float | np.ndarray, delta: float, noise: float) -> np.ndarray:
    """Return β_τ = B + σ √(2(γ_{τ-1} + 1 + ln(4/δ)))."""
    return bound + np.sqrt(noise) * np.sqrt(2.0 * (gamma + 1.0 + np.log(4.0 / delta)))


def corrected_beta(gamma: np.ndarray, norm: np.ndarray, delta: float) -> np.ndarray:
    """Return β_τ = ‖f - μ_0‖_{k_0} + √(2(γ_{τ-1} + ln(4/δ))); the information of the observed points will do for γ."""
    return norm + np.sqrt(2.0 * (gamma + np.log(4.0 / delta)))


def grid_norm(difference: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Return ‖g‖ (r,) of functions g on the grid (r, v) in the RKHS of k_0 there, √(gᵀ k_0⁻¹ g)."""
    solved = np.linalg.solve(cov, difference[..., None])[..., 0]
    return np.sqrt(np.maximum(np.sum(difference * solved, axis=-1), 0.0))


class Excess(NamedTuple):
    """Per replicate and query, (r, T): max over the grid of |f - μ_τ|/√k_τ, and three β; `norm` (r,) of f - μ_0.

    `printed` with B = BOUND, `own` the same with B = ‖f - μ_0‖, `corrected` without the factor σ as well.
    """

    ratio: np.ndarray
    printed: np.ndarray
    own: np.ndarray
    corrected: np.ndarray
    norm: np.ndarray


def excess(prior: Gaussian, truth: np.ndarray, index: np.ndarray, y: np.ndarray) -> Excess:
    """Return what the bounds of a fixed prior must cover, for observations y at grid points `index`, (r, T)."""
    greedy = GREEDY * greedy_information(prior.cov, QUERIES, NOISE)
    norm = grid_norm(truth - prior.mean, prior.cov)
    ratio, gain = [], []
    for t in range(QUERIES):
        found = condition(prior, index[:, :t], y[:, :t], NOISE) if t else prior
        spread = np.sqrt(np.diagonal(found.cov, axis1=1, axis2=2))
        ratio.append(np.max(np.abs(truth - found.mean) / spread, axis=1))
        gain.append(information(prior.cov, index[:, :t], NOISE) if t else np.zeros(len(y)))
    printed, own = (printed_beta(greedy[:, :QUERIES], b, DELTA, NOISE) for b in (BOUND, norm[:, None]))
    corrected = corrected_beta(np.stack(gain, axis=1), norm[:, None], DELTA)
    return Excess(np.stack(ratio, axis=1), printed, own, corrected, norm)


def drawn(rng: np.random.Generator, count: int, meta: bool) -> Excess:
    """Run GP-UCB from a zero-mean prior, or from a meta-prior of three source posteriors with equal, fixed weights."""
    grid = equal_grid(POINTS)
    if meta:
        sources = draw_sources(rng, count, OBSERVED, grid, owners=np.arange(3))
        centres, truth = prototypes(sources.mean, sources.cov, sources.owners), sources.truth
    else:
        own = prior_of(grid, count)
        centres = Gaussian(own.mean[:, None], own.cov[:, None])
        truth = values(draw_functions(rng, count, norm=BOUND), grid)
    steps = run(rng, centres, truth, QUERIES, constant(UCB), "none")
    last = steps[-1]
    y = np.column_stack([last.y, truth[np.arange(count), last.chosen] + np.sqrt(NOISE) * rng.standard_normal(count)])
    return excess(last.prior, truth, np.column_stack([last.index, last.chosen]), y)


def regularised(rng: np.random.Generator, count: int, factor: float) -> Ruling:
    """Decide the printed bound, β scaled by `factor`, for a zero-mean prior and the regulariser λ = 1 + 2/T."""
    regulariser = 1.0 + 2.0 / QUERIES
    grid = equal_grid(POINTS)
    truth, prior = values(draw_functions(rng, count, norm=BOUND), grid), prior_of(grid, count)
    gamma = greedy_information(prior.cov, QUERIES, regulariser) * GREEDY
    index, y = np.zeros((count, 0), int), np.zeros((count, 0))
    bad, ratio = np.zeros(count, bool), np.full(count, np.inf)
    for t in range(QUERIES):
        found = condition(prior, index, y, regulariser) if t else prior
        spread = np.sqrt(np.diagonal(found.cov, axis1=1, axis2=2))
        beta = factor * printed_beta(gamma[:, t], BOUND, DELTA, NOISE)[:, None]
        bad |= ~(np.abs(truth - found.mean) <= beta * spread).all(axis=1)
        ratio = np.minimum(ratio, least_ratio(beta * spread, np.abs(truth - found.mean)))
        chosen = np.argmax(found.mean + beta * spread, axis=1)
        new = truth[np.arange(count), chosen] + np.sqrt(NOISE) * rng.standard_normal(count)
        index, y = np.column_stack([index, chosen]), np.column_stack([y, new])
    return probability(int(bad.sum()), count, DELTA / 4.0, ratio)


def covered(found: Excess, beta: np.ndarray) -> Ruling:
    """Decide P[ratio > β at some query] <= δ/4; of the numbers, medians of the last β, the largest ratio, the norm."""
    bad = ~(found.ratio <= beta).all(axis=1)
    decided = probability(int(bad.sum()), len(bad), DELTA / 4.0, least_ratio(beta, found.ratio))
    decided.numbers.update({"beta": np.median(beta[:, -1]), "ratio": np.median(found.ratio.max(axis=1))})
    decided.numbers.update({"norm": np.median(found.norm)})
    return decided


def lemma4(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check three β for a zero-mean prior and a meta-prior with fixed weights, and the printed one with its λ."""
    rng, count = generator(key), runs(RUNS, share)
    found = {name: drawn(rng, count, name == "meta-prior") for name in ("zero mean", "meta-prior")}

    def cells(name: str, which: str, factor: float = 1.0) -> list[Cell]:
        own = found[name]
        return [cell(covered(own, factor * getattr(own, which)), prior=name, delta=DELTA)]

    claim = "P[|f - μ_τ| > β_τ √k_τ at some x and τ <= 20] <= δ/4"
    printed = [
        part(name, f"{claim}, {name}", "probability", cells(name, "printed"),
             control("the same with β/2", cells(name, "printed", 0.5)))
        for name in found
    ]  # fmt: skip

    def normed(which: str, beta: str) -> list[StatementPart]:
        return [
            part(name, f"{claim}, β = {beta}, {name}", "probability", cells(name, which),
                 control("the same without ‖f - μ_0‖ and with the factor σ",
                         [cell(covered(own, np.sqrt(NOISE) * (own.corrected - own.norm[:, None])), prior=name)]))
            for name, own in found.items()
        ]  # fmt: skip

    own_regulariser = part(
        "zero mean", f"{claim}, posterior with λ = 1 + 2/T in the place of σ²", "probability",
        [cell(regularised(rng, count, 1.0), regulariser=1.0 + 2.0 / QUERIES)],
        control("the same with β/10", [cell(regularised(rng, count, 0.1), regulariser=1.0 + 2.0 / QUERIES)]),
    )  # fmt: skip
    return [
        statement("Lemma 4", "|f - μ_τ| <= β_τ √k_τ, β_τ = B + σ√(2(γ + 1 + ln(4/δ)))", "App. 1.2", printed),
        statement("Lemma 4, B", "The printed β_τ with B = ‖f - μ_0‖, the norm in the RKHS of the prior's k_0",
                  "App. 1.2", normed("own", "‖f - μ_0‖ + σ√(2(γ + 1 + ln(4/δ)))"), "reading"),
        statement("Lemma 4", "B = ‖f - μ_0‖ in the RKHS of the prior's k_0, and no factor σ in β_τ", "App. 1.2",
                  normed("corrected", "‖f - μ_0‖ + √(2(γ + ln(4/δ)))"), "repaired"),
        statement("Lemma 4, λ", "The printed β_τ with the posterior that it was derived for, λ = 1 + 2/T for σ²",
                  "App. 1.2", [own_regulariser], "repaired"),
    ]  # fmt: skip
