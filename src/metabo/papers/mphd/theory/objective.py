"""Eq. 2 (MPHD §2.2): what is left of Eq. 1 as a function of φ has the same maximiser."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key
from numpy.typing import ArrayLike
from scipy import stats

from metabo.methods.hierarchical.hyperprior import fit_gamma
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import identity, inequality
from metabo.papers.mphd.theory.evidence import laplace_log_evidence
from metabo.papers.mphd.theory.laplace import (
    DESIGNS,
    PRIOR,
    exact_log_evidence,
    fitted,
    log_prior,
    quadrature,
)
from metabo.papers.mphd.theory.lengthscales import POINTS, counts, covariances, scatters, spaced

CHECKS = {"equation2": "Eq. 2: the φ-dependent term of Eq. 1"}
DOMAINS, SETS = 16, 4
GRID = 60
"""Values of a, from 1 to 100, and of b, from 3 to 300."""


class Objectives(NamedTuple):
    """Eq. 1, Eq. 2 and the exact log evidence on the grid of φ = (a, b), each (a, b); φ̂ of Step 2, and Eq. 1 and the
    exact log evidence there."""

    laplace: np.ndarray
    terms: np.ndarray
    exact: np.ndarray
    a: np.ndarray
    b: np.ndarray
    fit: tuple[float, float]
    laplace_at_fit: float
    exact_at_fit: float


def objectives(rng: np.random.Generator) -> Objectives:
    """Draw DOMAINS domains of SETS sub-datasets and evaluate the three objectives.

    Eq. 2 by SciPy's density and φ̂ by the package's Step 2, neither of which Eq. 1 is made of.
    """
    x = spaced(rng, DESIGNS, POINTS, 1)
    rule, have = quadrature(x), counts(np.array([SETS]), DESIGNS)[0]
    # more domains than needed: those with ℓ̂ on the edge of C, where Eq. 1 is not defined, are left out
    truth = rng.gamma(PRIOR[0], 1.0 / PRIOR[1], 4 * DOMAINS)
    roots = np.linalg.cholesky(covariances(x, truth[:, None]))
    scatter = scatters(rng, roots, np.array([SETS]), len(truth))[:, 0]
    found = fitted(x, scatter, have, rule, rng)
    kept = np.flatnonzero(found.inside)[:DOMAINS]
    found = type(found)(*(values[kept] for values in found))
    constant = 0.5 * POINTS * SETS * np.log(2.0 * np.pi)  # of each domain's NLL, which `fitted` leaves out

    def exact(a: float, b: float) -> float:
        return float((exact_log_evidence(found, rule, a, b) - constant).sum())

    def laplace(a: ArrayLike, b: ArrayLike) -> np.ndarray | np.floating:
        prior = log_prior(found.logs, a, b)
        return np.sum(laplace_log_evidence(-found.least - constant, prior, found.bend / SETS, SETS, 1), axis=-1)

    a, b = np.geomspace(1.0, 100.0, GRID), np.geomspace(3.0, 300.0, GRID)
    column, row = a[:, None, None], b[:, None]
    terms = (stats.gamma.logpdf(np.exp(found.logs), column, scale=1.0 / row) + found.logs).sum(axis=-1)
    integrals = np.array([[exact(p, q) for q in b] for p in a])
    shape, rate = (float(value) for value in fit_gamma(np.exp(found.logs)))
    at_fit = float(laplace(shape, rate)), exact(shape, rate)
    return Objectives(laplace(column, row), terms, integrals, a, b, (shape, rate), *at_fit)


def equation2(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check that Eqs. 1 and 2 differ by a constant in φ, that Step 2 maximises Eq. 1, and the ∝ between them."""
    return decide(objectives(generator(key)))


def decide(found: Objectives) -> list[Statement]:
    """Decide the statements from the objectives."""
    where = {"N": DOMAINS, "M": SETS}

    def constant(values: np.ndarray) -> list[Cell]:
        return [cell(identity(values, values.mean()), **where)]

    def most(values: np.ndarray, at_fit: float) -> list[Cell]:
        ruling = inequality(values, at_fit, a=found.a[:, None], b=found.b)
        i, j = np.unravel_index(np.argmax(values), values.shape)
        ruling.numbers.update({"best": [found.a[i], found.b[j]], "fit": list(found.fit)})
        return [cell(ruling, **where)]

    difference = part(
        "difference", "Eq. 1 less Eq. 2 does not depend on φ = (a, b)", "identity",
        constant(found.laplace - found.terms),
        control("nor does the exact evidence less Eq. 2", constant(found.exact - found.terms)),
    )  # fmt: skip
    maximiser = part(
        "maximiser", "Eq. 1 is nowhere on the grid larger than at φ̂ of Step 2, the fit of a Gamma law to ℓ̂",
        "inequality", most(found.laplace, found.laplace_at_fit),
        control("nor is the exact evidence, with 4 sub-datasets a domain", most(found.exact, found.exact_at_fit)),
    )  # fmt: skip
    ratio = part(
        "ratio", "Eq. 1 ∝ Eq. 2: their ratio does not depend on φ", "identity", constant(found.laplace / found.terms),
        control("their ratio is 1", [cell(identity(found.laplace, found.terms), **where)]),
    )  # fmt: skip
    return [
        statement(
            "Eq. 2", "Eqs. 1 and 2 are equal up to a φ-free constant", "§2.2", [difference, maximiser], "repaired"
        ),
        statement("Eq. 2", "'∝' between sums of logarithms", "§2.2", [ratio]),
    ]
