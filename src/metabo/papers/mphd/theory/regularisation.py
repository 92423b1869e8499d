"""Regularisation by noise (MPHD appendix C, after Karvonen and Oates): how stable the estimated lengthscale is.

The paper says that small additive noise "does guarantee well-posedness": the check asks it of every function tried.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.estimated import Estimate, within
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.mphd.theory.lengthscales import counts, losses, minimise, table

CHECKS = {"regularisation": "Regularisation by noise"}
FUNCTIONS = {
    "sin 2πx": lambda x: np.sin(2.0 * np.pi * x),
    "x²": lambda x: x**2,
    "exp(-8(x - ½)²)": lambda x: np.exp(-8.0 * (x - 0.5) ** 2),
    "1/(1 + 4x²)": lambda x: 1.0 / (1.0 + 4.0 * x**2),
}
"""Smooth functions on [0, 1], observed at INPUTS evenly spaced inputs."""
INPUTS, PERTURBATION, RUNS = 15, 1e-3, 1000
NUGGET, NOISE = 1e-10, 1e-4
RATIO = 1.0
"""With noise, estimates spread less, for each of the functions."""
LENGTHSCALES = np.exp(np.linspace(np.log(0.02), np.log(50.0), 401))[:, None]


def fits(y: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Return ℓ̂ (n,) of outputs y (n, INPUTS) for a Matérn 5/2 kernel of variance 1 with `noise` on its diagonal."""
    x = np.linspace(0.0, 1.0, INPUTS)[None, :, None]
    known = table(x, LENGTHSCALES, noise=noise)
    values = losses(known, (y[:, :, None] * y[:, None, :])[:, None], counts(np.array([1]), 1)[0])
    return np.exp(minimise(values, np.log(LENGTHSCALES[:, 0]), rng, 1e-9))


class Comparison(NamedTuple):
    """sd(ℓ̂) with one noise variance over that with another, with its error; both sds; the shares of estimates that
    stopped at an end of the search."""

    ratio: Estimate
    deviations: np.ndarray
    ends: np.ndarray


def compare(y: np.ndarray, low: float, high: float, rng: np.random.Generator) -> Comparison:
    """Compare the spread of ℓ̂ over the rows of y (n, INPUTS) with noise variances `low` and `high`."""
    found = np.stack([fits(y, noise, rng) for noise in (low, high)], axis=1)
    ends = (np.abs(np.log(found[..., None] / LENGTHSCALES[[0, -1], 0])).min(axis=-1) < 1e-6).mean(axis=0)
    centred = found - found.mean(axis=0)
    variance = np.mean(centred**2, axis=0)
    influence = 0.5 * (centred**2 / variance) @ np.array([1.0, -1.0])
    ratio = float(np.sqrt(variance[0] / variance[1]))
    error = ratio * float(influence.std(ddof=1) / np.sqrt(len(y)))
    return Comparison(Estimate(ratio, error), np.sqrt(variance), ends)


def regularisation(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check that ℓ̂ is less stable with a nugget of 1e-10 than with σ² = 1e-4, for every one of the smooth functions.

    The control has more noise, not less, in the numerator: there, the same ratio is below 1.
    """
    rng, count = generator(key), runs(RUNS, share)
    x = np.linspace(0.0, 1.0, INPUTS)
    data = {n: f(x) + PERTURBATION * rng.standard_normal((count, INPUTS)) for n, f in FUNCTIONS.items()}
    stable = part(
        "ratio", f"sd(ℓ̂ | nugget 1e-10)/sd(ℓ̂ | σ² = 1e-4) > {RATIO:.0f} for each of four smooth functions, outputs "
        "perturbed by 1e-3", "expectation", ratio_cells(data, NUGGET, rng),
        control("sd(ℓ̂ | σ² = 4e-4)/sd(ℓ̂ | σ² = 1e-4) is", ratio_cells(data, 4.0 * NOISE, rng)),
    )  # fmt: skip
    return [statement("Regularisation by noise", "Noise stabilises the MLE of the lengthscale", "App. C", [stable])]


def ratio_cells(data: dict[str, np.ndarray], other: float, rng: np.random.Generator) -> list[Cell]:
    """Decide for each function that sd(ℓ̂) with noise variance `other` is the larger one."""
    cells = []
    for name, y in data.items():
        found = compare(y, other, NOISE, rng)
        ruling = within(found.ratio, RATIO, np.inf)
        ruling.numbers.update({"deviations": found.deviations, "ends": found.ends})
        cells.append(cell(ruling, function=name, inputs=INPUTS))
    return cells
