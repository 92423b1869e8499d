"""From numbers to verdicts: the decision rules of the claim sheets, one place for all checks.

- holds: the 95 % interval of the stated effect lies on the paper's side (of 0, of a bound; within a margin for "about
  equal"); an exact fact is as stated.
- contradicted: the interval lies on the other side (outside the margin); an exact fact is not as stated.
- undecided: the interval contains the boundary, whatever the sign of the estimate. `power` says how often a test like
  this one would find the paper's own effect, `needed` how many clusters would find it in 80 % of cases.
- not testable: nothing here can decide it.

Claims of several parts: `metabo.papers.engine.claims.conjunctions`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.stats import beta

from metabo.papers.engine.claims.power import LEVEL, MOST, cdf, clusters_needed, critical, power_of

HOLDS, CONTRADICTED, UNDECIDED, UNTESTABLE = "holds", "contradicted", "undecided", "not testable"
VERDICTS = (HOLDS, CONTRADICTED, UNDECIDED, UNTESTABLE)
CLAIM, PART, BESIDE = "claim", "part", "beside"
"""Roles of the rows of a table of verdicts."""
NOT_MADE = "is not part of this run"
"""Said of a cell whose artefact a restricted run leaves out; such a claim was not judged."""
MARGIN = 0.1
"""What counts as about the same, and the effect of a claim without a printed one: a share of Random's regret."""


def waits(verdict: str, said: str) -> bool:
    """Tell by a row of a table of verdicts whether the run lacked what the test reads."""
    return verdict == UNTESTABLE and NOT_MADE in said


@dataclass(frozen=True)
class Finding:
    """What a check found: a verdict, one sentence with the numbers, and the number that decides it.

    `value` with its 95 % interval `low`, `high` (None where there is none), in `unit` ("" for a pure number), from
    `clusters` independent units. `count` and `of`: what a counted share is made of; `parts`: the findings that it
    counts, where these depend on each other, so that a claim can pool several such shares.
    `against` and `support`: p values of the one-sided tests that contradict, and that make it hold (0 and 1 for exact
    facts, None without a test); `power` and `needed`: of an undecided order (`power_of`, `clusters_needed`). `effect`:
    what these are for, the paper's own or, where it prints none, a stated share of Random's value, or the margin.
    `suite` and `new`: the intervals of both estimands, for these tasks and for a new one, where there are two.
    `decidable`: whether the units could decide it at all; if not, it stays undecided even if all of them agree.
    """

    verdict: str
    said: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    count: int | None = None
    of: int | None = None
    clusters: int | None = None
    against: float | None = None
    support: float | None = None
    power: float | None = None
    needed: int | None = None
    effect: float | None = None
    suite: tuple[float, float] | None = None
    new: tuple[float, float] | None = None
    parts: tuple["Finding", ...] = ()
    decidable: bool = True


def ordered(low: float, high: float, below: bool = True, bound: float = 0.0) -> str:
    """Return the verdict of an order: the interval should lie below `bound` (`below`) or above it; NaN: undecided."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return UNDECIDED
    stated, contrary = (high < bound, low > bound) if below else (low > bound, high < bound)
    return HOLDS if stated else CONTRADICTED if contrary else UNDECIDED


def equivalent(low: float, high: float, limit: float) -> str:
    """Return the verdict of "about equal": the interval of a difference lies within ± `limit`, or outside it."""
    if -limit <= low and high <= limit:
        return HOLDS
    return CONTRADICTED if low > limit or high < -limit else UNDECIDED


def no_worse(low: float, high: float, limit: float, below: bool = True) -> str:
    """Return the verdict of "similar or better": not worse by more than `limit` (`below`: less is better)."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return UNDECIDED
    least, most = (low, high) if below else (-high, -low)
    return HOLDS if most <= limit else CONTRADICTED if least > limit else UNDECIDED


def exact(holds: bool) -> str:
    """Return the verdict of a fact without sampling error: a count of the data, a statement that was computed."""
    return HOLDS if holds else CONTRADICTED


def untestable(reason: str) -> Finding:
    """Return the finding of a claim that this run's data cannot decide."""
    return Finding(UNTESTABLE, reason)


