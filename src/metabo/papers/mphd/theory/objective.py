"""Eq. 2 (MPHD §2.2): what is left of Eq. 1 as a function of φ has the same maximiser."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import identity
from metabo.papers.mphd.theory.laplace import (
    DESIGNS,
    PRIOR,
    exact_log_evidence,
    fitted,
    laplace_log_evidence,
    log_prior,
    quadrature,
)
from metabo.papers.mphd.theory.lengthscales import POINTS, counts, covariances, scatters, spaced

CHECKS = {"equation2": "Eq. 2: the φ-dependent term of Eq. 1"}
DOMAINS, SETS = 16, 4
GRID = 60
"""Values of a, from 1 to 100, and of b, from 3 to 300."""


class Objectives(NamedTuple):
    """Eq. 1, Eq. 2 and the exact log evidence on the grid of φ = (a, b), each (a, b)."""

    laplace: np.ndarray
    terms: np.ndarray
    exact: np.ndarray
    a: np.ndarray
    b: np.ndarray


def objectives(rng: np.random.Generator) -> Objectives:
    """Draw DOMAINS domains of SETS sub-datasets and evaluate the three objectives."""
    x = spaced(rng, DESIGNS, POINTS, 1)
    rule, have = quadrature(x), counts(np.array([SETS]), DESIGNS)[0]
    # more domains than needed: those with ℓ̂ on the edge of C, where Eq. 1 is not defined, are left out
    truth = rng.gamma(PRIOR[0], 1.0 / PRIOR[1], 4 * DOMAINS)
    roots = np.linalg.cholesky(covariances(x, truth[:, None]))
    scatter = scatters(rng, roots, np.array([SETS]), len(truth))[:, 0]
    found = fitted(x, scatter, have, rule, rng)
    kept = np.flatnonzero(found.inside)[:DOMAINS]
    found = type(found)(*(values[kept] for values in found))
    a, b = np.geomspace(1.0, 100.0, GRID), np.geomspace(3.0, 300.0, GRID)
    exact = np.array([[exact_log_evidence(found, rule, p, q).sum() for q in b] for p in a])
    prior = log_prior(found.logs, a[:, None, None], b[:, None])
    ours = laplace_log_evidence(-found.least, prior, found.bend / SETS, SETS, 1)
    return Objectives(ours.sum(axis=-1), prior.sum(axis=-1), exact, a, b)


def equation2(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check that Eqs. 1 and 2 differ by a constant in φ, hence have one maximiser, and the ∝ between them."""
    found = objectives(generator(key))
    where = {"N": DOMAINS, "M": SETS}

    def constant(values: np.ndarray) -> list[Cell]:
        return [cell(identity(values, values.mean()), **where)]

    def same(values: np.ndarray) -> list[Cell]:
        (i, j), (k, m) = (np.unravel_index(np.argmax(v), v.shape) for v in (values, found.terms))
        return [cell(identity(np.array([found.a[i], found.b[j]]), np.array([found.a[k], found.b[m]])), **where)]

    difference = part(
        "difference", "Eq. 1 less Eq. 2 does not depend on φ = (a, b)", "identity",
        constant(found.laplace - found.terms),
        control("nor does the exact evidence less Eq. 2", constant(found.exact - found.terms)),
    )  # fmt: skip
    maximiser = part(
        "maximiser", "Eqs. 1 and 2 have the same maximiser (a, b), to the node", "identity", same(found.laplace),
        control("the exact evidence has it, with 4 sub-datasets a domain", same(found.exact)),
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
