"""Weights of the prototypes (cm-BO Algorithm 1, lines 19 to 21; appendix 1.2; sheet §2.4): what they can be."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Key

from metabo.gaussians import kmeans
from metabo.papers.cmbo.theory.traces import task_weights
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import identity, inequality

CHECKS = {"weights": "Weights of the prototypes: bounds, and sums of task weights"}
NUMBERS = (2, 3, 4, 5, 6)
"""C, prototypes."""
DRAWS = 20_000
FAR = 1e6
"""A distance far beyond all others."""
VANISHING = 1e-3
STRICT = 1e-9
"""Below 1 by this counts as below 1: rounding of a sum is smaller."""

Sides = Callable[[int, np.ndarray], tuple[np.ndarray | float, np.ndarray | float]]

_many = jax.jit(jax.vmap(kmeans.weights))


def distances(rng: np.random.Generator, number: int, count: int) -> np.ndarray:
    """Draw distances (count + C + 1, C): log-normal, then the extremes: all equal, and one zero with equal others."""
    random = np.exp(2.0 * rng.standard_normal((count, number)))
    return np.concatenate([random, np.ones((1, number)), 1.0 - np.eye(number)])


def least_weight(number: int) -> float:
    """Return 1/(1 + (C - 1)e), below which no weight falls."""
    return 1.0 / (1.0 + (number - 1) * np.e)


def largest_weight(number: int) -> float:
    """Return e/(e + C - 1), above which no weight rises."""
    return np.e / (np.e + number - 1)


def largest_square_sum(number: int) -> float:
    """Return (e² + C - 1)/(e + C - 1)², above which Σw² does not rise; it is at least 1/C."""
    return (np.e**2 + number - 1) / (np.e + number - 1) ** 2


def weights(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the package's weights: their sums and bounds, the paper's words for them, and Σζ, Σζ'."""
    rng, count = generator(key), runs(DRAWS, share)
    d = {number: distances(rng, number, count) for number in NUMBERS}
    w = {number: np.asarray(_many(values)) for number, values in d.items()}
    return [
        statement("Weights", "Weights of the prototypes: sum 1, ratio <= e, and the bounds that follow",
                  "Algorithm 1", _bounds(w), "ours"),
        statement("Weights, dissimilar", '"Approach smaller weights": a cluster far from the target gets one near 0',
                  "§3", [_vanishing()], "reading"),
        statement("Weights, inverse", '"Inversely proportional", said of line 21: a weight is proportional to 1/d',
                  "§3", [_law(d, w, "inverse")], "reading"),
        statement("Weights, inverse", "A weight is proportional to exp(1 - d/d_max)",
                  "Algorithm 1", [_law(d, w, "exponential")]),
        statement("Weights, equal", "All distances are 0 (d_max = 0): equal weights",
                  "Algorithm 1", [_equal()], "ours"),
        *_sums(rng, w),
    ]  # fmt: skip


def _bounds(w: dict[int, np.ndarray]) -> list[StatementPart]:
    def cells(sides: Sides) -> list[Cell]:
        return [cell(inequality(*sides(number, own)), clusters=number) for number, own in w.items()]

    def squares(own: np.ndarray) -> np.ndarray:
        return (own**2).sum(axis=1)

    one = [cell(identity(own.sum(axis=1), 1.0), clusters=n) for n, own in w.items()]
    half = [cell(identity(squares(own), 1.0), clusters=n) for n, own in w.items()]
    return [
        part("sum", "Σw = 1", "identity", one, control("Σw² = 1", half)),
        part("ratio", "max w/min w <= e", "inequality", cells(lambda _, w: (w.max(axis=1), np.e * w.min(axis=1))),
             control("<= 2", cells(lambda _, w: (w.max(axis=1), 2.0 * w.min(axis=1))))),
        part("least", "w >= 1/(1 + (C-1)e)", "inequality", cells(lambda c, w: (least_weight(c), w)),
             control("w >= 1.1/(1 + (C-1)e)", cells(lambda c, w: (1.1 * least_weight(c), w)))),
        part("largest", "w <= e/(e + C-1)", "inequality", cells(lambda c, w: (w, largest_weight(c))),
             control("w <= 0.9e/(e + C-1)", cells(lambda c, w: (w, 0.9 * largest_weight(c))))),
        part("least Σw²", "Σw² >= 1/C", "inequality", cells(lambda c, w: (1.0 / c, squares(w))),
             control("Σw² >= 1.1/C", cells(lambda c, w: (1.1 / c, squares(w))))),
        part("largest Σw²", "Σw² <= (e² + C-1)/(e + C-1)²", "inequality",
             cells(lambda c, w: (squares(w), largest_square_sum(c))),
             control("0.9 of it", cells(lambda c, w: (squares(w), 0.9 * largest_square_sum(c))))),
    ]  # fmt: skip


