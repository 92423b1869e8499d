"""Theorem 2 (MPHD §3.1): lengthscales of maximum likelihood are consistent as the sub-datasets of a domain grow."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key
from scipy.spatial import KDTree

from metabo.papers.engine.theory.estimated import rate, spread, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import inequality, probability
from metabo.papers.mphd.theory import lengthscales, scoring
from metabo.papers.mphd.theory.lengthscales import (
    POINTS,
    SPACING,
    TIE,
    LengthscaleTable,
    counts,
    covariances,
    grid,
    losses,
    minimise,
    scatters,
    spaced,
    table,
)

CHECKS = {
    "theorem2": "Theorem 2: consistency of one lengthscale",
    "theorem2_ard": "Theorem 2: consistency of three lengthscales",
}
SIZES = 2 ** np.arange(9)
"""M, sub-datasets of the domain: 1 to 256."""
LATE = SIZES >= 16
"""The sizes that the rate is fitted to."""
DESIGNS = 8
"""Designs that sub-datasets share where assumption (1) holds: what it says of eight designs holds for every M."""
RUNS = {1: 2000, 3: 2000}
"""Replicates by input dimension: with 500 neither P < 0.01 nor a spread to 10 % could be decided at level 0.001."""
TRUTH = {1: np.array([0.3]), 3: np.array([0.3, 0.5, 0.8])}
RADIUS, ALLOWED = 0.02, 0.01
"""P(|ℓ̂ - ℓ*| > RADIUS) < ALLOWED at M = 256 in one dimension."""
DEVIATIONS = RADIUS * float(np.sqrt(256 * 184))
"""RADIUS in asymptotic standard deviations at M = 256, for I_1 = 184 (sheet §7): the radius in three dimensions."""
RATE, EFFICIENCY = (-0.6, -0.4), (0.9, 1.1)
LEAST = 2 ** np.arange(7)
"""Sub-datasets, 1 to 64, over which the least distance between two inputs of one of them is taken."""
KEEPS, GROWS = (-0.05, np.inf), (0.05, np.inf)
"""Rate in M of a least distance that does not vanish; for i.i.d. uniform inputs it is -1/d. GROWS is a control's."""
DISTANCES, INPUTS = 200, 300
"""Replicates of the least distance; points of a sub-dataset in Super-dataset S."""
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
    """Draw designs: "spaced" (assumption 1 holds), "uniform" (one for every sub-dataset, and it does not), "far" (K is
    diagonal)."""
    if kind == "far":
        return np.broadcast_to(FAR * np.arange(float(POINTS))[:, None], (DESIGNS, POINTS, dim)).copy()
    if kind == "uniform":
        return rng.random((int(SIZES[-1]), POINTS, dim))
    return spaced(rng, DESIGNS, POINTS, dim, SPACING)


