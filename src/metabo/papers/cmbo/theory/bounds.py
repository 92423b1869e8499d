"""The regret bound of cm-BO (Theorem 3.2, Eq. 9), printed, repaired, and without the source tasks."""

from typing import NamedTuple

import numpy as np

from metabo.papers.cmbo.theory.coverage import GREEDY, corrected_beta, grid_norm, printed_beta
from metabo.papers.cmbo.theory.gaps import alpha
from metabo.papers.cmbo.theory.tasks import NOISE, Gaussian, greedy_information, information
from metabo.papers.cmbo.theory.traces import QueryStep, Rule, SourceTasks, task_weights

NORM = 1.0
"""B of the printed β: the norm of every drawn target."""
DELTA = 0.1


class RegretTerms(NamedTuple):
    """What the bounds of one query are made of, (r,) each.

    `regret` r_τ, `beta`, `xi`, `alpha` α_τ, `printed_omega` and `omega` (2Σζ'√n/σ², 2Σζ'√|X_τ|/σ²), `eta_best` and
    `eta_chosen` (η at x* and x_τ), `eta` ‖η(X_τ)‖, `noise` (a bound on ‖y_τ - f(X_τ)‖ at level δ/4), `spread_best` and
    `spread_chosen` (√k_τ), `steps` τ-1, `observed` |X_τ|, and whether Lemma 4 (`within`, everywhere, with this β) and
    Lemma 5 (`close`) hold.
    """

    regret: np.ndarray
    beta: np.ndarray
    xi: np.ndarray
    alpha: np.ndarray
    printed_omega: np.ndarray
    omega: np.ndarray
    eta_best: np.ndarray
    eta_chosen: np.ndarray
    eta: np.ndarray
    noise: np.ndarray
    spread_best: np.ndarray
    spread_chosen: np.ndarray
    steps: np.ndarray
    observed: np.ndarray
    within: np.ndarray
    close: np.ndarray


def beta_of(prior: Gaussian, index: np.ndarray, truth: np.ndarray, which: str) -> np.ndarray:
    """Return β_τ (r,) of Lemma 4 for the prior of one query, "printed" (with B = NORM) or "corrected"."""
    if which == "printed":
        gamma = GREEDY * greedy_information(prior.cov, index.shape[1], NOISE)[:, -1]
        return printed_beta(gamma, NORM, DELTA, NOISE)
    gain = information(prior.cov, index, NOISE) if index.shape[1] else np.zeros(len(index))
    return corrected_beta(gain, grid_norm(truth - prior.mean, prior.cov), DELTA)


def rule(truth: np.ndarray, which: str, factor: float | None, fixed: float) -> Rule:
    """Return ξ = factor · β_τ, or `fixed` if the factor is None."""

    def xi(prior: Gaussian, _posterior: Gaussian, index: np.ndarray) -> np.ndarray:
        if factor is None:
            return np.full(len(index), fixed)
        return factor * beta_of(prior, index, truth, which)

    return xi


def terms(
    step: QueryStep, sources: SourceTasks, which: str, ideal: np.ndarray, truth: np.ndarray, power: int = 1
) -> RegretTerms:
    """Return the terms of one query. `ideal`, `truth`: those of the sources, computed once; `power` of |C| in the
    centres' covariance (see `traces.task_weights`)."""
    rows, best = np.arange(len(truth)), truth.argmax(axis=1)
    points, observed = sources.x.shape[-1], step.index.shape[1]
    zeta, squared = task_weights(step.weights, sources.owners, power)
    beta = beta_of(step.prior, step.index, truth, which)
    wanted = np.einsum("rk,rkv->rv", zeta, ideal)
    eta, spread = wanted - truth, np.sqrt(np.maximum(np.diagonal(step.posterior.cov, axis1=1, axis2=2), 0.0))
    bound = alpha(zeta, sources.gap, points, DELTA)
    total = 2.0 * squared.sum(axis=1) / NOISE
    noise = np.sqrt(2.0 * NOISE * observed * np.log(8.0 * max(observed, 1) / DELTA))
    return RegretTerms(
        regret=truth[rows, best] - truth[rows, step.chosen],
        beta=beta,
        xi=step.xi,
        alpha=bound,
        printed_omega=total * np.sqrt(points),
        omega=total * np.sqrt(observed),
        eta_best=eta[rows, best],
        eta_chosen=eta[rows, step.chosen],
        eta=np.linalg.norm(np.take_along_axis(eta, step.index, axis=1), axis=1),
        noise=np.full(len(truth), noise),
        spread_best=spread[rows, best],
        spread_chosen=spread[rows, step.chosen],
        steps=np.full(len(truth), float(observed)),
        observed=np.full(len(truth), float(observed)),
        within=(np.abs(truth - step.posterior.mean) <= beta[:, None] * spread).all(axis=1),
        close=(np.abs(step.prior.mean - wanted) <= bound[:, None]).all(axis=1),
    )


def printed(t: RegretTerms) -> np.ndarray:
    """Return Eq. 9: δ_τ(ι_τα_τ + η(x*) - η(x_τ) + ω_τ‖η(X_τ)‖) + (ξ/β)(ξ + β)√k_τ(x_τ)."""
    iota = 2.0 + t.printed_omega * np.sqrt(t.steps)
    first = iota * t.alpha + t.eta_best - t.eta_chosen + t.printed_omega * t.eta
    return (t.xi / t.beta - 1.0) * first + t.xi / t.beta * (t.xi + t.beta) * t.spread_chosen


def repaired(t: RegretTerms) -> np.ndarray:
    """Return the same for ξ >= β with |X_τ| in the place of n_i and τ-1, the noise of y_τ, and 2ξ√k_τ(x_τ) (Eq. 22)."""
    iota = 2.0 + t.omega * np.sqrt(t.observed)
    first = iota * t.alpha + t.eta_best - t.eta_chosen + t.omega * (t.eta + t.noise)
    return (t.xi / t.beta - 1.0) * first + 2.0 * t.xi * t.spread_chosen


def direct(t: RegretTerms) -> np.ndarray:
    """Return (ξ + β)√k_τ(x_τ) + max(β - ξ, 0)√k_τ(x*), which needs no ξ >= β, no source task and no Lemma 5.

    r_τ <= μ(x*) + β√k(x*) - μ(x_τ) + β√k(x_τ), and μ(x*) + ξ√k(x*) <= μ(x_τ) + ξ√k(x_τ).
    """
    return (t.xi + t.beta) * t.spread_chosen + np.maximum(t.beta - t.xi, 0.0) * t.spread_best
