"""When one RKHS holds another (HE-GP-UCB §1, §6): length-scales of an RBF kernel, periods of a periodic kernel.

Norms are those of the smallest function that a kernel allows through given values: yᵀK⁻¹y grows with the points to the
squared norm, or without bound if the function is not in the RKHS. The periodic kernel exp(-2 sin²(πx/p)/ℓ²) is
Σ_k w_k cos(2πkx/p), w_0 = e^{-z} I_0(z) and w_k = 2e^{-z} I_k(z) with z = 1/ℓ²: sin and cos of frequency k have the
squared norm 1/w_k.
"""

import numpy as np
from jaxtyping import Array, Float, Key
from scipy import special

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import Ruling, identity, inequality
from metabo.papers.hegpucb.problems import periodic
from metabo.papers.hegpucb.theory.kernels import rbf

CHECKS = {"nesting": "Section 6: which RKHS hold one another"}
SHORT, LONG = 0.1, 0.2
"""ℓ_1 < ℓ_2."""
SIZES = tuple(range(4, 41))
WORST = 1e12
"""Larger grids than this condition number allows are left out: float64 has no digit left for them."""
FUNCTIONS, CENTRES = 50, 5
PERIODIC_LENGTHSCALE = 1.0
ORDERS = np.arange(1, 61)
RIDGES = 10.0 ** -np.arange(2.0, 9.0)
"""λ of yᵀ(K + λI)⁻¹y, which stays below ||f||² for every λ if f is in the RKHS, and grows like 1/λ if it is not."""
GROWTH = 3.0
"""How much it grows at least each time that λ falls tenfold."""
WAVES = np.linspace(0.0, 3.0, 301)
"""Inputs of the waves: several periods."""


def log_weights(orders: np.ndarray, lengthscale: float) -> Float[np.ndarray, " k"]:
    """Return ln w_k of the orders k >= 1, by the series of I_k: ive underflows."""
    z = 1.0 / lengthscale**2
    j = np.arange(60.0)
    k = np.asarray(orders, dtype=np.float64)[:, None]
    terms = (k + 2.0 * j) * np.log(z / 2.0) - special.gammaln(j + 1.0) - special.gammaln(k + j + 1.0)
    return np.log(2.0) - z + special.logsumexp(terms, axis=1)


def interpolation_norms(kernel: Float[np.ndarray, "n n"], y: Float[np.ndarray, "r n"]) -> Float[np.ndarray, " r"]:
    """Return yᵀK⁻¹y of each row of y."""
    return np.sum(y * np.linalg.solve(kernel, y.T).T, axis=1)


def growing_norms(
    model: float, truth: float, centres: np.ndarray, weights: np.ndarray
) -> tuple[list[int], Float[np.ndarray, "r k"], Float[np.ndarray, " r"]]:
    """Return grid sizes, yᵀK⁻¹y under ℓ = `model` on them, and the squared norms of f = Σ_i a_i k_truth(·, c_i)."""
    squared = np.einsum("ri,rij,rj->r", weights, np.stack([rbf(c, c, truth) for c in centres]), weights)
    sizes, norms = [], []
    for size in SIZES:
        x = np.linspace(0.0, 1.0, size)
        kernel = rbf(x, x, model)
        if np.linalg.cond(kernel) > WORST:
            break
        y = np.stack([rbf(x, c, truth) @ a for c, a in zip(centres, weights, strict=True)])
        sizes.append(size)
        norms.append(interpolation_norms(kernel, y))
    return sizes, np.stack(norms, axis=1), squared


