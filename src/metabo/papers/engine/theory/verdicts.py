"""Decision rules of the theory checks, shared by all papers (hyperbo sheet §8.1).

A ruling is about one claim at one setting: SUPPORTED, REFUTED or INCONCLUSIVE, with its numbers. Probabilities by
Clopper-Pearson bounds, expectations by a z test, distributions by a p-value, identities and inequalities by their
largest error. `metabo.papers.engine.theory.records` joins rulings into parts, statements and their negative controls.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from metabo.errors import NumericsError

SUPPORTED, REFUTED, INCONCLUSIVE = "SUPPORTED", "REFUTED", "INCONCLUSIVE"

ALPHA = 1e-3
"""Level of each one-sided Clopper-Pearson bound."""
Z_LIMIT = 4.0
"""|z| beyond this refutes an expectation: family-wise below 0.002 for 30 cells."""
ENOUGH = 20_000
"""Replicates that an expectation or a distribution needs before it counts as supported."""
P_LIMIT = 1e-4
"""p-values below this refute a distribution."""
IDENTITY = 1e-8
"""Largest |left - right| / (1 + |right|) of an identity in float64."""
SLACK = 1e-12
"""Rounding that an inequality may exceed by, relative to 1 + |larger side|."""
INFORMATIVE = 100.0
"""A part of a check says nothing about its bound if it would also pass a bound this many times smaller."""


Numbers = dict[str, ArrayLike]
"""What a ruling rests on, arrays among it; `records.cell` makes it JSON-ready."""


class Ruling(NamedTuple):
    """A verdict with the numbers it rests on."""

    verdict: str
    numbers: Numbers


class Law(Protocol):
    """A distribution, such as a frozen one of scipy."""

    @property
    def cdf(self) -> Callable[[np.ndarray], np.ndarray]:
        """The cumulative distribution function."""
        ...


def _finite(**numbers: float) -> None:
    """Refuse what is not a number: a comparison with it is False, which would read as support."""
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise NumericsError(f"theory check: {name} is {value}; the computation of the check is at fault, mend it")


def clopper_pearson(bad: int, runs: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return one-sided lower and upper confidence bounds, each at level `alpha`, of a probability: k of R runs."""
    low = 0.0 if bad == 0 else float(stats.beta.ppf(alpha, bad, runs - bad + 1))
    high = 1.0 if bad == runs else float(stats.beta.ppf(1.0 - alpha, bad + 1, runs - bad))
    return low, high


def probability(bad: int, runs: int, limit: float, ratios: np.ndarray | None = None) -> Ruling:
    """Decide P(bad) <= limit: refuted if the lower bound exceeds it, supported if the upper bound is below it.

    `ratios` (runs,): where the bad runs are those that exceed a bound, the bound over what it bounds, the least of each
    run (infinite where nothing is to be bounded). The ruling then has the number `sees` (`least_error`).
    """
    low, high = clopper_pearson(bad, runs)
    verdict = REFUTED if low > limit else SUPPORTED if high < limit else INCONCLUSIVE
    numbers: Numbers = {"share": bad / runs, "low": low, "high": high, "limit": limit, "bad": int(bad), "runs": runs}
    return Ruling(verdict, numbers if ratios is None else numbers | {"sees": least_error(ratios, limit)})


def least_error(ratios: np.ndarray, limit: float) -> float:
    """Return the least factor by which a bound could be divided such that `probability` would refute it; infinite if
    no factor would do. `ratios` (runs,): bound over what it bounds; what is not a number exceeds any bound."""
    ordered = np.sort(np.where(np.isnan(ratios), 0.0, ratios))
    runs = len(ordered)
    enough = next((bad for bad in range(1, runs + 1) if clopper_pearson(bad, runs)[0] > limit), None)
    return math.inf if enough is None else float(max(ordered[enough - 1], 0.0))


def exact_probability(share: float, limit: float) -> Ruling:
    """Decide P(bad) <= limit for a probability that is known to rounding (a formula or a quadrature).

    This rule and those below raise NumericsError for a number that is not finite, except `identity` and `inequality`,
    which count it against the claim.
    """
    _finite(share=share, limit=limit)
    return Ruling(REFUTED if share > limit + SLACK else SUPPORTED, {"share": float(share), "limit": float(limit)})