def _vanishing() -> StatementPart:
    """One cluster at a distance FAR from the target, the others near: its weight against zero."""
    cells, floor = [], []
    for number in NUMBERS:
        d = np.ones((1, number))
        d[0, -1] = FAR
        far = np.asarray(_many(d))[:, -1]
        cells.append(cell(inequality(far, VANISHING), clusters=number, distance=FAR))
        floor.append(cell(inequality(far, 0.9 * least_weight(number)), clusters=number, distance=FAR))
    return part("far", f"w < {VANISHING} of a cluster a million times farther than the others", "inequality", cells,
                control("w <= 0.9/(1 + (C-1)e)", floor))  # fmt: skip


def _law(d: dict[int, np.ndarray], w: dict[int, np.ndarray], which: str) -> StatementPart:
    """Ratios of the first two weights against the law's, at distances above 0."""

    def ratio(values: np.ndarray, law: str) -> np.ndarray:
        if law == "inverse":
            return values[:, 1] / values[:, 0]
        power = 2.0 if law == "twice" else 1.0
        return np.exp(power * (values[:, 1] - values[:, 0]) / values.max(axis=1))

    def cells(law: str) -> list[Cell]:
        kept = {n: (values > 0).all(axis=1) for n, values in d.items()}
        return [
            cell(identity(w[n][kept[n], 0] / w[n][kept[n], 1], ratio(values[kept[n]], law)), clusters=n)
            for n, values in d.items()
        ]

    claim = "w_1/w_2 = d_2/d_1" if which == "inverse" else "w_1/w_2 = exp((d_2 - d_1)/d_max)"
    return part("ratio", claim, "identity", cells(which), control("= exp(2(d_2 - d_1)/d_max)", cells("twice")))


def _equal() -> StatementPart:
    zero = {n: np.asarray(_many(np.zeros((1, n)))) for n in NUMBERS}
    near = {n: np.asarray(_many(np.arange(float(n))[None])) for n in NUMBERS}
    return part("zero", "w = 1/C", "identity", [cell(identity(own, 1.0 / n), clusters=n) for n, own in zero.items()],
                control("the same at distances 0, 1, 2, ...",
                        [cell(identity(own, 1.0 / n), clusters=n) for n, own in near.items()]))  # fmt: skip


def _sums(rng: np.random.Generator, w: dict[int, np.ndarray]) -> list[Statement]:
    """Σζ_i = 1; Σζ'_i = Σw² < 1, which fails for one cluster (GlobalCen)."""
    owners = {n: np.concatenate([np.arange(n), rng.integers(n, size=10)]) for n in (1, *NUMBERS)}
    own = {1: np.asarray(_many(np.ones((1, 1))))} | w
    zeta = {n: task_weights(values, owners[n]) for n, values in own.items()}

    sums = {n: (first.sum(axis=1), second.sum(axis=1)) for n, (first, second) in zeta.items()}

    def strict(*numbers: int) -> StatementPart:
        below = [cell(inequality(sums[n][1], 1.0 - STRICT), clusters=n) for n in numbers]
        lower = [cell(inequality(sums[n][1], 0.9 / n), clusters=n) for n in numbers]
        return part("Σζ'", "Σζ'_i < 1", "inequality", below, control("Σζ'_i < 0.9/C", lower))

    whole = {n: (zeta[n][0] * np.bincount(owners[n])[owners[n]]).sum(axis=1) for n in zeta}
    total = part("Σζ", "Σζ_i = 1", "identity", [cell(identity(sums[n][0], 1.0), clusters=n) for n in zeta],
                 control("Σζ_i|C(i)| = 1", [cell(identity(whole[n], 1.0), clusters=n) for n in zeta]))  # fmt: skip
    squares = part("Σw²", "Σζ'_i = Σw²", "identity",
                   [cell(identity(sums[n][1], (own[n] ** 2).sum(axis=1)), clusters=n) for n in zeta],
                   control("Σζ'_i = Σw", [cell(identity(sums[n][1], 1.0), clusters=n) for n in NUMBERS]))  # fmt: skip
    return [
        statement("Task weights", "Weights of tasks, ζ_i = w/|C(i)|, ζ'_i = w²/|C(i)|: Σζ_i = 1, Σζ'_i = Σw²",
                  "App. 1.2", [total, squares]),
        statement("Task weights, Σζ'", "Σζ'_i < 1 for every number of clusters", "App. 1.2", [strict(1, *NUMBERS)]),
        statement("Task weights, Σζ'", "Σζ'_i < 1 for two clusters or more", "App. 1.2", [strict(*NUMBERS)],
                  "repaired"),
    ]  # fmt: skip