def estimate(x: np.ndarray, scatter: np.ndarray, have: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return ℓ̂ (n, p) of n data sets, on a grid for one input dimension, by scoring for several."""
    if x.shape[-1] > 1:
        return scoring.estimate(x, scatter, have, rng)
    return lengthscales.estimate(table(x, grid()), scatter, have, rng)[:, None]


def estimate_each(rng: np.random.Generator, x: np.ndarray, truth: np.ndarray, replicates: int) -> np.ndarray:
    """Return ℓ̂ (r, sizes, 1) where sub-dataset j is observed at x[j], x (M, l, 1): the NLL on the grid is summed over
    j, since scatter matrices of as many designs would not fit in memory."""
    known, roots = table(x, grid()), np.linalg.cholesky(covariances(x, truth[None])[0])
    logs, values, found = np.log(known.nodes[:, 0]), np.zeros((replicates, len(known.nodes))), []
    for j, root in enumerate(roots):
        y = rng.standard_normal((replicates, POINTS)) @ root.T
        scatter = y[:, None, :, None] * y[:, None, None, :]
        own = LengthscaleTable(known.nodes, known.precision[:, j : j + 1], known.logdet[:, j : j + 1])
        values += losses(own, scatter, np.ones(1))
        if j + 1 in SIZES:
            found.append(np.exp(minimise(values, logs, rng, TIE * POINTS * (j + 1))))
    return np.stack(found, axis=1)[..., None]


def fits(rng: np.random.Generator, kind: str, dim: int, replicates: int) -> Fits:
    """Simulate `replicates` domains and estimate their lengthscales from their first M sub-datasets, M in SIZES."""
    truth, x = TRUTH[dim], designs(rng, kind, dim)
    information = scoring.information(x, truth, np.ones(len(x)) / len(x))
    if kind == "uniform":
        return Fits(truth, estimate_each(rng, x, truth, replicates), information)
    roots = np.linalg.cholesky(covariances(x, truth[None])[0])
    have = counts(SIZES, DESIGNS)
    scatter = scatters(rng, roots, SIZES, replicates)
    found = np.stack([estimate(x, scatter[:, place], h, rng) for place, h in enumerate(have)], axis=1)
    return Fits(truth, found, information)


def theorem2(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Theorem 2 in one dimension, with designs as it assumes and with uniform ones (assumption 1 fails)."""
    rng, count = generator(key), runs(RUNS[1], share)
    far = fits(rng, "far", 1, count)
    return [
        statement("Theorem 2", "ℓ̂ → ℓ* in probability as M → ∞, d = 1", "§3.1",
                  _parts(fits(rng, "spaced", 1, count), far)),
        statement("Theorem 2, uniform inputs", "The same with i.i.d. uniform inputs of every sub-dataset, whose least "
                  "distance vanishes (assumption 1 fails), d = 1", "§3.1",
                  _parts(fits(rng, "uniform", 1, count), far), "ours"),
        *_spacing(rng, runs(DISTANCES, share)),
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


def least_distances(x: np.ndarray) -> np.ndarray:
    """Return the least distance (r, k) between two inputs of one of the first M sub-datasets, M in LEAST, of
    x (r, M, l, d)."""
    flat = x.reshape(-1, *x.shape[-2:])
    each = np.array([KDTree(one).query(one, k=2)[0][:, 1].min() for one in flat]).reshape(x.shape[:2])
    return np.minimum.accumulate(each, axis=1)[:, LEAST - 1]


def spacing_cell(x: np.ndarray, allowed: tuple[float, float], name: str) -> Cell:
    """Decide the rate in M of E[least distance], x (r, M, l, d)."""
    least = least_distances(x)
    found = within(rate(least, LEAST), *allowed)
    found.numbers["distances"] = least.mean(axis=0)
    return cell(found, inputs=name, dim=x.shape[-1], L=x.shape[-2])


def apart(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw designs (count, M, l, 1), M = 64, in [0, 1] with inputs at least SPACING apart, in order: `spaced`'s law,
    without its many rejected draws."""
    free = np.sort(rng.random((count, int(LEAST[-1]), POINTS, 1)), axis=2) * (1.0 - (POINTS - 1) * SPACING)
    return free + SPACING * np.arange(float(POINTS))[:, None]


def _spacing(rng: np.random.Generator, count: int) -> list[Statement]:
    """Does the least distance between inputs stay away from 0 as sub-datasets are added? In the experiments (uniform
    inputs), and in the designs of these checks."""

    def uniform(points: int, dim: int) -> Cell:
        return spacing_cell(rng.random((count, int(LEAST[-1]), points, dim)), KEEPS, "uniform")

    kept = apart(rng, count)
    claim = f"E[least distance over M sub-datasets] ∝ M^s, s >= {KEEPS[0]}, over M = 1 to 64"
    return [
        statement("Assumption (1)", "Inputs of the experiments keep a distance δ from each other", "§3.1, App. E.1",
                  [part("least distance", claim + ", uniform inputs", "expectation",
                        [uniform(INPUTS, 2), uniform(INPUTS, 3)],
                        control(f"s >= {GROWS[0]} for inputs at least {SPACING} apart",
                                [spacing_cell(kept, GROWS, "spaced")]))], "reading"),
        statement("Assumption (1), designs", f"Inputs that are drawn at least {SPACING} apart do", "§3.1",
                  [part("least distance", claim + f", inputs at least {SPACING} apart", "expectation",
                        [spacing_cell(kept, KEEPS, "spaced")],
                        control("the same for as many uniform inputs", [uniform(POINTS, 1)]))], "ours"),
    ]  # fmt: skip