def expectation(values: np.ndarray, expected: float, unit: float = 1.0) -> Ruling:
    """Decide E[value] = expected from independent replicates, with the difference in `unit`s as the effect size."""
    values = np.asarray(values, dtype=np.float64)
    _finite(mean=values.mean(), expected=expected)
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    difference = float(values.mean() - expected)
    z = difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0
    verdict = REFUTED if abs(z) > Z_LIMIT else SUPPORTED if len(values) >= ENOUGH else INCONCLUSIVE
    numbers: Numbers = {"mean": float(values.mean()), "expected": float(expected), "error": error}
    return Ruling(verdict, numbers | {"effect": difference / unit, "z": z, "runs": len(values)})


def correlation(value: float, runs: int) -> Ruling:
    """Decide that two quantities are uncorrelated by their sample correlation: |r| sqrt(R) is a z."""
    _finite(correlation=value)
    z = float(value) * math.sqrt(runs)
    verdict = REFUTED if abs(z) > Z_LIMIT else SUPPORTED if runs >= ENOUGH else INCONCLUSIVE
    return Ruling(verdict, {"correlation": float(value), "z": z, "runs": runs})


def distribution(values: np.ndarray, law: Law) -> Ruling:
    """Decide that independent values follow `law` by Kolmogorov and Smirnov's test."""
    _finite(mean=float(np.mean(values)))
    test = stats.kstest(np.asarray(values), law.cdf)
    enough = len(values) >= ENOUGH
    verdict = REFUTED if test.pvalue < P_LIMIT else SUPPORTED if enough else INCONCLUSIVE
    return Ruling(verdict, {"p": float(test.pvalue), "distance": float(test.statistic), "runs": len(values)})


def identity(left: np.ndarray, right: np.ndarray) -> Ruling:
    """Decide left = right, entry by entry, to rounding. What is not a number refutes it."""
    left, right = np.broadcast_arrays(np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64))
    error = np.abs(left - right) / (1.0 + np.abs(right))
    error = np.where(np.isnan(error), np.inf, error).ravel()
    worst = int(np.argmax(error))
    numbers = {"error": error[worst], "left": left.ravel()[worst], "right": right.ravel()[worst], "cases": error.size}
    return Ruling(SUPPORTED if error[worst] <= IDENTITY else REFUTED, numbers)


def inequality(smaller: np.ndarray, larger: np.ndarray, **point: np.ndarray) -> Ruling:
    """Decide smaller <= larger, entry by entry, up to rounding. What is not a number violates it.

    `point`: arrays of the same shape, the coordinates of the entries; those of the worst entry are reported.
    """
    smaller, larger = np.broadcast_arrays(np.asarray(smaller, np.float64), np.asarray(larger, np.float64))
    excess = (smaller - larger) / (1.0 + np.abs(larger))
    excess = np.where(np.isnan(excess), np.inf, excess).ravel()
    worst, violations = int(np.argmax(excess)), int((excess > SLACK).sum())
    where = {name: np.broadcast_to(values, smaller.shape).ravel()[worst] for name, values in point.items()}
    numbers: Numbers = {"violations": violations, "cases": excess.size}
    numbers |= {"smaller": smaller.ravel()[worst], "larger": larger.ravel()[worst], **where}
    return Ruling(REFUTED if violations else SUPPORTED, numbers)


def upper_bound(smaller: np.ndarray, larger: np.ndarray, **point: np.ndarray) -> Ruling:
    """Decide smaller <= larger as `inequality` does, for a larger side that is a bound with a constant of its own.

    The number `sees` is the least factor by which the bound could be divided such that some entry exceeds it.
    """
    decided = inequality(smaller, larger, **point)
    sees = np.min(least_ratio(*(np.atleast_1d(side) for side in (larger, smaller))))
    return Ruling(decided.verdict, decided.numbers | {"sees": float(np.maximum(sees, 0.0))})


def least_ratio(bound: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the least bound/value of each run (runs, ...) where the value is positive, infinite where none is."""
    bound, value = np.broadcast_arrays(np.asarray(bound, np.float64), np.asarray(value, np.float64))
    positive = value > 0
    ratio = np.where(positive, bound / np.where(positive, value, 1.0), np.inf)
    return np.where(np.isnan(value), np.nan, ratio).reshape(len(ratio), -1).min(axis=1)


def combine(verdicts: list[str]) -> str:
    """Return REFUTED if any is, SUPPORTED if all are, else INCONCLUSIVE (also for none)."""
    if REFUTED in verdicts:
        return REFUTED
    return SUPPORTED if verdicts and set(verdicts) == {SUPPORTED} else INCONCLUSIVE
