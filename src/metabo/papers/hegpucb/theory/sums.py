"""Lemma 5.2 (HE-GP-UCB §5, appendix F) and the series of Theorem 4.2: sums without anything random."""

import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import identity, inequality

CHECKS = {"lemma52": "Lemma 5.2 and the series of Theorem 4.2"}
DRAWS = 100_000
CANDIDATES = (2, 5, 11)
ITERATIONS = (110, 220)
"""Divisible by every number of CANDIDATES."""
TERMS = np.unique(np.geomspace(1, 10**6, 40).astype(int))


def compositions(rng: np.random.Generator, total: int, parts: int, count: int) -> Int[np.ndarray, "n u"]:
    """Draw (|S^u|)_u, non-negative integers that sum to `total`, all compositions equally likely."""
    # a multinomial draw whose probabilities are uniform on the simplex is uniform over the compositions
    return rng.multinomial(total, rng.dirichlet(np.ones(parts), count))


def root_sum(sizes: Int[np.ndarray, "... u"]) -> Float[np.ndarray, "..."] | float:
    """Return Σ_u √|S^u|."""
    return np.sqrt(sizes).sum(axis=-1)


def lemma52(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the inequality on random compositions, its equality case, the printed box, and the sum of 1/t²."""
    rng, count = generator(key), runs(DRAWS, share)
    settings = [(total, parts) for total in ITERATIONS for parts in CANDIDATES]
    drawn = {(total, parts): root_sum(compositions(rng, total, parts, count)) for total, parts in settings}

    def below(power: float) -> list[Cell]:
        """Σ√|S^u| <= |U|^power √T."""
        return [
            cell(inequality(found, parts**power * np.sqrt(total)), T=total, candidates=parts)
            for (total, parts), found in drawn.items()
        ]

    def equal(shift: int) -> list[Cell]:
        cells = []
        for total, parts in settings:
            sizes = np.full(parts, total // parts)
            sizes[0], sizes[1] = sizes[0] + shift, sizes[1] - shift
            cells.append(cell(identity(root_sum(sizes), np.sqrt(parts * total)), T=total, candidates=parts))
        return cells

    def box(top: int) -> list[Cell]:
        """The sizes can sum to T if none exceeds `top`: T <= |U| top, for U of two."""
        return [cell(inequality(float(total), 2.0 * top), T=total, candidates=2) for total in ITERATIONS]

    lemma = [
        part("inequality", "Σ_u √|S_T^u| <= √(|U|T)", "inequality", below(0.5), control("it is <= √T", below(0.0))),
        part("equality", "equal at |S_T^u| = T/|U|", "identity", equal(0),
             control("equal at T/|U| + 1, T/|U| - 1, T/|U|, ...", equal(1))),
    ]  # fmt: skip
    feasible = part(
        "box", "Σ_u x_u = T has a solution with 0 <= x_u <= |U|, |U| = 2", "inequality", box(2),
        control("with 0 <= x_u <= 1", box(1)),
    )  # fmt: skip
    repaired = part(
        "box", "Σ_u x_u = T has a solution with 0 <= x_u <= T, |U| = 2", "inequality",
        [cell(inequality(float(total), 2.0 * total), T=total, candidates=2) for total in ITERATIONS],
        control("with 0 <= x_u <= 1", box(1)),
    )  # fmt: skip
    return [
        statement("Lemma 5.2", "Sizes of the sets of iterations", "§5, App. F", lemma),
        statement("Lemma 5.2, box", "|S_T^u| is in {1, ..., |U|}, and the constraint x_u <= |U|", "App. F",
                  [feasible], "proof step"),
        statement("Lemma 5.2, box", "x_u <= T", "App. F", [repaired], "repaired"),
        statement("Theorem 4.2, series", "Σ 1/t² <= π/6", "§5, App. D", [_series(np.pi / 6.0, "π/6")]),
        statement("Theorem 4.2, series", "Σ 1/t² <= π²/6", "App. I", [_series(np.pi**2 / 6.0, "π²/6")], "repaired"),
    ]  # fmt: skip


def _series(limit: float, name: str) -> StatementPart:
    sums = np.cumsum(1.0 / np.arange(1, TERMS[-1] + 1.0) ** 2)[TERMS - 1]
    return part(
        "series", f"Σ_{{t <= T}} 1/t² <= {name} for T up to 10^6", "inequality",
        [cell(inequality(sums, limit, T=TERMS))], control("it is <= 1/2", [cell(inequality(sums, 0.5, T=TERMS))]),
    )  # fmt: skip
