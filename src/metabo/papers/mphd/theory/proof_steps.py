"""Lemma 2.1 and steps (8) to (10) of the proof of Theorem 2 (MPHD appendix C, after Bachoc 2021)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.linalg import JITTER
from metabo.gp.means import Zero
from metabo.gp.model import GP
from metabo.papers.engine.theory.estimated import rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, replicate, runs
from metabo.papers.engine.theory.verdicts import ENOUGH, expectation, inequality
from metabo.papers.mphd.theory.lengthscales import NOISE, POINTS, covariances, grid, spaced

CHECKS = {
    "lemma2_1": "Lemma 2.1: variance of the likelihood",
    "theorem2_steps": "Theorem 2: steps (8) to (10) of the proof",
}
TRUTH = 0.3
SIZES = 2 ** np.arange(2, 9)
"""M, sub-datasets: 4 to 256, each with a design of its own."""
NODES = 100
"""Lengthscales of the grid over C on which suprema and infima are taken."""
RUNS = 1000
APART = (0.005, 0.02, 0.1)
"""ε of step (10)."""
OTHER = 0.6
"""Lengthscale of the data in the control of step (9), where K* of ℓ* = TRUTH is misspecified."""
RATE = (-0.65, -0.35)
POSITIVE = 1e-9
"""A and B above this are positive: beyond the rounding that an inequality may have."""


class DesignTerms(NamedTuple):
    """Of every sub-dataset (M) and lengthscale (g): K_θ⁻¹, the traces of its product with K* and of the square of that
    product, ln det of the product, and ‖K_θ - K*‖²; `root` is that of K*."""

    precision: np.ndarray
    trace: np.ndarray
    square: np.ndarray
    logdet: np.ndarray
    distance: np.ndarray
    root: np.ndarray


def terms(x: np.ndarray, nodes: np.ndarray, lengthscale: float = TRUTH) -> DesignTerms:
    """Return the terms of designs x (M, l, 1) at lengthscales (g, 1), K* that of ℓ* = `lengthscale`."""
    own, true = covariances(x, nodes), covariances(x, np.array([[lengthscale]]))[0]
    precision = np.linalg.inv(own)
    product = precision @ true
    logdet = np.linalg.slogdet(true)[1] - np.linalg.slogdet(own)[1]
    return DesignTerms(
        precision,
        np.trace(product, axis1=-2, axis2=-1),
        np.trace(product @ product, axis1=-2, axis2=-1),
        logdet,
        np.sum((own - true) ** 2, axis=(-2, -1)),
        np.linalg.cholesky(true),
    )


def first(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the sums over the first M sub-datasets, M in `sizes`: values (..., M) -> (..., k)."""
    return np.cumsum(values, axis=-1)[..., sizes - 1]


