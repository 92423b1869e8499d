"""Claims of several parts: all of them, or one of them.

A claim that needs all is an intersection-union test: it holds if every part does, each at 95 %, uncorrected; it is
contradicted if one part is after Holm's correction over the parts (Berger 1982). A conjunction that cannot be tested in
full does not hold; it can still be contradicted, by the same measure: parts that cannot be tested count in the
correction, since a gate that fails must not make the rest speak louder. An existence claim is the mirror image: it can
hold, and cannot be contradicted, where a part cannot be tested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    LEVEL,
    UNDECIDED,
    UNTESTABLE,
    VERDICTS,
    Finding,
    untestable,
)

_LOUDEST_FIRST = (CONTRADICTED, UNDECIDED, HOLDS, UNTESTABLE)
SHOWN_PARTS, SHOWN_UNTESTABLE = 3, 2
"""Parts of a claim that its sentence spells out, tested and not testable; more are counted."""


def together(parts: Iterable[Finding], what: str = "parts") -> Finding:
    """Return the finding of a claim that needs all `parts`: an intersection-union test.

    It is contradicted if a part is after Holm's correction (with several parts the smallest `against` times their
    number is compared with LEVEL / 2), holds if all parts hold, is not testable if all that can be tested hold, and
    otherwise undecided. Its number is that of the part that speaks loudest: the most contrary, then the least certain.
    The sentence spells out up to SHOWN_PARTS parts and counts the rest. It is decidable if all parts are: with one that
    is not, it cannot hold.
    """
    found = list(parts)
    if not found:
        return untestable(f"no {what} to compare")
    if len(found) == 1:
        return found[0]
    tested = [part for part in found if part.verdict != UNTESTABLE]
    lost = [part.said for part in found if part.verdict == UNTESTABLE] if tested else []
    if not tested:
        return replace(found[0], said=_reasons(found, what))
    ranked = sorted(tested, key=lambda part: (_LOUDEST_FIRST.index(part.verdict), _against(part)))
    loudest = ranked[0]
    clear = loudest.verdict == CONTRADICTED and _against(loudest) * len(found) <= LEVEL / 2
    verdict = (
        CONTRADICTED
        if clear
        else HOLDS
        if all(part.verdict == HOLDS for part in found)
        else UNTESTABLE
        if all(part.verdict == HOLDS for part in tested)
        else UNDECIDED
    )
    said = _joined(ranked, found, what)
    if loudest.verdict == CONTRADICTED and not clear:
        said = f"contradicted in a part, not after Holm's correction over {len(found)}: {said}"
    powers = [part.power for part in tested if part.power is not None]
    return replace(
        loudest, verdict=verdict, said=said + untested(lost), count=None, of=None, parts=(),
        power=min(powers) if powers and verdict == UNDECIDED else None,
        needed=loudest.needed if verdict == UNDECIDED else None, decidable=all(part.decidable for part in found),
        against=min(1.0, min(map(_against, tested)) * len(found)), support=max(map(supporting, found)),
    )  # fmt: skip


def _against(part: Finding) -> float:
    if part.against is not None:
        return part.against
    return LEVEL / 2 if part.verdict == CONTRADICTED else 1.0


def supporting(part: Finding) -> float:
    """Return the p value with which a finding holds; for one without a test, the level at which it was decided."""
    if part.support is not None:
        return part.support
    return LEVEL / 2 if part.verdict == HOLDS else 1.0


def any_of(parts: Sequence[Finding], what: str = "problems") -> Finding:
    """Return the finding of an existence claim: one of `parts` suffices.

    `parts` are tested at level LEVEL / len(parts) already (Bonferroni). It is contradicted if every part is; if a part
    cannot be tested, it might be the one that holds, so a claim that all others contradict is not testable. Such parts
    count in the correction, as in `together`.
    """
    tested = [part for part in parts if part.verdict != UNTESTABLE]
    if not tested:
        return untestable(_reasons(parts, what) if parts else f"no {what} to compare")
    quietest = sorted(tested, key=lambda part: (-_LOUDEST_FIRST.index(part.verdict), -_against(part)))
    best = quietest[0]
    said = _joined(quietest, parts, what) if len(parts) > 1 else best.said
    every = all(part.verdict == CONTRADICTED for part in tested)
    lost = [part.said for part in parts if part.verdict == UNTESTABLE]
    contrary = UNTESTABLE if lost else CONTRADICTED
    verdict = HOLDS if best.verdict == HOLDS else contrary if every else UNDECIDED
    support = min(1.0, min(map(supporting, tested)) * len(parts))
    against = 1.0 if lost else max(map(_against, tested))
    decidable = any(part.decidable for part in tested)
    return replace(
        best, verdict=verdict, said=said + untested(lost), against=against, support=support, decidable=decidable
    )  # fmt: skip


def _joined(ranked: Sequence[Finding], found: Sequence[Finding], what: str) -> str:
    said = "; ".join(part.said for part in ranked[:SHOWN_PARTS])
    if len(ranked) > SHOWN_PARTS:
        said = f"{tally(found)} of {len(found)} {what}: {said}; and {len(ranked) - SHOWN_PARTS} more"
    return said


def _reasons(parts: Sequence[Finding], what: str) -> str:
    """Say why no part can be tested, each reason once."""
    distinct = [*{part.said: part for part in parts}.values()]
    return _joined(distinct, parts, what)


def untested(reasons: Sequence[str]) -> str:
    """Return the end of a sentence that says what could not be tested, each reason once."""
    reasons = [*dict.fromkeys(reasons)]
    shown = reasons[:SHOWN_UNTESTABLE]
    if len(reasons) > SHOWN_UNTESTABLE:
        shown.append(f"and {len(reasons) - SHOWN_UNTESTABLE} more")
    return f"; not testable: {'; '.join(shown)}" if shown else ""


def tally(findings: Iterable[Finding]) -> str:
    """Say how many findings have each verdict, e.g. "2 hold, 1 undecided"."""
    verdicts = [finding.verdict for finding in findings]
    words = {HOLDS: ("holds", "hold")}
    counts = [(verdicts.count(v), *words.get(v, (v, v))) for v in VERDICTS if v in verdicts]
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts)
