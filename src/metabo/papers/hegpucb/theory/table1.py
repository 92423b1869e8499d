"""Table 1 (HE-GP-UCB §3) and the limits of Theorems 4.1, 4.2, 6.1: the bounds for an RBF kernel, as numbers.

γ_T is the gain of a design that spends T/c queries on each of c points of [0, 1]: at most γ_T, of the same growth.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination import confidence
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.verdicts import Ruling, inequality
from metabo.papers.hegpucb.theory import bounds, instances

CHECKS = {"table1": "Table 1: the bounds as functions of |U| and T"}
TIMES = np.geomspace(1e2, 1e5, 7)
MANY = np.array([1, 5, 20, 100, 400])
NORM, DELTA = 1.0, 0.1


def even_gain(gram: Float[np.ndarray, "c c"], times: Float[np.ndarray, " t"]) -> Float[np.ndarray, " t"]:
    """Return ½ log|I + (T/c) K/R²|: the gain of T queries, evenly over the c points."""
    values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    return 0.5 * np.log1p(np.multiply.outer(times, values) / (len(gram) * instances.R**2)).sum(axis=1)


class BoundFactors(NamedTuple):
    """T, γ_T, and β_T of Theorems 4.1 and 4.2(A), (t,); `largest`: B of Lemma 5.4, β_1."""

    times: Float[np.ndarray, " t"]
    gain: Float[np.ndarray, " t"]
    frequentist: Float[np.ndarray, " t"]
    bayes: Float[np.ndarray, " t"]
    largest: float


def setting(times: Float[np.ndarray, " t"]) -> BoundFactors:
    """Return the setting: an RBF kernel, ℓ = 0.2, on 101 points of [0, 1]."""
    one = instances.lengthscales((0.2,), 0)
    gain, points = even_gain(one.kernels[0], times), len(one.x)
    frequentist = np.asarray(confidence.beta_frequentist(NORM, instances.R, gain, DELTA))
    bayes = np.asarray(confidence.beta_bayes_finite(points, times, DELTA))
    return BoundFactors(times, gain, frequentist, bayes, float(confidence.beta_bayes_finite(points, 1, DELTA)))


def theorem(own: BoundFactors, many: int, bayes: bool = False) -> Float[np.ndarray, " t"]:
    """Return the bound of Theorem 4.1, or 4.2(A) if `bayes`, for |U| = `many`."""
    xi = np.asarray(confidence.xi(own.times, instances.R, many, DELTA))
    beta, norm = (own.bayes, own.largest) if bayes else (own.frequentist, NORM)
    return bounds.regret_bound(norm, beta, xi, own.gain, many, own.times, instances.R)


def row(own: BoundFactors, many: int, bayes: bool = False, per_root: bool = False) -> Float[np.ndarray, " t"]:
    """Return the bound of HE-GP-UCB in Table 1; `per_root`: with the theorem's √|U|."""
    if bayes:
        return bounds.table_row_bayes(own.largest, own.gain * (many if per_root else 1), many, own.times, 1, 101)
    return bounds.table_row(NORM, own.gain, many, own.times, per_root=per_root)


def expressions(own: BoundFactors, many: int) -> dict[str, list[float]]:
    """Return the frequentist column of Table 1 over the times, with one γ for all rows.

    The other four have the same expression, but for the A_θ^B B of A-GP-UCB, which does not grow with T.
    """
    others = bounds.table_row(NORM, own.gain, 0, own.times)
    return {"others": others.tolist(), "HE-GP-UCB": row(own, many).tolist()}


def table1(_key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check the theorems' bounds against Table 1 over |U|, their growth with |U|, and R_T/T in both limits."""
    own = setting(TIMES)
    return [
        statement("Table 1, HE-GP-UCB", "Õ(|U|B + √T(B√γ + γ)) and Õ(|U|B + √(TγE))", "§3", [
            _within_row(own, bayes, False) for bayes in (False, True)]),
        statement("Table 1, HE-GP-UCB", "With √(|U|T) in place of √T", "§3", [
            _within_row(own, bayes, True) for bayes in (False, True)], "repaired"),
        statement("Table 1, |U|", "The ratio of the theorem's bound to that of one candidate grows like √|U|", "§4", [
            _root(own)], "ours"),
        statement("No regret, limit", "The bound on R_T/T vanishes as T → 0", "§4, §6", [_limit(False)]),
        statement("No regret, limit", "It vanishes as T → ∞", "§4, §6", [_limit(True)], "repaired"),
    ]  # fmt: skip


def _within_row(own: BoundFactors, bayes: bool, per_root: bool) -> StatementPart:
    """Õ hides logarithms, of |U| too: a factor 1 + ln|U| is allowed over the ratio for one candidate."""
    one = theorem(own, 1, bayes) / row(own, 1, bayes)

    def cells(scale: float, chosen: np.ndarray) -> list[Cell]:
        made = []
        for many in chosen:
            ratio = theorem(own, int(many), bayes) / row(own, int(many), bayes, per_root) / one
            found = inequality(ratio, scale * (1.0 + np.log(many)), T=TIMES)
            more = {} if bayes else expressions(own, int(many))
            made.append(cell(Ruling(found.verdict, found.numbers | more), candidates=int(many)))
        return made

    name = "Bayesian" if bayes else "frequentist"
    return part(name, "(theorem's bound)/(Table 1) is at most 1 + ln|U| times that for |U| = 1", "inequality",
                cells(1.0, MANY), control("at most 0.1 times that", cells(0.1, MANY)))  # fmt: skip


def _root(own: BoundFactors) -> StatementPart:
    ratio = np.array([theorem(own, int(m))[-1] for m in MANY]) / theorem(own, 1)[-1]
    printed = np.array([row(own, int(m))[-1] for m in MANY]) / row(own, 1)[-1]

    def cells(values: np.ndarray) -> list[Cell]:
        slope = np.polyfit(np.log(MANY), np.log(values), 1)[0]
        return [cell(inequality(abs(slope - 0.5), 0.1), slope=float(slope), T=float(TIMES[-1]))]

    return part("slope", "slope of the log ratio in log|U| within 0.1 of ½ at T = 10^5", "inequality", cells(ratio),
                control("also that of Table 1's row", cells(printed)))  # fmt: skip


def _limit(large: bool) -> StatementPart:
    """R_T/T over falling T (as printed, down to T = 1), or over growing T."""
    times = np.geomspace(1.0, 1e6, 25)
    rate = theorem(setting(times), 5) / times
    falls = (rate[1:], rate[:-1]) if large else (rate[:-1], rate[1:])
    halves = (2.0 * falls[0], falls[1])

    def cells(pair: tuple[np.ndarray, np.ndarray]) -> list[Cell]:
        return [cell(inequality(*pair, T=times[1:]), candidates=5, first=float(rate[0]), last=float(rate[-1]))]

    towards = "grows to 10^6" if large else "falls to 1"
    return part("limit", f"the bound over T falls as T {towards}", "inequality", cells(falls),
                control("it halves at each step of a factor 10^(1/4)", cells(halves)))  # fmt: skip