def variance(square: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return var(ℒ_T(θ)) = (2/T²) tr[(K_θ⁻¹K*)²] for the first M sub-datasets: square (g, M) -> (g, k)."""
    return 2.0 * first(square, sizes) / (POINTS * sizes) ** 2


def expected_gap(found: DesignTerms, sizes: np.ndarray) -> np.ndarray:
    """Return Eℒ_T(θ) - Eℒ_T(θ*) = (1/T)[tr(K_θ⁻¹K*) - T - ln det(K_θ⁻¹K*)], (g, k)."""
    return first(found.trace - POINTS - found.logdet, sizes) / (POINTS * sizes)


def likelihood(lengthscale: float, x: Float[Array, "m l 1"], y: Float[Array, "m l"]) -> Float[Array, ""]:
    """Return ℒ_T(θ) = (1/T)(ln|K_θ| + yᵀK_θ⁻¹y) of M sub-datasets, by the package's likelihood."""
    noise = inverse_positive(jnp.asarray(NOISE - JITTER))
    kernel = Stationary(inverse_positive(jnp.array([lengthscale])), inverse_positive(jnp.asarray(1.0)), "matern52")
    gp = GP(Identity(), Zero(), kernel, noise)
    logs = jax.vmap(lambda a, b: gp.log_prob(a, b, jnp.ones(len(b), bool)))(x, y)
    return -2.0 * jnp.mean(logs) / x.shape[1] - jnp.log(2.0 * jnp.pi)


def lemma2_1(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Lemma 2.1: the exact variance of the likelihood, its rate, and its formula against simulation."""
    rng, nodes = generator(key), grid(25)
    bounded = _bounded(terms(spaced(rng, int(SIZES[-1]), POINTS, 1), nodes), nodes)
    simulated = _simulated(jax.random.fold_in(key, 1), spaced(rng, 4, POINTS, 1), runs(ENOUGH, share))
    return [statement("Lemma 2.1", "var(ℒ_T(θ)) = o(1), here O(1/T)", "App. C", [bounded, simulated])]


def _bounded(found: DesignTerms, nodes: np.ndarray) -> StatementPart:
    """T times the variance stays within a factor 2 over M, at every θ."""

    def cells(values: np.ndarray) -> list[Cell]:
        scaled = values * POINTS * SIZES
        return [cell(inequality(scaled.max(axis=1), 2.0 * scaled.min(axis=1), lengthscale=nodes[:, 0]))]

    # y_j the same for all j: the quadratic form is M times that of one sub-dataset
    copies = 2.0 * found.square[:, :1] / POINTS**2 * np.ones(len(SIZES))
    return part("rate", "T var(ℒ_T(θ)) differs by less than 2 between M = 4 and 256, at 25 lengthscales in C",
                "inequality", cells(variance(found.square, SIZES)),
                control("the same for M copies of one sub-dataset, outputs included", cells(copies)))  # fmt: skip


def _simulated(key: Key[Array, ""], x: np.ndarray, replicates: int) -> StatementPart:
    """The variance over drawn data, by the package's likelihood, against (2/T²) tr[(K_θ⁻¹K*)²]."""
    sets, tested = len(x), np.array([0.1, TRUTH, 1.0])
    own = terms(x, tested[:, None])
    exact = variance(own.square, np.array([sets]))[:, 0]
    logdet = np.linalg.slogdet(covariances(x, tested[:, None]))[1]
    centre = np.sum(own.trace + logdet, axis=1) / (sets * POINTS)
    inputs, root = jnp.asarray(x), jnp.asarray(own.root)

    def compute(normals: Float[Array, "m l"]) -> Float[Array, " t"]:
        y = jnp.einsum("mab,mb->ma", root, normals)
        return jnp.stack([likelihood(float(lengthscale), inputs, y) for lengthscale in tested])

    drawn = replicate(compute, lambda g, n: g.standard_normal((n, sets, POINTS)), key, replicates)

    def cells(factor: float) -> list[Cell]:
        squared = (drawn - centre) ** 2
        return [
            cell(expectation(squared[:, i], factor * v, v), lengthscale=float(tested[i]), M=sets)
            for i, v in enumerate(exact)
        ]

    return part("formula", f"var(ℒ_T(θ)) = (2/T²) tr[(K_θ⁻¹K*)²], M = {sets}", "expectation", cells(1.0),
                control("without the 2", cells(0.5)))  # fmt: skip


def theorem2_steps(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check (8) by simulation, (9) and (10) exactly, on a grid over C."""
    rng = generator(key)
    around = [[TRUTH + sign * apart] for apart in APART for sign in (-1.0, 1.0)]
    nodes = np.sort(np.append(grid(NODES), around, axis=0), axis=0)
    x = spaced(rng, int(SIZES[-1]), POINTS, 1)
    found = terms(x, nodes)
    far = terms(300.0 * np.arange(float(POINTS))[:, None] * np.ones((SIZES[-1], 1, 1)), nodes)
    return [
        statement("Step (8)", "sup_θ |ℒ_T - Eℒ_T| = o_p(1), here O_p(T^(-1/2))", "App. C",
                  [_uniform(rng, found, runs(RUNS, share))], "proof step"),
        statement("Step (9)", "Eℒ_T(θ) - Eℒ_T(θ*) >= A/T Σ (k_θ - k*)²", "App. C", [_separated(found, x, nodes)],
                  "proof step"),
        statement("Step (10)", "inf over |θ - θ*| >= ε of the left side of (9) is at least B > 0", "App. C",
                  [_positive(found, far, nodes)], "proof step"),
    ]  # fmt: skip


def _uniform(rng: np.random.Generator, found: DesignTerms, replicates: int) -> StatementPart:
    """(8): the mean over the replicates of the supremum over C falls like M^(-1/2)."""
    shape = (replicates, SIZES[-1], POINTS)
    independent = np.einsum("mab,rmb->rma", found.root, rng.standard_normal(shape))
    truth = found.root[0] @ found.root[0].T - NOISE * np.eye(POINTS)
    function = rng.standard_normal((replicates, 1, POINTS)) @ np.linalg.cholesky(truth + 1e-9 * np.eye(POINTS)).T
    shared = function + np.sqrt(NOISE) * rng.standard_normal(shape)

    def cells(y: np.ndarray, precision: np.ndarray, trace: np.ndarray) -> list[Cell]:
        return [cell(within(rate(_suprema(y, precision, trace), SIZES), *RATE))]

    one = found.precision[:, :1], found.trace[:, :1]
    return part("rate", f"E sup_θ |ℒ_T - Eℒ_T| ∝ M^s, s in {list(RATE)}, over M = 4 to 256", "expectation",
                cells(independent, found.precision, found.trace),
                control("the same for M sub-datasets of one function, at the same inputs",
                        cells(shared, *one)))  # fmt: skip


def _suprema(y: np.ndarray, precision: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Return sup_θ |ℒ_T - Eℒ_T| (r, k) of y (r, M, l), over the grid, for the sizes; one design for all, or M."""
    total, result = np.zeros((len(y), len(precision))), []
    for j in range(y.shape[1]):
        own = min(j, precision.shape[1] - 1)
        outer = (y[:, j, :, None] * y[:, j, None, :]).reshape(len(y), -1)
        total += outer @ precision[:, own].reshape(len(precision), -1).T - trace[:, own]
        if j + 1 in SIZES:
            result.append(np.abs(total).max(axis=1) / (POINTS * (j + 1)))
    return np.stack(result, axis=1)


def least_ratios(gap: np.ndarray, distance: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the least ratio of both sides of (9) without A, for each M, over the lengthscales nodes (g, 1) but ℓ*.

    `gap` (g, k): the left side; `distance` (g, M): ‖K_θ - K*‖² of each sub-dataset.
    """
    away = np.abs(nodes[:, 0] - TRUTH) > 1e-3
    return (gap[away] / (first(distance, SIZES)[away] / (POINTS * SIZES))).min(axis=0)


def kept_cell(least: np.ndarray) -> Cell:
    """Decide that a lower bound (k,) is positive and at every M at least half of that at M = 4."""
    found = inequality(np.append(0.5 * least[0], 0.0 * least + POSITIVE), np.append(least.min(), least))
    found.numbers["ratios"] = least
    return cell(found)


def _separated(found: DesignTerms, x: np.ndarray, nodes: np.ndarray) -> StatementPart:
    """(9): one A > 0 does for every θ in the grid and every M: the least ratio of both sides.

    The control: data of another lengthscale, for which E ℒ_T is not least at θ*.
    """
    elsewhere, at_truth = (terms(x, at, OTHER) for at in (nodes, np.array([[TRUTH]])))
    wrong = expected_gap(elsewhere, SIZES) - expected_gap(at_truth, SIZES)
    return part("one A for all M", "min over θ of (left side)/(right side without A) is positive, and at every M at "
                "least half of that at M = 4", "inequality",
                [kept_cell(least_ratios(expected_gap(found, SIZES), found.distance, nodes))],
                control(f"the same for data with ℓ = {OTHER}, which K* does not describe",
                        [kept_cell(least_ratios(wrong, found.distance, nodes))]))  # fmt: skip


def _positive(found: DesignTerms, far: DesignTerms, nodes: np.ndarray) -> StatementPart:
    """(10): the least gap outside (θ* - ε, θ* + ε) at every M is at least half of that at M = 4, which is positive."""
    holds, diagonal = [], []
    for apart in APART:
        away = np.abs(nodes[:, 0] - TRUTH) >= apart - 1e-12
        least, flat = (expected_gap(t, SIZES)[away].min(axis=0) for t in (found, far))
        bound = 0.5 * least[0]
        setting = {"bound": float(bound), "apart": apart}
        holds += [cell(inequality(bound, least, M=SIZES), **setting), cell(inequality(POSITIVE, bound), **setting)]
        diagonal.append(cell(inequality(bound, flat, M=SIZES), **setting))
    return part("B", f"B = half of the infimum at M = 4 is positive and a lower bound for M up to 256, ε = "
                f"{', '.join(map(str, APART))}", "inequality", holds,
                control("the same where all inputs are so far apart that K is diagonal", diagonal))  # fmt: skip
