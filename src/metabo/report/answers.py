"""The answers that the report opens with: what holds of a paper, what is contradicted, what is undecided and what would
decide it, and what is ours. They are composed from the tables of claims and gates; none is written by hand.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from metabo.papers.engine.claims.power import WANTED
from metabo.plan import registry
from metabo.plan.runs import method_of
from metabo.report.gates import FAILS, ShownGate
from metabo.report.scorecard import JudgedClaim
from metabo.report.wording import listed, names, number, verb

THEORY = "verdict"
"""Unit of a claim that checks of the theory decide."""
MOST = 3
"""Claims that a sentence quotes or gives numbers for; the others are in the table below it."""

CONTRADICTED = {
    "theory": ("by a counterexample to the theory",) * 2,
    "claim": ("at the published size on two benchmarks",) * 2,
    "size": ("at this size, though it holds at another", "at this size, though they hold at another"),
    "data": ("on one benchmark, though it holds on another", "on one benchmark, though they hold on another"),
    "reading": (
        "as we read it, though another reading of the paper holds",
        "as we read them, though other readings hold",
    ),
    "ours": ("because of a known departure of ours",) * 2,
    "unresolved": ("for a reason that this run does not show",) * 2,
}
"""How a claim, and how several, are contradicted, by cause (docs/claims.md)."""
UNDECIDED = {
    "few": (
        "has so few units that it could not be decided even if all of them agreed",
        "have so few units that they could not be decided even if all of them agreed",
    ),
    "power": ("has too few units for an effect of that size", "have too few units for an effect of that size"),
    "small": (
        "would have shown an effect of that size in four of five cases, so that what there is may be smaller",
        "would have shown effects of that size in four of five cases, so that what there is may be smaller",
    ),
    "open": (
        "is not decided by its test, for which no number of units is known that would decide it",
        "are not decided by their tests, for which no number of units is known that would decide them",
    ),
    "reading": ("depends on how the paper is read", "depend on how the paper is read"),
    "untested": (
        "is contradicted under every reading that was tested here, and another reading was not, or cannot be",
        "are contradicted under every reading that was tested here, and another reading was not, or cannot be",
    ),
    "size": ("holds only at another size", "hold only at another size"),
    "data": ("holds only on another benchmark", "hold only on another benchmark"),
    "ours": ("is affected by a known departure of ours", "are affected by a known departure of ours"),
    "unresolved": (
        "is open for a reason that this run does not show",
        "are open for a reason that this run does not show",
    ),
}
UNTESTED = {
    "gate": ("because a control fails",) * 2,
    "data": ("because it needs data that this run does not have", "because they need data that this run does not have"),
    "beyond": ("because no run could show or refute it", "because no run could show or refute them"),
}
OTHERWISE = ("for the reason that the scorecard gives", "for the reasons that the scorecard gives")


class Cited(NamedTuple):
    """A claim in a sentence: its identifier on the page, and what the sentence calls it."""

    anchor: str
    name: str


Sentence = tuple[str | Cited, ...]


class Answer(NamedTuple):
    """A sentence on a paper, and what it is about."""

    topic: str
    sentence: Sentence


def plain(sentence: Sentence) -> str:
    """Return a sentence as text."""
    return "".join(part if isinstance(part, str) else part.name for part in sentence)


def answers(claims: Sequence[JudgedClaim], gates: Sequence[ShownGate]) -> list[Answer]:
    """Answer for one paper in four sentences, from its claims and gates; none if its claims are not checked."""
    if not claims:
        return []
    return [
        Answer("Holds", _holds(claims)),
        Answer("Contradicted", _contradicted(_of(claims, "contradicted"))),
        Answer("Undecided", _undecided(_of(claims, "undecided"), _of(claims, "not testable"))),
        Answer("Ours", _ours(claims, gates)),
    ]


def _of(claims: Sequence[JudgedClaim], verdict: str) -> list[JudgedClaim]:
    """Return the claims with a verdict, the headline ones first."""
    return sorted((one for one in claims if one.whole.verdict == verdict), key=lambda one: not one.headline)


def _by_cause(claims: Sequence[JudgedClaim]) -> dict[str, list[JudgedClaim]]:
    """Group claims by cause, the largest group first."""
    counted = Counter(map(_cause, claims))
    return {cause: [one for one in claims if _cause(one) == cause] for cause, _ in counted.most_common()}


def _cause(claim: JudgedClaim) -> str:
    """Return the cause of a verdict; "theory" where a check of the theory found a counterexample, and in place of
    "power" what the row's own power says: tables of older rules name "power" even where the power is large, or not
    known."""
    row = claim.whole
    if row.cause == "power" and not row.power < WANTED:
        return "small" if row.power >= WANTED else "open"
    return "theory" if row.cause == "claim" and row.unit == THEORY else row.cause


def _cite(claims: Sequence[JudgedClaim]) -> Sentence:
    """Cite claims by name."""
    return listed([(Cited(one.anchor, one.whole.claim),) for one in claims])


def _quote(claims: Sequence[JudgedClaim]) -> Sentence:
    """Cite claims with their statements."""
    return listed([(f"“{one.whole.statement.rstrip('. ')}” (", *_cite([one]), ")") for one in claims])


def _few(claims: Sequence[JudgedClaim], write: Callable[[Sequence[JudgedClaim]], Sentence]) -> Sentence:
    """Write the first claims, and how many more there are; a single one more is written too."""
    more = len(claims) - MOST
    if more < 2:
        return write(claims)
    return listed([*(write([one]) for one in claims[:MOST]), (f"{number(more)} more",)])


def _holds(claims: Sequence[JudgedClaim]) -> Sentence:
    held, headline = _of(claims, "holds"), [one for one in claims if one.headline]
    first = [one for one in held if one.headline]
    if len(claims) == 1:
        return ("Its one claim holds: ", *_quote(held), ".") if held else ("Its one claim does not hold.",)
    if not held:
        return (f"None of the {number(len(claims))} claims holds.",)
    begun = f"{number(len(held), start=True)} of {number(len(claims))} claims {verb(len(held), 'holds', 'hold')}"
    if headline and not first:
        none = (
            f"none of the {number(len(headline))} headline claims does"
            if len(headline) > 1
            else "its headline claim does not"
        )
        return (f"{begun}, but {none}.",)
    if not headline:
        return (f"{begun}: ", *_few(held, _quote), ".")
    of = (
        f"{number(len(first))} of {number(len(headline))} headline claims"
        if len(headline) > 1
        else "its headline claim"
    )
    among = "among them " if len(held) > 1 else ""
    part = f"{begun}, {among}{of}: "
    return (part, *_few(first, _quote), ".")


def _contradicted(found: Sequence[JudgedClaim]) -> Sentence:
    if not found:
        return ("None is contradicted.",)
    parts: list[Sentence] = []
    for cause, those in _by_cause(found).items():
        first = [one for one in those if one.headline]
        quoted = (" (headline: ", *_quote(first[:MOST]), ")") if first else ()
        how = verb(len(those), *CONTRADICTED.get(cause, CONTRADICTED["unresolved"]))
        parts.append((*_cite(those), f" {how}", *quoted))
    begun = f"{number(len(found), start=True)} {verb(len(found), 'is', 'are')} contradicted: "
    return (begun, *listed(parts, "; ", "; and "), ".")


def _undecided(undecided: Sequence[JudgedClaim], untested: Sequence[JudgedClaim]) -> Sentence:
    parts: list[Sentence] = []
    if undecided:
        grouped = _by_cause(undecided)
        causes = [_open(cause, those, len(grouped) == 1) for cause, those in grouped.items()]
        begun = f"{number(len(undecided), start=True)} {verb(len(undecided), 'is', 'are')} undecided: "
        parts.append((begun, *listed(causes, "; ", "; ")))
    else:
        parts.append(("None is undecided",))
    if untested:
        grouped = _by_cause(untested)
        causes = [
            (f"{number(len(those))} {why}" if len(grouped) > 1 else why,)
            for cause, those in grouped.items()
            for why in (verb(len(those), *UNTESTED.get(cause, OTHERWISE)),)
        ]
        comma = ": " if len(grouped) > 1 else ", "
        parts.append((f"{number(len(untested))} cannot be tested here{comma}", *listed(causes)))
    return (*listed(parts, "; ", "; "), ".")


def _open(cause: str, claims: Sequence[JudgedClaim], alone: bool) -> Sentence:
    """Say how many claims are undecided for a cause, and what would decide them; `alone`: it is the only cause."""
    who = verb(len(claims), "it", "they") if alone else number(len(claims))
    said = f"{who} {verb(len(claims), *UNDECIDED.get(cause, UNDECIDED['unresolved']))}"
    rows = [(one, one.whole.clusters, one.whole.needed) for one in claims]
    sizes = [(one, had, needed) for one, had, needed in rows if math.isfinite(needed) and needed > had]
    if cause == "power" and sizes:
        sizes = sorted(sizes, key=lambda size: (not size[0].headline, size[2]))[:MOST]
        each = [(*_cite([one]), f" ({needed:,.0f} in place of {had:,.0f})") for one, had, needed in sizes]
        return (f"{said}, and more units would decide ", *listed(each))
    said += {
        "power": f", and more would decide {verb(len(claims), 'it', 'them')}",
        "reading": ", which only its authors can settle",
    }.get(cause, "")
    return (f"{said} (", *_few(claims, _cite), ")")


def _ours(claims: Sequence[JudgedClaim], gates: Sequence[ShownGate]) -> Sentence:
    parts: list[Sentence] = []
    if other := [one for one in claims if one.whole.kind == "conceptual" and one.whole.verdict != "not testable"]:
        tables = Counter(name for one in other for name in one.whole.benchmark.split() if name != "synthetic")
        on = names([name for name, _ in tables.most_common(MOST)])
        begun = f"{number(len(other))} of the verdicts {verb(len(other), 'rests', 'rest')} on"
        parts.append(
            (f"{begun} our stand-ins for the paper's data ({on})" if on else f"{begun} synthetic tests of our own",)
        )
    stopped = [one for one in claims if one.whole.verdict == "not testable" and one.whole.cause == "gate"]
    if failing := _failing(stopped, gates):
        said = names([f"{label} in {number(count)}" for label, count in failing.most_common(MOST)])
        begun = f"{number(len(stopped))} {verb(len(stopped), 'claim goes', 'claims go')} untested"
        parts.append((f"{begun} because methods, as they run here, fail a control ({said})",))
    if departed := [one for one in claims if one.whole.cause == "ours"]:
        parts.append(("a known departure of ours explains ", *_cite(departed)))
    if not parts:
        return ("Nothing of ours stands between the paper and these verdicts.",)
    return ("Of our making: ", *listed(parts, "; ", "; and "), ".")


def _failing(stopped: Sequence[JudgedClaim], gates: Sequence[ShownGate]) -> Counter[str]:
    """Count, by label of a method, the claims that are not testable because the method fails a gate."""
    known, found = {one.whole.claim for one in stopped}, dict[str, set[str]]()
    for gate in gates:
        resting = known & set(gate.claims.split())
        if gate.verdict == FAILS and resting:
            for label in filter(None, map(_label, gate.subjects.split())):
                found.setdefault(label, set()).update(resting)
    return Counter({label: len(those) for label, those in sorted(found.items())})


def _label(subject: str) -> str:
    """Return the label of the method in a subject of a gate, such as "ablr-ei@held_out"; "" if it names none."""
    method = method_of(subject)
    return registry.method(method).label if method in registry.methods() else ""
