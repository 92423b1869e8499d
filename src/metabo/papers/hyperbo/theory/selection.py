"""The best observation against the best observed point (HyperBO Lemma 15), and its use in Theorems 16 to 18."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Array, Key
from scipy import stats

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import ENOUGH, exact_probability, expectation, probability

CHECKS = {"lemma15": "Lemma 15: the best observation against the best observed point"}
LENGTHS = (10, 100, 300, 1000, 10_000)
DELTAS = (0.1, 0.5)
BEYOND = 1.0 + 1e-4
"""The worst case puts one value this far above the others, in units of the bound: choosing another one breaks it."""

Bound = Callable[[int, float], float]
"""(T, δ) -> bound on f(x_τ') - f(x_τ) in units of σ."""


def printed_bound(_length: int, delta: float) -> float:
    """Return 2√(2 ln(1/δ)), the bound of Lemma 15 in units of σ."""
    return 2.0 * np.sqrt(2.0 * np.log(1.0 / delta))


def sound_bound(length: int, delta: float) -> float:
    """Return √(2 ln(T/δ)) + √(2 ln(1/δ)): for fixed inputs, the largest of T noises and the noise at one point."""
    return np.sqrt(2.0 * np.log(length / delta)) + np.sqrt(2.0 * np.log(1.0 / delta))


def used_bound(_length: int, delta: float) -> float:
    """Return √(2 ln(1/δ)): what Theorems 16 to 18 use, with δ/3, in place of Lemma 15 (I5)."""
    return np.sqrt(2.0 * np.log(1.0 / delta))


def failure_probability(length: int, gap: float) -> float:
    """Return P[argmax y is not the first point] for f = (gap, 0, ..., 0) of T values, noise N(0, 1), by quadrature.

    P = ∫ φ(e) (1 - Φ(gap + e)^{T-1}) de; the trapezoidal rule is exact to rounding for such integrands.
    """
    e = np.linspace(-12.0, 12.0, 4801)
    density = stats.norm.pdf(e) * -np.expm1((length - 1) * stats.norm.logcdf(gap + e))
    return float(np.sum(density) * (e[1] - e[0]))


def many_failure(log_length: float, gap: float) -> float:
    """Return `failure_probability` for ln T in place of T, which may be larger than any float: Φ^{T-1} = exp(-T(1-Φ)).

    The two agree to 2e-3 at T = 1000 and better beyond.
    """
    e = np.linspace(-12.0, 12.0, 4801)
    with np.errstate(over="ignore"):
        density = stats.norm.pdf(e) * -np.expm1(-np.exp(log_length + stats.norm.logsf(gap + e)))
    return float(np.sum(density) * (e[1] - e[0]))


def first_failure(bound: Bound, delta: float, limit: float, top: int = 10**9) -> int | None:
    """Return the smallest T whose worst case fails with more than `limit`; None up to `top`. The probability grows."""

    def fails(length: int) -> bool:
        return failure_probability(length, BEYOND * bound(length, delta)) > limit

    low, high = 1, 2
    while not fails(high):
        low, high = high, 2 * high
        if low > top:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def lemma15(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Lemma 15 in its worst case, by simulation and exactly; the sound version; the use in the theorems."""
    extremes = _extremes(key, runs(ENOUGH, share))
    printed = "P[f(x_τ') - f(x_τ) > 2√(2 ln(1/δ)) σ] <= δ in the worst case"
    sound = "P[f(x_τ') - f(x_τ) > (√(2 ln(T/δ)) + √(2 ln(1/δ))) σ] <= δ for fixed inputs"
    return [
        statement("Lemma 15", "The point of the best observation is nearly the best observed (I4)", "C.2",
                  _both(extremes, printed_bound, printed, LENGTHS[:1])),
        statement("Lemma 15", "With a union bound over the T noises", "C.2",
                  [*_both(extremes, sound_bound, sound, LENGTHS[1:2]), _agreement(extremes)], "repaired"),
        statement("Lemma 15, use", "Used as r + ζσ*, the lemma gives r + 2ζσ* (I5)", "C.2", [_use()], "proof step"),
    ]  # fmt: skip


def _both(
    extremes: dict[int, tuple[np.ndarray, np.ndarray]], bound: Bound, claim: str, small: tuple[int, ...]
) -> list[StatementPart]:
    """Return the parts by simulation and by quadrature; the control halves the bound at the T in `small`."""

    def half(length: int, delta: float) -> float:
        return 0.5 * bound(length, delta)

    words = f"half of the bound, T = {', '.join(map(str, small))}"
    return [
        part("simulated", claim, "probability", _simulated(extremes, bound),
             control(words, _simulated(extremes, half, small))),
        part("exact", claim + ", by quadrature", "probability", _exact(bound), control(words, _exact(half, small))),
    ]  # fmt: skip


def _use() -> StatementPart:
    def exact(length: int, delta: float, shrink: float) -> Cell:
        gap = BEYOND * shrink * used_bound(length, delta / 3)
        return cell(exact_probability(failure_probability(length, gap), delta / 3), length=length, delta=delta)

    return part(
        "exact", "P[max_t f(x_t) - f(x̂) > ζσ] <= δ/3 with ζ = √(2 ln(3/δ))", "probability",
        [exact(length, delta, 1.0) for length in (2, 10, 100) for delta in DELTAS],
        control("half of ζ", [exact(length, delta, 0.5) for length in (2, 10, 100) for delta in DELTAS]),
    )  # fmt: skip


def _extremes(key: Key[Array, ""], count: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Draw, for each T, the noise at the first point and the largest of the T - 1 others; each (count,)."""
    rng, drawn = generator(key), {}
    for length in LENGTHS:
        size = max(1, 2_000_000 // length)
        parts = [min(size, count - start) for start in range(0, count, size)]
        noise = (rng.standard_normal((n, length)) for n in parts)
        pairs = [(z[:, 0], z[:, 1:].max(axis=1)) for z in noise]
        own, others = (np.concatenate(side) for side in zip(*pairs, strict=True))
        drawn[length] = own, others
    return drawn


def _simulated(
    extremes: dict[int, tuple[np.ndarray, np.ndarray]], bound: Bound, lengths: tuple[int, ...] = LENGTHS
) -> list[Cell]:
    cells = []
    for length in lengths:
        own, others = extremes[length]
        for delta in DELTAS:
            bad = int((~(others <= BEYOND * bound(length, delta) + own)).sum())  # what is not a number is a failure
            cells.append(cell(probability(bad, len(own), delta), length=length, delta=delta))
    return cells


def _agreement(extremes: dict[int, tuple[np.ndarray, np.ndarray]]) -> StatementPart:
    agree, alone = [], []
    for length, (own, others) in extremes.items():
        for delta in DELTAS:
            gap, where = BEYOND * printed_bound(length, delta), {"length": length, "delta": delta}
            failed = ~(others <= gap + own)
            agree.append(cell(expectation(failed, failure_probability(length, gap)), **where))
            if length in (300, 1000):
                alone.append(cell(expectation(failed, -np.expm1((length - 1) * stats.norm.logcdf(gap))), **where))
    return part(
        "agreement", "simulation and quadrature agree", "expectation", agree,
        control("the probability without the noise at the first point, T = 300 and 1000", alone),
    )  # fmt: skip


GRID = tuple(int(length) for length in np.unique(np.geomspace(2, 1e5, 25).round()))
"""T of the exact probabilities."""


def _exact(bound: Bound, lengths: tuple[int, ...] = GRID) -> list[Cell]:
    """One cell per T; the numbers of each δ name the smallest T that fails."""
    cells = []
    for delta in DELTAS:
        first = first_failure(bound, delta, delta)
        for length in lengths:
            found = exact_probability(failure_probability(length, BEYOND * bound(length, delta)), delta)
            cells.append(cell(found, length=length, delta=delta, first_failing_length=first))
    return cells
