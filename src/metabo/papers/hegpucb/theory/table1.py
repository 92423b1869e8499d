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
FAR = np.geomspace(1e8, 1e16, 9)
"""T where |U| = √T: a power of T, which no power of a logarithm can hide."""
HIDDEN = 0.125
"""Slope in log T that Õ may hide over FAR: half of the 1/4 of √|U|, and as much as about the third power of log T."""
FALL = 0.3
"""R_T/T must fall at least like T^-FALL at every step."""
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


def hidden_slope(own: BoundFactors, bayes: bool, per_root: bool) -> float:
    """Return s of (theorem's bound)/(Table 1) ∝ T^s for |U| = √T; the ratio is over that for |U| = 1, which has the
    logarithms of T."""
    places = [BoundFactors(*(v[k : k + 1] for v in own[:4]), own.largest) for k in range(len(own.times))]

    def ratio(one: BoundFactors, many: int) -> float:
        return float((theorem(one, many, bayes) / row(one, many, bayes, per_root))[0])

    ratios = [ratio(one, round(float(np.sqrt(one.times[0])))) / ratio(one, 1) for one in places]
    return float(np.polyfit(np.log(own.times), np.log(ratios), 1)[0])


def _within_row(own: BoundFactors, bayes: bool, per_root: bool) -> StatementPart:
    """Õ hides logarithms of any power, of |U| too, but no power of |U|."""
    slope = hidden_slope(setting(FAR), bayes, per_root)
    ratios = [theorem(own, int(m), bayes)[-1] / row(own, int(m), bayes, per_root)[-1] for m in MANY]
    more = {"ratios": np.array(ratios) / ratios[0], "candidates": MANY, "T": float(TIMES[-1])}
    more |= {} if bayes else expressions(own, int(MANY[1]))

    def cells(added: float) -> list[Cell]:
        found = inequality(slope + added, HIDDEN)
        return [cell(Ruling(found.verdict, found.numbers | more), slope=slope + added)]

    name = "Bayesian" if bayes else "frequentist"
    claim = f"(theorem's bound)/(Table 1) ∝ T^s, s <= {HIDDEN}, for |U| = √T, over that for |U| = 1, T = 10^8 to 10^16"
    return part(name, claim, "inequality", cells(0.0), control("√|U| times that: s + 1/4", cells(0.25)))


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
    step = (times[1] / times[0]) ** -FALL

    def cells(rate: np.ndarray) -> list[Cell]:
        later, earlier = (rate[1:], rate[:-1]) if large else (rate[:-1], rate[1:])
        found = inequality(later, step * earlier, T=times[1:])
        return [cell(found, candidates=5, first=float(rate[0]), last=float(rate[-1]))]

    towards = "grows to 10^6" if large else "falls to 1"
    # a limit of 0.3: what falls at every step need not vanish
    stays = 0.3 + (1.0 / times if large else times / times[-1])
    claim = f"the bound over T falls by 10^-{FALL} or more a decade, at every step of a quarter, as T {towards}"
    return part("limit", claim, "inequality", cells(theorem(setting(times), 5) / times),
                control("so does what tends to 0.3", cells(stays)))  # fmt: skip
