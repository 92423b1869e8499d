"""Theorem 2 (MPHD §3.1): lengthscales of maximum likelihood are consistent as the sub-datasets of a domain grow."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key
from scipy.spatial.distance import pdist

from metabo.papers.engine.theory.estimated import rate, spread, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import inequality, probability
from metabo.papers.mphd.theory import lengthscales, scoring
from metabo.papers.mphd.theory.lengthscales import POINTS, SPACING, counts, covariances, grid, scatters, spaced, table

CHECKS = {
    "theorem2": "Theorem 2: consistency of one lengthscale",
    "theorem2_ard": "Theorem 2: consistency of three lengthscales",
}
SIZES = 2 ** np.arange(9)
"""M, sub-datasets of the domain: 1 to 256."""
LATE = SIZES >= 16
"""The sizes that the rate is fitted to."""
DESIGNS = 8
RUNS = {1: 2000, 3: 2000}
"""Replicates by input dimension: with 500 neither P < 0.01 nor a spread to 10 % could be decided at level 0.001."""
TRUTH = {1: np.array([0.3]), 3: np.array([0.3, 0.5, 0.8])}
RADIUS, ALLOWED = 0.02, 0.01
"""P(|ℓ̂ - ℓ*| > RADIUS) < ALLOWED at M = 256 in one dimension."""
DEVIATIONS = RADIUS * float(np.sqrt(256 * 184))
"""RADIUS in asymptotic standard deviations at M = 256, for I_1 = 184 (sheet §7): the radius in three dimensions."""
RATE, EFFICIENCY = (-0.6, -0.4), (0.9, 1.1)
FAR = 100.0 * lengthscales.HIGH
"""Distance of inputs in the control: the covariance is below 1e-90 at every ℓ in C."""


class Fits(NamedTuple):
    """Estimates ℓ̂ (r, sizes, p) of one kind of design, and the Fisher information (p, p) of one sub-dataset."""

    truth: np.ndarray
    found: np.ndarray
    information: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """ℓ̂ - ℓ*."""
        return self.found - self.truth

    @property
    def deviation(self) -> np.ndarray:
        """Asymptotic standard deviations at the largest M, (p,)."""
        return np.sqrt(np.diagonal(np.linalg.inv(self.information)) / SIZES[-1])


def designs(rng: np.random.Generator, kind: str, dim: int) -> np.ndarray:
    """Draw DESIGNS designs: "spaced" (assumption 1 holds), "uniform" (it does not), "far" (K is diagonal)."""
    if kind == "far":
        return np.broadcast_to(FAR * np.arange(float(POINTS))[:, None], (DESIGNS, POINTS, dim)).copy()
    return spaced(rng, DESIGNS, POINTS, dim, SPACING if kind == "spaced" else 0.0)


def estimate(x: np.ndarray, scatter: np.ndarray, have: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return ℓ̂ (n, p) of n data sets, on a grid for one input dimension, by scoring for several."""
    if x.shape[-1] > 1:
        return scoring.estimate(x, scatter, have, rng)
    return lengthscales.estimate(table(x, grid()), scatter, have, rng)[:, None]


def fits(rng: np.random.Generator, kind: str, dim: int, replicates: int) -> Fits:
    """Simulate `replicates` domains and estimate their lengthscales from their first M sub-datasets, M in SIZES."""
    truth, x = TRUTH[dim], designs(rng, kind, dim)
    roots = np.linalg.cholesky(covariances(x, truth[None])[0])
    have = counts(SIZES, DESIGNS)
    scatter = scatters(rng, roots, SIZES, replicates)
    found = np.stack([estimate(x, scatter[:, place], h, rng) for place, h in enumerate(have)], axis=1)
    return Fits(truth, found, scoring.information(x, truth, np.ones(DESIGNS) / DESIGNS))


