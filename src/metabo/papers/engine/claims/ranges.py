"""Rules beside those of `metabo.papers.engine.claims.verdicts`: accepted ranges, and how many of several parts hold."""

import math
from collections.abc import Sequence

from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    contrary,
    interval,
    known,
    ordered,
    tally,
    untestable,
)

ALONE = "one number, no interval"
"""Why a number that was measured once decides nothing."""


def ranged(
    label: str, estimate: Sequence[float], least: float, most: float, unit: str = "", clusters: int | None = None
) -> Finding:
    """Return the finding of a number in an accepted range: its interval lies in [`least`, `most`], or outside it.

    Either end of the range may be infinite.
    """
    value, low, high = (float(number) for number in estimate)
    accepted = f"at least {least:g}" if math.isinf(most) else f"at most {most:g}" if math.isinf(least) else ""
    said = f"{label} {interval(value, low, high)}, accepted {accepted or f'{least:g} to {most:g}'}"
    ends = [(end, side) for end, side in ((least, False), (most, True)) if math.isfinite(end)]
    beyond = [contrary(value - end, low, high, side, clusters) for end, side in ends]
    inside = [contrary(value - end, low, high, not side, clusters) for end, side in ends]
    if None in beyond:
        return Finding(UNDECIDED, f"{said}; {ALONE}", value, unit=unit)
    verdicts = [ordered(low, high, side, end) for end, side in ends]
    verdict = CONTRADICTED if CONTRADICTED in verdicts else UNDECIDED if UNDECIDED in verdicts else HOLDS
    return Finding(
        verdict, said, value, known(low), known(high), unit, clusters=clusters,
        against=min((p for p in beyond if p is not None), default=1.0),
        support=max((p for p in inside if p is not None), default=0.0),
    )  # fmt: skip


def at_least(label: str, parts: Sequence[Finding], ahead: Sequence[bool], needed: int, unit: str = "share") -> Finding:
    """Return the finding that at least `needed` of `parts` hold; `ahead`: whether each does by its estimate.

    Parts of the same runs depend on each other, so that their count has no binomial interval. r of n hold if the r-th
    smallest p value does, times n - r + 1; all but r - 1 fail likewise (partial conjunctions, Benjamini and Heller
    2008). For `needed` of all parts that is an intersection-union test. The interval is that of the share.
    """
    of = len(parts)
    if of < needed:
        return untestable(f"{label}: {needed} wanted, there are {of}")
    if all(part.verdict == UNTESTABLE for part in parts):
        return untestable(f"{label}: {parts[0].said}")
    holding = [part.support for part in parts if part.verdict == HOLDS]
    failing = [part.against for part in parts if part.verdict == CONTRADICTED]
    won, lost = _surely(holding, of), _surely(failing, of)
    verdict = HOLDS if won >= needed else CONTRADICTED if of - lost < needed else UNDECIDED
    count = sum(ahead)
    said = f"{label}: {count} of {of}, between {won} and {of - lost} by intervals; {needed} wanted ({tally(parts)})"
    low, high = min(won, count) / of, max(of - lost, count) / of
    against, support = _joint(failing, of, of - needed + 1), _joint(holding, of, needed)
    return Finding(
        verdict, said, count / of, low, high, unit, count, of, against=against, support=support,
    )  # fmt: skip


def _ranked(found: Sequence[float | None]) -> list[float]:
    """Return the p values of decided parts in order; a part is decided at LEVEL / 2."""
    return sorted(min(LEVEL / 2 if p is None else p, LEVEL / 2) for p in found)


def _joint(found: Sequence[float | None], of: int, wanted: int) -> float:
    """Return the p value with which at least `wanted` of `of` parts are decided."""
    ranked = _ranked(found)
    return min(1.0, (of - wanted + 1) * ranked[wanted - 1]) if 0 < wanted <= len(ranked) else float(wanted > 0)


def _surely(found: Sequence[float | None], of: int) -> int:
    """Return how many of `of` parts are decided at LEVEL / 2, taken together."""
    return max((r for r in range(1, len(found) + 1) if _joint(found, of, r) <= LEVEL / 2), default=0)