def order(
    label: str,
    estimate: Sequence[float],
    below: bool = True,
    unit: str = "",
    bound: float = 0.0,
    effect: float | None = None,
    clusters: int | None = None,
    level: float = 1 - LEVEL,
    freedom: float | None = None,
) -> Finding:
    """Return the finding of one order: what `label` names lies below `bound`, or above it.

    `estimate`: value, low, high, the interval being of `level`. `effect`: distance from the bound that the paper has
    (`power_of`); `clusters`: units of the interval (Student's t), None for many (normal); `freedom`: degrees of freedom
    of the interval, if they are not one fewer.
    """
    value, low, high = (float(number) for number in estimate)
    against, support = (
        contrary(value - bound, low, high, side, clusters, level, freedom) for side in (below, not below)
    )
    found = Finding(
        ordered(low, high, below, bound), f"{label} {interval(value, low, high)}", value, known(low), known(high), unit,
        clusters=clusters, against=against, support=support, effect=effect,
    )  # fmt: skip
    return _with_power(found, effect, level, freedom)


def about_equal(
    label: str,
    estimate: Sequence[float],
    limit: float,
    unit: str = "",
    clusters: int | None = None,
    freedom: float | None = None,
) -> Finding:
    """Return the finding of "about equal within ± `limit`" (two one-sided tests; Anderson and Maxwell 2016).

    Its power is that of a difference of exactly 0.
    """
    value, low, high = (float(number) for number in estimate)
    sides = [contrary(sign * value - limit, low, high, True, clusters, freedom=freedom) for sign in (1, -1)]
    outside = min((p for p in sides if p is not None), default=None)
    inside = [contrary(sign * value - limit, low, high, False, clusters, freedom=freedom) for sign in (1, -1)]
    said = f"{label} {interval(value, low, high)}, margin {limit:.3g}"
    found = Finding(
        equivalent(low, high, limit), said, value, known(low), known(high), unit, clusters=clusters, against=outside,
        support=max((p for p in inside if p is not None), default=None), effect=limit,
    )  # fmt: skip
    half = (high - low) / 2
    if found.verdict != UNDECIDED or not half > 0:
        return found
    crit = critical(clusters, freedom=freedom)
    return replace(found, power=max(0.0, 2 * float(cdf(limit / (half / crit) - crit, clusters, freedom)) - 1))


def similar(
    label: str,
    estimate: Sequence[float],
    limit: float,
    below: bool = True,
    unit: str = "",
    clusters: int | None = None,
    freedom: float | None = None,
) -> Finding:
    """Return the finding of "similar, or better": not worse by more than `limit` (`below`: less is better)."""
    value, low, high = (float(number) for number in estimate)
    said, against = f"{label} {interval(value, low, high)}, margin {limit:.3g}", value - (limit if below else -limit)
    found = Finding(
        no_worse(low, high, limit, below), said, value, known(low), known(high), unit, clusters=clusters,
        against=contrary(against, low, high, below, clusters, freedom=freedom),
        support=contrary(against, low, high, not below, clusters, freedom=freedom), effect=limit,
    )  # fmt: skip
    return _with_power(found, limit, freedom=freedom)


def fact(label: str, holds: bool, value: float | None = None, unit: str = "") -> Finding:
    """Return the finding of a fact without sampling error: `exact`."""
    return Finding(exact(holds), label, value, unit=unit, against=float(holds), support=float(not holds))


def share(label: str, count: int, of: int, bound: float, above: bool = True, unit: str = "share") -> Finding:
    """Return the finding of a share of independent draws, such as seeds: its exact interval lies above (below) `bound`.

    Clopper and Pearson (1934), 95 %. Tasks of one fold, cells of a table and comparisons of the same runs are not
    independent draws: see `metabo.papers.engine.claims.comparing.share_of_tasks`.
    """
    if of == 0:
        return untestable(f"{label}: nothing to count")
    found = share_of_units(f"{label}: {count} of {of}, share", count / of, of, bound, above, unit)
    return replace(found, count=count, of=of, clusters=of)


def share_of_units(
    label: str, value: float, units: float, bound: float, above: bool = True, unit: str = "share"
) -> Finding:
    """Return the finding of a share `value` seen in the equivalent of `units` independent draws: it is above (below)
    `bound`. The interval is Clopper and Pearson's with `units` draws, which need not be a whole number (Korn and
    Graubard 1998); NaN: no interval. `against` and `support` are the tails that the interval's ends are made of, so
    that they say the same at any level, as Holm's correction needs.
    """
    if not math.isfinite(units):
        return replace(order(label, (value, math.nan, math.nan), not above, unit, bound), decidable=False)
    low, high = clopper_pearson(value * units, units)
    tails = share_tails(value * units, units, bound)
    against, support = reversed(tails) if above else tails
    verdict, said = ordered(low, high, not above, bound), f"{label} {interval(value, low, high)}"
    least, most = clopper_pearson(units, units)[0], clopper_pearson(0, units)[1]
    decidable = not least <= bound <= most
    if not decidable:
        said += f"; {units:.3g} independent draws could not decide even if all agreed"
    return Finding(verdict, said, value, low, high, unit, against=against, support=support, decidable=decidable)