def nesting(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check both directions for length-scales; incommensurate and commensurate periods."""
    rng = generator(key)
    centres, weights = rng.random((FUNCTIONS, CENTRES)), rng.standard_normal((FUNCTIONS, CENTRES))
    return [
        statement("Nesting, length-scale", "f in H(k_ℓ2) is in H(k_ℓ1) for ℓ1 <= ℓ2", "§1",
                  [_lengthscales(centres, weights)]),
        statement("Nesting, periods", "Some functions of period P1 have no period P2, and vice versa", "§6",
                  [_different()]),
        statement("Nesting, multiples", "Periods that are integer multiples are nested", "§6",
                  [_section()], "reading"),
        statement("Nesting, multiples", "sin(4πx), of period 1/2, has a finite norm under period 1", "§6",
                  [_sine()], "repaired"),
    ]  # fmt: skip


def _lengthscales(centres: np.ndarray, weights: np.ndarray) -> StatementPart:
    def cells(model: float, truth: float) -> list[Cell]:
        sizes, norms, squared = growing_norms(model, truth, centres, weights)
        bound = LONG / SHORT * squared[:, None]
        found = inequality(norms, np.broadcast_to(bound, norms.shape), points=np.broadcast_to(sizes, norms.shape))
        found.numbers["growth"] = (norms / squared[:, None]).max(axis=0)
        return [cell(found, model=model, truth=truth, largest_grid=sizes[-1])]

    return part(
        "bounded", "yᵀK_ℓ1⁻¹y <= (ℓ2/ℓ1)||f||²_ℓ2 on every grid, f in H(k_ℓ2)", "inequality", cells(SHORT, LONG),
        control("the same with ℓ1 and ℓ2 exchanged", cells(LONG, SHORT)),
    )  # fmt: skip


def ridge_norms(kernel: Float[np.ndarray, "n n"], y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " l"]:
    """Return yᵀ(K + λI)⁻¹y for every λ of RIDGES, from the eigenvalues of K."""
    values, vectors = np.linalg.eigh(kernel)
    return np.sum((vectors.T @ y) ** 2 / (np.maximum(values, 0.0) + RIDGES[:, None]), axis=1)


def _different() -> StatementPart:
    """sin(2πx/P1) under the kernel of period P2: no function of that RKHS goes through it if its norm has no bound."""

    def cells(pairs: tuple[tuple[float, float], ...]) -> list[Cell]:
        found = []
        for own, other in pairs:
            norms = ridge_norms(
                periodic(WAVES[:, None], other, PERIODIC_LENGTHSCALE), np.sin(2.0 * np.pi * WAVES / own)
            )
            decided = inequality(GROWTH, norms[1:] / norms[:-1], ridge=RIDGES[1:])
            found.append(cell(Ruling(decided.verdict, decided.numbers | {"norms": norms}), period=own, other=other))
        return found

    return part(
        "period", "yᵀ(K_P2 + λI)⁻¹y of sin(2πx/P1) grows at least threefold whenever λ falls tenfold", "inequality",
        cells(((0.7, 1.0), (1.0, 0.7), (1.0, 0.5), (2.0 / 7.0, 0.25), (0.25, 2.0 / 7.0))),
        control("also for P1 = P2/2 and P1 = P2/4", cells(((0.5, 1.0), (0.25, 1.0)))),
    )  # fmt: skip


def _section() -> StatementPart:
    """k_{1/2}(·, 0) has the coefficients w_k at frequency 2k: its squared norm under period 1 is Σ w_k²/w_2k."""
    logs = log_weights(np.arange(1, 2 * ORDERS[-1] + 1), PERIODIC_LENGTHSCALE)
    terms = 2.0 * logs[ORDERS - 1] - logs[2 * ORDERS - 1]
    own = logs[ORDERS - 1]

    def cells(values: np.ndarray, slack: float) -> list[Cell]:
        found = inequality(np.exp(np.diff(values)), slack, order=ORDERS[1:])
        found.numbers["last_ratio"] = float(np.exp(values[-1] - values[-2]))
        return [cell(found, period=0.5, other=1.0, lengthscale=PERIODIC_LENGTHSCALE)]

    return part(
        "section", "||k_{1/2}(·, 0)||² = Σ_k w_k²/w_2k under period 1 is finite: its terms do not grow (k <= 60)",
        "inequality", cells(terms, 1.0),
        control("those of its norm under its own period, Σ w_k, grow fourfold", [
            cell(inequality(4.0, np.exp(np.diff(own)), order=ORDERS[1:]), period=0.5, other=0.5,
                 lengthscale=PERIODIC_LENGTHSCALE)]),
    )  # fmt: skip


def _sine() -> StatementPart:
    """On n equal steps of one period, yᵀK⁻¹y of sin(4πx) is 1/w_2 up to w_{n-2}/w_2."""
    cells, wrong = [], []
    logs = log_weights(np.arange(1, 3), PERIODIC_LENGTHSCALE)
    for size in (14, 16, 18):
        x = np.arange(size) / size
        kernel = periodic(x[:, None], 1.0, PERIODIC_LENGTHSCALE)
        norm = interpolation_norms(kernel, np.sin(4.0 * np.pi * x)[None])[0]
        cells.append(cell(identity(norm, np.exp(-logs[1])), points=size))
        wrong.append(cell(identity(norm, np.exp(-logs[0])), points=size))
    return part("norm", "yᵀK⁻¹y = 1/w_2", "identity", cells, control("it is 1/w_1", wrong))