def theorem2(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Theorem 2 in one dimension, with designs as it assumes and with uniform ones (assumption 1 fails)."""
    rng, count = generator(key), runs(RUNS[1], share)
    far = fits(rng, "far", 1, count)
    return [
        statement("Theorem 2", "ℓ̂ → ℓ* in probability as M → ∞, d = 1", "§3.1",
                  _parts(fits(rng, "spaced", 1, count), far)),
        statement("Theorem 2, uniform inputs", "The same without least distances (assumption 1), d = 1", "§3.1",
                  _parts(fits(rng, "uniform", 1, count), far), "ours"),
        statement("Assumption (1)", "Inputs of the experiments keep a distance δ from each other", "§3.1, App. E.1",
                  [_spacing(rng)], "reading"),
    ]  # fmt: skip


def theorem2_ard(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Theorem 2 in three dimensions, one lengthscale each."""
    rng, count = generator(key), runs(RUNS[3], share)
    far = fits(rng, "far", 3, count)
    parts = _parts(fits(rng, "spaced", 3, count), far)
    return [statement("Theorem 2, d = 3", "ℓ̂ → ℓ* in probability as M → ∞, d = 3", "§3.1", parts)]


def _parts(own: Fits, far: Fits) -> list[StatementPart]:
    radius = np.array([RADIUS]) if len(own.truth) == 1 else DEVIATIONS * own.deviation
    shrinking = 15.0 * radius / SIZES[:, None]
    return [
        part("consistent", f"P(|ℓ̂ - ℓ*| > r) < {ALLOWED} at M = 256", "probability", _outside(own, radius),
             control("the same where all inputs are so far apart that K is diagonal", _outside(far, radius))),
        part("monotone", "P(|ℓ̂ - ℓ*| > r) does not grow with M, within 2 binomial errors", "inequality",
             _monotone(own, np.broadcast_to(radius, shrinking.shape)),
             control("nor does P(|ℓ̂ - ℓ*| > 15r/M)", _monotone(own, shrinking))),
        part("rate", f"root mean square error ∝ M^s, s in {list(RATE)}, over M = 16 to 256", "expectation",
             _rates(own), control("the same where K is diagonal", _rates(far))),
        part("efficiency", f"sd(ℓ̂)/√(I⁻¹/M) in {list(EFFICIENCY)} at M = 256, I = ½ tr[K⁻¹∂K K⁻¹∂K]", "expectation",
             _efficiency(own, 1.0), control("the same for I without its ½", _efficiency(own, 2.0))),
    ]  # fmt: skip


def _setting(own: Fits, place: int) -> dict[str, float]:
    return {"lengthscale": float(own.truth[place])}


def _outside(own: Fits, radius: np.ndarray) -> list[Cell]:
    cells = []
    for place, r in enumerate(radius):
        bad = ~(np.abs(own.error[:, -1, place]) <= r)
        found = probability(int(bad.sum()), len(bad), ALLOWED)
        cells.append(cell(found, **_setting(own, place), M=int(SIZES[-1]), radius=float(r)))
    return cells


def _monotone(own: Fits, radius: np.ndarray) -> list[Cell]:
    """Compare the probabilities of successive M; `radius` (sizes, p)."""
    share = (np.abs(own.error) > radius).mean(axis=0)
    variance = share * (1.0 - share) / len(own.error)
    slack = 2.0 * np.sqrt(variance[1:] + variance[:-1])
    cells = []
    for place in range(len(own.truth)):
        found = inequality(share[1:, place], share[:-1, place] + slack[:, place], M=SIZES[1:])
        found.numbers["shares"] = share[:, place]
        cells.append(cell(found, **_setting(own, place)))
    return cells


def _rates(own: Fits) -> list[Cell]:
    squared = own.error[:, LATE] ** 2
    cells = []
    for place in range(len(own.truth)):
        found = within(rate(squared[..., place], SIZES[LATE], 0.5), *RATE)
        found.numbers["errors"] = np.sqrt(np.mean(own.error[..., place] ** 2, axis=0))
        cells.append(cell(found, **_setting(own, place)))
    return cells


def _efficiency(own: Fits, factor: float) -> list[Cell]:
    """`factor` multiplies the information."""
    cells = []
    for place, deviation in enumerate(own.deviation):
        ratio = spread(own.found[:, -1, place], deviation / np.sqrt(factor))
        found = within(ratio, *EFFICIENCY)
        found.numbers["information"] = own.information[place, place] * factor
        cells.append(cell(found, **_setting(own, place)))
    return cells


def _spacing(rng: np.random.Generator) -> StatementPart:
    """The least distance between two of 300 uniform inputs (Super-dataset S), over ever more sub-datasets."""
    cells, half = [], []
    for dim in (2, 3):
        least = np.minimum.accumulate([pdist(rng.random((300, dim))).min() for _ in range(1000)])
        for claimed, found in ((least[0], cells), (0.5 * least[0], half)):
            where = {"dim": dim, "L": 300}
            found.append(cell(inequality(claimed, least, M=np.arange(1, 1001)), **where))
    return part("least distance", "the least distance of the first sub-dataset is that of 1000 of them", "inequality",
                cells, control("the least of 1000 is at least half of it", half))  # fmt: skip
