"""Rules besides those of `metabo.papers.engine.claims.verdicts`: accepted ranges, and how many parts hold."""

import math
from collections.abc import Iterator, Sequence

from metabo.papers.engine.claims.conjunctions import tally, untested
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
    untestable,
)

ALONE = "one number, no interval"
"""Why a number that was measured once decides nothing."""


def ranged(
    label: str,
    estimate: Sequence[float],
    least: float,
    most: float,
    unit: str = "",
    clusters: int | None = None,
    ratio: bool = False,
    freedom: float | None = None,
) -> Finding:
    """Return the finding of a number in an accepted range: its interval lies in [`least`, `most`], or outside it.

    Either end of the range may be infinite. With `ratio`, the number is positive and its interval is symmetric on the
    log scale, where the p values are computed; `least` may then be 0.
    """
    value, low, high = (float(number) for number in estimate)
    ends = [
        (end, side) for end, side in ((least, False), (most, True)) if math.isfinite(end) and not (ratio and end == 0)
    ]
    accepted = " to ".join(f"{end:g}" for end, _ in ends)
    if len(ends) == 1:
        accepted = f"at {'most' if ends[0][1] else 'least'} {accepted}"
    said = f"{label} {interval(value, low, high)}, accepted {accepted}"
    on = math.log if ratio else float
    at, below, above = (on(number) for number in (value, low, high))
    beyond = [contrary(at - on(end), below, above, side, clusters, freedom=freedom) for end, side in ends]
    inside = [contrary(at - on(end), below, above, not side, clusters, freedom=freedom) for end, side in ends]
    if None in beyond:
        return Finding(UNDECIDED, f"{said}; {ALONE}", value, unit=unit)
    apart = high < least or low > most
    verdict = CONTRADICTED if apart else HOLDS if least <= low and high <= most else UNDECIDED
    return Finding(
        verdict, said, value, known(low), known(high), unit, clusters=clusters,
        against=min((p for p in beyond if p is not None), default=1.0),
        support=max((p for p in inside if p is not None), default=0.0),
    )  # fmt: skip


def at_least(label: str, parts: Sequence[Finding], ahead: Sequence[bool], needed: int, unit: str = "share") -> Finding:
    """Return the finding that at least `needed` of `parts` hold; `ahead`: whether each does by its estimate.

    Parts of the same runs depend on each other, so that their count has no binomial interval. It lies between the parts
    that surely hold and those that do not surely fail, each by Hochberg's (1988) procedure, which keeps its level where
    parts depend positively, as comparisons of the same runs do. With `needed` all parts this is an intersection-union
    test. The interval is that of the share.
    """
    of = len(parts)
    if of < needed:
        return untestable(f"{label}: {needed} wanted, there are {of}")
    if all(part.verdict == UNTESTABLE for part in parts):
        return untestable(f"{label}: {parts[0].said}")
    holding = _adjusted([part.support for part in parts if part.verdict == HOLDS], of)
    failing = _adjusted([part.against for part in parts if part.verdict == CONTRADICTED], of)
    won, lost = (sum(p <= LEVEL / 2 for p in ranked) for ranked in (holding, failing))
    verdict = HOLDS if won >= needed else CONTRADICTED if of - lost < needed else UNDECIDED
    count = sum(ahead)
    said = f"{label}: {count} of {of}, between {won} and {of - lost} by intervals; {needed} wanted ({tally(parts)})"
    said += untested(list(dict.fromkeys(_reasons(parts))))
    low, high = min(won, count) / of, max(of - lost, count) / of
    support = holding[needed - 1] if needed <= len(holding) else 1.0
    against = failing[of - needed] if of - needed < len(failing) else 1.0
    return Finding(
        verdict,
        said,
        count / of,
        low,
        high,
        unit,
        count,
        of,
        against=against,
        support=support,
        parts=tuple(parts),
        decidable=sum(part.decidable for part in parts) >= needed,
    )


def _reasons(parts: Sequence[Finding]) -> Iterator[str]:
    """Yield why parts, or what they count, cannot be tested."""
    for part in parts:
        if part.verdict == UNTESTABLE:
            yield part.said
        yield from _reasons(part.parts)


def _adjusted(found: Sequence[float | None], of: int) -> list[float]:
    """Return the adjusted p values of decided parts, of `of`, in order: the r-th says that r of them do.

    A part is decided at LEVEL / 2; where it has no p value, it has that one.
    """
    ranked = sorted(min(LEVEL / 2 if p is None else p, LEVEL / 2) for p in found)
    scaled = [(of - place) * p for place, p in enumerate(ranked)]
    return [min(1.0, *scaled[place:]) for place in range(len(scaled))]