def clopper_pearson(count: float, of: float) -> tuple[float, float]:
    """Return the exact 95 % interval of a share, interpolated if `of`, the draws, or the hits are not whole numbers."""
    low = float(beta.ppf(LEVEL / 2, count, of - count + 1)) if count > 0 else 0.0
    return low, float(beta.ppf(1 - LEVEL / 2, count + 1, of - count)) if count < of else 1.0


def share_tails(count: float, of: float, bound: float) -> tuple[float, float]:
    """Return the probabilities of at least and of at most `count` hits in `of` draws if the share is `bound`.

    Binomial, interpolated as in `clopper_pearson`: its ends are the bounds at which one of them is LEVEL / 2.
    """
    least = float(beta.cdf(bound, count, of - count + 1)) if count > 0 else 1.0
    return least, float(beta.sf(bound, count + 1, of - count)) if count < of else 1.0


def trend(label: str, rho: float, p: float, rises: bool = False) -> Finding:
    """Return the finding of a trend that should fall (or rise): Spearman's correlation `rho` with its p value.

    It holds with the stated sign and p < LEVEL, and is contradicted with the other sign and p < LEVEL.
    """
    if not math.isfinite(rho):
        return untestable(f"{label}: one size only, or nothing varies")
    agrees = rho > 0 if rises else rho < 0
    verdict = UNDECIDED if not p < LEVEL else HOLDS if agrees else CONTRADICTED
    said, against = f"{label}: Spearman {rho:.2f}, p = {p:.2g}", 1 - p / 2 if agrees else p / 2
    return Finding(verdict, said, float(rho), unit="Spearman's rho", against=against, support=1 - against)


def contrary(
    value: float,
    low: float,
    high: float,
    below: bool,
    clusters: int | None = None,
    level: float = 1 - LEVEL,
    freedom: float | None = None,
) -> float | None:
    """Return the p value of the one-sided test that the quantity lies on the other side of 0; None without interval.

    The interval is symmetric (Student's t, or normal), of `level`.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return _tail(value if below else -value, (high - low) / 2, clusters, level, freedom)


def _tail(value: float, half: float, clusters: int | None, level: float, freedom: float | None) -> float:
    """Return P(as large as `value` | 0), from half the width of its interval."""
    if not half > 0:
        return 0.0 if value > 0 else 1.0
    return cdf(
        -value / half * critical(clusters, level, freedom), clusters, freedom
    )  # not 1 - cdf, which ends at 1e-16


def _with_power(
    found: Finding, effect: float | None, level: float = 1 - LEVEL, freedom: float | None = None
) -> Finding:
    """Add power and the clusters needed to an undecided finding with an interval."""
    if found.verdict != UNDECIDED or found.low is None or found.high is None or not effect:
        return found
    half = (found.high - found.low) / 2
    if not half > 0:  # nothing varies: exactly 0 in all units
        return found
    power = power_of(half, effect, found.clusters, level, freedom)
    needed = clusters_needed(half, effect, found.clusters, level=level, freedom=freedom) if found.clusters else None
    return told_power(found, power, needed, effect)


def told_power(found: Finding, power: float | None, needed: int | None, effect: float | None) -> Finding:
    """Return a finding with its power for `effect` and the clusters that 80 % need, and a sentence with both; without
    power, it says nothing of it."""
    if power is None or effect is None:
        return replace(found, power=power, needed=needed, effect=effect)
    said = f"{found.said}; power {power:.2f} for {effect:.3g}"
    if found.clusters and not (needed and needed <= found.clusters):  # it has enough for an effect of that size
        said += f", 80 % needs {needed if needed else f'more than {MOST}'} units in place of {found.clusters}"
    return replace(found, said=said, power=power, needed=needed, effect=effect)


def interval(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Write a number with its interval, e.g. "-0.067 [-0.3, 0.17]"; without one, the number alone."""
    bounds = f" [{low:.3g}, {high:.3g}]" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{value:.3g}{bounds}"


def known(number: float) -> float | None:
    """Return the number, or None if it is not finite: what a table leaves empty."""
    return float(number) if math.isfinite(number) else None
