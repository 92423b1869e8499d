"""From numbers to verdicts: the decision rules of the papers' claim sheets, one place for all checks.

- ORD ("A below B"): the sign agrees and the 95 % interval of the difference excludes 0: replicated; the sign alone:
  weak; otherwise not replicated. The rule of MPHD, cm-BO and HE-GP-UCB (supported, undecided, refuted) reads the same:
  supported is replicated, undecided with the stated sign is weak, anything else is not replicated.
- A trend is an order of its rank correlation and 0, with p < 0.05 in place of the interval.
- "About equal": the 95 % interval of the difference lies within a margin: replicated; the estimate alone: weak;
  otherwise not replicated. That nothing was found to differ is no equality: few runs never find anything.
- NUM: within the stated tolerance, or not. CNT: a count meets the stated condition, or not. Neither is ever weak.
- A claim of several parts is as good as its worst part. What this run cannot test is neither; the sentence names it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scipy.stats import binomtest

REPLICATED, WEAK, FAILED, UNTESTABLE = "replicated", "weak", "not replicated", "not testable"
VERDICTS = (REPLICATED, WEAK, FAILED, UNTESTABLE)
_WORST_FIRST = (FAILED, WEAK, REPLICATED, UNTESTABLE)
LEVEL = 0.05
"""Of the p value of a trend or a test."""
MARGIN = 0.1
"""What counts as about the same: a share of Random's regret (or share solved), as in MPHD's claim M7."""
SHOWN_PARTS, SHOWN_UNTESTABLE = 3, 2
"""Parts of a claim that its sentence spells out, tested and not testable; more are counted."""


@dataclass(frozen=True)
class Finding:
    """What a check found: a verdict, one sentence with the numbers, and the number that decides it.

    `value` with its 95 % interval `low`, `high` (None where there is none), in `unit` ("" for a pure number). `count`
    and `of`: what a counted share is made of, so that a claim can pool several.
    """

    verdict: str
    said: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    count: int | None = None
    of: int | None = None


def ordered(difference: float, low: float, high: float, below: bool = True) -> str:
    """Return the verdict of an order: `difference` should be negative (`below`) or positive; NaN: no interval."""
    sign = 1 if below else -1
    if not sign * difference < 0:
        return FAILED
    return REPLICATED if sign * (high if below else low) < 0 else WEAK


def equivalent(value: float, low: float, high: float, limit: float) -> str:
    """Return the verdict of "about equal": a difference within ± `limit`, with its interval; NaN: at most weak."""
    if -limit <= low and high <= limit:
        return REPLICATED
    return WEAK if abs(value) <= limit else FAILED


def counted(holds: bool) -> str:
    """Return the verdict of a condition on counts or of a tolerance."""
    return REPLICATED if holds else FAILED


def untestable(reason: str) -> Finding:
    """Return the finding of a claim that this run's data cannot speak on."""
    return Finding(UNTESTABLE, reason)


def order(label: str, estimate: Sequence[float], below: bool = True, unit: str = "") -> Finding:
    """Return the finding of one order; `label` names the difference, `estimate` is (difference, low, high)."""
    value, low, high = (float(number) for number in estimate)
    said = f"{label} {interval(value, low, high)}"
    return Finding(ordered(value, low, high, below), said, value, known(low), known(high), unit)


def trend(label: str, rho: float, p: float, rises: bool = False) -> Finding:
    """Return the finding of a trend that should fall (or rise): Spearman's correlation `rho` with its p value."""
    if not math.isfinite(rho):
        return untestable(f"{label}: one size only, or nothing varies")
    agrees = rho > 0 if rises else rho < 0
    verdict = FAILED if not agrees else REPLICATED if p < LEVEL else WEAK
    return Finding(verdict, f"{label}: Spearman {rho:.2f}, p = {p:.2g}", float(rho), unit="Spearman's rho")


def share(count: int, of: int, label: str, holds: bool, unit: str = "share", independent: bool = False) -> Finding:
    """Return the finding of a counted share; `holds`: the condition.

    `independent`: what is counted are independent draws, such as seeds; only then is there an interval, the exact one
    (Clopper-Pearson, 95 %). Tasks of one fold, cells of a table and comparisons of the same runs are no such draws.
    """
    if of == 0:
        return untestable(f"{label}: nothing to count")
    ends = binomtest(count, of).proportion_ci(0.95) if independent else (None, None)
    return Finding(counted(holds), f"{label}: {count} of {of}", count / of, *ends, unit, count, of)


def together(parts: Iterable[Finding], what: str = "parts", contrary: int = 0) -> Finding:
    """Return the finding of a claim that needs all `parts`: the worst one's verdict and number.

    The sentence spells out up to SHOWN_PARTS parts, the worst first, and counts the rest. Among equal verdicts the
    largest value is worst (`contrary` 1), the smallest (-1), or the first part (0). Parts that are not testable count
    only if all are; otherwise the sentence ends with their reasons.
    """
    found = list(parts)
    if not found:
        return untestable(f"no {what} to compare")
    if len(found) == 1:
        return found[0]
    tested = [part for part in found if part.verdict != UNTESTABLE]
    lost = [part.said for part in found if part.verdict == UNTESTABLE] if tested else []
    tested = tested or found
    ranked = sorted(tested, key=lambda part: (_WORST_FIRST.index(part.verdict), -contrary * (part.value or 0.0)))
    said = "; ".join(part.said for part in ranked[:SHOWN_PARTS])
    if len(ranked) > SHOWN_PARTS:
        said = f"{tally(found)} of {len(found)} {what}: {said}; and {len(ranked) - SHOWN_PARTS} more"
    return replace(ranked[0], said=said + _untested(lost))


def _untested(reasons: Sequence[str]) -> str:
    """Return the end of a sentence that says what could not be tested."""
    shown = [*reasons[:SHOWN_UNTESTABLE]]
    if len(reasons) > SHOWN_UNTESTABLE:
        shown.append(f"and {len(reasons) - SHOWN_UNTESTABLE} more")
    return f"; not testable: {'; '.join(shown)}" if shown else ""


def worst(findings: Iterable[Finding]) -> str:
    """Return the worst verdict, of those that are testable if any is."""
    verdicts = [finding.verdict for finding in findings]
    return next(verdict for verdict in _WORST_FIRST if verdict in verdicts)


def tally(findings: Iterable[Finding]) -> str:
    """Say how many findings have each verdict, e.g. "2 replicated, 1 weak"."""
    verdicts = [finding.verdict for finding in findings]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)


def interval(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Write a number with its interval, e.g. "-0.067 [-0.3, 0.17]"; without one, the number alone."""
    bounds = f" [{low:.3g}, {high:.3g}]" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{value:.3g}{bounds}"


def known(number: float) -> float | None:
    """Return the number, or None if it is not finite: what a table leaves empty."""
    return float(number) if math.isfinite(number) else None
